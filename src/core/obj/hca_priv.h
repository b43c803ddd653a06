/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * hca_priv.h - the hca as the rest of the core sees it: tables, wheel,
 * scheduler, counters.
 */
#ifndef SOFTHCA_CORE_OBJ_HCA_PRIV_H
#define SOFTHCA_CORE_OBJ_HCA_PRIV_H

#include "base/prng.h"
#include "base/twheel.h"
#include "core/obj/budget.h"
#include "core/verbs.h"

struct idtab; /* obj/idtab.h: index <-> pointer with a free list */

struct hca {
	struct hca_config cfg;
	const struct hca_ops *ops;
	void *ops_ctx;
	struct prng rng;
	struct twheel wheel;
	int64_t now_ns; /* of the call that is running */

	struct idtab *qps, *mrs, *cqs, *srqs, *pds, *ahs;
	_Atomic(struct qp *) bells; /* MPSC stack of rung QPs */
	struct dlist
		ready[16];   /* hca_tx.c: by SL, QPs with something to send */
	uint32_t ready_mask; /* bit sl: list not empty */
	struct dlist events; /* objects with pending events, oldest first */
	struct budget read_budget; /* READ responses on their way to us */
	struct dlist dests;	   /* per-destination budgets, obj/dest.h */

	struct gid_entry gids[HCA_GIDS_MAX];
	uint16_t pkeys[HCA_PKEYS_MAX];
	enum port_state port_state;
	uint32_t netdev_mtu;
	uint32_t port_events; /* bits of enum async_type */

	struct hca_counters counters;
};

#define HCA_COUNT(hca, name) ((hca)->counters.name++)
#define HCA_ADD(hca, name, n) ((hca)->counters.name += (uint64_t)(n))

#endif
