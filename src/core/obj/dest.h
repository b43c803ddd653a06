/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * dest.h - one in-flight account for each process that RC QPs talk to: the
 * destination address and the upper bits of its QPNs, which name the process.
 */
#ifndef SOFTHCA_CORE_OBJ_DEST_H
#define SOFTHCA_CORE_OBJ_DEST_H

#include "core/obj/budget.h"
#include "core/verbs.h"

struct dest {
	struct dlist node; /* hca->dests */
	struct gid dgid;
	uint32_t slot; /* destination QPN >> qpn_bits */
	uint16_t out;  /* way out; unbounded unless 0, the network */
	uint32_t refs; /* QPs */
	struct budget budget;
};

/* Finds or makes the account and counts a user. NULL: no memory. [E] */
struct dest *dest_get(struct hca *hca, const struct path *path,
		      uint32_t dest_qpn);
/* Harmless on NULL. [E] */
void dest_put(struct hca *hca, struct dest *d);

#endif
