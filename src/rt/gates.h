/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * gates.h - one-sided copies between processes of one host: what a device
 * publishes (link/gate.h), and the copies that it makes itself
 * (docs/same-host.md).
 *
 * A device that has none (switched off, refused by the system, or one whose
 * frames are to be seen, by --capture or --fault) works all the same: every
 * call here then does nothing.
 */
#ifndef SOFTHCA_RT_GATES_H
#define SOFTHCA_RT_GATES_H

#include "core/hca.h"
#include "core/verbs.h"
#include "link/gate.h"

struct rtdev;
struct gates;

/* At creation, after the group and before the NIC thread. */
void gates_new(struct rtdev *d);
/* After the NIC thread has ended; nobody is or comes inside. */
void gates_free(struct rtdev *d);
/* In a fork's child: only what is the child's. */
void gates_abandon(struct rtdev *d);
/* [E] Our descriptors were closed under us. */
void gates_disown(struct rtdev *d);

/* The NIC thread's: it vouches for the device's memory; the descriptor to watch
 * (-1: none) and what to do when that is readable. */
void gates_vouch(struct rtdev *d);
int gates_fd(const struct rtdev *d);
void gates_serve(struct rtdev *d);
/* Readable when a peer woke us (-1: none). */
int gates_wake_fd(const struct rtdev *d);
/* Asks the peers that UD sends want. */
void gates_ask(struct rtdev *d);
/* Somebody may send to this address. Not inside the engine. */
void gates_local(struct rtdev *d, const struct gid *g);

/* What struct hca_ops wants, [E]; the context is the rtdev. */
enum direct_verdict gates_direct(void *ctx, const struct direct_req *r);
void gates_grant(void *ctx, const struct qp *qp);
/* [E] At the end of a visit. */
void gates_settle(struct rtdev *d);

/* Before a QP goes to RTR: is its peer a process on this host? Then finds it
 * (200 ms at most). Not inside the engine. True: qp_set_direct(). */
bool gates_seek(struct rtdev *d, const struct qp_attr *attr);

/* Regions. Close before a region changes or goes, [E]; wait after that, outside
 * the engine: then no copy of a peer is under way in it. */
void gates_mr_open(struct rtdev *d, const struct mr *mr);
struct gate_closed gates_mr_close(struct rtdev *d, const struct mr *mr);
struct gate_closed gates_qp_close(struct rtdev *d, uint32_t qpn);
void gates_wait(struct rtdev *d, struct gate_closed c);

void gates_counters(const struct rtdev *d, struct gate_counters *ret);

#endif
