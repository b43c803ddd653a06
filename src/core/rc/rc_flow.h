/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rc_flow.h - what the requester may have in flight: the PSN window, the
 * destination's and our own receive buffer, READs and atomics outstanding,
 * end-to-end credits [IBA 9.7.7.2].
 *
 * Charges are held for exactly the packets between the oldest unacknowledged
 * PSN and the cursor: taken one packet at a time, given back as PSNs are
 * acknowledged, all of them when the cursor goes back.
 */
#ifndef SOFTHCA_CORE_RC_RC_FLOW_H
#define SOFTHCA_CORE_RC_RC_FLOW_H

#include "core/rc/rc_qp.h"

void rc_flow_init(struct qp *qp);

/* Nothing in flight, no credits stated. RTR: path and MTU are known. */
void rc_flow_start(struct qp *qp);

/* Charge for each packet of a WQE: for a READ or atomic of each response.
 * 0: unbounded. */
uint32_t rc_flow_charge(struct qp *qp, const struct wqe *w);

/* Packets of a READ to ask for at once, so that several requests fit into the
 * read budget. */
uint32_t rc_flow_read_unit(const struct qp *qp);

/* May the WQE's packet at the cursor go out, which takes pkts PSNs? True: its
 * charges are held. False: what is waited for schedules the QP: an
 * acknowledgement, or room in a budget. */
bool rc_flow_take(struct qp *qp, const struct wqe *w, uint32_t pkts);

/* The packet that rc_flow_take let pass is not sent after all. */
void rc_flow_untake(struct qp *qp, const struct wqe *w, uint32_t pkts);

/* Must the SEND or WRITE packet now going out ask for an ACK, so that the
 * window moves? */
bool rc_flow_wants_ack(struct qp *qp, const struct wqe *w, uint32_t pkts);

/* n PSNs of the WQE, from packet off on, which were in flight, are
 * acknowledged. */
void rc_flow_acked(struct qp *qp, const struct wqe *w, uint32_t off,
		   uint32_t n);

/* A response says that there is congestion on its way to us: fewer READ
 * responses may be under way. */
void rc_flow_marked(struct qp *qp);

/* Requests with payload come from the peer, or it READs from us: READ responses
 * and requests share one receive buffer, ours or the peer's. */
void rc_flow_peer_sends(struct qp *qp);
void rc_flow_peer_reads(struct qp *qp);

/* Nothing is in flight any more: the cursor went back, or the end. */
void rc_flow_drop(struct qp *qp);

/* An AETH of a positive acknowledgement [IBA 9.7.7.2.5]. */
void rc_flow_credits(struct qp *qp, uint8_t syndrome, uint32_t msn);

#endif
