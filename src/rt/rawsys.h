/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rawsys.h - system calls without libc: no errno, no cancellation point, no
 * interposer of somebody else's (rsockets, sanitizers) in between.
 */
#ifndef SOFTHCA_RT_RAWSYS_H
#define SOFTHCA_RT_RAWSYS_H

#include <sys/syscall.h>

/* Returns what the kernel does: -errno on failure. */
static inline long rawsys6(long nr, long a, long b, long c, long d, long e,
			   long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
			   "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#else
#error "x86-64 and arm64 only"
#endif
}

#define RAWSYS_ARG(x) ((long)(x))
#define RAWSYS0(nr) rawsys6(nr, 0, 0, 0, 0, 0, 0)
#define RAWSYS1(nr, a) rawsys6(nr, RAWSYS_ARG(a), 0, 0, 0, 0, 0)
#define RAWSYS2(nr, a, b) rawsys6(nr, RAWSYS_ARG(a), RAWSYS_ARG(b), 0, 0, 0, 0)
#define RAWSYS3(nr, a, b, c)                                                   \
	rawsys6(nr, RAWSYS_ARG(a), RAWSYS_ARG(b), RAWSYS_ARG(c), 0, 0, 0)
#define RAWSYS4(nr, a, b, c, d)                                                \
	rawsys6(nr, RAWSYS_ARG(a), RAWSYS_ARG(b), RAWSYS_ARG(c),               \
		RAWSYS_ARG(d), 0, 0)
#define RAWSYS6(nr, a, b, c, d, e, f)                                          \
	rawsys6(nr, RAWSYS_ARG(a), RAWSYS_ARG(b), RAWSYS_ARG(c),               \
		RAWSYS_ARG(d), RAWSYS_ARG(e), RAWSYS_ARG(f))

#endif
