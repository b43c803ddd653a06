/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * dmem.h - device memory: an arena that a device has instead of memory on a
 * card, and the blocks that programs take of it. The arena is a memfd, so that
 * another process can map it. Private to rt.
 */
#ifndef SOFTHCA_RT_DMEM_H
#define SOFTHCA_RT_DMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"

#define DMEM_BYTES (1u << 20)  /* of an arena */
#define DMEM_ALIGN_LOG_MAX 12u /* the largest alignment: a page */
#define DMEM_COPY_ALIGN 4u     /* of offsets and lengths of copies */

struct dmem;

struct dmem_block {
	struct dmem *arena;
	struct dmem_block *next; /* by offset */
	size_t off, len_bytes;
};

/* -ENOMEM, or what memfd_create, ftruncate and mmap say. */
MUST_USE int dmem_new(struct dmem **ret);
/* NULL is fine. Blocks that are left are freed too. The descriptor's number is
 * let be where it may be another file's by now. */
void dmem_free(struct dmem *a, bool close_fd);

/* Zeroed, aligned to 2^align_log. -EINVAL: no bytes, or too much aligned;
 * -ENOMEM: no gap is large enough. First fit. Thread-safe. */
MUST_USE int dmem_take(struct dmem *a, size_t len_bytes, uint32_t align_log,
		       struct dmem_block **ret);
void dmem_give(struct dmem_block *b);

/* Where the block's bytes are. */
uint8_t *dmem_bytes(const struct dmem_block *b);
/* Whether off .. off + len lies in it and is aligned for a copy. */
bool dmem_may_copy(const struct dmem_block *b, uint64_t off, size_t len);

#endif
