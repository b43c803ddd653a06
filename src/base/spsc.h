/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * spsc.h - the two indices of a single-producer single-consumer ring.
 *
 * head and tail run freely (mod 2^32) and are masked on use, so a ring of
 * 2^k slots holds 2^k entries; a smaller capacity is the owner's to enforce.
 * The side that writes an index publishes it with release; the other side
 * reads it with acquire. Several producers serialise with a lock of their own.
 */
#ifndef SOFTHCA_BASE_SPSC_H
#define SOFTHCA_BASE_SPSC_H

#include <stdatomic.h>
#include <stdint.h>

struct spsc {
	_Alignas(64) _Atomic uint32_t tail; /* next to fill: producer writes */
	_Alignas(64) _Atomic uint32_t head; /* next to drain: consumer writes */
};

static inline void spsc_init(struct spsc *r)
{
	atomic_init(&r->tail, 0);
	atomic_init(&r->head, 0);
}

/* Producer: entries in the ring, at most; acquire pairs with spsc_pop, so a
 * slot seen free is no longer read by the consumer. */
static inline uint32_t spsc_filled(struct spsc *r)
{
	return atomic_load_explicit(&r->tail, memory_order_relaxed) -
	       atomic_load_explicit(&r->head, memory_order_acquire);
}

static inline uint32_t spsc_tail(struct spsc *r)
{
	return atomic_load_explicit(&r->tail, memory_order_relaxed);
}

/* Producer: publish n filled slots. */
static inline void spsc_push(struct spsc *r, uint32_t n)
{
	atomic_store_explicit(
		&r->tail,
		atomic_load_explicit(&r->tail, memory_order_relaxed) + n,
		memory_order_release);
}

/* Consumer: entries ready, at least. */
static inline uint32_t spsc_ready(struct spsc *r)
{
	return atomic_load_explicit(&r->tail, memory_order_acquire) -
	       atomic_load_explicit(&r->head, memory_order_relaxed);
}

static inline uint32_t spsc_head(struct spsc *r)
{
	return atomic_load_explicit(&r->head, memory_order_relaxed);
}

/* Consumer: give back n drained slots. */
static inline void spsc_pop(struct spsc *r, uint32_t n)
{
	atomic_store_explicit(
		&r->head,
		atomic_load_explicit(&r->head, memory_order_relaxed) + n,
		memory_order_release);
}

#endif
