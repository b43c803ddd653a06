/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * shm_peer.h - processes of one user on one host find each other and share
 * memory (docs/same-host.md).
 *
 * Every device instance has a page: shared memory that it alone can write.
 * It listens on an abstract SOCK_SEQPACKET name with its slot in it
 * (link/group.h). Whoever wants to send to it connects and says HELLO with its
 * own page and a ring; the answer is WELCOME with the other's page. So each
 * connection is one direction, from its maker to the listener, and lives as
 * long as both do: when it breaks the peer is gone. A process can be its own
 * peer.
 *
 *   struct shm_peer   .out   we connected: our frames to it, and its page with
 *                            the gates that our one-sided copies obey
 *                     !.out  it connected: its frames to us, and its page with
 *                            what it announces to copy
 *
 * Not [E] and thread-safe, but for the accessors: those are for whoever
 * installed the peer (callbacks below) until it is removed.
 */
#ifndef SOFTHCA_LINK_SHM_PEER_H
#define SOFTHCA_LINK_SHM_PEER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/assert.h"
#include "link/ring.h"

#define SHM_SLOTS 255	/* as UDP_GROUP_SLOTS */
#define SHM_EPOCHS 256u /* power of two */
#define SHM_AREA_OFFSET 65536u

/* What a device instance shows to its peers; read-only for them. */
struct shm_page {
	uint32_t magic; /* changes with the layout */
	uint32_t bytes; /* of the whole */
	uint32_t slot;
	uint32_t area_bytes; /* from SHM_AREA_OFFSET on: the gates */
	uint64_t nonce;
	/* Odd: the NIC thread sleeps and wants to be woken through the
	 * eventfd, once a value. Even: somebody polls. */
	_Alignas(64) _Atomic uint32_t asleep;
	/* References made under an older value are void (ring.h). */
	_Alignas(64) _Atomic uint32_t epoch[SHM_EPOCHS];
	struct ring_back back[SHM_SLOTS]; /* by the sender's slot */
};

_Static_assert(sizeof(struct shm_page) <= SHM_AREA_OFFSET, "before the area");

struct shm_peers; /* one a device instance */

struct shm_peer {
	bool out;
	unsigned slot; /* its */
	pid_t pid;     /* as this process sees it; 0: unknown */
	int pidfd;     /* readable once it has died; -1: unknown */
	int wake_fd;   /* its eventfd */
	/* Was its nonce read with process_vm_readv? Then pid is right and its
	 * memory is within reach (now; any copy can still fail). */
	bool reach;
	bool plain; /* out: it wants single packets by value (--capture) */
	const struct shm_page *page; /* its, read-only, without the area */
	int page_fd;	     /* in install() only: to map the area from */
	uint32_t area_bytes; /* checked; 0: it has none */
	/* The ring: ours to write (out), else its. */
	struct ring_shm *ring;
	uint32_t ring_size;
	void *user; /* the installer's */
};

struct shm_config {
	unsigned slot;
	uint32_t ring_size;  /* per peer that we send to; power of two */
	uint32_t area_bytes; /* of our page's area */
	bool plain;	     /* peers shall send us single packets by value */
	/* A peer is there (handshake done) / is gone. Called with our lock
	 * held, outside the engine; they must not call us; `remove` returns
	 * when nobody uses p any more, then its memory is unmapped. */
	void (*install)(void *ctx, struct shm_peer *p);
	void (*remove)(void *ctx, struct shm_peer *p);
	void *ctx;
	void (*note)(const char *text); /* may be NULL */
};

/* -errno: no memfd, no name, the uid is the overflow uid (-EPERM)... */
MUST_USE int shm_peers_new(const struct shm_config *cfg,
			   struct shm_peers **ret);
/* Removes all peers and closes everything. */
void shm_peers_free(struct shm_peers *s);
/* Forgets fds without closing (closed under us): removes all peers. */
void shm_peers_disown(struct shm_peers *s);
/* The child of a fork: closes and unmaps, calls nobody. */
void shm_peers_abandon(struct shm_peers *s);

struct shm_page *shm_peers_page(const struct shm_peers *s);
void *shm_peers_area(const struct shm_peers *s); /* of our page, zeroed */
/* Readable when shm_peers_serve() has something to do. */
int shm_peers_fd(const struct shm_peers *s);
/* Readable when a peer woke us; the reader empties it. */
int shm_peers_wake_fd(const struct shm_peers *s);
void shm_peers_serve(struct shm_peers *s);

/* Makes sure that there is (or will soon be) a way out to that slot. 0: it is
 * installed; -EINPROGRESS: asked; other -errno: none, *ret_why says it in
 * words. Does not wait. */
MUST_USE int shm_peers_want(struct shm_peers *s, unsigned slot,
			    const char **ret_why);
/* The same, and waits for at most limit_ns; serves meanwhile. */
MUST_USE int shm_peers_connect(struct shm_peers *s, unsigned slot,
			       int64_t limit_ns, const char **ret_why);

/* Wakes the peer's NIC thread. A raw system call, errno untouched. */
void shm_peer_wake(const struct shm_peer *p);
/* Copies its memory: 0, or -errno (-EFAULT: or only a part). Raw. */
MUST_USE int shm_peer_read(const struct shm_peer *p, void *dst, uint64_t va,
			   size_t len);

/* The same with pieces, together len bytes on each side. */
MUST_USE int shm_peer_readv(const struct shm_peer *p, const struct iovec *dst,
			    unsigned ndst, const struct iovec *src,
			    unsigned nsrc, size_t len);

#endif
