/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cable.h - a full-duplex cable between two ends: latency, rate, and faults by
 * rate from the world's seed or by rule ("drop the third READ response").
 *
 * Frames are whole RoCEv2 packets, IP header to ICRC. A frame is copied when
 * it is sent; faults happen to the copy.
 */
#ifndef SOFTHCA_SIM_CABLE_H
#define SOFTHCA_SIM_CABLE_H

#include "sim/world.h"
#include "wire/net.h"
#include "wire/pkt.h"

#define CABLE_FRAME_MAX (IPV6_BYTES + UDP_BYTES + PKT_MAX + ICRC_BYTES)
#define CABLE_ENDS 2
#define CABLE_RULES 16

/* Per million frames, each way, drawn for every frame in this order. */
struct cable_faults {
	uint32_t drop_ppm;
	uint32_t dup_ppm;     /* delivered twice, the copy up to reorder_ns
				 later */
	uint32_t reorder_ppm; /* delayed by up to reorder_ns: others overtake */
	uint32_t corrupt_ppm; /* 1..3 bits flipped, or cut short */
	int64_t reorder_ns;
};

enum cable_action {
	CABLE_DROP,
	CABLE_DUP,
	CABLE_DELAY,
	CABLE_CORRUPT,
};

/* From the nth (1 = first) matching frame on, `count` times. */
struct cable_rule {
	unsigned from; /* sending end, 0 or 1 */
	int opcode;    /* BTH opcode; -1: any */
	uint32_t nth, count;
	enum cable_action action;
	int64_t delay_ns; /* CABLE_DELAY; CABLE_DUP: of the copy */
	uint32_t seen;	  /* matching frames so far; start with 0 */
};

struct cable_config {
	int64_t latency_ns;
	int64_t ns_per_kib; /* serialisation time of 1,024 bytes; 0: none */
	uint32_t frames;    /* in flight at most, both ways together */
	uint32_t backlog;   /* frames waiting to leave one end, at most */
	struct cable_faults faults;
};

struct cable_stats { /* frames, both ways */
	uint64_t sent, delivered, dropped, duplicated, reordered, corrupted;
	uint64_t rule_hits;
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
	struct cable_config cfg; /* .faults may be changed while running */
	struct cable_port port[CABLE_ENDS];
	struct cable_rule rules[CABLE_RULES];
	uint32_t num_rules;
	struct prng rng;
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

/* -ENOMEM. Attach both ends' ports before the first frame. */
MUST_USE int cable_init(struct cable *c, struct world *w,
			const struct cable_config *cfg, const char *label);
void cable_fini(struct cable *c); /* frames in flight are lost */

void cable_rule_add(struct cable *c, const struct cable_rule *rule);

/* May end `from` send now? If not, *ret_when is when to ask again. */
bool cable_room(const struct cable *c, unsigned from, int64_t *ret_when);

/* Takes one frame; cable_room must have said yes. */
void cable_send(struct cable *c, unsigned from, const uint8_t *frame,
		uint32_t len_bytes);

#endif
