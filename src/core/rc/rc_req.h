/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rc_req.h - the requester [IBA 9.7.3, 9.7.5.1]: turns WQEs into request
 * packets, in order, from a cursor that going back N moves.
 */
#ifndef SOFTHCA_CORE_RC_RC_REQ_H
#define SOFTHCA_CORE_RC_RC_REQ_H

#include "core/rc/rc_qp.h"

const char *rc_req_state_name(enum rc_req_state s);

/* Nothing sent, nothing to send; STOPPED. */
void rc_req_reset(struct qp *qp);

/* RTR -> RTS: the first PSN is attr.sq_psn. SQD -> RTS: go on. */
void rc_req_start(struct qp *qp);
void rc_req_resume(struct qp *qp);

/* Builds the next request packet into f; false: none may go out now. Until it
 * is true nothing has changed but budgets' lines and a WQE that failed a local
 * check (bug log B010). */
bool rc_req_tx(struct qp *qp, struct tx_frame *f, int64_t now_ns);

/* Go back N: the next packet is the completer's una. */
void rc_req_go_back(struct qp *qp);

/* The completer's una went past the cursor, by answers to packets sent before
 * the cursor went back: follow. Harmless otherwise. */
void rc_req_follow(struct qp *qp);

/* Goes back, then keeps silent for at least ns [IBA 9.7.5.2.8]. */
void rc_req_rnr_wait(struct qp *qp, int64_t ns, int64_t now_ns);
/* The wait is over: by the timer, or by an acknowledgement that made it
 * pointless. */
void rc_req_rnr_over(struct qp *qp);

/* Some frame with references is out, the oldest packet without an answer may
 * be in it, and nothing was sent again since. */
bool rc_req_refs_out(const struct qp *qp);
/* The driver could not read the references of a frame (hca_tx_refused). */
void rc_req_refused(struct qp *qp);
/* Before memory of WQEs is given back that no ACK has released. */
void rc_req_void_refs(struct qp *qp);

/* The error state: stops and gives back what is held. */
void rc_req_stop(struct qp *qp);

#endif
