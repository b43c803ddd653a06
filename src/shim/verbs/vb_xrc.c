/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * vb_xrc.c - XRC domains, shared receive queues in them, and target QPs that
 * another context made.
 */
#include "shim/verbs/vb.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

static struct vb_xrcd *vb_xrcd(struct ibv_xrcd *x)
{
	return CONTAINER_OF(x, struct vb_xrcd, ibv);
}

struct rt_xrcd *vb_xrcd_rt(struct ibv_xrcd *x, struct ibv_context *c)
{
	return x && x->context == c ? vb_xrcd(x)->rt : NULL;
}

/* fd -1: a domain of one's own. */
static int open_rt(struct vb_context *ctx, int fd, int oflags,
		   struct rt_xrcd **ret)
{
	struct rt_xrcd_key key;
	uint32_t flags = 0;
	struct stat st;

	if (fd == -1)
		return rt_xrcd_open(ctx->dev, NULL, RT_XRCD_CREATE, ret);
	if (fstat(fd, &st))
		return -errno;
	if (oflags & O_CREAT)
		flags |= RT_XRCD_CREATE;
	if (oflags & O_EXCL)
		flags |= RT_XRCD_EXCL;
	key.dev = (uint64_t)st.st_dev;
	key.ino = (uint64_t)st.st_ino;
	return rt_xrcd_open(ctx->dev, &key, flags, ret);
}

struct ibv_xrcd *vb_open_xrcd(struct ibv_context *c,
			      struct ibv_xrcd_init_attr *attr)
{
	const uint32_t needed =
		IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct vb_xrcd *x;
	int rc;

	if (attr->comp_mask & ~needed)
		return ret_null(-EOPNOTSUPP);
	if (attr->comp_mask != needed || attr->oflags & ~(O_CREAT | O_EXCL))
		return ret_null(-EINVAL);
	x = vb_alloc(sizeof(*x));
	if (!x)
		return ret_null(-ENOMEM);
	rc = open_rt(vb_context(c), attr->fd, attr->oflags, &x->rt);
	if (rc) {
		free(x);
		return ret_null(rc);
	}
	x->ibv.context = c;
	vb_obj_add(&x->obj, vb_context(c), VB_XRCD);
	return &x->ibv;
}

void vb_xrcd_orphan(struct vb_obj *o)
{
	struct vb_xrcd *x = CONTAINER_OF(o, struct vb_xrcd, obj);
	int rc = rt_xrcd_close(x->rt);

	ASSERT(!rc);
	x->rt = NULL;
}

int vb_close_xrcd(struct ibv_xrcd *ibv)
{
	struct vb_xrcd *x = vb_xrcd(ibv);
	int rc = x->rt ? rt_xrcd_close(x->rt) : 0;

	if (rc)
		return ret_errno(rc);
	vb_obj_del(&x->obj);
	free(x);
	return ret_errno(0);
}

/* The basic kind comes through ibv_create_srq. */
struct ibv_srq *vb_create_srq_ex(struct ibv_context *c,
				 struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t needed = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
				IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	struct rt_xrcd *xrcd;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD))
		return ret_null(-EINVAL);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) ||
	    attr->srq_type != IBV_SRQT_XRC)
		return ret_null(-EOPNOTSUPP);
	if (attr->comp_mask != needed || !attr->pd || !attr->cq ||
	    attr->pd->context != c || attr->cq->context != c)
		return ret_null(-EINVAL);
	xrcd = vb_xrcd_rt(attr->xrcd, c);
	if (!xrcd)
		return ret_null(-EINVAL);
	/* The extended struct begins with the plain one. */
	return vb_srq_make(attr->pd, xrcd, attr->cq,
			   (struct ibv_srq_init_attr *)(void *)attr);
}
_Static_assert(offsetof(struct ibv_srq_init_attr_ex, attr) ==
		       offsetof(struct ibv_srq_init_attr, attr),
	       "attr");

struct ibv_qp *vb_open_qp(struct ibv_context *c, struct ibv_qp_open_attr *attr)
{
	const uint32_t needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
				IBV_QP_OPEN_ATTR_TYPE;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_XRC_RECV };
	struct rt_xrcd *xrcd;
	struct vb_qp *qp;
	int rc;

	if (attr->comp_mask & ~(needed | IBV_QP_OPEN_ATTR_CONTEXT))
		return ret_null(-EOPNOTSUPP);
	xrcd = vb_xrcd_rt(attr->xrcd, c);
	if ((attr->comp_mask & needed) != needed ||
	    attr->qp_type != IBV_QPT_XRC_RECV || !xrcd)
		return ret_null(-EINVAL);
	if (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT)
		init.qp_context = attr->qp_context;
	qp = vb_qp_new(c, NULL, &init);
	if (!qp)
		return ret_null(-ENOMEM);
	rc = rt_qp_open(xrcd, attr->qp_num, vb_context(c)->async, qp, &qp->rt);
	if (rc) {
		vb_qp_free(qp);
		return ret_null(rc);
	}
	return vb_qp_publish(qp);
}
