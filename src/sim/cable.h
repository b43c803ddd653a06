/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cable.h - a full-duplex cable between two ends: latency, rate, and the faults
 * of a plan (fabric/fault.h) from the world's seed.
 *
 * Frames are whole RoCEv2 packets, IP header to ICRC. A frame is copied when
 * it is sent; faults happen to the copy.
 */
#ifndef SOFTHCA_SIM_CABLE_H
#define SOFTHCA_SIM_CABLE_H

#include "fabric/fault.h"
#include "sim/world.h"
#include "wire/net.h"
#include "wire/pkt.h"

#define CABLE_FRAME_MAX (IPV6_BYTES + UDP_BYTES + PKT_MAX + ICRC_BYTES)
#define CABLE_ENDS 2

struct cable_config {
	int64_t latency_ns;
	int64_t ns_per_kib; /* serialisation time of 1,024 bytes; 0: none */
	uint32_t frames;    /* in flight at most, both ways together */
	uint32_t backlog;   /* frames waiting to leave one end, at most */
	/* Or NULL. The caller's, for the cable's use alone; what end 0 sends
	 * has the direction tx, what it receives rx. */
	struct fault_plan *faults;
};

struct cable_stats { /* frames, both ways */
	uint64_t sent, delivered;
	uint64_t hit[FAULT_ACTIONS];
};

struct cable_port {
	void (*rx)(void *ctx, const uint8_t *frame, uint32_t len_bytes,
		   int64_t now_ns);
	void *ctx;
	int64_t busy_until_ns; /* the last accepted frame has left */
};

struct cable_frame;

struct cable {
	struct world *world;
	struct cable_config cfg; /* .faults may become NULL while running */
	struct cable_port port[CABLE_ENDS];
	struct cable_frame *frames, *free;
	uint32_t in_flight;
	struct cable_stats stats;
	/* See every frame as it is sent, before any fault, and as it arrives,
	 * after all; or NULL. */
	void (*tap_sent)(void *ctx, unsigned from, const uint8_t *frame,
			 uint32_t len_bytes, int64_t now_ns);
	void (*tap_delivered)(void *ctx, unsigned from, const uint8_t *frame,
			      uint32_t len_bytes, int64_t now_ns);
	void *tap_ctx;
};

/* -ENOMEM. Starts the plan with a seed of this label. Attach both ends' ports
 * before the first frame. */
MUST_USE int cable_init(struct cable *c, struct world *w,
			const struct cable_config *cfg, const char *label);
void cable_fini(struct cable *c); /* frames in flight are lost */

/* May end `from` send now? If not, *ret_when is when to ask again. */
bool cable_room(const struct cable *c, unsigned from, int64_t *ret_when);

/* Takes one frame; cable_room must have said yes. */
void cable_send(struct cable *c, unsigned from, const uint8_t *frame,
		uint32_t len_bytes);

#endif
