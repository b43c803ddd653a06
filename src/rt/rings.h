/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rings.h - frames between processes of one host through shared memory
 * (docs/same-host.md): what the engine does with link/ring.h.
 *
 * Peers come from gates.h's connections. A device without (refused by the
 * system, or one whose frames are to be seen, by --capture or --fault) works
 * all the same: every call here then does nothing.
 */
#ifndef SOFTHCA_RT_RINGS_H
#define SOFTHCA_RT_RINGS_H

#include "core/hca.h"
#include "link/shm_peer.h"

struct rtdev;
struct rings;

/* At creation, before any peer can come. */
void rings_new(struct rtdev *d, struct shm_page *page);
void rings_free(struct rtdev *d);

/* A peer is there or gone (link/shm_peer.h). Not inside the engine. */
void rings_install(struct rtdev *d, struct shm_peer *p);
void rings_remove(struct rtdev *d, struct shm_peer *p);

/* This address is one of this host's: what is sent to it may go through rings.
 * Not inside the engine. */
void rings_local(struct rtdev *d, const struct gid *g);
/* A slot that UD sends want a way to, once; -1: none. The NIC thread's. */
int rings_wanted(struct rtdev *d);

/* What struct hca_ops wants, [E]; the context is the rtdev. */
void rings_path_out(void *ctx, struct path *p, uint32_t dest_qpn);
int rings_fetch(void *ctx, uint64_t va, const void *away, uint32_t off,
		size_t len);
void rings_void(void *ctx, uint32_t qpn);

/* [E] Takes a frame whose path has a way out; it is done or refused. */
void rings_tx(struct rtdev *d, const struct tx_frame *f, int64_t now_ns);
/* [E] What was taken becomes visible; sleepers are woken. */
void rings_flush(struct rtdev *d);
/* [E] QPs whose ring has room again go on. True: some still wait. */
bool rings_unblock(struct rtdev *d, int64_t now_ns);
/* [E] Frames to the core; returns how many, about max at most. */
unsigned rings_rx(struct rtdev *d, unsigned max, int64_t now_ns);
/* [E] Some process sends to us through a ring. */
bool rings_active(const struct rtdev *d);
/* [E] When to look again at those who do not read; INT64_MAX. */
int64_t rings_deadline(const struct rtdev *d);

/* [E] The NIC thread wants to be woken from now on (true: something is there
 * already), or not. */
MUST_USE bool rings_sleep(struct rtdev *d);
void rings_awake(struct rtdev *d);

#endif
