/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_flow.c - windows, budgets and credits of the requester. */
#include "core/rc/rc_flow.h"

#include "wire/exth.h"

/* Unacknowledged PSNs: less than half of the space, or old and new could not
 * be told apart [IBA 9.7.3]; the margin is for responses under way. */
#define WINDOW_PKTS ((1u << 23) - (1u << 16))
#define READ_UNIT_MAX_PKTS (1u << 22)
#define ACK_EVERY_PKTS 16
/* BTH with RETH and immediate: the longest that leads payload. */
#define LONGEST_HDR_BYTES 32

static void dest_woken(struct budget_wait *w)
{
	qp_sched(rc_owner(CONTAINER_OF(w, struct rc_qp, flow.dest_wait)));
}

static void read_woken(struct budget_wait *w)
{
	qp_sched(rc_owner(CONTAINER_OF(w, struct rc_qp, flow.read_wait)));
}

void rc_flow_init(struct qp *qp)
{
	struct rc_flow *f = &rc_of(qp)->flow;

	budget_wait_init(&f->dest_wait, dest_woken);
	budget_wait_init(&f->read_wait, read_woken);
}

/* What a frame costs its receiver's buffer. */
static uint32_t frame_charge(const struct qp *qp, uint32_t payload_bytes)
{
	const struct link_layer *ll = qp->hca->cfg.link_layer;

	return ll->charge_bytes(ll->overhead_bytes(&qp->path.dgid) +
				LONGEST_HDR_BYTES + payload_bytes +
				pkt_pad(payload_bytes));
}

void rc_flow_start(struct qp *qp)
{
	struct rc_flow *f = &rc_of(qp)->flow;

	ASSERT(f->dest_used == 0 && f->read_used == 0 && f->reads_out == 0);
	f->request_charge = qp_dest_budget(qp)->limit ? frame_charge(qp, 0) : 0;
	f->limited = false;
}

uint32_t rc_flow_charge(struct qp *qp, const struct wqe *w)
{
	const struct budget *b =
		rc_is_rd(w) ? &qp->hca->read_budget : qp_dest_budget(qp);

	if (b->limit == 0 || qp->path.out)
		return 0; /* and no sum of charges can overflow */
	return frame_charge(qp,
			    w->len_bytes < qp->mtu ? w->len_bytes : qp->mtu);
}

uint32_t rc_flow_read_unit(const struct qp *qp)
{
	uint32_t limit = qp->hca->read_budget.limit;
	uint32_t share = qp->attr.max_rd_atomic;
	uint32_t pkts;

	if (limit == 0 || qp->path.out)
		return READ_UNIT_MAX_PKTS;
	share = share < 2 ? 2 : share > 4 ? 4 : share;
	pkts = limit / frame_charge(qp, qp->mtu) / share;
	if (pkts == 0)
		return 1;
	return pkts < READ_UNIT_MAX_PKTS ? pkts : READ_UNIT_MAX_PKTS;
}

/* SEND and WRITE with immediate take a receive WQE and so a credit. */
static bool beyond_credit(const struct rc_qp *rc, const struct wqe *w)
{
	if (!rc->flow.limited || rc_is_rd(w) || w->opcode == WR_WRITE)
		return false;
	return psn_before(psn_of(rc->flow.limit_ssn), psn_of(w->ssn));
}

/* Beyond the limit one packet at a time may probe [IBA 9.7.7.2.5]. */
static bool credit_lacks(const struct rc_qp *rc, const struct wqe *w)
{
	return beyond_credit(rc, w) && rc_in_flight(rc);
}

static bool take_dest(struct qp *qp, uint32_t charge)
{
	struct rc_flow *f = &rc_of(qp)->flow;
	struct budget *b = qp_dest_budget(qp);
	bool unasked = rc_of(qp)->req.since_ackreq != 0;

	if (!budget_take(b, charge, &f->dest_wait, qp->hca->now_ns) &&
	    !(unasked && budget_take_over(b, charge, &f->dest_wait))) {
		HCA_COUNT(qp->hca, req_blocked_budget);
		return false;
	}
	f->dest_used += charge;
	return true;
}

static void give_dest(struct qp *qp, uint32_t charge)
{
	struct rc_flow *f = &rc_of(qp)->flow;

	ASSERT(f->dest_used >= charge);
	f->dest_used -= charge;
	budget_give(qp_dest_budget(qp), charge);
}

static void give_read(struct qp *qp, uint32_t charge)
{
	struct rc_flow *f = &rc_of(qp)->flow;

	ASSERT(f->read_used >= charge);
	f->read_used -= charge;
	budget_give(&qp->hca->read_budget, charge);
}

/* A READ or atomic request: its own packet at the peer, its answer here. */
static bool take_rd(struct qp *qp, const struct wqe *w, uint32_t pkts)
{
	struct rc_flow *f = &rc_of(qp)->flow;
	uint32_t charge = pkts * w->pkt_charge;

	/* One always may: the limit may have become 0 since the WQE began. */
	if (f->reads_out != 0 && f->reads_out >= qp->attr.max_rd_atomic)
		return false;
	if (!take_dest(qp, f->request_charge))
		return false;
	if (charge && !budget_take(&qp->hca->read_budget, charge, &f->read_wait,
				   qp->hca->now_ns)) {
		HCA_COUNT(qp->hca, req_blocked_budget);
		give_dest(qp, f->request_charge);
		return false;
	}
	f->read_used += charge;
	f->reads_out++;
	return true;
}

bool rc_flow_take(struct qp *qp, const struct wqe *w, uint32_t pkts)
{
	struct rc_qp *rc = rc_of(qp);
	uint32_t in_flight = psn_distance(rc->req.psn, rc->cmp.una);

	if (in_flight + pkts > WINDOW_PKTS && in_flight != 0)
		return false;
	/* A peer that is slow, not deaf, must not get all of it again. */
	if (rc->cmp.probing && in_flight != 0)
		return false;
	if (credit_lacks(rc, w)) {
		HCA_COUNT(qp->hca, req_blocked_credit);
		return false;
	}
	return rc_is_rd(w) ? take_rd(qp, w, pkts)
			   : take_dest(qp, pkts * w->pkt_charge);
}

void rc_flow_untake(struct qp *qp, const struct wqe *w, uint32_t pkts)
{
	struct rc_flow *f = &rc_of(qp)->flow;

	if (!rc_is_rd(w)) {
		give_dest(qp, pkts * w->pkt_charge);
		return;
	}
	f->reads_out--;
	give_read(qp, pkts * w->pkt_charge);
	give_dest(qp, f->request_charge);
}

/* Not for READs and atomics, which are answered anyway. A quarter of the
 * destination's budget at most goes unacknowledged, and the packet that fills
 * it always asks: whoever waits for room then has an ACK under way that makes
 * some. While others wait every packet asks: our next one may stand at the end
 * of a long line, and the transport timer runs for what went before it. */
bool rc_flow_wants_ack(struct qp *qp, const struct wqe *w, uint32_t pkts)
{
	struct rc_qp *rc = rc_of(qp);
	const struct budget *b = qp_dest_budget(qp);
	uint32_t every = ACK_EVERY_PKTS;

	if (rc->cmp.probing)
		return true;
	if (b->limit != 0) {
		uint32_t quarter = budget_bound(b) / 4 /
				   (w->pkt_charge ? w->pkt_charge : 1);

		if (quarter < every)
			every = quarter;
		if (b->used + w->pkt_charge > budget_bound(b) ||
		    !dlist_empty(&b->waiters))
			return true;
	}
	if (beyond_credit(rc, w))
		return true;
	return rc->req.since_ackreq + pkts >= every;
}

static void acked_rd(struct qp *qp, const struct wqe *w, uint32_t off,
		     uint32_t n)
{
	struct rc_qp *rc = rc_of(qp);
	uint32_t i;

	for (i = off; i < off + n; i++) {
		if (rc_unit_end(&rc->req, rc_wqe_pkts(w), i) != i + 1)
			continue;
		ASSERT(rc->flow.reads_out > 0);
		rc->flow.reads_out--;
		give_dest(qp, rc->flow.request_charge);
	}
	budget_acked(&qp->hca->read_budget, n * w->pkt_charge);
	give_read(qp, n * w->pkt_charge);
}

void rc_flow_acked(struct qp *qp, const struct wqe *w, uint32_t off, uint32_t n)
{
	if (n == 0)
		return;
	if (rc_is_rd(w)) {
		acked_rd(qp, w, off, n);
		return;
	}
	budget_acked(qp_dest_budget(qp), n * w->pkt_charge);
	give_dest(qp, n * w->pkt_charge);
}

void rc_flow_marked(struct qp *qp)
{
	HCA_ADD(qp->hca, req_budget_cuts, budget_cut(&qp->hca->read_budget));
}

void rc_flow_peer_reads(struct qp *qp)
{
	budget_share(qp_dest_budget(qp), qp->hca->now_ns);
}

void rc_flow_peer_sends(struct qp *qp)
{
	budget_share(&qp->hca->read_budget, qp->hca->now_ns);
}

void rc_flow_drop(struct qp *qp)
{
	struct rc_flow *f = &rc_of(qp)->flow;

	budget_leave(&f->dest_wait);
	budget_leave(&f->read_wait);
	f->reads_out = 0;
	if (f->dest_used)
		give_dest(qp, f->dest_used);
	if (f->read_used)
		give_read(qp, f->read_used);
}

void rc_flow_credits(struct qp *qp, uint8_t syndrome, uint32_t msn)
{
	struct rc_flow *f = &rc_of(qp)->flow;
	uint32_t credits = aeth_credits(aeth_value(syndrome));

	f->limited = credits != UINT32_MAX;
	if (f->limited)
		f->limit_ssn = (msn + credits) & PSN_MASK;
}
