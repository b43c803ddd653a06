/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * udp.h - RoCEv2 frames through plain UDP sockets: batches, segmentation and
 * receive offload, and what the sockets hide (design: the ICRC covers the IPv4
 * ID and DF, which plain sockets neither show nor set).
 *
 * One struct udp_link per device instance. Receive sockets come from
 * link/group.h; send sockets are its own. The data calls are made by the one
 * thread that is inside the engine ([E]); they use raw system calls, allocate
 * nothing and never block.
 */
#ifndef SOFTHCA_LINK_UDP_H
#define SOFTHCA_LINK_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "wire/rocev2.h"

#define UDP_LINK_COUNTERS(X)                                                   \
	X(tx_frames)                                                           \
	X(tx_syscalls)                                                         \
	X(tx_messages) /* datagrams handed over; below tx_frames with          \
			  UDP_SEGMENT */                                       \
	X(tx_again)    /* send buffer full: back-pressure */                   \
	X(tx_errors) /* the kernel refused a frame: lost, retry repairs it */  \
	X(tx_blocked_peer) /* local receiver's buffer too full: held back */   \
	X(rx_frames)                                                           \
	X(rx_syscalls)                                                         \
	X(rx_messages)                                                         \
	X(rx_bad_icrc)                                                         \
	X(rx_icrc_relaxed) /* right for some other IPv4 ID or DF */            \
	X(rx_short)	   /* too short for BTH and ICRC, or odd length */     \
	X(rx_truncated)                                                        \
	X(rx_overflow) /* SO_RXQ_OVFL: lost in our own receive buffers */

struct udp_link_counters {
#define UDP_LINK_COUNTER_FIELD(name) uint64_t name;
	UDP_LINK_COUNTERS(UDP_LINK_COUNTER_FIELD)
#undef UDP_LINK_COUNTER_FIELD
};

struct udp_link_config {
	bool segment;	       /* UDP_SEGMENT when the kernel has it */
	bool gro;	       /* UDP_GRO likewise; the same as the group's */
	bool icrc_strict;      /* refuse icrc_relaxed */
	unsigned send_sockets; /* 1..64, default 8; per address family */
	int sndbuf_bytes;      /* 0: leave the kernel's default */
	/* Says once why an offload is not used (--verbose). May be called
	 * from [E]: it must not block. NULL: nobody listens. */
	void (*note)(const char *text);
};

struct udp_link;

/* Creates the send sockets (in the calling thread's network namespace).
 * 0, -errno. IPv6 refused by the system is no error: IPv6 frames then are. */
MUST_USE int udp_link_new(const struct udp_link_config *cfg,
			  struct udp_link **ret_link);
void udp_link_free(struct udp_link *l);

/* [E] True once the kernel did not know a descriptor of ours: somebody closed
 * it, and its number may become another file's. The link is not to be used any
 * more. */
bool udp_link_lost(const struct udp_link *l);
/* [E] Forgets all descriptors without closing them. Sends and receives do
 * nothing afterwards. */
void udp_link_disown(struct udp_link *l);

/* [E] Receives from this bound socket too (udp_group_bind gave it); `local` is
 * its address. -ENOSPC past 256. The fd stays the caller's. */
MUST_USE int udp_link_add_rx(struct udp_link *l, int fd,
			     const struct gid *local);
void udp_link_remove_rx(struct udp_link *l, int fd);

/* [E] Room for the next frame: a buffer of PKT_MAX + ICRC_BYTES to build the
 * transport packet in, or NULL when the batch is full or held back (flush
 * first; when that leaves frames behind, wait for udp_link_wants_write or the
 * retry time). */
uint8_t *udp_link_tx_room(struct udp_link *l);

struct udp_link_dest {
	uint32_t ifindex; /* scope of link-local addresses; 0: none */
	/* A dup of the receiver's socket when it is on this host, to ask how
	 * full it is; -1: not known. */
	int peer_fd;
};

/* [E] Takes the len bytes built in the room given last (BTH to pad): decides
 * its datagram, seals the ICRC. flow->ip_id and df are ignored (the link knows
 * them), flow->sport picks one of the send sockets. */
void udp_link_tx_add(struct udp_link *l, const struct rocev2_flow *flow,
		     const struct udp_link_dest *dest, size_t len);

/* [E] The same, but n bits of the sealed frame are flipped (bit b: byte b / 8,
 * value 1 << b % 8): a frame that was damaged on its way. */
void udp_link_tx_add_spoilt(struct udp_link *l, const struct rocev2_flow *flow,
			    const struct udp_link_dest *dest, size_t len,
			    const uint32_t *bit, unsigned n);

/* [E] Sends what was added. Returns frames still held: 0 normally; held frames
 * are tried again by the next flush, in order. */
unsigned udp_link_flush(struct udp_link *l);

/* [E] Why the last flush held frames: the send socket to watch for POLLOUT, or
 * -1 when a receiver on this host is full (or nothing is held): then flush
 * again after UDP_LINK_RETRY_NS. */
int udp_link_wants_write(const struct udp_link *l);
#define UDP_LINK_RETRY_NS 50000

/* [E] Called for each frame that udp_link_flush() handed to the kernel or that
 * udp_link_rx() took, with IPv4 ID and DF as on the wire, sealed packet
 * included; for captures. NULL: none (the default). */
typedef void (*udp_link_tap_fn)(void *ctx, bool tx,
				const struct rocev2_flow *flow,
				const uint8_t *pkt, size_t len);
void udp_link_set_tap(struct udp_link *l, udp_link_tap_fn fn, void *ctx);

/* [E] Called for each received frame before its ICRC is looked at; may damage
 * it (len with ICRC). NULL: none (the default). */
typedef void (*udp_link_spoil_fn)(void *ctx, const struct rocev2_flow *flow,
				  uint8_t *pkt, size_t len);
void udp_link_set_spoil(struct udp_link *l, udp_link_spoil_fn fn, void *ctx);

/* [E] Receives up to about max_frames frames; fn gets each whose ICRC is right
 * (len without ICRC). Returns frames given; 0: nothing there. */
typedef void (*udp_link_rx_fn)(void *ctx, const struct rocev2_flow *flow,
			       const uint8_t *pkt, size_t len);
unsigned udp_link_rx(struct udp_link *l, unsigned max_frames, udp_link_rx_fn fn,
		     void *ctx);

const struct udp_link_counters *udp_link_counters(const struct udp_link *l);

#endif
