/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sum_server.c - receives two numbers through an RDMA NIC and answers their
 * sum; one client after the other, each with a queue pair of its own.
 *
 *   sum_server [-d DEVICE] [-g GID_INDEX] [-p TCP_PORT] [-n CLIENTS]
 *
 * -n: end after so many clients (default: never). See sum_client.c for the
 * order of things.
 */
#include <endian.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sum_common.h"

#define IDLE_MS (-1) /* a client may think as long as it likes */

static int listen_on(int family, const char *port)
{
	struct addrinfo hints = { .ai_flags = AI_PASSIVE,
				  .ai_family = family,
				  .ai_socktype = SOCK_STREAM };
	struct addrinfo *a;
	int sock, one = 1;

	if (getaddrinfo(NULL, port, &hints, &a) != 0)
		return -1;
	sock = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
	if (sock >= 0) {
		setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(sock, a->ai_addr, a->ai_addrlen) != 0 ||
		    listen(sock, 8) != 0) {
			close(sock);
			sock = -1;
		}
	}
	freeaddrinfo(a);
	return sock;
}

/* An IPv6 socket takes IPv4 connections too; without IPv6, an IPv4 one. */
static int tcp_listen(const char *port)
{
	int sock = listen_on(AF_INET6, port);

	if (sock < 0)
		sock = listen_on(AF_INET, port);
	if (sock < 0)
		fprintf(stderr, "cannot listen on TCP port %s\n", port);
	return sock;
}

static int answer(struct sum_end *e)
{
	uint64_t a = be64toh(e->buf.request.a);
	uint64_t b = be64toh(e->buf.request.b);

	printf("asked for %" PRIu64 " + %" PRIu64 "\n", a, b);
	fflush(stdout);
	e->buf.reply.sum = htobe64(a + b);
	/* The buffer of the request is free again: offer it to the next
	 * request before the answer allows the client to send one. */
	if (sum_post_recv(e, &e->buf.request, sizeof(e->buf.request)) != 0)
		return -1;
	return sum_post_send(e, &e->buf.reply, sizeof(e->buf.reply));
}

/* Answers requests until the client closes its TCP connection. */
static int serve(struct sum_end *e, int sock)
{
	for (;;) {
		struct ibv_wc wc;
		bool gone;

		if (sum_wait(e, sock, IDLE_MS, &wc, &gone) != 0)
			return -1;
		if (gone)
			return 0;
		if (wc.opcode == IBV_WC_RECV && answer(e) != 0)
			return -1;
	}
}

static int serve_client(int sock, const struct sum_options *opt)
{
	struct sum_end e;
	int err = -1;

	/* The receive is posted before the client learns our QP's number: it
	 * can never find us without one. */
	if (sum_open(&e, opt) == 0 &&
	    sum_post_recv(&e, &e.buf.request, sizeof(e.buf.request)) == 0 &&
	    sum_connect(&e, sock) == 0)
		err = serve(&e, sock);
	sum_close(&e);
	return err;
}

int main(int argc, char **argv)
{
	struct sum_options opt;
	int first = sum_parse(argc, argv, &opt);
	int listener, failures = 0;

	if (first < 0 || argc != first) {
		fprintf(stderr, "usage: sum_server [-d DEVICE] [-g GID_INDEX] "
				"[-p TCP_PORT] [-n CLIENTS]\n");
		return 2;
	}
	listener = tcp_listen(opt.port);
	if (listener < 0)
		return 1;
	for (unsigned i = 0; !opt.clients || i < opt.clients; i++) {
		int sock = accept(listener, NULL, NULL);

		if (sock < 0) {
			perror("accept");
			return 1;
		}
		if (serve_client(sock, &opt) != 0)
			failures++;
		close(sock);
	}
	close(listener);
	return failures ? 1 : 0;
}
