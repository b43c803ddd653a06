/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * shm_mem.h - memory that one process writes and others read: a memfd that is
 * sealed against shrinking (a reader would die from SIGBUS), growing, and
 * writable mappings but the first.
 */
#ifndef SOFTHCA_LINK_SHM_MEM_H
#define SOFTHCA_LINK_SHM_MEM_H

#include <stddef.h>

#include "base/assert.h"

/* Makes `bytes` of it, zeroed and sparse, and maps the first map_bytes
 * writable; a fork's child does not inherit the mapping. -errno: -EFBIG when
 * RLIMIT_FSIZE forbids it. */
MUST_USE int shm_mem_new(const char *name, size_t bytes, size_t map_bytes,
			 int *ret_fd, void **ret_map);
/* Maps the first map_bytes of somebody else's read-only, after checking its
 * seals and that it has at least `bytes`. -EBADMSG: it is none. */
MUST_USE int shm_mem_map_peer(int fd, size_t bytes, size_t map_bytes,
			      const void **ret_map);
void shm_mem_unmap(const void *map, size_t map_bytes);

#endif
