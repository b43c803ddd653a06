/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * hca_event.c - what the driver is to be told: a line of objects, each with a
 * set of pending kinds. Nothing is allocated, so no event can be lost.
 */
#include "core/obj/event.h"

#include "core/hca.h"
#include "core/obj/cq.h"
#include "core/obj/hca_priv.h"
#include "core/obj/qp.h"
#include "core/obj/srq.h"

void event_init(struct event_src *e, enum event_owner owner)
{
	dlist_init(&e->node);
	e->pending = 0;
	e->owner = owner;
}

void event_raise(struct hca *hca, struct event_src *e, uint32_t bit)
{
	ASSERT(bit < 32);
	e->pending |= 1u << bit;
	if (!dlist_linked(&e->node))
		dlist_push_back(&hca->events, &e->node);
}

void event_forget(struct event_src *e)
{
	e->pending = 0;
	dlist_remove(&e->node);
}

static void name_owner(struct event_src *e, struct hca_event *ev)
{
	switch (e->owner) {
	case EVENT_OWNER_PORT:
		ev->port_num = 1;
		break;
	case EVENT_OWNER_QP:
		ev->qp = CONTAINER_OF(e, struct qp, events);
		break;
	case EVENT_OWNER_CQ:
		ev->cq = CONTAINER_OF(e, struct cq, events);
		break;
	case EVENT_OWNER_SRQ:
		ev->srq = CONTAINER_OF(e, struct srq, events);
		break;
	case EVENT_OWNER_CM:
		ev->conn = CONTAINER_OF(e, struct cm_conn, events);
		break;
	}
}

bool hca_event_next(struct hca *hca, struct hca_event *ret)
{
	struct dlist *n = dlist_first(&hca->events);
	struct event_src *e;
	uint32_t bit;

	if (!n)
		return false;
	e = CONTAINER_OF(n, struct event_src, node);
	ASSERT(e->pending);
	bit = (uint32_t)__builtin_ctz(e->pending);
	e->pending &= ~(1u << bit);
	dlist_remove(&e->node);
	if (e->pending) /* one a turn, so that no object hides the others */
		dlist_push_back(&hca->events, &e->node);
	*ret = (struct hca_event){ 0 };
	if (e->owner == EVENT_OWNER_CM)
		ret->kind = HCA_EVENT_CM;
	else
		ret->kind = bit == EVENT_BIT_COMP ? HCA_EVENT_COMP
						  : HCA_EVENT_ASYNC;
	if (ret->kind == HCA_EVENT_ASYNC)
		ret->type = (enum async_type)bit;
	else if (ret->kind == HCA_EVENT_CM)
		ret->cm_kind = (uint8_t)bit;
	name_owner(e, ret);
	return true;
}
