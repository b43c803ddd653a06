/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * group_priv.h - the parts of struct udp_group; for link/group*.c only.
 *
 *   group.c             join, leave, bind: the life of a member
 *   group_rendezvous.c  join lock, finding members, asking, telling, serving
 *   group_msg.c         one message with its file descriptors
 *   group_sock.c        receive sockets: making, checking, steering
 *   group_diag.c        who holds the port
 *   group_gsi.c         who reads QP1's sockets
 */
#ifndef SOFTHCA_LINK_GROUP_PRIV_H
#define SOFTHCA_LINK_GROUP_PRIV_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "link/group.h"
#include "link/seqsock.h"

#define GROUP_ADDRS_MAX 256
#define GROUP_CONNS_MAX 32
#define GROUP_WAIT_NS 2000000000LL   /* for one that does not go on */
#define GROUP_QUEUE_NS 20000000000LL /* for all those before us */

/* One local address: its sockets in the order in which they were bound, which
 * is their index in the kernel's group. Entries are added, never removed. */
struct group_addr {
	struct gid gid;
	uint32_t ifindex;		 /* of link-local addresses, else 0 */
	_Atomic int fd[UDP_GROUP_SLOTS]; /* -1: not known */
	_Atomic unsigned n;		 /* fd[0..n-1] are known */
	bool ready; /* our own slot's socket is set up and given out */
};

struct udp_group {
	struct udp_group_config cfg;
	unsigned slot;
	pid_t pid; /* who made it: a fork's child only closes */
	struct seqsock_user user;
	int listen_fd, epoll_fd;
	int spare_fd; /* given up to refuse a newcomer when fds ran out */
	pthread_mutex_t bind_lock; /* one udp_group_bind at a time; may wait */
	pthread_mutex_t lock; /* conn, and writers of addr; never waits long */
	int conn[GROUP_CONNS_MAX]; /* accepted, oldest first */
	unsigned nconns;
	struct group_addr *_Atomic addr[GROUP_ADDRS_MAX];
	_Atomic unsigned naddrs;
	struct udp_group *next; /* of this process: group.c's list */
	/* group_gsi.c: the name that we hold, or a connection to who does. */
	int gsi_fd;
	_Atomic bool gsi_mine;
};

/* ---- group.c ---- */

/* Sets the words of udp_group_error(); returns err. */
int group_fail(int err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The entry of an address, or NULL. Lock-free. */
struct group_addr *group_find(struct udp_group *g, const struct gid *gid,
			      uint32_t ifindex);

/* Takes n sockets of an address, indices from first on: those not known yet
 * are kept, the others and those that are not what they should be closed.
 * Caller holds g->lock. */
void group_insert(struct udp_group *g, const struct gid *gid, uint32_t ifindex,
		  unsigned first, const int *fds, unsigned n);

/* Serves all groups of this process, so that one thread with two groups can
 * wait for itself. */
void group_serve_local(void);

/* ---- group_gsi.c ---- */

/* Takes the name or follows who has it; tried again with each serve. Both with
 * g->lock held, or before anybody else knows g. */
void group_gsi_seek(struct udp_group *g);
void group_gsi_serve(struct udp_group *g);

/* ---- group_rendezvous.c ---- */

int64_t group_now_ns(void);

/* The join lock of this user: an fd that holds it until closed. -EAGAIN when a
 * holder keeps it for GROUP_WAIT_NS, or all together for GROUP_QUEUE_NS. */
MUST_USE int group_lock(struct udp_group *g, int *ret_fd);
/* Claims the first free slot's name and listens on it. */
MUST_USE int group_claim(struct udp_group *g);
/* Fills g's table from the first member that answers, if there is any; `all`:
 * from all that do, one by one. Holding the join lock. */
MUST_USE int group_collect(struct udp_group *g, bool all, int64_t deadline_ns);
/* Hands sockets first..first+n-1 to all members; stopped ones find them in
 * their queue. Holding the join lock. */
void group_push(struct udp_group *g, const struct group_addr *a, unsigned first,
		unsigned n);

/* ---- group_msg.c ---- */

#define GROUP_MAGIC 0x53484731u /* changes with the layout */
#define GROUP_FDS_MAX SEQSOCK_FDS_MAX

enum group_msg_type {
	GROUP_GET = 1, /* newcomer: give me item `item` */
	GROUP_ITEM,    /* answer */
	GROUP_PUSH,    /* newcomer: these were added */
};

struct group_msg { /* fixed size, host order: it never leaves the host */
	uint32_t magic;
	uint8_t type;
	uint8_t nfds;
	uint8_t first;	 /* index of the first fd */
	uint8_t resv;	 /* 0 */
	uint32_t item;	 /* which answer of ... */
	uint32_t nitems; /* ... how many */
	uint32_t ifindex;
	struct gid gid;
};

/* -errno; -EAGAIN: would block. */
MUST_USE int group_msg_send(int sock, struct group_msg *m, const int *fds);
/* Returns 0, -EAGAIN, -EPIPE at the end, -EBADMSG when it is none of ours;
 * only with 0 there are m->nfds fds, the caller's. */
MUST_USE int group_msg_recv(int sock, struct group_msg *m,
			    int fds[GROUP_FDS_MAX]);

/* ---- group_sock.c ---- */

/* A new socket for port 4791 of the address, placed behind those bound so
 * far; `first` attaches the steering. -errno of bind. */
MUST_USE int group_sock_open(const struct udp_group *g, const struct gid *gid,
			     uint32_t ifindex, bool first, int *ret_fd);
/* Could steering not be attached to this first socket of an address? Then it
 * serves one process. */
bool group_sock_lone(int fd);
/* Sets what the owner wants; for new and adopted sockets. Drains what came
 * before. */
void group_sock_setup(const struct udp_group *g, int fd, const struct gid *gid);
/* Does the address need an interface? */
bool group_scoped(const struct gid *gid);
/* Is this fd a UDP socket on port 4791 of that address? */
bool group_sock_ok(int fd, const struct gid *gid, uint32_t ifindex);

/* ---- group_diag.c ---- */

struct group_diag {
	bool known;	   /* false: the kernel does not tell */
	unsigned nours;	   /* of our uid, exactly this address */
	unsigned nforeign; /* of other uids, this address or any */
	unsigned nwild;	   /* of our uid on the wildcard address */
	unsigned nkernel;  /* the kernel's own, as rdma_rxe has them */
	uid_t uid;	   /* of one of the foreign ones */
};

/* Who has UDP port 4791 of this address. */
void group_diagnose(const struct gid *gid, uint32_t ifindex, uid_t own,
		    struct group_diag *ret);

#endif
