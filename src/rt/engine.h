/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * engine.h - the engine rule: whoever has something for the NIC to do enters
 * the engine and does the NIC's work, or leaves a mark for the one inside.
 *
 * Lock and mark are one atomic word, always changed by read-modify-write, so
 * no doorbell is lost: a mark set before the holder's last compare-and-swap
 * makes that swap fail. Data-path visitors (post, poll, NIC thread) never
 * wait. Control verbs wait in engine_lock(); while one waits, data-path
 * visitors only leave marks, and the control verb serves these when it unlocks.
 *
 * Inside: raw system calls, no allocation, errno restored, <= 4 KiB of stack.
 */
#ifndef SOFTHCA_RT_ENGINE_H
#define SOFTHCA_RT_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rt/stats.h"

struct rtdev;

enum visit {
	VISIT_POST, /* a doorbell rang */
	VISIT_POLL, /* a CQ was found empty */
	VISIT_ARM,  /* a CQ was armed: the program is about to sleep */
	VISIT_NIC,  /* the NIC thread: socket, timer or kick */
};

/* RT_COUNTERS of rt/stats.h, as several threads may count them. */
struct engine_counters {
#define ENGINE_COUNTER_FIELD(name) _Atomic uint64_t name;
	RT_COUNTERS(ENGINE_COUNTER_FIELD)
#undef ENGINE_COUNTER_FIELD
};

#define ENGINE_COUNT(e, name) ENGINE_ADD(e, name, 1)
#define ENGINE_ADD(e, name, n)                                                 \
	atomic_fetch_add_explicit(&(e)->counters.name, (n),                    \
				  memory_order_relaxed)
/* [E] The same for a counter that has one writer at a time: no locked
 * instruction. */
#define ENGINE_COUNT_IN(e, name) ENGINE_ADD_IN(e, name, 1)
#define ENGINE_ADD_IN(e, name, n)                                              \
	atomic_store_explicit(&(e)->counters.name,                             \
			      atomic_load_explicit(&(e)->counters.name,        \
						   memory_order_relaxed) +     \
				      (n),                                     \
			      memory_order_relaxed)

struct engine {
	_Alignas(
		64) _Atomic uint32_t word; /* ENGINE_HELD | ENGINE_MARK | ... */
	_Atomic uint32_t control_waiters;  /* control verbs that want in */

	/* Written inside; read by the NIC thread and pollers as hints. */
	_Alignas(64) _Atomic int64_t last_poll_ns;
	_Atomic bool want_arm; /* the program is about to sleep */
	bool held_frames;      /* the link holds frames back */
	bool more;	       /* the last round left work */
	bool poll_only;	       /* a program polls: it comes back at once */
	unsigned polls;	       /* of those, with rings */
	unsigned rx_frames;    /* of the last round */
	struct engine_counters counters;
};

void engine_init(struct engine *e);

/* Enter, do the NIC's work within a budget, leave; or leave a mark. Never
 * waits. True: was inside (in->rx_frames is this visit's). */
bool engine_visit(struct rtdev *d, enum visit why);

/* Exclusive access for a control verb; sleeps while somebody is inside. */
void engine_lock(struct rtdev *d);
/* The same for at most limit_ns: false, not inside. */
MUST_USE bool engine_lock_timed(struct rtdev *d, int64_t limit_ns);
/* Serves what was marked meanwhile, then leaves. */
void engine_unlock(struct rtdev *d);

/* [a control verb, outside] What was posted before this call is taken up, as
 * far as a visit's budget and full receivers let it. */
void engine_settle(struct rtdev *d);

/* The device goes: sends what was reported as done and is still here, held back
 * by a full receiver on this host (waits for that, a second at most) or delayed
 * by faults (at once). Nobody else is or comes inside. */
void engine_drain(struct rtdev *d);

/* CLOCK_MONOTONIC in ns: the time of everything in rt. */
int64_t rt_now_ns(void);

#endif
