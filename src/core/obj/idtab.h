/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * idtab.h - ids <-> pointers, for keys, QPNs and object numbers.
 *
 * Ids run from lo to hi in a cycle that starts at a random place, so a freed
 * id comes back as late as can be; an id's slot is its low bits, and a slot
 * knows the whole id, so a stale id of a reused slot finds nothing. Slots come
 * in chunks that are made when first needed. Look-up is O(1); adding scans for
 * a free slot.
 */
#ifndef SOFTHCA_CORE_OBJ_IDTAB_H
#define SOFTHCA_CORE_OBJ_IDTAB_H

#include <stdint.h>

#include "core/hca.h"

#define IDTAB_CHUNK 256

struct idtab_slot {
	void *p; /* NULL: free */
	uint32_t id;
};

struct idtab {
	struct hca *hca; /* whose memory it lives in */
	uint32_t lo, hi; /* ids, inclusive; lo > 0 */
	uint32_t next;	 /* id to try first */
	uint32_t max;	 /* entries allowed */
	uint32_t used;
	uint32_t mask; /* slots - 1 */
	struct idtab_slot *chunks[];
};

/* NULL: out of memory. max is cut to the number of ids. */
struct idtab *idtab_new(struct hca *hca, uint32_t lo, uint32_t hi,
			uint32_t max);
/* Must be empty. */
void idtab_free(struct idtab *t);

/* -ENOMEM: max entries are in use, or no memory. */
MUST_USE int idtab_add(struct idtab *t, void *p, uint32_t *ret_id);
void idtab_remove(struct idtab *t, uint32_t id);

static inline void *idtab_get(const struct idtab *t, uint32_t id)
{
	uint32_t slot = id & t->mask;
	const struct idtab_slot *c = t->chunks[slot / IDTAB_CHUNK];

	if (!c || c[slot % IDTAB_CHUNK].id != id)
		return NULL;
	return c[slot % IDTAB_CHUNK].p;
}

/* Walks all entries: start with *pos = 0, NULL ends. Entries may be removed
 * meanwhile. */
void *idtab_next(const struct idtab *t, uint32_t *pos);

#endif
