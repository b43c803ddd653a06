/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * netdev.h - the network interfaces that can carry RoCEv2, from rtnetlink.
 *
 * Usable: up, with at least one address, and no slave of a bond, bridge or
 * team. Loopback is one. All calls see the network namespace of the calling
 * thread; none is for the engine (they allocate).
 */
#ifndef SOFTHCA_RT_NETDEV_H
#define SOFTHCA_RT_NETDEV_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "wire/net.h"

#define NETDEV_NO_VLAN 0xffff

struct netdev_addr {
	struct gid gid; /* IPv4 as ::ffff:a.b.c.d */
	uint8_t prefix_len;
	bool link_local; /* IPv6 fe80::/10: needs the ifindex as scope */
};

struct netdev {
	char name[16];
	uint32_t ifindex;
	uint32_t flags; /* IFF_* */
	uint32_t mtu_bytes;
	uint32_t speed_mbps; /* 0: unknown */
	uint8_t operstate;   /* IF_OPER_* */
	bool loopback;
	bool running; /* may carry frames now: PORT_STATE_ACTIVE */
	bool has_mac;
	uint8_t mac[6];
	uint16_t vlan; /* id of a VLAN netdev or NETDEV_NO_VLAN */
	bool default_route;
	uint32_t route_metric; /* lowest of its default routes */
	/* Without tentative and duplicate ones; IPv4 first, then global IPv6,
	 * then link-local, each in the kernel's order. */
	int n_addrs;
	const struct netdev_addr *addrs;
};

/* All usable netdevs: those with a default route first (by metric), loopback
 * last. *ret_list is one malloc'ed block, addresses included: free() it. It is
 * never NULL on success, *ret_n may be 0. 0, -errno. */
MUST_USE int netdev_list(struct netdev **ret_list, int *ret_n);

/* One netdev by index, in *ret_dev to free(), whether or not it is usable any
 * more (down, no address): to refresh an open device. -ENODEV: gone. */
MUST_USE int netdev_get(uint32_t ifindex, struct netdev **ret_dev);

/* EUI-64 of the MAC, or a hash of boot id, host name and interface name for an
 * interface without one. Never zero; host order. */
uint64_t netdev_node_guid(const struct netdev *dev);

/* A non-blocking, CLOEXEC socket that becomes readable when links or
 * addresses change. *ret_fd: the caller closes it. 0, -errno. */
MUST_USE int netdev_watch_fd(int *ret_fd);

/* Empties it; raw system calls, errno untouched, 1 KiB of stack. True:
 * something changed (or notices were lost): look at netdev_get() again. */
bool netdev_watch_drain(int fd);

#endif
