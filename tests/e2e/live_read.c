/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * live_read.c - for -t seconds the client READs memory that a thread of the
 * server never stops writing. The bytes are anybody's guess; that the packets
 * that carry them are whole is seen from the counters.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "pairlib.h"

#define DEPTH 4

static atomic_bool stop;
static uint64_t *words;
static size_t n_words;

static void *writer(void *arg)
{
	uint64_t v = 0;

	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		v++;
		for (size_t i = 0; i < n_words; i++)
			((volatile uint64_t *)words)[i] = v * 0x9e3779b9 + i;
	}
	return arg;
}

static void serve(struct pl *p)
{
	pthread_t t;

	PL_CHECK(pthread_create(&t, NULL, writer, NULL) == 0);
	printf("%d reads\n", (int)pl_hear(p));
	atomic_store(&stop, true);
	pthread_join(t, NULL);
}

static void read_on(struct pl *p, struct ibv_mr *mr)
{
	int64_t end_ns = pl_now_ns() + p->seconds * 1000000000LL;
	uint64_t n = 0;

	for (int i = 0; i < DEPTH; i++)
		pl_post(p, 0, IBV_WR_RDMA_READ, mr, words, p->size, p->raddr);
	for (; pl_now_ns() < end_ns; n++) {
		pl_poll_n(p, 1);
		pl_post(p, 0, IBV_WR_RDMA_READ, mr, words, p->size, p->raddr);
	}
	pl_poll_n(p, DEPTH);
	pl_tell(p, n + DEPTH);
}

int main(int argc, char **argv)
{
	struct ibv_mr *mr;
	struct pl p;

	pl_start(&p, argc, argv, 16);
	words = calloc(1, p.size);
	n_words = p.size / sizeof(*words);
	PL_CHECK(words);
	mr = pl_share(&p, words, p.size);
	pl_connect(&p, NULL);
	if (p.client)
		read_on(&p, mr);
	else
		serve(&p);
	pl_sync(&p);
	PL_CHECK(ibv_dereg_mr(mr) == 0);
	pl_stop(&p);
	free(words);
	return 0;
}
