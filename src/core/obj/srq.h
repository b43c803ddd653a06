/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* srq.h - shared receive queues. */
#ifndef SOFTHCA_CORE_OBJ_SRQ_H
#define SOFTHCA_CORE_OBJ_SRQ_H

#include "core/obj/event.h"
#include "core/obj/wq.h"
#include "core/verbs.h"

struct srq {
	struct hca *hca;
	struct pd *pd;
	void *user;
	uint32_t id;
	uint32_t refs;	   /* QPs */
	struct xrcd *xrcd; /* NULL: not an XRC SRQ */
	struct cq *cq;	   /* of an XRC SRQ */
	uint32_t limit;	   /* 0: not armed */
	struct wring rq;
	struct event_src events;
};

/* Moves the oldest WQE to *w, which has room for max_sge SGEs; raises the
 * limit event when fewer than the limit are left. False: empty. [E] */
bool srq_take(struct srq *srq, struct rwqe *w);

/* Bytes of the largest WQE that any SRQ can have. */
uint32_t srq_wqe_max(const struct hca *hca);

#endif
