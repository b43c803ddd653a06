/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rc_replay.h - responses on their way out, and the results of atomics kept
 * for duplicates [IBA 9.7.5.1, 9.7.7.1].
 *
 * READs and atomics are answered in PSN order from a queue; the one ACK or NAK
 * that follows them never overtakes them. An ACK covers everything before it,
 * so there is never more than one, and a READ's answers make one in front of
 * them superfluous.
 */
#ifndef SOFTHCA_CORE_RC_RC_REPLAY_H
#define SOFTHCA_CORE_RC_RC_REPLAY_H

#include "core/rc/rc_qp.h"

/* Forgets responses and results. */
void rc_replay_reset(struct qp *qp);

/* Room for the answers to n outstanding READs and atomics and to as many
 * duplicates; what is queued or kept stays. The room never shrinks. -ENOMEM:
 * it is as it was. Control verbs only. */
MUST_USE int rc_replay_reserve(struct qp *qp, uint32_t n);
/* Gives the room back; what was in it is forgotten. */
void rc_replay_release(struct qp *qp);

/* READs and atomics that wait for their answers, duplicates not counted. */
uint32_t rc_replay_outstanding(const struct qp *qp);

/* Appends the answer to a new READ. msn: with this request counted. The
 * caller checked rc_replay_outstanding. */
void rc_replay_read(struct qp *qp, const struct pkt *pkt, uint32_t msn);

/* Appends the answer to a new atomic and keeps its result. */
void rc_replay_atomic(struct qp *qp, struct psn psn, uint64_t original,
		      uint32_t msn);

/* Answers to duplicates; what waits for the same PSNs is replaced. False: no
 * room, or for an atomic no result kept (never executed again, B005). */
bool rc_replay_read_again(struct qp *qp, const struct pkt *pkt, uint32_t msn);
bool rc_replay_atomic_again(struct qp *qp, struct psn psn);
/* A duplicate READ that may not be served any more. False: no room. */
bool rc_replay_nak_again(struct qp *qp, struct psn psn, uint8_t syndrome,
			 uint32_t msn);

/* Acknowledges psn and all before, after what is queued. */
void rc_replay_ack(struct qp *qp, struct psn psn);

/* The same with a NAK or RNR NAK of psn; takes the place of an ACK. */
void rc_replay_nak(struct qp *qp, struct psn psn, uint8_t syndrome);

/* Builds the next response; false: none. */
bool rc_replay_tx(struct qp *qp, struct tx_frame *f, int64_t now_ns);

#endif
