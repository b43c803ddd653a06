/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/budget.h"

#include "base/assert.h"

#define LEAST 8 /* of so many parts of the limit one is always allowed */
#define STEP 16 /* so many steps up are the limit ... */
#define EACH 32 /* ... each after so many bounds' worth of acknowledgements */
/* Longer than a receiver stands still on a busy machine: what it has not read
 * lies in its buffer meanwhile. */
#define SHARE_NS 1000000000

void budget_init(struct budget *b, uint32_t limit)
{
	*b = (struct budget){ .limit = limit, .bound = limit };
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

uint32_t budget_bound(const struct budget *b)
{
	uint32_t half = b->limit - b->limit / 2;

	return b->shared && half < b->bound ? half : b->bound;
}

static bool overdrawn(const struct budget *b)
{
	return b->used > budget_bound(b);
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

bool budget_take(struct budget *b, uint32_t n, struct budget_wait *w,
		 int64_t now_ns)
{
	if (b->limit == 0)
		return true;
	if (now_ns >= b->shared_until_ns)
		b->shared = false;
	if (!is_next(b, w) || !fits(budget_bound(b), b->used, n)) {
		wait_in_line(b, n, w);
		return false;
	}
	budget_leave(w);
	ASSERT(b->used + n >= n);
	b->used += n;
	return true;
}

bool budget_take_over(struct budget *b, uint32_t n, struct budget_wait *w)
{
	if (!overdrawn(b))
		return false;
	budget_leave(w);
	ASSERT(b->used + n >= n);
	b->used += n;
	return true;
}

static void wake(struct budget_wait *w)
{
	dlist_remove(&w->node);
	w->turn = true;
	w->wake(w);
}

static void wake_all(struct budget *b)
{
	struct dlist *first;

	while ((first = dlist_first(&b->waiters)))
		wake(CONTAINER_OF(first, struct budget_wait, node));
}

void budget_give(struct budget *b, uint32_t n)
{
	struct dlist *first;
	uint32_t spoken_for;

	if (b->limit == 0)
		return;
	ASSERT(n <= b->used);
	b->used -= n;
	if (b->used == 0 || overdrawn(b)) {
		wake_all(b);
		return;
	}
	spoken_for = b->used;
	while ((first = dlist_first(&b->waiters))) {
		struct budget_wait *w =
			CONTAINER_OF(first, struct budget_wait, node);

		if (!fits(budget_bound(b), spoken_for, w->want))
			break;
		spoken_for = spoken_for + w->want < spoken_for
				     ? UINT32_MAX
				     : spoken_for + w->want;
		wake(w);
	}
}

/* The n-th part of the limit. */
static uint32_t part(const struct budget *b, uint32_t n)
{
	return b->limit / n ? b->limit / n : 1;
}

void budget_acked(struct budget *b, uint32_t n)
{
	uint32_t step = part(b, STEP);

	b->acked += n;
	if (b->acked >= b->bound)
		b->fresh_cut = false;
	if (b->acked < (uint64_t)b->bound * EACH)
		return;
	b->acked = 0;
	b->bound = b->limit - b->bound > step ? b->bound + step : b->limit;
}

bool budget_cut(struct budget *b)
{
	uint32_t least = part(b, LEAST);

	if (b->limit == 0 || b->fresh_cut)
		return false;
	b->fresh_cut = true;
	b->acked = 0;
	b->bound = b->bound / 2 > least ? b->bound / 2 : least;
	if (overdrawn(b))
		wake_all(b);
	return true;
}

void budget_share(struct budget *b, int64_t now_ns)
{
	if (b->limit == 0)
		return;
	b->shared_until_ns = now_ns + SHARE_NS;
	if (b->shared)
		return;
	b->shared = true;
	if (overdrawn(b))
		wake_all(b);
}
