/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rc.h - the reliable connection as a set of machines, for transports that are
 * made of the same (XRC). Each function is one of struct transport_ops.
 */
#ifndef SOFTHCA_CORE_RC_RC_H
#define SOFTHCA_CORE_RC_RC_H

#include "core/rc/rc_qp.h"

#define RC_STATE_BYTES sizeof(struct rc_qp)

void rc_init(struct qp *qp);
MUST_USE int rc_prepare(struct qp *qp, const struct qp_attr *a, uint32_t mask);
void rc_enter(struct qp *qp, enum qp_state old, int64_t now_ns);
void rc_rx(struct qp *qp, const struct rx_frame *f, const struct pkt *pkt,
	   int64_t now_ns);
bool rc_tx(struct qp *qp, struct tx_frame *f, int64_t now_ns);
void rc_fini(struct qp *qp);
bool rc_can_post(uint32_t opcode);

/* The responder is between the first and the last packet of a message. */
static inline bool rc_message_under_way(const struct qp *qp)
{
	return rc_view(qp)->rsp.message != RC_RSP_NONE;
}

#endif
