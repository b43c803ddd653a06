/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fabflow.h - a flow: one connection of RC or UC between two hosts of a fabric,
 * and what is posted on it, by verbs. Closed loop: `depth` messages are
 * outstanding, each completion posts the next. Open loop: a message each
 * interval, however many are outstanding.
 *
 * Payload is not looked at; it goes from and to the beginning of the hosts'
 * memories, and all flows share them.
 */
#ifndef SOFTHCA_SIM_FABFLOW_H
#define SOFTHCA_SIM_FABFLOW_H

#include "base/prng.h"
#include "sim/fabhost.h"

#define FABFLOW_SIZES_MAX 16

struct fabflow_size { /* a step of a distribution */
	uint32_t bytes;
	uint32_t weight;
};

struct fabflow_config {
	enum qp_type type;     /* RC or UC */
	enum wr_opcode opcode; /* SEND, WRITE, READ; RC: FETCH_ADD too */
	struct fabflow_size size[FABFLOW_SIZES_MAX];
	uint32_t sizes;
	uint32_t depth;	     /* closed loop */
	int64_t interval_ns; /* open loop: above 0 */
	uint64_t count;	     /* messages; 0: until stop_ns */
	int64_t start_ns, stop_ns;
	uint8_t prio;
	enum mtu_code mtu;
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	/* SEND: how many receives the target keeps posted, and how long after
	 * one was used it posts the next. */
	uint32_t receives;
	int64_t receive_delay_ns;
};

struct fabflow_stats {
	uint64_t posted, completed, failed;
	uint64_t bytes;		   /* of messages completed */
	uint64_t delivered;	   /* bytes of messages executed at the target,
				      SENDs: as its completions say */
	int64_t first_ns, last_ns; /* completions; 0: none */
	int64_t time_ns, time_max_ns; /* sum over messages, posted to done */
};

struct fabflow {
	struct fabhost *src, *dst;
	struct fabflow_config cfg;
	uint32_t index;
	struct qp *qp[2]; /* source's, target's */
	struct cq *cq[2];
	struct prng rng;
	uint32_t weights;
	uint32_t outstanding;
	uint32_t lkey, rkey, recv_lkey;
	/* Posting times of what is outstanding, in order; a ring. */
	int64_t *posted_ns;
	uint32_t *posted_bytes;
	uint32_t ring, head;
	struct world_event start, tick, repost;
	uint32_t owed; /* receives to be posted again */
	struct fabflow_stats stats;
};

/* Keys of a host's whole memory, for all its flows. */
struct fabflow_end {
	struct pd *pd;
	struct mr *mr;
};
MUST_USE int fabflow_end_init(struct fabflow_end *e, struct fabhost *h);

/* Makes and connects the QPs and schedules the start. -errno of the verbs. */
MUST_USE int fabflow_init(struct fabflow *f, const struct fabflow_config *cfg,
			  uint32_t index, struct fabhost *src,
			  const struct fabflow_end *src_end,
			  struct fabhost *dst,
			  const struct fabflow_end *dst_end);
void fabflow_fini(struct fabflow *f);

/* For fabhost.on_comp: takes the completions of the end that is at host h, and
 * posts what follows. */
void fabflow_on_comp(void *flow, struct fabhost *h, int64_t now_ns);

/* Bits per second that the source's congestion control allows now; 0: no limit.
 */
uint64_t fabflow_rate(const struct fabflow *f);

#endif
