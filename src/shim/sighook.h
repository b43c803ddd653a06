/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sighook.h - between libibverbs.so.1 and the preloaded library: who answers a
 * program's sigaction(SIGSEGV or SIGBUS).
 */
#ifndef SOFTHCA_SHIM_SIGHOOK_H
#define SOFTHCA_SHIM_SIGHOOK_H

#include <signal.h>

/* umem_sigaction_hook() of rt/umem.h. */
typedef int (*sigaction_hook_fn)(int signo, const struct sigaction *act,
				 struct sigaction *ret_old);

/* Defined by the preloaded library; a weak reference elsewhere, for processes
 * without it. Any thread. */
void softhca_sigaction_hook_set(sigaction_hook_fn fn);

#endif
