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
 */
#ifndef SOFTHCA_CORE_OBJ_BUDGET_H
#define SOFTHCA_CORE_OBJ_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dlist.h"

struct budget {
	uint32_t limit; /* 0: unbounded, and nothing is counted */
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

/* True: n was taken. False: w waits in line (once), behind those who came
 * before, even if there were room for a small n: who wants much is not passed
 * for ever by those who want little. */
bool budget_take(struct budget *b, uint32_t n, struct budget_wait *w);

/* Gives n back and wakes waiters, oldest first, while there is room for what
 * they want; everybody when nothing is in flight any more. A woken waiter is
 * off the line and must take again; nothing is reserved for it. Waiters exist
 * only while something is in flight, so each is woken in the end. */
void budget_give(struct budget *b, uint32_t n);

/* Leaves the line; harmless when not in it. */
static inline void budget_leave(struct budget_wait *w)
{
	dlist_remove(&w->node);
	w->turn = false;
}

#endif
