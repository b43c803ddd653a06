/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fab.h - a fabric in virtual time: nodes (hosts, switches) with ports, cables
 * between ports, and frames that move through them without being copied.
 *
 * A cable is full duplex. A port sends one frame at a time: `next` of its node
 * gives it, its last bit leaves after bytes / rate (exact over time: what a
 * nanosecond cannot hold is carried on), `sent` tells the node, and the frame
 * arrives whole at the other end after the cable's delay. A node that has
 * something new to send calls fab_kick().
 *
 * A frame's life is split into four parts that add up to its age: queueing,
 * transmission, propagation, processing.
 */
#ifndef SOFTHCA_SIM_FAB_H
#define SOFTHCA_SIM_FAB_H

#include "fabric/fault.h"
#include "fabric/netswitch.h"
#include "sim/world.h"
#include "wire/net.h"
#include "wire/pkt.h"

/* Around an IP packet on Ethernet: header, FCS, preamble, gap. */
#define FAB_L2_BYTES (14 + 4 + 8 + 12)
#define FAB_PAUSE_BYTES (64 + 8 + 12) /* a PFC frame */

enum fab_part {
	FAB_QUEUEING,
	FAB_TRANSMISSION,
	FAB_PROPAGATION,
	FAB_PROCESSING,
	FAB_PARTS
};

struct fab;
struct fab_node;
struct fab_port;

struct fab_frame {
	struct netswitch_frame sw; /* bytes on the wire, class, route, marks */
	struct world_event ev;	   /* its arrival */
	struct fab_frame *next;	   /* free list, or a node's queue */
	struct fab_port *to;

	bool pause; /* PFC: the two below; nothing else counts */
	uint8_t pause_mask;
	int64_t pause_ns;

	bool spoilt; /* its ICRC is wrong */
	struct gid src, dst;
	uint8_t tos, ttl;
	uint16_t sport;
	uint32_t flow_label;
	uint32_t len_bytes; /* of pkt */

	int64_t born_ns, since_ns; /* since: the part that runs began */
	int64_t part_ns[FAB_PARTS];
	uint8_t pkt[PKT_MAX + ICRC_BYTES]; /* BTH to pad */
};

struct fab_node_ops {
	/* The next frame for this port, whose queueing ends now; or NULL. */
	struct fab_frame *(*next)(struct fab_node *n, struct fab_port *p,
				  int64_t now_ns);
	/* Its last bit has left. */
	void (*sent)(struct fab_node *n, struct fab_port *p,
		     struct fab_frame *f, int64_t now_ns);
	/* A frame has come in; it is the node's (fab_give). */
	void (*rx)(struct fab_node *n, struct fab_port *p, struct fab_frame *f,
		   int64_t now_ns);
};

struct fab_port_stats {
	uint64_t frames, bytes; /* sent */
	int64_t busy_ns;
	uint64_t pauses; /* PFC frames sent */
};

struct fab_port {
	struct fab_node *node;
	uint32_t index;
	struct fab_port *peer; /* NULL: no cable */
	uint64_t rate_bps;
	int64_t delay_ns;
	struct fault_plan *faults; /* or NULL; of what this port sends */
	bool down;		   /* what it sends is lost */

	struct fab_frame *out; /* on its way out; NULL: idle */
	uint64_t carry;	       /* bits * 10^9 of less than a nanosecond */
	struct world_event done;
	uint8_t pause_mask; /* a PFC frame waits to be sent: XOFF ... */
	uint8_t go_mask;    /* ... and XON */
	int64_t pause_ns;
	struct fab_port_stats stats;
};

struct fab_node {
	struct fab *fab;
	const struct fab_node_ops *ops;
	struct fab_port *port;
	uint32_t ports;
};

struct fab_config {
	uint32_t frames; /* in the whole fabric at most */
	/* Bytes of network and transport headers count as 0: for arithmetic
	 * with round numbers. ACKs are then free. */
	bool zero_headers;
};

struct fab_stats {
	uint64_t delivered; /* to hosts' adapters */
	uint64_t lost;	    /* by faults, or a cable that is down */
	uint64_t spoilt;    /* arrived with a wrong ICRC */
	uint64_t starved;   /* times the pool was empty */
	int64_t part_ns[FAB_PARTS], age_ns, age_max_ns;
};

struct fab {
	struct world *world;
	struct fab_config cfg;
	struct fab_frame *frames, *free;
	struct fab_stats stats;
	/* Sees every frame as it leaves a port; or NULL. */
	void (*tap)(void *ctx, const struct fab_port *from,
		    const struct fab_frame *f, int64_t now_ns);
	void *tap_ctx;
};

/* -ENOMEM. */
MUST_USE int fab_init(struct fab *fab, struct world *w,
		      const struct fab_config *cfg);
void fab_fini(struct fab *fab);

/* -ENOMEM. */
MUST_USE int fab_node_init(struct fab_node *n, struct fab *fab,
			   const struct fab_node_ops *ops, uint32_t ports);
void fab_node_fini(struct fab_node *n);

struct fab_cable {
	uint64_t rate_bps; /* above 0 */
	int64_t delay_ns;  /* one way */
};
/* Both ports without a cable so far. */
void fab_connect(struct fab_port *a, struct fab_port *b,
		 const struct fab_cable *c);

/* A frame out of the pool, its life beginning now; NULL: the pool is empty. */
struct fab_frame *fab_take(struct fab *fab);
void fab_give(struct fab *fab, struct fab_frame *f);

/* What a frame with n bytes of transport packet, m of them payload, is on the
 * wire. */
uint32_t fab_wire_bytes(const struct fab *fab, const struct gid *dst,
			uint32_t n, uint32_t m);

/* The port may have something to send. */
void fab_kick(struct fab_port *p);
/* Sends a pause (pause_ns > 0) or an end of it ahead of all else. */
void fab_pause(struct fab_port *p, uint8_t mask, int64_t pause_ns);

/* The part of the frame's life that began last ends now, as this one. */
static inline void fab_part_ends(struct fab_frame *f, enum fab_part part,
				 int64_t now_ns)
{
	f->part_ns[part] += now_ns - f->since_ns;
	f->since_ns = now_ns;
}
/* It reached an adapter. */
void fab_delivered(struct fab *fab, struct fab_frame *f, int64_t now_ns);

/* Nanoseconds that n bytes take, with the port's carry. */
int64_t fab_send_ns(struct fab_port *p, uint32_t bytes);

#endif
