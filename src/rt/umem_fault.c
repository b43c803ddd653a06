/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * umem_fault.c - SIGSEGV and SIGBUS: faults of umem's own code become -EFAULT,
 * all others go on to the program's handler.
 *
 * The program may install a handler after us, remember ours as "the old one"
 * and later call it or put it back. If all our installations were the same
 * function, that would make loops: we call the program's handler, it calls
 * ours. So each handler that we find in front of us gets an entry function of
 * its own, whose successor never changes:
 *
 *     entry 0 -> what was there first      (kernel: entry 0)
 *     program installs P, P.old = entry 0  (kernel: P)
 *     we notice: entry 1 -> P              (kernel: entry 1)
 *     a fault: entry 1, P, P.old = entry 0, what was there first
 *
 * Actions are set with raw system calls: the program may have interposed
 * sigaction(), with our own hook even. A handler found twice gets the same
 * entry; when the entries are used up the oldest one is given a new successor.
 */
#include "rt/umem_fault.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ucontext.h>
#include <unistd.h>

#include "rt/rawsys.h"
#include "rt/umem_asm.h"

#define ENTRIES 16
#define SIGMASK_BYTES 8 /* the kernel's sigset_t */
#ifndef SA_RESTORER
#define SA_RESTORER 0x04000000
#endif
#define SA_EXPOSE_TAGBITS_BIT 0x00000800

/* The handler in an action; the kernel does not care how it is declared. */
typedef void (*handler_fn)(int sig, siginfo_t *si, void *uc);
#define H_DFL ((handler_fn)(uintptr_t)SIG_DFL)
#define H_IGN ((handler_fn)(uintptr_t)SIG_IGN)

/* The kernel's struct sigaction, same on x86-64 and arm64. */
struct kaction {
	handler_fn handler;
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

/* One of our handlers and what comes after it. Fields are atomic because a
 * handler may read them while another thread recycles the entry. */
struct entry {
	_Atomic(handler_fn) handler;
	_Atomic unsigned long flags;
	_Atomic uint64_t mask;
	atomic_bool spent; /* SA_RESETHAND, and it ran */
	atomic_bool used;
};

struct chain { /* of one signal */
	struct entry entry[ENTRIES];
	unsigned next_recycled;
};

static struct chain chains[2];	  /* SIGSEGV, SIGBUS */
static atomic_int lock_pid;	  /* the holder's process; 0: free */
static atomic_bool installed;	  /* at least once */
static _Atomic uint64_t faults_n; /* accesses ended by a fixup */

static struct chain *chain_of(int sig)
{
	return &chains[sig == SIGBUS];
}

static uint64_t sigbit(int sig)
{
	return 1ull << (sig - 1);
}

static long set_mask(int how, const uint64_t *set, uint64_t *ret_old)
{
	return RAWSYS4(SYS_rt_sigprocmask, how, set, ret_old, SIGMASK_BYTES);
}

static long set_action(int sig, const struct kaction *act,
		       struct kaction *ret_old)
{
	return RAWSYS4(SYS_rt_sigaction, sig, act, ret_old, SIGMASK_BYTES);
}

/* Below. */
static bool repair_flags(int sig);

/* ---- in the signal handler ---- */

static uintptr_t *context_pc(void *context)
{
	ucontext_t *uc = context;

#if defined(__x86_64__)
	return (uintptr_t *)&uc->uc_mcontext.gregs[REG_RIP];
#else
	return (uintptr_t *)&uc->uc_mcontext.pc;
#endif
}

static bool fixup(const siginfo_t *si, void *context)
{
	uintptr_t *pc = context_pc(context);

	/* Codes up to 0 were sent by a process, not raised by an access. */
	if (si->si_code <= 0 || *pc < (uintptr_t)umem_text_begin ||
	    *pc >= (uintptr_t)umem_text_end)
		return false;
	*pc = (uintptr_t)umem_landing;
	atomic_fetch_add_explicit(&faults_n, 1, memory_order_relaxed);
	return true;
}

/* The default action, by way of the kernel: a fault repeats after the return,
 * with the true registers in the core file; a sent signal is sent again. */
static void die_by(int sig, siginfo_t *si)
{
	struct kaction dfl = { .handler = H_DFL };

	(void)set_action(sig, &dfl, NULL);
	if (si->si_code <= 0)
		(void)RAWSYS4(SYS_rt_tgsigqueueinfo, RAWSYS0(SYS_getpid),
			      RAWSYS0(SYS_gettid), sig, si);
}

static void pass_on(struct entry *e, int sig, siginfo_t *si, void *context)
{
	handler_fn h = atomic_load_explicit(&e->handler, memory_order_acquire);
	unsigned long flags = atomic_load(&e->flags);
	uint64_t mask = atomic_load(&e->mask);

	if (h == H_IGN && si->si_code <= 0)
		return;
	/* The kernel does not let a fault be ignored either. */
	if (h == H_DFL || h == H_IGN || atomic_load(&e->spent)) {
		die_by(sig, si);
		return;
	}
	if (flags & SA_RESETHAND)
		atomic_store(&e->spent, true);
	if (!(flags & SA_NODEFER))
		mask |= sigbit(sig);
	/* The return from the signal restores the mask. */
	(void)set_mask(SIG_BLOCK, &mask, NULL);
	/* Handlers without SA_SIGINFO leave the other arguments alone. */
	h(sig, si, context);
}

static void on_signal(unsigned n, int sig, siginfo_t *si, void *context)
{
	if (repair_flags(sig))
		return;
	if (!fixup(si, context))
		pass_on(&chain_of(sig)->entry[n], sig, si, context);
}

/* The entry functions: entry_fn_0 ... entry_fn_15. */
#define ENTRY_LIST(X)                                                          \
	X(0)                                                                   \
	X(1)                                                                   \
	X(2)                                                                   \
	X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define ENTRY_FN(n)                                                            \
	static void entry_fn_##n(int sig, siginfo_t *si, void *context)        \
	{                                                                      \
		on_signal(n, sig, si, context);                                \
	}
ENTRY_LIST(ENTRY_FN)
#define ENTRY_NAME(n) entry_fn_##n,
static const handler_fn entry_fns[ENTRIES] = { ENTRY_LIST(ENTRY_NAME) };

/* ---- installing ---- */

/* Which entry function h is; -1: not ours. */
static int entry_index(handler_fn h)
{
	for (int i = 0; i < ENTRIES; i++)
		if (entry_fns[i] == h)
			return i;
	return -1;
}

/* One writer a process, all signals blocked meanwhile. A holder that a fork
 * left behind in the parent is recognised by its pid. */
static uint64_t lock(void)
{
	int pid = (int)RAWSYS0(SYS_getpid);
	uint64_t all = ~0ull, saved_mask = 0;

	(void)set_mask(SIG_SETMASK, &all, &saved_mask);
	for (;;) {
		int seen = atomic_load(&lock_pid);

		if (seen != pid &&
		    atomic_compare_exchange_strong(&lock_pid, &seen, pid))
			return saved_mask;
		(void)RAWSYS0(SYS_sched_yield);
	}
}

static void unlock(uint64_t saved_mask)
{
	atomic_store(&lock_pid, 0);
	(void)set_mask(SIG_SETMASK, &saved_mask, NULL);
}

static bool entry_is(const struct entry *e, const struct kaction *a)
{
	return atomic_load(&e->used) && !atomic_load(&e->spent) &&
	       atomic_load(&e->handler) == a->handler &&
	       atomic_load(&e->flags) == a->flags &&
	       atomic_load(&e->mask) == a->mask;
}

static unsigned entry_pick(struct chain *c, const struct kaction *a)
{
	for (unsigned i = 0; i < ENTRIES; i++)
		if (entry_is(&c->entry[i], a))
			return i;
	for (unsigned i = 0; i < ENTRIES; i++)
		if (!atomic_load(&c->entry[i].used))
			return i;
	/* Entry 0, what was there first, stays. */
	c->next_recycled = c->next_recycled % (ENTRIES - 1) + 1;
	return c->next_recycled;
}

static void entry_set(struct entry *e, const struct kaction *a)
{
	if (entry_is(e, a))
		return;
	atomic_store(&e->flags, a->flags);
	atomic_store(&e->mask, a->mask);
	atomic_store(&e->spent, false);
	atomic_store_explicit(&e->handler, a->handler, memory_order_release);
	atomic_store(&e->used, true);
}

/* Our action in front of `next`: what only the kernel can do for the program's
 * handler (stack, restart) is copied from its flags. */
static struct kaction front_of(unsigned n, const struct kaction *next)
{
	bool has_handler = next->handler != H_DFL && next->handler != H_IGN;
	unsigned long inherit = SA_RESTART | SA_EXPOSE_TAGBITS_BIT;
	struct kaction a = {
		.handler = entry_fns[n],
		.flags = SA_SIGINFO | SA_NODEFER | SA_RESTORER,
		.restorer = umem_asm_sigreturn,
	};

	if (has_handler)
		a.flags |= next->flags & (inherit | SA_ONSTACK);
	else
		a.flags |= SA_ONSTACK;
	return a;
}

static struct kaction program_view(int sig, const struct kaction *kernel);

/* `old = signal(SIGSEGV, mine); ... signal(SIGSEGV, old)` puts our handler back
 * without SA_SIGINFO: it gets no siginfo, on arm64 no context either. Then sets
 * the flags right and says true: a fault repeats and arrives whole. (A signal
 * that was sent in this state is lost.) */
static bool repair_flags(int sig)
{
	struct kaction a, view;
	int n;

	if (set_action(sig, NULL, &a) != 0)
		return false;
	n = entry_index(a.handler);
	if (n < 0 || (a.flags & SA_SIGINFO))
		return false;
	view = program_view(sig, &a);
	a = front_of((unsigned)n, &view);
	(void)set_action(sig, &a, NULL);
	return true;
}

/* [lock held] `next` comes after us from now on. *ret_old: the action that
 * was in the kernel until now. */
static long put_in_front(int sig, const struct kaction *next,
			 struct kaction *ret_old)
{
	struct chain *c = chain_of(sig);
	unsigned n = entry_pick(c, next);
	struct kaction a = front_of(n, next);

	entry_set(&c->entry[n], next);
	return set_action(sig, &a, ret_old);
}

static int install(int sig)
{
	struct kaction next, old;
	long r = set_action(sig, NULL, &next);

	if (r == 0 && repair_flags(sig))
		return 0;
	/* Again when the program set another one in between. */
	while (r == 0 && entry_index(next.handler) < 0) {
		r = put_in_front(sig, &next, &old);
		if (old.handler == next.handler)
			break;
		next = old;
	}
	return (int)r;
}

/* Ours is in the kernel with all its flags. */
static bool in_front(int sig)
{
	struct kaction a;

	return set_action(sig, NULL, &a) == 0 && entry_index(a.handler) >= 0 &&
	       (a.flags & SA_SIGINFO);
}

int umem_fault_install(void)
{
	uint64_t mask;
	int r;

	if (in_front(SIGSEGV) && in_front(SIGBUS))
		return 0;
	mask = lock();
	r = install(SIGSEGV);
	if (r == 0)
		r = install(SIGBUS);
	if (r == 0)
		atomic_store(&installed, true);
	unlock(mask);
	return r;
}

bool umem_fault_unblocked(void)
{
	uint64_t mask = 0;

	return set_mask(SIG_BLOCK, NULL, &mask) == 0 &&
	       !(mask & (sigbit(SIGSEGV) | sigbit(SIGBUS)));
}

uint64_t umem_fault_count(void)
{
	return atomic_load_explicit(&faults_n, memory_order_relaxed);
}

/* ---- the program's view ---- */

static struct kaction action_from_libc(const struct sigaction *s)
{
	struct kaction a = {
		.handler = s->sa_sigaction, /* a union with sa_handler */
		.flags = (unsigned)s->sa_flags & ~(unsigned)SA_RESTORER,
	};

	memcpy(&a.mask, &s->sa_mask, SIGMASK_BYTES);
	return a;
}

static void action_to_libc(struct sigaction *s, const struct kaction *a)
{
	memset(s, 0, sizeof(*s));
	s->sa_sigaction = a->handler;
	s->sa_flags = (int)(a->flags & ~(unsigned long)SA_RESTORER);
	memcpy(&s->sa_mask, &a->mask, SIGMASK_BYTES);
}

/* What the program would find if we were not there. */
static struct kaction program_view(int sig, const struct kaction *kernel)
{
	int n = entry_index(kernel->handler);
	const struct entry *e;

	if (n < 0)
		return *kernel;
	e = &chain_of(sig)->entry[n];
	if (atomic_load(&e->spent))
		return (struct kaction){ .handler = H_DFL };
	return (struct kaction){ .handler = atomic_load(&e->handler),
				 .flags = atomic_load(&e->flags),
				 .mask = atomic_load(&e->mask) };
}

int umem_fault_hook(int signo, const struct sigaction *act,
		    struct sigaction *ret_old)
{
	struct kaction kernel, old, next;
	uint64_t mask;
	long r;

	if ((signo != SIGSEGV && signo != SIGBUS) || !atomic_load(&installed))
		return -ENOSYS;
	mask = lock();
	r = set_action(signo, NULL, &kernel);
	old = program_view(signo, &kernel);
	if (r == 0 && act) {
		next = action_from_libc(act);
		/* An entry of ours that the program got hold of goes back as
		 * it is. */
		if (entry_index(next.handler) >= 0)
			next = program_view(signo, &next);
		r = put_in_front(signo, &next, &kernel);
	}
	unlock(mask);
	if (r == 0 && ret_old)
		action_to_libc(ret_old, &old);
	return (int)r;
}
