/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cable.c - frames between two ends in virtual time, and what can befall them.
 */
#include "sim/cable.h"

#include <errno.h>
#include <string.h>

#include "wire/rocev2.h"

struct cable_frame {
	struct world_event ev;
	struct cable *cable;
	struct cable_frame *next; /* free list */
	unsigned to;
	uint32_t len_bytes;
	uint8_t bytes[CABLE_FRAME_MAX];
};

static void frame_arrive(struct world_event *e, int64_t now_ns);

int cable_init(struct cable *c, struct world *w, const struct cable_config *cfg,
	       const char *label)
{
	*c = (struct cable){ .world = w, .cfg = *cfg };
	c->rng = world_rng(w, label);
	c->frames =
		w->mem->alloc(w->mem->ctx, cfg->frames * sizeof(c->frames[0]),
			      _Alignof(struct cable_frame));
	if (!c->frames)
		return -ENOMEM;
	for (uint32_t i = 0; i < cfg->frames; i++) {
		struct cable_frame *f = &c->frames[i];

		world_event_init(&f->ev, frame_arrive);
		f->cable = c;
		f->next = c->free;
		c->free = f;
	}
	return 0;
}

void cable_fini(struct cable *c)
{
	for (uint32_t i = 0; i < c->cfg.frames; i++)
		world_cancel(c->world, &c->frames[i].ev);
	c->world->mem->free(c->world->mem->ctx, c->frames);
	c->frames = c->free = NULL;
}

void cable_rule_add(struct cable *c, const struct cable_rule *rule)
{
	ASSERT(c->num_rules < CABLE_RULES && rule->nth > 0);
	c->rules[c->num_rules++] = *rule;
}

static void frame_arrive(struct world_event *e, int64_t now_ns)
{
	struct cable_frame *f = CONTAINER_OF(e, struct cable_frame, ev);
	struct cable *c = f->cable;
	struct cable_port *p = &c->port[f->to];

	c->stats.delivered++;
	if (c->tap_delivered)
		c->tap_delivered(c->tap_ctx, !f->to, f->bytes, f->len_bytes,
				 now_ns);
	p->rx(p->ctx, f->bytes, f->len_bytes, now_ns);
	f->next = c->free;
	c->free = f;
	c->in_flight--;
}

static int64_t wire_ns(const struct cable *c, uint32_t len_bytes)
{
	return c->cfg.ns_per_kib * len_bytes / 1024;
}

bool cable_room(const struct cable *c, unsigned from, int64_t *ret_when)
{
	int64_t now = c->world->now_ns;
	int64_t ahead = c->port[from].busy_until_ns - now;
	int64_t most = (int64_t)c->cfg.backlog * c->cfg.ns_per_kib;

	/* A duplicate needs a second frame. */
	if (c->in_flight + 2 > c->cfg.frames) {
		*ret_when = now + c->cfg.latency_ns + 1;
		return false;
	}
	if (ahead <= most)
		return true;
	*ret_when = now + ahead - most;
	return false;
}

static void put(struct cable *c, unsigned to, const uint8_t *bytes,
		uint32_t len_bytes, int64_t at_ns)
{
	struct cable_frame *f = c->free;

	if (!f) /* of a duplicate only, see cable_room */
		return;
	c->free = f->next;
	c->in_flight++;
	f->to = to;
	f->len_bytes = len_bytes;
	memcpy(f->bytes, bytes, len_bytes);
	world_at(c->world, &f->ev, at_ns);
}

/* Up to three bits: CRC-32 finds them all at these lengths. */
static void corrupt(struct cable *c, uint8_t *p, uint32_t *len_bytes)
{
	uint32_t flips = 1 + (uint32_t)prng_below(&c->rng, 3);

	c->stats.corrupted++;
	if (prng_chance(&c->rng, 100000)) {
		*len_bytes = (uint32_t)prng_below(&c->rng, *len_bytes);
		return;
	}
	for (uint32_t i = 0; i < flips; i++) {
		uint64_t bit = prng_below(&c->rng, *len_bytes * 8u);

		p[bit / 8] ^= (uint8_t)(1u << (bit % 8));
	}
}

struct fate {
	bool drop, dup, corrupt;
	int64_t late_ns, dup_late_ns;
};

static int64_t some_delay(struct cable *c)
{
	if (c->cfg.faults.reorder_ns <= 0)
		return 0;
	return (int64_t)prng_below(&c->rng, (uint64_t)c->cfg.faults.reorder_ns);
}

static void fate_by_rate(struct cable *c, struct fate *f)
{
	const struct cable_faults *x = &c->cfg.faults;

	if (prng_chance(&c->rng, x->drop_ppm))
		f->drop = true;
	if (prng_chance(&c->rng, x->dup_ppm)) {
		f->dup = true;
		f->dup_late_ns = some_delay(c);
	}
	if (prng_chance(&c->rng, x->reorder_ppm)) {
		f->late_ns = some_delay(c);
		c->stats.reordered++;
	}
	if (prng_chance(&c->rng, x->corrupt_ppm))
		f->corrupt = true;
}

static int frame_opcode(const uint8_t *frame, uint32_t len_bytes)
{
	struct rocev2_flow flow;
	size_t sealed, off;

	off = rocev2_decode_headers(&flow, frame, len_bytes, &sealed);
	return off && sealed > BTH_BYTES ? frame[off] : -1;
}

static void fate_by_rule(struct cable *c, unsigned from, int opcode,
			 struct fate *f)
{
	for (uint32_t i = 0; i < c->num_rules; i++) {
		struct cable_rule *r = &c->rules[i];

		if (r->from != from || (r->opcode >= 0 && r->opcode != opcode))
			continue;
		r->seen++;
		if (r->seen < r->nth || r->seen - r->nth >= r->count)
			continue;
		c->stats.rule_hits++;
		if (r->action == CABLE_DROP)
			f->drop = true;
		if (r->action == CABLE_DUP) {
			f->dup = true;
			f->dup_late_ns = r->delay_ns;
		}
		if (r->action == CABLE_DELAY)
			f->late_ns = r->delay_ns;
		if (r->action == CABLE_CORRUPT)
			f->corrupt = true;
	}
}

static void deliver(struct cable *c, unsigned to, const uint8_t *frame,
		    uint32_t len_bytes, int64_t at_ns, bool broken)
{
	struct cable_frame *f = c->free;

	put(c, to, frame, len_bytes, at_ns);
	if (broken)
		corrupt(c, f->bytes, &f->len_bytes);
}

void cable_send(struct cable *c, unsigned from, const uint8_t *frame,
		uint32_t len_bytes)
{
	struct cable_port *p = &c->port[from];
	int64_t now = c->world->now_ns;
	struct fate f = { 0 };
	int64_t at;

	ASSERT(len_bytes <= CABLE_FRAME_MAX && c->free);
	c->stats.sent++;
	if (c->tap_sent)
		c->tap_sent(c->tap_ctx, from, frame, len_bytes, now);
	if (p->busy_until_ns < now)
		p->busy_until_ns = now;
	p->busy_until_ns += wire_ns(c, len_bytes);
	at = p->busy_until_ns + c->cfg.latency_ns;

	fate_by_rate(c, &f);
	if (c->num_rules)
		fate_by_rule(c, from, frame_opcode(frame, len_bytes), &f);
	if (!f.drop)
		deliver(c, !from, frame, len_bytes, at + f.late_ns, f.corrupt);
	else
		c->stats.dropped++;
	if (f.dup && !f.drop) {
		c->stats.duplicated++;
		put(c, !from, frame, len_bytes, at + f.dup_late_ns);
	}
}
