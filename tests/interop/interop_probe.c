/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * interop_probe.c - a plain verbs program that runs the cases of
 * interop_cases.c between two NICs, and prints what each of them reported.
 *
 *   interop_probe [-d DEV] [-g GID] [-m MTU] [-t TIMEOUT] -p PORT [HOST
 * CASE...]
 *
 * With HOST it is the client. MTU and TIMEOUT are in the codes of verbs (3 is
 * 1024 bytes, 16 is 268 ms). CASE is NAME[:LEN[:COUNT]]. Each is a QP of its
 * own, set up over a TCP connection of its own; the client is the requester.
 * The server ends when a connection names the case "bye", which is what the
 * client does last.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "interop_side.h"
#include "pairlib.h"

/* A silence of this length means that no completion comes any more. */
#define REQUESTER_QUIET_MS 30000
#define RESPONDER_QUIET_MS 200

struct request {
	char name[40];
	uint32_t len;
	int32_t count;
};

struct options {
	const char *device, *port, *host;
	int gid_index, mtu, timeout;
};

/* ---- TCP ---- */

static void put(int sock, const void *buf, size_t len)
{
	PL_CHECK(send(sock, buf, len, MSG_NOSIGNAL) == (ssize_t)len);
}

static void get(int sock, void *buf, size_t len)
{
	PL_CHECK(recv(sock, buf, len, MSG_WAITALL) == (ssize_t)len);
}

static void sync_with_peer(int sock)
{
	char c = 0;

	put(sock, &c, 1);
	get(sock, &c, 1);
}

static int tcp_listen(const struct options *o)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)atoi(o->port)) };
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	PL_CHECK(bind(s, (struct sockaddr *)&a, sizeof(a)) == 0);
	PL_CHECK(listen(s, 8) == 0);
	return s;
}

static int tcp_connect(const struct options *o)
{
	struct addrinfo hints = { .ai_family = AF_INET,
				  .ai_socktype = SOCK_STREAM },
			*ai;
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	PL_CHECK(getaddrinfo(o->host, o->port, &hints, &ai) == 0);
	PL_CHECK(connect(s, ai->ai_addr, ai->ai_addrlen) == 0);
	freeaddrinfo(ai);
	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return s;
}

/* ---- a case ---- */

static void requester(struct side *s, int sock)
{
	int n;

	sync_with_peer(sock);
	side_post_sends(s);
	n = side_reap(s->scq, "send", s->count, REQUESTER_QUIET_MS);
	if (n < s->count)
		printf("send: %d of %d completions\n", n, s->count);
	sync_with_peer(sock);
}

static void responder(struct side *s, int sock)
{
	bool late = s->c->flags & CASE_LATE_RECV;

	if (!late)
		side_post_recvs(s);
	sync_with_peer(sock);
	if (late) {
		usleep(LATE_MS * 1000);
		side_post_recvs(s);
	}
	sync_with_peer(sock);
	side_reap(s->rcq, "recv", SIDE_MAX_WRS, RESPONDER_QUIET_MS);
}

static void run_case(const struct options *o, struct ibv_context *ctx, int sock,
		     const struct request *r, bool is_requester)
{
	struct side s = { .c = interop_case_find(r->name),
			  .requester = is_requester,
			  .gid_index = o->gid_index,
			  .timeout = o->timeout,
			  .ctx = ctx };

	if (!s.c)
		pl_die("no case %s", r->name);
	s.len = r->len ? r->len : s.c->len;
	s.count = r->count ? r->count : s.c->count;
	PL_CHECK(s.count <= SIDE_MAX_WRS);
	printf("case %s\n", r->name);
	side_create(&s, o->mtu);
	put(sock, &s.own, sizeof(s.own));
	get(sock, &s.peer, sizeof(s.peer));
	side_connect(&s);
	if (is_requester)
		requester(&s, sock);
	else
		responder(&s, sock);
	side_report(&s);
	/* Nobody takes a QP away while the other side still looks. */
	sync_with_peer(sock);
	side_destroy(&s);
}

static void serve(const struct options *o, struct ibv_context *ctx)
{
	int s = tcp_listen(o);
	struct request r;

	for (;;) {
		int sock = accept(s, NULL, NULL), one = 1;

		PL_CHECK(sock >= 0);
		setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		get(sock, &r, sizeof(r));
		if (strcmp(r.name, "bye") == 0)
			break;
		run_case(o, ctx, sock, &r, false);
		close(sock);
	}
	close(s);
}

/* NAME[:LEN[:COUNT]] */
static struct request parse_case(const char *text)
{
	struct request r = { .len = 0 };
	size_t n = strcspn(text, ":");

	PL_CHECK(n < sizeof(r.name));
	memcpy(r.name, text, n);
	if (sscanf(text + n, ":%u:%d", &r.len, &r.count) < 1)
		r.len = 0;
	return r;
}

static void ask(const struct options *o, struct ibv_context *ctx,
		const char *text)
{
	struct request r = parse_case(text);
	int sock = tcp_connect(o);

	put(sock, &r, sizeof(r));
	if (ctx)
		run_case(o, ctx, sock, &r, true);
	close(sock);
}

static int parse_options(struct options *o, int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "d:g:m:p:t:")) != -1)
		switch (opt) {
		case 'd':
			o->device = optarg;
			break;
		case 'g':
			o->gid_index = atoi(optarg);
			break;
		case 'm':
			o->mtu = atoi(optarg);
			break;
		case 'p':
			o->port = optarg;
			break;
		case 't':
			o->timeout = atoi(optarg);
			break;
		default:
			return -1;
		}
	o->host = argv[optind];
	return o->port ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct options o = { .port = NULL };
	struct ibv_context *ctx;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (parse_options(&o, argc, argv) != 0)
		return 2;
	ctx = side_open(o.device);
	if (!o.host)
		serve(&o, ctx);
	for (int i = optind + 1; o.host && i < argc; i++)
		ask(&o, ctx, argv[i]);
	if (o.host)
		ask(&o, NULL, "bye");
	PL_CHECK(ibv_close_device(ctx) == 0);
	return 0;
}
