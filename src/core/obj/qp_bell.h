/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp_bell.h - the engine's side of the doorbells that qp_ring() rings. */
#ifndef SOFTHCA_CORE_OBJ_QP_BELL_H
#define SOFTHCA_CORE_OBJ_QP_BELL_H

#include "core/obj/qp.h"

/* All QPs rung since the last call, longest first, linked by bell_next; they
 * still count as rung. NULL: none. [E] */
struct qp *qp_bells_take(struct hca *hca);

/* From here on the QP can be rung again. Read bell_next before, look at its
 * rings after. [E] */
void qp_bell_clear(struct qp *qp);

/* Takes a QP that is going away off the stack. Nobody may be ringing it. [E] */
void qp_unring(struct qp *qp);

#endif
