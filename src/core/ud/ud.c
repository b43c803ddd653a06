/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ud.c - unreliable datagrams: one packet a message, to whom the address
 * handle says [IBA 9.8.3, 10.2.4.3].
 *
 * A datagram that does not fit its receive buffer is dropped and the buffer
 * waits for the next one; the QP keeps its state (bug log B119).
 */
#include "core/obj/hca_priv.h"
#include "core/obj/qp.h"
#include "core/uc/unack.h"

#define QKEY_OWN 0x80000000u /* "use the QP's own" [IBA 10.2.5] */

struct ud {
	struct unack req;
};

static struct ud *ud_of(struct qp *qp)
{
	return (struct ud *)(void *)qp->transport_state;
}

static void ud_init(struct qp *qp)
{
	(void)qp;
}

static void ud_enter(struct qp *qp, enum qp_state old, int64_t now_ns)
{
	enum qp_state state = qp_state(qp);

	(void)now_ns;
	if (state == QP_STATE_RTS &&
	    (old == QP_STATE_RTR || old == QP_STATE_SQE))
		unack_start(qp, &ud_of(qp)->req, old);
	if (state == QP_STATE_RESET)
		*ud_of(qp) = (struct ud){ 0 };
}

static void build_headers(const struct qp *qp, const struct wqe *w,
			  struct pkt *pkt)
{
	bool imm = w->opcode == WR_SEND_IMM;

	pkt->bth.opcode =
		OPCODE(TRANSPORT_UD, imm ? OP_SEND_ONLY_IMM : OP_SEND_ONLY);
	pkt->bth.solicited = w->flags & WR_SOLICITED;
	pkt->ext.deth.qkey =
		w->remote_qkey & QKEY_OWN ? qp->attr.qkey : w->remote_qkey;
	pkt->ext.deth.src_qpn = qp->qpn;
	pkt->ext.immdt = __builtin_bswap32(w->imm_be_or_rkey);
}

static bool ud_tx(struct qp *qp, struct tx_frame *f, int64_t now_ns)
{
	struct unack *u = &ud_of(qp)->req;
	struct wqe *w = unack_wqe(qp, u);
	struct pkt pkt = { 0 };
	enum wc_status status = WC_LOC_LEN_ERR;

	(void)now_ns;
	if (!w)
		return false;
	if (qp->hca->ops->path_out && !gid_is_multicast(&w->path.dgid))
		qp->hca->ops->path_out(qp->hca->ops_ctx, &w->path,
				       w->remote_qpn);
	if (qp_park_if_blocked(qp, w->path.out))
		return false;
	if (w->path.sl != qp->sl) { /* queue up in the datagram's class */
		qp_set_sl(qp, w->path.sl);
		qp_sched(qp);
		return false;
	}
	build_headers(qp, w, &pkt);
	f->path = &w->path;
	f->tos = w->path.tclass & (uint8_t)~3;
	f->dest_qpn = w->remote_qpn;
	/* Checked at post, but the port's MTU may have shrunk since. */
	if (w->len_bytes <=
	    atomic_load_explicit(&qp->hca->ud_max_bytes, memory_order_relaxed))
		status = unack_fill(qp, u, w, &pkt, w->len_bytes, f);
	if (status != WC_SUCCESS) {
		unack_fail(qp, u, w, status);
		return false;
	}
	unack_built(u, w, w->len_bytes, true);
	return true;
}

static void ud_tx_done(struct qp *qp)
{
	unack_done(qp, &ud_of(qp)->req);
}

static enum wc_status deliver(struct qp *qp, const struct rwqe *w,
			      const struct rx_frame *f, const struct pkt *pkt)
{
	struct hca *hca = qp->hca;
	const struct pd *pd = qp_recv_pd(qp);
	uint8_t grh[GRH_BYTES];
	enum wc_status status;

	hca->cfg.link_layer->grh_encode(f, grh);
	status = rwqe_scatter(hca, pd, w, 0, GRH_BYTES, grh);
	if (status != WC_SUCCESS)
		return status;
	return rwqe_scatter(hca, pd, w, GRH_BYTES, pkt->payload_bytes,
			    pkt->payload);
}

static void complete(struct qp *qp, const struct rx_frame *f,
		     const struct pkt *pkt, enum wc_status status,
		     int64_t now_ns)
{
	bool imm = pkt->info->exth & EXTH_IMMDT;
	struct wc wc = { .status = status,
			 .opcode = WC_RECV,
			 .byte_len = GRH_BYTES + pkt->payload_bytes,
			 .src_qpn = pkt->ext.deth.src_qpn,
			 .wc_flags = WC_GRH,
			 .sl = qp->hca->cfg.link_layer->ud_wc_sl(f) };

	if (imm) {
		wc.wc_flags |= WC_WITH_IMM;
		wc.imm_be_or_rkey = __builtin_bswap32(pkt->ext.immdt);
	}
	if (status == WC_SUCCESS) {
		HCA_ADD(qp->hca, rx_payload_bytes, pkt->payload_bytes);
		HCA_ADD(qp->hca, rsp_msg_bytes, pkt->payload_bytes);
		HCA_COUNT(qp->hca, rsp_send_msgs);
	}
	qp_complete_recv(qp, &wc, pkt->bth.solicited);
	if (status != WC_SUCCESS) {
		HCA_COUNT(qp->hca, local_errors);
		qp_error(qp, now_ns);
	}
}

static void ud_rx(struct qp *qp, const struct rx_frame *f,
		  const struct pkt *pkt, int64_t now_ns)
{
	struct hca *hca = qp->hca;
	const struct rwqe *w;

	if (pkt->ext.deth.qkey != qp->attr.qkey) {
		HCA_COUNT(hca, rx_drop_qkey);
		return;
	}
	w = qp_recv_wqe(qp);
	if (!w) {
		HCA_COUNT(hca, rx_drop_no_wqe);
		return;
	}
	if (w->len_bytes < GRH_BYTES + pkt->payload_bytes) {
		HCA_COUNT(hca, rx_drop_len);
		return;
	}
	complete(qp, f, pkt, deliver(qp, w, f, pkt), now_ns);
}

static void ud_fini(struct qp *qp)
{
	(void)qp;
}

static bool ud_can_post(uint32_t opcode)
{
	return opcode == WR_SEND || opcode == WR_SEND_IMM;
}

const struct transport_ops ud_transport = {
	.wire = TRANSPORT_UD,
	.state_bytes = sizeof(struct ud),
	.init = ud_init,
	.enter = ud_enter,
	.rx = ud_rx,
	.tx = ud_tx,
	.tx_done = ud_tx_done,
	.fini = ud_fini,
	.can_post = ud_can_post,
};
