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

struct rt_qp {
	struct rtdev *dev;
	struct qp *qp;
	struct dlist dev_node; /* [E] */
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

static inline struct evq_item *rt_qp_item(const struct qp *qp)
{
	return &((struct rt_qp *)qp_user(qp))->async;
}

#endif
