/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "link/ring.h"

#include <string.h>

#define ROUND_UP(n) (((n) + RING_UNIT - 1) & ~(RING_UNIT - 1))

static void check_size(uint32_t size)
{
	ASSERT(size >= RING_BYTES_MIN && (size & (size - 1)) == 0);
}

/* ---- sending ---- */

void ring_tx_init(struct ring_tx *t, struct ring_shm *shm, uint32_t size,
		  const struct ring_back *back)
{
	check_size(size);
	*t = (struct ring_tx){ .shm = shm, .back = back, .size = size };
	/* The receiver began where its head says; that is where we begin. */
	t->next = t->tail = t->head =
		atomic_load_explicit(&shm->tail, memory_order_relaxed);
}

/* The receiver has read up to somewhere between what it said last and what was
 * published. */
static void look_at_head(struct ring_tx *t)
{
	uint64_t head =
		atomic_load_explicit(&t->back->head, memory_order_acquire);

	if (head - t->head > t->tail - t->head || head % RING_UNIT)
		t->broken = true;
	else
		t->head = head;
}

/* A record may need a pad before it that is just too short for it. */
static bool fits(const struct ring_tx *t)
{
	return t->size - (t->next - t->head) >= 2 * RING_REC_MAX;
}

bool ring_tx_room(struct ring_tx *t)
{
	if (!t->broken && !fits(t))
		look_at_head(t);
	return !t->broken && fits(t);
}

bool ring_tx_wait(struct ring_tx *t, uint32_t value)
{
	uint64_t head;

	atomic_store_explicit(&t->shm->waiting, value, memory_order_seq_cst);
	head = atomic_load_explicit(&t->back->head, memory_order_seq_cst);
	return head != t->head && ring_tx_room(t);
}

bool ring_tx_drained(struct ring_tx *t)
{
	look_at_head(t);
	return t->head == t->tail;
}

static struct ring_rec *rec_at(const struct ring_tx *t, uint64_t pos)
{
	return (struct ring_rec *)(void *)(t->shm->data +
					   (pos & (t->size - 1)));
}

struct ring_rec *ring_tx_reserve(struct ring_tx *t, uint32_t n)
{
	uint32_t bytes = ROUND_UP(RING_UNIT + n);
	uint32_t to_end = t->size - (uint32_t)(t->next & (t->size - 1));

	ASSERT(bytes <= RING_REC_MAX);
	if (bytes > to_end) {
		*rec_at(t, t->next) =
			(struct ring_rec){ .kind = RING_PAD, .bytes = to_end };
		t->next += to_end;
	}
	ASSERT(t->size - (t->next - t->head) >= bytes);
	return rec_at(t, t->next);
}

void ring_tx_commit(struct ring_tx *t, struct ring_rec *r, uint32_t n)
{
	r->bytes = ROUND_UP(RING_UNIT + n);
	t->next += r->bytes;
}

bool ring_tx_publish(struct ring_tx *t)
{
	if (t->tail == t->next)
		return false;
	t->tail = t->next;
	atomic_store_explicit(&t->shm->tail, t->tail, memory_order_seq_cst);
	return true;
}

/* ---- receiving ---- */

void ring_rx_init(struct ring_rx *r, const struct ring_shm *shm, uint32_t size,
		  struct ring_back *back)
{
	check_size(size);
	*r = (struct ring_rx){ .shm = shm, .back = back, .size = size };
	atomic_store_explicit(&back->no_refs, 0, memory_order_relaxed);
	atomic_store_explicit(&back->head, 0, memory_order_release);
}

bool ring_rx_ready(struct ring_rx *r)
{
	if (r->tail == r->next)
		r->tail = atomic_load_explicit(&r->shm->tail,
					       memory_order_acquire);
	return r->tail != r->next;
}

bool ring_rx_ready_seq_cst(struct ring_rx *r)
{
	r->tail = atomic_load_explicit(&r->shm->tail, memory_order_seq_cst);
	return r->tail != r->next;
}

/* Lengths within the record and within what a record may stand for. */
static bool frame_ok(const struct ring_rec *rec)
{
	uint32_t room = rec->bytes - RING_UNIT;
	uint32_t n = rec->pkt_bytes;

	if (n == 0 || n > room || rec->pkts == 0)
		return false;
	if (rec->kind == RING_FRAME)
		return rec->pkts == 1 && rec->payload_bytes == 0 &&
		       n <= PKT_MAX;
	if (n > PKT_HDR_MAX || rec->payload_bytes == 0 ||
	    rec->payload_bytes > RING_PAYLOAD_MAX)
		return false;
	if (rec->kind == RING_VALUE)
		return rec->payload_bytes <= room - n;
	/* References begin at a multiple of 16. */
	n = (n + 15) & ~15u;
	return rec->kind == RING_REFS && rec->nrefs > 0 &&
	       rec->nrefs <= RING_REFS_MAX && n <= room &&
	       rec->nrefs * sizeof(struct ring_ref) <= room - n;
}

/* The pieces are together as long as the payload, and none wraps around. */
static bool refs_ok(const struct ring_item *it)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < it->rec.nrefs; i++) {
		const struct ring_ref *f = &it->ref[i];

		if (f->len_bytes == 0 || f->len_bytes > RING_PAYLOAD_MAX ||
		    f->va + f->len_bytes < f->va)
			return false;
		sum += f->len_bytes;
	}
	return sum == it->rec.payload_bytes;
}

static bool take_body(struct ring_item *it, const uint8_t *body)
{
	uint32_t n = it->rec.pkt_bytes;

	if (!frame_ok(&it->rec))
		return false;
	it->pkt = body;
	it->payload = body + n;
	if (it->rec.kind != RING_REFS)
		return true;
	memcpy(it->ref, body + ((n + 15) & ~15u),
	       it->rec.nrefs * sizeof(struct ring_ref));
	return refs_ok(it);
}

enum ring_verdict ring_rx_next(struct ring_rx *r, struct ring_item *ret)
{
	while (ring_rx_ready(r)) {
		uint64_t filled = r->tail - r->next;
		uint32_t at = (uint32_t)(r->next & (r->size - 1));
		const uint8_t *p = r->shm->data + at;
		uint32_t bytes;

		if (filled > r->size || filled % RING_UNIT)
			return RING_BROKEN;
		memcpy(&ret->rec, p, sizeof(ret->rec));
		bytes = ret->rec.bytes;
		if (bytes < RING_UNIT || bytes % RING_UNIT || bytes > filled ||
		    bytes > r->size - at)
			return RING_BROKEN;
		r->next += bytes;
		if (ret->rec.kind == RING_PAD)
			continue;
		return take_body(ret, p + RING_UNIT) ? RING_OK : RING_BROKEN;
	}
	return RING_EMPTY;
}

bool ring_rx_release(struct ring_rx *r)
{
	uint32_t w;

	if (r->head == r->next)
		return false;
	r->head = r->next;
	atomic_store_explicit(&r->back->head, r->head, memory_order_seq_cst);
	w = atomic_load_explicit(&r->shm->waiting, memory_order_seq_cst);
	if (!(w & 1) || w == r->told)
		return false;
	r->told = w;
	return true;
}
