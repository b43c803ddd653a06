/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rc_rsp.c - the responder.
 *
 * A request goes through the steps of [IBA 9.7.4.1]: PSN (rc_rsp_rx), opcode
 * in its place (in_sequence), then the checks and the work of its kind, each
 * giving a verdict. accept() and refuse() turn the verdict into what the peer
 * and the consumer get to know.
 */
#include "core/rc/rc_rsp.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/mutant.h"
#include "core/obj/mw.h"
#include "core/rc/rc_flow.h"
#include "core/rc/rc_replay.h"
#include "wire/exth.h"

#define MESSAGE_MAX_BYTES (UINT32_C(1) << 31)

const char *rc_rsp_state_name(enum rc_rsp_state s)
{
	static const char *const names[] = {
#define RC_RSP_NAME(name) [RC_RSP_##name] = #name,
		RC_RSP_STATES(RC_RSP_NAME)
#undef RC_RSP_NAME
	};

	return s < ARRAY_SIZE(names) ? names[s] : "?";
}

void rc_rsp_reset(struct qp *qp)
{
	rc_of(qp)->rsp = (struct rc_rsp){ .state = RC_RSP_STOPPED };
}

void rc_rsp_start(struct qp *qp)
{
	rc_of(qp)->rsp = (struct rc_rsp){ .state = RC_RSP_READY,
					  .epsn = psn_of(qp->attr.rq_psn) };
}

bool rc_rsp_stop(struct qp *qp)
{
	struct rc_rsp *r = &rc_of(qp)->rsp;

	if (r->state == RC_RSP_FATAL)
		return true;
	r->state = RC_RSP_STOPPED;
	return false;
}

uint8_t rc_rsp_ack_syndrome(struct qp *qp)
{
	uint32_t n = qp_recv_posted(qp);

	if (n == UINT32_MAX)
		return aeth_syndrome(AETH_ACK, AETH_CREDITS_INVALID);
	/* The message under way has its WQE, but MSN does not count it. */
	return aeth_syndrome(AETH_ACK,
			     aeth_credit_code(n + (qp->recv_taken ? 1 : 0)));
}

static const struct {
	uint8_t nak;	/* enum nak_code */
	uint8_t event;	/* enum async_type */
	uint8_t status; /* of the receive WQE, when the fault is there */
} refusals[] = {
	[RC_RSP_INV_REQ] = { NAK_INVALID_REQUEST, ASYNC_QP_REQ_ERR,
			     WC_SUCCESS },
	[RC_RSP_ACCESS_ERR] = { NAK_REMOTE_ACCESS, ASYNC_QP_ACCESS_ERR,
				WC_SUCCESS },
	[RC_RSP_OP_ERR] = { NAK_REMOTE_OPERATIONAL, ASYNC_QP_ACCESS_ERR,
			    WC_SUCCESS },
	[RC_RSP_RECV_LEN_ERR] = { NAK_INVALID_REQUEST, 0, WC_LOC_LEN_ERR },
	[RC_RSP_RECV_PROT_ERR] = { NAK_REMOTE_OPERATIONAL, 0, WC_LOC_PROT_ERR },
	[RC_RSP_INVALIDATE_ERR] = { NAK_REMOTE_ACCESS, 0, WC_REM_INV_REQ_ERR },
};

uint8_t rc_rsp_nak_syndrome(enum rc_rsp_verdict v)
{
	ASSERT(v >= RC_RSP_INV_REQ && v < ARRAY_SIZE(refusals));
	return aeth_syndrome(AETH_NAK, refusals[v].nak);
}

static void count_nak(struct hca *hca, enum rc_rsp_verdict v)
{
	switch (refusals[v].nak) {
	case NAK_INVALID_REQUEST:
		HCA_COUNT(hca, rsp_inv_req_naks);
		break;
	case NAK_REMOTE_ACCESS:
		HCA_COUNT(hca, rsp_access_naks);
		break;
	default:
		HCA_COUNT(hca, rsp_op_naks);
		break;
	}
}

/* The consumer learns by the receive's completion where there is one whose
 * fault it was, else by an event [IBA 10.10.2.3]; the QP stops. */
static void die(struct qp *qp, enum rc_rsp_verdict v, int64_t now_ns)
{
	rc_of(qp)->rsp.state = RC_RSP_FATAL;
	count_nak(qp->hca, v);
	if (refusals[v].status != WC_SUCCESS) {
		struct wc wc = { .status = refusals[v].status };

		qp_complete_recv(qp, &wc, true);
	} else {
		qp_event(qp, (enum async_type)refusals[v].event);
	}
	qp_error(qp, now_ns);
}

void rc_rsp_read_failed(struct qp *qp, enum rc_rsp_verdict v, int64_t now_ns)
{
	/* Already in the error state: the request behind it was refused. */
	if (rc_of(qp)->rsp.state != RC_RSP_FATAL)
		die(qp, v, now_ns);
}

/* [IBA 9.7.5.2.8]: packets after this one are dropped until it comes again. */
static void refuse_for_now(struct qp *qp)
{
	struct rc_rsp *r = &rc_of(qp)->rsp;

	HCA_COUNT(qp->hca, rsp_rnr_naks);
	r->state = RC_RSP_RNR;
	rc_replay_nak(qp, r->epsn,
		      aeth_syndrome(AETH_RNR_NAK, qp->attr.min_rnr_timer));
}

/* A later PSN than expected: one NAK tells what is missing, the rest of the
 * gap is silence [IBA 9.7.5.2.8]. */
static void nak_gap(struct qp *qp)
{
	struct rc_rsp *r = &rc_of(qp)->rsp;

	r->state = RC_RSP_GAP;
	HCA_COUNT(qp->hca, rsp_seq_naks);
	rc_replay_nak(qp, r->epsn, aeth_syndrome(AETH_NAK, NAK_PSN_SEQUENCE));
}

static void refuse(struct qp *qp, enum rc_rsp_verdict v, int64_t now_ns)
{
	if (v == RC_RSP_LOST) {
		HCA_COUNT(qp->hca, rsp_refs_lost);
		nak_gap(qp);
		return;
	}
	if (v == RC_RSP_NOT_READY) {
		refuse_for_now(qp);
		return;
	}
	rc_replay_nak(qp, rc_of(qp)->rsp.epsn, rc_rsp_nak_syndrome(v));
	die(qp, v, now_ns);
}

/* ---- memory ---- */

static const struct pd *request_pd(const struct qp *qp, const struct pkt *pkt)
{
	return qp->ops->request_pd(qp, rc_xrceth(pkt));
}

/* The QP grants the kind of access [IBA 9.7.4.1.5], and unless it is of no
 * bytes so does the region (bug log B013, B025). */
static enum rc_rsp_verdict check_access(struct qp *qp, const struct pkt *pkt,
					uint32_t access)
{
	const struct reth *t = &pkt->ext.reth;
	uint64_t va;

	if (!(qp->attr.access & access))
		return RC_RSP_INV_REQ;
	if (t->len_bytes > MESSAGE_MAX_BYTES)
		return RC_RSP_INV_REQ;
	if (t->len_bytes == 0)
		return RC_RSP_OK;
	if (!mkey_remote(qp, request_pd(qp, pkt), t->rkey, t->va, t->len_bytes,
			 access, &va))
		return RC_RSP_ACCESS_ERR;
	return RC_RSP_OK;
}

static enum rc_rsp_verdict store_failed(int err)
{
	return !err ? RC_RSP_OK : err == -EAGAIN ? RC_RSP_LOST : RC_RSP_OP_ERR;
}

/* Stores a packet of a WRITE; the region is looked up again, it may be gone
 * since the first packet (bug log B011). */
static enum rc_rsp_verdict store_write(struct qp *qp, const struct pkt *pkt)
{
	const struct rc_rsp *r = &rc_of(qp)->rsp;
	struct hca *hca = qp->hca;
	uint32_t n = pkt->payload_bytes;
	uint64_t va;

	if (n == 0)
		return RC_RSP_OK;
	if (!mkey_remote(qp, request_pd(qp, pkt), r->rkey, r->va, n,
			 ACCESS_REMOTE_WRITE, &va))
		return RC_RSP_ACCESS_ERR;
	if (MUTANT(write_not_stored) && n > 100)
		return RC_RSP_OK;
	if (pkt->away)
		return store_failed(
			hca->ops->mem_fetch(hca->ops_ctx, va, pkt->away, 0, n));
	n += MUTANT(write_a_byte_more) && pkt->bth.pad;
	return store_failed(
		hca->ops->mem_write(hca->ops_ctx, va, pkt->payload, n));
}

static enum wc_status fill_recv(struct qp *qp, const struct rwqe *w,
				const struct pkt *pkt, bool *ret_lost)
{
	const struct pd *pd = qp_recv_pd(qp);
	uint32_t off = rc_of(qp)->rsp.done_bytes;

	*ret_lost = false;
	if (pkt->away)
		return rwqe_fetch(qp->hca, pd, w, off, pkt->payload_bytes,
				  pkt->away, ret_lost);
	return rwqe_scatter(qp->hca, pd, w, off, pkt->payload_bytes,
			    pkt->payload);
}

static enum rc_rsp_verdict store_send(struct qp *qp, const struct rwqe *w,
				      const struct pkt *pkt)
{
	enum wc_status status;
	bool lost;

	if (pkt->payload_bytes == 0)
		return RC_RSP_OK;
	status = fill_recv(qp, w, pkt, &lost);
	if (lost)
		return RC_RSP_LOST;
	switch (status) {
	case WC_SUCCESS:
		return RC_RSP_OK;
	case WC_LOC_LEN_ERR:
		return MUTANT(recv_length_unchecked) ? RC_RSP_OK
						     : RC_RSP_RECV_LEN_ERR;
	default:
		return RC_RSP_RECV_PROT_ERR;
	}
}

/* ---- checks of form ---- */

/* FIRST and ONLY begin a message, MIDDLE and LAST go on with one of their
 * kind, READs and atomics stand between messages [IBA 9.7.4.1.2, table 43]. */
static bool in_sequence(const struct rc_rsp *r, const struct opcode_info *i)
{
	if (!(i->flags & (OPCODE_SEND | OPCODE_WRITE)) ||
	    i->flags & OPCODE_START)
		return r->message == RC_RSP_NONE;
	return r->message ==
	       (i->flags & OPCODE_SEND ? RC_RSP_SEND : RC_RSP_WRITE);
}

/* FIRST and MIDDLE are full, LAST is not empty, nothing is longer than the
 * path MTU [IBA 9.7.4.1.6]. */
static bool payload_fits(const struct qp *qp, const struct pkt *pkt)
{
	uint64_t full = (uint64_t)pkt->pkts * qp->mtu;
	uint32_t n = pkt->payload_bytes;

	if (!(pkt->info->flags & OPCODE_END))
		return n == full;
	if (pkt->pkts == 1 && pkt->info->flags & OPCODE_START)
		return n <= full;
	return n <= full && n > full - qp->mtu;
}

/* The payload is what the RETH promised: all that is left in the last packet,
 * less before. */
static bool write_length_fits(const struct rc_rsp *r, const struct pkt *pkt)
{
	if (pkt->info->flags & OPCODE_END)
		return pkt->payload_bytes == r->left_bytes;
	return pkt->payload_bytes < r->left_bytes;
}

/* ---- the work ---- */

/* The message is complete: counts it, and completes the receive it took. */
static void message_done(struct qp *qp, const struct pkt *pkt)
{
	struct rc_rsp *r = &rc_of(qp)->rsp;
	bool write = r->message == RC_RSP_WRITE;
	struct wc wc = { .status = WC_SUCCESS,
			 .opcode = write ? WC_RECV_RDMA_WITH_IMM : WC_RECV,
			 .byte_len = r->done_bytes, /* B035 */
			 .src_qpn = qp->attr.dest_qpn };

	if (write)
		HCA_COUNT(qp->hca, rsp_write_msgs);
	else
		HCA_COUNT(qp->hca, rsp_send_msgs);
	HCA_ADD(qp->hca, rsp_msg_bytes, r->done_bytes);
	r->message = RC_RSP_NONE;
	r->msn = (r->msn + 1) & PSN_MASK;
	if (MUTANT(byte_len_forgotten) && write)
		wc.byte_len = 0;
	if (pkt->info->exth & EXTH_IMMDT && !MUTANT(imm_forgotten)) {
		wc.wc_flags = WC_WITH_IMM;
		put_be32((uint8_t *)&wc.imm_be_or_rkey, pkt->ext.immdt);
	}
	if (pkt->info->exth & EXTH_IETH) {
		wc.wc_flags = WC_WITH_INV;
		wc.imm_be_or_rkey = pkt->ext.ieth; /* host order (B037) */
	}
	if (pkt->info->flags & OPCODE_RECV_WQE)
		qp_complete_recv(qp, &wc, pkt->bth.solicited);
}

static void data_taken(struct qp *qp, const struct pkt *pkt)
{
	struct rc_rsp *r = &rc_of(qp)->rsp;

	r->done_bytes += pkt->payload_bytes;
	HCA_ADD(qp->hca, rx_payload_bytes, pkt->payload_bytes);
	if (pkt->payload_bytes)
		rc_flow_peer_sends(qp);
	if (pkt->info->flags & OPCODE_END)
		message_done(qp, pkt);
}

/* The message does not begin with this packet after all. */
static void not_begun(struct qp *qp, const struct pkt *pkt)
{
	if (pkt->info->flags & OPCODE_START)
		rc_of(qp)->rsp.message = RC_RSP_NONE;
}

/* [IBA 9.7.5.2.8]: without a receive WQE a SEND is not begun. */
static enum rc_rsp_verdict take_send(struct qp *qp, const struct pkt *pkt)
{
	struct rc_rsp *r = &rc_of(qp)->rsp;
	const struct rwqe *w;
	enum rc_rsp_verdict v;

	if (!payload_fits(qp, pkt))
		return RC_RSP_INV_REQ;
	w = qp_recv_wqe(qp);
	if (!w)
		return MUTANT(rnr_accepted) ? RC_RSP_OK : RC_RSP_NOT_READY;
	if (pkt->info->flags & OPCODE_START) {
		r->message = RC_RSP_SEND;
		r->done_bytes = 0;
	}
	v = store_send(qp, w, pkt);
	if (v == RC_RSP_OK && pkt->info->exth & EXTH_IETH &&
	    !mw_invalidate(qp, pkt->ext.ieth))
		v = RC_RSP_INVALIDATE_ERR;
	if (v == RC_RSP_OK)
		data_taken(qp, pkt);
	else if (v == RC_RSP_LOST)
		not_begun(qp, pkt);
	return v;
}

static enum rc_rsp_verdict begin_write(struct qp *qp, const struct pkt *pkt)
{
	const struct reth *t = &pkt->ext.reth;
	struct rc_rsp *r = &rc_of(qp)->rsp;
	enum rc_rsp_verdict v = check_access(qp, pkt, ACCESS_REMOTE_WRITE);

	if (v != RC_RSP_OK)
		return v;
	r->message = RC_RSP_WRITE;
	r->done_bytes = 0;
	r->left_bytes = t->len_bytes;
	r->rkey = t->rkey;
	r->va = t->va;
	return RC_RSP_OK;
}

/* An immediate needs a receive WQE at its last packet; a plain WRITE never
 * does (bug log B019). */
static enum rc_rsp_verdict take_write(struct qp *qp, const struct pkt *pkt)
{
	struct rc_rsp *r = &rc_of(qp)->rsp;
	enum rc_rsp_verdict v = RC_RSP_OK;

	if (!payload_fits(qp, pkt))
		return RC_RSP_INV_REQ;
	if (pkt->info->flags & OPCODE_START)
		v = begin_write(qp, pkt);
	if (v != RC_RSP_OK)
		return v;
	if (!write_length_fits(r, pkt))
		return RC_RSP_INV_REQ;
	if (pkt->info->flags & OPCODE_RECV_WQE && !qp_recv_wqe(qp)) {
		not_begun(qp, pkt);
		return RC_RSP_NOT_READY;
	}
	v = store_write(qp, pkt);
	if (v == RC_RSP_LOST)
		not_begun(qp, pkt);
	if (v != RC_RSP_OK)
		return v;
	r->va += pkt->payload_bytes;
	r->left_bytes -= pkt->payload_bytes;
	data_taken(qp, pkt);
	return RC_RSP_OK;
}

/* More than the peer was promised resources for [IBA 9.7.4.1.7]. */
static bool too_many_outstanding(const struct qp *qp)
{
	return rc_replay_outstanding(qp) >= qp->attr.max_dest_rd_atomic;
}

static enum rc_rsp_verdict take_read(struct qp *qp, const struct pkt *pkt)
{
	struct rc_rsp *r = &rc_of(qp)->rsp;
	enum rc_rsp_verdict v;

	if (too_many_outstanding(qp))
		return RC_RSP_INV_REQ;
	v = check_access(qp, pkt, ACCESS_REMOTE_READ);
	if (v != RC_RSP_OK)
		return v;
	r->msn = (r->msn + 1) & PSN_MASK;
	rc_replay_read(qp, pkt, r->msn);
	rc_flow_peer_reads(qp);
	HCA_COUNT(qp->hca, rsp_read_msgs);
	HCA_ADD(qp->hca, rsp_msg_bytes, pkt->ext.reth.len_bytes);
	return RC_RSP_OK;
}

static int execute_atomic(struct hca *hca, const struct pkt *pkt, uint64_t va,
			  uint64_t *ret_original)
{
	const struct atomiceth *a = &pkt->ext.atomiceth;

	if (opcode_op(pkt->bth.opcode) == OP_CMP_SWAP)
		return hca->ops->mem_cmp_swap(hca->ops_ctx, va, a->compare,
					      a->swap_or_add, ret_original);
	return hca->ops->mem_fetch_add(hca->ops_ctx, va, a->swap_or_add,
				       ret_original);
}

static enum rc_rsp_verdict take_atomic(struct qp *qp, const struct pkt *pkt)
{
	const struct atomiceth *a = &pkt->ext.atomiceth;
	struct rc_rsp *r = &rc_of(qp)->rsp;
	uint64_t va, original = 0;

	if (too_many_outstanding(qp) ||
	    !(qp->attr.access & ACCESS_REMOTE_ATOMIC) ||
	    (a->va & 7 && !MUTANT(unaligned_atomic)))
		return RC_RSP_INV_REQ;
	if (!mkey_remote(qp, request_pd(qp, pkt), a->rkey, a->va, 8,
			 ACCESS_REMOTE_ATOMIC, &va))
		return RC_RSP_ACCESS_ERR;
	if (va & 7 && !MUTANT(unaligned_atomic))
		return RC_RSP_INV_REQ; /* aligned by its name alone */
	if (execute_atomic(qp->hca, pkt, va, &original) != 0)
		return RC_RSP_OP_ERR;
	r->msn = (r->msn + 1) & PSN_MASK;
	rc_replay_atomic(qp, pkt->bth.psn, original, r->msn);
	HCA_COUNT(qp->hca, rsp_atomic_msgs);
	return RC_RSP_OK;
}

static enum rc_rsp_verdict execute(struct qp *qp, const struct pkt *pkt)
{
	switch (opcode_op(pkt->bth.opcode)) {
	case OP_SEND_FIRST:
	case OP_SEND_MIDDLE:
	case OP_SEND_LAST:
	case OP_SEND_LAST_IMM:
	case OP_SEND_ONLY:
	case OP_SEND_ONLY_IMM:
	case OP_SEND_LAST_INV:
	case OP_SEND_ONLY_INV:
		return take_send(qp, pkt);
	case OP_WRITE_FIRST:
	case OP_WRITE_MIDDLE:
	case OP_WRITE_LAST:
	case OP_WRITE_LAST_IMM:
	case OP_WRITE_ONLY:
	case OP_WRITE_ONLY_IMM:
		return take_write(qp, pkt);
	case OP_READ_REQUEST:
		return take_read(qp, pkt);
	case OP_CMP_SWAP:
	case OP_FETCH_ADD:
		return take_atomic(qp, pkt);
	default: /* FLUSH, ATOMIC WRITE: not built */
		return RC_RSP_INV_REQ;
	}
}

/* The request was carried out: expects the PSN after it. READs and atomics
 * answer for themselves. */
static void accept(struct qp *qp, const struct pkt *pkt)
{
	struct rc_rsp *r = &rc_of(qp)->rsp;
	bool read = opcode_op(pkt->bth.opcode) == OP_READ_REQUEST;
	uint32_t n = read ? rc_pkts(qp, pkt->ext.reth.len_bytes) : pkt->pkts;

	r->state = RC_RSP_READY;
	r->epsn = psn_add(r->epsn, (int32_t)n);
	if (pkt->bth.ackreq &&
	    !(pkt->info->flags & (OPCODE_READ | OPCODE_ATOMIC)))
		rc_replay_ack(qp, psn_add(r->epsn, -1));
}

static void take_expected(struct qp *qp, const struct pkt *pkt, int64_t now_ns)
{
	enum rc_rsp_verdict v = RC_RSP_INV_REQ;

	qp_comm_est(qp);
	if (in_sequence(&rc_of(qp)->rsp, pkt->info) && qp->ops->aim(qp, pkt))
		v = execute(qp, pkt);
	if (v == RC_RSP_OK)
		accept(qp, pkt);
	else
		refuse(qp, v, now_ns);
}

static void take_gap(struct qp *qp)
{
	struct rc_rsp *r = &rc_of(qp)->rsp;

	switch (r->state) {
	case RC_RSP_READY:
		nak_gap(qp);
		break;
	case RC_RSP_RNR:
		HCA_COUNT(qp->hca, rx_drop_rnr_wait);
		break;
	default:
		HCA_COUNT(qp->hca, rx_drop_out_of_seq);
		break;
	}
	if (MUTANT(acks_too_early))
		rc_replay_ack(qp, r->epsn);
}

/* A READ is carried out again, from its first or a later packet on. One that
 * fails now is refused, but this QP lives: the duplicate may be a ghost of a
 * READ that the peer finished long ago. */
static bool read_again(struct qp *qp, const struct pkt *pkt)
{
	const struct rc_rsp *r = &rc_of(qp)->rsp;
	uint32_t ahead = psn_distance(r->epsn, pkt->bth.psn);
	enum rc_rsp_verdict v;

	if (rc_pkts(qp, pkt->ext.reth.len_bytes) > ahead)
		return false; /* reaches past what was asked before */
	v = check_access(qp, pkt, ACCESS_REMOTE_READ);
	if (v != RC_RSP_OK)
		return rc_replay_nak_again(qp, pkt->bth.psn,
					   rc_rsp_nak_syndrome(v), r->msn);
	return rc_replay_read_again(qp, pkt, r->msn);
}

/* Of a duplicate that stands for several packets some may be new: those are
 * not taken, and not acknowledged. */
static struct psn last_accepted(const struct rc_rsp *r, const struct pkt *pkt)
{
	uint32_t known = psn_distance(r->epsn, pkt->bth.psn);
	uint32_t n = pkt->pkts < known ? pkt->pkts : known;

	return psn_add(pkt->bth.psn, (int32_t)(n - 1));
}

/* [IBA 9.7.5.1.5]: acknowledged again, never carried out again but for READs.
 */
static void take_duplicate(struct qp *qp, const struct pkt *pkt)
{
	struct rc_rsp *r = &rc_of(qp)->rsp;
	bool served = true;

	HCA_COUNT(qp->hca, rsp_duplicates);
	if (MUTANT(write_executed_again) && pkt->info->flags & OPCODE_WRITE &&
	    pkt->info->exth & EXTH_RETH && r->message == RC_RSP_NONE) {
		(void)begin_write(qp, pkt);
		(void)store_write(qp, pkt);
		r->message = RC_RSP_NONE;
	}
	if (pkt->info->flags & OPCODE_READ) {
		served = read_again(qp, pkt);
	} else if (pkt->info->flags & OPCODE_ATOMIC) {
		if (MUTANT(atomic_executed_again))
			(void)take_atomic(qp, pkt);
		served = rc_replay_atomic_again(qp, pkt->bth.psn);
		HCA_ADD(qp->hca, rsp_atomic_replays, served);
	} else if (pkt->bth.ackreq || pkt->info->flags & OPCODE_END) {
		rc_replay_ack(qp, last_accepted(r, pkt));
	}
	if (!served)
		HCA_COUNT(qp->hca, rx_drop_duplicate);
}

void rc_rsp_rx(struct qp *qp, const struct pkt *pkt, int64_t now_ns)
{
	struct rc_rsp *r = &rc_of(qp)->rsp;
	int32_t diff = psn_diff(pkt->bth.psn, r->epsn);

	if (MUTANT(psn_does_not_wrap))
		diff = (int32_t)pkt->bth.psn.v - (int32_t)r->epsn.v;
	if (MUTANT(gap_accepted) && diff > 0)
		diff = 0;
	if (r->state == RC_RSP_STOPPED || r->state == RC_RSP_FATAL)
		HCA_COUNT(qp->hca, rx_drop_qp_state);
	else if (diff == 0)
		take_expected(qp, pkt, now_ns);
	else if (diff > 0)
		take_gap(qp);
	else
		take_duplicate(qp, pkt);
}
