/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * xrc_tgt.c - the target: RC's responder. A request's XRCETH says which SRQ
 * takes the place of the receive queue; the SRQ must be of the QP's domain.
 */
#include "core/obj/hca_priv.h"
#include "core/obj/idtab.h"
#include "core/obj/srq.h"
#include "core/rc/rc.h"
#include "core/xrc/xrc.h"

static struct srq *find_srq(const struct qp *qp, uint32_t xrceth)
{
	struct srq *srq = idtab_get(qp->hca->srqs, xrceth & PSN_MASK);

	return srq && srq->xrcd == qp->xrcd ? srq : NULL;
}

static const struct pd *tgt_request_pd(const struct qp *qp, uint32_t xrceth)
{
	const struct srq *srq = find_srq(qp, xrceth);

	return srq ? srq->pd : NULL;
}

/* All packets of a message name the same SRQ. */
static bool tgt_aim(struct qp *qp, const struct pkt *pkt)
{
	struct srq *srq = find_srq(qp, pkt->ext.xrceth);

	if (!srq)
		return false;
	if (rc_message_under_way(qp))
		return srq == qp->srq;
	ASSERT(!qp->recv_taken);
	qp->srq = srq;
	qp->recv_cq = srq->cq;
	return true;
}

static void tgt_rx(struct qp *qp, const struct rx_frame *f,
		   const struct pkt *pkt, int64_t now_ns)
{
	if (pkt->info->flags & OPCODE_RESPONSE)
		HCA_COUNT(qp->hca, rx_drop_qp_type);
	else
		rc_rx(qp, f, pkt, now_ns);
}

static bool tgt_can_post(uint32_t opcode)
{
	(void)opcode;
	return false;
}

void xrc_srq_gone(struct srq *srq)
{
	struct hca *hca = srq->hca;
	uint32_t pos = 0;
	struct qp *qp;

	while ((qp = idtab_next(hca->qps, &pos))) {
		if (!qp->xrcd || qp->srq != srq)
			continue;
		qp->recv_taken = false;
		qp->srq = NULL;
		qp->recv_cq = NULL;
	}
}

const struct transport_ops xrc_tgt_transport = {
	.wire = TRANSPORT_XRC,
	.reliable = true,
	.state_bytes = RC_STATE_BYTES,
	.init = rc_init,
	.prepare = rc_prepare,
	.enter = rc_enter,
	.rx = tgt_rx,
	.tx = rc_tx,
	.fini = rc_fini,
	.can_post = tgt_can_post,
	.request_pd = tgt_request_pd,
	.aim = tgt_aim,
};
