/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mw.h - memory windows: rights to a part of a region, given and taken back by
 * work requests [IBA 10.6.7].
 *
 *            bind                       type 1: by ibv_bind_mw, any number of
 *     FREE ------------> BOUND          times; of no bytes: FREE
 *       ^                  |            type 2: by IBV_WR_BIND_MW, from FREE
 *       '------------------'            alone; then it is its QP's
 *        invalidate (type 2), empty
 *        bind (type 1), destruction of
 *        the QP (type 2)
 *
 * A bound window keeps its region from being changed or deregistered. Bound to
 * nothing it grants no access.
 */
#ifndef SOFTHCA_CORE_OBJ_MW_H
#define SOFTHCA_CORE_OBJ_MW_H

#include "base/dlist.h"
#include "core/obj/mkey.h"

struct mr;
struct wqe;

struct mw {
	struct mkey k; /* first: hca->mkeys has both kinds */
	enum mw_type type;
	struct mr *mr;	      /* bound to; NULL: free */
	struct dlist qp_node; /* bound, type 2: in struct qp.windows */
};

static inline struct mw *mw_of(struct mkey *k)
{
	return k && k->window ? (struct mw *)(void *)k : NULL;
}

/* Carries out a local WQE, WR_BIND_MW or WR_LOCAL_INV. WC_SUCCESS,
 * WC_MW_BIND_ERR, WC_LOC_QP_OP_ERR; failing changes nothing. [E] */
enum wc_status mw_execute(struct qp *qp, const struct wqe *w);

/* Takes back the rights of rkey for a SEND with invalidate that came in on qp,
 * or for WR_LOCAL_INV. False: no type 2 window, or not this QP's. A free one is
 * as it should be. [E] */
bool mw_invalidate(struct qp *qp, uint32_t rkey);

/* The QP goes away: its windows are free. */
void mw_qp_gone(struct qp *qp);

#endif
