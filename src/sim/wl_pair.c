/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * wl_pair.c - connections of the workload: from creation to death.
 */
#include <errno.h>
#include <string.h>

#include "sim/wl_priv.h"

/* With memory that runs out on the way: nothing may be left behind, which the
 * balance at the end tells. */
static void create_starved(struct wl_end *e, const struct qp_init *init)
{
	struct simmem *m = &e->host->sim.mem;
	struct qp_cap cap;
	struct qp *qp;
	int rc;

	m->fail_alloc_after = 1 + (uint32_t)prng_below(&e->host->rng, 6);
	rc = qp_create(e->host->pd, init, &cap, &qp);
	m->fail_alloc_after = 0;
	if (!rc)
		rc = qp_destroy(qp);
	if (rc && rc != -ENOMEM)
		wl_fail(e->pair->wl, "create without memory (end, -errno)",
			wl_end_id(e), (uint64_t)-rc, 0);
}

static int create_qp(struct wl_end *e)
{
	struct wl *wl = e->pair->wl;
	struct qp_init init = {
		.type = wl->cfg.type,
		.send_cq = e->host->cq[0],
		.recv_cq = e->host->cq[1],
		.srq = e->rq->srq,
		.cap = { .max_send_wr = wl->depth,
			 .max_recv_wr = e->rq->srq ? 0 : e->rq->depth,
			 .max_send_sge = wl->sges,
			 .max_recv_sge = e->rq->srq ? 0 : wl->sges,
			 .max_inline_bytes = WL_INLINE },
		.sq_sig_all = wl->sig_all,
		.user = e,
	};
	struct qp_cap cap;
	int rc = 0;

	if (prng_chance(&e->host->rng, 100000))
		create_starved(e, &init);
	rc = qp_create(e->host->pd, &init, &cap, &e->qp);
	if (rc)
		return rc;
	e->qpn = qp_num(e->qp);
	e->psn = prng_u32(&e->host->rng) & PSN_MASK;
	/* Wraps are where the faults are. */
	if (prng_chance(&e->host->rng, 300000))
		e->psn = PSN_MASK - (uint32_t)prng_below(&e->host->rng, 64);
	return 0;
}

static int to_init(struct wl_end *e)
{
	bool ud = e->pair->wl->cfg.type == QP_TYPE_UD;
	uint32_t access = ACCESS_REMOTE_WRITE;
	struct qp_attr a = { .state = QP_STATE_INIT, .port_num = 1 };

	if (e->pair->wl->cfg.type == QP_TYPE_RC)
		access |= ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;
	a.access = access;
	a.qkey = WL_QKEY;
	return qp_modify(e->qp, &a,
			 QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT |
				 (ud ? QP_ATTR_QKEY : QP_ATTR_ACCESS_FLAGS),
			 e->pair->wl->world.now_ns);
}

static struct ah_attr to_peer(const struct wl_end *e)
{
	return (struct ah_attr){
		.is_global = true,
		.dgid = hca_gid(e->peer->host->sim.hca, 0)->gid,
		.hop_limit = 64,
		.traffic_class = 0x20,
		.flow_label = e->qpn & 0xfffff,
		.port_num = 1,
	};
}

static int to_rtr(struct wl_end *e)
{
	const struct wl *wl = e->pair->wl;
	uint32_t mask = QP_ATTR_STATE;
	struct qp_attr a = wl->attr;

	a.state = QP_STATE_RTR;
	a.path_mtu = wl->mtu;
	a.dest_qpn = e->peer->qpn;
	a.rq_psn = e->peer->psn;
	a.ah = to_peer(e);
	if (wl->cfg.type != QP_TYPE_UD)
		mask |= QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
			QP_ATTR_RQ_PSN;
	if (wl->cfg.type == QP_TYPE_RC)
		mask |= QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER;
	return qp_modify(e->qp, &a, mask, wl->world.now_ns);
}

static int to_rts(struct wl_end *e)
{
	const struct wl *wl = e->pair->wl;
	uint32_t mask = QP_ATTR_STATE | QP_ATTR_SQ_PSN;
	struct qp_attr a = wl->attr;

	a.state = QP_STATE_RTS;
	a.sq_psn = e->psn;
	if (wl->cfg.type == QP_TYPE_RC)
		mask |= QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT |
			QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC;
	return qp_modify(e->qp, &a, mask, wl->world.now_ns);
}

static int connect_end(struct wl_end *e)
{
	struct wl *wl = e->pair->wl;
	struct ah_attr ah = to_peer(e);
	int rc;

	e->failed = false;
	e->sentinels = 0;
	e->recv_done = e->rq->srq ? 0 : e->rq->next_serial;
	e->out.conn_first = e->out.received = e->out.posted;
	e->out.retired = e->out.done = e->out.posted;
	rc = to_init(e);
	if (!rc && wl->cfg.type == QP_TYPE_UD)
		rc = ah_create(e->host->pd, &ah, &e->ah);
	if (rc)
		return rc;
	wl_post_receives(e);
	rc = to_rtr(e);
	if (!rc)
		rc = to_rts(e);
	qp_set_direct(e->qp, wl->cfg.direct);
	if (!rc)
		wirewatch_add(&wl->watch, e->host->sim.end, e->qpn,
			      e->peer->qpn, psn_of(e->psn));
	return rc;
}

int wl_pair_connect(struct wl_pair *p)
{
	int rc = 0;

	for (unsigned i = 0; i < 2 && !rc; i++)
		rc = create_qp(&p->end[i]);
	for (unsigned i = 0; i < 2 && !rc; i++)
		rc = connect_end(&p->end[i]);
	p->up = !rc;
	return rc;
}

/* Everything that this end posted must have completed by now: draining never
 * waits for the network. */
static void check_drained(struct wl_end *e)
{
	struct wl *wl = e->pair->wl;
	uint32_t owed = e->rq->srq ? 1 : 2;

	if (e->out.done != e->out.posted)
		wl_fail(wl, "sends of a dead QP never completed (end, n, of)",
			wl_end_id(e), e->out.done, e->out.posted);
	if (!e->rq->srq && e->rq->num_posted)
		wl_fail(wl, "receives of a dead QP never completed (end, n)",
			wl_end_id(e), e->rq->num_posted, 0);
	if (e->sentinels != owed)
		wl_fail(wl, "posts to a dead QP were not flushed (end, n, of)",
			wl_end_id(e), e->sentinels, owed);
}

/* A message that was acknowledged is with its receiver. */
static void check_received(struct wl_end *e)
{
	struct wl *wl = e->pair->wl;
	const struct flow *f = &e->out;

	if (!f->ordered && !wl->clean)
		return;
	for (uint32_t i = f->conn_first; i < f->retired; i++)
		if (msg_takes_receive(&f->msgs[i]) && !f->msgs[i].received)
			wl_fail(wl, "message completed but not received",
				wl_end_id(e), i, f->msgs[i].kind);
}

void wl_revoke(struct wl_end *e)
{
	int rc = mr_dereg(e->target.mr);

	if (rc)
		wl_fail(e->pair->wl, "dereg refused (end, -errno)",
			wl_end_id(e), (uint64_t)-rc, 0);
	e->target.mr = NULL;
	memcpy(e->revoked, e->host->sim.mem.bytes + e->target.off,
	       e->target.len);
}

static void restore_target(struct wl_end *e)
{
	struct wl *wl = e->pair->wl;

	if (e->target.mr || !e->target.len)
		return;
	if (memcmp(e->revoked, e->host->sim.mem.bytes + e->target.off,
		   e->target.len))
		wl_fail(wl, "memory changed after its deregistration (end)",
			wl_end_id(e), 0, 0);
	if (wl_area_reg(e->host, e->host->pd, &e->target))
		wl_fail(wl, "registering again failed (end)", wl_end_id(e), 0,
			0);
}

static void settle(struct wl_end *e)
{
	struct wl *wl = e->pair->wl;
	uint64_t off = 0;
	const char *bad;

	for (uint32_t i = e->out.retired; i < e->out.posted; i++)
		if (e->out.msgs[i].shared)
			e->peer->host->adds_unsure++;
	bad = flow_settle(&e->out, &off);
	if (bad)
		wl_fail(wl, bad, wl_end_id(e), e->out.retired, off);
	e->slots_used = 0;
}

static void destroy_end(struct wl_end *e)
{
	int rc;

	simhost_drain(&e->host->sim);
	wirewatch_remove(&e->pair->wl->watch, e->host->sim.end, e->qpn);
	rc = qp_destroy(e->qp);
	if (!rc && e->ah)
		rc = ah_destroy(e->ah);
	if (rc)
		wl_fail(e->pair->wl, "destroy refused (end, -errno)",
			wl_end_id(e), (uint64_t)-rc, 0);
	e->qp = NULL;
	e->ah = NULL;
}

void wl_pair_end(struct wl_pair *p)
{
	struct wl *wl = p->wl;
	struct qp_attr err = { .state = QP_STATE_ERR };

	for (unsigned i = 0; i < 2; i++) {
		struct wl_end *e = &p->end[i];

		e->failed = true;
		if (qp_modify(e->qp, &err, QP_ATTR_STATE, wl->world.now_ns))
			wl_fail(wl, "QP refused the error state", wl_end_id(e),
				qp_state(e->qp), 0);
		simhost_kick(&e->host->sim);
	}
	for (unsigned i = 0; i < 2; i++) {
		wl_post_sentinels(&p->end[i]);
		simhost_kick(&p->end[i].host->sim);
	}
	for (unsigned i = 0; i < 4; i++)
		wl_poll(&wl->host[i / 2], i % 2, UINT32_MAX);
	for (unsigned i = 0; i < 2; i++) {
		check_drained(&p->end[i]);
		check_received(&p->end[i]);
	}
	for (unsigned i = 0; i < 2; i++)
		settle(&p->end[i]);
	for (unsigned i = 0; i < 2; i++)
		restore_target(&p->end[i]);
	for (unsigned i = 0; i < 2; i++)
		destroy_end(&p->end[i]);
	p->up = false;
	/* Until nothing of the old connection is on the cable. */
	p->reconnect_at_ns = wl->world.now_ns + wl_cable_quiet_ns(wl);
}
