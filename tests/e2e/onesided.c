/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * onesided.c - -n WRITEs and READs of -s bytes into a server that takes no
 * part: -m sleep: it sleeps in recv(); -m compute: it computes and never enters
 * verbs. The client checks what it reads back, the server what was written.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "pairlib.h"

/* Computes until the client says on TCP that it is done. */
static uint64_t compute(struct pl *p)
{
	uint64_t x = 88172645463325252ull;
	char c;

	do {
		for (int i = 0; i < 2000000; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
		}
	} while (recv(p->sock, &c, 1, MSG_PEEK | MSG_DONTWAIT) != 1);
	return x;
}

static void serve(struct pl *p, const uint8_t *mem)
{
	uint64_t last;

	if (strcmp(p->mode, "compute") == 0)
		printf("computed %d\n", (int)(compute(p) & 1));
	last = pl_hear(p);
	for (size_t i = 0; i < p->size; i++)
		PL_CHECK(mem[i] == (uint8_t)(last + i));
}

static void ask(struct pl *p, uint8_t *mem, struct ibv_mr *mr)
{
	uint8_t *back = mem + p->size;
	int64_t begin_ns = pl_now_ns();

	for (int k = 0; k < p->n; k++) {
		for (size_t i = 0; i < p->size; i++)
			mem[i] = (uint8_t)((size_t)k + i);
		pl_post(p, 0, IBV_WR_RDMA_WRITE, mr, mem, p->size, p->raddr);
		pl_post(p, 0, IBV_WR_RDMA_READ, mr, back, p->size, p->raddr);
		pl_poll_n(p, 2);
		PL_CHECK(memcmp(mem, back, p->size) == 0);
	}
	printf("%d rounds, %.1f us each\n", p->n,
	       (double)(pl_now_ns() - begin_ns) / 1000 / p->n);
	pl_tell(p, (uint64_t)(p->n - 1));
}

int main(int argc, char **argv)
{
	struct pl p;
	struct ibv_mr *mr;
	uint8_t *mem;

	pl_start(&p, argc, argv, 16);
	mem = calloc(2, p.size);
	PL_CHECK(mem);
	mr = pl_share(&p, mem, 2 * p.size);
	pl_connect(&p, NULL);
	if (p.client)
		ask(&p, mem, mr);
	else
		serve(&p, mem);
	pl_sync(&p);
	PL_CHECK(ibv_dereg_mr(mr) == 0);
	pl_stop(&p);
	free(mem);
	return 0;
}
