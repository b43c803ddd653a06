/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rc_rsp.h - the responder: requests in [IBA 9.7.4, 9.7.5.2, 9.9.3].
 */
#ifndef SOFTHCA_CORE_RC_RC_RSP_H
#define SOFTHCA_CORE_RC_RC_RSP_H

#include "core/rc/rc_qp.h"

/* What becomes of a request. */
enum rc_rsp_verdict {
	RC_RSP_OK,
	RC_RSP_NOT_READY,    /* no receive WQE: RNR NAK */
	RC_RSP_LOST,	     /* its payload could not be had: like a gap */
	RC_RSP_INV_REQ,	     /* NAK invalid request */
	RC_RSP_ACCESS_ERR,   /* NAK remote access error */
	RC_RSP_OP_ERR,	     /* NAK remote operational error: memory failed */
	RC_RSP_RECV_LEN_ERR, /* does not fit the receive: NAK invalid request */
	RC_RSP_RECV_PROT_ERR,  /* receive's own key: NAK operational error */
	RC_RSP_INVALIDATE_ERR, /* no window to invalidate: NAK access error, and
				  the receive fails too [IBA 9.9.3, class J] */
};

const char *rc_rsp_state_name(enum rc_rsp_state s);

void rc_rsp_reset(struct qp *qp);
void rc_rsp_start(struct qp *qp); /* -> RTR: expects attr.rq_psn */
/* The error state: takes no requests. A NAK that put it there still goes out
 * (the state stays FATAL then, and true is returned). */
bool rc_rsp_stop(struct qp *qp);

/* One request packet. */
void rc_rsp_rx(struct qp *qp, const struct pkt *pkt, int64_t now_ns);

/* Syndrome of a positive acknowledgement sent now: credits of a receive queue
 * of its own [IBA 9.7.7.2.4], else none. */
uint8_t rc_rsp_ack_syndrome(struct qp *qp);

/* Syndrome of the NAK for a verdict that refuses. */
uint8_t rc_rsp_nak_syndrome(enum rc_rsp_verdict v);

/* A READ failed while it was answered, its NAK is built: to the error state. */
void rc_rsp_read_failed(struct qp *qp, enum rc_rsp_verdict v, int64_t now_ns);

#endif
