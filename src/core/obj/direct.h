/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * direct.h - WRITEs and READs that the driver executes as copies, without
 * packets (struct hca_ops.direct). The transports ask for it when every
 * earlier request of the QP has been executed; it takes no PSN and no SSN.
 */
#ifndef SOFTHCA_CORE_OBJ_DIRECT_H
#define SOFTHCA_CORE_OBJ_DIRECT_H

#include "core/obj/hca_priv.h"
#include "core/obj/qp.h"

enum direct_step {
	DIRECT_EXECUTED, /* the whole message */
	DIRECT_LATER,	 /* the budget of this call is spent: qp_sched() */
	DIRECT_PACKETS,	 /* not this way: packets for all of it */
};

/* Could this kind of request be executed without packets? */
static inline bool direct_fits(const struct qp *qp, const struct wqe *w)
{
	return qp->direct && (w->opcode == WR_WRITE || w->opcode == WR_READ);
}

/* Goes on with the WQE from byte *off on. *off is 0 again unless LATER. */
enum direct_step direct_run(struct qp *qp, struct wqe *w, uint32_t *off);

/* The peer's rights changed: tells the driver. */
static inline void direct_grant_changed(struct qp *qp)
{
	if (qp->hca->ops->grant)
		qp->hca->ops->grant(qp->hca->ops_ctx, qp);
}

#endif
