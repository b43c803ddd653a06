/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * simhost.h - a host in a world: one core, its memory, one end of a cable.
 * What rt is in real time: it carries frames between core and cable, seals
 * and checks the ICRC, runs the clock and the doorbells, hands on events.
 */
#ifndef SOFTHCA_SIM_SIMHOST_H
#define SOFTHCA_SIM_SIMHOST_H

#include "core/verbs.h"
#include "sim/cable.h"
#include "sim/simmem.h"
#include "wire/rocev2.h"

#define SIMHOST_HELD 8

struct simhost_config {
	struct hca_config hca;
	struct gid gid; /* entry 0 of the GID table */
	uint32_t netdev_mtu;
	uint64_t mem_base, mem_bytes;
	unsigned end;	  /* of the cable */
	bool hold_frames; /* call hca_tx_done some frames later */
	/* Copies between the memories of the two hosts, of QPs that
	 * qp_set_direct() was called for: the other host, and how many in a
	 * million are refused. */
	struct simhost *direct_to; /* or NULL */
	uint32_t refuse_ppm;
};

struct simhost {
	struct world *world;
	struct cable *cable;
	unsigned end;
	struct hca *hca;
	struct simmem mem;
	bool hold_frames;
	struct simhost *direct_to;
	uint32_t refuse_ppm;
	struct prng refuse_rng;

	/* Each event of the core; or NULL. */
	void (*on_event)(void *ctx, const struct hca_event *e, int64_t now_ns);
	void *event_ctx;

	struct world_event timer; /* the core's deadline */
	struct world_event pump;  /* the cable has room again */
	struct tx_frame held[SIMHOST_HELD];
	uint32_t num_held;
	uint64_t rx_bad_headers, rx_bad_icrc;
	uint8_t buf[CABLE_FRAME_MAX];
};

/* Makes core and memory and attaches to the cable. -ENOMEM. */
MUST_USE int simhost_init(struct simhost *h, struct world *w,
			  struct cable *cable,
			  const struct simhost_config *cfg);
/* Every object must have been destroyed, unless `force`. Returns the core's
 * allocations that were never freed: 0, or a leak. */
uint64_t simhost_fini(struct simhost *h, bool force);

/* Returns frames that are still held to the core, as before a destroy. */
void simhost_drain(struct simhost *h);

/* After posts and verbs: takes doorbells, sends, hands on events, sets the
 * timer. */
void simhost_kick(struct simhost *h);

#endif
