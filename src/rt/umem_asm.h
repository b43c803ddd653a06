/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * umem_asm.h - the code that a fault may interrupt (umem_x86_64.S,
 * umem_aarch64.S). All of it lies between umem_text_begin and umem_text_end,
 * is leaf code and leaves the stack pointer alone; so a signal handler makes
 * the function in progress return -EFAULT by setting the PC to umem_landing.
 */
#ifndef SOFTHCA_RT_UMEM_ASM_H
#define SOFTHCA_RT_UMEM_ASM_H

#include <stddef.h>
#include <stdint.h>

extern const char umem_text_begin[], umem_text_end[], umem_landing[];

/* All return 0, or -EFAULT by way of the handler. */

/* Ascending; the ranges do not overlap. */
int umem_asm_copy(void *dst, const void *src, size_t len);
/* One store of len 1, 2, 4 or 8 bytes at dst, aligned to len. */
int umem_asm_store(void *dst, const void *src, size_t len);
/* Sequentially consistent; va is 8-aligned. */
int umem_asm_cmp_swap(uint64_t va, uint64_t compare, uint64_t swap,
		      uint64_t *ret_orig);
int umem_asm_fetch_add(uint64_t va, uint64_t add, uint64_t *ret_orig);

/* x86-64: from this length on a copy is one `rep movsb`, which is faster than
 * the loop for large blocks where the CPU has ERMS (measured: from 1 KiB on).
 * SIZE_MAX, never, until umem_init() found ERMS. */
extern size_t umem_rep_min_bytes;

/* What a signal handler installed by a raw system call returns to. */
void umem_asm_sigreturn(void);

#endif
