/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * ring.h - one direction of frames between two processes, in shared memory.
 *
 * Memory alone: no system call, no allocation. Everybody writes only memory of
 * his own, which others see read-only (docs/same-host.md):
 *
 *   sender's    struct ring_shm   tail, records           receiver reads
 *   receiver's  struct ring_back  head, refusal of refs   sender reads
 *
 * A record is a struct ring_rec and what belongs to it, in units of 64 bytes,
 * never across the end of the ring (a RING_PAD record fills that). Positions
 * are bytes since the start, mod 2^64. The sender publishes tail with release
 * after the records; the receiver reads each word that it believes once, into
 * memory of its own, checks it, and cuts off a sender that breaks the rules.
 */
#ifndef SOFTHCA_LINK_RING_H
#define SOFTHCA_LINK_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "wire/net.h"
#include "wire/pkt.h"

#define RING_UNIT 64u
#define RING_REFS_MAX 16u
#define RING_PAYLOAD_MAX 65536u /* bytes that one record stands for */
/* No record is longer. */
#define RING_REC_MAX (RING_UNIT + PKT_HDR_MAX + RING_PAYLOAD_MAX + RING_UNIT)
#define RING_BYTES_MIN (4u * RING_REC_MAX)

enum ring_kind {
	RING_PAD = 1, /* nothing, to the end of the ring */
	RING_FRAME,   /* .pkt_bytes: BTH to pad */
	/* .pkt_bytes of headers, then payload_bytes of one or more packets */
	RING_VALUE,
	/* .pkt_bytes of headers, then nrefs struct ring_ref: where the payload
	 * lies in the sender's process */
	RING_REFS,
};

enum ring_flags {
	RING_SPOILT = 1 << 0, /* a fault plan damaged it: count and drop */
};

struct ring_ref { /* a piece of the sender's memory */
	uint64_t va;
	uint64_t len_bytes;
};

struct ring_rec {	/* one unit */
	uint32_t bytes; /* of the record, a multiple of RING_UNIT */
	uint8_t kind;	/* enum ring_kind */
	uint8_t flags;	/* enum ring_flags */
	uint16_t pkts;	/* consecutive packets that it stands for, >= 1 */
	uint16_t pkt_bytes;
	uint16_t nrefs;
	uint32_t payload_bytes; /* VALUE, REFS */
	uint32_t epoch;		/* REFS: good while page.epoch[epoch_at] is */
	uint16_t epoch_at;	/* this, also after the copy */
	uint16_t sport;
	uint32_t flow_label;
	uint8_t tos, ttl;
	uint8_t resv[2];
	struct gid src, dst;
};
_Static_assert(sizeof(struct ring_rec) == RING_UNIT, "one unit");

struct ring_shm {
	_Alignas(64) _Atomic uint64_t tail; /* bytes published */
	/* Odd: the sender sleeps until there is room; another value each time
	 * that it does. */
	_Alignas(64) _Atomic uint32_t waiting;
	_Alignas(64) uint8_t data[]; /* a power of two */
};

struct ring_back {
	_Alignas(64) _Atomic uint64_t head; /* bytes consumed */
	_Atomic uint32_t no_refs;	    /* set: pass by value from now on */
};

/* ---- sending ---- */

struct ring_tx {
	struct ring_shm *shm;
	const struct ring_back *back;
	uint32_t size; /* of data */
	uint64_t next; /* written up to here, published or not */
	uint64_t tail; /* published */
	uint64_t head; /* the receiver's, as last believed */
	bool broken;   /* the receiver's head made no sense */
};

/* shm: zeroed, ring_shm_bytes(size) long; size: a power of two, at least
 * RING_BYTES_MIN. */
void ring_tx_init(struct ring_tx *t, struct ring_shm *shm, uint32_t size,
		  const struct ring_back *back);

static inline size_t ring_shm_bytes(uint32_t size)
{
	return sizeof(struct ring_shm) + size;
}

/* Is there room for a record of RING_REC_MAX? Looks at the receiver's head when
 * the last known one does not say so; a head that cannot be right makes the
 * ring broken, and there is no room for ever. */
bool ring_tx_room(struct ring_tx *t);
/* Is there, after saying that we sleep until there is? `value`: odd, another
 * one each time; 0: we do not sleep any more. False: the receiver will wake us.
 */
bool ring_tx_wait(struct ring_tx *t, uint32_t value);
/* Nothing that was published is still unread. */
bool ring_tx_drained(struct ring_tx *t);

/* Room for a record with n bytes after its head, contiguous, in the ring. Fill
 * it, then commit. Only after ring_tx_room(). */
struct ring_rec *ring_tx_reserve(struct ring_tx *t, uint32_t n);
/* The record is complete: n as reserved or less. Not yet visible. */
void ring_tx_commit(struct ring_tx *t, struct ring_rec *r, uint32_t n);
/* Makes everything committed visible; true: there was something. The store is
 * seq_cst: a load of the receiver's `asleep` after it sees a sleeper whose
 * last look at the ring came before (docs/same-host.md). */
bool ring_tx_publish(struct ring_tx *t);

/* ---- receiving ---- */

enum ring_verdict {
	RING_OK,
	RING_EMPTY,
	RING_BROKEN, /* against the rules: never look at it again */
};

struct ring_rx {
	const struct ring_shm *shm;
	struct ring_back *back;
	uint32_t size;
	uint64_t next; /* read up to here */
	uint64_t head; /* given back */
	uint64_t tail; /* the sender's, as last believed */
	uint32_t told; /* value of `waiting` that was answered last */
};

/* A record, its head copied out and checked. */
struct ring_item {
	struct ring_rec rec;
	const uint8_t *pkt;	/* shared: copy what is looked at twice */
	const uint8_t *payload; /* VALUE: shared */
	struct ring_ref ref[RING_REFS_MAX]; /* REFS: copied, lengths checked */
};

void ring_rx_init(struct ring_rx *r, const struct ring_shm *shm, uint32_t size,
		  struct ring_back *back);
/* Something to read, or against the rules? (one load) */
bool ring_rx_ready(struct ring_rx *r);
/* The same by a seq_cst load, for somebody who is about to sleep. */
bool ring_rx_ready_seq_cst(struct ring_rx *r);
/* The next record; it stays in the ring until ring_rx_release(). */
enum ring_verdict ring_rx_next(struct ring_rx *r, struct ring_item *ret);
/* Gives back what was read (once a batch). True: the sender sleeps until there
 * is room and has to be woken, once for each time that it does. */
bool ring_rx_release(struct ring_rx *r);

#endif
