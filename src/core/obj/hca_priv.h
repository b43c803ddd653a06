/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * hca_priv.h - the hca as the rest of the core sees it: tables, wheel,
 * scheduler, counters.
 */
#ifndef SOFTHCA_CORE_OBJ_HCA_PRIV_H
#define SOFTHCA_CORE_OBJ_HCA_PRIV_H

#include <stdatomic.h>

#include "base/prng.h"
#include "base/twheel.h"
#include "core/cm/cm_priv.h"
#include "core/mgmt/gsi.h"
#include "core/obj/budget.h"
#include "core/obj/event.h"
#include "core/verbs.h"

struct idtab; /* obj/idtab.h: ids <-> pointers */

struct hca {
	struct hca_config cfg;
	const struct hca_ops *ops;
	void *ops_ctx;
	struct prng rng;
	struct twheel wheel;
	int64_t now_ns; /* of the call that is running */

	struct idtab *qps, *mkeys, *cqs, *srqs, *pds, *ahs, *xrcds;
	uint32_t mrs, mws;	    /* in mkeys */
	_Atomic(struct qp *) bells; /* MPSC stack of rung QPs */
	struct dlist
		ready[16];   /* hca_tx.c: by SL, QPs with something to send */
	uint32_t ready_mask; /* bit sl: list not empty */
	struct dlist parked; /* QPs whose way out is blocked */
	bool out_blocked[HCA_OUTS];
	uint32_t turn_sl;      /* class whose turn it is */
	uint32_t direct_left;  /* bytes that this hca_tx() may still copy */
	struct dlist cnps;     /* cc.c: struct cc_flow.cnp_due, oldest first */
	struct dlist mcasts;   /* mcast.c: struct mcast.node */
	struct dlist events;   /* struct event_src.node, oldest first */
	struct dlist overruns; /* cq.c: struct cq.overrun_node to be settled */
	struct budget read_budget; /* READ responses on their way to us */
	struct dlist dests;	   /* per-destination budgets, obj/dest.h */

	struct gid_entry gids[HCA_GIDS_MAX];
	uint16_t pkeys[HCA_PKEYS_MAX];
	enum port_state port_state;
	uint32_t netdev_mtu;
	_Atomic uint32_t ud_max_bytes; /* of a UD message; posters read it */
	struct event_src port_events;
	struct gsi gsi; /* core/mgmt */
	struct cm cm;	/* core/cm */

	struct hca_counters counters;
};

/* Memory from the driver. */
static inline void *hca_alloc(struct hca *hca, size_t size)
{
	return hca->ops->alloc(hca->ops_ctx, size, 64);
}

static inline void hca_release(struct hca *hca, void *p)
{
	if (p)
		hca->ops->free(hca->ops_ctx, p);
}

#define HCA_COUNT(hca, name) ((hca)->counters.name++)
#define HCA_ADD(hca, name, n) ((hca)->counters.name += (uint64_t)(n))

#endif
