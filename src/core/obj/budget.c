/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/budget.h"

#include "base/assert.h"

void budget_init(struct budget *b, uint32_t limit)
{
	b->limit = limit;
	b->used = 0;
	dlist_init(&b->waiters);
}

void budget_wait_init(struct budget_wait *w,
		      void (*wake)(struct budget_wait *w))
{
	dlist_init(&w->node);
	w->want = 0;
	w->turn = false;
	w->wake = wake;
}

static bool fits(uint32_t limit, uint32_t used, uint32_t n)
{
	return used == 0 || (used <= limit && n <= limit - used);
}

/* Nobody came before w. */
static bool is_next(struct budget *b, const struct budget_wait *w)
{
	return w->turn || dlist_empty(&b->waiters) ||
	       dlist_first(&b->waiters) == &w->node;
}

static void wait_in_line(struct budget *b, uint32_t n, struct budget_wait *w)
{
	w->want = n;
	if (dlist_linked(&w->node))
		return;
	if (w->turn) /* somebody was quicker: it keeps its place */
		dlist_push_front(&b->waiters, &w->node);
	else
		dlist_push_back(&b->waiters, &w->node);
}

bool budget_take(struct budget *b, uint32_t n, struct budget_wait *w)
{
	if (b->limit == 0)
		return true;
	if (!is_next(b, w) || !fits(b->limit, b->used, n)) {
		wait_in_line(b, n, w);
		return false;
	}
	budget_leave(w);
	ASSERT(b->used + n >= n);
	b->used += n;
	return true;
}

void budget_give(struct budget *b, uint32_t n)
{
	struct dlist *first;
	uint32_t spoken_for;

	if (b->limit == 0)
		return;
	ASSERT(n <= b->used);
	b->used -= n;
	spoken_for = b->used;
	while ((first = dlist_first(&b->waiters))) {
		struct budget_wait *w =
			CONTAINER_OF(first, struct budget_wait, node);

		if (b->used && !fits(b->limit, spoken_for, w->want))
			break;
		spoken_for = spoken_for + w->want < spoken_for
				     ? UINT32_MAX
				     : spoken_for + w->want;
		dlist_remove(first);
		w->turn = true;
		w->wake(w);
	}
}
