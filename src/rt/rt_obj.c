/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The control verbs: the core's, inside the engine. In the child of a fork
 * every one of them answers -EIO, but destroy verbs, which free the memory; on
 * a lost device destroy verbs work.
 */
#include "rt/rt_obj.h"

#include <errno.h>
#include <stdlib.h>

#include "rt/rtdev.h"
#include "rt/umem.h"

/* ---- domains, regions, address handles ---- */

int rt_pd_alloc(struct rtdev *d, struct pd **ret)
{
	int err;

	if (rtdev_failed(d))
		return -EIO;
	engine_lock(d);
	err = pd_create(d->hca, ret);
	engine_unlock(d);
	return err;
}

int rt_pd_dealloc(struct rtdev *d, struct pd *pd)
{
	int err;

	if (rtdev_dead(d))
		return 0;
	engine_lock(d);
	err = pd_destroy(pd);
	engine_unlock(d);
	return err;
}

static bool range_ok(const struct mr_attr *a)
{
	if (a->len_bytes == 0 || (a->access & ACCESS_ON_DEMAND))
		return true;
	return umem_probe(a->va, a->len_bytes, a->access & ACCESS_LOCAL_WRITE);
}

int rt_mr_reg(struct rtdev *d, struct pd *pd, const struct mr_attr *attr,
	      struct mr **ret)
{
	int err;

	if (rtdev_failed(d))
		return -EIO;
	umem_check();
	engine_lock(d);
	err = mr_reg(pd, attr, ret);
	engine_unlock(d);
	if (err)
		return err;
	if (range_ok(attr)) {
		gates_mr_open(d, *ret); /* nobody else knows it yet */
		return 0;
	}
	engine_lock(d);
	err = mr_dereg(*ret);
	engine_unlock(d);
	return err ? err : -EFAULT;
}

int rt_mr_dereg(struct rtdev *d, struct mr *mr)
{
	struct gate_closed closed;
	int err;

	if (rtdev_dead(d))
		return 0;
	engine_lock(d);
	closed = gates_mr_close(d, mr);
	err = mr_dereg(mr);
	if (err)
		gates_mr_open(d, mr);
	engine_unlock(d);
	gates_wait(d, closed);
	return err;
}

int rt_mr_rereg(struct rtdev *d, struct mr *mr, uint32_t flags, struct pd *pd,
		const struct mr_attr *attr)
{
	struct gate_closed closed;
	int err;

	if (rtdev_failed(d))
		return -EIO;
	umem_check();
	if ((flags & MR_REREG_TRANSLATION) && !range_ok(attr))
		return -EFAULT;
	engine_lock(d);
	closed = gates_mr_close(d, mr);
	err = mr_rereg(mr, flags, pd, attr);
	gates_mr_open(d, mr);
	engine_unlock(d);
	gates_wait(d, closed);
	return err;
}

int rt_ah_create(struct rtdev *d, struct pd *pd, const struct ah_attr *attr,
		 struct ah **ret)
{
	int err;

	if (rtdev_failed(d))
		return -EIO;
	if (attr->is_global)
		gates_local(d, &attr->dgid);
	engine_lock(d);
	err = ah_create(pd, attr, ret);
	engine_unlock(d);
	return err;
}

int rt_ah_destroy(struct rtdev *d, struct ah *ah)
{
	int err;

	if (rtdev_dead(d))
		return 0;
	engine_lock(d);
	err = ah_destroy(ah);
	engine_unlock(d);
	return err;
}

/* ---- completion queues ---- */

int rt_cq_create(struct rtdev *d, uint32_t cqe, struct rt_evq *comp,
		 struct rt_evq *async, void *user, struct rt_cq **ret)
{
	struct rt_cq *c;
	int err;

	if (rtdev_failed(d))
		return -EIO;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->dev = d;
	rt_lock_init(&c->lock);
	evq_item_init(&c->comp, comp, user);
	evq_item_init(&c->async, async, user);
	engine_lock(d);
	err = cq_create(d->hca, cqe, c, &c->cq);
	engine_unlock(d);
	if (err) {
		free(c);
		return err;
	}
	*ret = c;
	return 0;
}

int rt_cq_destroy(struct rt_cq *c, uint32_t *ret_comp, uint32_t *ret_async)
{
	struct rtdev *d = c->dev;
	int err = 0;

	*ret_comp = *ret_async = 0;
	if (!rtdev_dead(d)) {
		engine_lock(d);
		err = cq_destroy(c->cq);
		engine_unlock(d);
		if (err)
			return err;
		*ret_comp = evq_item_fini(&c->comp);
		*ret_async = evq_item_fini(&c->async);
	}
	free(c);
	return 0;
}

int rt_cq_resize(struct rt_cq *c, uint32_t cqe)
{
	struct rtdev *d = c->dev;
	int err;

	if (rtdev_failed(d))
		return -EIO;
	/* Whether it fits depends on what was posted before: a doorbell that
	 * found somebody inside is only a mark so far. */
	engine_settle(d);
	engine_lock(d);
	rt_lock_acquire(&c->lock);
	err = cq_resize(c->cq, cqe);
	rt_lock_release(&c->lock);
	engine_unlock(d);
	return err;
}

int rt_cq_keep_times(struct rt_cq *c)
{
	int err;

	engine_lock(c->dev);
	err = cq_keep_times(c->cq);
	engine_unlock(c->dev);
	return err;
}

void rt_cq_ignore_overrun(struct rt_cq *c)
{
	engine_lock(c->dev);
	cq_ignore_overrun(c->cq);
	engine_unlock(c->dev);
}

int rt_cq_moderate(struct rt_cq *c, uint32_t count, int64_t period_ns)
{
	if (rtdev_failed(c->dev))
		return -EIO;
	engine_lock(c->dev);
	cq_moderate(c->cq, count, period_ns);
	engine_unlock(c->dev);
	return 0;
}

int64_t rt_cq_polled_ns(const struct rt_cq *c)
{
	return cq_polled_ns(c->cq);
}

uint32_t rt_cq_cqe(const struct rt_cq *c)
{
	return cq_cqe(c->cq);
}

int rt_cq_arm(struct rt_cq *c, bool solicited_only)
{
	if (rtdev_failed(c->dev))
		return -EIO;
	rt_lock_acquire(&c->lock);
	cq_arm(c->cq, solicited_only);
	rt_lock_release(&c->lock);
	/* Without a channel nobody is going to sleep on it. */
	if (c->comp.q)
		engine_visit(c->dev, VISIT_ARM);
	return 0;
}

/* ---- shared receive queues ---- */

int rt_srq_create(struct rtdev *d, struct pd *pd, struct rt_xrcd *xrcd,
		  struct rt_cq *cq, const struct srq_attr *attr,
		  struct rt_evq *async, void *user, struct rt_srq **ret)
{
	struct rt_srq *s;
	int err;

	if (rtdev_failed(d))
		return -EIO;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->dev = d;
	rt_lock_init(&s->lock);
	evq_item_init(&s->async, async, user);
	engine_lock(d);
	err = xrcd ? srq_create_xrc(pd, xrcd->xrcd, cq->cq, attr, s, &s->srq)
		   : srq_create(pd, attr, s, &s->srq);
	engine_unlock(d);
	if (err) {
		free(s);
		return err;
	}
	*ret = s;
	return 0;
}

int rt_srq_destroy(struct rt_srq *s, uint32_t *ret_async)
{
	struct rtdev *d = s->dev;
	int err;

	*ret_async = 0;
	if (!rtdev_dead(d)) {
		engine_lock(d);
		err = srq_destroy(s->srq);
		engine_unlock(d);
		if (err)
			return err;
		*ret_async = evq_item_fini(&s->async);
	}
	free(s);
	return 0;
}

int rt_srq_modify(struct rt_srq *s, struct srq_attr *attr, uint32_t mask)
{
	struct rtdev *d = s->dev;
	int err;

	if (rtdev_failed(d))
		return -EIO;
	engine_lock(d);
	rt_lock_acquire(&s->lock);
	err = srq_modify(s->srq, attr, mask);
	rt_lock_release(&s->lock);
	engine_unlock(d);
	return err;
}

int rt_srq_query(struct rt_srq *s, struct srq_attr *ret)
{
	if (rtdev_dead(s->dev))
		return -EIO;
	engine_lock(s->dev);
	srq_query(s->srq, ret);
	engine_unlock(s->dev);
	return 0;
}

uint32_t rt_srq_num(const struct rt_srq *s)
{
	return srq_num(s->srq);
}

/* ---- queue pairs ---- */

void rt_qp_init(struct rt_qp *q, struct rtdev *d, struct rt_evq *async,
		void *user)
{
	q->dev = d;
	rt_lock_init(&q->send_lock);
	rt_lock_init(&q->recv_lock);
	dlist_init(&q->dev_node);
	dlist_init(&q->holders);
	evq_item_init(&q->async, async, user);
}

int rt_qp_create(struct rtdev *d, struct pd *pd, const struct rt_qp_init *init,
		 struct qp_cap *ret_cap, struct rt_qp **ret)
{
	struct qp_init core = {
		.type = init->type,
		.send_cq = init->send_cq ? init->send_cq->cq : NULL,
		.recv_cq = init->recv_cq ? init->recv_cq->cq : NULL,
		.srq = init->srq ? init->srq->srq : NULL,
		.xrcd = init->xrcd ? init->xrcd->xrcd : NULL,
		.cap = init->cap,
		.sq_sig_all = init->sq_sig_all,
	};
	struct rt_qp *q;
	int err;

	if (rtdev_failed(d))
		return -EIO;
	q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	rt_qp_init(q, d, init->async, init->user);
	q->send_cq = init->send_cq;
	q->recv_cq = init->recv_cq;
	core.user = q;
	engine_lock(d);
	err = qp_create(pd, &core, ret_cap, &q->qp);
	if (!err)
		dlist_push_back(&d->qps, &q->dev_node);
	engine_unlock(d);
	if (err) {
		free(q);
		return err;
	}
	*ret = q;
	return 0;
}

/* And before it may migrate, that of the alternate path. */
static int bind_alternate(struct rt_qp *q, const struct qp_attr *attr,
			  uint32_t mask)
{
	if (!(mask & QP_ATTR_ALT_PATH) || !attr->alt_ah.is_global)
		return 0;
	return rtdev_bind_gid(q->dev, attr->alt_ah.sgid_index);
}

/* A QP that is to receive needs its source address's port first, and to know
 * whether its peer is on this host. */
static int bind_for_rtr(struct rt_qp *q, const struct qp_attr *attr,
			uint32_t mask, bool *ret_direct)
{
	struct qp_attr have;
	struct qp_init init;
	int err;

	*ret_direct = false;
	if (!(mask & QP_ATTR_STATE) || attr->state != QP_STATE_RTR)
		return 0;
	engine_lock(q->dev);
	qp_query(q->qp, &have, &init);
	engine_unlock(q->dev);
	if (init.type == QP_TYPE_UD)
		return rtdev_bind_all(q->dev);
	if (!(mask & QP_ATTR_AV) || !attr->ah.is_global)
		return 0; /* the core refuses it */
	err = rtdev_bind_gid(q->dev, attr->ah.sgid_index);
	if (!err)
		*ret_direct = gates_seek(q->dev, attr);
	return err;
}

/* No poller is inside the QP's CQs. Pollers hold one CQ's lock at a time, so
 * the order of two does not matter to them; others who take two are inside the
 * engine. */
static void cqs_acquire(struct rt_qp *q)
{
	if (q->send_cq)
		rt_lock_acquire(&q->send_cq->lock);
	if (q->recv_cq && q->recv_cq != q->send_cq)
		rt_lock_acquire(&q->recv_cq->lock);
}

static void cqs_release(struct rt_qp *q)
{
	if (q->recv_cq && q->recv_cq != q->send_cq)
		rt_lock_release(&q->recv_cq->lock);
	if (q->send_cq)
		rt_lock_release(&q->send_cq->lock);
}

/* [E] */
static int destroy_locked(struct rt_qp *q, struct gate_closed *ret_closed)
{
	int err;

	if (rt_qp_leave(q))
		return 0;
	*ret_closed = gates_qp_close(q->dev, qp_num(q->qp));
	cqs_acquire(q);
	err = qp_destroy(q->qp);
	cqs_release(q);
	if (!err)
		dlist_remove(&q->dev_node);
	else
		gates_grant(q->dev, q->qp);
	return err;
}

int rt_qp_destroy(struct rt_qp *q, uint32_t *ret_async)
{
	struct gate_closed closed = { .kind = GATE_NONE };
	struct rtdev *d = q->dev;
	int err;

	*ret_async = 0;
	if (!rtdev_dead(d)) {
		engine_lock(d);
		err = destroy_locked(q, &closed);
		engine_unlock(d);
		if (err)
			return err;
		gates_wait(d, closed);
		*ret_async = evq_item_fini(&q->async);
	}
	free(q);
	return 0;
}

/* RESET takes completions out of the CQs. */
static int modify_locked(struct rt_qp *q, const struct qp_attr *attr,
			 uint32_t mask)
{
	bool reset = mask & QP_ATTR_STATE && attr->state == QP_STATE_RESET;
	int err;

	if (reset)
		cqs_acquire(q);
	err = qp_modify(q->qp, attr, mask, rt_now_ns());
	if (reset)
		cqs_release(q);
	return err;
}

/* May this modify have taken rights from the peer? */
static bool takes_rights(const struct qp_attr *attr, uint32_t mask)
{
	if (mask & (QP_ATTR_ACCESS_FLAGS | QP_ATTR_AV | QP_ATTR_PKEY_INDEX |
		    QP_ATTR_MAX_DEST_RD_ATOMIC))
		return true;
	return mask & QP_ATTR_STATE &&
	       (attr->state == QP_STATE_RESET || attr->state == QP_STATE_ERR);
}

int rt_qp_modify(struct rt_qp *q, const struct qp_attr *attr, uint32_t mask)
{
	struct gate_closed changed = { .kind = GATE_NONE };
	struct rtdev *d = q->dev;
	bool direct;
	int err;

	if (rtdev_failed(d))
		return -EIO;
	umem_check();
	err = bind_alternate(q, attr, mask);
	if (err)
		return err;
	err = bind_for_rtr(q, attr, mask, &direct);
	if (err)
		return err;
	engine_lock(d);
	err = modify_locked(q, attr, mask);
	if (!err && direct)
		qp_set_direct(q->qp, true);
	if (!err && takes_rights(attr, mask))
		changed = gate_of_qp(qp_num(q->qp));
	engine_unlock(d);
	gates_wait(d, changed);
	return err;
}

int rt_qp_query(struct rt_qp *q, struct qp_attr *ret_attr,
		struct qp_cap *ret_cap)
{
	struct qp_init init;

	if (rtdev_dead(q->dev))
		return -EIO;
	engine_lock(q->dev);
	qp_query(q->qp, ret_attr, &init);
	engine_unlock(q->dev);
	*ret_cap = init.cap;
	return 0;
}

uint32_t rt_qp_num(const struct rt_qp *q)
{
	return qp_num(q->qp);
}

enum qp_state rt_qp_state(const struct rt_qp *q)
{
	return qp_state(q->qp);
}
