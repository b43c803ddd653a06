/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * vb_event.c - completion channels and asynchronous events.
 *
 * An event that was taken out must be acknowledged; destroying its object
 * waits for that. So the pointers in an event stay good until the ack.
 */
#include "shim/verbs/vb.h"

#include <stdlib.h>

ABI_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(
	struct ibv_context *c)
{
	struct vb_context *ctx = vb_context(c);
	struct vb_channel *ch = vb_alloc(sizeof(*ch));
	int rc;

	if (!ch)
		return ret_null(-ENOMEM);
	rc = rt_evq_new(ctx->dev, false, &ch->rt);
	if (rc) {
		free(ch);
		return ret_null(rc);
	}
	ch->ibv.context = c;
	ch->ibv.fd = rt_evq_fd(ch->rt);
	vb_obj_add(&ch->obj, ctx, VB_CHANNEL);
	return &ch->ibv;
}

void vb_channel_orphan(struct vb_obj *o)
{
	struct vb_channel *ch = CONTAINER_OF(o, struct vb_channel, obj);

	rt_evq_free(ch->rt);
	ch->rt = NULL;
}

ABI_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct vb_channel *ch = vb_channel(channel);
	struct ibv_context *c = channel->context;
	int refs;

	pthread_mutex_lock(&c->mutex);
	refs = channel->refcnt;
	pthread_mutex_unlock(&c->mutex);
	if (refs)
		return ret_errno(-EBUSY);
	if (ch->rt)
		rt_evq_free(ch->rt);
	vb_obj_del(&ch->obj);
	free(ch);
	return ret_errno(0);
}

ABI_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel,
				struct ibv_cq **cq, void **cq_context)
{
	struct vb_channel *ch = vb_channel(channel);
	struct rt_event ev;
	int rc;

	if (!ch->rt)
		return ret_minus1(-EIO);
	rc = rt_evq_get(ch->rt, &ev);
	if (rc)
		return ret_minus1(rc);
	*cq = &((struct vb_cq *)ev.user)->ibv;
	*cq_context = (*cq)->cq_context;
	return ret_minus1(0);
}

ABI_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += n;
	pthread_cond_broadcast(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

/* ---- asynchronous events ---- */

enum element { EL_CQ, EL_QP, EL_SRQ, EL_WQ, EL_PORT };

static enum element event_element(enum ibv_event_type t)
{
	switch (t) {
	case IBV_EVENT_CQ_ERR:
		return EL_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return EL_QP;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return EL_SRQ;
	case IBV_EVENT_WQ_FATAL:
		return EL_WQ; /* never raised: there are no WQs */
	case IBV_EVENT_DEVICE_FATAL:
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
		break;
	}
	return EL_PORT;
}

ABI_EXPORT int ibv_get_async_event(struct ibv_context *c,
				   struct ibv_async_event *event)
{
	struct rt_event ev;
	int rc;

	rc = rt_evq_get(vb_context(c)->async, &ev);
	if (rc)
		return ret_minus1(rc);
	event->event_type = (enum ibv_event_type)ev.type;
	switch (event_element(event->event_type)) {
	case EL_CQ:
		event->element.cq = &((struct vb_cq *)ev.user)->ibv;
		break;
	case EL_QP:
		event->element.qp = &((struct vb_qp *)ev.user)->ibv;
		break;
	case EL_SRQ:
		event->element.srq = &((struct vb_srq *)ev.user)->ibv;
		break;
	case EL_WQ:
	case EL_PORT:
		event->element.port_num = ev.port_num;
		break;
	}
	return ret_minus1(0);
}

static void ack(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *n)
{
	pthread_mutex_lock(mutex);
	(*n)++;
	pthread_cond_broadcast(cond);
	pthread_mutex_unlock(mutex);
}

ABI_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;

	switch (event_element(event->event_type)) {
	case EL_CQ:
		ack(&cq->mutex, &cq->cond, &cq->async_events_completed);
		break;
	case EL_QP:
		ack(&qp->mutex, &qp->cond, &qp->events_completed);
		break;
	case EL_SRQ:
		ack(&srq->mutex, &srq->cond, &srq->events_completed);
		break;
	case EL_WQ:
	case EL_PORT:
		break;
	}
}

void vb_wait_acks(pthread_mutex_t *mutex, pthread_cond_t *cond,
		  const uint32_t *completed, uint32_t given)
{
	pthread_mutex_lock(mutex);
	/* The child of a fork acknowledged more than it was given. */
	while ((int32_t)(given - *completed) > 0)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}
