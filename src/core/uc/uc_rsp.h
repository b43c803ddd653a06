/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * uc_rsp.h - the unreliable connection's receiving side [IBA 9.8.2.2]: no
 * answers, and no repair: a message that lost a packet is dropped whole.
 *
 *            FIRST
 *   IDLE ---------------> SEND, WRITE
 *    ^ ^                     |   |
 *    | |  LAST: complete     |   |
 *    | +---------------------+   |
 *    |    gap, wrong length,     |
 *    |    no WQE, bad key        |
 *    +---------------------------+
 *
 * An ONLY completes from IDLE to IDLE; MIDDLE and LAST are dropped there, up to
 * the next FIRST or ONLY, which also ends a message that is under way.
 */
#ifndef SOFTHCA_CORE_UC_UC_RSP_H
#define SOFTHCA_CORE_UC_UC_RSP_H

#include "core/obj/qp.h"

enum uc_rsp_state {
	UC_RSP_IDLE,  /* between messages */
	UC_RSP_SEND,  /* inside a SEND; the current receive WQE is taken */
	UC_RSP_WRITE, /* inside a WRITE */
};

struct uc_rsp {
	enum uc_rsp_state state;
	struct psn expected;
	uint32_t off;	   /* bytes of the message received */
	struct reth write; /* UC_RSP_WRITE: the message's */
};

void uc_rsp_start(struct uc_rsp *r, struct psn expected);
void uc_rsp_rx(struct qp *qp, const struct rx_frame *f, const struct pkt *pkt,
	       int64_t now_ns);

#endif
