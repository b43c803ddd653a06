/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * qp.h - the queue pair: what all transports share, and the frame around
 * their sub-machines. Each sub-machine's fields are written by its own file
 * alone (ARCHITECTURE.md, "who owns what").
 *
 *   qp.c       create, destroy, query
 *   qp_post.c  post, doorbell
 *   qp_fsm.c   modify: transition and attribute tables
 *   qp_done.c  completions, the error state, flushing
 *   hca_tx.c   scheduling: whose turn it is to send
 *   rc/, uc/, ud/, xrc/   the transports, behind struct transport_ops
 */
#ifndef SOFTHCA_CORE_OBJ_QP_H
#define SOFTHCA_CORE_OBJ_QP_H

#include <stdatomic.h>

#include "core/cc/cc.h"
#include "core/obj/budget.h"
#include "core/obj/event.h"
#include "core/obj/wq.h"
#include "core/verbs.h"
#include "wire/pkt.h"

/* What a transport is to the rest of the core. All [E]. */
struct transport_ops {
	enum transport wire; /* opcodes it accepts */
	bool reliable;	     /* has an account of the peer's process */
	/* Bytes of transport state behind struct qp; zeroed at creation. */
	size_t state_bytes;
	void (*init)(struct qp *qp);
	/* Allocates what attributes that are about to be stored (mask: which)
	 * need. -ENOMEM: nothing changes. Optional. */
	int (*prepare)(struct qp *qp, const struct qp_attr *attr,
		       uint32_t mask);
	/* After the state attribute changed (qp->state is already the new one;
	 * attributes and path are stored). RESET must forget everything. */
	void (*enter)(struct qp *qp, enum qp_state old, int64_t now_ns);
	/* One packet for this QP: state, P_Key and, for RC and UC, addresses
	 * were checked. */
	void (*rx)(struct qp *qp, const struct rx_frame *f,
		   const struct pkt *pkt, int64_t now_ns);
	/* Builds the next frame: writes frame->pkt and len_bytes. path
	 * (qp->path), dest_qpn (attr.dest_qpn), tos (the path's class, ECT(0))
	 * and owner are set already and may be overwritten; hca_tx.c counts
	 * tx_pkts and tx_payload_bytes. False: nothing to send now, the
	 * scheduler forgets the QP until qp_sched(). Responses go before
	 * requests. Called in whatever state a sched()uled QP is: in SQD no
	 * WQE that is not `started` may be begun [IBA 10.3.1.5]. */
	bool (*tx)(struct qp *qp, struct tx_frame *frame, int64_t now_ns);
	/* The oldest frame of this QP that was not yet done is done. Optional;
	 * a transport that has it gets its WQEs flushed only when no frame is
	 * out, since those that went out complete with success. */
	void (*tx_done)(struct qp *qp);
	/* hca_tx_refused(). NULL where no frame has references. */
	void (*tx_refused)(struct qp *qp);
	/* Before the QP goes away: cancel timers, leave budget lines. */
	void (*fini)(struct qp *qp);
	/* Accepts an opcode at post? (enum wr_opcode) */
	bool (*can_post)(uint32_t opcode);

	/* What RC's responder asks; transports without it have neither. */

	/* Whose memory a request may name; NULL: nobody's. */
	const struct pd *(*request_pd)(const struct qp *qp, uint32_t xrceth);
	/* The request that is now to be carried out finds its receives where
	 * qp_recv_wqe() takes them; false: there is no such place. */
	bool (*aim)(struct qp *qp, const struct pkt *pkt);
};

extern const struct transport_ops rc_transport;
extern const struct transport_ops uc_transport;
extern const struct transport_ops ud_transport;
extern const struct transport_ops xrc_ini_transport;
extern const struct transport_ops xrc_tgt_transport;

struct qp {
	struct hca *hca;
	struct pd *pd; /* NULL: an XRC target */
	/* NULL: a queue that the type has not. Of an XRC target srq and recv_cq
	 * are those of the last request. */
	struct cq *send_cq, *recv_cq;
	struct srq *srq;   /* or NULL */
	struct xrcd *xrcd; /* XRC target, else NULL */
	const struct transport_ops *ops;
	void *user;
	uint32_t qpn;
	enum qp_type type;
	bool sq_sig_all;
	bool own_rq; /* receives are posted to the QP, not to an SRQ */
	_Atomic uint32_t state; /* enum qp_state; written by the engine */
	struct qp_cap cap;	/* given */

	/* qp_fsm.c: configured values, as query returns them. */
	struct qp_attr attr;
	struct path path;     /* RC, UC; copied from the GID entry at RTR */
	struct path alt_path; /* zero: none was loaded; apm.c */
	uint32_t mtu;	      /* bytes of payload a packet */
	uint16_t pkey;
	uint8_t sl;	   /* class of the next frame; UD sets it per WQE */
	struct dest *dest; /* RC: account of path and peer, from RTR on */
	bool direct;	   /* the driver's copies reach the peer */

	/* Rings. sq: entries head..tail are not completed. */
	struct wring sq;
	struct wring rq;      /* capacity 0 with an SRQ */
	struct dlist windows; /* mw.c: type 2, bound by this QP */
	struct rwqe *srq_wqe; /* room for one, copied out of the SRQ */
	bool recv_taken;      /* the current receive WQE is in use */

	/* Doorbell: an intrusive MPSC stack, hca.c pops. */
	_Atomic bool rung;
	struct qp *bell_next;

	/* hca_tx.c */
	struct dlist sched_node;
	uint32_t burst_left;
	uint32_t tx_unfinished; /* frames between hca_tx and hca_tx_done */
	uint16_t parked_out;	/* on hca->parked: what it waits for */

	struct cc_flow cc;	 /* cc.c */
	struct event_src events; /* hca_event.c */
	bool comm_est;		 /* COMM_EST was raised */
	bool cm_waits;		 /* core/cm: its REP is not answered yet */

	/* The transport's own, state_bytes long; see rc/rc_qp.h and so on. */
	_Alignas(16) uint8_t transport_state[];
};

/* The QP of that number, or NULL. */
struct qp *hca_find_qp(struct hca *hca, uint32_t qpn);

/* ---- services for the transports, all [E] ---- */

/* This QP has (or may have) something to send. Harmless when linked. */
void qp_sched(struct qp *qp);

/* Waits (returning true) when the way out is blocked; then the scheduler
 * forgets it until that opens. */
bool qp_park_if_blocked(struct qp *qp, uint16_t out);

/* Off the ready list. */
void qp_unsched(struct qp *qp);
/* Changes the class of the next frame; stays on a ready list if on one. */
void qp_set_sl(struct qp *qp, uint8_t sl);

/* Whose lkeys a receive WQE holds: the SRQ's domain if there is one. */
const struct pd *qp_recv_pd(const struct qp *qp);

/* RESET: forgets WQEs, attributes and path; ops->enter is the caller's. */
void qp_forget(struct qp *qp);

/* Takes its completions out of its CQs; an XRC target's, which lie in its SRQs'
 * CQs, stay. */
void qp_forget_cqes(struct qp *qp);

/* The WQE at SQ index i (spsc_head .. spsc_tail - 1). */
static inline struct wqe *qp_wqe(struct qp *qp, uint32_t i)
{
	return wring_slot(&qp->sq, i);
}

/* Completes the oldest WQE of the SQ and pops it: a CQE when signaled or when
 * status is not success. Counts messages, their bytes and local_errors. Does
 * not change the QP's state. In SQD raises SQ_DRAINED when no started WQE is
 * left. */
void qp_complete_send(struct qp *qp, enum wc_status status);

/* The receive WQE that the message now arriving fills: the head of the RQ,
 * or one taken from the SRQ (raising its limit event). The same one until
 * qp_complete_recv. NULL: none posted. */
struct rwqe *qp_recv_wqe(struct qp *qp);

/* Receive WQEs posted and not taken, for credits; UINT32_MAX with an SRQ. */
uint32_t qp_recv_posted(struct qp *qp);

/* Completes the current receive WQE. wc: caller sets status, opcode,
 * byte_len, imm_be_or_rkey, wc_flags, src_qpn; the rest is filled here. */
void qp_complete_recv(struct qp *qp, struct wc *wc, bool solicited);

/* What the SQD state waits for: no WQE that was begun is left; raises
 * SQ_DRAINED once if that was asked for. */
void qp_sqd_check(struct qp *qp);

/* To the error state: tells the transport, then flushes SQ and RQ (the
 * current receive too) in order with WC_WR_FLUSH_ERR; raises LAST_WQE_REACHED
 * with an SRQ. Idempotent; on a QP in ERR it flushes what was posted since. */
void qp_error(struct qp *qp, int64_t now_ns);

/* UC and UD send errors [IBA 10.3.1.6]: SQE; flushes the SQ alone. */
void qp_sq_error(struct qp *qp);

/* Raises an affiliated asynchronous event, once until taken. */
void qp_event(struct qp *qp, enum async_type type);

/* The first packet on a QP in RTR raises COMM_EST once; on one that waits for
 * its RTU it is as good as that. */
void qp_comm_est(struct qp *qp);

/* The in-flight account of this QP's destination process; never NULL for RC
 * in RTR and later. */
struct budget *qp_dest_budget(struct qp *qp);

#endif
