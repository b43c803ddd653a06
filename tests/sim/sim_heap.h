/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sim_heap.h - the C library's heap as a struct sim_alloc, for programs that
 * run worlds.
 */
#ifndef SOFTHCA_TESTS_SIM_HEAP_H
#define SOFTHCA_TESTS_SIM_HEAP_H

#include <stdlib.h>
#include <string.h>

#include "sim/world.h"

static void *sim_heap_alloc(void *ctx, size_t bytes, size_t align)
{
	void *p;

	(void)ctx;
	if (align <= 16)
		return calloc(1, bytes ? bytes : 1);
	p = aligned_alloc(align, (bytes + align) & ~(align - 1));
	return p ? memset(p, 0, bytes) : NULL;
}

static void sim_heap_free(void *ctx, void *p)
{
	(void)ctx;
	free(p);
}

static const struct sim_alloc sim_heap = { .alloc = sim_heap_alloc,
					   .free = sim_heap_free };

#endif
