/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * hca_rx.c - from a frame to its QP: the checks that come before any
 * transport's, in the order of [IBA 9.6.1]. A dropped packet adds to exactly
 * one counter.
 */
#include "core/hca.h"

#include "core/obj/cq.h"
#include "core/obj/apm.h"
#include "core/obj/hca_priv.h"
#include "core/obj/idtab.h"
#include "core/obj/mcast.h"
#include "core/obj/qp.h"

#define PKEY_FULL 0x8000

/* The low 15 bits are equal and not both are limited members [IBA 10.9.3]. */
static bool pkey_match(uint16_t a, uint16_t b)
{
	return ((a ^ b) & ~PKEY_FULL) == 0 && ((a | b) & PKEY_FULL) &&
	       (a & ~PKEY_FULL);
}

static bool receives(enum qp_state s)
{
	return s == QP_STATE_RTR || s == QP_STATE_RTS || s == QP_STATE_SQD ||
	       s == QP_STATE_SQE;
}

/* The connected transports hear their peer alone [IBA 9.6.1.4.2]. */
static bool from_peer(const struct qp *qp, const struct rx_frame *f)
{
	return qp->type == QP_TYPE_UD ||
	       (gid_eq(&f->src, &qp->path.dgid) &&
		gid_eq(&f->dst, &qp->path.sgid)) ||
	       apm_on_alternate(qp, f);
}

struct qp *hca_find_qp(struct hca *hca, uint32_t qpn)
{
	uint32_t low = (1u << hca->cfg.qpn_bits) - 1;

	if ((qpn & ~low) != hca->cfg.qpn_base)
		return NULL;
	return idtab_get(hca->qps, qpn & low);
}

/* Only requests that carry payload, of RC, may be more than a packet. */
static bool may_be_away(const struct rx_frame *f, const struct pkt *pkt)
{
	return opcode_transport(pkt->bth.opcode) == TRANSPORT_RC &&
	       (pkt->info->flags & (OPCODE_SEND | OPCODE_WRITE)) &&
	       pkt->payload_bytes == 0 && pkt->bth.pad == 0 && f->pkts > 0 &&
	       f->pkts <= f->payload_bytes && f->payload_bytes <= INT32_MAX;
}

static bool take_away(const struct rx_frame *f, struct pkt *pkt)
{
	if (LIKELY(!f->away))
		return true;
	if (!may_be_away(f, pkt))
		return false;
	pkt->away = f->away;
	pkt->payload = NULL;
	pkt->payload_bytes = f->payload_bytes;
	pkt->pkts = f->pkts;
	return true;
}

static bool is_built(const struct bth *bth)
{
	enum transport t = opcode_transport(bth->opcode);

	return t == TRANSPORT_RC || t == TRANSPORT_UC || t == TRANSPORT_UD ||
	       t == TRANSPORT_XRC || bth->opcode == OPCODE_CNP;
}

/* CNPs are for the connected transports [IBA annex A17.9.3]. */
static bool speaks(const struct qp *qp, uint8_t opcode)
{
	if (opcode == OPCODE_CNP)
		return qp->type != QP_TYPE_UD;
	return opcode_transport(opcode) == qp->ops->wire;
}

/* A peer that migrated to where we do not expect it is an event
 * [IBA 17.2.8.1]. */
static void wrong_path(struct qp *qp, const struct pkt *pkt)
{
	HCA_COUNT(qp->hca, rx_drop_src);
	if (pkt->bth.migreq && qp->attr.mig_state == MIG_STATE_ARMED)
		qp_event(qp, ASYNC_PATH_MIG_ERR);
}

/* The QP that the packet is for; NULL: dropped and counted. */
static struct qp *admit(struct hca *hca, const struct rx_frame *f,
			const struct pkt *pkt)
{
	struct qp *qp;

	if (!is_built(&pkt->bth)) {
		HCA_COUNT(hca, rx_drop_opcode);
		return NULL;
	}
	qp = hca_find_qp(hca, pkt->bth.dest_qpn);
	if (!qp)
		HCA_COUNT(hca, rx_drop_no_qp);
	else if (!speaks(qp, pkt->bth.opcode))
		HCA_COUNT(hca, rx_drop_qp_type);
	else if (!receives(qp_state(qp)))
		HCA_COUNT(hca, rx_drop_qp_state);
	else if (!pkey_match(qp->pkey, pkt->bth.pkey))
		HCA_COUNT(hca, rx_drop_pkey);
	else if (!from_peer(qp, f))
		wrong_path(qp, pkt);
	else
		return qp;
	return NULL;
}

static void deliver(struct qp *qp, const struct rx_frame *f,
		    const struct pkt *pkt, int64_t now_ns)
{
	if (pkt->bth.opcode == OPCODE_CNP) {
		cc_cnp(qp, now_ns);
		return;
	}
	cc_received(qp, f, now_ns);
	if (qp->attr.mig_state != MIG_STATE_MIGRATED)
		apm_heard(qp, f, pkt->bth.migreq);
	qp->ops->rx(qp, f, pkt, now_ns);
}

/* A copy for each QP of the group that can take one (bug log B130). Nobody:
 * as for a QP that is not there. */
static void deliver_group(struct hca *hca, const struct rx_frame *f,
			  const struct pkt *pkt, int64_t now_ns)
{
	struct dlist *pos = NULL;
	struct mcast *m = mcast_next(hca, &f->dst, &pos);

	if (!m)
		HCA_COUNT(hca, rx_drop_no_qp);
	for (; m; m = mcast_next(hca, &f->dst, &pos)) {
		if (!receives(qp_state(m->qp)))
			HCA_COUNT(hca, rx_drop_qp_state);
		else if (!pkey_match(m->qp->pkey, pkt->bth.pkey))
			HCA_COUNT(hca, rx_drop_pkey);
		else
			deliver(m->qp, f, pkt, now_ns);
	}
}

static bool is_group(const struct pkt *pkt)
{
	return pkt->bth.dest_qpn == BTH_QPN_MULTICAST &&
	       opcode_transport(pkt->bth.opcode) == TRANSPORT_UD;
}

void hca_rx(struct hca *hca, const struct rx_frame *f, int64_t now_ns)
{
	struct pkt pkt;
	struct qp *qp;

	hca->now_ns = now_ns;
	HCA_ADD(hca, rx_pkts, f->away ? f->pkts : 1);
	if (pkt_decode(&pkt, f->pkt, f->len_bytes) != PKT_OK ||
	    !take_away(f, &pkt)) {
		HCA_COUNT(hca, rx_drop_malformed);
		return;
	}
	if (is_group(&pkt)) {
		deliver_group(hca, f, &pkt, now_ns);
		cq_settle(hca);
		return;
	}
	if (pkt.bth.dest_qpn == BTH_QPN_GSI) {
		gsi_rx(hca, f, &pkt);
		return;
	}
	qp = admit(hca, f, &pkt);
	if (qp)
		deliver(qp, f, &pkt, now_ns);
	cq_settle(hca);
}
