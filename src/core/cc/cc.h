/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cc.h - congestion control between a QP and the wire: the notification point
 * (ECN marks in, CNPs out), and a pacer that holds the QP's data to the rate of
 * an algorithm (struct cc_ops; DCQCN is the one there is).
 *
 * Who paces: requests with payload and READ responses of RC and UC. ACKs, NAKs
 * and requests without payload go at once, UD is not paced. A flow that never
 * got a CNP costs two comparisons a frame.
 */
#ifndef SOFTHCA_CORE_CC_CC_H
#define SOFTHCA_CORE_CC_CC_H

#include "base/dlist.h"
#include "base/twheel.h"
#include "core/cc/dcqcn.h"

struct qp;
struct hca;
struct tx_frame;
struct rx_frame;
struct pkt;

/* Of a flow; written by cc.c and the algorithm alone. */
struct cc_flow {
	struct dcqcn dcqcn;
	struct timer rate;    /* the algorithm's deadline */
	struct timer pace;    /* armed when a frame was refused */
	int64_t next_ns;      /* no paced frame before */
	int64_t cnp_at_ns;    /* no CNP of ours before */
	struct dlist cnp_due; /* in hca->cnps: a CNP is to be sent */
};

/* An algorithm, [E]. */
struct cc_ops {
	const char *name;
	void (*init)(struct cc_flow *f);
	/* A CNP came. True: the rate went down. */
	bool (*cnp)(struct cc_flow *f, const struct dcqcn_params *p,
		    int64_t now_ns);
	void (*sent)(struct cc_flow *f, const struct dcqcn_params *p,
		     uint32_t bytes);
	void (*advance)(struct cc_flow *f, const struct dcqcn_params *p,
			int64_t now_ns);
	int64_t (*deadline)(const struct cc_flow *f);
	/* Bits per second; 0: not limited. */
	uint64_t (*rate_bps)(const struct cc_flow *f);
};
extern const struct cc_ops cc_dcqcn;

/* At creation of the QP, and when it forgets everything (RESET). */
void cc_init(struct qp *qp);
/* Timers off, nothing due: before the QP goes, or in the error state. */
void cc_stop(struct qp *qp);

/* May the QP send a paced frame now? If not it is scheduled when it may. */
bool cc_may_send(struct qp *qp, int64_t now_ns);
/* A frame was built. */
void cc_sent(struct qp *qp, const struct tx_frame *f, int64_t now_ns);

/* A packet of this QP passed the checks: looks at its ECN field. */
void cc_received(struct qp *qp, const struct rx_frame *f, int64_t now_ns);
/* A CNP for this QP came. */
void cc_cnp(struct qp *qp, int64_t now_ns);

/* Builds the next CNP that is due. False: none is. */
bool cc_tx(struct hca *hca, uint32_t class_mask, struct tx_frame *f,
	   int64_t now_ns);
/* A hint that cc_tx would say true for some class: O(1). */
bool cc_tx_pending(const struct hca *hca);

#endif
