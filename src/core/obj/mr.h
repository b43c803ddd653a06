/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mr.h - memory regions and the check that every access passes.
 */
#ifndef SOFTHCA_CORE_OBJ_MR_H
#define SOFTHCA_CORE_OBJ_MR_H

#include "core/verbs.h"

struct mr {
	struct pd *pd;
	uint32_t key; /* index << 8 | random byte; lkey and rkey */
	uint32_t access;
	uint64_t va, iova, len_bytes;
	uint32_t index; /* in hca->mrs */
};

/* The MR that `key` names, if it belongs to pd, grants every bit of `access`
 * and holds all of addr .. addr + len (overflow-safe); else NULL. addr is in
 * iova space; *ret_va receives the address for the memory ops. O(1). [E] */
struct mr *mr_check(struct hca *hca, const struct pd *pd, uint32_t key,
		    uint64_t addr, uint64_t len, uint32_t access,
		    uint64_t *ret_va);

#endif
