/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mkey.h - what a memory key names: a range, rights to it, and who may use
 * them. Regions and windows begin with one; every access passes its check
 * [IBA 10.6.3, 10.6.7].
 */
#ifndef SOFTHCA_CORE_OBJ_MKEY_H
#define SOFTHCA_CORE_OBJ_MKEY_H

#include "core/verbs.h"

struct mkey {
	struct pd *pd;
	uint32_t key;	     /* index << 8 | byte */
	uint32_t index;	     /* in hca->mkeys */
	uint32_t access;     /* enum access_flags; a window that is free: 0 */
	bool window;	     /* struct mw, else struct mr */
	bool null;	     /* bytes are zero, and stores are forgotten */
	const struct qp *qp; /* only this QP's peer; NULL: whoever has pd */
	uint64_t va, iova, len_bytes;
};

/* Gives it a key of its own with a random byte; the other fields are the
 * caller's. Counts in pd->refs. -ENOMEM: no index is free. */
MUST_USE int mkey_add(struct mkey *k, struct pd *pd);
void mkey_remove(struct mkey *k);

/* Any byte but the old one, as for a key that must stop working. */
void mkey_rotate(struct mkey *k);

/* What lies at an index, whatever its byte is now; NULL: nothing. */
struct mkey *mkey_at(const struct hca *hca, uint32_t index);

/* What `key` names, whatever may be done with it; NULL: nothing. */
struct mkey *mkey_find(const struct hca *hca, uint32_t key);

/* The bytes addr .. addr + len in iova space are inside. *ret_va: where they
 * are for the memory ops. */
bool mkey_holds(const struct mkey *k, uint64_t addr, uint64_t len,
		uint64_t *ret_va);

/* An SGE's range: the region that lkey names, if it belongs to pd, grants every
 * bit of `access` and holds the range; else NULL. O(1). [E] */
const struct mkey *mkey_local(const struct hca *hca, const struct pd *pd,
			      uint32_t lkey, uint64_t addr, uint64_t len,
			      uint32_t access, uint64_t *ret_va);

/* The same for a request that came in on qp, whose rkey may be a window's; pd:
 * whose memory it may name. */
bool mkey_remote(const struct qp *qp, const struct pd *pd, uint32_t rkey,
		 uint64_t addr, uint64_t len, uint32_t access,
		 uint64_t *ret_va);

#endif
