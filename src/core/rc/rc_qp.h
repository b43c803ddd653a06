/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rc_qp.h - the state of a reliable connection, one struct for each
 * sub-machine [IBA 9.7]. A struct's fields are written by its own file alone;
 * everybody may read them. docs/rc.md has the pictures.
 *
 *   rc_req     requester: which packet goes out next
 *   rc_flow    what the requester may have in flight
 *   rc_cmp     completer: responses in, WQEs done
 *   rc_timer   transport timer, RNR timer, retry counters
 *   rc_rsp     responder: requests in
 *   rc_replay  responses out, and results kept for duplicates
 */
#ifndef SOFTHCA_CORE_RC_RC_QP_H
#define SOFTHCA_CORE_RC_RC_QP_H

#include "base/psn.h"
#include "base/twheel.h"
#include "core/obj/budget.h"
#include "core/obj/hca_priv.h"
#include "core/obj/qp.h"

/* ---- requester ---- */

#define RC_REQ_STATES(X)                                                       \
	X(STOPPED)  /* the QP's state does not let it send */                  \
	X(RUNNING)  /* sends when flow control lets it */                      \
	X(RNR_WAIT) /* the peer had no receive WQE: silent until the timer */  \
	X(HALTED)   /* the WQE at the cursor failed locally; waits its turn */

enum rc_req_state {
#define RC_REQ_ENUM(name) RC_REQ_##name,
	RC_REQ_STATES(RC_REQ_ENUM)
#undef RC_REQ_ENUM
};

struct rc_req {
	enum rc_req_state state;
	/* The cursor: the next packet is PSN psn, of the WQE at index. Going
	 * back N moves both; everything else of a packet follows from them. */
	uint32_t index;
	struct psn psn;
	struct psn high; /* first PSN that was never sent */
	/* The last READ request that did not begin a read unit (a retry), valid
	 * until the completer is past it. */
	struct psn resume;
	/* First PSN after the last frame with references, while none of it
	 * was sent again; una or before: there is none. */
	struct psn refs_end;
	uint32_t next_ssn;	 /* 24 bits: of the next WQE to start */
	uint32_t since_ackreq;	 /* packets */
	uint32_t read_unit_pkts; /* a READ is asked for in units of this */
	uint32_t copied; /* bytes of the WQE at the cursor, without packets */
};

/* ---- flow control of the requester ---- */

struct rc_flow {
	/* Charges held for packets in [cmp.una, req.psn). */
	uint32_t dest_used;	 /* of the destination's budget */
	uint32_t read_used;	 /* of hca->read_budget */
	uint32_t reads_out;	 /* READ units and atomics not yet answered */
	uint32_t request_charge; /* of a packet without payload */
	bool limited;		 /* the peer states credits */
	uint32_t limit_ssn;	 /* 24 bits: last SSN that has a credit */
	struct budget_wait dest_wait, read_wait;
};

/* ---- completer ---- */

struct rc_cmp {
	struct psn una; /* oldest PSN not acknowledged; in the SQ's head WQE */
	bool went_back; /* for a NAK at una: a second one changes nothing */
	bool probing;	/* a timeout sent it back: one request at a time until
			   an answer says that they arrive */
};

/* ---- timers ---- */

struct rc_timer {
	struct timer transport; /* armed while packets are unacknowledged */
	struct timer rnr;	/* armed in RC_REQ_RNR_WAIT alone */
	int64_t deadline_ns;	/* when transport means a timeout; it may be
				   armed for earlier */
	bool excused;		/* this deadline was put off: a stall */
	uint8_t retries_left;
	uint8_t rnr_left; /* 7: for ever */
};

/* ---- responder ---- */

#define RC_RSP_STATES(X)                                                       \
	X(STOPPED) /* before RTR, or in the error state */                     \
	X(READY)   /* the packet with PSN epsn goes on */                      \
	X(GAP)	   /* NAKed a gap before epsn's packet, once */                \
	X(RNR)	   /* NAKed epsn for want of a receive WQE */                  \
	X(FATAL)   /* refused a request for good; its NAK is on its way */

enum rc_rsp_state {
#define RC_RSP_ENUM(name) RC_RSP_##name,
	RC_RSP_STATES(RC_RSP_ENUM)
#undef RC_RSP_ENUM
};

enum rc_rsp_message { RC_RSP_NONE, RC_RSP_SEND, RC_RSP_WRITE };

struct rc_rsp {
	enum rc_rsp_state state;
	struct psn epsn; /* expected */
	uint32_t msn;	 /* 24 bits: messages completed */
	/* The message whose FIRST was accepted and whose LAST was not. */
	enum rc_rsp_message message;
	uint32_t done_bytes; /* of it */
	uint32_t left_bytes; /* WRITE: still to come */
	uint32_t rkey;	     /* WRITE */
	uint64_t va;	     /* WRITE: of the next byte, iova space */
};

/* ---- responses out, results kept ---- */

#define RC_RD_ATOMIC_MAX 255 /* requests of one peer that may wait */

enum rc_resp_kind { RC_RESP_READ, RC_RESP_ATOMIC, RC_RESP_NAK };

/* One READ, atomic or duplicate that is to be answered. */
struct rc_resp {
	uint8_t kind;	     /* enum rc_resp_kind */
	bool fresh;	     /* not a duplicate: counts as outstanding */
	bool begun;	     /* READ: the FIRST response went out */
	uint8_t syndrome;    /* NAK */
	struct psn psn;	     /* of the next response packet */
	uint32_t pkts;	     /* responses to go */
	uint32_t msn;	     /* 24 bits */
	uint32_t left_bytes; /* READ */
	uint32_t rkey;	     /* READ */
	uint32_t xrceth;     /* READ; XRC alone */
	uint64_t value; /* READ: address of the next byte; atomic: original */
};

enum rc_tail_kind { RC_TAIL_NONE, RC_TAIL_ACK, RC_TAIL_NAK };

struct rc_result { /* an atomic that was executed */
	struct psn psn;
	uint32_t msn;
	uint64_t original;
};

struct rc_replay {
	/* Responses in PSN order, without overlaps; [head, head + count). */
	uint32_t head, count, fresh;
	/* The one ACK or NAK that follows them all: a later one replaces it. */
	enum rc_tail_kind tail;
	struct psn tail_psn;
	uint8_t tail_syndrome; /* RC_TAIL_NAK */
	uint32_t results;      /* executed so far; the ring holds the last */
	/* Rings, powers of two, in one allocation that resp points to; sized by
	 * max_dest_rd_atomic, 0 before RTR. Half of resp is for duplicates. */
	uint32_t resp_slots, result_slots;
	struct rc_resp *resp;
	struct rc_result *result;
};

/* ---- the whole ---- */

struct rc_qp {
	struct rc_req req;
	struct rc_flow flow;
	struct rc_cmp cmp;
	struct rc_timer timer;
	struct rc_rsp rsp;
	struct rc_replay replay;
};

static inline struct rc_qp *rc_of(struct qp *qp)
{
	return (struct rc_qp *)(void *)qp->transport_state;
}

static inline const struct rc_qp *rc_view(const struct qp *qp)
{
	return (const struct rc_qp *)(const void *)qp->transport_state;
}

static inline struct qp *rc_owner(struct rc_qp *rc)
{
	return CONTAINER_OF((uint8_t *)rc, struct qp, transport_state);
}

/* True in the error state, where a completion that overran its CQ or a refused
 * request may have put the QP meanwhile. */
static inline bool rc_dead(const struct qp *qp)
{
	return atomic_load_explicit(&qp->state, memory_order_relaxed) ==
	       QP_STATE_ERR;
}

/* Some packet went out since the cursor last went back and is not answered. */
static inline bool rc_in_flight(const struct rc_qp *rc)
{
	return !psn_eq(rc->req.psn, rc->cmp.una);
}

/* How far a is after b going up, 0 .. 2^24 - 1; a message may be 2^23 packets
 * long, too far for psn_diff. */
static inline uint32_t psn_distance(struct psn a, struct psn b)
{
	return (a.v - b.v) & PSN_MASK;
}

/* 0 where there is none. */
static inline uint32_t rc_xrceth(const struct pkt *pkt)
{
	return pkt->info->exth & EXTH_XRCETH ? pkt->ext.xrceth : 0;
}

/* PSNs that a message of n bytes takes [IBA 9.7.3]. */
static inline uint32_t rc_pkts(const struct qp *qp, uint32_t n)
{
	return n ? (uint32_t)(((uint64_t)n + qp->mtu - 1) / qp->mtu) : 1;
}

static inline bool rc_is_atomic(const struct wqe *w)
{
	return w->opcode == WR_CMP_SWAP || w->opcode == WR_FETCH_ADD;
}

/* Answered by data, not by an ACK. */
static inline bool rc_is_rd(const struct wqe *w)
{
	return w->opcode == WR_READ || rc_is_atomic(w);
}

/* PSNs that the started WQE takes. */
static inline uint32_t rc_wqe_pkts(const struct wqe *w)
{
	return psn_distance(w->last_psn, w->first_psn) + 1;
}

/* The oldest WQE that is not complete, or NULL. */
static inline struct wqe *rc_head(struct qp *qp)
{
	return spsc_ready(&qp->sq.idx) ? qp_wqe(qp, spsc_head(&qp->sq.idx))
				       : NULL;
}

/* First packet after the read unit that packet off of a READ lies in: each
 * unit is one READ_REQUEST, and a retry never asks past its unit, because
 * responders look a duplicate up by the request that it repeats. */
static inline uint32_t rc_unit_end(const struct rc_req *r, uint32_t pkts,
				   uint32_t off)
{
	uint32_t end = (off / r->read_unit_pkts + 1) * r->read_unit_pkts;

	return end < pkts ? end : pkts;
}

#endif
