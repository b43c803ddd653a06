/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rc_cmp.c - the completer.
 *
 * una, the oldest PSN without an answer, always lies in the SQ's head WQE (or
 * is the next WQE's first). It moves in two ways: over SENDs and WRITEs by an
 * acknowledgement of that PSN or a later one, over READs and atomics by their
 * data alone (bug log B008). A WQE completes when una leaves it.
 */
#include "core/rc/rc_cmp.h"

#include "base/mutant.h"
#include "core/obj/apm.h"
#include "core/rc/rc_flow.h"
#include "core/rc/rc_req.h"
#include "core/rc/rc_timer.h"
#include "wire/exth.h"

void rc_cmp_reset(struct qp *qp)
{
	rc_of(qp)->cmp = (struct rc_cmp){ .una = { 0 } };
}

void rc_cmp_start(struct qp *qp)
{
	rc_of(qp)->cmp.una = psn_of(qp->attr.sq_psn);
}

static struct wqe *head_started(struct qp *qp)
{
	struct wqe *w = rc_head(qp);

	return w && w->started ? w : NULL;
}

/* The head WQE ends with an error, and with it the QP [IBA 10.3.1.7]. */
static void fail(struct qp *qp, enum wc_status status, int64_t now_ns)
{
	ASSERT(rc_head(qp));
	rc_req_void_refs(qp);
	qp_complete_send(qp, status);
	qp_error(qp, now_ns);
}

void rc_cmp_local_error(struct qp *qp, int64_t now_ns)
{
	struct wqe *w = head_started(qp);

	if (w && w->status != WC_SUCCESS)
		fail(qp, (enum wc_status)w->status, now_ns);
}

/* n PSNs of the head WQE are answered; completes it with the last. Charges are
 * held for those that went out since the cursor last went back. */
static void answered(struct qp *qp, struct wqe *w, uint32_t n)
{
	struct rc_qp *rc = rc_of(qp);
	uint32_t off = psn_distance(rc->cmp.una, w->first_psn);
	uint32_t total = rc_wqe_pkts(w);
	uint32_t charged = psn_distance(rc->req.psn, rc->cmp.una);

	ASSERT(off + n <= total);
	rc_flow_acked(qp, w, off, n < charged ? n : charged);
	rc->cmp.una = psn_add(rc->cmp.una, (int32_t)n);
	if (off + n == total)
		qp_complete_send(qp, WC_SUCCESS);
	rc_req_follow(qp);
}

/* Something new was answered: counters are full again, waits are over, there
 * may be room to send, a WQE that failed locally may be the oldest now. */
static void progress(struct qp *qp, int64_t now_ns)
{
	struct rc_qp *rc = rc_of(qp);

	rc->cmp.went_back = false;
	rc->cmp.probing = false;
	rc_timer_progress(qp, rc_in_flight(rc), now_ns);
	if (rc->req.state == RC_REQ_RNR_WAIT)
		rc_req_rnr_over(qp);
	if (spsc_ready(&qp->sq.idx))
		qp_sched(qp);
	rc_cmp_local_error(qp, now_ns);
}

/* Everything before `to` is acknowledged: moves una there, but not over a READ
 * or atomic that has no answer. True: una is `to`; false: it is held up, or
 * the QP has failed meanwhile. */
static bool acknowledge(struct qp *qp, struct psn to, int64_t now_ns)
{
	struct rc_cmp *c = &rc_of(qp)->cmp;
	struct psn from = c->una;
	struct wqe *w;

	while (!psn_eq(c->una, to) && (w = head_started(qp)) &&
	       (!rc_is_rd(w) || MUTANT(ack_passes_read))) {
		uint32_t left = psn_distance(w->last_psn, c->una) + 1;
		uint32_t n = psn_distance(to, c->una);

		answered(qp, w, n < left ? n : left);
	}
	if (!psn_eq(c->una, from))
		progress(qp, now_ns);
	return psn_eq(c->una, to) && !rc_dead(qp);
}

/* The packet at una, or its answer, was lost. Only the first news of it counts
 * and only when something was sent since the cursor went back. */
static void go_back(struct qp *qp, bool free, int64_t now_ns)
{
	struct rc_qp *rc = rc_of(qp);

	if (rc->cmp.went_back || !rc_in_flight(rc))
		return;
	if (!free && !rc_timer_take_retry(qp)) {
		if (!apm_migrate(qp)) {
			fail(qp, WC_RETRY_EXC_ERR, now_ns);
			return;
		}
		rc_timer_refill(qp);
	}
	rc->cmp.went_back = true;
	rc->cmp.probing = false;
	rc_req_go_back(qp);
}

static void retry(struct qp *qp, int64_t now_ns)
{
	go_back(qp, false, now_ns);
}

/* An answer to a later request says that the READ or atomic at una lost its
 * own [IBA 9.7.5.1.3]. */
static void implied_nak(struct qp *qp, int64_t now_ns)
{
	if (rc_dead(qp))
		return;
	HCA_COUNT(qp->hca, req_implied_naks);
	retry(qp, now_ns);
}

void rc_cmp_timeout(struct qp *qp, int64_t now_ns)
{
	struct rc_qp *rc = rc_of(qp);

	ASSERT(rc_in_flight(rc));
	HCA_COUNT(qp->hca, req_timeouts);
	rc->cmp.went_back = false;
	retry(qp, now_ns);
	rc->cmp.went_back = false; /* a NAK of this round is news */
	rc->cmp.probing = true;
}

static void take_rnr_nak(struct qp *qp, const struct pkt *pkt, int64_t now_ns)
{
	struct rc_qp *rc = rc_of(qp);

	HCA_COUNT(qp->hca, req_rnr_naks);
	if (!acknowledge(qp, pkt->bth.psn, now_ns)) {
		implied_nak(qp, now_ns);
		return;
	}
	/* Waiting already, or nothing was asked. What a timeout is about to
	 * send again waits too (bug log B001). */
	if (rc->req.state == RC_REQ_RNR_WAIT ||
	    psn_eq(rc->req.high, rc->cmp.una))
		return;
	if (!rc_timer_take_rnr_retry(qp)) {
		fail(qp, WC_RNR_RETRY_EXC_ERR, now_ns);
		return;
	}
	rc->cmp.went_back = false;
	rc->cmp.probing = false;
	rc_req_rnr_wait(qp, rnr_timer_ns(aeth_value(pkt->ext.aeth.syndrome)),
			now_ns);
}

static bool in_head(struct qp *qp, struct psn psn)
{
	const struct wqe *w = head_started(qp);

	return w && psn_distance(psn, w->first_psn) < rc_wqe_pkts(w);
}

/* The peer refused the request for good. A READ may have had some of its
 * answers (bug log B011). */
static void take_fatal_nak(struct qp *qp, const struct pkt *pkt,
			   enum wc_status status, int64_t now_ns)
{
	HCA_COUNT(qp->hca, req_remote_errors);
	acknowledge(qp, pkt->bth.psn, now_ns);
	if (rc_dead(qp))
		return;
	if (in_head(qp, pkt->bth.psn))
		fail(qp, status, now_ns);
	else
		implied_nak(qp, now_ns);
}

static void take_nak(struct qp *qp, const struct pkt *pkt, int64_t now_ns)
{
	switch (aeth_value(pkt->ext.aeth.syndrome)) {
	case NAK_PSN_SEQUENCE:
		HCA_COUNT(qp->hca, req_seq_naks);
		/* References that could not be followed are no loss. What
		 * comes now is by value: a second NAK takes a retry. */
		if (acknowledge(qp, pkt->bth.psn, now_ns))
			go_back(qp, rc_req_refs_out(qp), now_ns);
		else
			implied_nak(qp, now_ns);
		break;
	case NAK_INVALID_REQUEST:
		take_fatal_nak(qp, pkt, WC_REM_INV_REQ_ERR, now_ns);
		break;
	case NAK_REMOTE_ACCESS:
		take_fatal_nak(qp, pkt, WC_REM_ACCESS_ERR, now_ns);
		break;
	case NAK_REMOTE_OPERATIONAL:
		take_fatal_nak(qp, pkt, WC_REM_OP_ERR, now_ns);
		break;
	default: /* reserved */
		HCA_COUNT(qp->hca, rx_drop_response);
		break;
	}
}

static void take_aeth(struct qp *qp, const struct pkt *pkt, int64_t now_ns)
{
	const struct aeth *a = &pkt->ext.aeth;

	switch (aeth_kind(a->syndrome)) {
	case AETH_ACK:
		rc_flow_credits(qp, a->syndrome, a->msn);
		if (!acknowledge(qp, psn_add(pkt->bth.psn, 1), now_ns))
			implied_nak(qp, now_ns);
		break;
	case AETH_RNR_NAK:
		take_rnr_nak(qp, pkt, now_ns);
		break;
	case AETH_NAK:
		take_nak(qp, pkt, now_ns);
		break;
	case AETH_RESERVED:
		HCA_COUNT(qp->hca, rx_drop_response);
		break;
	}
}

/* FIRST and ONLY answer the first packet of a request, MIDDLE and LAST what
 * follows; LAST and ONLY end it. After a retry in the middle of a read unit
 * late answers to its first request are as good as the new ones. */
static bool read_op_fits(const struct rc_qp *rc, const struct wqe *w,
			 uint32_t off, uint8_t op)
{
	bool unit_start = off % rc->req.read_unit_pkts == 0;
	bool may_start = unit_start || psn_eq(rc->req.resume, rc->cmp.una);
	bool end = rc_unit_end(&rc->req, rc_wqe_pkts(w), off) == off + 1;

	switch (op) {
	case OP_READ_RESP_FIRST:
		return may_start && !end;
	case OP_READ_RESP_ONLY:
		return may_start && end;
	case OP_READ_RESP_MIDDLE:
		return !unit_start && !end;
	default:
		return !unit_start && end;
	}
}

static bool aeth_good(const struct pkt *pkt)
{
	return !(pkt->info->exth & EXTH_AETH) ||
	       aeth_kind(pkt->ext.aeth.syndrome) == AETH_ACK;
}

/* The data for packet una of the READ at the head. */
static enum wc_status store_read(struct qp *qp, struct wqe *w,
				 const struct pkt *pkt)
{
	const struct rc_qp *rc = rc_of(qp);
	uint32_t off = psn_distance(rc->cmp.una, w->first_psn);
	uint32_t at = off * qp->mtu;
	uint32_t left = w->len_bytes - at;
	uint32_t n = left < qp->mtu ? left : qp->mtu;

	if (!aeth_good(pkt) || pkt->payload_bytes != n ||
	    !read_op_fits(rc, w, off, opcode_op(pkt->bth.opcode)))
		return WC_BAD_RESP_ERR;
	if (n == 0)
		return WC_SUCCESS;
	return wqe_scatter(qp->hca, qp->pd, w, at, n, pkt->payload);
}

/* The original value for the atomic at the head. */
static enum wc_status store_atomic(struct qp *qp, struct wqe *w,
				   const struct pkt *pkt)
{
	uint64_t original = pkt->ext.atomicacketh;

	if (!aeth_good(pkt))
		return WC_BAD_RESP_ERR;
	return wqe_scatter(qp->hca, qp->pd, w, 0, sizeof(original),
			   (const uint8_t *)&original);
}

/* READ response or atomic acknowledgement: acknowledges all that came before
 * its request, then must be the next one [IBA 9.7.5.1.1, 9.9.2]. */
static void take_data(struct qp *qp, const struct pkt *pkt, int64_t now_ns)
{
	bool atomic = opcode_op(pkt->bth.opcode) == OP_ATOMIC_ACK;
	enum wc_status status;
	struct wqe *w;

	if (!acknowledge(qp, pkt->bth.psn, now_ns)) {
		implied_nak(qp, now_ns);
		return;
	}
	w = head_started(qp);
	ASSERT(w);
	if (!rc_is_rd(w) || rc_is_atomic(w) != atomic)
		status = WC_BAD_RESP_ERR;
	else
		status = atomic ? store_atomic(qp, w, pkt)
				: store_read(qp, w, pkt);
	if (status != WC_SUCCESS) {
		fail(qp, status, now_ns);
		return;
	}
	if (pkt->info->exth & EXTH_AETH)
		rc_flow_credits(qp, pkt->ext.aeth.syndrome, pkt->ext.aeth.msn);
	HCA_ADD(qp->hca, rx_payload_bytes, pkt->payload_bytes);
	answered(qp, w, 1);
	progress(qp, now_ns);
}

/* A response to nothing outstanding: a duplicate, or from an earlier life of
 * the connection. One that repeats the last ACK may bring credits
 * [IBA 9.7.7.2.4]. */
static void take_stale(struct qp *qp, const struct pkt *pkt)
{
	const struct rc_qp *rc = rc_of(qp);
	bool ack = opcode_op(pkt->bth.opcode) == OP_ACK;

	if (ack)
		HCA_COUNT(qp->hca, req_stale_acks);
	if (ack && rc->req.state != RC_REQ_STOPPED &&
	    aeth_kind(pkt->ext.aeth.syndrome) == AETH_ACK &&
	    psn_eq(psn_add(pkt->bth.psn, 1), rc->cmp.una)) {
		rc_flow_credits(qp, pkt->ext.aeth.syndrome, pkt->ext.aeth.msn);
		qp_sched(qp);
		return;
	}
	HCA_COUNT(qp->hca, rx_drop_response);
}

static bool outstanding(const struct rc_qp *rc, struct psn psn)
{
	return rc->req.state != RC_REQ_STOPPED &&
	       psn_distance(psn, rc->cmp.una) <
		       psn_distance(rc->req.high, rc->cmp.una);
}

void rc_cmp_rx(struct qp *qp, const struct pkt *pkt, int64_t now_ns)
{
	if (!outstanding(rc_of(qp), pkt->bth.psn))
		take_stale(qp, pkt);
	else if (opcode_op(pkt->bth.opcode) == OP_ACK)
		take_aeth(qp, pkt, now_ns);
	else
		take_data(qp, pkt, now_ns);
}
