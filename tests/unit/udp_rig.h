/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * udp_rig.h - two links in one process, a receive socket on loopback, and what
 * arrived there. Each frame is a UC SEND_MIDDLE whose content follows from its
 * PSN and size.
 */
#ifndef SOFTHCA_TESTS_UNIT_UDP_RIG_H
#define SOFTHCA_TESTS_UNIT_UDP_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "link/udp.h"

#define SLOT 3
#define QPN (SLOT << 16 | 0x12)

struct seen {
	struct rocev2_flow flow;
	uint32_t psn;
	size_t len;
	bool intact;
};

#define SEEN_MAX 8192

struct pair {
	struct udp_link *tx, *rx;
	struct gid addr;
	int fd; /* receive socket */
	struct udp_link_dest dest;
	struct rocev2_flow flow;
	uint32_t psn; /* next to send */
	unsigned nseen, ntapped;
	struct seen seen[SEEN_MAX];
	struct seen tapped[SEEN_MAX]; /* sent */
};

/* How often a link had something to say. */
extern unsigned pair_notes;

/* Links over one address, 127.0.0.1 or ::1, and the receive socket. */
struct pair *pair_new(const struct gid *addr, bool segment, bool gro,
		      bool strict);
void pair_free(struct pair *p);
/* Teardown of a test: a failed one must not leave its sockets to the next. */
int pair_clean_up(void **state);
/* One more socket on port 4791 of the address. */
int pair_open_rx(const struct gid *addr, bool gro);

/* A frame of len bytes (BTH to pad). */
void frame_build(uint8_t *room, uint32_t qpn, uint32_t psn, size_t len);
/* Hands the next frame to the sending link; false: there is no room. */
bool pair_add(struct pair *p, size_t len);
/* Sends a frame of each size, receiving in between. */
void pair_send(struct pair *p, const size_t *len, unsigned n);

/* For udp_link_rx(): notes what came. */
void pair_on_rx(void *ctx, const struct rocev2_flow *flow, const uint8_t *pkt,
		size_t len);
/* All that is there. */
void pair_receive(struct pair *p);
/* Loopback's work may be left to a kernel thread that has to be scheduled: what
 * was sent is there in a moment. */
void pair_receive_until(struct pair *p, unsigned n);

/* No error and no doubt was counted on either side. */
void pair_check_clean(const struct pair *p);
/* PSNs 0..n-1 arrived, once, in order, whole. */
void pair_check_all(struct pair *p, unsigned n);

static const struct gid lo6 = { .raw = { [15] = 1 } };

static inline struct gid lo4(void)
{
	return gid_from_v4(0x7f000001);
}

#endif
