/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * many_qps.c - many RC QPs (-q) between two processes: on each of them, both
 * ways, all QPs at once: a SEND, a WRITE, a READ of -s bytes, and what arrived
 * is compared byte for byte. Says how long connecting them took:
 * from the first creation to the last QP in RTS on both sides.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pairlib.h"

/* Four areas of qps * size bytes each. */
enum area { AREA_OWN, AREA_RECV, AREA_WRITTEN, AREA_READ, AREA_COUNT };

static uint8_t *mem;
static struct ibv_mr *mr;

static size_t area_off(const struct pl *p, enum area a, int i)
{
	return ((size_t)a * (size_t)p->qps + (size_t)i) * p->size;
}

static uint8_t *at(const struct pl *p, enum area a, int i)
{
	return mem + area_off(p, a, i);
}

/* Byte j of what QP i of the client or server sends. */
static uint8_t pattern(bool client, int i, size_t j)
{
	return (uint8_t)((size_t)i * 31 + j * 7 + (client ? 101 : 0));
}

static void post_receives(struct pl *p)
{
	for (int i = 0; i < p->qps; i++)
		pl_recv(p, i, mr, at(p, AREA_RECV, i), p->size);
}

static void verify(const struct pl *p, enum area a)
{
	for (int i = 0; i < p->qps; i++)
		for (size_t j = 0; j < p->size; j++)
			if (at(p, a, i)[j] != pattern(!p->client, i, j))
				pl_die("area %d, QP %d, byte %zu is wrong", a,
				       i, j);
}

static void round_of(struct pl *p, enum ibv_wr_opcode op, enum area local,
		     enum area remote, int completions)
{
	for (int i = 0; i < p->qps; i++)
		pl_post(p, i, op, mr, at(p, local, i), p->size,
			p->raddr + area_off(p, remote, i));
	pl_poll_n(p, completions * p->qps);
	pl_sync(p);
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	double begin_s;
	struct pl p;
	size_t total;

	pl_start(&p, argc, argv, 32768);
	begin_s = now_s();
	total = AREA_COUNT * (size_t)p.qps * p.size;
	mem = calloc(1, total);
	PL_CHECK(mem);
	mr = pl_share(&p, mem, total);
	for (int i = 0; i < p.qps; i++)
		for (size_t j = 0; j < p.size; j++)
			at(&p, AREA_OWN, i)[j] = pattern(p.client, i, j);
	pl_connect(&p, post_receives);
	printf("%d QPs connected in %.2f s\n", p.qps, now_s() - begin_s);

	round_of(&p, IBV_WR_SEND, AREA_OWN, AREA_OWN, 2);
	verify(&p, AREA_RECV);
	round_of(&p, IBV_WR_RDMA_WRITE, AREA_OWN, AREA_WRITTEN, 1);
	verify(&p, AREA_WRITTEN);
	round_of(&p, IBV_WR_RDMA_READ, AREA_READ, AREA_OWN, 1);
	verify(&p, AREA_READ);
	printf("%d QPs: all data right\n", p.qps);

	PL_CHECK(ibv_dereg_mr(mr) == 0);
	pl_stop(&p);
	free(mem);
	return 0;
}
