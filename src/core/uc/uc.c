/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * uc.c - the unreliable connection's sending side: SEND and WRITE cut into
 * packets of the path MTU [IBA 9.8.2]. The receiving side is uc_rsp.c.
 */
#include "core/obj/hca_priv.h"
#include "core/obj/qp.h"
#include "core/uc/uc_qp.h"
#include "core/uc/uc_rsp.h"

static void uc_init(struct qp *qp)
{
	(void)qp;
}

static void uc_enter(struct qp *qp, enum qp_state old, int64_t now_ns)
{
	struct uc *uc = uc_of(qp);

	(void)now_ns;
	switch (qp_state(qp)) {
	case QP_STATE_RTR:
		uc_rsp_start(&uc->rsp, psn_of(qp->attr.rq_psn));
		break;
	case QP_STATE_RTS:
		if (old == QP_STATE_RTR || old == QP_STATE_SQE)
			unack_start(qp, &uc->req, old);
		break;
	case QP_STATE_RESET:
		*uc = (struct uc){ 0 };
		break;
	default:
		break;
	}
}

/* By position in the message: middle, first, last, only. */
static const uint8_t send_ops[4] = { OP_SEND_MIDDLE, OP_SEND_FIRST,
				     OP_SEND_LAST, OP_SEND_ONLY };
static const uint8_t write_ops[4] = { OP_WRITE_MIDDLE, OP_WRITE_FIRST,
				      OP_WRITE_LAST, OP_WRITE_ONLY };

static uint8_t opcode_for(const struct wqe *w, bool first, bool last)
{
	bool write = w->opcode == WR_WRITE || w->opcode == WR_WRITE_IMM;
	bool imm = w->opcode == WR_SEND_IMM || w->opcode == WR_WRITE_IMM;
	uint8_t op = (write ? write_ops : send_ops)[first + 2 * last];

	if (last && imm) /* the ..._IMM opcode follows the plain one */
		op++;
	return OPCODE(TRANSPORT_UC, op);
}

static void build_headers(const struct wqe *w, bool first, bool last,
			  struct pkt *pkt)
{
	pkt->bth.opcode = opcode_for(w, first, last);
	pkt->bth.solicited = last && (w->flags & WR_SOLICITED);
	pkt->ext.reth = (struct reth){ .va = w->remote_addr,
				       .rkey = w->rkey,
				       .len_bytes = w->len_bytes };
	pkt->ext.immdt = __builtin_bswap32(w->imm_be_or_rkey);
}

static bool uc_tx(struct qp *qp, struct tx_frame *f, int64_t now_ns)
{
	struct unack *u = &uc_of(qp)->req;
	struct pkt pkt = { 0 };
	enum wc_status status;
	struct wqe *w;
	uint32_t bytes;
	bool last;

	do {
		if (qp->direct && !unack_direct(qp, u))
			return false;
		w = unack_wqe(qp, u);
		if (!w)
			return false;
	} while (unack_local(qp, u, w));
	if (wqe_is_local(w) || (w->len_bytes && !cc_may_send(qp, now_ns)))
		return false;
	bytes = w->len_bytes - u->off;
	last = bytes <= qp->mtu;
	if (!last)
		bytes = qp->mtu;
	build_headers(w, u->off == 0, last, &pkt);
	status = unack_fill(qp, u, w, &pkt, bytes, f);
	if (status != WC_SUCCESS) {
		unack_fail(qp, u, w, status);
		return false;
	}
	unack_built(u, w, bytes, last);
	return true;
}

static void uc_tx_done(struct qp *qp)
{
	unack_done(qp, &uc_of(qp)->req);
}

static void uc_fini(struct qp *qp)
{
	(void)qp;
}

static bool uc_can_post(uint32_t opcode)
{
	return opcode == WR_SEND || opcode == WR_SEND_IMM ||
	       opcode == WR_WRITE || opcode == WR_WRITE_IMM ||
	       opcode == WR_LOCAL_INV || opcode == WR_BIND_MW;
}

const struct transport_ops uc_transport = {
	.wire = TRANSPORT_UC,
	.state_bytes = sizeof(struct uc),
	.init = uc_init,
	.enter = uc_enter,
	.rx = uc_rsp_rx,
	.tx = uc_tx,
	.tx_done = uc_tx_done,
	.fini = uc_fini,
	.can_post = uc_can_post,
};
