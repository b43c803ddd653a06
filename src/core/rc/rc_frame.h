/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_frame.h - from a packet's fields and payload to a frame. */
#ifndef SOFTHCA_CORE_RC_RC_FRAME_H
#define SOFTHCA_CORE_RC_RC_FRAME_H

#include "core/obj/qp.h"
#include "wire/pkt.h"

/* Where the payload of a packet with this opcode (enum op) goes in f->pkt. */
uint8_t *rc_frame_payload(const struct qp *qp, const struct tx_frame *f,
			  uint8_t op);

/* Writes headers and pad around the p->payload_bytes that are in place. The
 * caller set opcode (enum op), psn, ackreq, solicited and the extension
 * headers; p is otherwise zero. */
void rc_frame_finish(const struct qp *qp, struct tx_frame *f, struct pkt *p);

#endif
