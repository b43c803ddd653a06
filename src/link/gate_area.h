/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * gate_area.h - the memory that gate.c and gate_wait.c write and gate_copy.c of
 * other processes reads. Private to gate*.c.
 *
 * Every field that changes is an atomic: two processes use it at once.
 */
#ifndef SOFTHCA_LINK_GATE_AREA_H
#define SOFTHCA_LINK_GATE_AREA_H

#include <pthread.h>
#include <stdatomic.h>

#include "link/gate.h"

#define GATE_MAGIC 0x67617465u
#define GATE_LAYOUT 1u
#define GATE_MRS (1u << 14)
#define GATE_MR_PROBES 8 /* places that a key may have, one after another */
#define GATE_QPS (1u << 16)
#define GATE_NO_MR_INDEX 0xffffu
#define GATE_OPEN 1u

/* word: 0, or key << 32 | serial << 1 | GATE_OPEN. The serial number is new
 * each time that the gate opens: equal words mean that nothing happened in
 * between. The other fields are stored between a closing and an opening. */
struct gate_mr {
	_Alignas(64) _Atomic uint64_t word;
	_Atomic uint64_t va, iova, len_bytes;
	_Atomic uint32_t access, pd;
};

/* word: 0, or QPN << 40 | serial << 1 | GATE_OPEN. */
struct gate_qp {
	_Alignas(64) _Atomic uint64_t word;
	_Atomic uint32_t access, pd;
	_Atomic uint32_t peer_qpn, pkey;
	_Atomic uint64_t own[2], peer[2]; /* struct gid */
};

/* 0: no copy. Else target's tag << 32 | index of the MR gate << 16 | index of
 * the QP gate. */
struct gate_announcement {
	_Alignas(64) _Atomic uint64_t word;
};

/* A struct iovec: {0, 0}, or {0, -1} to refuse all copies. */
struct gate_stop {
	_Atomic uint64_t base, len;
};

struct gate_area {
	uint32_t magic, layout, tag; /* constant once peers see the area */
	/* A robust mutex, held by the thread that vouches. Peers look at its
	 * first word alone: the thread's id and the kernel's mark. */
	union {
		pthread_mutex_t mutex;
		_Atomic uint32_t word;
	} owner;
	struct gate_announcement announcements[GATE_ANNOUNCEMENTS];
	_Alignas(65536) struct gate_qp qps[GATE_QPS];
	_Alignas(65536) struct gate_mr mrs[GATE_MRS];
	_Alignas(65536) uint8_t unused[GATE_AREA_BYTES - (5u << 20) -
				       (1u << 16) - sizeof(struct gate_stop)];
	struct gate_stop stop; /* the last bytes */
};
_Static_assert(sizeof(struct gate_mr) == 64 && sizeof(struct gate_qp) == 64,
	       "a cache line each");
_Static_assert(sizeof(struct gate_stop) == sizeof(struct iovec),
	       "the kernel reads it as an iovec");
_Static_assert(sizeof(struct gate_area) == GATE_AREA_BYTES &&
		       offsetof(struct gate_area, stop) ==
			       GATE_AREA_BYTES - sizeof(struct gate_stop),
	       "the stop word ends the area");

/* [futex(2)] on robust lists. */
#define GATE_OWNER_DIED 0x40000000u
#define GATE_OWNER_TID 0x3fffffffu

static inline bool gate_owner_lives(const struct gate_area *a)
{
	uint32_t w = atomic_load_explicit(&a->owner.word, memory_order_acquire);

	return (w & GATE_OWNER_TID) && !(w & GATE_OWNER_DIED);
}

static inline uint32_t gate_mr_place(uint32_t key, uint32_t probe)
{
	return ((key >> 8) + probe) % GATE_MRS;
}

static inline uint64_t gate_announce(uint32_t tag, uint32_t mr, uint32_t qp)
{
	return (uint64_t)tag << 32 | mr << 16 | qp;
}

/* ---- the owner's private part ---- */

enum gate_place { GATE_PLACE_FREE, GATE_PLACE_OPEN, GATE_PLACE_CLOSING };

/* An announcement that was not waited for. */
struct gate_overruled {
	const struct gate_area *area;
	uint32_t slot;
	uint64_t word;
};
#define GATE_OVERRULED_MAX 256

struct gate_table {
	struct gate_area *area;
	uint32_t tag;
	pthread_mutex_t lock; /* of all that follows */
	uint64_t serial;
	bool shut;
	uint8_t place[GATE_MRS]; /* enum gate_place */
	uint32_t key[GATE_MRS];

	uint32_t num_overruled;
	struct gate_overruled overruled[GATE_OVERRULED_MAX];
	_Atomic bool stopped; /* the stop word is set */
	struct gate_counters counters;
	int64_t expire_ns; /* how long a copier that is neither stopped nor
			      dead is waited for */
};

#endif
