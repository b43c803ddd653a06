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
	struct prng rng = world_rng(w, label);

	*c = (struct cable){ .world = w, .cfg = *cfg };
	if (cfg->faults)
		fault_start(cfg->faults, prng_u64(&rng), w->now_ns);
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

/* The ECN field is the low two bits of the second byte (IPv4) or bits 5 and 4
 * of it (IPv6). The IPv4 checksum is not kept right: nobody looks at it. */
static void mark_ce(uint8_t *frame)
{
	frame[1] |= frame[0] >> 4 == 4 ? 0x03 : 0x30;
}

static struct fault_verdict judge(struct cable *c, unsigned from,
				  const uint8_t *frame, uint32_t len_bytes,
				  size_t *ret_off)
{
	struct fault_verdict v = { 0 };
	struct rocev2_flow flow;
	struct fault_pkt pkt;
	size_t sealed, off;

	off = rocev2_decode_headers(&flow, frame, len_bytes, &sealed);
	if (!c->cfg.faults || !off || sealed < BTH_BYTES + ICRC_BYTES)
		return v;
	pkt = (struct fault_pkt){ frame + off, (uint32_t)sealed,
				  (uint32_t)sealed, flow.tos };
	v = fault_judge(c->cfg.faults, from ? FAULT_RX : FAULT_TX, &pkt,
			c->world->now_ns);
	for (int a = 0; a < FAULT_ACTIONS; a++)
		c->stats.hit[a] += v.did >> a & 1;
	*ret_off = off;
	return v;
}

/* The frame and what befalls it; a copy is intact. */
static void deliver(struct cable *c, unsigned from, const uint8_t *frame,
		    uint32_t len_bytes, int64_t at_ns)
{
	struct cable_frame *f = c->free;
	size_t off = 0;
	struct fault_verdict v = judge(c, from, frame, len_bytes, &off);

	if (v.drop)
		return;
	put(c, !from, frame, len_bytes, at_ns + v.delay_ns);
	if (v.copy)
		put(c, !from, frame, len_bytes, at_ns + v.delay_ns + v.copy_ns);
	if (v.mark_ce)
		mark_ce(f->bytes);
	for (unsigned i = 0; i < v.flips; i++)
		f->bytes[off + v.bit[i] / 8] ^= (uint8_t)(1u << v.bit[i] % 8);
}

void cable_send(struct cable *c, unsigned from, const uint8_t *frame,
		uint32_t len_bytes)
{
	struct cable_port *p = &c->port[from];
	int64_t now = c->world->now_ns;

	ASSERT(len_bytes <= CABLE_FRAME_MAX && c->free);
	c->stats.sent++;
	if (c->tap_sent)
		c->tap_sent(c->tap_ctx, from, frame, len_bytes, now);
	if (p->busy_until_ns < now)
		p->busy_until_ns = now;
	p->busy_until_ns += wire_ns(c, len_bytes);
	deliver(c, from, frame, len_bytes,
		p->busy_until_ns + c->cfg.latency_ns);
}
