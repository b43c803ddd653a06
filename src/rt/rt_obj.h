/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rt_obj.h - the objects of rt around those of the core: locks for posting and
 * polling, and where their events go. The core's user cookie is the rt object.
 */
#ifndef SOFTHCA_RT_RT_OBJ_H
#define SOFTHCA_RT_RT_OBJ_H

#include "rt/evq.h"
#include "rt/lock.h"
#include "rt/rt.h"

struct rt_cq {
	struct rtdev *dev;
	struct cq *cq;
	struct rt_lock lock;  /* pollers */
	unsigned empty_polls; /* in a row; under lock */
	struct evq_item comp, async;
};

struct rt_srq {
	struct rtdev *dev;
	struct srq *srq;
	struct rt_lock lock; /* posters */
	struct evq_item async;
};

struct rt_xrcd {
	struct rtdev *dev;
	struct xrcd *xrcd;
	/* [E] */
	struct dlist node;
	bool shared; /* by the file that key names */
	struct rt_xrcd_key key;
	uint32_t opens;
};

struct rt_qp {
	struct rtdev *dev;
	struct qp *qp;
	struct dlist dev_node; /* [E] in line: the core's cookie is this one */
	struct dlist holders;  /* [E] ring of all that hold the same core QP */
	struct rt_cq *send_cq, *recv_cq;
	struct rt_lock send_lock, recv_lock; /* posters */
	struct evq_item async;
};

/* Where an object's events go; [E]. */
static inline struct evq_item *rt_cq_comp_item(const struct cq *cq)
{
	return &((struct rt_cq *)cq_user(cq))->comp;
}

static inline struct evq_item *rt_cq_async_item(const struct cq *cq)
{
	return &((struct rt_cq *)cq_user(cq))->async;
}

static inline struct evq_item *rt_srq_item(const struct srq *srq)
{
	return &((struct rt_srq *)srq_user(srq))->async;
}

void rt_qp_init(struct rt_qp *q, struct rtdev *d, struct rt_evq *async,
		void *user);

/* ---- rt_xrc.c ---- */

/* Gives up one of several holds; false: it is the only one. [E] */
bool rt_qp_leave(struct rt_qp *q);
/* To all that hold the QP. [E] */
void rt_qp_event(const struct qp *qp, enum async_type type);

#endif
