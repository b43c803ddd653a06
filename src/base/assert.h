/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * assert.h - the one way to state an invariant of our own.
 *
 * Stays on in release builds. A failed ASSERT is our fault, never the caller's
 * and never the peer's: those get an errno or a verdict.
 */
#ifndef SOFTHCA_BASE_ASSERT_H
#define SOFTHCA_BASE_ASSERT_H

#include <stdlib.h>

#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define LIKELY(x) __builtin_expect(!!(x), 1)

/* abort() keeps base free of stdio; the core file and line are in the
 * volatile locals, readable in a debugger. */
#define ASSERT(cond)                                                           \
	do {                                                                   \
		if (UNLIKELY(!(cond)))                                         \
			assert_failed(#cond, __FILE__, __LINE__);              \
	} while (0)

/* Ends the process. Defined once in base/assert.c. */
_Noreturn void assert_failed(const char *cond, const char *file, int line);

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MUST_USE __attribute__((warn_unused_result))

/* The struct of type `type` whose member `member` is at `ptr`. */
#define CONTAINER_OF(ptr, type, member)                                        \
	((type *)(void *)((char *)(ptr) - __builtin_offsetof(type, member)))

#endif
