/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * gsi.h - the general services interface, QP1: MADs as UD packets with the
 * well-known Q_Key [IBA 13.5.3]. A MAD that came goes to its class's machine;
 * one that leaves waits in a bounded ring, and what does not fit is lost, as
 * datagrams may be.
 */
#ifndef SOFTHCA_CORE_MGMT_GSI_H
#define SOFTHCA_CORE_MGMT_GSI_H

#include "core/hca.h"
#include "wire/mad.h"
#include "wire/pkt.h"

#define GSI_RING 128

struct gsi_slot {
	struct path path;
	uint8_t mad[MAD_BYTES];
};

struct gsi {
	struct gsi_slot *ring; /* GSI_RING of them */
	uint32_t head;	       /* oldest whose frame is not done */
	uint32_t next;	       /* next to become a frame */
	uint32_t tail;
	uint32_t psn; /* 24 bits, counts MADs from 0 */
};

/* With the hca. -ENOMEM. */
MUST_USE int gsi_init(struct hca *hca);
void gsi_fini(struct hca *hca);

/* The path of an answer to a frame: also when it came to an address of the host
 * that is not in the GID table, since one process may answer for all. */
void gsi_reply_path(const struct hca *hca, const struct rx_frame *f,
		    struct path *ret);
/* Queues a copy of a MAD; drops and counts it when the ring is full. */
void gsi_send(struct hca *hca, const struct path *path, const uint8_t *mad);

/* A packet for QP1. */
void gsi_rx(struct hca *hca, const struct rx_frame *f, const struct pkt *pkt);
bool gsi_tx(struct hca *hca, struct tx_frame *f);
void gsi_tx_done(struct hca *hca);
static inline bool gsi_pending(const struct gsi *g)
{
	return g->next != g->tail;
}

#endif
