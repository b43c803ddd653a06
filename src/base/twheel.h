/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * twheel.h - a hierarchical timer wheel: arm and cancel in O(1), no
 * allocation. Times are int64_t nanoseconds of the driver's clock.
 *
 * A timer never fires early. It fires at the first twheel_advance() whose now
 * is at or past its expiry rounded up to the wheel's tick (TWHEEL_TICK_NS).
 * Armed by a callback for the tick that is being fired, or an earlier one, it
 * is due one tick later; in the last tick of an advance it waits for the next
 * twheel_advance(). So a callback cannot hold the wheel.
 *
 * A timer is in the lowest level whose slots tell its tick from now_tick: the
 * level of the highest bit in which the two differ. So what is in a lower level
 * is due before what is in a higher one, and above level 0 the slot that
 * contains now_tick is empty.
 */
#ifndef SOFTHCA_BASE_TWHEEL_H
#define SOFTHCA_BASE_TWHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dlist.h"

#define TWHEEL_TICK_NS 1024 /* power of two, about 1 us */
#define TWHEEL_BITS 6
#define TWHEEL_SLOTS (1 << TWHEEL_BITS)
#define TWHEEL_LEVELS 9 /* 10 + 54 bits: every int64_t has its slot */
#define TWHEEL_NEVER INT64_MAX

struct timer {
	struct dlist node;
	int64_t expiry_ns; /* as armed, unrounded */
	void (*fire)(struct timer *t, int64_t now_ns);
};

struct twheel {
	int64_t now_tick; /* all timers of earlier ticks have fired */
	uint64_t used[TWHEEL_LEVELS]; /* bit s: slot s of the level may hold
					 timers */
	struct dlist slot[TWHEEL_LEVELS][TWHEEL_SLOTS];
};

/* No timers; time starts at now_ns >= 0. */
void twheel_init(struct twheel *w, int64_t now_ns);

/* Not armed. */
void timer_init(struct timer *t, void (*fire)(struct timer *, int64_t now_ns));

/* (Re)arms: the timer will fire once, at or after expiry_ns. */
void timer_arm(struct twheel *w, struct timer *t, int64_t expiry_ns);

/* Harmless on a timer that is not armed. */
void timer_cancel(struct timer *t);

static inline bool timer_armed(const struct timer *t)
{
	return dlist_linked(&t->node);
}

/* Fires what is due, earlier ticks first. A callback may arm and cancel any
 * timer; its now_ns is this one. Time that goes back is ignored. */
void twheel_advance(struct twheel *w, int64_t now_ns);

/* When to call twheel_advance next: at or before the earliest expiry (it may
 * be early, for the wheel to cascade), TWHEEL_NEVER when nothing is armed. */
int64_t twheel_deadline(const struct twheel *w);

#endif
