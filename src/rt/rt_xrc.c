/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rt_xrc.c - XRC domains, and target QPs that several contexts hold.
 *
 * A domain is private, or belongs to a file: whoever in this process opens it
 * by the same file gets the same. A target QP lives while somebody holds it;
 * its holders (struct rt_qp) form a ring, and each hears its events.
 */
#include <errno.h>
#include <stdlib.h>

#include "rt/rt_obj.h"
#include "rt/rtdev.h"

/* The open domain of that file, or NULL. [E] */
static struct rt_xrcd *find(struct rtdev *d, const struct rt_xrcd_key *key)
{
	struct dlist *n;

	for (n = d->xrcds.next; n != &d->xrcds; n = n->next) {
		struct rt_xrcd *x = CONTAINER_OF(n, struct rt_xrcd, node);

		if (x->shared && x->key.dev == key->dev &&
		    x->key.ino == key->ino)
			return x;
	}
	return NULL;
}

static int make(struct rtdev *d, struct rt_xrcd *x,
		const struct rt_xrcd_key *key)
{
	int err = xrcd_create(d->hca, &x->xrcd);

	if (err)
		return err;
	x->dev = d;
	x->opens = 1;
	x->shared = key != NULL;
	if (key)
		x->key = *key;
	dlist_init(&x->node);
	dlist_push_back(&d->xrcds, &x->node);
	return 0;
}

int rt_xrcd_open(struct rtdev *d, const struct rt_xrcd_key *key, uint32_t flags,
		 struct rt_xrcd **ret)
{
	struct rt_xrcd *fresh, *old = NULL;
	int err = 0;

	if (rtdev_failed(d))
		return -EIO;
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh)
		return -ENOMEM;
	engine_lock(d);
	if (key)
		old = find(d, key);
	if (old && (flags & RT_XRCD_EXCL))
		err = -EINVAL;
	else if (old)
		old->opens++;
	else if (key && !(flags & RT_XRCD_CREATE))
		err = -EAGAIN;
	else
		err = make(d, fresh, key);
	engine_unlock(d);
	if (!err)
		*ret = old ? old : fresh;
	if (err || old)
		free(fresh);
	return err;
}

int rt_xrcd_close(struct rt_xrcd *x)
{
	struct rtdev *d = x->dev;
	bool last = true;
	int err = 0;

	if (!rtdev_dead(d)) {
		engine_lock(d);
		last = x->opens == 1;
		if (last)
			err = xrcd_destroy(x->xrcd);
		if (!err && last)
			dlist_remove(&x->node);
		if (!err)
			x->opens--;
		engine_unlock(d);
	}
	if (!err && last)
		free(x);
	return err;
}

int rt_qp_open(struct rt_xrcd *xrcd, uint32_t qpn, struct rt_evq *async,
	       void *user, struct rt_qp **ret)
{
	struct rtdev *d = xrcd->dev;
	struct rt_qp *q, *other;
	struct qp *qp;

	if (rtdev_failed(d))
		return -EIO;
	q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	rt_qp_init(q, d, async, user);
	engine_lock(d);
	qp = xrcd_qp(xrcd->xrcd, qpn);
	if (qp) {
		other = qp_user(qp);
		q->qp = qp;
		dlist_push_back(&other->holders, &q->holders);
	}
	engine_unlock(d);
	if (!qp) {
		free(q);
		return -EINVAL;
	}
	*ret = q;
	return 0;
}

bool rt_qp_leave(struct rt_qp *q)
{
	struct rt_qp *next =
		CONTAINER_OF(q->holders.next, struct rt_qp, holders);

	if (next == q)
		return false;
	dlist_remove(&q->holders);
	if (qp_user(q->qp) == q) {
		qp_set_user(q->qp, next);
		dlist_remove(&q->dev_node);
		dlist_push_back(&q->dev->qps, &next->dev_node);
	}
	return true;
}

void rt_qp_event(const struct qp *qp, enum async_type type)
{
	struct rt_qp *first = qp_user(qp), *q = first;

	do {
		evq_push_async(&q->async, type);
		q = CONTAINER_OF(q->holders.next, struct rt_qp, holders);
	} while (q != first);
}
