/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * onto_one.c - one server process (-n CLIENTS) that clients write to, all at
 * once, for -t seconds; with -m reads it also READs from each of them all the
 * time. Client number k uses TCP port PORT + k. The server's memory is compared
 * at the end.
 *
 * Everything comes to one receive buffer, the server's.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pairlib.h"

#define MAX_CLIENTS 16
#define DEPTH 8 /* WRITEs under way of a client, READs of the server */

/* A client's share of the server's memory, and what it writes there. */
enum area { AREA_WRITTEN, AREA_READ, AREA_COUNT };

struct peer {
	struct pl p;
	struct ibv_mr *mr;
	uint8_t *mem;
	int under_way;
	bool done;
};

static uint8_t pattern(size_t j)
{
	return (uint8_t)(j * 7 + j / 251);
}

static void fill(uint8_t *mem, size_t len)
{
	for (size_t j = 0; j < len; j++)
		mem[j] = pattern(j);
}

static void compare(const uint8_t *mem, size_t len, const char *what)
{
	for (size_t j = 0; j < len; j++)
		if (mem[j] != pattern(j))
			pl_die("%s: byte %zu is wrong", what, j);
}

static void start(struct peer *e, int argc, char **argv)
{
	pl_start(&e->p, argc, argv, 256);
	e->mem = calloc(AREA_COUNT, e->p.size);
	PL_CHECK(e->mem);
	for (int a = 0; e->p.client && a < AREA_COUNT; a++)
		fill(e->mem + (size_t)a * e->p.size, e->p.size);
	e->mr = pl_share(&e->p, e->mem, AREA_COUNT * e->p.size);
	pl_connect(&e->p, NULL);
}

static void stop(struct peer *e)
{
	PL_CHECK(ibv_dereg_mr(e->mr) == 0);
	pl_stop(&e->p);
	free(e->mem);
}

/* Takes what is done, posts up to DEPTH. */
static void keep_going(struct peer *e, enum ibv_wr_opcode op, enum area local,
		       enum area remote, bool more)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(e->p.cq, 1, &wc) == 1) {
		if (wc.status != IBV_WC_SUCCESS)
			pl_die("%s", ibv_wc_status_str(wc.status));
		e->under_way--;
	}
	for (; more && e->under_way < DEPTH; e->under_way++)
		pl_post(&e->p, 0, op, e->mr, e->mem + local * e->p.size,
			e->p.size, e->p.raddr + remote * e->p.size);
}

/* ---- client ---- */

static void client(struct peer *e)
{
	int64_t end_ns;

	pl_sync(&e->p); /* the others are there too */
	end_ns = pl_now_ns() + e->p.seconds * 1000000000LL;
	while (pl_now_ns() < end_ns)
		keep_going(e, IBV_WR_RDMA_WRITE, AREA_WRITTEN, AREA_WRITTEN,
			   true);
	while (e->under_way)
		keep_going(e, IBV_WR_RDMA_WRITE, 0, 0, false);
	pl_tell(&e->p, 1);
	pl_hear(&e->p); /* no READ of the server is under way */
}

/* ---- server ---- */

static bool says_done(struct peer *e)
{
	struct pollfd f = { .fd = e->p.sock, .events = POLLIN };

	if (!e->done && poll(&f, 1, 0) == 1) {
		pl_hear(&e->p);
		e->done = true;
	}
	return e->done;
}

static bool step(struct peer *e)
{
	bool reads = strcmp(e->p.mode, "reads") == 0;
	bool over = says_done(e);

	keep_going(e, IBV_WR_RDMA_READ, AREA_READ, AREA_READ, reads && !over);
	return !over || e->under_way;
}

static void server(struct peer *e, int n)
{
	bool busy = true;

	for (int i = 0; i < n; i++)
		pl_sync(&e[i].p);
	while (busy) {
		busy = false;
		for (int i = 0; i < n; i++)
			busy |= step(&e[i]);
	}
	for (int i = 0; i < n; i++) {
		compare(e[i].mem, e[i].p.size, "written");
		if (strcmp(e[i].p.mode, "reads") == 0)
			compare(e[i].mem + e[i].p.size, e[i].p.size, "read");
		pl_tell(&e[i].p, 1);
	}
}

/* The same options, but for the port. */
static void start_nth(struct peer *e, int argc, char **argv, int k)
{
	static char port[MAX_CLIENTS][8];
	char *copy[64];

	PL_CHECK(argc < 63);
	memcpy(copy, argv, (size_t)(argc + 1) * sizeof(*argv));
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(copy[i], "-p") == 0) {
			snprintf(port[k], sizeof(port[k]), "%d",
				 atoi(argv[i + 1]) + k);
			copy[i + 1] = port[k];
		}
	optind = 1;
	start(e, argc, copy);
}

int main(int argc, char **argv)
{
	static struct peer e[MAX_CLIENTS];
	int n = 1;

	start_nth(&e[0], argc, argv, 0);
	if (!e[0].p.client)
		n = e[0].p.n;
	PL_CHECK(n >= 1 && n <= MAX_CLIENTS);
	for (int k = 1; k < n; k++)
		start_nth(&e[k], argc, argv, k);
	if (e[0].p.client)
		client(&e[0]);
	else
		server(e, n);
	printf("all data right\n");
	for (int k = 0; k < n; k++)
		stop(&e[k]);
	return 0;
}
