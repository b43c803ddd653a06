/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * vb_mw.c - memory windows. Type 1 is bound by a verb that chooses the new
 * key, type 2 by a work request that states it.
 */
#include "shim/verbs/vb.h"

#include <stdlib.h>

struct ibv_mw *vb_alloc_mw(struct ibv_pd *ibv, enum ibv_mw_type type)
{
	struct vb_pd *pd = vb_pd(ibv);
	struct vb_mw *mw = vb_alloc(sizeof(*mw));
	int rc;

	if (!mw)
		return ret_null(-ENOMEM);
	rc = pd->rt ? rt_mw_alloc(pd->obj.ctx->dev, pd->rt, (enum mw_type)type,
				  &mw->rt)
		    : -EIO;
	if (rc) {
		free(mw);
		return ret_null(rc);
	}
	mw->ibv.context = ibv->context;
	mw->ibv.pd = ibv;
	mw->ibv.type = type;
	mw->ibv.rkey = mw_key(mw->rt);
	mw->ibv.handle = mw_index(mw->rt);
	vb_obj_add(&mw->obj, pd->obj.ctx, VB_MW);
	return &mw->ibv;
}

void vb_mw_orphan(struct vb_obj *o)
{
	struct vb_mw *mw = CONTAINER_OF(o, struct vb_mw, obj);
	int rc = rt_mw_dealloc(o->ctx->dev, mw->rt);

	ASSERT(!rc);
	mw->rt = NULL;
}

int vb_dealloc_mw(struct ibv_mw *ibv)
{
	struct vb_mw *mw = vb_mw(ibv);
	int rc = mw->rt ? rt_mw_dealloc(mw->obj.ctx->dev, mw->rt) : 0;

	if (rc)
		return ret_errno(rc);
	vb_obj_del(&mw->obj);
	free(mw);
	return ret_errno(0);
}

int vb_bind_wr(struct send_wr *ret, const struct ibv_mw *mw,
	       enum ibv_mw_type type, uint32_t rkey,
	       const struct ibv_mw_bind_info *info)
{
	if (!mw || mw->type != type || !vb_mw(mw)->rt)
		return -EINVAL;
	if (info->mr && info->mr->context != mw->context)
		return -EINVAL;
	ret->bind_mw_index = mw_index(vb_mw(mw)->rt);
	ret->rkey = rkey;
	ret->remote_addr = info->addr;
	ret->bind_len_bytes = info->length;
	ret->bind_mr_key = info->mr ? info->mr->lkey : 0;
	ret->bind_access = info->mw_access_flags;
	return 0;
}

int vb_bind_mw(struct ibv_qp *ibv, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct vb_qp *qp = vb_qp(ibv);
	struct send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = WR_BIND_MW,
		.flags = bind->send_flags,
	};
	int rc;

	/* Under the queue's lock, so that keys follow the order of posting. */
	rt_send_begin(qp->rt);
	rc = vb_bind_wr(&wr, mw, IBV_MW_TYPE_1, ibv_inc_rkey(mw->rkey),
			&bind->bind_info);
	if (!rc)
		rc = rt_send_post(qp->rt, &wr);
	if (!rc)
		mw->rkey = wr.rkey;
	rt_send_end(qp->rt);
	return ret_errno(rc);
}
