/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * umem_fault.h - the SIGSEGV/SIGBUS handlers behind umem.c.
 */
#ifndef SOFTHCA_RT_UMEM_FAULT_H
#define SOFTHCA_RT_UMEM_FAULT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"

/* Puts our handlers in front of what is there. Idempotent; again after the
 * program has put others in front of ours. 0, -errno. Raw system calls. */
MUST_USE int umem_fault_install(void);

/* umem_sigaction_hook() of umem.h. */
MUST_USE int umem_fault_hook(int signo, const struct sigaction *act,
			     struct sigaction *ret_old);

/* True when the calling thread can take our signals. One system call. */
bool umem_fault_unblocked(void);

uint64_t umem_fault_count(void);

#endif
