/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * simmem.h - a host's memory: an array of bytes at a made-up address, behind
 * the core's memory ops, and the allocator that the core is given, counted.
 *
 * An access outside the array, or into the range that was made inaccessible,
 * is -EFAULT, as user memory that was unmapped would be.
 */
#ifndef SOFTHCA_SIM_SIMMEM_H
#define SOFTHCA_SIM_SIMMEM_H

#include "core/hca.h"
#include "sim/world.h"

struct simmem {
	const struct sim_alloc *mem;
	uint64_t base; /* address of bytes[0] */
	uint64_t len_bytes;
	uint8_t *bytes;
	uint64_t hole, hole_bytes; /* inaccessible; hole_bytes 0: none */

	/* One-sided copies of the core; NULL: never. */
	enum direct_verdict (*direct)(struct simmem *m,
				      const struct direct_req *r);

	uint64_t live_allocs;	   /* core's allocations not freed */
	uint32_t fail_alloc_after; /* n > 0: the nth from now gives NULL */
};

/* -ENOMEM. */
MUST_USE int simmem_init(struct simmem *m, const struct sim_alloc *mem,
			 uint64_t base, uint64_t len_bytes);
void simmem_fini(struct simmem *m);

/* The bytes at va .. va + len, which must be inside. */
uint8_t *simmem_at(const struct simmem *m, uint64_t va, uint64_t len_bytes);

/* The pieces of a direct request between m and `peer` from peer_va on. False:
 * some byte is not accessible. */
MUST_USE bool simmem_direct(struct simmem *m, const struct direct_req *r,
			    struct simmem *peer, uint64_t peer_va);

/* For hca_new; the context is the struct simmem. */
extern const struct hca_ops simmem_ops;

#endif
