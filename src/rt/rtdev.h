/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rtdev.h - a device instance: one core, one engine, one link, one NIC thread.
 * Private to rt.
 *
 * Two ways to end before rtdev_close():
 *   dead  the child of a fork: the core is a copy in an unknown state and not
 *         touched again. Every verb fails; destroy verbs free rt's memory.
 *   lost  descriptors of ours were closed under us. As after a fatal error of
 *         a NIC: all QPs are in ERR, what was posted is flushed, DEVICE_FATAL;
 *         create and modify fail, destroy works. No number is used again, not
 *         even to close it: it may be the program's.
 *
 * Locks, outermost first: `control` (one control verb at a time that may sleep
 * on other processes: bind) -> the engine -> a CQ's, a queue's or an event
 * queue's lock (leaves).
 */
#ifndef SOFTHCA_RT_RTDEV_H
#define SOFTHCA_RT_RTDEV_H

#include <pthread.h>

#include "core/hca.h"
#include "link/group.h"
#include "link/udp.h"
#include "rt/capture.h"
#include "rt/engine.h"
#include "rt/evq.h"
#include "rt/faults.h"
#include "rt/gates.h"
#include "rt/nic.h"
#include "rt/rings.h"
#include "rt/rt.h"
#include "rt/stats.h"

struct rtdev {
	struct rtdev *next; /* rtdev.c: the process's open instances */
	struct rt_device id;
	uint64_t netns; /* inode of the network namespace it lives in */
	unsigned refs;
	bool dead;
	_Atomic bool lost;		  /* written [E] */
	_Atomic bool said_icrc, said_src; /* losses.c: was said once */

	pthread_mutex_t control;
	struct hca *hca;
	struct udp_link *link;
	struct udp_group *group;
	struct capture *capture; /* or NULL */
	struct faults *faults;	 /* or NULL */
	struct gates *gates;	 /* or NULL */
	struct rings *rings;	 /* or NULL */
	struct engine engine;
	struct nic nic;

	struct rt_lock evq_lock;
	struct dlist evqs;  /* struct rt_evq.dev_node */
	struct dlist qps;   /* [E] struct rt_qp.dev_node */
	struct dlist xrcds; /* [E] struct rt_xrcd.node */
	uint32_t speed_mbps, netdev_mtu;
	_Atomic(struct dmem *) dmem, dmem_child; /* rt_mem.c; NULL: none yet */

	struct gid gid_seen[HCA_GIDS_MAX]; /* [E] last address of an index */

	/* Under control: which GID entries' addresses receive. */
	bool bound[HCA_GIDS_MAX];
	bool gsi_read[HCA_GIDS_MAX]; /* [E] QP1 sockets that we read */
	struct gid bound_gid[HCA_GIDS_MAX];

	struct dlist groups; /* under control; rt_mcast.c */

	struct stats_source stats;
};

/* The interface that scopes a link-local address or a group; 0 for all others,
 * which routing sends where they belong. */
static inline uint32_t gid_scope(const struct gid *g, uint32_t ifindex)
{
	bool link_local = g->raw[0] == 0xfe && (g->raw[1] & 0xc0) == 0x80;

	return link_local || gid_is_multicast(g) ? ifindex : 0;
}

/* Dead or lost: nothing new can be made. */
static inline bool rtdev_failed(const struct rtdev *d)
{
	return d->dead || rtdev_lost(d);
}

/* [E] Makes it lost. */
void rtdev_lose(struct rtdev *d);

void rtdev_add_evq(struct rtdev *d, struct rt_evq *q);
void rtdev_remove_evq(struct rtdev *d, struct rt_evq *q);
/* [E] To every context's async queue. */
void rtdev_port_event(struct rtdev *d, enum async_type type);

/* The port's state, MTU and GID table from the netdev; at creation. -ENODEV. */
MUST_USE int rtdev_port_init(struct rtdev *d);
/* The same again after something changed, with the events that a NIC raises
 * (GID_CHANGE, PORT_ERR, PORT_ACTIVE). The NIC thread calls it. */
void rtdev_port_refresh(struct rtdev *d);

/* Says, at --verbose and once each, why packets are dropped that look like a
 * NAT. The NIC thread calls it, or whoever has stopped that. */
void rtdev_explain_losses(struct rtdev *d);

/* [E] Link and NIC thread receive from this socket too. */
MUST_USE int rtdev_receive_from(struct rtdev *d, int fd,
				const struct gid *local);
/* When the device goes. */
void rtdev_close_groups(struct rtdev *d);

/* Makes this GID's address ready to receive: joins its port group once and
 * adds the socket to link and NIC thread. Not inside the engine. -errno, with
 * the reason said on stderr. */
MUST_USE int rtdev_bind_gid(struct rtdev *d, uint32_t index);
/* Reads the QP1 sockets of all addresses if that is this instance's part
 * (docs/port-sharing.md). After something changed in the group. */
void rtdev_read_gsi(struct rtdev *d);
/* The same for every valid GID; succeeds when at least one could be bound. */
MUST_USE int rtdev_bind_all(struct rtdev *d);

#endif
