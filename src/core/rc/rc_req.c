/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rc_req.c - the requester.
 *
 * One call builds one packet, in steps: choose it (pick), ask flow control
 * (rc_flow_take), build it in the driver's buffer (build), and only then move
 * the cursor (commit). A step that says no leaves the steps before it undone.
 */
#include "core/rc/rc_req.h"

#include <string.h>

#include "base/bytes.h"
#include "base/mutant.h"
#include "core/obj/direct.h"
#include "core/obj/mw.h"
#include "core/rc/rc_cmp.h"
#include "core/rc/rc_flow.h"
#include "core/rc/rc_frame.h"
#include "core/rc/rc_timer.h"

/* The next packet, chosen but not sent. */
struct step {
	struct wqe *w;
	uint32_t off;	/* packet's number in the message */
	uint32_t pkts;	/* PSNs it takes: more than 1 for a READ, and for a
			   frame with references */
	uint32_t total; /* PSNs of the message */
	bool ackreq;
};

const char *rc_req_state_name(enum rc_req_state s)
{
	static const char *const names[] = {
#define RC_REQ_NAME(name) [RC_REQ_##name] = #name,
		RC_REQ_STATES(RC_REQ_NAME)
#undef RC_REQ_NAME
	};

	return s < ARRAY_SIZE(names) ? names[s] : "?";
}

void rc_req_reset(struct qp *qp)
{
	struct rc_req *r = &rc_of(qp)->req;

	*r = (struct rc_req){ .state = RC_REQ_STOPPED, .read_unit_pkts = 1 };
}

void rc_req_start(struct qp *qp)
{
	struct rc_req *r = &rc_of(qp)->req;

	r->psn = r->high = r->resume = r->refs_end = psn_of(qp->attr.sq_psn);
	r->index = spsc_head(&qp->sq.idx);
	r->next_ssn = 1;
	rc_req_resume(qp);
}

void rc_req_resume(struct qp *qp)
{
	struct rc_req *r = &rc_of(qp)->req;

	/* Boundaries of units must stay while one may be asked for again. */
	if (psn_eq(r->high, rc_of(qp)->cmp.una))
		r->read_unit_pkts = rc_flow_read_unit(qp);
	if (r->state == RC_REQ_STOPPED)
		r->state = RC_REQ_RUNNING;
	qp_sched(qp);
}

/* The WQE at the cursor, or NULL. In SQD none is begun [IBA 10.3.1.5]. */
static struct wqe *current_wqe(struct qp *qp)
{
	const struct rc_req *r = &rc_of(qp)->req;
	uint32_t done = r->index - spsc_head(&qp->sq.idx);
	struct wqe *w;

	if (spsc_ready(&qp->sq.idx) <= done)
		return NULL;
	w = qp_wqe(qp, r->index);
	if (!w->started &&
	    atomic_load_explicit(&qp->state, memory_order_relaxed) !=
		    QP_STATE_RTS)
		return NULL;
	return w;
}

/* What can be known to fail before any packet is sent. */
static enum wc_status local_check(const struct qp *qp, const struct wqe *w)
{
	if (rc_is_atomic(w) && w->len_bytes != 8)
		return WC_LOC_LEN_ERR;
	if (w->len_bytes > qp->hca->cfg.limits.max_msg_bytes)
		return WC_LOC_LEN_ERR;
	if (rc_is_rd(w) && qp->attr.max_rd_atomic == 0)
		return WC_LOC_QP_OP_ERR; /* it could never be sent */
	return WC_SUCCESS;
}

/* First meeting of a WQE: it gets its PSNs and its SSN. */
static void begin_wqe(struct qp *qp, struct wqe *w)
{
	struct rc_req *r = &rc_of(qp)->req;

	ASSERT(psn_eq(r->psn, r->high));
	w->first_psn = r->psn;
	w->last_psn = psn_add(r->psn, (int32_t)(rc_pkts(qp, w->len_bytes) - 1));
	w->ssn = r->next_ssn;
	w->pkt_charge = rc_flow_charge(qp, w);
	w->status = (uint8_t)local_check(qp, w);
	w->started = true;
	r->next_ssn = (r->next_ssn + 1) & PSN_MASK;
}

/* A fenced WQE is not begun before earlier READs and atomics are complete
 * (bug log B082, B083). */
static bool fenced(const struct rc_qp *rc, const struct wqe *w)
{
	return !w->started && w->flags & WR_FENCE && rc->flow.reads_out != 0 &&
	       !MUTANT(fence_ignored);
}

/* The failed WQE completes when it is the oldest: the completer sees to it. */
static void halt(struct qp *qp, int64_t now_ns)
{
	rc_of(qp)->req.state = RC_REQ_HALTED;
	rc_cmp_local_error(qp, now_ns);
}

/* A local WQE takes no PSN and its turn comes when it is the oldest. True: it
 * was carried out; false: it waits, or has failed. */
static bool run_local(struct qp *qp, struct wqe *w, int64_t now_ns)
{
	struct rc_req *r = &rc_of(qp)->req;

	if (r->index != spsc_head(&qp->sq.idx))
		return false;
	w->status = (uint8_t)mw_execute(qp, w);
	if (w->status != WC_SUCCESS) {
		w->started = true;
		halt(qp, now_ns);
		return false;
	}
	r->index++;
	qp_complete_send(qp, WC_SUCCESS);
	return true;
}

static bool pick(struct qp *qp, struct step *s, int64_t now_ns)
{
	struct rc_qp *rc = rc_of(qp);

	s->w = current_wqe(qp);
	if (!s->w || fenced(rc, s->w))
		return false;
	if (!s->w->started)
		begin_wqe(qp, s->w);
	if (s->w->status != WC_SUCCESS) {
		halt(qp, now_ns);
		return false;
	}
	s->off = psn_distance(rc->req.psn, s->w->first_psn);
	s->total = rc_wqe_pkts(s->w);
	ASSERT(s->off < s->total);
	s->pkts = s->w->opcode != WR_READ
			  ? 1
			  : rc_unit_end(&rc->req, s->total, s->off) - s->off;
	return true;
}

static uint8_t send_or_write_op(const struct wqe *w, bool start, bool end)
{
	static const uint8_t send[2][2] = { /* [start][end] */
					    { OP_SEND_MIDDLE, OP_SEND_LAST },
					    { OP_SEND_FIRST, OP_SEND_ONLY }
	};
	static const uint8_t write[2][2] = { { OP_WRITE_MIDDLE, OP_WRITE_LAST },
					     { OP_WRITE_FIRST,
					       OP_WRITE_ONLY } };
	bool is_write = w->opcode == WR_WRITE || w->opcode == WR_WRITE_IMM;
	bool imm = w->opcode == WR_SEND_IMM || w->opcode == WR_WRITE_IMM;
	uint8_t op = is_write ? write[start][end] : send[start][end];

	if (end && w->opcode == WR_SEND_INV)
		return start ? OP_SEND_ONLY_INV : OP_SEND_LAST_INV;
	return (uint8_t)(end && imm ? op + 1 : op);
}
_Static_assert(OP_SEND_LAST_IMM == OP_SEND_LAST + 1 &&
		       OP_SEND_ONLY_IMM == OP_SEND_ONLY + 1 &&
		       OP_WRITE_LAST_IMM == OP_WRITE_LAST + 1 &&
		       OP_WRITE_ONLY_IMM == OP_WRITE_ONLY + 1,
	       "with immediate follows without");

/* SEND and WRITE: WC_SUCCESS, or what gathering the payload said. */
static enum wc_status build_data(struct qp *qp, const struct step *s,
				 struct tx_frame *f, struct pkt *p)
{
	struct wqe *w = s->w;
	bool end = s->off + s->pkts == s->total;
	uint32_t at = s->off * qp->mtu;

	p->bth.opcode = send_or_write_op(w, s->off == 0, end);
	p->bth.solicited =
		end && w->flags & WR_SOLICITED && w->opcode != WR_WRITE;
	p->ext.immdt = get_be32((const uint8_t *)&w->imm_be_or_rkey);
	p->ext.ieth = w->imm_be_or_rkey;
	p->ext.reth = (struct reth){ .va = w->remote_addr,
				     .rkey = w->rkey,
				     .len_bytes = w->len_bytes };
	if (f->nrefs)
		return WC_SUCCESS;
	p->payload_bytes = end ? w->len_bytes - at : qp->mtu;
	if (p->payload_bytes == 0)
		return WC_SUCCESS;
	return wqe_gather(qp->hca, qp->pd, w, at, p->payload_bytes,
			  rc_frame_payload(qp, f, p->bth.opcode));
}

/* A READ asks from packet off on, for a unit or what is left of it (B008). */
static void build_read(const struct qp *qp, const struct step *s, struct pkt *p)
{
	uint32_t at = s->off * qp->mtu;
	uint32_t left = s->w->len_bytes - at;
	uint32_t from = MUTANT(read_restarts_at_zero) ? 0 : at;
	uint64_t most = (uint64_t)s->pkts * qp->mtu;

	p->bth.opcode = OP_READ_REQUEST;
	p->ext.reth = (struct reth){
		.va = s->w->remote_addr + from,
		.rkey = s->w->rkey,
		.len_bytes = left < most ? left : (uint32_t)most,
	};
}

static void build_atomic(const struct wqe *w, struct pkt *p)
{
	bool swap = w->opcode == WR_CMP_SWAP;

	p->bth.opcode = swap ? OP_CMP_SWAP : OP_FETCH_ADD;
	p->ext.atomiceth = (struct atomiceth){
		.va = w->remote_addr,
		.rkey = w->rkey,
		.swap_or_add = swap ? w->swap : w->compare_add,
		.compare = swap ? w->compare_add : 0,
	};
}

/* Several packets at once, by reference: where the way out allows, and only
 * what was never sent. What is sent again is by value, so that a peer that
 * could not have the memory gets the bytes. */
static void widen(struct qp *qp, struct step *s, struct tx_frame *f)
{
	const struct rc_req *r = &rc_of(qp)->req;
	uint32_t at = s->off * qp->mtu, most = qp->path.frame_bytes / qp->mtu;
	uint32_t n = s->total - s->off, bytes;

	if (most < 2 || n < 2 || rc_is_rd(s->w) || !psn_eq(r->psn, r->high) ||
	    rc_of(qp)->cmp.probing)
		return;
	if (n > most)
		n = most;
	bytes = s->off + n == s->total ? s->w->len_bytes - at : n * qp->mtu;
	f->nrefs =
		wqe_refs(qp->hca, qp->pd, s->w, at, bytes, f->ref, TX_REFS_MAX);
	if (f->nrefs == 0)
		return;
	s->pkts = f->pkts = n;
	f->payload_bytes = bytes;
}

/* The last packet of a message asks for an ACK; READs and atomics, which are
 * answered, do too. */
static enum wc_status build(struct qp *qp, struct step *s, struct tx_frame *f)
{
	enum wc_status status = WC_SUCCESS;
	struct pkt p = { .bth.psn = rc_of(qp)->req.psn,
			 .ext.xrceth = s->w->remote_srqn };

	s->ackreq = rc_is_rd(s->w) || s->off + s->pkts == s->total ||
		    rc_flow_wants_ack(qp, s->w, s->pkts);
	p.bth.ackreq = s->ackreq;
	if (s->w->opcode == WR_READ)
		build_read(qp, s, &p);
	else if (rc_is_atomic(s->w))
		build_atomic(s->w, &p);
	else
		status = build_data(qp, s, f, &p);
	if (status == WC_SUCCESS)
		rc_frame_finish(qp, f, &p);
	return status;
}

static void commit(struct qp *qp, const struct step *s,
		   const struct tx_frame *f, int64_t now_ns)
{
	struct rc_req *r = &rc_of(qp)->req;
	struct psn after = psn_add(r->psn, (int32_t)s->pkts);

	r->since_ackreq = s->ackreq ? 0 : r->since_ackreq + s->pkts;
	if (!psn_eq(r->psn, r->high))
		HCA_COUNT(qp->hca, req_retransmits);
	if (s->w->opcode == WR_READ && s->off % r->read_unit_pkts != 0)
		r->resume = r->psn;
	r->psn = after;
	if (f->nrefs)
		r->refs_end = after;
	if (psn_before(r->high, after))
		r->high = after;
	if (s->off + s->pkts == s->total)
		r->index++;
	rc_timer_sent(qp, now_ns);
}

/* Every earlier request has been executed, and nothing of this WQE was sent. */
static bool alone(struct qp *qp, const struct wqe *w)
{
	const struct rc_req *r = &rc_of(qp)->req;

	return r->index == spsc_head(&qp->sq.idx) &&
	       psn_eq(r->high, rc_of(qp)->cmp.una) && psn_eq(r->psn, r->high) &&
	       (!w->started || psn_eq(r->psn, w->first_psn));
}

/* The WQE at the cursor was executed without packets: its PSNs and its SSN are
 * the next one's. */
static void skip_wqe(struct qp *qp)
{
	struct rc_req *r = &rc_of(qp)->req;

	r->next_ssn = (r->next_ssn - 1) & PSN_MASK;
	r->index++;
	qp_complete_send(qp, WC_SUCCESS);
}

/* Copies what can be copied. False: nothing may be sent now. A message of one
 * packet follows those that are in flight as a packet, a longer one waits to be
 * copied. */
static bool go_direct(struct qp *qp)
{
	struct rc_req *r = &rc_of(qp)->req;
	enum direct_step step = DIRECT_EXECUTED;
	struct wqe *w;

	while (step == DIRECT_EXECUTED) {
		w = current_wqe(qp);
		if (!w || !direct_fits(qp, w))
			return true;
		if (!alone(qp, w))
			return w->started || w->len_bytes <= qp->mtu;
		if (!w->started)
			begin_wqe(qp, w);
		if (w->status != WC_SUCCESS)
			return true;
		step = direct_run(qp, w, &r->copied);
		if (step == DIRECT_EXECUTED)
			skip_wqe(qp);
	}
	if (step == DIRECT_LATER)
		qp_sched(qp);
	return step == DIRECT_PACKETS;
}

/* Carries out what takes no packet. False: there is nothing to send now. */
static bool before_packets(struct qp *qp, int64_t now_ns)
{
	struct wqe *w;

	do {
		if (qp->direct && !go_direct(qp))
			return false;
		w = current_wqe(qp);
	} while (w && wqe_is_local(w) && run_local(qp, w, now_ns));
	return w && !wqe_is_local(w);
}

bool rc_req_tx(struct qp *qp, struct tx_frame *f, int64_t now_ns)
{
	struct step s;
	enum wc_status status;

	if (rc_of(qp)->req.state != RC_REQ_RUNNING)
		return false;
	if (!before_packets(qp, now_ns))
		return false;
	if (!pick(qp, &s, now_ns))
		return false;
	if (s.w->len_bytes && !rc_is_rd(s.w) && !cc_may_send(qp, now_ns))
		return false;
	widen(qp, &s, f);
	if (!rc_flow_take(qp, s.w, s.pkts))
		return false;
	status = build(qp, &s, f);
	if (status != WC_SUCCESS) {
		rc_flow_untake(qp, s.w, s.pkts);
		s.w->status = (uint8_t)status;
		halt(qp, now_ns);
		return false;
	}
	commit(qp, &s, f, now_ns);
	return true;
}

void rc_req_go_back(struct qp *qp)
{
	struct rc_qp *rc = rc_of(qp);
	struct rc_req *r = &rc->req;

	rc_timer_stop(qp);
	rc_flow_drop(qp);
	r->psn = r->refs_end = rc->cmp.una;
	r->index = spsc_head(&qp->sq.idx);
	r->since_ackreq = 0;
	if (r->state == RC_REQ_HALTED)
		r->state = RC_REQ_RUNNING; /* until it meets the WQE again */
	qp_sched(qp);
}

void rc_req_follow(struct qp *qp)
{
	struct rc_qp *rc = rc_of(qp);
	struct rc_req *r = &rc->req;
	uint32_t sent = psn_distance(r->high, rc->cmp.una);

	if (psn_distance(r->high, r->psn) <= sent)
		return;
	r->psn = rc->cmp.una;
	r->index = spsc_head(&qp->sq.idx);
}

void rc_req_rnr_wait(struct qp *qp, int64_t ns, int64_t now_ns)
{
	rc_req_go_back(qp);
	rc_of(qp)->req.state = RC_REQ_RNR_WAIT;
	rc_timer_rnr_start(qp, MUTANT(rnr_wait_skipped) ? 0 : ns, now_ns);
}

void rc_req_rnr_over(struct qp *qp)
{
	struct rc_req *r = &rc_of(qp)->req;

	ASSERT(r->state == RC_REQ_RNR_WAIT);
	rc_timer_rnr_stop(qp);
	r->state = RC_REQ_RUNNING;
	qp_sched(qp);
}

bool rc_req_refs_out(const struct qp *qp)
{
	const struct rc_qp *rc = rc_view(qp);

	return psn_before(rc->cmp.una, rc->req.refs_end) && rc_in_flight(rc);
}

void rc_req_refused(struct qp *qp)
{
	qp->path.frame_bytes = 0;
	if (rc_of(qp)->req.state == RC_REQ_RUNNING)
		rc_req_go_back(qp);
}

void rc_req_void_refs(struct qp *qp)
{
	const struct hca *hca = qp->hca;

	if (qp->path.out && hca->ops->refs_void)
		hca->ops->refs_void(hca->ops_ctx, qp->qpn);
}

void rc_req_stop(struct qp *qp)
{
	rc_req_void_refs(qp);
	rc_timer_reset(qp);
	rc_flow_drop(qp);
	rc_of(qp)->req.state = RC_REQ_STOPPED;
	rc_of(qp)->req.copied = 0;
}
