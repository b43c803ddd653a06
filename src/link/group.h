/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * group.h - sharing UDP port 4791 between all device instances of one user in
 * one network namespace (docs/port-sharing.md).
 *
 * Every instance owns a slot, 1..254; it is the upper 8 bits of its QPNs. Slot
 * 0 is nobody's: its socket gets what is for QP1, and one member reads it. For
 * each local address in use there is one SO_REUSEPORT group of sockets whose
 * index in the group IS the slot: a constant classic BPF program returns the
 * upper byte of the packet's destination QPN; of a CM message for a known
 * communication, the upper byte of that one's id. The kernel reorders a group
 * when a member closes; so no socket ever leaves: each member holds duplicates
 * of all sockets (SCM_RIGHTS), a newcomer adopts the socket of the free slot
 * that it takes, and binds what is missing below its slot as placeholders. The
 * group dies with its last member.
 *
 * Slots are claimed by binding abstract SOCK_SEQPACKET names, which the kernel
 * frees at death; names are scoped to the network namespace, as ports are.
 * SO_PEERCRED keeps other users out.
 */
#ifndef SOFTHCA_LINK_GROUP_H
#define SOFTHCA_LINK_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "wire/net.h"

#define UDP_GROUP_SLOTS 255 /* with the first: */
#define UDP_GROUP_SLOT_GSI 0
#define UDP_GROUP_QPN_BITS 16 /* below the slot */

struct udp_group;

struct udp_group_config {
	bool gro;			/* set UDP_GRO on new sockets */
	int rcvbuf_bytes;		/* 0: leave the kernel's default */
	void (*note)(const char *text); /* may be NULL */
};

/* Claims a slot. May sleep (bounded: 2 s for others that do not go on, 20 s for
 * a crowd that does). -EUSERS: no slot free; -EAGAIN: a
 * member that must answer does not (stopped?). */
MUST_USE int udp_group_join(const struct udp_group_config *cfg,
			    struct udp_group **ret_group);
void udp_group_leave(struct udp_group *g);
/* Its descriptors were closed by somebody else and their numbers may be others'
 * now: udp_group_leave() shall close none. */
void udp_group_disown(struct udp_group *g);
unsigned udp_group_slot(const struct udp_group *g);

/* The receive socket of this slot for a local address, bound to port 4791 and
 * steered; the same fd when asked again. The group keeps ownership. May sleep
 * (bounded). -EADDRINUSE: port 4791 of the address belongs to another user or
 * to the kernel (rdma_rxe): udp_group_error() says which; -EADDRNOTAVAIL: no
 * such address. ifindex scopes link-local addresses. */
MUST_USE int udp_group_bind(struct udp_group *g, const struct gid *addr,
			    uint32_t ifindex, int *ret_fd);
/* A socket of this process that receives the multicast group on an interface;
 * the caller closes it. -errno. */
MUST_USE int udp_group_join_mcast(struct udp_group *g, const struct gid *group,
				  uint32_t ifindex, int *ret_fd);
/* Why the last udp_group_join/bind of this thread failed, in words. */
const char *udp_group_error(void);

/* The i-th address's QP1 socket, when this member is the one that reads them:
 * made ready, -1 when there is none to read. False: past the last, or another
 * member reads. To be asked again from 0 after each udp_group_serve() and
 * udp_group_bind(); the group keeps ownership. */
bool udp_group_gsi_socket(struct udp_group *g, unsigned i, struct gid *ret_addr,
			  int *ret_fd);

/* A dup of the socket that receives what is sent to addr and dest_qpn, when
 * that is a member of this group on this host; else -1. No system call. */
int udp_group_peer_fd(struct udp_group *g, const struct gid *addr,
		      uint32_t dest_qpn);

/* The fd to watch for newcomers (readable), and what to call then. Never
 * blocks. Any thread. */
int udp_group_fd(const struct udp_group *g);
void udp_group_serve(struct udp_group *g);

#endif
