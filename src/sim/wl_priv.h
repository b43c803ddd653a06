/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * wl_priv.h - what the workload's files share.
 */
#ifndef SOFTHCA_SIM_WL_PRIV_H
#define SOFTHCA_SIM_WL_PRIV_H

#include "sim/workload.h"

#define WL_RECV_BIT (1ull << 63)
#define WL_SENTINEL_BIT (1ull << 62)
#define WL_GRH 40
#define WL_CQE 512
#define WL_QKEY 0x11223344u

static inline void wl_fail(struct wl *wl, const char *what, uint64_t a,
			   uint64_t b, uint64_t c)
{
	verdict_fail(&wl->verdict, wl->world.now_ns, what, a, b, c);
}

/* Which end, for messages: pair * 2 + host. */
static inline uint64_t wl_end_id(const struct wl_end *e)
{
	return e->pair->index * 2u + e->host->index;
}

static inline uint64_t wl_send_id(const struct wl_end *e, uint32_t msg)
{
	return (wl_end_id(e) + 1) << 32 | msg;
}

/* Bytes of one local or receive buffer, gaps between its pieces included. */
static inline uint32_t wl_slot_bytes(const struct wl *wl)
{
	return (wl->max_msg + WL_GRH + MSG_PIECES * 64 + 63) & ~63u;
}

/* An address that a WR can name, for an offset of the host's memory. */
static inline uint64_t area_addr(const struct area *a, uint64_t off)
{
	return a->iova + (off - a->off);
}

/* workload.c */
/* After this long nothing that is on the cable now still is. */
int64_t wl_cable_quiet_ns(const struct wl *wl);
/* An add to the peer's counter returned orig. */
void wl_shared_add(struct wl_end *e, uint64_t orig);

/* wl_setup.c */
/* Draws the round's shape from the seed. */
void wl_draw(struct wl *wl);
MUST_USE int wl_setup(struct wl *wl);
/* Destroys everything; counts what the core leaked. */
void wl_teardown(struct wl *wl);

/* (Re)registers the area's bytes under a new key. */
MUST_USE int wl_area_reg(struct wl_host *h, struct pd *pd, struct area *a);

/* wl_pair.c */
/* Deregisters the target amid traffic: from here on none of it may change. */
void wl_revoke(struct wl_end *e);
MUST_USE int wl_pair_connect(struct wl_pair *p);
/* Kills both QPs, collects what they owe, settles the model, destroys them. */
void wl_pair_end(struct wl_pair *p);

/* wl_post.c */
void wl_post_receives(struct wl_end *e);
void wl_post_sends(struct wl_end *e);
void wl_post_sentinels(struct wl_end *e);
/* len bytes in 1..sges pieces with gaps, from `off` on. */
uint8_t wl_cut(struct wl *wl, struct prng *rng, uint64_t off, uint32_t len,
	       struct piece *piece);

/* wl_poll.c */
/* Takes completions until the CQ is empty or `most` were taken. */
void wl_poll(struct wl_host *h, unsigned which, uint32_t most);
/* Local buffers of messages that nobody needs any more. */
void wl_release_slots(struct wl_end *e);

#endif
