/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * world.h - virtual time: one clock, one queue of events, one seed.
 *
 * Events fire in order of time, and of scheduling where times are equal, so a
 * run is a function of its seed alone. Owners embed their events; the queue
 * holds pointers and allocates nothing after world_init.
 */
#ifndef SOFTHCA_SIM_WORLD_H
#define SOFTHCA_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/prng.h"

/* Memory for everything in sim, handed in by the program around it. alloc
 * returns zeroed bytes or NULL. */
struct sim_alloc {
	void *(*alloc)(void *ctx, size_t bytes, size_t align);
	void (*free)(void *ctx, void *p);
	void *ctx;
};

struct world_event {
	int64_t at_ns;
	uint64_t seq;  /* ties break by order of scheduling */
	uint32_t slot; /* heap position + 1; 0: not scheduled */
	void (*fire)(struct world_event *e, int64_t now_ns);
};

struct world {
	int64_t now_ns;
	uint64_t next_seq;
	uint64_t fired; /* events so far */
	struct world_event **heap;
	uint32_t n, cap;
	struct prng rng; /* never drawn from: only split by label */
	const struct sim_alloc *mem;
};

/* Room for cap scheduled events at once. -ENOMEM. */
MUST_USE int world_init(struct world *w, const struct sim_alloc *mem,
			uint64_t seed, uint32_t cap);
void world_fini(struct world *w);

/* The generator of this label: equal seeds and labels give equal streams. */
struct prng world_rng(const struct world *w, const char *label);

void world_event_init(struct world_event *e,
		      void (*fire)(struct world_event *e, int64_t now_ns));

/* (Re)schedules; a time in the past means now. */
void world_at(struct world *w, struct world_event *e, int64_t at_ns);
void world_cancel(struct world *w, struct world_event *e);

static inline bool world_scheduled(const struct world_event *e)
{
	return e->slot != 0;
}

/* Fires the earliest event if it is at or before until_ns and moves the clock
 * to it. False: none, and the clock is at until_ns. */
bool world_step(struct world *w, int64_t until_ns);

#endif
