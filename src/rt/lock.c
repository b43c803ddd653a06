/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rt/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPINS 100

void futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
	int saved = errno;

	/* EAGAIN and EINTR are spurious wake-ups to the caller. */
	(void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
	errno = saved;
}

void futex_wake(_Atomic uint32_t *word, int n)
{
	int saved = errno;

	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
	errno = saved;
}

void rt_lock_slow(struct rt_lock *l)
{
	for (int i = 0; i < SPINS; i++) {
		uint32_t zero = 0;

		if (atomic_compare_exchange_weak_explicit(&l->word, &zero, 1,
							  memory_order_acquire,
							  memory_order_relaxed))
			return;
	}
	while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire))
		futex_wait(&l->word, 2);
}
