/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fabworld.h - a whole scenario: hosts, switches, cables and flows, from a
 * description to the end of its time. Switches' routes are the shortest paths,
 * all of them (ECMP).
 */
#ifndef SOFTHCA_SIM_FABWORLD_H
#define SOFTHCA_SIM_FABWORLD_H

#include "sim/fabflow.h"
#include "sim/fabswitch.h"

#define FABWORLD_HOSTS_MAX 4096

struct fabworld_host {
	const char *name;
	bool cc; /* DCQCN with these: */
	struct dcqcn_params dcqcn;
	int64_t pkt_ns;
	uint64_t bus_bps;
	uint32_t rx_xoff_bytes, rx_max_bytes;
	int64_t crash_ns; /* INT64_MAX: never */
};

struct fabworld_switch {
	const char *name;
	struct netswitch_config cfg; /* .ports is counted from the cables */
};

struct fabworld_end {
	bool is_switch;
	uint32_t index;
};

struct fabworld_cable {
	struct fabworld_end end[2];
	struct fab_cable cable;
	struct fault_plan *faults[2]; /* by sending end; or NULL */
	int64_t down_ns, up_ns;	      /* dead between them; equal: never */
};

struct fabworld_flow {
	const char *name;
	uint32_t src, dst;
	struct fabflow_config cfg;
};

struct fabworld_config {
	uint64_t seed;
	int64_t sample_ns; /* 0: no samples */
	bool zero_headers;
	uint32_t netdev_mtu;
	uint32_t frames;    /* in the fabric at most */
	uint64_t mem_bytes; /* of each host: its largest message */
	uint8_t lossless;   /* priorities for which hosts send pauses */
	const struct fabworld_host *host;
	const struct fabworld_switch *sw;
	const struct fabworld_cable *cable;
	const struct fabworld_flow *flow;
	uint32_t hosts, switches, cables, flows;
};

struct fabworld;

/* Called each sample_ns. */
typedef void (*fabworld_sample_fn)(void *ctx, const struct fabworld *fw,
				   int64_t now_ns);

/* -EINVAL and *ret_why: a host without a cable or with two, a flow without a
 * path, a switch that netswitch_config_check refuses, a flow that the verbs
 * refuse; -ENOMEM. */
MUST_USE int fabworld_new(const struct fabworld_config *cfg,
			  const struct sim_alloc *mem,
			  fabworld_sample_fn sample, void *sample_ctx,
			  struct fabworld **ret, const char **ret_why);
void fabworld_free(struct fabworld *fw);

/* Runs to this time. */
void fabworld_run(struct fabworld *fw, int64_t until_ns);

/* ---- to look at ---- */

const struct fabworld_config *fabworld_config(const struct fabworld *fw);
const struct fabflow *fabworld_flow(const struct fabworld *fw, uint32_t i);
const struct fabhost *fabworld_host(const struct fabworld *fw, uint32_t i);
const struct fabswitch *fabworld_switch(const struct fabworld *fw, uint32_t i);
const struct fab_stats *fabworld_stats(const struct fabworld *fw);
uint64_t fabworld_events(const struct fabworld *fw);
/* The port of cable i's end e. */
const struct fab_port *fabworld_port(const struct fabworld *fw, uint32_t i,
				     unsigned e);

#endif
