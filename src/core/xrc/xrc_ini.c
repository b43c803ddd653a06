/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xrc_ini.c - the initiator: RC's requester, whose requests carry an XRCETH. */
#include "core/obj/hca_priv.h"
#include "core/rc/rc.h"

static void ini_rx(struct qp *qp, const struct rx_frame *f,
		   const struct pkt *pkt, int64_t now_ns)
{
	if (pkt->info->flags & OPCODE_RESPONSE)
		rc_rx(qp, f, pkt, now_ns);
	else
		HCA_COUNT(qp->hca, rx_drop_qp_type);
}

const struct transport_ops xrc_ini_transport = {
	.wire = TRANSPORT_XRC,
	.reliable = true,
	.state_bytes = RC_STATE_BYTES,
	.init = rc_init,
	.enter = rc_enter,
	.rx = ini_rx,
	.tx = rc_tx,
	.fini = rc_fini,
	.can_post = rc_can_post,
};
