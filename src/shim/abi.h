/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * abi.h - how the shims export a function. Everything else is hidden; which
 * node a name lands in is decided by the version script (gen_abi.py).
 */
#ifndef SOFTHCA_SHIM_ABI_H
#define SOFTHCA_SHIM_ABI_H

#define ABI_EXPORT __attribute__((visibility("default")))

/* Exports fn (a function of this file) in a second, non-default node. twin: a
 * name that nothing else has. An assembler directive, since clang 14 has no
 * symver attribute; so these files are not built with LTO. */
#define ABI_ALSO(fn, twin, node)                                               \
	extern __typeof__(fn) twin                                             \
		__attribute__((alias(#fn), visibility("default")));            \
	__asm__(".symver " #twin "," #fn "@" node);

#endif
