/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * lock.h - a small mutex on one futex word, for the short sections of post,
 * poll and event queues. No cancellation point, no allocation, nothing that an
 * interposer can see.
 */
#ifndef SOFTHCA_RT_LOCK_H
#define SOFTHCA_RT_LOCK_H

#include <stdatomic.h>
#include <stdint.h>

struct rt_lock {
	_Atomic uint32_t word; /* 0 free, 1 held, 2 held and waited for */
};

/* Sleeps until *word differs from `seen` or somebody wakes; may return
 * spuriously. errno is preserved. */
void futex_wait(_Atomic uint32_t *word, uint32_t seen);
void futex_wake(_Atomic uint32_t *word, int n);

void rt_lock_slow(struct rt_lock *l);

static inline void rt_lock_init(struct rt_lock *l)
{
	atomic_init(&l->word, 0);
}

static inline void rt_lock_acquire(struct rt_lock *l)
{
	uint32_t zero = 0;

	if (!atomic_compare_exchange_strong_explicit(&l->word, &zero, 1,
						     memory_order_acquire,
						     memory_order_relaxed))
		rt_lock_slow(l);
}

static inline void rt_lock_release(struct rt_lock *l)
{
	if (atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2)
		futex_wake(&l->word, 1);
}

#endif
