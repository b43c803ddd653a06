/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fabhost.h - a host as a node of a fabric with one port: a core, its memory,
 * and what its bus and its adapter cost.
 *
 * Processing. A frame that is sent, and one that came in, each occupies the
 * host for pkt_ns and for its bytes at the bus's rate; each direction works on
 * one frame at a time and up to a few are built ahead. When more than
 * rx_xoff_bytes wait to be taken in, the host pauses its neighbour's lossless
 * classes (it is the slow receiver), until half of that is left; past
 * rx_max_bytes frames are dropped.
 *
 * A class is paused when the neighbour says so; priority p is service level p.
 */
#ifndef SOFTHCA_SIM_FABHOST_H
#define SOFTHCA_SIM_FABHOST_H

#include "core/verbs.h"
#include "sim/fab.h"
#include "sim/simmem.h"

#define FABHOST_AHEAD 4

struct fabhost_config {
	struct hca_config hca;
	struct gid gid;
	uint32_t index; /* what switches route by */
	uint32_t netdev_mtu;
	uint64_t mem_base, mem_bytes;
	int64_t pkt_ns;			      /* of each frame; 0: nothing */
	uint64_t bus_bps;		      /* 0: at once */
	uint8_t lossless;		      /* mask of priorities */
	uint32_t rx_xoff_bytes, rx_max_bytes; /* 0: no limit */
	int64_t pause_ns;
};

struct fabhost_stats {
	uint64_t rx_dropped; /* no room to wait */
	uint64_t pauses_rx;
};

struct fabhost {
	struct fab_node node;
	struct fabhost_config cfg;
	struct hca *hca;
	struct simmem mem;
	/* Whose index an address is; the world's. UINT32_MAX: nobody's. */
	uint32_t (*index_of)(void *ctx, const struct gid *gid);
	void *index_ctx;
	/* An armed CQ has a completion; gets the CQ's user. Or NULL. */
	void (*on_comp)(void *cq_user, struct fabhost *h, int64_t now_ns);

	bool in_kick; /* posts from on_comp are seen in the same kick */
	bool crashed; /* sends and takes nothing */
	struct world_event timer, built, taken, unpause;
	int64_t paused_until_ns[NETSWITCH_PRIOS];

	/* Built ahead, the first leaves next; ready when its event fires. */
	struct fab_frame *ahead[FABHOST_AHEAD];
	int64_t ready_ns[FABHOST_AHEAD];
	uint32_t num_ahead;
	int64_t tx_busy_ns;

	struct fab_frame *rxq, **rxq_tail; /* to be taken in */
	uint64_t rxq_bytes;
	int64_t rx_busy_ns;
	bool pausing;
	int64_t pause_renew_ns;
	struct fabhost_stats stats;
};

/* -ENOMEM; -EINVAL: the core refuses its config. */
MUST_USE int fabhost_init(struct fabhost *h, struct fab *fab,
			  const struct fabhost_config *cfg);
/* Objects that were not destroyed go too. */
void fabhost_fini(struct fabhost *h);

/* After posts and verbs. */
void fabhost_kick(struct fabhost *h);

#endif
