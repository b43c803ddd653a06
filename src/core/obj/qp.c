/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/qp.h"

#include <errno.h>
#include <string.h>

#include "core/obj/cq.h"
#include "core/obj/dest.h"
#include "core/obj/hca_priv.h"
#include "core/obj/idtab.h"
#include "core/obj/mw.h"
#include "core/obj/pd.h"
#include "core/obj/qp_bell.h"
#include "core/obj/srq.h"
#include "core/xrc/xrcd.h"

static const struct transport_ops *ops_of(enum qp_type type)
{
	switch (type) {
	case QP_TYPE_RC:
		return &rc_transport;
	case QP_TYPE_UC:
		return &uc_transport;
	case QP_TYPE_UD:
		return &ud_transport;
	case QP_TYPE_XRC_INI:
		return &xrc_ini_transport;
	case QP_TYPE_XRC_TGT:
		return &xrc_tgt_transport;
	}
	return NULL;
}

static bool has_own_rq(const struct qp_init *init)
{
	return !init->srq && init->type != QP_TYPE_XRC_INI &&
	       init->type != QP_TYPE_XRC_TGT;
}

/* What each type is made of, and nothing else. */
static bool parts_ok(const struct pd *pd, const struct qp_init *init)
{
	switch (init->type) {
	case QP_TYPE_XRC_TGT:
		return !pd && init->xrcd && !init->send_cq && !init->recv_cq &&
		       !init->srq;
	case QP_TYPE_XRC_INI: /* (bug log B112) */
		return pd && init->send_cq && !init->recv_cq && !init->srq &&
		       !init->xrcd;
	default:
		return pd && init->send_cq && init->recv_cq && !init->xrcd &&
		       (!init->srq || !init->srq->xrcd);
	}
}

static bool cap_ok(const struct hca_limits *l, const struct qp_init *init)
{
	const struct qp_cap *c = &init->cap;

	if (c->max_send_wr > l->max_qp_wr || c->max_send_sge > l->max_sge ||
	    c->max_inline_bytes > l->max_inline_bytes)
		return false;
	/* Without a receive queue of its own its numbers mean nothing. */
	return !has_own_rq(init) || (c->max_recv_wr <= l->max_qp_wr &&
				     c->max_recv_sge <= l->max_sge);
}

static uint32_t at_least_1(uint32_t n)
{
	return n ? n : 1;
}

static int rings_init(struct qp *qp, const struct qp_init *init)
{
	const struct qp_cap *c = &init->cap;
	int rc;

	bool target = init->type == QP_TYPE_XRC_TGT;

	rc = wring_init_send(&qp->sq, qp->hca, target ? 0 : c->max_send_wr,
			     at_least_1(c->max_send_sge), c->max_inline_bytes);
	if (rc)
		return rc;
	rc = wring_init_recv(&qp->rq, qp->hca,
			     has_own_rq(init) ? c->max_recv_wr : 0,
			     at_least_1(c->max_recv_sge));
	if (rc)
		goto err_sq;
	if (init->srq || target) {
		qp->srq_wqe = hca_alloc(qp->hca,
					init->srq ? init->srq->rq.stride_bytes
						  : srq_wqe_max(qp->hca));
		if (!qp->srq_wqe) {
			rc = -ENOMEM;
			goto err_rq;
		}
	}
	return 0;
err_rq:
	wring_fini(&qp->rq, qp->hca);
err_sq:
	wring_fini(&qp->sq, qp->hca);
	return rc;
}

static void rings_fini(struct qp *qp)
{
	hca_release(qp->hca, qp->srq_wqe);
	wring_fini(&qp->rq, qp->hca);
	wring_fini(&qp->sq, qp->hca);
}

static void set_fields(struct qp *qp, struct pd *pd, const struct qp_init *init)
{
	qp->pd = pd;
	qp->send_cq = init->send_cq;
	qp->recv_cq = init->recv_cq;
	qp->srq = init->srq;
	qp->xrcd = init->xrcd;
	qp->own_rq = has_own_rq(init);
	qp->user = init->user;
	qp->type = init->type;
	qp->sq_sig_all = init->sq_sig_all;
	atomic_init(&qp->state, QP_STATE_RESET);
	atomic_init(&qp->rung, false);
	dlist_init(&qp->sched_node);
	event_init(&qp->events, EVENT_OWNER_QP);
	qp->cap = (struct qp_cap){
		.max_send_wr = qp->sq.capacity,
		.max_recv_wr = qp->rq.capacity,
		.max_send_sge = qp->sq.max_sge,
		.max_recv_sge = qp->own_rq ? qp->rq.max_sge : 0,
		.max_inline_bytes = qp->sq.max_inline_bytes,
	};
}

static void count_refs(struct qp *qp, int by)
{
	if (qp->xrcd) { /* an SRQ of the domain does not wait for us */
		qp->xrcd->refs += (uint32_t)by;
		return;
	}
	qp->pd->refs += (uint32_t)by;
	qp->send_cq->refs += (uint32_t)by;
	if (qp->recv_cq)
		qp->recv_cq->refs += (uint32_t)by;
	if (qp->srq)
		qp->srq->refs += (uint32_t)by;
}

int qp_create(struct pd *pd, const struct qp_init *init, struct qp_cap *ret_cap,
	      struct qp **ret_qp)
{
	const struct transport_ops *ops = ops_of(init->type);
	struct hca *hca;
	uint32_t idx;
	struct qp *qp;
	int rc;

	if (!ops || !parts_ok(pd, init))
		return -EINVAL;
	hca = pd ? pd->hca : init->xrcd->hca;
	if (!cap_ok(&hca->cfg.limits, init))
		return -EINVAL;
	qp = hca_alloc(hca, sizeof(*qp) + ops->state_bytes);
	if (!qp)
		return -ENOMEM;
	qp->hca = hca;
	qp->ops = ops;
	dlist_init(&qp->windows);
	rc = rings_init(qp, init);
	if (rc)
		goto err_qp;
	set_fields(qp, pd, init);
	cc_init(qp);
	qp_forget(qp);
	ops->init(qp);
	/* Last: from here on packets find it (bug log B115). */
	rc = idtab_add(hca->qps, qp, &idx);
	if (rc)
		goto err_transport;
	qp->qpn = hca->cfg.qpn_base | idx;
	count_refs(qp, 1);
	*ret_cap = qp->cap;
	*ret_qp = qp;
	return 0;
err_transport:
	ops->fini(qp);
	rings_fini(qp);
err_qp:
	hca_release(hca, qp);
	return rc;
}

void qp_forget_cqes(struct qp *qp)
{
	if (qp->xrcd)
		return;
	cq_forget_qp(qp->send_cq, qp->qpn);
	if (qp->recv_cq && qp->recv_cq != qp->send_cq)
		cq_forget_qp(qp->recv_cq, qp->qpn);
}

int qp_destroy(struct qp *qp)
{
	struct hca *hca = qp->hca;

	if (qp->tx_unfinished || qp_mcast_group(qp, &(struct gid){ 0 }))
		return -EBUSY;
	mw_qp_gone(qp);
	qp->ops->fini(qp);
	cc_stop(qp);
	qp_unsched(qp);
	qp_unring(qp);
	event_forget(&qp->events);
	dest_put(hca, qp->dest);
	qp_forget_cqes(qp);
	idtab_remove(hca->qps, qp->qpn & ~hca->cfg.qpn_base);
	count_refs(qp, -1);
	rings_fini(qp);
	hca_release(hca, qp);
	return 0;
}

void qp_forget(struct qp *qp)
{
	cc_stop(qp);
	cc_init(qp);
	qp_unsched(qp);
	wring_reset(&qp->sq);
	wring_reset(&qp->rq);
	qp->recv_taken = false;
	if (qp->xrcd) {
		qp->srq = NULL;
		qp->recv_cq = NULL;
	}
	qp->comm_est = false;
	qp->direct = false;
	qp->burst_left = 0;
	dest_put(qp->hca, qp->dest);
	qp->dest = NULL;
	qp->attr = (struct qp_attr){ .cap = qp->cap };
	qp->path = (struct path){ 0 };
	qp->alt_path = (struct path){ 0 };
	qp->mtu = 0;
	qp->pkey = 0;
	qp->sl = 0;
}

void qp_query(const struct qp *qp, struct qp_attr *ret_attr,
	      struct qp_init *ret_init)
{
	*ret_attr = qp->attr;
	ret_attr->state = qp_state(qp);
	ret_attr->cur_state = ret_attr->state;
	*ret_init = (struct qp_init){
		.type = qp->type,
		.send_cq = qp->send_cq,
		.recv_cq = qp->recv_cq,
		.srq = qp->srq,
		.xrcd = qp->xrcd,
		.cap = qp->cap,
		.sq_sig_all = qp->sq_sig_all,
		.user = qp->user,
	};
}

uint32_t qp_num(const struct qp *qp)
{
	return qp->qpn;
}

enum qp_state qp_state(const struct qp *qp)
{
	return (enum qp_state)atomic_load_explicit(&qp->state,
						   memory_order_acquire);
}

void *qp_user(const struct qp *qp)
{
	return qp->user;
}

void qp_set_user(struct qp *qp, void *user)
{
	qp->user = user;
}

const struct path *qp_path(const struct qp *qp)
{
	return &qp->path;
}

const struct pd *qp_recv_pd(const struct qp *qp)
{
	return qp->srq ? qp->srq->pd : qp->pd;
}

struct budget *qp_dest_budget(struct qp *qp)
{
	return qp->dest ? &qp->dest->budget : NULL;
}
