/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * abi.h - how the shims export a function. Everything else is hidden; which
 * node a name lands in is decided by the version script (gen_abi.py).
 */
#ifndef SOFTHCA_SHIM_ABI_H
#define SOFTHCA_SHIM_ABI_H

#define ABI_EXPORT __attribute__((visibility("default")))

/* For a function that is exported in several nodes: ABI_ALSO once for each old
 * node, ABI_DEFAULT for the newest. twin: a name that nothing else has.
 * Assembler directives, since clang 14 has no symver attribute; so these files
 * are not built with LTO. */
#define ABI_ALSO(fn, twin, node) ABI_TWIN(fn, twin, "@" node)
#define ABI_DEFAULT(fn, twin, node) ABI_TWIN(fn, twin, "@@" node)

#define ABI_TWIN(fn, twin, at_node)                                            \
	extern __typeof__(fn) twin                                             \
		__attribute__((alias(#fn), visibility("default")));            \
	__asm__(".symver " #twin "," #fn at_node);

#endif
