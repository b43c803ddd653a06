/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cm.h - communication management as the drivers use it: the outside of
 * core/cm [IBA 12]. All calls are [E] (core/hca.h) and happen at the time of
 * the hca's last call: the driver calls hca_advance() before them.
 *
 * A struct cm_conn is one communication: an RC, UC or XRC connection, or one
 * service id resolution (SIDR). The active side makes it with cm_connect() or
 * cm_resolve(); on the passive side it is born by a REQ or SIDR REQ that found
 * a listener, and belongs to that until cm_adopt().
 *
 * What happens is an event: HCA_EVENT_CM of hca_event_next() names the
 * communication and the kind. Each kind comes at most once in its life; the
 * data stay in cm_info() until cm_destroy().
 *
 *     active                            passive
 *     cm_connect   -- REQ -->           CM_EVENT_REQ
 *     CM_EVENT_REP <-- REP --           cm_accept
 *     cm_establish -- RTU -->           CM_EVENT_ESTABLISHED
 *     cm_disconnect - DREQ ->           CM_EVENT_DISCONNECTED
 *     CM_EVENT_DISCONNECTED <- DREP -   cm_disconnect
 *     CM_EVENT_TIMEWAIT_EXIT            CM_EVENT_TIMEWAIT_EXIT
 *
 *     cm_resolve   -- SIDR REQ -->      CM_EVENT_REQ
 *     CM_EVENT_REP <-- SIDR REP --      cm_sidr_reply
 */
#ifndef SOFTHCA_CORE_CM_CM_H
#define SOFTHCA_CORE_CM_CM_H

#include "core/hca.h"
#include "wire/cm_msg.h"

struct cm_listener;

enum cm_event {
	CM_EVENT_REQ,
	CM_EVENT_REP,	      /* active: accept it with cm_establish() */
	CM_EVENT_ESTABLISHED, /* passive: RTU, or data, came */
	CM_EVENT_UNREACHABLE, /* no answer to REQ, REP or SIDR REQ */
	CM_EVENT_REJECTED,    /* REJ, or a SIDR REP that says no */
	CM_EVENT_DISCONNECTED,
	CM_EVENT_TIMEWAIT_EXIT,
	CM_EVENT_KINDS,
};

/* Bytes at the driver's disposal in each cm_conn, zeroed when it is born. */
#define CM_DRIVER_BYTES 64

/* What was said. Private data at full length of its message. */
struct cm_info {
	bool sidr;
	bool passive;
	struct ah_attr av; /* toward the peer */
	struct gid local;  /* the address that the peer used or av has */
	/* The peer's REQ (passive) or REP (active), or SIDR equivalents. */
	struct cm_msg peer;
	/* The last REJ or refusing SIDR REP. */
	uint16_t reject_reason; /* enum cm_reject or cm_sidr_status */
	uint8_t reject_priv[CM_PRIVATE_MAX];
	/* Values agreed on, for the QP. */
	uint32_t local_qpn, remote_qpn, sq_psn, rq_psn;
	uint8_t responder_resources, initiator_depth; /* ours */
	uint8_t retry_count, rnr_retry, ack_timeout, mtu;
};

/* ---- listening ---- */

/* addr: the local address; NULL: all of this hca's. backlog: communications
 * that may wait to be adopted, 1..CM_BACKLOG_MAX; further REQs are dropped and
 * counted, their senders try again. -EADDRINUSE: the same service and address
 * is listened on. -ENOMEM. */
#define CM_BACKLOG_MAX 1024
MUST_USE int cm_listen(struct hca *hca, uint64_t service_id,
		       const struct gid *addr, unsigned backlog, void *user,
		       struct cm_listener **ret);
/* Rejects what was not adopted. */
void cm_unlisten(struct cm_listener *l);

/* ---- communications ---- */

struct cm_connect_param {
	struct ah_attr av;
	uint64_t service_id;
	enum qp_type type; /* RC or UC */
	bool xrc;
	uint32_t qpn, psn;
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry;
	bool flow_control, srq;
	uint8_t ack_timeout; /* of the QP, 5-bit code */
	uint8_t mtu;	     /* enum mtu_code */
	uint16_t pkey;
	uint32_t ece_vendor, ece_options; /* 24 bits; 32 bits */
	const uint8_t *priv;		  /* at most 92 bytes */
	size_t priv_bytes;
};
/* -EINVAL: av, or too much private data. -ENOMEM. */
MUST_USE int cm_connect(struct hca *hca, const struct cm_connect_param *p,
			void *user, struct cm_conn **ret);

struct cm_accept_param {
	uint32_t qpn, psn;
	uint8_t responder_resources, initiator_depth;
	uint8_t rnr_retry;
	bool flow_control, srq;
	uint32_t ece_vendor, ece_options;
	const uint8_t *priv; /* at most 196 bytes */
	size_t priv_bytes;
};
/* Passive: answers the REQ with a REP. -EINVAL: not in that state. */
MUST_USE int cm_accept(struct cm_conn *c, const struct cm_accept_param *p);
/* Active: answers the REP with an RTU. */
MUST_USE int cm_establish(struct cm_conn *c, const uint8_t *priv,
			  size_t priv_bytes);
/* Either, before the connection is established: REJ. */
MUST_USE int cm_reject(struct cm_conn *c, enum cm_reject reason,
		       const uint8_t *priv, size_t priv_bytes);
/* DREQ, or the DREP that a DREQ waits for. -EINVAL: not connected. */
MUST_USE int cm_disconnect(struct cm_conn *c);
/* Passive: data came before the RTU. Harmless in other states. */
void cm_notify_established(struct cm_conn *c);

struct cm_resolve_param {
	struct ah_attr av;
	uint64_t service_id;
	uint16_t pkey;
	const uint8_t *priv; /* at most 216 bytes */
	size_t priv_bytes;
};
MUST_USE int cm_resolve(struct hca *hca, const struct cm_resolve_param *p,
			void *user, struct cm_conn **ret);
/* priv: at most 136 bytes. */
MUST_USE int cm_sidr_reply(struct cm_conn *c, enum cm_sidr_status status,
			   uint32_t qpn, uint32_t qkey, const uint8_t *priv,
			   size_t priv_bytes);

/* Takes it from its listener. -ENOMEM: no spare one for the listener. */
MUST_USE int cm_adopt(struct cm_conn *c, void *user);
/* The user is gone: REJ, DREQ or DREP as the state asks for, events are
 * forgotten, and the rest happens by itself. */
void cm_destroy(struct cm_conn *c);

void cm_info_get(const struct cm_conn *c, struct cm_info *ret);
void *cm_conn_user(const struct cm_conn *c); /* NULL before cm_adopt() */
void *cm_conn_listener_user(const struct cm_conn *c); /* NULL after it */
uint8_t *cm_conn_driver(struct cm_conn *c);	      /* CM_DRIVER_BYTES */

/* Every connection of this hca that is established, for whoever sends the
 * DREQs when the process dies: start with *pos = 0; false ends. */
struct cm_peer {
	struct path path;
	uint64_t tid;
	uint32_t local_id, remote_id, remote_qpn;
};
bool cm_peer_next(const struct hca *hca, uint32_t *pos, struct cm_peer *ret);

#endif
