/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* gsi.c - QP1 [IBA 13.5.3, 9.8.3]. */
#include "core/mgmt/gsi.h"

#include <errno.h>
#include <string.h>

#include "core/cm/cm_priv.h"
#include "core/obj/hca_priv.h"

/* As kernel Soft-RoCE: always the same, so that NICs keep MADs in order. */
#define GSI_SPORT 55410
#define GSI_HOP_LIMIT 64

int gsi_init(struct hca *hca)
{
	hca->gsi.ring = hca_alloc(hca, GSI_RING * sizeof(struct gsi_slot));
	return hca->gsi.ring ? 0 : -ENOMEM;
}

void gsi_fini(struct hca *hca)
{
	hca_release(hca, hca->gsi.ring);
}

void gsi_reply_path(const struct hca *hca, const struct rx_frame *f,
		    struct path *ret)
{
	*ret = (struct path){
		.sgid = f->dst,
		.dgid = f->src,
		.vlan = 0xffff,
		.tclass = f->tos & (uint8_t)~3,
		.hop_limit = GSI_HOP_LIMIT,
		.sport = GSI_SPORT,
	};
	for (uint32_t i = 0; i < hca->cfg.limits.gid_table_len; i++) {
		const struct gid_entry *e = &hca->gids[i];

		if (!e->valid || !gid_eq(&e->gid, &f->dst))
			continue;
		ret->netdev = e->netdev;
		ret->vlan = e->vlan;
		ret->sgid_index = (uint8_t)i;
		return;
	}
}

void gsi_send(struct hca *hca, const struct path *path, const uint8_t *mad)
{
	struct gsi *g = &hca->gsi;
	struct gsi_slot *s;

	if (g->tail - g->head == GSI_RING) {
		HCA_COUNT(hca, gsi_tx_drops);
		return;
	}
	s = &g->ring[g->tail++ % GSI_RING];
	s->path = *path;
	s->path.sport = GSI_SPORT;
	memcpy(s->mad, mad, MAD_BYTES);
}

void gsi_rx(struct hca *hca, const struct rx_frame *f, const struct pkt *pkt)
{
	struct mad_hdr h;

	if (pkt->bth.opcode != OPCODE(TRANSPORT_UD, OP_SEND_ONLY)) {
		HCA_COUNT(hca, rx_drop_qp_type);
		return;
	}
	if (pkt->ext.deth.qkey != GSI_QKEY) {
		HCA_COUNT(hca, rx_drop_qkey);
		return;
	}
	if (pkt->payload_bytes != MAD_BYTES) {
		HCA_COUNT(hca, rx_drop_mad);
		return;
	}
	mad_hdr_decode(&h, pkt->payload);
	if (h.base_version != MAD_BASE_VERSION ||
	    h.mgmt_class != MAD_CLASS_CM) {
		HCA_COUNT(hca, rx_drop_mad);
		return;
	}
	HCA_COUNT(hca, gsi_rx_mads);
	cm_rx(hca, f, pkt->payload);
}

bool gsi_tx(struct hca *hca, struct tx_frame *f)
{
	struct gsi *g = &hca->gsi;
	struct gsi_slot *s;
	struct pkt pkt = { 0 };
	size_t n;

	if (!gsi_pending(g))
		return false;
	s = &g->ring[g->next++ % GSI_RING];
	pkt.bth.opcode = OPCODE(TRANSPORT_UD, OP_SEND_ONLY);
	pkt.bth.pkey = BTH_PKEY_DEFAULT;
	pkt.bth.dest_qpn = BTH_QPN_GSI;
	pkt.bth.ackreq = true; /* as kernel Soft-RoCE does */
	pkt.bth.psn = psn_of(g->psn++);
	pkt.ext.deth.qkey = GSI_QKEY;
	pkt.ext.deth.src_qpn = BTH_QPN_GSI;
	n = pkt_encode_headers(&pkt, f->pkt);
	memcpy(f->pkt + n, s->mad, MAD_BYTES);
	f->len_bytes = (uint32_t)n + MAD_BYTES;
	f->path = &s->path;
	f->tos = s->path.tclass & (uint8_t)~3;
	f->dest_qpn = BTH_QPN_GSI;
	f->sl = 0;
	f->cnp = false;
	f->owner = NULL;
	f->pkts = 1;
	f->nrefs = 0;
	f->payload_bytes = 0;
	HCA_COUNT(hca, gsi_tx_mads);
	return true;
}

void gsi_tx_done(struct hca *hca)
{
	struct gsi *g = &hca->gsi;

	ASSERT(g->head != g->next);
	g->head++;
}
