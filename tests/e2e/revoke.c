/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * revoke.c - the server deregisters memory while the client WRITEs into it as
 * fast as it can, unmaps it every other time, and uses the addresses for
 * something else: not a byte of the client's may appear there. A QP for each
 * round (-q), since each ends with an access error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pairlib.h"

#define QUIET 0x11
#define DEPTH 4
/* Where no other mapping lands. */
#define HINT ((void *)0x200000000000)

static uint8_t *map(size_t len)
{
	void *p = mmap(HINT, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	PL_CHECK(p == HINT);
	return p;
}

static void look(const uint8_t *mem, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (mem[i] != QUIET)
			pl_die("byte %zu is 0x%02x after ibv_dereg_mr()", i,
			       mem[i]);
}

static void serve(struct pl *p)
{
	volatile uint8_t *first;
	struct ibv_mr *mr;
	uint8_t *mem;

	for (int k = 0; k < p->qps; k++) {
		mem = map(p->size);
		first = mem;
		mr = pl_reg(p, mem, p->size);
		pl_tell(p, mr->rkey);
		while (!*first) /* the first bytes are here */
			usleep(10);
		usleep((useconds_t)(rand() % 2000));
		PL_CHECK(ibv_dereg_mr(mr) == 0);
		if (k & 1)
			mem = map(p->size);
		memset(mem, QUIET, p->size);
		for (int i = 0; i < 10; i++) {
			look(mem, p->size);
			usleep(200);
		}
		pl_tell(p, 0);
	}
}

/* Until it is told that there is no such key any more. */
static int flood(struct pl *p, int qp, struct ibv_mr *mr)
{
	int good = 0, out;
	struct ibv_wc wc;

	for (out = 0; out < DEPTH; out++)
		pl_post(p, qp, IBV_WR_RDMA_WRITE, mr, mr->addr, p->size,
			(uintptr_t)HINT);
	while ((wc = pl_poll(p)).status == IBV_WC_SUCCESS) {
		good++;
		pl_post(p, qp, IBV_WR_RDMA_WRITE, mr, mr->addr, p->size,
			(uintptr_t)HINT);
	}
	if (wc.status != IBV_WC_REM_ACCESS_ERR)
		pl_die("WRITE: %s", ibv_wc_status_str(wc.status));
	for (out = 1; out < DEPTH; out++)
		PL_CHECK(pl_poll(p).status == IBV_WC_WR_FLUSH_ERR);
	return good;
}

static void ask(struct pl *p)
{
	uint8_t *src = malloc(p->size);
	int good = 0;
	struct ibv_mr *mr;

	PL_CHECK(src);
	memset(src, 0xee, p->size);
	mr = pl_reg(p, src, p->size);
	for (int k = 0; k < p->qps; k++) {
		p->rkey = (uint32_t)pl_hear(p);
		good += flood(p, k, mr);
		(void)pl_hear(p);
	}
	printf("%d WRITEs in %d rounds\n", good, p->qps);
	PL_CHECK(ibv_dereg_mr(mr) == 0);
	free(src);
}

int main(int argc, char **argv)
{
	struct pl p;

	pl_start(&p, argc, argv, 64);
	pl_connect(&p, NULL);
	if (p.client)
		ask(&p);
	else
		serve(&p);
	pl_sync(&p);
	pl_stop(&p);
	return 0;
}
