/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rc.c - the reliable connected transport as the rest of the core sees it:
 * what each QP state means to the sub-machines, and packets to their halves.
 */
#include "core/rc/rc.h"

#include "core/rc/rc_cmp.h"
#include "core/rc/rc_flow.h"
#include "core/rc/rc_qp.h"
#include "core/rc/rc_replay.h"
#include "core/rc/rc_req.h"
#include "core/rc/rc_rsp.h"
#include "core/rc/rc_timer.h"

static void reset(struct qp *qp)
{
	rc_req_stop(qp);
	rc_req_reset(qp);
	rc_cmp_reset(qp);
	rc_rsp_reset(qp);
	rc_replay_release(qp);
}

int rc_prepare(struct qp *qp, const struct qp_attr *a, uint32_t mask)
{
	if (!(mask & QP_ATTR_MAX_DEST_RD_ATOMIC))
		return 0;
	return rc_replay_reserve(qp, a->max_dest_rd_atomic);
}

void rc_init(struct qp *qp)
{
	ASSERT(qp->hca->cfg.limits.max_rd_atomic <= RC_RD_ATOMIC_MAX);
	rc_timer_init(qp);
	rc_flow_init(qp);
	reset(qp);
}

static void enter_rts(struct qp *qp, enum qp_state old, int64_t now_ns)
{
	if (old == QP_STATE_RTR) {
		rc_timer_reset(qp);
		rc_cmp_start(qp);
		rc_req_start(qp);
	} else if (old == QP_STATE_SQD) {
		rc_timer_changed(qp, rc_in_flight(rc_of(qp)), now_ns);
		rc_req_resume(qp);
	}
}

static void enter_error(struct qp *qp)
{
	rc_req_stop(qp);
	if (!rc_rsp_stop(qp))
		rc_replay_reset(qp);
}

void rc_enter(struct qp *qp, enum qp_state old, int64_t now_ns)
{
	switch ((enum qp_state)qp->state) {
	case QP_STATE_RESET:
		reset(qp);
		break;
	case QP_STATE_RTR:
		rc_flow_start(qp);
		rc_rsp_start(qp);
		break;
	case QP_STATE_RTS:
		enter_rts(qp, old, now_ns);
		break;
	case QP_STATE_ERR:
		enter_error(qp);
		break;
	case QP_STATE_SQD: /* rc_req begins no WQE that is not begun */
		rc_timer_changed(qp, rc_in_flight(rc_of(qp)), now_ns);
		break;
	case QP_STATE_INIT:
	case QP_STATE_SQE: /* not of this transport */
		break;
	}
}

/* The invariants of the requester, docs/rc.md. */
static void check(struct qp *qp)
{
	const struct rc_qp *rc = rc_of(qp);
	bool stopped = rc->req.state == RC_REQ_STOPPED;
	bool waits = rc->req.state == RC_REQ_RNR_WAIT;
	bool in_flight = !stopped && rc_in_flight(rc);
	bool finite = rc_timer_timeout_ns(qp) != INT64_MAX;

	ASSERT(psn_distance(rc->req.psn, rc->cmp.una) <=
	       psn_distance(rc->req.high, rc->cmp.una));
	ASSERT(timer_armed(&rc->timer.transport) == (in_flight && finite));
	ASSERT(timer_armed(&rc->timer.rnr) == waits);
	ASSERT(!(waits && in_flight));
	ASSERT(in_flight ||
	       (rc->flow.dest_used == 0 && rc->flow.read_used == 0 &&
		rc->flow.reads_out == 0));
}

void rc_rx(struct qp *qp, const struct rx_frame *f, const struct pkt *pkt,
	   int64_t now_ns)
{
	if (pkt->info->flags & OPCODE_RESPONSE) {
		if (pkt->info->flags & OPCODE_READ && rx_marked(f))
			rc_flow_marked(qp);
		rc_cmp_rx(qp, pkt, now_ns);
	} else {
		rc_rsp_rx(qp, pkt, now_ns);
	}
	check(qp);
}

/* Responses go first: the peer's progress does not wait for ours. */
bool rc_tx(struct qp *qp, struct tx_frame *f, int64_t now_ns)
{
	bool sent = rc_replay_tx(qp, f, now_ns) || rc_req_tx(qp, f, now_ns);

	check(qp);
	return sent;
}

void rc_fini(struct qp *qp)
{
	reset(qp);
}

bool rc_can_post(uint32_t opcode)
{
	return opcode <= WR_SEND_INV;
}

static const struct pd *own_pd(const struct qp *qp, uint32_t xrceth)
{
	(void)xrceth;
	return qp->pd;
}

static bool own_queue(struct qp *qp, const struct pkt *pkt)
{
	(void)qp;
	(void)pkt;
	return true;
}

const struct transport_ops rc_transport = {
	.wire = TRANSPORT_RC,
	.reliable = true,
	.state_bytes = RC_STATE_BYTES,
	.init = rc_init,
	.prepare = rc_prepare,
	.enter = rc_enter,
	.rx = rc_rx,
	.tx = rc_tx,
	.tx_refused = rc_req_refused,
	.fini = rc_fini,
	.can_post = rc_can_post,
	.request_pd = own_pd,
	.aim = own_queue,
};
