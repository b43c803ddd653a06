/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * vb_qp.c - queue pairs: create, modify, query, destroy.
 */
#include "shim/verbs/vb.h"

#include <stdlib.h>
#include <string.h>

#define KNOWN_ATTR_MASK                                                        \
	((IBV_QP_DEST_QPN << 1) - 1) /* rate limits: a verb of their own */

static void qp_fini(struct vb_qp *qp)
{
	vb_batch_fini(&qp->batch);
	pthread_cond_destroy(&qp->ibv.cond);
	pthread_mutex_destroy(&qp->ibv.mutex);
	free(qp);
}

static struct vb_qp *qp_new(struct ibv_pd *pd,
			    const struct ibv_qp_init_attr *init)
{
	struct vb_qp *qp = vb_alloc(sizeof(*qp));

	if (!qp)
		return NULL;
	qp->ibv.context = pd->context;
	qp->ibv.qp_context = init->qp_context;
	qp->ibv.pd = pd;
	qp->ibv.send_cq = init->send_cq;
	qp->ibv.recv_cq = init->recv_cq;
	qp->ibv.srq = init->srq;
	qp->ibv.qp_type = init->qp_type;
	qp->ibv.state = IBV_QPS_RESET;
	qp->sq_sig_all = init->sq_sig_all != 0;
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
	pthread_mutex_init(&qp->batch.lock, NULL);
	return qp;
}

static int check_init(const struct ibv_pd *pd,
		      const struct ibv_qp_init_attr *init)
{
	switch (init->qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
		break;
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
	case IBV_QPT_DRIVER:
		return -EOPNOTSUPP;
	default:
		return -EINVAL;
	}
	if (!init->send_cq || !init->recv_cq ||
	    init->send_cq->context != pd->context ||
	    init->recv_cq->context != pd->context ||
	    (init->srq && init->srq->context != pd->context))
		return -EINVAL;
	return 0;
}

static int qp_create_rt(struct vb_qp *qp, const struct ibv_qp_init_attr *init)
{
	struct vb_pd *pd = vb_pd(qp->ibv.pd);
	struct rt_qp_init i = {
		.type = (enum qp_type)init->qp_type,
		.send_cq = vb_cq(init->send_cq)->rt,
		.recv_cq = vb_cq(init->recv_cq)->rt,
		.srq = init->srq ? vb_srq(init->srq)->rt : NULL,
		.sq_sig_all = qp->sq_sig_all,
		.async = pd->obj.ctx->async,
		.user = qp,
	};

	if (!pd->rt || !i.send_cq || !i.recv_cq || (init->srq && !i.srq))
		return -EIO;
	qp_cap_from_ibv(&i.cap, &init->cap);
	if (init->srq) {
		i.cap.max_recv_wr = 0;
		i.cap.max_recv_sge = 0;
	}
	return rt_qp_create(pd->obj.ctx->dev, pd->rt, &i, &qp->cap, &qp->rt);
}

/* send_ops: of ibv_create_qp_ex, 0 for a plain QP. */
static struct ibv_qp *qp_make(struct ibv_pd *pd, struct ibv_qp_init_attr *init,
			      uint64_t send_ops)
{
	struct vb_qp *qp;
	int rc;

	rc = check_init(pd, init);
	if (rc)
		return ret_null(rc);
	qp = qp_new(pd, init);
	if (!qp)
		return ret_null(-ENOMEM);
	rc = send_ops ? vb_wr_init(qp, send_ops) : 0;
	if (!rc)
		rc = qp_create_rt(qp, init);
	if (rc) {
		qp_fini(qp);
		return ret_null(rc);
	}
	qp->ibv.qp_num = rt_qp_num(qp->rt);
	qp->ibv.handle = qp->ibv.qp_num;
	qp_cap_to_ibv(&init->cap, &qp->cap);
	vb_obj_add(&qp->obj, vb_pd(pd)->obj.ctx, VB_QP);
	return &qp->ibv;
}

ABI_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd,
					struct ibv_qp_init_attr *init)
{
	return qp_make(pd, init, 0);
}

/* The extended struct begins with the plain one. */
_Static_assert(offsetof(struct ibv_qp_init_attr_ex, cap) ==
		       offsetof(struct ibv_qp_init_attr, cap),
	       "cap");
_Static_assert(offsetof(struct ibv_qp_init_attr_ex, sq_sig_all) ==
		       offsetof(struct ibv_qp_init_attr, sq_sig_all),
	       "sq_sig_all");

struct ibv_qp *vb_create_qp_ex(struct ibv_context *c,
			       struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t built = IBV_QP_INIT_ATTR_PD |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS |
			       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	uint64_t send_ops = 0;

	if (attr->comp_mask & ~built ||
	    (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
	     attr->create_flags))
		return ret_null(-EOPNOTSUPP);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd ||
	    attr->pd->context != c)
		return ret_null(-EINVAL);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		send_ops = attr->send_ops_flags;
	return qp_make(attr->pd, (struct ibv_qp_init_attr *)(void *)attr,
		       send_ops);
}

ABI_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *ibv)
{
	struct vb_qp *qp = vb_qp(ibv);

	return qp->has_ex ? &qp->ex : NULL;
}

ABI_EXPORT int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr,
			     int mask)
{
	struct vb_qp *qp = vb_qp(ibv);
	struct qp_attr a;
	int rc;

	if (mask & ~KNOWN_ATTR_MASK)
		return ret_errno(-EINVAL);
	if (!qp->rt)
		return ret_errno(-EIO);
	qp_attr_from_ibv(&a, attr);
	rc = rt_qp_modify(qp->rt, &a, (uint32_t)mask);
	ibv->state = (enum ibv_qp_state)rt_qp_state(qp->rt);
	if (rc == -EINVAL && mask & IBV_QP_AV && !a.ah.is_global)
		vb_say_gid_needed(qp->obj.ctx);
	return ret_errno(rc);
}

ABI_EXPORT int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr,
			    int mask, struct ibv_qp_init_attr *init)
{
	struct vb_qp *qp = vb_qp(ibv);
	struct qp_attr a;
	struct qp_cap cap;
	int rc;

	(void)mask; /* a hint what may be left out: nothing is */
	rc = qp->rt ? rt_qp_query(qp->rt, &a, &cap) : -EIO;
	if (rc)
		return ret_errno(rc);
	a.cap = cap;
	qp_attr_to_ibv(attr, &a);
	ibv->state = attr->qp_state;
	if (!init)
		return ret_errno(0);
	memset(init, 0, sizeof(*init));
	init->qp_context = ibv->qp_context;
	init->send_cq = ibv->send_cq;
	init->recv_cq = ibv->recv_cq;
	init->srq = ibv->srq;
	init->qp_type = ibv->qp_type;
	init->sq_sig_all = qp->sq_sig_all;
	qp_cap_to_ibv(&init->cap, &cap);
	return ret_errno(0);
}

void vb_qp_orphan(struct vb_obj *o)
{
	struct vb_qp *qp = CONTAINER_OF(o, struct vb_qp, obj);
	uint32_t async;
	int rc = rt_qp_destroy(qp->rt, &async);

	ASSERT(!rc);
	qp->rt = NULL;
}

ABI_EXPORT int ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct vb_qp *qp = vb_qp(ibv);
	uint32_t async;
	int rc;

	if (qp->rt) {
		rc = rt_qp_destroy(qp->rt, &async);
		if (rc)
			return ret_errno(rc);
		vb_wait_acks(&ibv->mutex, &ibv->cond, &ibv->events_completed,
			     async);
	}
	vb_obj_del(&qp->obj);
	qp_fini(qp);
	return ret_errno(0);
}

/* Enhanced connection establishment: no vendor options to negotiate. */
ABI_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return ret_errno(-EOPNOTSUPP);
}

ABI_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	(void)qp;
	(void)ece;
	return ret_errno(-EOPNOTSUPP);
}
