/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * vb_srq.c - shared receive queues.
 */
#include "shim/verbs/vb.h"

#include <stdlib.h>

static void srq_attr_from_ibv(struct srq_attr *ret,
			      const struct ibv_srq_attr *a)
{
	ret->max_wr = a->max_wr;
	ret->max_sge = a->max_sge;
	ret->limit = a->srq_limit;
}

static void srq_attr_to_ibv(struct ibv_srq_attr *ret, const struct srq_attr *a)
{
	ret->max_wr = a->max_wr;
	ret->max_sge = a->max_sge;
	ret->srq_limit = a->limit;
}

static void srq_fini(struct vb_srq *srq)
{
	pthread_cond_destroy(&srq->ibv.cond);
	pthread_mutex_destroy(&srq->ibv.mutex);
	free(srq);
}

static int create_rt(struct vb_srq *srq, struct vb_pd *pd, struct rt_xrcd *xrcd,
		     struct ibv_cq *cq, const struct srq_attr *attr)
{
	struct vb_context *ctx = pd->obj.ctx;

	if (!pd->rt || (cq && !vb_cq(cq)->rt))
		return -EIO;
	return rt_srq_create(ctx->dev, pd->rt, xrcd, cq ? vb_cq(cq)->rt : NULL,
			     attr, ctx->async, srq, &srq->rt);
}

struct ibv_srq *vb_srq_make(struct ibv_pd *ibv_pd, struct rt_xrcd *xrcd,
			    struct ibv_cq *cq, struct ibv_srq_init_attr *init)
{
	struct vb_pd *pd = vb_pd(ibv_pd);
	struct vb_srq *srq = vb_alloc(sizeof(*srq));
	struct srq_attr attr;
	int rc;

	if (!srq)
		return ret_null(-ENOMEM);
	srq->ibv.context = ibv_pd->context;
	srq->ibv.srq_context = init->srq_context;
	srq->ibv.pd = ibv_pd;
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	srq_attr_from_ibv(&attr, &init->attr);
	attr.limit = 0; /* armed by ibv_modify_srq only */
	rc = create_rt(srq, pd, xrcd, cq, &attr);
	if (rc) {
		srq_fini(srq);
		return ret_null(rc);
	}
	if (!rt_srq_query(srq->rt, &attr)) {
		init->attr.max_wr = attr.max_wr;
		init->attr.max_sge = attr.max_sge;
	}
	srq->ibv.handle = rt_srq_num(srq->rt);
	vb_obj_add(&srq->obj, pd->obj.ctx, VB_SRQ);
	return &srq->ibv;
}

ABI_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
					  struct ibv_srq_init_attr *init)
{
	return vb_srq_make(pd, NULL, NULL, init);
}

int vb_get_srq_num(struct ibv_srq *srq, uint32_t *ret_num)
{
	*ret_num = rt_srq_num(vb_srq(srq)->rt);
	return ret_errno(0);
}

ABI_EXPORT int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr,
			      int mask)
{
	struct vb_srq *srq = vb_srq(ibv);
	struct srq_attr a;
	int rc;

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return ret_errno(-EINVAL);
	srq_attr_from_ibv(&a, attr);
	rc = srq->rt ? rt_srq_modify(srq->rt, &a, (uint32_t)mask) : -EIO;
	if (rc)
		return ret_errno(rc);
	if (mask & IBV_SRQ_MAX_WR)
		attr->max_wr = a.max_wr;
	return ret_errno(0);
}

ABI_EXPORT int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct vb_srq *srq = vb_srq(ibv);
	struct srq_attr a;
	int rc = srq->rt ? rt_srq_query(srq->rt, &a) : -EIO;

	if (!rc)
		srq_attr_to_ibv(attr, &a);
	return ret_errno(rc);
}

void vb_srq_orphan(struct vb_obj *o)
{
	struct vb_srq *srq = CONTAINER_OF(o, struct vb_srq, obj);
	uint32_t async;
	int rc = rt_srq_destroy(srq->rt, &async);

	ASSERT(!rc);
	srq->rt = NULL;
}

ABI_EXPORT int ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct vb_srq *srq = vb_srq(ibv);
	uint32_t async;
	int rc;

	if (srq->rt) {
		rc = rt_srq_destroy(srq->rt, &async);
		if (rc)
			return ret_errno(rc);
		vb_wait_acks(&ibv->mutex, &ibv->cond, &ibv->events_completed,
			     async);
	}
	vb_obj_del(&srq->obj);
	srq_fini(srq);
	return ret_errno(0);
}
