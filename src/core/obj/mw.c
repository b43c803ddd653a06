/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/mw.h"

#include <errno.h>

#include "core/obj/hca_priv.h"
#include "core/obj/mr.h"
#include "core/obj/pd.h"
#include "core/obj/qp.h"

int mw_create(struct pd *pd, enum mw_type type, struct mw **ret_mw)
{
	struct hca *hca = pd->hca;
	struct mw *mw;
	int rc;

	if (type != MW_TYPE_1 && type != MW_TYPE_2)
		return -EINVAL;
	if (hca->mws >= hca->cfg.limits.max_mw)
		return -ENOMEM;
	mw = hca_alloc(hca, sizeof(*mw));
	if (!mw)
		return -ENOMEM;
	mw->type = type;
	mw->k.window = true;
	dlist_init(&mw->qp_node);
	rc = mkey_add(&mw->k, pd);
	if (rc) {
		hca_release(hca, mw);
		return rc;
	}
	hca->mws++;
	*ret_mw = mw;
	return 0;
}

static void unbind(struct mw *mw)
{
	if (mw->mr)
		mw->mr->windows--;
	mw->mr = NULL;
	if (mw->k.qp)
		dlist_remove(&mw->qp_node);
	mw->k.qp = NULL;
	mw->k.access = 0;
	mw->k.len_bytes = 0;
}

int mw_destroy(struct mw *mw)
{
	struct hca *hca = mw->k.pd->hca;

	unbind(mw);
	mkey_remove(&mw->k);
	hca->mws--;
	hca_release(hca, mw);
	return 0;
}

uint32_t mw_key(const struct mw *mw)
{
	return mw->k.key;
}

uint32_t mw_index(const struct mw *mw)
{
	return mw->k.index;
}

/* The region allows this window to be bound to it [IBA C10-73 to C10-75]. Its
 * remote rights do not count: those of the window are new ones. */
static bool region_allows(const struct mr *mr, const struct mw *mw,
			  const struct wqe *w)
{
	uint32_t writes = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC;
	uint64_t va;

	if (!mr || (mr->k.pd != mw->k.pd))
		return false;
	if (!(mr->k.access & ACCESS_MW_BIND) ||
	    mr->k.access & ACCESS_ZERO_BASED)
		return false;
	if (w->bind_access & writes && !(mr->k.access & ACCESS_LOCAL_WRITE))
		return false;
	return mkey_holds(&mr->k, w->remote_addr, w->bind_len_bytes, &va);
}

/* Type 2 is bound from free alone, and not to nothing; type 1 can be neither
 * zero-based nor out of reach of its domain [IBA 10.6.7.2]. */
static bool window_allows(const struct qp *qp, const struct mw *mw,
			  const struct wqe *w)
{
	if (mw->k.pd != qp->pd)
		return false;
	if (mw->k.index != w->rkey >> 8)
		return false;
	if (mw->type == MW_TYPE_1)
		return !(w->bind_access & ACCESS_ZERO_BASED);
	return !mw->mr && w->bind_len_bytes != 0;
}

static void bind(struct qp *qp, struct mw *mw, struct mr *mr,
		 const struct wqe *w)
{
	unbind(mw);
	mw->k.key = w->rkey;
	if (w->bind_len_bytes == 0)
		return;
	mw->mr = mr;
	mr->windows++;
	mw->k.access = w->bind_access;
	mw->k.len_bytes = w->bind_len_bytes;
	mw->k.va = mr->k.va + (w->remote_addr - mr->k.iova);
	mw->k.iova = w->bind_access & ACCESS_ZERO_BASED ? 0 : w->remote_addr;
	if (mw->type == MW_TYPE_1)
		return;
	mw->k.qp = qp;
	dlist_push_back(&qp->windows, &mw->qp_node);
}

static bool try_bind(struct qp *qp, const struct wqe *w)
{
	struct mw *mw = mw_of(mkey_at(qp->hca, w->bind_mw_index));
	struct mr *mr = mr_of(mkey_find(qp->hca, w->bind_mr_key));

	if (!mw || !window_allows(qp, mw, w))
		return false;
	if (w->bind_len_bytes && !region_allows(mr, mw, w))
		return false;
	bind(qp, mw, mr, w);
	HCA_COUNT(qp->hca, mw_binds);
	return true;
}

bool mw_invalidate(struct qp *qp, uint32_t rkey)
{
	struct mw *mw = mw_of(mkey_find(qp->hca, rkey));

	if (!mw || mw->type != MW_TYPE_2 || mw->k.pd != qp->pd ||
	    (mw->k.qp && mw->k.qp != qp))
		return false;
	unbind(mw);
	HCA_COUNT(qp->hca, mw_invalidates);
	return true;
}

enum wc_status mw_execute(struct qp *qp, const struct wqe *w)
{
	if (w->opcode == WR_BIND_MW)
		return try_bind(qp, w) ? WC_SUCCESS : WC_MW_BIND_ERR;
	ASSERT(w->opcode == WR_LOCAL_INV);
	return mw_invalidate(qp, w->imm_be_or_rkey) ? WC_SUCCESS
						    : WC_LOC_QP_OP_ERR;
}

void mw_qp_gone(struct qp *qp)
{
	struct dlist *n;

	while ((n = dlist_first(&qp->windows)))
		unbind(CONTAINER_OF(n, struct mw, qp_node));
}
