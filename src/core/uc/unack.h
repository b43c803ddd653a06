/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * unack.h - the requester of the transports that nobody acknowledges, UC and
 * UD [IBA 9.8.2.1, 9.8.3.1]: which WQE is next, which PSN, and when a WQE is
 * complete: when its last frame was handed out.
 *
 *   SQ:   head ........ next ........ tail
 *         | built, await | not begun, or |
 *         | hca_tx_done  | begun (next)  |
 *
 * A WQE that fails waits, as the last one built, until the ones before it
 * have completed; then the SQ goes to SQE.
 */
#ifndef SOFTHCA_CORE_UC_UNACK_H
#define SOFTHCA_CORE_UC_UNACK_H

#include "core/obj/qp.h"

struct unack {
	uint32_t next;	     /* SQ index */
	uint32_t off;	     /* bytes of that WQE that are in frames */
	struct psn next_psn; /* of the next frame */
	struct psn done_psn; /* of the oldest frame not done */
	bool failed;	     /* a failed WQE awaits its turn: build no more */
	bool packets;	     /* some were sent: where they are nobody knows */
	uint32_t copied;     /* bytes of the WQE that are copied without */
};

/* Entering RTS from RTR or SQE: begins at the oldest WQE. From RTR the first
 * PSN is the configured one. */
void unack_start(struct qp *qp, struct unack *u, enum qp_state from);

/* The WQE to build the next frame of; NULL: none now. */
struct wqe *unack_wqe(struct qp *qp, struct unack *u);

/* Writes headers, bytes of the message from u->off on, and pad; pkt has all
 * but psn and pad set. WC_SUCCESS, or why the WQE fails. */
enum wc_status unack_fill(struct qp *qp, const struct unack *u, struct wqe *w,
			  struct pkt *pkt, uint32_t bytes, struct tx_frame *f);

/* Executes WQEs as copies, for as long as the QP has sent no packet: later a
 * copy could overtake one. False: nothing may be sent now. */
bool unack_direct(struct qp *qp, struct unack *u);

/* The frame was built. last: the message's last. */
void unack_built(struct unack *u, struct wqe *w, uint32_t bytes, bool last);

/* The WQE fails. */
void unack_fail(struct qp *qp, struct unack *u, struct wqe *w,
		enum wc_status status);

/* Carries out a local WQE (wqe_is_local) when all before it are complete.
 * False: w is none, waits, or has failed. */
bool unack_local(struct qp *qp, struct unack *u, struct wqe *w);

/* A frame was handed out: completes what it completes. */
void unack_done(struct qp *qp, struct unack *u);

#endif
