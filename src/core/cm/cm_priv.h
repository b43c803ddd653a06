/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cm_priv.h - the machine behind cm.h. For core/cm, and core/mgmt's door.
 *
 *   cm.c         life: pool, ids, listeners, what the driver asks
 *   cm_rx.c      a message came: which communication, and what is nobody's
 *   cm_fsm.c     connections: what verbs, messages and timers do
 *   cm_sidr.c    the same for service id resolution
 *   cm_out.c     building and (re)sending
 *
 *            cm_connect                          REQ
 *        IDLE ---> REQ_SENT              IDLE ---> REQ_RCVD
 *                   | REP, MRA waits                | cm_accept
 *                   v                               v
 *                  REP_RCVD                        REP_SENT
 *                   | cm_establish                  | RTU, data
 *                   v                               v
 *                       ESTABLISHED ------------------
 *         cm_disconnect |         | DREQ
 *                       v         v
 *                  DREQ_SENT   DREQ_RCVD
 *        DREP, timeout  |         | cm_disconnect
 *                       v         v
 *                        TIMEWAIT --- timer ---> DONE
 *
 * REJ, and silence while setting up, lead to DONE. A communication without a
 * user (orphan) goes back to the pool when it reaches DONE. Time runs by one
 * timer: retransmission in the _SENT states, the end of TIMEWAIT.
 */
#ifndef SOFTHCA_CORE_CM_CM_PRIV_H
#define SOFTHCA_CORE_CM_CM_PRIV_H

#include "base/dlist.h"
#include "base/prng.h"
#include "base/twheel.h"
#include "core/cm/cm.h"
#include "core/obj/event.h"

#define CM_CONNS_MAX 65535 /* of one hca: 16 bits of an id */
#define CM_BUCKETS 256

enum cm_state {
	CM_STATE_FREE, /* in the pool */
	CM_STATE_REQ_SENT,
	CM_STATE_REQ_RCVD,
	CM_STATE_REP_SENT,
	CM_STATE_REP_RCVD,
	CM_STATE_ESTABLISHED,
	CM_STATE_DREQ_SENT,
	CM_STATE_DREQ_RCVD,
	CM_STATE_TIMEWAIT,
	CM_STATE_SIDR_SENT,
	CM_STATE_SIDR_RCVD,
	CM_STATE_DONE,
};

struct cm_listener {
	struct hca *hca;
	struct dlist node;  /* struct cm.listeners */
	struct dlist conns; /* struct cm_conn.node: to be adopted */
	uint64_t service_id;
	struct gid addr; /* all zero: any */
	unsigned backlog, waiting;
	void *user;
};

struct cm_conn {
	struct event_src events; /* bits 1 << enum cm_event */
	struct hca *hca;
	struct dlist node; /* the pool's, or its listener's */
	/* Passive: who it is to the peer, until DONE; CA GUID and comm id. */
	struct dlist peer_node;
	/* The peer's QP is in use by us: until TIMEWAIT; CA GUID and QPN. */
	struct dlist qpn_node;
	struct timer timer;
	uint32_t local_id, remote_id;
	uint64_t tid, remote_guid;
	enum cm_state state;
	bool sidr, passive, orphan;
	bool raised[CM_EVENT_KINDS];
	struct cm_listener *listener; /* until adopted */
	void *user;

	struct path path;  /* of MADs */
	struct ah_attr av; /* of the QP */
	uint32_t local_qpn, remote_qpn, sq_psn, rq_psn;
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry, ack_timeout, mtu;

	/* Retransmission of mad, in the _SENT states. */
	uint8_t mad[MAD_BYTES]; /* sent last, for a peer that lost it */
	unsigned tries_left;
	int64_t wait_ns;     /* of the running timer */
	int64_t wait_max_ns; /* the time that the peer has by protocol */

	struct cm_msg peer;
	uint16_t reject_reason;
	uint8_t reject_priv[CM_PRIVATE_MAX];
	_Alignas(16) uint8_t driver[CM_DRIVER_BYTES];
};

struct cm {
	struct dlist listeners, pool;
	unsigned pool_n;
	unsigned reserved;    /* of the pool, for listeners' REQs */
	struct cm_conn **tab; /* by index; 0 is never used */
	unsigned tab_n, tab_room;
	struct dlist by_peer[CM_BUCKETS], by_qpn[CM_BUCKETS];
	struct prng rng;
};

/* ---- cm.c ---- */

void cm_init(struct hca *hca);
/* Whatever is left. */
void cm_fini(struct hca *hca);
/* From the pool; reserved: for a listener's REQ. NULL: none. */
struct cm_conn *cm_conn_take(struct hca *hca, bool reserved);
/* An orphan that is DONE goes back. */
void cm_conn_done(struct cm_conn *c);
struct cm_conn *cm_find(struct hca *hca, uint32_t local_id);
/* A passive one that this peer's REQ made, or NULL. */
struct cm_conn *cm_find_peer(struct hca *hca, uint64_t guid, uint32_t id,
			     bool sidr);
struct cm_conn *cm_find_qpn(struct hca *hca, uint64_t guid, uint32_t qpn);
void cm_hash_peer(struct cm_conn *c);
void cm_hash_qpn(struct cm_conn *c);
struct cm_listener *cm_find_listener(struct hca *hca, uint64_t service_id,
				     const struct gid *addr);
/* Once in its life each. */
void cm_event(struct cm_conn *c, enum cm_event e);
/* A new passive one for a REQ; NULL: dropped and counted. */
struct cm_conn *cm_born(struct cm_listener *l, const struct rx_frame *f,
			const struct cm_msg *m);

/* ---- cm_rx.c ---- */

/* A MAD of the CM class. */
void cm_rx(struct hca *hca, const struct rx_frame *f, const uint8_t *mad);

/* ---- cm_fsm.c, cm_sidr.c ---- */

/* The QP's first packet came while its RTU did not. */
void cm_qp_established(struct hca *hca, uint32_t qpn);
void cm_timer_fire(struct timer *t, int64_t now_ns);
void cm_enter_timewait(struct cm_conn *c);
void cm_abandon(struct cm_conn *c); /* cm_destroy() of a connection */
void cm_fsm_timeout(struct cm_conn *c);
void cm_rx_req(struct hca *hca, const struct rx_frame *f,
	       const struct cm_msg *m);
void cm_rx_rep(struct cm_conn *c, const struct cm_msg *m);
void cm_rx_rtu(struct cm_conn *c, const struct cm_msg *m);
void cm_rx_rej(struct cm_conn *c, const struct cm_msg *m);
void cm_rx_mra(struct cm_conn *c, const struct cm_msg *m);
void cm_rx_dreq(struct cm_conn *c, const struct cm_msg *m);
void cm_rx_drep(struct cm_conn *c, const struct cm_msg *m);
void cm_rx_lap(struct cm_conn *c, const struct cm_msg *m);
void cm_rx_sidr_req(struct hca *hca, const struct rx_frame *f,
		    const struct cm_msg *m);
void cm_rx_sidr_rep(struct cm_conn *c, const struct cm_msg *m);
void cm_sidr_abandon(struct cm_conn *c);

/* ---- cm_out.c ---- */

/* Encodes *m, ids filled in by the caller, and sends it once. */
void cm_send_once(struct cm_conn *c, const struct cm_msg *m);
/* The same, kept for the peer that did not hear it; no timer. */
void cm_send_kept(struct cm_conn *c, const struct cm_msg *m);
/* The same, with a timer: repeated until the state changes. */
void cm_send_retried(struct cm_conn *c, const struct cm_msg *m);
void cm_resend(struct cm_conn *c);
/* The timer fired: sends again. False: no try is left. */
MUST_USE bool cm_retry(struct cm_conn *c);
/* The head of an answer within a connection. */
struct cm_msg cm_answer(const struct cm_conn *c, enum cm_attr attr);
void cm_send_rej(struct cm_conn *c, enum cm_reject reason, const uint8_t *priv,
		 size_t priv_bytes);
/* To somebody who is no communication of ours. */
void cm_reply_rej(struct hca *hca, const struct rx_frame *f,
		  const struct cm_msg *m, enum cm_which which,
		  enum cm_reject reason);
void cm_reply(struct hca *hca, const struct rx_frame *f,
	      const struct cm_msg *reply);

/* Nanoseconds of a 5-bit time code. */
int64_t cm_code_ns(uint8_t code);

#endif
