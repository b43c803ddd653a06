/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * hca.c - the adapter's life, its port, its clock and its doorbells.
 */
#include "core/hca.h"

#include <errno.h>

#include "core/obj/ah.h"
#include "core/obj/cq.h"
#include "core/obj/hca_priv.h"
#include "core/obj/idtab.h"
#include "core/obj/mcast.h"
#include "core/obj/mr.h"
#include "core/obj/mw.h"
#include "core/obj/pd.h"
#include "core/obj/qp.h"
#include "core/obj/qp_bell.h"
#include "core/obj/srq.h"
#include "core/xrc/xrcd.h"

#define BURST_DEFAULT 16
#define DIRECT_BYTES_DEFAULT (1u << 20)
#define INDEX_MAX 0xffffffu /* 24 bits: a key has 8 more */

const struct hca_limits hca_limits_default = {
	.max_qp = 65536,
	.max_cq = 65536,
	.max_mr = 1 << 20,
	.max_mw = 1 << 20,
	.max_pd = 32768,
	.max_srq = 32768,
	.max_ah = 65536,
	.max_qp_wr = 32768,
	.max_cqe = 4194304,
	.max_srq_wr = 32768,
	.max_sge = 32,
	.max_sge_rd = 32,
	.max_inline_bytes = 1024,
	.max_rd_atomic = 128,
	.max_mr_bytes = 1ull << 48,
	.max_msg_bytes = 1u << 31,
	.gid_table_len = HCA_GIDS_MAX,
	.pkey_table_len = 1,
};

static bool limits_ok(const struct hca_limits *l)
{
	return l->max_qp && l->max_cq && l->max_mr &&
	       l->max_mr <= INDEX_MAX / 2 && l->max_mw <= INDEX_MAX / 2 &&
	       l->max_pd && l->max_srq && l->max_ah && l->max_sge &&
	       l->max_sge <= UINT16_MAX && l->max_sge_rd <= l->max_sge &&
	       l->max_inline_bytes <= 65536 && l->max_rd_atomic <= 255 &&
	       l->max_msg_bytes <= 1u << 31 && l->max_qp_wr <= 1u << 20 &&
	       l->max_srq_wr <= 1u << 20 && l->max_cqe <= 1u << 24 &&
	       l->gid_table_len >= 1 && l->gid_table_len <= HCA_GIDS_MAX &&
	       l->pkey_table_len >= 1 && l->pkey_table_len <= HCA_PKEYS_MAX;
}

static bool config_ok(const struct hca_config *c)
{
	if (!c->link_layer || !c->node_guid || !limits_ok(&c->limits))
		return false;
	if (c->cc && dcqcn_params_check(&c->cc_params))
		return false;
	if (c->cnp_sl > 15 || c->cnp_dscp > 63)
		return false;
	if (c->qpn_bits < 8 || c->qpn_bits > 24 || c->qpn_base > 0xffffff)
		return false;
	return (c->qpn_base & ((1u << c->qpn_bits) - 1)) == 0;
}

/* QPN indices: never 0, so that no QPN is; never those of QP0 and QP1, nor
 * that of multicast. */
static struct idtab *qp_table(struct hca *hca)
{
	uint32_t hi = (1u << hca->cfg.qpn_bits) - 1;

	if ((hca->cfg.qpn_base | hi) == BTH_QPN_MULTICAST)
		hi--;
	return idtab_new(hca, hca->cfg.qpn_base ? 1 : 2, hi,
			 hca->cfg.limits.max_qp);
}

static bool tables_new(struct hca *hca)
{
	struct hca_limits *l = &hca->cfg.limits;

	hca->qps = qp_table(hca);
	hca->mkeys = idtab_new(hca, 1, INDEX_MAX, l->max_mr + l->max_mw);
	hca->cqs = idtab_new(hca, 1, INDEX_MAX, l->max_cq);
	hca->srqs = idtab_new(hca, 1, INDEX_MAX, l->max_srq);
	hca->pds = idtab_new(hca, 1, INDEX_MAX, l->max_pd);
	hca->ahs = idtab_new(hca, 1, INDEX_MAX, l->max_ah);
	hca->xrcds = idtab_new(hca, 1, INDEX_MAX, l->max_pd);
	if (!hca->qps || !hca->mkeys || !hca->cqs || !hca->srqs || !hca->pds ||
	    !hca->ahs || !hca->xrcds)
		return false;
	/* What is advertised can be had. */
	l->max_qp = hca->qps->max;
	return true;
}

static void tables_free(struct hca *hca)
{
	struct idtab *t[] = { hca->qps, hca->mkeys, hca->cqs,  hca->srqs,
			      hca->pds, hca->ahs,   hca->xrcds };

	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		if (t[i])
			idtab_free(t[i]);
}

struct hca *hca_new(const struct hca_config *cfg, const struct hca_ops *ops,
		    void *ops_ctx, int64_t now_ns)
{
	struct hca *hca;

	if (!config_ok(cfg))
		return NULL;
	hca = ops->alloc(ops_ctx, sizeof(*hca), 64);
	if (!hca)
		return NULL;
	hca->cfg = *cfg;
	if (!hca->cfg.burst_pkts)
		hca->cfg.burst_pkts = BURST_DEFAULT;
	if (!hca->cfg.direct_bytes)
		hca->cfg.direct_bytes = DIRECT_BYTES_DEFAULT;
	hca->direct_left = hca->cfg.direct_bytes;
	hca->ops = ops;
	hca->ops_ctx = ops_ctx;
	hca->now_ns = now_ns;
	prng_init(&hca->rng, cfg->seed);
	twheel_init(&hca->wheel, now_ns);
	atomic_init(&hca->bells, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(hca->ready); i++)
		dlist_init(&hca->ready[i]);
	dlist_init(&hca->parked);
	dlist_init(&hca->events);
	dlist_init(&hca->mcasts);
	dlist_init(&hca->overruns);
	dlist_init(&hca->dests);
	dlist_init(&hca->cnps);
	budget_init(&hca->read_budget, cfg->read_budget_bytes);
	event_init(&hca->port_events, EVENT_OWNER_PORT);
	hca->pkeys[0] = BTH_PKEY_DEFAULT;
	cm_init(hca);
	if (!tables_new(hca) || gsi_init(hca)) {
		tables_free(hca);
		hca_release(hca, hca);
		return NULL;
	}
	return hca;
}

static void qp_force(struct qp *qp)
{
	qp->tx_unfinished = 0;
	mcast_forget_qp(qp);
	if (qp_destroy(qp))
		ASSERT(!"qp_destroy");
}

static void mkeys_destroy(struct hca *hca)
{
	uint32_t pos;
	struct mkey *k;

	for (pos = 0; (k = idtab_next(hca->mkeys, &pos));)
		if (k->window)
			ASSERT(mw_destroy(mw_of(k)) == 0);
	for (pos = 0; (k = idtab_next(hca->mkeys, &pos));)
		ASSERT(mr_dereg(mr_of(k)) == 0);
}

/* Users before what they use. */
static void destroy_all(struct hca *hca)
{
	uint32_t pos;
	void *p;

	for (pos = 0; (p = idtab_next(hca->qps, &pos));)
		qp_force(p);
	for (pos = 0; (p = idtab_next(hca->srqs, &pos));)
		ASSERT(srq_destroy(p) == 0);
	for (pos = 0; (p = idtab_next(hca->xrcds, &pos));)
		ASSERT(xrcd_destroy(p) == 0);
	for (pos = 0; (p = idtab_next(hca->cqs, &pos));)
		ASSERT(cq_destroy(p) == 0);
	mkeys_destroy(hca);
	for (pos = 0; (p = idtab_next(hca->ahs, &pos));)
		ASSERT(ah_destroy(p) == 0);
	for (pos = 0; (p = idtab_next(hca->pds, &pos));)
		ASSERT(pd_destroy(p) == 0);
}

void hca_free(struct hca *hca, bool force)
{
	if (force)
		destroy_all(hca);
	cm_fini(hca);
	gsi_fini(hca);
	tables_free(hca); /* asserts that each is empty */
	ASSERT(dlist_empty(&hca->dests));
	hca_release(hca, hca);
}

/* What a rung doorbell asks for depends on the state at this moment, not on
 * the one at the post: a WQE that was published after the flush of a failing
 * QP is flushed here (bug log B028, B044). */
static void answer_bell(struct qp *qp, int64_t now_ns)
{
	switch (qp_state(qp)) {
	case QP_STATE_ERR:
		qp_error(qp, now_ns);
		break;
	case QP_STATE_SQE:
		qp_sq_error(qp);
		break;
	case QP_STATE_RTR:
	case QP_STATE_RTS:
	case QP_STATE_SQD:
		qp_sched(qp);
		break;
	case QP_STATE_RESET:
	case QP_STATE_INIT:
		break;
	}
}

void hca_doorbells(struct hca *hca, int64_t now_ns)
{
	struct qp *qp, *next;

	hca->now_ns = now_ns;
	for (qp = qp_bells_take(hca); qp; qp = next) {
		next = qp->bell_next;
		qp_bell_clear(qp);
		answer_bell(qp, now_ns);
	}
	cq_settle(hca);
}

int64_t hca_deadline(const struct hca *hca)
{
	return twheel_deadline(&hca->wheel);
}

void hca_advance(struct hca *hca, int64_t now_ns)
{
	hca->now_ns = now_ns;
	twheel_advance(&hca->wheel, now_ns);
	cq_settle(hca);
}

int hca_set_gid(struct hca *hca, uint32_t index, const struct gid_entry *e)
{
	struct gid_entry *old;
	bool changed;

	if (index >= hca->cfg.limits.gid_table_len)
		return -EINVAL;
	old = &hca->gids[index];
	changed = old->valid != e->valid ||
		  (e->valid &&
		   (!gid_eq(&old->gid, &e->gid) || old->netdev != e->netdev ||
		    old->vlan != e->vlan));
	*old = *e;
	if (changed && hca->port_state)
		event_raise(hca, &hca->port_events, ASYNC_GID_CHANGE);
	return 0;
}

const struct gid_entry *hca_gid(const struct hca *hca, uint32_t index)
{
	return index < hca->cfg.limits.gid_table_len ? &hca->gids[index] : NULL;
}

void hca_set_port(struct hca *hca, enum port_state state, uint32_t netdev_mtu)
{
	enum port_state old = hca->port_state;
	bool was = old == PORT_STATE_ACTIVE, is = state == PORT_STATE_ACTIVE;
	enum mtu_code mtu;

	hca->port_state = state;
	hca->netdev_mtu = netdev_mtu;
	mtu = hca_active_mtu(hca);
	atomic_store_explicit(&hca->ud_max_bytes, mtu ? mtu_bytes(mtu) : 0,
			      memory_order_relaxed);
	if (old && was != is)
		event_raise(hca, &hca->port_events,
			    is ? ASYNC_PORT_ACTIVE : ASYNC_PORT_ERR);
}

enum port_state hca_port_state(const struct hca *hca)
{
	return hca->port_state ? hca->port_state : PORT_STATE_DOWN;
}

uint16_t hca_pkey(const struct hca *hca, uint32_t index)
{
	return index < hca->cfg.limits.pkey_table_len ? hca->pkeys[index] : 0;
}

int hca_set_pkey(struct hca *hca, uint32_t index, uint16_t pkey)
{
	uint32_t pos = 0;
	struct qp *qp;

	if (index >= hca->cfg.limits.pkey_table_len)
		return -EINVAL;
	if (hca->pkeys[index] != pkey)
		event_raise(hca, &hca->port_events, ASYNC_PKEY_CHANGE);
	hca->pkeys[index] = pkey;
	while ((qp = idtab_next(hca->qps, &pos)))
		if (qp_state(qp) != QP_STATE_RESET &&
		    qp->attr.pkey_index == index)
			qp->pkey = pkey;
	return 0;
}

const struct hca_counters *hca_counters(const struct hca *hca)
{
	return &hca->counters;
}

const struct hca_limits *hca_limits(const struct hca *hca)
{
	return &hca->cfg.limits;
}
