/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * qp_fsm.c - the queue pair's states as modify sees them [IBA 10.3.1, 11.2.4.2
 * and table 91].
 *
 *               modify        modify        modify
 *      RESET ----------> INIT -------> RTR -------> RTS <------> SQD
 *        ^                                           ^ |
 *        | modify, from any state             modify | | UC, UD: a send
 *        |                                           | v failed
 *       any ----------------> ERR                    SQE
 *            modify, or a
 *            fatal error
 *
 *   RESET  rings are empty; nothing may be posted
 *   INIT   receives may be posted
 *   RTR    path known; packets are received and answered
 *   RTS    sends are executed
 *   SQD    begun sends finish, no other is begun; then SQ_DRAINED
 *   SQE    sends are flushed, receiving goes on
 *   ERR    everything is flushed, whenever it was posted
 *
 * Whole calls are checked before anything changes. The two transitions that
 * happen without modify are in qp_done.c.
 */
#include <errno.h>

#include "core/obj/apm.h"
#include "core/obj/cq.h"
#include "core/obj/dest.h"
#include "core/obj/direct.h"
#include "core/obj/hca_priv.h"
#include "core/obj/path.h"
#include "core/obj/qp.h"

#define NSTATES (QP_STATE_ERR + 1)

/* Short names for the table alone. */
enum {
	CUR = QP_ATTR_CUR_STATE,
	SQDN = QP_ATTR_EN_SQD_ASYNC_NOTIFY,
	ACC = QP_ATTR_ACCESS_FLAGS,
	PKEY = QP_ATTR_PKEY_INDEX,
	PORT = QP_ATTR_PORT,
	QKEY = QP_ATTR_QKEY,
	AV = QP_ATTR_AV,
	PMTU = QP_ATTR_PATH_MTU,
	TOUT = QP_ATTR_TIMEOUT,
	RETRY = QP_ATTR_RETRY_CNT,
	RNRR = QP_ATTR_RNR_RETRY,
	RQPSN = QP_ATTR_RQ_PSN,
	ORD = QP_ATTR_MAX_QP_RD_ATOMIC,
	ALT = QP_ATTR_ALT_PATH,
	RNRT = QP_ATTR_MIN_RNR_TIMER,
	SQPSN = QP_ATTR_SQ_PSN,
	IRD = QP_ATTR_MAX_DEST_RD_ATOMIC,
	MIG = QP_ATTR_PATH_MIG_STATE,
	DQPN = QP_ATTR_DEST_QPN,
};

struct attr_set {
	uint32_t rc, uc, ud;
	uint32_t ini, tgt; /* XRC */
};

struct edge {
	bool valid;
	struct attr_set required, optional;
};

/* RESET and ERR can be entered from anywhere and take no attribute; those
 * edges are not listed. */
static const struct edge edges[NSTATES][NSTATES] = {
	[QP_STATE_RESET][QP_STATE_INIT] = {
		.valid = true,
		.required = { .rc = PKEY | PORT | ACC,
			      .uc = PKEY | PORT | ACC,
			      .ud = PKEY | PORT | QKEY,
			      .ini = PKEY | PORT | ACC,
			      .tgt = PKEY | PORT | ACC },
	},
	[QP_STATE_INIT][QP_STATE_INIT] = {
		.valid = true,
		.optional = { .rc = PKEY | PORT | ACC,
			      .uc = PKEY | PORT | ACC,
			      .ud = PKEY | PORT | QKEY,
			      .ini = PKEY | PORT | ACC,
			      .tgt = PKEY | PORT | ACC },
	},
	[QP_STATE_INIT][QP_STATE_RTR] = {
		.valid = true,
		.required = { .rc = AV | PMTU | DQPN | RQPSN | IRD | RNRT,
			      .uc = AV | PMTU | DQPN | RQPSN,
			      .ini = AV | PMTU | DQPN | RQPSN,
			      .tgt = AV | PMTU | DQPN | RQPSN | IRD | RNRT },
		.optional = { .rc = ALT | ACC | PKEY,
			      .uc = ALT | ACC | PKEY,
			      .ud = PKEY | QKEY,
			      .ini = ALT | ACC | PKEY,
			      .tgt = ALT | ACC | PKEY },
	},
	[QP_STATE_RTR][QP_STATE_RTS] = {
		.valid = true,
		.required = { .rc = TOUT | RETRY | RNRR | SQPSN | ORD,
			      .uc = SQPSN,
			      .ud = SQPSN,
			      .ini = TOUT | RETRY | RNRR | SQPSN | ORD,
			      .tgt = TOUT | SQPSN },
		.optional = { .rc = CUR | ALT | ACC | RNRT | MIG,
			      .uc = CUR | ALT | ACC | MIG,
			      .ud = CUR | QKEY,
			      .ini = CUR | ALT | ACC | MIG,
			      .tgt = CUR | ALT | ACC | RNRT | MIG },
	},
	[QP_STATE_RTS][QP_STATE_RTS] = {
		.valid = true,
		.optional = { .rc = CUR | ACC | ALT | MIG | RNRT,
			      .uc = CUR | ACC | ALT | MIG,
			      .ud = CUR | QKEY,
			      .ini = CUR | ACC | ALT | MIG,
			      .tgt = CUR | ACC | ALT | MIG | RNRT },
	},
	[QP_STATE_RTS][QP_STATE_SQD] = {
		.valid = true,
		.optional = { .rc = SQDN, .uc = SQDN, .ud = SQDN,
			      .ini = SQDN, .tgt = SQDN },
	},
	[QP_STATE_SQD][QP_STATE_SQD] = {
		.valid = true,
		.optional = { .rc = PORT | AV | TOUT | RETRY | RNRR | ORD |
				    IRD | ALT | ACC | PKEY | RNRT | MIG,
			      .uc = AV | ALT | ACC | PKEY | MIG,
			      .ud = PKEY | QKEY,
			      .ini = PORT | AV | TOUT | RETRY | RNRR | ORD |
				     ALT | ACC | PKEY | MIG,
			      .tgt = PORT | AV | TOUT | IRD | ALT | ACC | PKEY |
				     RNRT | MIG },
	},
	[QP_STATE_SQD][QP_STATE_RTS] = {
		.valid = true,
		.optional = { .rc = CUR | ALT | ACC | RNRT | MIG,
			      .uc = CUR | ALT | ACC | MIG,
			      .ud = CUR | QKEY,
			      .ini = CUR | ALT | ACC | MIG,
			      .tgt = CUR | ALT | ACC | RNRT | MIG },
	},
	[QP_STATE_SQE][QP_STATE_RTS] = {
		.valid = true,
		.optional = { .uc = CUR | ACC, .ud = CUR | QKEY },
	},
};

static uint32_t of_type(const struct attr_set *s, enum qp_type type)
{
	switch (type) {
	case QP_TYPE_RC:
		return s->rc;
	case QP_TYPE_UC:
		return s->uc;
	case QP_TYPE_UD:
		return s->ud;
	case QP_TYPE_XRC_INI:
		return s->ini;
	case QP_TYPE_XRC_TGT:
		return s->tgt;
	}
	return 0;
}

/* The transition and its attributes, values aside. */
static int check_edge(enum qp_type type, enum qp_state from, enum qp_state to,
		      uint32_t mask)
{
	const struct edge *e = &edges[from][to];
	uint32_t rest = mask & ~(uint32_t)QP_ATTR_STATE;
	uint32_t required;

	if (to == QP_STATE_RESET || to == QP_STATE_ERR)
		return rest ? -EINVAL : 0;
	if (!e->valid)
		return -EINVAL;
	required = of_type(&e->required, type);
	if ((rest & required) != required ||
	    (rest & ~(required | of_type(&e->optional, type))))
		return -EINVAL;
	return 0;
}

static bool scalars_ok(const struct hca *hca, const struct qp_attr *a,
		       uint32_t mask)
{
	const struct hca_limits *l = &hca->cfg.limits;

	if ((mask & PORT) && a->port_num != 1)
		return false;
	if ((mask & PKEY) && !hca_pkey(hca, a->pkey_index))
		return false;
	if ((mask & ALT) &&
	    (a->alt_port_num != 1 || !hca_pkey(hca, a->alt_pkey_index) ||
	     a->alt_timeout > 31))
		return false;
	if ((mask & DQPN) && a->dest_qpn > 0xffffff)
		return false;
	if ((mask & TOUT) && a->timeout > 31)
		return false;
	if ((mask & RETRY) && a->retry_cnt > 7)
		return false;
	if ((mask & RNRR) && a->rnr_retry > 7)
		return false;
	if ((mask & RNRT) && a->min_rnr_timer > 31)
		return false;
	if ((mask & ORD) && a->max_rd_atomic > l->max_rd_atomic)
		return false;
	if ((mask & IRD) && a->max_dest_rd_atomic > l->max_rd_atomic)
		return false;
	/* ARMED is entered by hearing from the peer alone. */
	return !(mask & MIG) || a->mig_state == MIG_STATE_MIGRATED ||
	       a->mig_state == MIG_STATE_REARM;
}

static bool mtu_ok(const struct hca *hca, const struct qp_attr *a,
		   const struct path *path)
{
	return a->path_mtu >= MTU_256 && a->path_mtu <= hca_active_mtu(hca) &&
	       a->path_mtu <= path_max_mtu(hca, path, a->ah.sgid_index);
}

static int check_values(const struct qp *qp, const struct qp_attr *a,
			uint32_t mask, struct path *path)
{
	const struct hca *hca = qp->hca;
	struct path alt;
	int rc;

	if (!scalars_ok(hca, a, mask))
		return -EINVAL;
	if ((mask & MIG) && a->mig_state == MIG_STATE_REARM && !(mask & ALT) &&
	    gid_is_zero(&qp->alt_path.dgid))
		return -EINVAL; /* nothing to migrate to */
	if (mask & ALT) {
		rc = path_resolve(hca, &a->alt_ah, &alt);
		if (rc)
			return rc;
	}
	if (mask & AV) {
		rc = path_resolve(hca, &a->ah, path);
		if (rc)
			return rc;
	}
	if ((mask & PMTU) && !mtu_ok(hca, a, path)) /* comes with an AV */
		return -EINVAL;
	return 0;
}

static void store_path(struct qp_attr *to, const struct qp_attr *a,
		       uint32_t mask)
{
	if (mask & AV)
		to->ah = a->ah;
	if (mask & PMTU)
		to->path_mtu = a->path_mtu;
	if (mask & DQPN)
		to->dest_qpn = a->dest_qpn;
	if (mask & ALT) {
		to->alt_ah = a->alt_ah;
		to->alt_pkey_index = a->alt_pkey_index;
		to->alt_port_num = a->alt_port_num;
		to->alt_timeout = a->alt_timeout;
	}
}

static void store_requester(struct qp_attr *to, const struct qp_attr *a,
			    uint32_t mask)
{
	if (mask & TOUT)
		to->timeout = a->timeout;
	if (mask & RETRY)
		to->retry_cnt = a->retry_cnt;
	if (mask & RNRR)
		to->rnr_retry = a->rnr_retry;
	if (mask & SQPSN)
		to->sq_psn = a->sq_psn & PSN_MASK;
	if (mask & ORD)
		to->max_rd_atomic = a->max_rd_atomic;
	if (mask & SQDN)
		to->en_sqd_async_notify = a->en_sqd_async_notify;
}

static void store_common(struct qp_attr *to, const struct qp_attr *a,
			 uint32_t mask)
{
	if (mask & PORT)
		to->port_num = a->port_num;
	if (mask & PKEY)
		to->pkey_index = a->pkey_index;
	if (mask & QKEY)
		to->qkey = a->qkey;
	if (mask & ACC)
		to->access = a->access;
	if (mask & RQPSN)
		to->rq_psn = a->rq_psn & PSN_MASK;
	if (mask & IRD)
		to->max_dest_rd_atomic = a->max_dest_rd_atomic;
	if (mask & RNRT)
		to->min_rnr_timer = a->min_rnr_timer;
}

static void set_alternate(struct qp *qp)
{
	const struct qp_attr *a = &qp->attr;
	int rc = path_resolve(qp->hca, &a->alt_ah, &qp->alt_path);

	ASSERT(!rc); /* it was tried before */
	qp->alt_path.sport =
		path_sport(qp->alt_path.flow_label, qp->qpn, a->dest_qpn);
}

/* To MIGRATED from ARMED is a migration, from REARM none. */
static void set_mig_state(struct qp *qp, enum mig_state to)
{
	if (to != MIG_STATE_MIGRATED || !apm_migrate(qp))
		qp->attr.mig_state = to;
}

/* What follows from the attributes. */
static void derive(struct qp *qp, uint32_t mask, const struct path *path)
{
	struct qp_attr *a = &qp->attr;

	if (mask & PKEY)
		qp->pkey = hca_pkey(qp->hca, a->pkey_index);
	if (mask & PMTU)
		qp->mtu = mtu_bytes(a->path_mtu);
	if (mask & ALT)
		set_alternate(qp);
	if (mask & AV) {
		qp->path = *path;
		qp->path.sport =
			path_sport(path->flow_label, qp->qpn, a->dest_qpn);
		qp_set_sl(qp, path->sl);
	}
}

static void choose_out(struct qp *qp, const struct qp_attr *attr, uint32_t mask,
		       struct path *path)
{
	const struct hca *hca = qp->hca;

	if (hca->ops->path_out)
		hca->ops->path_out(hca->ops_ctx, path,
				   mask & DQPN ? attr->dest_qpn
					       : qp->attr.dest_qpn);
	/* Accounts by reference are of connections that acknowledge. */
	if (qp->type != QP_TYPE_RC)
		path->frame_bytes = 0;
}

/* The account of the peer's process, once the peer is known. */
static int join_dest(struct qp *qp, const struct qp_attr *attr,
		     const struct path *path, enum qp_state to)
{
	if (!qp->ops->reliable || to != QP_STATE_RTR)
		return 0;
	ASSERT(!qp->dest);
	qp->dest = dest_get(qp->hca, path, attr->dest_qpn);
	return qp->dest ? 0 : -ENOMEM;
}

static void enter(struct qp *qp, enum qp_state from, enum qp_state to,
		  int64_t now_ns)
{
	if (from == QP_STATE_RTS && to == QP_STATE_SQD)
		qp->attr.sq_draining = true;
	if (to == QP_STATE_RTS)
		qp->attr.sq_draining = false;
	atomic_store_explicit(&qp->state, to, memory_order_release);
	qp->ops->enter(qp, from, now_ns);
	if (to == QP_STATE_RESET) {
		qp_forget(qp); /* after the transport gave back what it held */
		qp_forget_cqes(qp);
	}
	if (to == QP_STATE_SQD)
		qp_sqd_check(qp);
	if (to == QP_STATE_RTS)
		qp_sched(qp); /* what was posted in SQD */
}

static int check_states(const struct qp *qp, const struct qp_attr *attr,
			uint32_t mask, enum qp_state *ret_to)
{
	enum qp_state from = qp_state(qp);
	enum qp_state to = mask & QP_ATTR_STATE ? attr->state : from;

	if ((unsigned)to >= NSTATES)
		return -EINVAL;
	if ((mask & CUR) && attr->cur_state != from)
		return -EINVAL;
	if (qp->tx_unfinished && (to == QP_STATE_RESET || (mask & AV)))
		return -EBUSY;
	*ret_to = to;
	return check_edge(qp->type, from, to, mask);
}

int qp_modify(struct qp *qp, const struct qp_attr *attr, uint32_t mask,
	      int64_t now_ns)
{
	enum qp_state from = qp_state(qp), to;
	struct path path = { 0 };
	int rc;

	qp->hca->now_ns = now_ns;
	rc = check_states(qp, attr, mask, &to);
	if (rc)
		return rc;
	rc = check_values(qp, attr, mask, &path);
	if (rc)
		return rc;
	if (qp->ops->prepare)
		rc = qp->ops->prepare(qp, attr, mask);
	if (rc)
		return rc;
	if (mask & AV)
		choose_out(qp, attr, mask, &path);
	rc = join_dest(qp, attr, &path, to);
	if (rc)
		return rc;
	store_common(&qp->attr, attr, mask);
	store_path(&qp->attr, attr, mask);
	store_requester(&qp->attr, attr, mask);
	if (from == QP_STATE_RTS && to == QP_STATE_SQD && !(mask & SQDN))
		qp->attr.en_sqd_async_notify = false; /* asked for each time */
	derive(qp, mask, &path);
	if (mask & MIG)
		set_mig_state(qp, attr->mig_state);
	if (to == QP_STATE_ERR)
		qp_error(qp, now_ns);
	else
		enter(qp, from, to, now_ns);
	direct_grant_changed(qp);
	cq_settle(qp->hca);
	return 0;
}
