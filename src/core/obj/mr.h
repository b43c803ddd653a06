/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mr.h - memory regions.
 */
#ifndef SOFTHCA_CORE_OBJ_MR_H
#define SOFTHCA_CORE_OBJ_MR_H

#include "core/obj/mkey.h"

struct mr {
	struct mkey k;	  /* first: hca->mkeys has both kinds */
	uint32_t windows; /* bound to it */
};

static inline struct mr *mr_of(struct mkey *k)
{
	return k && !k->window ? (struct mr *)(void *)k : NULL;
}

#endif
