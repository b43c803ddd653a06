/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rc_cmp.h - the completer: takes acknowledgements and response data and
 * completes WQEs in order [IBA 9.7.5.1, 9.7.6, 9.9.2].
 */
#ifndef SOFTHCA_CORE_RC_RC_CMP_H
#define SOFTHCA_CORE_RC_RC_CMP_H

#include "core/rc/rc_qp.h"

void rc_cmp_reset(struct qp *qp);
void rc_cmp_start(struct qp *qp); /* RTR -> RTS */

/* One response packet: ACK, NAK, READ response or atomic acknowledgement. */
void rc_cmp_rx(struct qp *qp, const struct pkt *pkt, int64_t now_ns);

/* The transport timer ran out [IBA 9.7.6.1.3]. */
void rc_cmp_timeout(struct qp *qp, int64_t now_ns);

/* If the oldest WQE failed a local check: completes it with its status and
 * puts the QP in the error state. Else its turn has not come. */
void rc_cmp_local_error(struct qp *qp, int64_t now_ns);

#endif
