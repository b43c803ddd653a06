/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * world.c - a binary heap of embedded events.
 */
#include "sim/world.h"

#include <errno.h>

int world_init(struct world *w, const struct sim_alloc *mem, uint64_t seed,
	       uint32_t cap)
{
	*w = (struct world){ .mem = mem, .cap = cap };
	prng_init(&w->rng, seed);
	w->heap = mem->alloc(mem->ctx, cap * sizeof(w->heap[0]),
			     _Alignof(struct world_event *));
	return w->heap ? 0 : -ENOMEM;
}

void world_fini(struct world *w)
{
	w->mem->free(w->mem->ctx, w->heap);
	w->heap = NULL;
}

struct prng world_rng(const struct world *w, const char *label)
{
	return prng_split(&w->rng, label);
}

void world_event_init(struct world_event *e,
		      void (*fire)(struct world_event *e, int64_t now_ns))
{
	*e = (struct world_event){ .fire = fire };
}

static bool before(const struct world_event *a, const struct world_event *b)
{
	if (a->at_ns != b->at_ns)
		return a->at_ns < b->at_ns;
	return a->seq < b->seq;
}

static void place(struct world *w, uint32_t i, struct world_event *e)
{
	w->heap[i] = e;
	e->slot = i + 1;
}

static void sift_up(struct world *w, uint32_t i, struct world_event *e)
{
	while (i > 0 && before(e, w->heap[(i - 1) / 2])) {
		place(w, i, w->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	place(w, i, e);
}

static void sift_down(struct world *w, uint32_t i, struct world_event *e)
{
	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c >= w->n)
			break;
		if (c + 1 < w->n && before(w->heap[c + 1], w->heap[c]))
			c++;
		if (before(e, w->heap[c]))
			break;
		place(w, i, w->heap[c]);
		i = c;
	}
	place(w, i, e);
}

void world_cancel(struct world *w, struct world_event *e)
{
	struct world_event *last;
	uint32_t i;

	if (!e->slot)
		return;
	i = e->slot - 1;
	ASSERT(i < w->n && w->heap[i] == e);
	e->slot = 0;
	last = w->heap[--w->n];
	if (last == e)
		return;
	if (i > 0 && before(last, w->heap[(i - 1) / 2]))
		sift_up(w, i, last);
	else
		sift_down(w, i, last);
}

void world_at(struct world *w, struct world_event *e, int64_t at_ns)
{
	world_cancel(w, e);
	ASSERT(w->n < w->cap);
	e->at_ns = at_ns < w->now_ns ? w->now_ns : at_ns;
	e->seq = w->next_seq++;
	w->n++;
	sift_up(w, w->n - 1, e);
}

bool world_step(struct world *w, int64_t until_ns)
{
	struct world_event *e = w->n ? w->heap[0] : NULL;

	if (!e || e->at_ns > until_ns) {
		if (until_ns > w->now_ns)
			w->now_ns = until_ns;
		return false;
	}
	world_cancel(w, e);
	w->now_ns = e->at_ns;
	w->fired++;
	e->fire(e, w->now_ns);
	return true;
}
