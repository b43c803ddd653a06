/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * qp_done.c - how work ends: completions, the error states and the flush of
 * what is left [IBA 10.3.1.6, 10.3.1.7, 10.8.3.2].
 */
#include "core/obj/cq.h"
#include "base/mutant.h"
#include "core/obj/direct.h"
#include "core/obj/hca_priv.h"
#include "core/obj/qp.h"
#include "core/obj/srq.h"

static const uint8_t wc_opcode_of[] = {
	[WR_WRITE] = WC_RDMA_WRITE,    [WR_WRITE_IMM] = WC_RDMA_WRITE,
	[WR_SEND] = WC_SEND,	       [WR_SEND_IMM] = WC_SEND,
	[WR_READ] = WC_RDMA_READ,      [WR_CMP_SWAP] = WC_COMP_SWAP,
	[WR_FETCH_ADD] = WC_FETCH_ADD, [WR_LOCAL_INV] = WC_LOCAL_INV,
	[WR_BIND_MW] = WC_BIND_MW,     [WR_SEND_INV] = WC_SEND,
};

static void count_send(struct hca *hca, const struct wqe *w,
		       enum wc_status status)
{
	if (status == WC_WR_FLUSH_ERR)
		HCA_COUNT(hca, flushed_wrs);
	if (status == WC_LOC_LEN_ERR || status == WC_LOC_QP_OP_ERR ||
	    status == WC_LOC_PROT_ERR)
		HCA_COUNT(hca, local_errors);
	if (status != WC_SUCCESS || wqe_is_local(w))
		return;
	HCA_ADD(hca, req_msg_bytes, w->len_bytes);
	switch (wc_opcode_of[w->opcode]) {
	case WC_SEND:
		HCA_COUNT(hca, req_send_msgs);
		break;
	case WC_RDMA_WRITE:
		HCA_COUNT(hca, req_write_msgs);
		break;
	case WC_RDMA_READ:
		HCA_COUNT(hca, req_read_msgs);
		break;
	default:
		HCA_COUNT(hca, req_atomic_msgs);
	}
}

void qp_complete_send(struct qp *qp, enum wc_status status)
{
	const struct wqe *w = qp_wqe(qp, spsc_head(&qp->sq.idx));
	bool tell = ((status != WC_SUCCESS && !MUTANT(unsignaled_error_lost)) ||
		     (w->flags & WR_SIGNALED)) &&
		    !(MUTANT(flush_lost) && status == WC_WR_FLUSH_ERR);
	bool twice = MUTANT(completion_doubled) && w->opcode == WR_READ;
	struct wc wc;

	ASSERT(spsc_ready(&qp->sq.idx) > 0);
	ASSERT(w->opcode < ARRAY_SIZE(wc_opcode_of));
	count_send(qp->hca, w, status);
	wc = (struct wc){ .wr_id = w->wr_id ^ MUTANT(completions_swapped),
			  .status = status,
			  .opcode = wc_opcode_of[w->opcode],
			  .byte_len = w->len_bytes,
			  .qpn = qp->qpn };
	/* First the slot, then the completion: who polls that beside us may
	 * post at once into a queue that was full. */
	spsc_pop(&qp->sq.idx, 1);
	if (tell)
		cq_push(MUTANT(wrong_cq) ? qp->recv_cq : qp->send_cq, &wc,
			status != WC_SUCCESS);
	if (tell && twice)
		cq_push(qp->send_cq, &wc, false);
	qp_sqd_check(qp);
}

void qp_sqd_check(struct qp *qp)
{
	const struct wqe *w = qp_wqe(qp, spsc_head(&qp->sq.idx));

	if (qp_state(qp) != QP_STATE_SQD || !qp->attr.sq_draining ||
	    (spsc_ready(&qp->sq.idx) && w->started))
		return;
	qp->attr.sq_draining = false;
	if (qp->attr.en_sqd_async_notify)
		qp_event(qp, ASYNC_SQ_DRAINED);
}

struct rwqe *qp_recv_wqe(struct qp *qp)
{
	if (!qp->own_rq) {
		if (!qp->recv_taken && qp->srq)
			qp->recv_taken = srq_take(qp->srq, qp->srq_wqe);
		return qp->recv_taken ? qp->srq_wqe : NULL;
	}
	if (!spsc_ready(&qp->rq.idx))
		return NULL;
	qp->recv_taken = true;
	return wring_slot(&qp->rq, spsc_head(&qp->rq.idx));
}

uint32_t qp_recv_posted(struct qp *qp)
{
	if (!qp->own_rq)
		return UINT32_MAX;
	return spsc_ready(&qp->rq.idx) - qp->recv_taken;
}

void qp_complete_recv(struct qp *qp, struct wc *wc, bool solicited)
{
	const struct rwqe *w = qp_recv_wqe(qp);

	ASSERT(w && qp->recv_taken);
	wc->wr_id = w->wr_id;
	wc->qpn = qp->qpn;
	wc->pkey_index = qp->attr.pkey_index;
	if (wc->status == WC_WR_FLUSH_ERR)
		HCA_COUNT(qp->hca, flushed_wrs);
	qp->recv_taken = false;
	if (qp->own_rq)
		spsc_pop(&qp->rq.idx, 1);
	/* After the pop, as in qp_complete_send. */
	cq_push(qp->recv_cq, wc, solicited || wc->status != WC_SUCCESS);
}

/* Frames that are still with the driver may need their WQEs; what went out
 * completes first (hca_tx_done comes back here). Only what is there now: a
 * thread that keeps posting rings for the rest, and must not keep us here. */
static void flush_sq(struct qp *qp)
{
	uint32_t n = spsc_ready(&qp->sq.idx);

	if (qp->ops->tx_done && qp->tx_unfinished)
		return;
	while (n--)
		qp_complete_send(qp, WC_WR_FLUSH_ERR);
}

/* An SRQ's WQEs belong to all its QPs: only the one taken is ours (B070). */
static void flush_rq(struct qp *qp)
{
	uint32_t n = qp->own_rq ? spsc_ready(&qp->rq.idx) : qp->recv_taken;

	while (n--) {
		struct wc wc = { .status = WC_WR_FLUSH_ERR, .opcode = WC_RECV };

		(void)qp_recv_wqe(qp);
		qp_complete_recv(qp, &wc, false);
	}
}

void qp_error(struct qp *qp, int64_t now_ns)
{
	enum qp_state old = qp_state(qp);

	if (old != QP_STATE_ERR) {
		atomic_store_explicit(&qp->state, QP_STATE_ERR,
				      memory_order_release);
		qp->attr.sq_draining = false;
		direct_grant_changed(qp);
		qp->ops->enter(qp, old, now_ns);
		cc_stop(qp);
	}
	flush_sq(qp);
	flush_rq(qp);
	if (old != QP_STATE_ERR && !qp->own_rq && qp->type != QP_TYPE_XRC_INI)
		qp_event(qp, ASYNC_QP_LAST_WQE_REACHED);
}

void qp_sq_error(struct qp *qp)
{
	enum qp_state old = qp_state(qp);

	ASSERT(old == QP_STATE_RTS || old == QP_STATE_SQD ||
	       old == QP_STATE_SQE || old == QP_STATE_ERR);
	if (old == QP_STATE_RTS || old == QP_STATE_SQD) {
		atomic_store_explicit(&qp->state, QP_STATE_SQE,
				      memory_order_release);
		qp->attr.sq_draining = false;
		qp->ops->enter(qp, old, qp->hca->now_ns);
	}
	flush_sq(qp);
}

void qp_event(struct qp *qp, enum async_type type)
{
	event_raise(qp->hca, &qp->events, type);
}

void qp_comm_est(struct qp *qp)
{
	if (qp->cm_waits) {
		qp->cm_waits = false;
		cm_qp_established(qp->hca, qp->qpn);
	}
	if (qp->comm_est || qp_state(qp) != QP_STATE_RTR)
		return;
	qp->comm_est = true;
	qp_event(qp, ASYNC_COMM_EST);
}
