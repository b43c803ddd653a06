/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_frame.c - builds RC's and XRC's packets in the driver's buffer. */
#include "core/rc/rc_frame.h"

#include <string.h>

#include "core/obj/apm.h"

uint8_t *rc_frame_payload(const struct qp *qp, const struct tx_frame *f,
			  uint8_t op)
{
	return f->pkt + opcode_lookup(OPCODE(qp->ops->wire, op))->hdr_bytes;
}

void rc_frame_finish(const struct qp *qp, struct tx_frame *f, struct pkt *p)
{
	uint32_t n = p->payload_bytes;
	size_t hdr;

	ASSERT(n <= qp->mtu);
	p->bth.opcode = OPCODE(qp->ops->wire, p->bth.opcode);
	p->bth.pad = (uint8_t)pkt_pad(n);
	p->bth.pkey = qp->pkey;
	p->bth.migreq = apm_migreq(qp);
	p->bth.dest_qpn = qp->attr.dest_qpn;
	hdr = pkt_encode_headers(p, f->pkt);
	memset(f->pkt + hdr + n, 0, p->bth.pad);
	f->len_bytes = (uint32_t)hdr + n + p->bth.pad;
}
