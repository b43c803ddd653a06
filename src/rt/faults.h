/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * faults.h - a fault plan (fabric/fault.h) at work on one device, between its
 * core and its link. Private to rt; exists only when the user asked for
 * faults (`softhca run --fault`).
 *
 *    core --hca_tx--> faults_tx ---------------------> link --> network
 *                         `-> delayed -> faults_tx_next -^
 *    core <--hca_rx-- faults_rx <-- link <-- faults_spoil <---- network
 *            ^- faults_rx_run <- delayed <-´
 *
 * Delayed frames wait in a pool made at creation. When it is more than half
 * full the core is not asked for more frames (back-pressure); when it is full
 * a received frame passes undelayed, a copy is not made, and fault_overrun
 * counts it.
 *
 * Corruption hits the sealed packet: on the way out in the link
 * (udp_link_tx_add_spoilt), on the way in before the link checks the ICRC.
 * All but the creation is [E].
 */
#ifndef SOFTHCA_RT_FAULTS_H
#define SOFTHCA_RT_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "core/hca.h"
#include "fabric/fault.h"
#include "link/udp.h"
#include "rt/engine.h"
#include "wire/rocev2.h"

struct faults;

/* A frame on its way to the link; its bytes are in the link's room. */
struct fault_tx {
	struct rocev2_flow flow;
	uint32_t netdev, dest_qpn;
	uint32_t len_bytes;	   /* BTH to pad */
	uint8_t flips;		   /* bits to flip once it is sealed */
	uint32_t bit[FAULT_FLIPS]; /* see struct fault_verdict */
};

/* Not [E]. `seed` is for a plan without its own; the plan's time begins now;
 * what happens is counted in *e. -EINVAL: the text is wrong, *ret_err says
 * where; -ENOMEM. */
MUST_USE int faults_new(const char *text, uint64_t seed, int64_t now_ns,
			struct engine *e, struct faults **ret,
			struct fault_error *ret_err);
void faults_free(struct faults *f); /* NULL: nothing */
/* The seed that is in use. */
uint64_t faults_seed(const struct faults *f);

/* Judges the frame of this size in the link's room. True: it goes on now, as
 * *t (changed) says. False: dropped or kept. */
bool faults_tx(struct faults *f, struct fault_tx *t, const uint8_t *room,
	       int64_t now_ns);
/* The next delayed frame whose time has come, copied into the link's room. */
bool faults_tx_next(struct faults *f, struct fault_tx *ret, uint8_t *room,
		    int64_t now_ns);
/* Is there one? */
bool faults_tx_due(const struct faults *f, int64_t now_ns);
/* May the core be asked for another frame? */
bool faults_tx_room(const struct faults *f);

/* Before the round's frames: the time that faults_spoil uses. */
void faults_rx_begin(struct faults *f, int64_t now_ns);
/* The link's hook: judges the next received frame, corrupts it. */
void faults_spoil(void *ctx, const struct rocev2_flow *flow, uint8_t *pkt,
		  size_t len);
/* The same frame, its ICRC found right. Gives it to the core, now or later,
 * or not at all. */
void faults_rx(struct faults *f, struct hca *hca, const struct rx_frame *frame,
	       int64_t now_ns);
/* Gives the core the delayed frames whose time has come. */
void faults_rx_run(struct faults *f, struct hca *hca, int64_t now_ns);

/* When the first delayed frame is due; INT64_MAX: none waits. */
int64_t faults_deadline(const struct faults *f);

#endif
