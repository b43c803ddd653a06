/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * faults.c - carries out what the plan decides.
 */
#include "rt/faults.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/dlist.h"
#include "wire/pkt.h"

#define POOL_SLOTS 2048
#define ECN_CE 3

struct slot {
	struct dlist node; /* of a queue, or of the free ones */
	int64_t due_ns;
	struct fault_tx tx;	/* of a frame to send */
	struct rx_frame rx;	/* of a received one; .pkt is bytes */
	uint8_t bytes[PKT_MAX]; /* BTH to pad */
};

struct faults {
	struct fault_plan plan;
	struct engine *engine; /* counts */
	struct dlist tx, rx;   /* by due_ns, equal ones in their order */
	struct dlist free;
	/* Slots from here on were never used: their pages do not exist. */
	unsigned fresh;
	unsigned used;
	int64_t rx_now_ns;
	struct fault_verdict rx_verdict; /* of the frame that the link is at */
	struct slot slot[POOL_SLOTS];
};

int faults_new(const char *text, uint64_t seed, int64_t now_ns,
	       struct engine *e, struct faults **ret,
	       struct fault_error *ret_err)
{
	struct faults *f = malloc(sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	err = fault_parse(&f->plan, text, ret_err);
	if (err) {
		free(f);
		return err;
	}
	fault_start(&f->plan, seed, now_ns);
	f->engine = e;
	dlist_init(&f->tx);
	dlist_init(&f->rx);
	dlist_init(&f->free);
	f->fresh = f->used = 0;
	*ret = f;
	return 0;
}

void faults_free(struct faults *f)
{
	free(f);
}

uint64_t faults_seed(const struct faults *f)
{
	return f->plan.seed;
}

/* ---- the pool ---- */

static struct slot *slot_of(struct dlist *n)
{
	return CONTAINER_OF(n, struct slot, node);
}

static struct slot *slot_get(struct faults *f)
{
	struct slot *s;

	if (!dlist_empty(&f->free)) {
		s = slot_of(f->free.next);
		dlist_remove(&s->node);
	} else if (f->fresh < POOL_SLOTS) {
		s = &f->slot[f->fresh++];
	} else {
		ENGINE_COUNT_IN(f->engine, fault_overrun);
		return NULL;
	}
	f->used++;
	return s;
}

static void slot_put(struct faults *f, struct slot *s)
{
	dlist_remove(&s->node);
	dlist_push_back(&f->free, &s->node);
	f->used--;
}

/* Mostly at the end: delays are much alike. */
static void queue_insert(struct dlist *q, struct slot *s, int64_t due_ns)
{
	struct dlist *at = q->prev;

	s->due_ns = due_ns;
	while (at != q && slot_of(at)->due_ns > due_ns)
		at = at->prev;
	dlist_push_back(at->next, &s->node);
}

static struct slot *queue_due(const struct dlist *q, int64_t now_ns)
{
	struct slot *s;

	if (dlist_empty(q))
		return NULL;
	s = slot_of(q->next);
	return s->due_ns <= now_ns ? s : NULL;
}

static void count(struct engine *e, uint32_t did)
{
#define COUNT(name, NAME)                                                      \
	if (did & 1u << FAULT_##NAME)                                          \
		ENGINE_COUNT_IN(e, fault_##name);
	FAULT_ACTIONS_X(COUNT)
#undef COUNT
}

/* ---- sending ---- */

static bool tx_keep(struct faults *f, const struct fault_tx *t,
		    const uint8_t *bytes, int64_t due_ns)
{
	struct slot *s = slot_get(f);

	if (!s)
		return false;
	s->tx = *t;
	memcpy(s->bytes, bytes, t->len_bytes);
	queue_insert(&f->tx, s, due_ns);
	return true;
}

bool faults_tx(struct faults *f, struct fault_tx *t, const uint8_t *room,
	       int64_t now_ns)
{
	struct fault_pkt pkt = { room, t->len_bytes, t->len_bytes + ICRC_BYTES,
				 t->flow.tos };
	struct fault_verdict v = fault_judge(&f->plan, FAULT_TX, &pkt, now_ns);
	struct fault_tx copy;
	bool goes_now;

	count(f->engine, v.did);
	if (v.drop)
		return false;
	if (v.mark_ce)
		t->flow.tos |= ECN_CE;
	copy = *t;
	t->flips = v.flips;
	memcpy(t->bit, v.bit, sizeof(t->bit));
	goes_now = v.delay_ns == 0 || !tx_keep(f, t, room, now_ns + v.delay_ns);
	if (v.copy)
		(void)tx_keep(f, &copy, room, now_ns + v.delay_ns + v.copy_ns);
	return goes_now;
}

bool faults_tx_due(const struct faults *f, int64_t now_ns)
{
	return queue_due(&f->tx, now_ns) != NULL;
}

bool faults_tx_next(struct faults *f, struct fault_tx *ret, uint8_t *room,
		    int64_t now_ns)
{
	struct slot *s = queue_due(&f->tx, now_ns);

	if (!s)
		return false;
	*ret = s->tx;
	memcpy(room, s->bytes, s->tx.len_bytes);
	slot_put(f, s);
	return true;
}

bool faults_tx_room(const struct faults *f)
{
	return f->used <= POOL_SLOTS / 2;
}

/* ---- receiving ---- */

void faults_rx_begin(struct faults *f, int64_t now_ns)
{
	f->rx_now_ns = now_ns;
}

void faults_spoil(void *ctx, const struct rocev2_flow *flow, uint8_t *pkt,
		  size_t len)
{
	struct faults *f = ctx;
	struct fault_pkt p = { pkt, (uint32_t)len, (uint32_t)len, flow->tos };
	struct fault_verdict *v = &f->rx_verdict;

	*v = fault_judge(&f->plan, FAULT_RX, &p, f->rx_now_ns);
	count(f->engine, v->did);
	for (unsigned i = 0; i < v->flips; i++)
		pkt[v->bit[i] / 8] ^= (uint8_t)(1u << v->bit[i] % 8);
}

/* False too for what is longer than any packet: the core refuses it. */
static bool rx_keep(struct faults *f, const struct rx_frame *frame,
		    int64_t due_ns)
{
	struct slot *s = frame->len_bytes <= PKT_MAX ? slot_get(f) : NULL;

	if (!s)
		return false;
	s->rx = *frame;
	s->rx.pkt = s->bytes;
	memcpy(s->bytes, frame->pkt, frame->len_bytes);
	queue_insert(&f->rx, s, due_ns);
	return true;
}

void faults_rx(struct faults *f, struct hca *hca, const struct rx_frame *frame,
	       int64_t now_ns)
{
	const struct fault_verdict *v = &f->rx_verdict;
	struct rx_frame marked = *frame;

	if (v->drop)
		return;
	if (v->mark_ce)
		marked.tos |= ECN_CE;
	if (v->delay_ns == 0 || !rx_keep(f, &marked, now_ns + v->delay_ns))
		hca_rx(hca, &marked, now_ns);
	if (!v->copy)
		return;
	if (v->delay_ns + v->copy_ns == 0)
		hca_rx(hca, &marked, now_ns);
	else
		(void)rx_keep(f, &marked, now_ns + v->delay_ns + v->copy_ns);
}

void faults_rx_run(struct faults *f, struct hca *hca, int64_t now_ns)
{
	struct slot *s;

	while ((s = queue_due(&f->rx, now_ns)) != NULL) {
		hca_rx(hca, &s->rx, now_ns);
		slot_put(f, s);
	}
}

int64_t faults_deadline(const struct faults *f)
{
	int64_t at = INT64_MAX;

	if (!dlist_empty(&f->tx))
		at = slot_of(f->tx.next)->due_ns;
	if (!dlist_empty(&f->rx) && slot_of(f->rx.next)->due_ns < at)
		at = slot_of(f->rx.next)->due_ns;
	return at;
}
