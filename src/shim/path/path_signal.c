/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * path_signal.c - SIGSEGV and SIGBUS have a handler of ours in front (see
 * rt/umem.h); here a program's own comes to stand behind it in the moment it
 * is installed. Other signals go straight on.
 *
 * This library is in the global scope of the process, libibverbs.so.1 need not
 * be (dlopen): so it finds us, by softhca_sigaction_hook_set.
 */
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shim/abi.h"
#include "shim/path/path_next.h"
#include "shim/sighook.h"

static _Atomic(sigaction_hook_fn) hook;

ABI_EXPORT void softhca_sigaction_hook_set(sigaction_hook_fn fn)
{
	atomic_store_explicit(&hook, fn, memory_order_release);
}

/* True when the hook has answered: *ret_rc is 0 or -1 with errno. */
static bool hooked(int signo, const struct sigaction *act,
		   struct sigaction *old, int *ret_rc)
{
	sigaction_hook_fn fn;
	int rc;

	if (signo != SIGSEGV && signo != SIGBUS)
		return false;
	fn = atomic_load_explicit(&hook, memory_order_acquire);
	rc = fn ? fn(signo, act, old) : -ENOSYS;
	if (rc == -ENOSYS)
		return false;
	*ret_rc = 0;
	if (rc) {
		errno = -rc;
		*ret_rc = -1;
	}
	return true;
}

#define SHIM_SIGACTION(name)                                                   \
	ABI_EXPORT int name(int signo, const struct sigaction *act,            \
			    struct sigaction *old);                            \
	int name(int signo, const struct sigaction *act,                       \
		 struct sigaction *old)                                        \
	{                                                                      \
		int (*next)(int, const struct sigaction *,                     \
			    struct sigaction *);                               \
		int rc;                                                        \
		if (hooked(signo, act, old, &rc))                              \
			return rc;                                             \
		next = NEXT(int (*)(int, const struct sigaction *,             \
				    struct sigaction *),                       \
			    #name);                                            \
		if (!next) {                                                   \
			errno = ENOSYS;                                        \
			return -1;                                             \
		}                                                              \
		return next(signo, act, old);                                  \
	}
SHIM_SIGACTION(sigaction)
SHIM_SIGACTION(__sigaction)

/* ---- the older ways, told by sigaction ---- */

typedef void (*handler_fn)(int);

static bool set_hooked(int signo, handler_fn handler, int flags,
		       handler_fn *ret_old)
{
	struct sigaction act, old;
	int rc;

	memset(&act, 0, sizeof(act));
	act.sa_handler = handler;
	act.sa_flags = flags;
	sigemptyset(&act.sa_mask);
	if (!(flags & SA_NODEFER))
		sigaddset(&act.sa_mask, signo);
	if (!hooked(signo, &act, &old, &rc))
		return false;
	*ret_old = rc ? SIG_ERR : old.sa_handler;
	return true;
}

#define SHIM_SIGNAL(name, flags)                                               \
	ABI_EXPORT handler_fn name(int signo, handler_fn handler);             \
	handler_fn name(int signo, handler_fn handler)                         \
	{                                                                      \
		handler_fn (*next)(int, handler_fn);                           \
		handler_fn old;                                                \
		if (handler != SIG_ERR &&                                      \
		    set_hooked(signo, handler, flags, &old))                   \
			return old;                                            \
		next = NEXT(handler_fn(*)(int, handler_fn), #name);            \
		if (!next) {                                                   \
			errno = ENOSYS;                                        \
			return SIG_ERR;                                        \
		}                                                              \
		return next(signo, handler);                                   \
	}
SHIM_SIGNAL(signal, SA_RESTART)
SHIM_SIGNAL(bsd_signal, SA_RESTART)
SHIM_SIGNAL(ssignal, SA_RESTART)
SHIM_SIGNAL(sysv_signal, (int)SA_RESETHAND | SA_NODEFER)
SHIM_SIGNAL(__sysv_signal, (int)SA_RESETHAND | SA_NODEFER)

/* sigset() also unblocks, and SIG_HOLD only blocks. */
ABI_EXPORT handler_fn sigset(int signo, handler_fn handler);
handler_fn sigset(int signo, handler_fn handler)
{
	handler_fn (*next)(int, handler_fn);
	handler_fn old;
	sigset_t set, was;

	if (handler == SIG_HOLD || handler == SIG_ERR ||
	    !set_hooked(signo, handler, 0, &old)) {
		next = NEXT(handler_fn(*)(int, handler_fn), "sigset");
		return next ? next(signo, handler) : SIG_ERR;
	}
	sigemptyset(&set);
	sigaddset(&set, signo);
	if (old == SIG_ERR || sigprocmask(SIG_UNBLOCK, &set, &was))
		return SIG_ERR;
	return sigismember(&was, signo) ? SIG_HOLD : old;
}
