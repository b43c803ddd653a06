/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rt/rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rt/config.h"
#include "rt/rtdev.h"
#include "rt/umem.h"

#define GIVE_UP_NS 500000000
#define LOCALS_MAX 64
#define VALUE_MAX 8192	    /* bytes: up to here two copies are cheaper */
#define PUBLISH_EVERY 16    /* frames */
#define REFUSALS_MAX 4	    /* in a row, then no more references */
#define REF_COST_BYTES 8192 /* a frame of so many bytes counts once */
#define TAIL_BYTES 64

struct ring_out {	       /* to a peer */
	struct shm_peer *peer; /* NULL: none */
	struct ring_tx tx;
	unsigned unpublished; /* frames */
	uint32_t signalled;   /* value of `asleep` that was answered last */
	uint32_t wait;	      /* our `waiting` */
	bool blocked, given_up, said_broken;
	uint64_t stuck_head; /* where it stood ... */
	int64_t stuck_ns;    /* ... since then */
};

struct ring_in { /* from a peer */
	struct shm_peer *peer;
	struct ring_rx rx;
	bool broken;
	unsigned refusals; /* in a row */
};

struct away { /* what hca_rx is told of a payload */
	struct ring_in *in;
	struct ring_item item;
};

struct rings {
	struct shm_page *page;
	bool send; /* --link ring */
	struct ring_out out[SHM_SLOTS];
	struct ring_in in[SHM_SLOTS];
	uint8_t ins[SHM_SLOTS], num_ins, turn; /* slots in use */
	unsigned blocked;
	uint32_t asleep;
	struct gid local[LOCALS_MAX];
	unsigned num_local;
	uint8_t wanted[SHM_SLOTS]; /* 1: to be asked, 2: was asked */
	_Atomic bool want_any;
	struct away away;
	uint8_t pkt[PKT_MAX];
};

/* ---- life, peers ---- */

void rings_new(struct rtdev *d, struct shm_page *page)
{
	struct rings *r = calloc(1, sizeof(*r));

	if (!r)
		return;
	r->page = page;
	r->send = rt_config()->link == LINK_RING;
	d->rings = r;
}

void rings_free(struct rtdev *d)
{
	free(d->rings);
	d->rings = NULL;
}

static void install_in(struct rings *r, struct shm_peer *p)
{
	struct ring_in *in = &r->in[p->slot];

	*in = (struct ring_in){ .peer = p };
	ring_rx_init(&in->rx, p->ring, p->ring_size, &r->page->back[p->slot]);
	r->ins[r->num_ins++] = (uint8_t)p->slot;
}

static void install_out(struct rings *r, struct shm_peer *p)
{
	struct ring_out *o = &r->out[p->slot];

	*o = (struct ring_out){ .peer = p };
	ring_tx_init(&o->tx, p->ring, p->ring_size,
		     &p->page->back[r->page->slot]);
}

void rings_install(struct rtdev *d, struct shm_peer *p)
{
	struct rings *r = d->rings;

	if (!r)
		return;
	engine_lock(d);
	if (p->out)
		install_out(r, p);
	else
		install_in(r, p);
	engine_unlock(d);
	if (p->out && !p->reach)
		rt_say(true,
		       "%s: process %d on this host cannot be proven: ring "
		       "copies",
		       d->id.name, (int)p->pid);
}

static unsigned take(struct rtdev *d, struct ring_in *in, unsigned max,
		     int64_t now_ns);

/* What it sent before it went still counts. */
static void remove_in(struct rtdev *d, struct ring_in *in)
{
	struct rings *r = d->rings;

	while (take(d, in, UINT32_MAX, rt_now_ns()))
		;
	for (unsigned i = 0; i < r->num_ins; i++)
		if (&r->in[r->ins[i]] == in)
			r->ins[i] = r->ins[--r->num_ins];
	in->peer = NULL;
}

static void remove_out(struct rtdev *d, struct ring_out *o)
{
	struct rings *r = d->rings;
	unsigned slot = (unsigned)(o - r->out);

	r->blocked -= o->blocked;
	*o = (struct ring_out){ .peer = NULL };
	r->wanted[slot] = 0;
	hca_out_gone(d->hca, slot + 1);
}

void rings_remove(struct rtdev *d, struct shm_peer *p)
{
	struct rings *r = d->rings;

	if (!r)
		return;
	engine_lock(d);
	if (p->out && r->out[p->slot].peer == p)
		remove_out(d, &r->out[p->slot]);
	if (!p->out && r->in[p->slot].peer == p)
		remove_in(d, &r->in[p->slot]);
	engine_unlock(d);
}

/* ---- the way out ---- */

static bool is_local(const struct rings *r, const struct gid *g)
{
	for (unsigned i = 0; i < r->num_local; i++)
		if (gid_eq(&r->local[i], g))
			return true;
	return false;
}

void rings_local(struct rtdev *d, const struct gid *g)
{
	struct rings *r = d->rings;

	if (!r)
		return;
	engine_lock(d);
	if (!is_local(r, g) && r->num_local < LOCALS_MAX)
		r->local[r->num_local++] = *g;
	engine_unlock(d);
}

int rings_wanted(struct rtdev *d)
{
	struct rings *r = d->rings;
	int found = -1;

	if (!r || !atomic_load_explicit(&r->want_any, memory_order_relaxed))
		return -1;
	engine_lock(d);
	for (int i = 0; i < SHM_SLOTS && found < 0; i++) {
		if (r->wanted[i] != 1)
			continue;
		r->wanted[i] = 2;
		found = i;
	}
	if (found < 0)
		atomic_store_explicit(&r->want_any, false,
				      memory_order_relaxed);
	engine_unlock(d);
	return found;
}

void rings_path_out(void *ctx, struct path *p, uint32_t dest_qpn)
{
	struct rtdev *d = ctx;
	struct rings *r = d->rings;
	uint32_t slot = dest_qpn >> UDP_GROUP_QPN_BITS;

	p->out = 0;
	p->frame_bytes = 0;
	/* QP 1 is whoever's listener it is for. */
	if (!r || !r->send || slot >= SHM_SLOTS || dest_qpn <= 1 ||
	    !is_local(r, &p->dgid))
		return;
	if (r->out[slot].peer) {
		p->out = (uint16_t)(slot + 1);
		p->frame_bytes = RING_PAYLOAD_MAX;
	} else if (!r->wanted[slot]) {
		r->wanted[slot] = 1;
		atomic_store_explicit(&r->want_any, true, memory_order_relaxed);
		nic_kick(d);
	}
}

/* ---- sending ---- */

/* The one who reads may be asleep; each sleep is answered once. */
static void wake_reader(struct rtdev *d, struct ring_out *o)
{
	uint32_t s = atomic_load_explicit(&o->peer->page->asleep,
					  memory_order_seq_cst);

	if (!(s & 1) || s == o->signalled)
		return;
	o->signalled = s;
	ENGINE_COUNT(&d->engine, ring_wakes);
	shm_peer_wake(o->peer);
}

static void publish(struct rtdev *d, struct ring_out *o)
{
	o->unpublished = 0;
	if (ring_tx_publish(&o->tx))
		wake_reader(d, o);
}

static void set_waiting(struct ring_out *o, bool on)
{
	o->wait += on ? (o->wait & 1 ? 2 : 1) : o->wait & 1;
}

static void unblock(struct rtdev *d, struct ring_out *o)
{
	struct rings *r = d->rings;

	set_waiting(o, false);
	(void)ring_tx_wait(&o->tx, o->wait);
	o->blocked = false;
	r->blocked--;
	hca_out_unblock(d->hca, (unsigned)(o - r->out) + 1);
}

/* There is no room for another record. */
static void block(struct rtdev *d, struct ring_out *o, int64_t now_ns)
{
	struct rings *r = d->rings;

	ENGINE_COUNT(&d->engine, ring_blocked);
	o->blocked = true;
	r->blocked++;
	o->stuck_head = o->tx.head;
	o->stuck_ns = now_ns;
	hca_out_block(d->hca, (unsigned)(o - r->out) + 1);
	set_waiting(o, true);
	if (ring_tx_wait(&o->tx, o->wait))
		unblock(d, o);
}

/* Blocked: is there room? A reader that does not read, or lies, is silence. */
static void look_again(struct rtdev *d, struct ring_out *o, int64_t now_ns)
{
	if (ring_tx_room(&o->tx)) {
		unblock(d, o);
	} else if (o->tx.broken || (o->tx.head == o->stuck_head &&
				    now_ns - o->stuck_ns >= GIVE_UP_NS)) {
		o->given_up = true;
		unblock(d, o);
	} else if (o->tx.head != o->stuck_head) {
		o->stuck_head = o->tx.head;
		o->stuck_ns = now_ns;
		set_waiting(o, true);
		if (ring_tx_wait(&o->tx, o->wait))
			unblock(d, o);
	}
}

bool rings_unblock(struct rtdev *d, int64_t now_ns)
{
	struct rings *r = d->rings;

	if (!r || !r->blocked)
		return false;
	for (unsigned i = 0; i < SHM_SLOTS; i++)
		if (r->out[i].blocked)
			look_again(d, &r->out[i], now_ns);
	return r->blocked != 0;
}

int64_t rings_deadline(const struct rtdev *d)
{
	const struct rings *r = d->rings;
	int64_t at = INT64_MAX;

	if (!r || !r->blocked)
		return at;
	for (unsigned i = 0; i < SHM_SLOTS; i++)
		if (r->out[i].blocked && r->out[i].stuck_ns + GIVE_UP_NS < at)
			at = r->out[i].stuck_ns + GIVE_UP_NS;
	return at;
}

static void fill_head(const struct rings *r, struct ring_rec *rec,
		      const struct tx_frame *f)
{
	const struct path *p = f->path;
	uint32_t at = f->qpn & (SHM_EPOCHS - 1);

	*rec = (struct ring_rec){
		.kind = RING_FRAME,
		.pkts = (uint16_t)(f->pkts ? f->pkts : 1),
		.pkt_bytes = (uint16_t)f->len_bytes,
		.payload_bytes = f->payload_bytes,
		.epoch = atomic_load_explicit(&r->page->epoch[at],
					      memory_order_relaxed),
		.epoch_at = (uint16_t)at,
		.sport = p->sport,
		.flow_label = p->flow_label,
		.tos = f->tos,
		.ttl = p->hop_limit,
		.src = p->sgid,
		.dst = p->dgid,
	};
}

static bool by_reference(const struct ring_out *o, const struct tx_frame *f)
{
	return f->payload_bytes > VALUE_MAX && o->peer->reach &&
	       !atomic_load_explicit(&o->tx.back->no_refs,
				     memory_order_relaxed);
}

/* The payload behind the headers: bytes after the head, 0: it faulted. */
static uint32_t put_refs(struct ring_rec *rec, uint8_t *body,
			 const struct tx_frame *f)
{
	uint32_t n = (f->len_bytes + 15) & ~15u;
	struct ring_ref *to = (struct ring_ref *)(void *)(body + n);

	rec->kind = RING_REFS;
	rec->nrefs = (uint16_t)f->nrefs;
	for (uint32_t i = 0; i < f->nrefs; i++)
		to[i] = (struct ring_ref){ f->ref[i].va, f->ref[i].len_bytes };
	return n + f->nrefs * (uint32_t)sizeof(*to);
}

static uint32_t put_value(struct ring_rec *rec, uint8_t *body,
			  const struct tx_frame *f)
{
	uint8_t *to = body + f->len_bytes;

	rec->kind = RING_VALUE;
	for (uint32_t i = 0; i < f->nrefs; i++) {
		if (umem_read(to, f->ref[i].va, f->ref[i].len_bytes))
			return 0;
		to += f->ref[i].len_bytes;
	}
	return f->len_bytes + f->payload_bytes;
}

/* False: memory that it refers to cannot be read. */
static bool put(struct rtdev *d, struct ring_out *o, const struct tx_frame *f)
{
	bool refs = f->nrefs && by_reference(o, f);
	uint32_t most = f->len_bytes;
	struct ring_rec *rec;
	uint8_t *body;

	if (refs)
		most += 16 + f->nrefs * (uint32_t)sizeof(struct ring_ref);
	else
		most += f->payload_bytes;
	rec = ring_tx_reserve(&o->tx, most);
	body = (uint8_t *)rec + RING_UNIT;
	fill_head(d->rings, rec, f);
	memcpy(body, f->pkt, f->len_bytes);
	if (f->nrefs)
		most = refs ? put_refs(rec, body, f) : put_value(rec, body, f);
	if (!most)
		return false;
	ring_tx_commit(&o->tx, rec, most);
	if (refs)
		ENGINE_COUNT(&d->engine, ring_tx_refs);
	return true;
}

/* Whether frames to it are lost. */
static bool is_silent(struct rtdev *d, struct ring_out *o)
{
	if (!o->peer)
		return true;
	if (o->tx.broken && !o->said_broken) {
		o->said_broken = true;
		ENGINE_COUNT(&d->engine, ring_tx_broken);
	}
	if (o->given_up && ring_tx_room(&o->tx))
		o->given_up = false;
	return o->given_up;
}

void rings_tx(struct rtdev *d, const struct tx_frame *f, int64_t now_ns)
{
	struct ring_out *o = &d->rings->out[f->path->out - 1];

	if (UNLIKELY(is_silent(d, o))) {
		ENGINE_COUNT(&d->engine, ring_given_up);
		hca_tx_done(d->hca, f);
		return;
	}
	if (UNLIKELY(!put(d, o, f))) {
		hca_tx_refused(d->hca, f);
		return;
	}
	ENGINE_COUNT(&d->engine, ring_tx_frames);
	if (f->payload_bytes || ++o->unpublished >= PUBLISH_EVERY)
		publish(d, o);
	if (UNLIKELY(!ring_tx_room(&o->tx))) {
		publish(d, o);
		block(d, o, now_ns);
	}
	hca_tx_done(d->hca, f);
}

void rings_flush(struct rtdev *d)
{
	struct rings *r = d->rings;

	if (!r)
		return;
	for (unsigned i = 0; i < SHM_SLOTS; i++)
		if (r->out[i].unpublished)
			publish(d, &r->out[i]);
}

void rings_void(void *ctx, uint32_t qpn)
{
	struct rtdev *d = ctx;

	if (d->rings)
		atomic_fetch_add_explicit(
			&d->rings->page->epoch[qpn & (SHM_EPOCHS - 1)], 1,
			memory_order_seq_cst);
}

/* ---- receiving ---- */

/* The sender's pieces that bytes off .. off + len lie in. */
static unsigned pieces(const struct ring_item *it, uint32_t off, size_t len,
		       struct iovec *v)
{
	unsigned n = 0;

	for (unsigned i = 0; i < it->rec.nrefs && len; i++) {
		uint64_t have = it->ref[i].len_bytes;
		size_t k;

		if (off >= have) {
			off -= (uint32_t)have;
			continue;
		}
		k = have - off < len ? have - off : len;
		v[n++] = (struct iovec){
			(void *)(uintptr_t)(it->ref[i].va + off), k
		};
		len -= k;
		off = 0;
	}
	return n;
}

static bool still_good(const struct away *a)
{
	uint32_t at = a->item.rec.epoch_at & (SHM_EPOCHS - 1);

	return atomic_load_explicit(&a->in->peer->page->epoch[at],
				    memory_order_seq_cst) == a->item.rec.epoch;
}

static int fetch_refs(struct rtdev *d, const struct away *a, uint64_t va,
		      uint32_t off, size_t len)
{
	size_t tail = len < TAIL_BYTES ? len : TAIL_BYTES;
	char *to = (char *)(uintptr_t)va;
	struct iovec dst[2] = { { to, len - tail }, { to + len - tail, tail } };
	struct iovec src[RING_REFS_MAX];
	unsigned n = pieces(&a->item, off, len, src);

	if (shm_peer_readv(a->in->peer, dst, 2, src, n, len) == 0 &&
	    still_good(a)) {
		a->in->refusals = 0;
		return 0;
	}
	ENGINE_COUNT(&d->engine, ring_refs_failed);
	if (++a->in->refusals == REFUSALS_MAX)
		atomic_store_explicit(&a->in->rx.back->no_refs, 1,
				      memory_order_relaxed);
	return -EAGAIN;
}

int rings_fetch(void *ctx, uint64_t va, const void *away, uint32_t off,
		size_t len)
{
	const struct away *a = away;

	ASSERT(off + len <= a->item.rec.payload_bytes);
	if (a->item.rec.kind == RING_VALUE)
		return umem_write(va, a->item.payload + off, len);
	return fetch_refs(ctx, a, va, off, len);
}

static void deliver(struct rtdev *d, const struct away *a, int64_t now_ns)
{
	const struct ring_rec *rec = &a->item.rec;
	struct rx_frame f = {
		.pkt = d->rings->pkt,
		.len_bytes = rec->pkt_bytes,
		.src = rec->src,
		.dst = rec->dst,
		.tos = rec->tos,
		.ttl = rec->ttl,
		.flow_label = rec->flow_label,
		.sport = rec->sport,
	};

	if (rec->flags & RING_SPOILT) {
		ENGINE_COUNT(&d->engine, ring_rx_spoilt);
		return;
	}
	memcpy(d->rings->pkt, a->item.pkt, rec->pkt_bytes);
	if (rec->kind != RING_FRAME) {
		f.away = a;
		f.pkts = rec->pkts;
		f.payload_bytes = rec->payload_bytes;
	}
	hca_rx(d->hca, &f, now_ns);
}

static void cut_off(struct rtdev *d, struct ring_in *in)
{
	in->broken = true;
	ENGINE_COUNT(&d->engine, ring_rx_broken);
}

static unsigned take(struct rtdev *d, struct ring_in *in, unsigned max,
		     int64_t now_ns)
{
	struct away *a = &d->rings->away;
	enum ring_verdict v = RING_EMPTY;
	unsigned n = 0;

	if (in->broken)
		return 0;
	a->in = in;
	while (n < max && (v = ring_rx_next(&in->rx, &a->item)) == RING_OK) {
		deliver(d, a, now_ns);
		ENGINE_COUNT(&d->engine, ring_rx_frames);
		n += 1 + a->item.rec.payload_bytes / REF_COST_BYTES;
	}
	if (v == RING_BROKEN)
		cut_off(d, in);
	else if (ring_rx_release(&in->rx))
		shm_peer_wake(in->peer);
	return n;
}

unsigned rings_rx(struct rtdev *d, unsigned max, int64_t now_ns)
{
	struct rings *r = d->rings;
	unsigned n = 0;

	if (!r)
		return 0;
	for (unsigned i = 0; i < r->num_ins && n < max; i++) {
		struct ring_in *in = &r->in[r->ins[r->turn++ % r->num_ins]];

		if (ring_rx_ready(&in->rx))
			n += take(d, in, max - n, now_ns);
	}
	return n;
}

bool rings_active(const struct rtdev *d)
{
	return d->rings && d->rings->num_ins;
}

/* ---- sleeping ---- */

bool rings_sleep(struct rtdev *d)
{
	struct rings *r = d->rings;

	if (!r)
		return false;
	r->asleep += r->asleep & 1 ? 2 : 1;
	atomic_store_explicit(&r->page->asleep, r->asleep,
			      memory_order_seq_cst);
	for (unsigned i = 0; i < r->num_ins; i++) {
		struct ring_in *in = &r->in[r->ins[i]];

		if (!in->broken && ring_rx_ready_seq_cst(&in->rx))
			return true;
	}
	return false;
}

void rings_awake(struct rtdev *d)
{
	struct rings *r = d->rings;

	if (!r || !(r->asleep & 1))
		return;
	atomic_store_explicit(&r->page->asleep, ++r->asleep,
			      memory_order_relaxed);
}
