/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* umem_rig.h - what tests of umem share: children, in which tests run that end
 * in a signal or change what is done with one; a page that cannot be accessed.
 */
#ifndef SOFTHCA_TESTS_UNIT_UMEM_RIG_H
#define SOFTHCA_TESTS_UNIT_UMEM_RIG_H

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "rt/umem.h"

#define PAGE 4096u

static inline uint64_t va_of(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* Runs fn in a child; returns its wait status. */
static inline int in_child(int (*fn)(void))
{
	pid_t pid;
	int status;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/* A failed assert in here makes cmocka go on with the other
		 * tests; it fails in the end, the report is the parent's. */
		if (!freopen("/dev/null", "w", stdout))
			_exit(1);
		signal(SIGSEGV, SIG_DFL); /* not cmocka's */
		signal(SIGBUS, SIG_DFL);
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
		alarm(60);
		_exit(fn());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static inline void assert_exits(int (*fn)(void))
{
	int status = in_child(fn);

	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("child: status 0x%x", status);
}

static inline void assert_killed(int (*fn)(void), int sig)
{
	int status = in_child(fn);

	if (!WIFSIGNALED(status) || WTERMSIG(status) != sig)
		fail_msg("child: status 0x%x, wanted signal %d", status, sig);
}

/* In a child, cmocka's asserts would write to the parent's report. */
#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "# child: line %d: %s\n", __LINE__,    \
				#cond);                                        \
			_exit(1);                                              \
		}                                                              \
	} while (0)

static uint8_t *volatile bad_page;

static inline void make_bad_page(void)
{
	bad_page =
		mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(bad_page != MAP_FAILED);
}

static inline bool umem_survives(void)
{
	uint8_t b = 0;

	return umem_read(&b, va_of(bad_page), 1) == -EFAULT &&
	       umem_write(va_of(bad_page), &b, 1) == -EFAULT;
}

#endif
