/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * budget.h - bytes that may be in flight toward one receive buffer.
 *
 * A full UDP receive buffer loses packets without a word, so what is
 * outstanding toward one destination (all QPs of this hca together), and what
 * READ responses are outstanding toward us, is bounded, in bytes as the
 * receiver's kernel charges them. A QP that does not get its share waits in
 * line and is scheduled when some is given back. One charge always passes
 * when nothing is in flight.
 *
 * The limit is what fits a buffer that nobody else fills. What is allowed at a
 * time is less when somebody does: half while the same buffer takes requests
 * and READ responses (budget_share), and what congestion has taught
 * (budget_cut): news of it halve the bound, down to an 8th of the limit, and 32
 * times the bound's worth of acknowledgements bring a 16th back. Where several
 * hosts send to one process they come to share its buffer in this way; and
 * since it fills when its owner stands still now and then, what was learned has
 * to last for longer than a few round trips.
 *
 * A bound that shrinks below what is in flight is overdrawn. Then everybody in
 * line is woken: packets that nobody asked to acknowledge would hold their
 * charges for ever, so their owner may send one more that asks
 * (budget_take_over).
 */
#ifndef SOFTHCA_CORE_OBJ_BUDGET_H
#define SOFTHCA_CORE_OBJ_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dlist.h"

struct budget {
	uint32_t limit; /* 0: unbounded, and nothing is counted */
	uint32_t bound; /* learned: limit / 16 .. limit */
	uint64_t acked; /* bytes acknowledged since the bound last moved */
	bool fresh_cut; /* not all that was in flight at the last cut is
			   acknowledged: more of the same is no news */
	bool shared;	/* half of the limit at most ... */
	int64_t shared_until_ns; /* ... until then */
	uint32_t used;
	struct dlist waiters; /* struct budget_wait.node, longest first */
};

struct budget_wait {
	struct dlist node;
	uint32_t want; /* what the refused take asked for */
	bool turn;     /* was woken: may pass those who still wait */
	void (*wake)(struct budget_wait *w); /* schedule the owner */
};

void budget_init(struct budget *b, uint32_t limit);
void budget_wait_init(struct budget_wait *w,
		      void (*wake)(struct budget_wait *w));

/* What may be in flight now, 0: unbounded. */
uint32_t budget_bound(const struct budget *b);

/* True: n was taken. False: w waits in line (once), behind those who came
 * before, even if there were room for a small n: who wants much is not passed
 * for ever by those who want little. */
bool budget_take(struct budget *b, uint32_t n, struct budget_wait *w,
		 int64_t now_ns);

/* After a refused take: takes n all the same where the bound is overdrawn. */
bool budget_take_over(struct budget *b, uint32_t n, struct budget_wait *w);

/* Gives n back and wakes waiters, oldest first, while there is room for what
 * they want; everybody when nothing is in flight any more or the bound is
 * overdrawn. A woken waiter is off the line and must take again; nothing is
 * reserved for it. Waiters exist only while something is in flight, so each is
 * woken in the end. */
void budget_give(struct budget *b, uint32_t n);

/* n of what is given back was acknowledged: the bound grows. */
void budget_acked(struct budget *b, uint32_t n);

/* The receive buffer overflowed, or there is congestion on the way to it. True:
 * the bound was halved; false: it was, less than a bound's worth of
 * acknowledgements ago, and once is enough. */
bool budget_cut(struct budget *b);

/* The receive buffer is known to take other traffic, for some time to come. */
void budget_share(struct budget *b, int64_t now_ns);

/* Leaves the line; harmless when not in it. */
static inline void budget_leave(struct budget_wait *w)
{
	dlist_remove(&w->node);
	w->turn = false;
}

#endif
