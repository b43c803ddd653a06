/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * last_byte.c - -n rounds: the client WRITEs -s bytes of one value; the server
 * polls the last byte in memory, never a CQ, and as soon as it has the round's
 * value all others must have it too. It answers with a WRITE of its own.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pairlib.h"

/* size bytes of data, then the answer: 8 bytes in a line of their own. */
static uint8_t *mem;
static volatile uint64_t *answer;

static uint8_t value(int round)
{
	return (uint8_t)(round % 255 + 1);
}

/* A program that polls on memory; that it yields now and then is only for
 * machines with few cores. */
static void spin_until(const volatile uint8_t *byte, uint8_t v)
{
	int64_t end_ns = pl_now_ns() + 30 * 1000000000LL;

	for (;;) {
		for (int i = 0; i < 200; i++)
			if (*byte == v)
				return;
		if (pl_now_ns() > end_ns)
			pl_die("the last byte never came");
		sched_yield();
	}
}

static bool all_are(const uint8_t *p, uint8_t v, size_t len)
{
	return p[0] == v && memcmp(p, p + 1, len - 1) == 0;
}

static void serve(struct pl *p, struct ibv_mr *mr)
{
	uint8_t *out = mem + p->size + 64;

	for (int k = 0; k < p->n; k++) {
		spin_until(mem + p->size - 1, value(k));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!all_are(mem, value(k), p->size))
			pl_die("round %d: the last byte came too early", k);
		*(uint64_t *)(void *)out = (uint64_t)k + 1;
		pl_post(p, 0, IBV_WR_RDMA_WRITE, mr, out, 8,
			p->raddr + p->size);
		pl_poll_n(p, 1);
	}
}

static void write_on(struct pl *p, struct ibv_mr *mr)
{
	for (int k = 0; k < p->n; k++) {
		int64_t end_ns = pl_now_ns() + 30 * 1000000000LL;

		memset(mem, value(k), p->size);
		pl_post(p, 0, IBV_WR_RDMA_WRITE, mr, mem, p->size, p->raddr);
		pl_poll_n(p, 1);
		/* Polling the CQ drives our NIC: no spinning here. */
		while (*answer != (uint64_t)k + 1) {
			struct ibv_wc wc;

			PL_CHECK(ibv_poll_cq(p->cq, 1, &wc) == 0);
			if (pl_now_ns() > end_ns)
				pl_die("no answer");
		}
	}
}

int main(int argc, char **argv)
{
	struct ibv_mr *mr;
	struct pl p;

	pl_start(&p, argc, argv, 16);
	mem = aligned_alloc(64, p.size + 128);
	PL_CHECK(mem);
	memset(mem, 0, p.size + 128);
	answer = (volatile uint64_t *)(void *)(mem + p.size);
	mr = pl_share(&p, mem, p.size + 128);
	pl_connect(&p, NULL);
	if (p.client)
		write_on(&p, mr);
	else
		serve(&p, mr);
	printf("%d rounds\n", p.n);
	pl_sync(&p);
	PL_CHECK(ibv_dereg_mr(mr) == 0);
	pl_stop(&p);
	free(mem);
	return 0;
}
