/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fault_ops.c - one kind of work over a bad network, all data checked.
 *
 * -m send, write, read: -n messages of -s bytes, each from and to a place of
 * its own. -m atomic: -n FETCH_ADDs and -n CMP_SWAPs on one counter; each must
 * happen once, and in order. -m dead: one WRITE that must end with
 * RETRY_EXC_ERR. The client prints how long the work took.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pairlib.h"

#define WINDOW 4 /* WRs outstanding */

struct work {
	struct pl *p;
	struct ibv_mr *mr;
	uint8_t *mem; /* n * size bytes; atomics: WINDOW results, the counter */
	int posted, done;
};

static uint8_t pattern(int k, size_t i)
{
	return (uint8_t)(i * 7 + i / 251 + (size_t)k * 13 + 1);
}

static void fill(struct work *w)
{
	for (int k = 0; k < w->p->n; k++)
		for (size_t i = 0; i < w->p->size; i++)
			w->mem[(size_t)k * w->p->size + i] = pattern(k, i);
}

static void check(struct work *w)
{
	for (int k = 0; k < w->p->n; k++)
		for (size_t i = 0; i < w->p->size; i++)
			if (w->mem[(size_t)k * w->p->size + i] != pattern(k, i))
				pl_die("message %d is wrong at byte %zu", k, i);
}

static uint8_t *place(struct work *w, int k)
{
	return w->mem + (size_t)k * w->p->size;
}

/* ---- SEND, WRITE, READ ---- */

static struct work *current; /* for post_first */

static void post_recv(struct work *w)
{
	if (w->posted == w->p->n)
		return;
	pl_recv(w->p, 0, w->mr, place(w, w->posted), w->p->size);
	w->posted++;
}

static void post_first(struct pl *p)
{
	if (strcmp(p->mode, "send") != 0 || p->client)
		return;
	for (int i = 0; i < WINDOW; i++)
		post_recv(current);
}

static void receive_all(struct work *w)
{
	for (; w->done < w->p->n; w->done++) {
		pl_poll_n(w->p, 1);
		post_recv(w);
	}
}

static void request_all(struct work *w, enum ibv_wr_opcode op)
{
	struct pl *p = w->p;

	while (w->done < p->n) {
		for (; w->posted < p->n && w->posted - w->done < WINDOW;
		     w->posted++)
			pl_post(p, 0, op, w->mr, place(w, w->posted), p->size,
				p->raddr + (uint64_t)w->posted * p->size);
		pl_poll_n(p, 1);
		w->done++;
	}
}

static void move(struct work *w)
{
	struct pl *p = w->p;
	bool read = strcmp(p->mode, "read") == 0;
	bool send = strcmp(p->mode, "send") == 0;

	if (p->client)
		request_all(w, read   ? IBV_WR_RDMA_READ
			       : send ? IBV_WR_SEND
				      : IBV_WR_RDMA_WRITE);
	else if (send)
		receive_all(w);
	pl_sync(p);
	if (p->client == read)
		check(w);
}

/* ---- atomics ---- */

/* The client counts up by adding, then by comparing: every answer is known. */
static void post_atomic(struct work *w, int k)
{
	struct pl *p = w->p;
	struct ibv_sge sge = { (uintptr_t)w->mem + (size_t)(k % WINDOW) * 8, 8,
			       w->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = (uint64_t)k,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = k < p->n ? IBV_WR_ATOMIC_FETCH_AND_ADD
				   : IBV_WR_ATOMIC_CMP_AND_SWP,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = { .remote_addr = p->raddr, .rkey = p->rkey },
	};

	wr.wr.atomic.compare_add = k < p->n ? 1 : (uint64_t)k;
	wr.wr.atomic.swap = (uint64_t)k + 1;
	PL_CHECK(ibv_post_send(p->qp[0], &wr, &bad) == 0);
}

static void take_atomic(struct work *w)
{
	struct ibv_wc wc = pl_poll(w->p);
	uint64_t was;

	if (wc.status != IBV_WC_SUCCESS)
		pl_die("atomic %d: %s", w->done, ibv_wc_status_str(wc.status));
	PL_CHECK(wc.wr_id == (uint64_t)w->done);
	memcpy(&was, w->mem + (size_t)(w->done % WINDOW) * 8, 8);
	if (was != (uint64_t)w->done)
		pl_die("atomic %d found %" PRIu64, w->done, was);
	w->done++;
}

static void count_up(struct work *w)
{
	struct pl *p = w->p;
	uint64_t last;

	while (p->client && w->done < 2 * p->n) {
		for (; w->posted < 2 * p->n && w->posted - w->done < WINDOW;
		     w->posted++)
			post_atomic(w, w->posted);
		take_atomic(w);
	}
	pl_sync(p);
	memcpy(&last, w->mem, 8);
	if (!p->client && last != 2 * (uint64_t)p->n)
		pl_die("the counter is %" PRIu64, last);
}

/* ---- a network that delivers nothing ---- */

static void fail(struct work *w)
{
	struct ibv_wc wc;

	if (!w->p->client)
		return;
	pl_post(w->p, 0, IBV_WR_RDMA_WRITE, w->mr, w->mem, w->p->size,
		w->p->raddr);
	wc = pl_poll(w->p);
	if (wc.status != IBV_WC_RETRY_EXC_ERR)
		pl_die("status %s", ibv_wc_status_str(wc.status));
}

int main(int argc, char **argv)
{
	struct work w = { 0 };
	struct pl p;
	int64_t begin_ns;

	pl_start(&p, argc, argv, 32);
	p.timeout = 14; /* losses are the point: 67 ms */
	w.p = &p;
	current = &w;
	w.mem = calloc((size_t)p.n + 1, p.size < 64 ? 64 : p.size);
	PL_CHECK(w.mem);
	if (p.client != (strcmp(p.mode, "read") == 0) &&
	    strcmp(p.mode, "atomic") != 0)
		fill(&w);
	w.mr = pl_share(&p, w.mem, ((size_t)p.n + 1) * p.size);
	pl_connect(&p, post_first);
	begin_ns = pl_now_ns();
	if (strcmp(p.mode, "atomic") == 0)
		count_up(&w);
	else if (strcmp(p.mode, "dead") == 0)
		fail(&w);
	else
		move(&w);
	if (p.client)
		printf("took %.6f s\n", (double)(pl_now_ns() - begin_ns) / 1e9);
	pl_sync(&p);
	PL_CHECK(ibv_dereg_mr(w.mr) == 0);
	pl_stop(&p);
	free(w.mem);
	return 0;
}
