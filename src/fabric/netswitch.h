/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * netswitch.h - an Ethernet switch as a deterministic machine: a shared buffer
 * with output queues for each port and priority, RED/ECN marking, PFC towards
 * its neighbours hop by hop, ECMP. No clock and no I/O: its driver hands in
 * frames, pauses and time, and asks for the next frame and the next pause.
 *
 * Buffer. A frame is charged to the port and priority that it came in by. The
 * part of the buffer that is not headroom is shared. A lossless priority of a
 * port may use up to a threshold of it (static, or beta times what is free);
 * what comes beyond goes to that port and priority's headroom, and the
 * neighbour is paused until the headroom is empty and the use is xon_bytes
 * below the threshold. A lossy frame is dropped when its output queue is beyond
 * its own dynamic threshold.
 *
 * Marking [RFC 3168, and the DCQCN paper's RED]: a frame that is ECN capable is
 * marked as it leaves an output queue that holds q bytes behind it: never up to
 * kmin, always from kmax on, with a probability that rises to pmax between
 * them. (Shared-buffer switches mark at egress: a mark that had joined the
 * queue would be as old as the queue is long.)
 */
#ifndef SOFTHCA_FABRIC_NETSWITCH_H
#define SOFTHCA_FABRIC_NETSWITCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"

#define NETSWITCH_PRIOS 8
#define NETSWITCH_PORTS_MAX 256
#define NETSWITCH_ECMP_MAX 64

/* Why a frame was dropped; also the counters of drops. */
#define NETSWITCH_DROPS(X)                                                     \
	X(NO_ROUTE)                                                            \
	X(NO_HEADROOM) /* lossless: more came after a pause than fits */       \
	X(NO_BUFFER)   /* nothing free at all */                               \
	X(QUEUE)       /* lossy: the output queue's threshold */               \
	X(STORM)       /* thrown away by the PFC watchdog */

enum netswitch_drop {
#define NETSWITCH_DROP_ENUM(name) NETSWITCH_DROP_##name,
	NETSWITCH_DROPS(NETSWITCH_DROP_ENUM)
#undef NETSWITCH_DROP_ENUM
		NETSWITCH_DROP_KINDS,
	NETSWITCH_QUEUED = -1,
};

const char *netswitch_drop_name(enum netswitch_drop d);

struct netswitch_prio { /* zero: lossy, no marks */
	bool lossless;
	bool ecn;
	uint32_t kmin_bytes, kmax_bytes;
	uint32_t pmax_ppm;
};

struct netswitch_config {
	uint32_t ports;
	uint64_t buffer_bytes;	 /* all of it, headroom included */
	uint32_t headroom_bytes; /* of each port and lossless priority */
	/* Threshold of a lossless port and priority: this, or when 0
	 * beta_num / beta_den times the free shared buffer. */
	uint32_t xoff_bytes;
	uint32_t beta_num, beta_den;
	uint32_t xon_bytes; /* below the threshold */
	/* A lossy queue's, likewise of the free shared buffer. */
	uint32_t lossy_num, lossy_den;
	/* Queues from this priority up go before others, highest first; the
	 * others take turns frame by frame. 8: none. */
	uint32_t strict_from;
	int64_t pause_ns;    /* how long a pause holds; renewed at half time */
	int64_t watchdog_ns; /* a queue paused for so long is a storm; 0: never
			      */
	int64_t restore_ns;  /* a storm is over after so long without a pause */
	uint64_t seed;
	struct netswitch_prio prio[NETSWITCH_PRIOS];
};

/* What is wrong with them (static storage), or NULL. */
const char *netswitch_config_check(const struct netswitch_config *c);

/* A frame in the switch: a head that the driver puts into its own. */
struct netswitch_frame {
	struct netswitch_frame *next;
	uint32_t bytes; /* what it is charged */
	uint32_t dst;	/* for the route */
	uint32_t hash;	/* of the flow, for ECMP */
	uint8_t prio;
	bool ect; /* ECN capable */
	bool ce;  /* from netswitch_tx on: marked here */
	/* The switch's own. */
	uint16_t in_port, out_port;
	bool in_headroom;
};

#define NETSWITCH_COUNTERS(X)                                                  \
	X(rx_frames)                                                           \
	X(tx_frames)                                                           \
	X(marked)                                                              \
	X(xoff_sent) /* pauses begun; renewals are not counted */              \
	X(xon_sent)                                                            \
	X(xoff_received)                                                       \
	X(storms)

struct netswitch_counters {
#define NETSWITCH_COUNTER_FIELD(name) uint64_t name;
	NETSWITCH_COUNTERS(NETSWITCH_COUNTER_FIELD)
#undef NETSWITCH_COUNTER_FIELD
	uint64_t dropped[NETSWITCH_DROP_KINDS];
};

struct netswitch;

/* Memory from alloc, zeroed. NULL: out of memory, or a config that
 * netswitch_config_check refuses. */
struct netswitch *netswitch_new(const struct netswitch_config *cfg,
				void *(*alloc)(void *ctx, size_t bytes,
					       size_t align),
				void (*free)(void *ctx, void *p), void *ctx);
/* Frames that are still inside are the driver's again. */
void netswitch_free(struct netswitch *s);

/* Frames for dst leave by one of n ports, chosen by the flow's hash.
 * -EINVAL: too many, or no such port; -ENOMEM. */
MUST_USE int netswitch_route(struct netswitch *s, uint32_t dst,
			     const uint16_t *ports, uint32_t n);

/* Takes a frame that has come in whole by this port. QUEUED, or why it was
 * dropped: then it is the driver's again. */
enum netswitch_drop netswitch_rx(struct netswitch *s, uint32_t port,
				 struct netswitch_frame *f, int64_t now_ns);

/* The next frame to leave by this port, off its queue but still in the
 * buffer, or NULL. When its last bit has left, netswitch_done. */
struct netswitch_frame *netswitch_tx(struct netswitch *s, uint32_t port,
				     int64_t now_ns);
void netswitch_done(struct netswitch *s, struct netswitch_frame *f,
		    int64_t now_ns);

/* The neighbour at this port wants the priorities in the mask paused for
 * pause_ns from now; 0: go on. */
void netswitch_pause_rx(struct netswitch *s, uint32_t port, uint8_t mask,
			int64_t pause_ns, int64_t now_ns);

/* The next pause to send to the neighbour at some port. */
struct netswitch_pause {
	uint32_t port;
	uint8_t mask;	  /* priorities */
	int64_t pause_ns; /* 0: go on */
};
bool netswitch_pause_tx(struct netswitch *s, struct netswitch_pause *ret);

/* Frames that the watchdog threw away: the driver's again. NULL: no more. */
struct netswitch_frame *netswitch_thrown(struct netswitch *s);

/* When netswitch_advance wants to be called; INT64_MAX: never. */
int64_t netswitch_deadline(const struct netswitch *s);
void netswitch_advance(struct netswitch *s, int64_t now_ns);

/* ---- to look at ---- */

uint64_t netswitch_queue_bytes(const struct netswitch *s, uint32_t port,
			       uint8_t prio);
/* All of the buffer in use. */
uint64_t netswitch_used_bytes(const struct netswitch *s);
/* Is the neighbour at this port paused by us? Are we, by it? */
bool netswitch_pausing(const struct netswitch *s, uint32_t port, uint8_t prio);
bool netswitch_paused(const struct netswitch *s, uint32_t port, uint8_t prio,
		      int64_t now_ns);
const struct netswitch_counters *netswitch_counters(const struct netswitch *s);

/* ---- planning, as published for DCQCN (SIGCOMM 2015, section 4) ---- */

/* What may still come in after a pause was decided, on a cable of this rate
 * and one-way delay: what is under way both ways, one frame that the neighbour
 * had begun and one of ours that the pause had to wait for, the pause itself,
 * and what the neighbour sends before it obeys. */
uint64_t netswitch_headroom(uint64_t rate_bps, int64_t one_way_ns,
			    uint32_t mtu_bytes, int64_t reaction_ns);
/* The most that a static PFC threshold can be, with 8 lossless priorities. */
int64_t netswitch_static_xoff(uint64_t buffer_bytes, uint32_t ports,
			      uint64_t headroom_bytes);
/* ECN marks before PFC pauses if kmin is below: with a static threshold, and
 * with a dynamic one of beta_num / beta_den. */
int64_t netswitch_static_ecn_bound(uint64_t buffer_bytes, uint32_t ports,
				   uint64_t headroom_bytes);
int64_t netswitch_dynamic_ecn_bound(uint64_t buffer_bytes, uint32_t ports,
				    uint64_t headroom_bytes, uint32_t beta_num,
				    uint32_t beta_den);

#endif
