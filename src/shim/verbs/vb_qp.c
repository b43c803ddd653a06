/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * vb_qp.c - queue pairs: create, modify, query, destroy.
 */
#include "shim/verbs/vb.h"

#include <stdlib.h>
#include <string.h>

#define KNOWN_ATTR_MASK                                                        \
	((IBV_QP_DEST_QPN << 1) - 1) /* rate limits: a verb of their own */

void vb_qp_free(struct vb_qp *qp)
{
	vb_batch_fini(&qp->batch);
	pthread_cond_destroy(&qp->ibv.cond);
	pthread_mutex_destroy(&qp->ibv.mutex);
	free(qp);
}

struct vb_qp *vb_qp_new(struct ibv_context *c, struct ibv_pd *pd,
			const struct ibv_qp_init_attr *init)
{
	struct vb_qp *qp = vb_alloc(sizeof(*qp));

	if (!qp)
		return NULL;
	qp->ibv.context = c;
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

struct ibv_qp *vb_qp_publish(struct vb_qp *qp)
{
	qp->ibv.state = (enum ibv_qp_state)rt_qp_state(qp->rt);
	qp->ibv.qp_num = rt_qp_num(qp->rt);
	qp->ibv.handle = qp->ibv.qp_num;
	vb_obj_add(&qp->obj, vb_context(qp->ibv.context), VB_QP);
	return &qp->ibv;
}

static int check_type(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return 0;
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_DRIVER:
		return -EOPNOTSUPP;
	default:
		return -EINVAL;
	}
}

static bool cq_ok(const struct ibv_context *c, const struct ibv_cq *cq)
{
	return cq && cq->context == c;
}

/* Queues and domain as each type has them; what an XRC initiator is given
 * beside a send CQ is ignored, as kernels do (bug log B112). */
static int check_init(const struct ibv_context *c, const struct ibv_pd *pd,
		      const struct rt_xrcd *xrcd,
		      const struct ibv_qp_init_attr *init)
{
	int rc = check_type(init->qp_type);

	if (rc)
		return rc;
	if (init->qp_type == IBV_QPT_XRC_RECV)
		return xrcd ? 0 : -EINVAL;
	if (!pd || pd->context != c || !cq_ok(c, init->send_cq))
		return -EINVAL;
	if (init->qp_type == IBV_QPT_XRC_SEND)
		return 0;
	if (!cq_ok(c, init->recv_cq) || (init->srq && init->srq->context != c))
		return -EINVAL;
	return 0;
}

/* What of init the type has not is left out. */
static struct ibv_qp_init_attr own_parts(const struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr i = *init;

	if (i.qp_type == IBV_QPT_XRC_RECV) {
		i.send_cq = NULL;
		i.cap.max_send_wr = i.cap.max_send_sge = 0;
		i.cap.max_inline_data = 0;
	}
	if (i.qp_type == IBV_QPT_XRC_RECV || i.qp_type == IBV_QPT_XRC_SEND) {
		i.recv_cq = NULL;
		i.srq = NULL;
	}
	if (i.srq || !i.recv_cq)
		i.cap.max_recv_wr = i.cap.max_recv_sge = 0;
	return i;
}

static int qp_create_rt(struct vb_qp *qp, struct rt_xrcd *xrcd,
			const struct ibv_qp_init_attr *init)
{
	struct vb_context *ctx = vb_context(qp->ibv.context);
	struct pd *pd = qp->ibv.pd ? vb_pd(qp->ibv.pd)->rt : NULL;
	struct rt_qp_init i = {
		.type = (enum qp_type)init->qp_type,
		.send_cq = init->send_cq ? vb_cq(init->send_cq)->rt : NULL,
		.recv_cq = init->recv_cq ? vb_cq(init->recv_cq)->rt : NULL,
		.srq = init->srq ? vb_srq(init->srq)->rt : NULL,
		.xrcd = xrcd,
		.sq_sig_all = qp->sq_sig_all,
		.async = ctx->async,
		.user = qp,
	};

	if ((qp->ibv.pd && !pd) || (init->send_cq && !i.send_cq) ||
	    (init->recv_cq && !i.recv_cq) || (init->srq && !i.srq))
		return -EIO;
	qp_cap_from_ibv(&i.cap, &init->cap);
	return rt_qp_create(ctx->dev, pd, &i, &qp->cap, &qp->rt);
}

/* send_ops: of ibv_create_qp_ex, 0 for a plain QP. */
static struct ibv_qp *qp_make(struct ibv_context *c, struct ibv_pd *pd,
			      struct rt_xrcd *xrcd,
			      struct ibv_qp_init_attr *init, uint64_t send_ops)
{
	struct ibv_qp_init_attr own;
	struct vb_qp *qp;
	int rc;

	rc = check_init(c, pd, xrcd, init);
	if (rc)
		return ret_null(rc);
	if (init->qp_type == IBV_QPT_XRC_RECV)
		pd = NULL;
	else
		xrcd = NULL;
	own = own_parts(init);
	qp = vb_qp_new(c, pd, &own);
	if (!qp)
		return ret_null(-ENOMEM);
	rc = send_ops ? vb_wr_init(qp, send_ops) : 0;
	if (!rc)
		rc = qp_create_rt(qp, xrcd, &own);
	if (rc) {
		vb_qp_free(qp);
		return ret_null(rc);
	}
	qp_cap_to_ibv(&init->cap, &qp->cap);
	return vb_qp_publish(qp);
}

ABI_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd,
					struct ibv_qp_init_attr *init)
{
	return qp_make(pd->context, pd, NULL, init, 0);
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
	const uint32_t built = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS |
			       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	struct rt_xrcd *xrcd = NULL;
	struct ibv_pd *pd = NULL;
	uint64_t send_ops = 0;

	if (attr->comp_mask & ~built ||
	    (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
	     attr->create_flags))
		return ret_null(-EOPNOTSUPP);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_PD)
		pd = attr->pd;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD)
		xrcd = vb_xrcd_rt(attr->xrcd, c);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		send_ops = attr->send_ops_flags;
	return qp_make(c, pd, xrcd, (struct ibv_qp_init_attr *)(void *)attr,
		       send_ops);
}

ABI_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *ibv)
{
	struct vb_qp *qp = vb_qp(ibv);

	return qp->has_ex ? &qp->ex : NULL;
}

/* Programs give both halves of an XRC connection the attributes of a whole one;
 * kernels take those away that the half has not. */
static int own_attrs(enum ibv_qp_type type, int mask)
{
	switch (type) {
	case IBV_QPT_XRC_SEND:
		return mask &
		       ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	case IBV_QPT_XRC_RECV:
		return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT |
				IBV_QP_RNR_RETRY);
	default:
		return mask;
	}
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
	rc = rt_qp_modify(qp->rt, &a, (uint32_t)own_attrs(ibv->qp_type, mask));
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
	int rc;

	rt_qp_detach_all(qp->rt);
	rc = rt_qp_destroy(qp->rt, &async);
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
	vb_qp_free(qp);
	return ret_errno(0);
}

static struct gid gid_of(const union ibv_gid *gid)
{
	struct gid g;

	memcpy(g.raw, gid->raw, sizeof(g.raw));
	return g;
}

/* The group's LID means nothing here. */
ABI_EXPORT int ibv_attach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid,
				uint16_t lid)
{
	struct vb_qp *qp = vb_qp(ibv);
	struct gid g = gid_of(gid);

	(void)lid;
	return ret_errno(qp->rt ? rt_qp_attach_mcast(qp->rt, &g) : -EIO);
}

ABI_EXPORT int ibv_detach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid,
				uint16_t lid)
{
	struct vb_qp *qp = vb_qp(ibv);
	struct gid g = gid_of(gid);

	(void)lid;
	return ret_errno(qp->rt ? rt_qp_detach_mcast(qp->rt, &g) : -EIO);
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
