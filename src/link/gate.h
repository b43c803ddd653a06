/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * gate.h - one-sided copies between two processes of one user on one host, and
 * their revocation (docs/adr/0007-same-host-gates.md).
 *
 * A device instance publishes one gate area: a gate for each memory region and
 * queue pair that a peer may use, and the announcements of the copies that it
 * makes itself. It maps its own area read-write, each peer maps it read-only.
 *
 *     copier                               owner, on dereg
 *     1 read the gate: open?               1 close the gate
 *     2 announce which gates it uses       2 look at all announcements:
 *     3 read the gate again: the same?       wait while one names the gate
 *     4 copy at most GATE_PIECE_BYTES      3 return: no byte lands any more
 *     5 clear the announcement
 *
 * Steps 2 and 3 against 1 and 2 are sequentially consistent: either the owner
 * sees the announcement or the copier sees the gate closed. A copier that is
 * stopped (SIGSTOP, a debugger) with its announcement standing is not waited
 * for: the owner sets the stop word of its area, which the kernel reads as the
 * first iovec of each copy and then refuses the copy.
 *
 * What is read from another process's area is copied first and checked then: a
 * corrupt area makes copies fail, and waits end late, and nothing worse.
 */
#ifndef SOFTHCA_LINK_GATE_H
#define SOFTHCA_LINK_GATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/assert.h"
#include "wire/net.h"

/* The whole area: a multiple of 64 KiB and so of any page size. Almost all of
 * it is never touched: sparse memory (memfd) costs what is used. */
#define GATE_AREA_BYTES (6u << 20)
#define GATE_PIECE_BYTES (256u << 10)
/* Engines of one device that may copy at the same time. */
#define GATE_ANNOUNCEMENTS 4

struct gate_area; /* shared; its layout is gate_area.h's */

/* What one may do through a gate. */
enum gate_access {
	GATE_WRITE = 1 << 0,
	GATE_READ = 1 << 1,
};

/* ---- mapping a peer's area ---- */

/* Maps GATE_AREA_BYTES of fd from offset on (a multiple of the page size)
 * read-only, and one private page right behind, which gate_copy() needs and a
 * fork's child finds empty. The file must be sealed against shrinking: the
 * caller checks. NULL: no memory. */
const struct gate_area *gate_map(int fd, off_t offset);
void gate_unmap(const struct gate_area *area);

/* ---- the owner ---- */

struct gate_table;

/* Takes zeroed memory of GATE_AREA_BYTES that peers do not see yet. tag: not
 * zero, random; tells this area from others. Several threads may use a table.
 * NULL: no memory. */
struct gate_table *gate_table_new(struct gate_area *area, uint32_t tag);
/* Closes all gates for good, without waiting; regions cannot be opened any
 * more. */
void gate_table_shut(struct gate_table *t);
/* The area stays the caller's and is not touched. */
void gate_table_free(struct gate_table *t);

/* The calling thread vouches for the area: when it ends, and so before the
 * process is dead or has another memory (execve), the kernel marks the area,
 * and nobody copies any more. Until it was called nobody does. The
 * memory must stay mapped until the thread has ended. */
MUST_USE int gate_vouch(struct gate_table *t);

struct gate_mr_attr {
	uint32_t key;
	uint32_t pd;	 /* any number that its QPs share */
	uint32_t access; /* enum gate_access */
	uint64_t va, iova, len_bytes;
};

/* Publishes a region. -ENOSPC: no place for it in the table; peers then use
 * packets for it. */
MUST_USE int gate_mr_open(struct gate_table *t, const struct gate_mr_attr *a);

struct gate_qp_attr {
	uint32_t qpn;
	uint32_t pd;
	uint32_t access; /* what the peer may do: enum gate_access */
	uint32_t peer_qpn;
	uint16_t pkey;
	struct gid own, peer; /* addresses of the two ends */
};

/* Publishes a QP that may serve one-sided requests, or what changed of it. */
void gate_qp_open(struct gate_table *t, const struct gate_qp_attr *a);

/* Which gate was closed; .kind GATE_NONE: it was not open, nothing to wait
 * for. */
enum gate_kind { GATE_NONE, GATE_MR, GATE_QP };
struct gate_closed {
	enum gate_kind kind;
	uint32_t index;
};

/* Closes: no copy begins any more. Copies that are under way go on until
 * gate_wait(). Never sleeps. A region's place in the table is free again after
 * gate_wait(). */
struct gate_closed gate_mr_close(struct gate_table *t, uint32_t key);
struct gate_closed gate_qp_close(struct gate_table *t, uint32_t qpn);

/* The same, of a QP whose gate has been closed, or has been opened anew with
 * other rights. */
struct gate_closed gate_of_qp(uint32_t qpn);

/* A process that may be copying. */
struct gate_watch {
	const struct gate_area *area; /* its announcements */
	pid_t pid;		      /* as we see it; 0: unknown */
	/* True when no thread of the process that owns the area can run any
	 * more, or it has another memory since (execve). A system call may be
	 * made. */
	bool (*gone)(const struct gate_watch *w);
	int pidfd; /* gone()'s own */
	void *ctx; /* gone()'s own */
};

/* Waits until no copy through the closed gate is under way in any of these
 * processes; all that ever saw the area and are alive must be among them. May
 * sleep, never inside the engine. The areas must stay mapped meanwhile. */
void gate_wait(struct gate_table *t, struct gate_closed c,
	       const struct gate_watch *peers, unsigned n);

/* A stopped peer may have left the table's stop word set, which refuses all
 * copies into this process; this looks whether it can be taken back. Cheap when
 * there is none: for the engine, now and then. */
void gate_settle(struct gate_table *t);
/* This peer is gone, or will copy no more: before its area is unmapped. */
void gate_forget(struct gate_table *t, const struct gate_area *area);

struct gate_counters {
	uint64_t waits;	    /* gate_wait() calls that met a copy under way */
	uint64_t overruled; /* announcements of stopped peers */
	uint64_t expired;   /* announcements that stood too long */
};
void gate_counters(const struct gate_table *t, struct gate_counters *ret);

/* ---- the copier ---- */

/* One for each peer, in the engine's hands. */
struct gate_peer {
	const struct gate_area *area; /* by gate_map() */
	pid_t pid;		      /* as we see it */
	uint32_t tag;		      /* read once, at gate_peer_init() */
};

/* -EPROTO: not an area of this layout. */
MUST_USE int gate_peer_init(struct gate_peer *p, const struct gate_area *area,
			    pid_t pid);

struct gate_request {
	uint32_t access;	/* GATE_WRITE or GATE_READ */
	uint32_t qpn, peer_qpn; /* ours, the peer's */
	uint16_t pkey;		/* ours */
	struct gid own, peer;	/* addresses of our QP's path */
	uint32_t rkey;
	uint64_t remote_addr; /* of the message, in the region's iova space */
	uint32_t len_bytes;   /* of the message: its bounds are checked */
	uint32_t off, n;      /* the piece: n bytes from off on, 1 ..
				 GATE_PIECE_BYTES */
	const struct iovec *local; /* the piece's n bytes here */
	unsigned num_local;	   /* at most GATE_LOCAL_MAX */
};
#define GATE_LOCAL_MAX 64

enum gate_verdict {
	GATE_DONE,
	GATE_NO_OWNER, /* nobody vouches for the area */
	GATE_NO_QP,    /* the peer's QP does not serve this request now */
	GATE_NO_MR,    /* key, domain, access or bounds, or not published */
	GATE_SHUT,     /* closed meanwhile, or the stop word is set */
	GATE_FAULT,    /* some byte on either side is not accessible */
	GATE_REFUSED,  /* the system forbids such copies: do not ask again */
	GATE_GONE,     /* the process does not exist */
};

/* Copies one piece into (or out of) the peer's memory. own: the caller's area,
 * in which it announces at `slot`. Anything but GATE_DONE may have moved part
 * of the piece. The last bytes of a WRITE's message (off + n == len_bytes) land
 * after all others. Engine-safe: raw system calls, no allocation, errno is the
 * caller's to restore. n == 0 only checks. */
enum gate_verdict gate_copy(struct gate_area *own, unsigned slot,
			    const struct gate_peer *p,
			    const struct gate_request *r);

#endif
