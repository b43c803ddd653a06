/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * umem_signal_test.c - faults that are not umem's reach the program, whatever
 * handlers it has or installs. Each runs in a child.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "umem_rig.h"

static sigjmp_buf jump;
static volatile sig_atomic_t handled;
static void *volatile handled_addr;
static sigset_t handled_mask;

static void jump_handler(int sig, siginfo_t *si, void *uc)
{
	(void)sig;
	(void)uc;
	handled++;
	handled_addr = si->si_addr;
	pthread_sigmask(SIG_BLOCK, NULL, &handled_mask);
	siglongjmp(jump, 1);
}

static void plain_jump_handler(int sig)
{
	(void)sig;
	handled++;
	siglongjmp(jump, 1);
}

static void own_fault(void)
{
	*(volatile uint8_t *)(bad_page + 5) = 1;
}

static void own_fault_reaches(int before)
{
	CHECK(umem_survives());
	CHECK(handled == before);
	if (sigsetjmp(jump, 1) == 0) {
		own_fault();
		CHECK(!"fault came back");
	}
	CHECK(handled == before + 1);
	CHECK(handled_addr == bad_page + 5);
}

/* The program's handler gets the program's faults, with their address and its
 * mask; umem keeps working. */
static void own_faults_reach(int want_handled)
{
	int before = handled;

	for (int i = 0; i < want_handled; i++)
		own_fault_reaches(before + i);
	CHECK(umem_survives());
}

static void set_jump_handler(void)
{
	struct sigaction sa = { .sa_sigaction = jump_handler,
				.sa_flags = SA_SIGINFO };

	sigaddset(&sa.sa_mask, SIGUSR1);
	CHECK(sigaction(SIGSEGV, &sa, NULL) == 0);
	CHECK(sigaction(SIGBUS, &sa, NULL) == 0);
}

static int child_handler_before(void)
{
	make_bad_page();
	set_jump_handler();
	CHECK(umem_init(UMEM_FIXUP) == 0);
	own_faults_reach(3);
	CHECK(sigismember(&handled_mask, SIGUSR1) == 1);
	CHECK(sigismember(&handled_mask, SIGSEGV) == 1);
	CHECK(sigismember(&handled_mask, SIGUSR2) == 0);
	pthread_sigmask(SIG_BLOCK, NULL, &handled_mask);
	CHECK(sigismember(&handled_mask, SIGUSR1) == 0);
	return 0;
}

static int child_handler_after(void)
{
	make_bad_page();
	CHECK(umem_init(UMEM_FIXUP) == 0);
	set_jump_handler();
	umem_check();
	own_faults_reach(3);
	umem_check();
	own_faults_reach(2);
	return 0;
}

static int child_signal_after(void)
{
	make_bad_page();
	CHECK(umem_init(UMEM_FIXUP) == 0);
	signal(SIGSEGV, plain_jump_handler);
	umem_check();
	CHECK(umem_survives());
	if (sigsetjmp(jump, 1) == 0) {
		own_fault();
		CHECK(!"fault came back");
	}
	CHECK(handled == 1);
	CHECK(umem_survives());
	return 0;
}

/* A new handler each time, more often than there are entries. */
static int child_many_handlers(void)
{
	make_bad_page();
	CHECK(umem_init(UMEM_FIXUP) == 0);
	for (int i = 0; i < 50; i++) {
		struct sigaction sa = { .sa_sigaction = jump_handler,
					.sa_flags = SA_SIGINFO };

		memcpy(&sa.sa_mask, &(unsigned){ (unsigned)i << 16 },
		       sizeof(unsigned));
		CHECK(sigaction(SIGSEGV, &sa, NULL) == 0);
		umem_check();
		own_faults_reach(1);
	}
	return 0;
}

static struct sigaction remembered;
static volatile sig_atomic_t passed_on;

/* Like libraries that call what was there before them. */
static void forwarding_handler(int sig, siginfo_t *si, void *uc)
{
	passed_on++;
	if (passed_on > 3)
		_exit(3); /* a loop */
	if (remembered.sa_flags & SA_SIGINFO)
		remembered.sa_sigaction(sig, si, uc);
	else if (remembered.sa_handler != SIG_DFL)
		remembered.sa_handler(sig);
}

static void set_forwarding_handler(void)
{
	struct sigaction sa = { .sa_sigaction = forwarding_handler,
				.sa_flags = SA_SIGINFO };

	CHECK(sigaction(SIGSEGV, &sa, &remembered) == 0);
}

static int child_forwarding(void)
{
	make_bad_page();
	set_jump_handler();
	CHECK(umem_init(UMEM_FIXUP) == 0);
	set_forwarding_handler();
	umem_check();
	own_faults_reach(1);
	CHECK(passed_on == 1);
	umem_check();
	own_faults_reach(1);
	CHECK(passed_on == 2);
	return 0;
}

static int child_forwarding_to_default(void)
{
	make_bad_page();
	CHECK(umem_init(UMEM_FIXUP) == 0);
	set_forwarding_handler();
	umem_check();
	own_fault();
	return 0;
}

/* Like crash reporters: says something, puts the old action back, returns. */
static void restoring_handler(int sig, siginfo_t *si, void *uc)
{
	(void)si;
	(void)uc;
	if (++passed_on > 1)
		_exit(3); /* called again: a loop */
	sigaction(sig, &remembered, NULL);
}

static int child_restoring(void)
{
	struct sigaction sa = { .sa_sigaction = restoring_handler,
				.sa_flags = SA_SIGINFO };

	make_bad_page();
	CHECK(umem_init(UMEM_FIXUP) == 0);
	CHECK(sigaction(SIGSEGV, &sa, &remembered) == 0);
	umem_check();
	CHECK(umem_survives());
	own_fault();
	return 0;
}

static int child_reset_hand(void)
{
	struct sigaction sa = { .sa_sigaction = jump_handler,
				.sa_flags = SA_SIGINFO | SA_RESETHAND };

	make_bad_page();
	CHECK(sigaction(SIGSEGV, &sa, NULL) == 0);
	CHECK(umem_init(UMEM_FIXUP) == 0);
	own_faults_reach(1);
	own_fault();
	return 0;
}

static int child_default(void)
{
	make_bad_page();
	CHECK(umem_init(UMEM_FIXUP) == 0);
	CHECK(umem_survives());
	own_fault();
	return 0;
}

static int child_default_bus(void)
{
	int fd = memfd_create("umem_test", MFD_CLOEXEC);

	bad_page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(bad_page != MAP_FAILED);
	CHECK(umem_init(UMEM_FIXUP) == 0);
	CHECK(umem_survives());
	own_fault();
	return 0;
}

static int child_ignored_fault(void)
{
	make_bad_page();
	signal(SIGSEGV, SIG_IGN);
	CHECK(umem_init(UMEM_FIXUP) == 0);
	CHECK(umem_survives());
	own_fault();
	return 0;
}

static int child_ignored_sent(void)
{
	make_bad_page();
	signal(SIGSEGV, SIG_IGN);
	CHECK(umem_init(UMEM_FIXUP) == 0);
	CHECK(raise(SIGSEGV) == 0);
	CHECK(umem_survives());
	return 0;
}

static int child_sent(void)
{
	CHECK(umem_init(UMEM_FIXUP) == 0);
	kill(getpid(), SIGSEGV);
	return 0;
}

/* SA_ONSTACK of the program's handler holds: it runs on its own stack. */
static volatile uintptr_t handler_sp;

static void stack_handler(int sig, siginfo_t *si, void *uc)
{
	char here;

	(void)sig;
	(void)si;
	(void)uc;
	handler_sp = (uintptr_t)&here;
	siglongjmp(jump, 1);
}

static int child_on_stack(void)
{
	static uint8_t alt[65536];
	stack_t st = { .ss_sp = alt, .ss_size = sizeof(alt) };
	struct sigaction sa = { .sa_sigaction = stack_handler,
				.sa_flags = SA_SIGINFO | SA_ONSTACK };

	make_bad_page();
	CHECK(sigaltstack(&st, NULL) == 0);
	CHECK(umem_init(UMEM_FIXUP) == 0);
	for (int on = 1; on >= 0; on--) {
		sa.sa_flags = SA_SIGINFO | (on ? SA_ONSTACK : 0);
		CHECK(sigaction(SIGSEGV, &sa, NULL) == 0);
		umem_check();
		CHECK(umem_survives());
		if (sigsetjmp(jump, 1) == 0)
			own_fault();
		CHECK((handler_sp >= (uintptr_t)alt &&
		       handler_sp < (uintptr_t)alt + sizeof(alt)) == on);
	}
	return 0;
}

/* The program saves and restores by signal(): ours comes back without
 * SA_SIGINFO. */
static int child_signal_restored(void)
{
	void (*old)(int);

	make_bad_page();
	set_jump_handler();
	CHECK(umem_init(UMEM_FIXUP) == 0);
	old = signal(SIGSEGV, plain_jump_handler);
	CHECK(signal(SIGSEGV, old) == plain_jump_handler);
	own_faults_reach(2);
	old = signal(SIGSEGV, plain_jump_handler);
	CHECK(signal(SIGSEGV, old) == plain_jump_handler);
	umem_check();
	own_faults_reach(2);
	return 0;
}

static void test_program_handlers(void **state)
{
	(void)state;
	assert_exits(child_handler_before);
	assert_exits(child_handler_after);
	assert_exits(child_signal_after);
	assert_exits(child_many_handlers);
	assert_exits(child_signal_restored);
	assert_exits(child_on_stack);
}

static void test_program_chains(void **state)
{
	(void)state;
	assert_exits(child_forwarding);
	assert_killed(child_forwarding_to_default, SIGSEGV);
	assert_killed(child_restoring, SIGSEGV);
	assert_killed(child_reset_hand, SIGSEGV);
}

static void test_program_default(void **state)
{
	(void)state;
	assert_killed(child_default, SIGSEGV);
	assert_killed(child_default_bus, SIGBUS);
	assert_killed(child_ignored_fault, SIGSEGV);
	assert_exits(child_ignored_sent);
	assert_killed(child_sent, SIGSEGV);
}

/* ---- the hook of an interposed sigaction() ---- */

static int child_hook(void)
{
	struct sigaction sa = { .sa_sigaction = jump_handler,
				.sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigaction old;

	make_bad_page();
	CHECK(umem_sigaction_hook(SIGSEGV, NULL, &old) == -ENOSYS);
	signal(SIGSEGV, plain_jump_handler);
	CHECK(umem_init(UMEM_FIXUP) == 0);
	CHECK(umem_sigaction_hook(SIGUSR1, NULL, &old) == -ENOSYS);
	sigaddset(&sa.sa_mask, SIGUSR1);
	CHECK(umem_sigaction_hook(SIGSEGV, &sa, &old) == 0);
	CHECK(old.sa_handler == plain_jump_handler);
	own_faults_reach(2);
	CHECK(umem_sigaction_hook(SIGSEGV, NULL, &old) == 0);
	CHECK(old.sa_sigaction == jump_handler);
	CHECK(old.sa_flags == (SA_SIGINFO | SA_RESTART));
	CHECK(sigismember(&old.sa_mask, SIGUSR1) == 1);
	CHECK(sigismember(&old.sa_mask, SIGUSR2) == 0);
	sa.sa_handler = SIG_DFL;
	CHECK(umem_sigaction_hook(SIGSEGV, &sa, NULL) == 0);
	CHECK(umem_survives());
	own_fault();
	return 0;
}

static void test_hook(void **state)
{
	(void)state;
	assert_killed(child_hook, SIGSEGV);
}

int main(void)
{
	/* Their children start without umem_init(). */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_program_handlers),
		cmocka_unit_test(test_program_chains),
		cmocka_unit_test(test_program_default),
		cmocka_unit_test(test_hook),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
