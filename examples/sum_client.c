/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sum_client.c - sends two numbers to sum_server through an RDMA NIC and
 * prints the sum that comes back.
 *
 *   sum_client [-d DEVICE] [-g GID_INDEX] [-p TCP_PORT] HOST A B
 *
 * The order of things, which is that of every verbs program:
 *   1. open a device, make PD, MR, CQ, QP             sum_open()
 *   2. post the receive for the answer, before anybody can send one
 *   3. tell each other QP number and address (TCP)    sum_connect()
 *   4. post a send, sleep until it and the receive have completed
 *   5. take everything down                           sum_close()
 */
#include <endian.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sum_common.h"

#define TIMEOUT_MS 10000

static int tcp_connect(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list, *a;
	int sock = -1, err;

	err = getaddrinfo(host, port, &hints, &list);
	if (err) {
		fprintf(stderr, "%s: %s\n", host, gai_strerror(err));
		return -1;
	}
	for (a = list; a && sock < 0; a = a->ai_next) {
		sock = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
		if (sock >= 0 && connect(sock, a->ai_addr, a->ai_addrlen)) {
			close(sock);
			sock = -1;
		}
	}
	if (sock < 0)
		perror(host);
	freeaddrinfo(list);
	return sock;
}

/* Step 4. Two completions come, in an order that we do not rely on: our send
 * (the server's NIC has the request) and our receive (the answer is here). */
static int ask(struct sum_end *e, int sock, uint64_t a, uint64_t b)
{
	bool sent = false, answered = false;

	e->buf.request.a = htobe64(a);
	e->buf.request.b = htobe64(b);
	if (sum_post_send(e, &e->buf.request, sizeof(e->buf.request)) != 0)
		return -1;
	while (!sent || !answered) {
		struct ibv_wc wc;

		if (sum_wait(e, sock, TIMEOUT_MS, &wc, NULL) != 0)
			return -1;
		if (wc.opcode == IBV_WC_SEND)
			sent = true;
		else if (wc.opcode == IBV_WC_RECV)
			answered = wc.byte_len == sizeof(e->buf.reply);
	}
	printf("%" PRIu64 " + %" PRIu64 " = %" PRIu64 "\n", a, b,
	       (uint64_t)be64toh(e->buf.reply.sum));
	return 0;
}

static int run(struct sum_end *e, const struct sum_options *opt, char **args)
{
	int sock, err = -1;

	if (sum_open(e, opt) != 0 ||
	    sum_post_recv(e, &e->buf.reply, sizeof(e->buf.reply)) != 0)
		return -1;
	sock = tcp_connect(args[0], opt->port);
	if (sock < 0)
		return -1;
	if (sum_connect(e, sock) == 0)
		err = ask(e, sock, strtoull(args[1], NULL, 0),
			  strtoull(args[2], NULL, 0));
	close(sock); /* tells the server that we are done */
	return err;
}

int main(int argc, char **argv)
{
	struct sum_options opt;
	struct sum_end e = { 0 };
	int first = sum_parse(argc, argv, &opt);
	int err;

	if (first < 0 || argc - first != 3) {
		fprintf(stderr, "usage: sum_client [-d DEVICE] [-g GID_INDEX] "
				"[-p TCP_PORT] HOST A B\n");
		return 2;
	}
	err = run(&e, &opt, argv + first);
	sum_close(&e);
	return err ? 1 : 0;
}
