/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * umem.h - the one place that touches registered user memory.
 *
 * A program may unmap memory under a registration, so every access can fault.
 * Two ways to survive that:
 *
 *  UMEM_FIXUP   plain loads and stores in one range of assembly code
 *               (umem_x86_64.S, umem_aarch64.S) and a SIGSEGV/SIGBUS handler
 *               that acts only when the faulting PC lies in that range; then
 *               the access returns -EFAULT. Every other fault goes on to the
 *               handler that the program has, as if ours were not there.
 *  UMEM_KERNEL  the kernel copies (process_vm_readv/writev on ourselves, or a
 *               pipe where that is refused). Slower, needs no handler.
 *
 * A thread that has SIGSEGV or SIGBUS blocked dies from a fault in spite of
 * any handler; such threads use kernel copies whatever the mode. Threads of
 * our own should therefore leave these two signals unblocked.
 *
 * Everything here is safe inside the engine: no malloc, raw system calls,
 * errno untouched.
 */
#ifndef SOFTHCA_RT_UMEM_H
#define SOFTHCA_RT_UMEM_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"

enum umem_mode {
	UMEM_FIXUP,
	UMEM_KERNEL,
};

/* Installs the handlers (UMEM_FIXUP). The first call decides the mode, later
 * ones are umem_check(). Before it was called, accesses use kernel copies.
 * Any thread. 0, -errno of sigaction. */
MUST_USE int umem_init(enum umem_mode mode);

/* Notices that the program has replaced our handler since: its own becomes the
 * next in the chain, ours goes back to the front. Also looks again whether the
 * calling thread blocks SIGSEGV or SIGBUS. A few system calls: for control
 * verbs and ticks of the NIC thread. Any thread. */
void umem_check(void);

/* Only the second half of umem_check(): one system call. For a thread that
 * enters the engine after it may have changed its signal mask. */
void umem_thread_check(void);

/* Copies len bytes from / to user memory at va. 0, or -EFAULT when some byte
 * is not accessible; then any part may have been copied. Writes go in
 * ascending order; the last <= 64 bytes are stored after everything before
 * them is visible, and the aligned unit (1..8 bytes) that holds the last byte
 * after the rest of those. len 0 touches nothing. */
MUST_USE int umem_read(void *dst, uint64_t va, size_t len);
MUST_USE int umem_write(uint64_t va, const void *src, size_t len);

/* CPU atomics on 8 bytes at va, which is 8-aligned (else -EFAULT); sequentially
 * consistent. *ret_orig: the value before; untouched on failure. With kernel
 * copies the page is checked first and then accessed: best effort, a program
 * that unmaps it in between is killed. */
MUST_USE int umem_cmp_swap(uint64_t va, uint64_t compare, uint64_t swap,
			   uint64_t *ret_orig);
MUST_USE int umem_fetch_add(uint64_t va, uint64_t add, uint64_t *ret_orig);

/* True when all of va .. va + len is mapped readable (and writable, if asked).
 * Faults nothing in; the cost does not depend on len but on the number of
 * mappings there. File mappings past the end of their file count as mapped. */
bool umem_probe(uint64_t va, uint64_t len, bool write);

/* The program's view of SIGSEGV and SIGBUS, for an interposed sigaction()
 * (and signal(), sysv_signal()..., expressed by it): sets and returns the
 * action that the program has, our handler stays in front. -ENOSYS: nothing of
 * ours is installed for signo, call the real function. 0. act, ret_old may be
 * NULL. */
MUST_USE int umem_sigaction_hook(int signo, const struct sigaction *act,
				 struct sigaction *ret_old);

/* Does the system refuse process_vm_readv or _writev? Then kernel copies go
 * through a pipe. Tries both. */
bool umem_kernel_refused(void);

/* Counts since start, for statistics; not exact under concurrency. */
uint64_t umem_faults(void);	   /* accesses that a fault ended */
uint64_t umem_kernel_copies(void); /* accesses done by the kernel */

#endif
