/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * vb_cq.c - completion queues.
 */
#include "shim/verbs/vb.h"

#include <stdlib.h>

static void channel_ref(struct ibv_comp_channel *ch, int by)
{
	if (!ch)
		return;
	pthread_mutex_lock(&ch->context->mutex);
	ch->refcnt += by;
	pthread_mutex_unlock(&ch->context->mutex);
}

static void cq_init(struct vb_cq *cq, struct ibv_context *c, void *user,
		    struct ibv_comp_channel *channel)
{
	cq->ibv.context = c;
	cq->ibv.channel = channel;
	cq->ibv.cq_context = user;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	pthread_mutex_init(&cq->poll_lock, NULL);
}

static void cq_fini(struct vb_cq *cq)
{
	pthread_mutex_destroy(&cq->poll_lock);
	pthread_cond_destroy(&cq->ibv.cond);
	pthread_mutex_destroy(&cq->ibv.mutex);
	free(cq);
}

struct vb_cq *vb_cq_create(struct ibv_context *c, uint32_t cqe, void *user,
			   struct ibv_comp_channel *channel, int comp_vector)
{
	struct vb_context *ctx = vb_context(c);
	struct vb_cq *cq;
	int rc;

	if (!cqe || comp_vector < 0 || comp_vector >= c->num_comp_vectors ||
	    (channel && channel->context != c))
		return ret_null(-EINVAL);
	cq = vb_alloc(sizeof(*cq));
	if (!cq)
		return ret_null(-ENOMEM);
	cq_init(cq, c, user, channel);
	channel_ref(channel, 1);
	rc = rt_cq_create(ctx->dev, cqe,
			  channel ? vb_channel(channel)->rt : NULL, ctx->async,
			  cq, &cq->rt);
	if (rc) {
		channel_ref(channel, -1);
		cq_fini(cq);
		return ret_null(rc);
	}
	cq->ibv.cqe = (int)rt_cq_cqe(cq->rt);
	vb_obj_add(&cq->obj, ctx, VB_CQ);
	return cq;
}

ABI_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *c, int cqe,
					void *cq_context,
					struct ibv_comp_channel *channel,
					int comp_vector)
{
	struct vb_cq *cq;

	if (cqe < 1)
		return ret_null(-EINVAL);
	cq = vb_cq_create(c, (uint32_t)cqe, cq_context, channel, comp_vector);
	return cq ? &cq->ibv : NULL;
}

ABI_EXPORT int ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct vb_cq *cq = vb_cq(ibv);
	int rc;

	if (cqe < 1)
		return ret_errno(-EINVAL);
	rc = cq->rt ? rt_cq_resize(cq->rt, (uint32_t)cqe) : -EIO;
	if (!rc)
		ibv->cqe = (int)rt_cq_cqe(cq->rt);
	return ret_errno(rc);
}

/* Periods are in microseconds. */
int vb_modify_cq(struct ibv_cq *ibv, struct ibv_modify_cq_attr *attr)
{
	struct vb_cq *cq = vb_cq(ibv);

	if (attr->attr_mask != IBV_CQ_ATTR_MODERATE)
		return ret_errno(-EINVAL);
	return ret_errno(cq->rt ? rt_cq_moderate(cq->rt,
						 attr->moderate.cq_count,
						 attr->moderate.cq_period *
							 INT64_C(1000))
				: -EIO);
}

void vb_cq_orphan(struct vb_obj *o)
{
	struct vb_cq *cq = CONTAINER_OF(o, struct vb_cq, obj);
	uint32_t comp, async;
	int rc = rt_cq_destroy(cq->rt, &comp, &async);

	ASSERT(!rc);
	cq->rt = NULL;
}

ABI_EXPORT int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct vb_cq *cq = vb_cq(ibv);
	uint32_t comp, async;
	int rc;

	if (cq->rt) {
		rc = rt_cq_destroy(cq->rt, &comp, &async);
		if (rc)
			return ret_errno(rc);
		vb_wait_acks(&ibv->mutex, &ibv->cond,
			     &ibv->comp_events_completed, comp);
		vb_wait_acks(&ibv->mutex, &ibv->cond,
			     &ibv->async_events_completed, async);
	}
	channel_ref(ibv->channel, -1);
	vb_obj_del(&cq->obj);
	cq_fini(cq);
	return ret_errno(0);
}

int vb_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	/* same layout: vb_attr.c */
	return rt_cq_poll(vb_cq(cq)->rt, n, (struct wc *)(void *)wc);
}

int vb_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	return ret_errno(rt_cq_arm(vb_cq(cq)->rt, solicited_only != 0));
}
