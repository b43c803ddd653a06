/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * workload.h - a random verbs program on two hosts, and the checks around it.
 *
 * One round: two hosts, a cable, 1..4 QP pairs of one type, traffic both ways.
 * Everything that is not in wl_config follows from the seed: MTU, sizes, SGE
 * lists, queue depths, CQ layout, SRQ or not, polling or events, IPv4 or IPv6,
 * cable latency and rate, budgets. Afterwards every message has completed once
 * and in order, memory is what the model says to the last byte, and nothing is
 * left allocated.
 *
 *   workload.c    the round: set up, run, judge, tear down
 *   wl_pair.c     connections: create, connect, fail, settle, reconnect
 *   wl_post.c     random work requests
 *   wl_poll.c     completions and what they must be
 */
#ifndef SOFTHCA_SIM_WORKLOAD_H
#define SOFTHCA_SIM_WORKLOAD_H

#include "sim/cable.h"
#include "sim/oracles.h"
#include "sim/simhost.h"
#include "sim/wirewatch.h"

#define WL_PAIRS 4
#define WL_SLOTS 16   /* local buffers, and receives, of one end */
#define WL_INLINE 256 /* bytes asked */

struct wl_config {
	enum qp_type type;
	uint32_t msgs;		   /* of each end */
	struct fault_plan faults;  /* no rules: none */
	wirewatch_trace_fn *trace; /* or NULL */
	bool direct; /* WRITEs and READs are copied when they can be */
	bool errors; /* wrong keys, bounds, short receives, dead QPs (RC) */
};

struct wl_stats {
	uint64_t msgs, receives, failures; /* completed; connections failed */
	uint64_t read_bytes, events, retransmits, rnr_naks;
	uint64_t direct, direct_refused;
	struct cable_stats cable;
};

struct wl;
struct wl_pair;

struct area { /* of a host's memory, with an MR over all of it */
	uint64_t off, len;
	uint64_t iova;
	uint32_t key; /* stays after the MR is gone */
	uint32_t access;
	struct mr *mr; /* NULL: deregistered */
};

struct rslot { /* a receive buffer */
	bool posted;
	uint64_t wr_id, serial;
	uint32_t cap;
	uint8_t num_pieces;
	struct piece piece[MSG_PIECES];
};

struct wl_rq { /* an end's receive queue, or a host's SRQ */
	struct area area;
	struct rslot slot[WL_SLOTS];
	uint32_t depth;
	uint32_t num_posted;
	uint64_t next_serial;
	struct srq *srq;      /* or NULL */
	struct wl_end *owner; /* NULL: shared */
};

struct wl_host {
	struct wl *wl;
	unsigned index;
	struct simhost sim;
	struct image image;
	struct pd *pd, *alien_pd;
	struct cq *cq[2];      /* send, receive; equal when shared */
	bool comp[2];	       /* completion event seen */
	bool by_event;	       /* polls only after events */
	struct area shared;    /* a counter that all QPs of the peer add to */
	struct area forbidden; /* no remote access */
	struct area alien;     /* of another PD */
	/* adds to this host's counter: the values they returned, and those
	 * that failed and may or may not have happened */
	uint64_t *adds;
	uint32_t num_adds, adds_unsure;
	struct wl_rq srq;
	struct world_event tick;
	struct prng rng;
	uint64_t brk; /* memory laid out so far */
};

struct wl_end {
	struct wl_pair *pair;
	struct wl_host *host;
	struct wl_end *peer;
	struct qp *qp;
	struct ah *ah; /* UD */
	uint32_t qpn, psn;
	struct area local, target;
	uint32_t slots_used; /* bit s: local buffer s */
	struct flow out;     /* messages that this end sends */
	struct wl_rq own_rq, *rq;
	uint64_t recv_done; /* serial of the last receive completed + 1 */
	uint8_t *revoked;   /* target as it was at its deregistration */
	bool failed;	    /* an error completion or event was seen */
	uint32_t sentinels; /* flushed so far */
};

struct wl_pair {
	struct wl *wl;
	unsigned index;
	struct wl_end end[2];
	bool up;
	int64_t reconnect_at_ns;
};

struct wl {
	struct world world;
	struct cable cable;
	struct wl_config cfg;
	struct wl_host host[2];
	struct wl_pair pair[WL_PAIRS];
	struct wirewatch watch;
	uint32_t num_pairs;
	/* drawn from the seed */
	enum mtu_code mtu;
	uint32_t max_msg, depth, sges, netdev_mtu;
	uint32_t recv_percent; /* chance of a receive to be posted in a tick */
	bool use_srq, v6, sig_all;
	bool hasty;	     /* ACK timeouts shorter than the round trip */
	struct qp_attr attr; /* timers, retries, read depths */
	bool clean, orderly; /* no faults at all; nothing dup'd or overtaken */
	bool finishing;	     /* all has completed; the last receives come in */
	int64_t last_progress_ns;
	struct verdict verdict;
	struct wl_stats stats;
};

/* Runs one round in *wl, which the caller provides. 0 with wl->verdict filled
 * (what == NULL: all is well), or -ENOMEM. */
MUST_USE int wl_run(struct wl *wl, const struct wl_config *cfg, uint64_t seed,
		    const struct sim_alloc *mem);

#endif
