/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fab.c - ports, cables and the pool of frames. */
#include "sim/fab.h"

#include <errno.h>
#include <string.h>

#define NS_PER_S UINT64_C(1000000000)

static void arrive(struct world_event *e, int64_t now_ns);
static void port_done(struct world_event *e, int64_t now_ns);

int fab_init(struct fab *fab, struct world *w, const struct fab_config *cfg)
{
	*fab = (struct fab){ .world = w, .cfg = *cfg };
	fab->frames =
		w->mem->alloc(w->mem->ctx, cfg->frames * sizeof(fab->frames[0]),
			      _Alignof(struct fab_frame));
	if (!fab->frames)
		return -ENOMEM;
	for (uint32_t i = cfg->frames; i-- > 0;) {
		world_event_init(&fab->frames[i].ev, arrive);
		fab->frames[i].next = fab->free;
		fab->free = &fab->frames[i];
	}
	return 0;
}

void fab_fini(struct fab *fab)
{
	for (uint32_t i = 0; i < fab->cfg.frames; i++)
		world_cancel(fab->world, &fab->frames[i].ev);
	fab->world->mem->free(fab->world->mem->ctx, fab->frames);
}

int fab_node_init(struct fab_node *n, struct fab *fab,
		  const struct fab_node_ops *ops, uint32_t ports)
{
	const struct sim_alloc *mem = fab->world->mem;

	*n = (struct fab_node){ .fab = fab, .ops = ops, .ports = ports };
	n->port = mem->alloc(mem->ctx, ports * sizeof(n->port[0]),
			     _Alignof(struct fab_port));
	if (!n->port)
		return -ENOMEM;
	for (uint32_t i = 0; i < ports; i++) {
		n->port[i] = (struct fab_port){ .node = n, .index = i };
		world_event_init(&n->port[i].done, port_done);
	}
	return 0;
}

void fab_node_fini(struct fab_node *n)
{
	for (uint32_t i = 0; i < n->ports; i++)
		world_cancel(n->fab->world, &n->port[i].done);
	n->fab->world->mem->free(n->fab->world->mem->ctx, n->port);
}

void fab_connect(struct fab_port *a, struct fab_port *b,
		 const struct fab_cable *c)
{
	ASSERT(!a->peer && !b->peer && c->rate_bps > 0 && c->delay_ns >= 0);
	a->peer = b;
	b->peer = a;
	a->rate_bps = b->rate_bps = c->rate_bps;
	a->delay_ns = b->delay_ns = c->delay_ns;
}

struct fab_frame *fab_take(struct fab *fab)
{
	struct fab_frame *f = fab->free;
	int64_t now = fab->world->now_ns;

	if (!f) {
		fab->stats.starved++;
		return NULL;
	}
	fab->free = f->next;
	f->sw = (struct netswitch_frame){ 0 };
	f->next = NULL;
	f->pause = f->spoilt = false;
	f->born_ns = f->since_ns = now;
	memset(f->part_ns, 0, sizeof(f->part_ns));
	return f;
}

void fab_give(struct fab *fab, struct fab_frame *f)
{
	f->next = fab->free;
	fab->free = f;
}

uint32_t fab_wire_bytes(const struct fab *fab, const struct gid *dst,
			uint32_t n, uint32_t m)
{
	if (fab->cfg.zero_headers)
		return m;
	return FAB_L2_BYTES + (gid_is_v4(dst) ? IPV4_BYTES : IPV6_BYTES) +
	       UDP_BYTES + n + ICRC_BYTES;
}

int64_t fab_send_ns(struct fab_port *p, uint32_t bytes)
{
	uint64_t bits = bytes * UINT64_C(8) * NS_PER_S + p->carry;

	p->carry = bits % p->rate_bps;
	return (int64_t)(bits / p->rate_bps);
}

static struct fab_frame *pause_frame(struct fab_port *p)
{
	struct fab_frame *f = fab_take(p->node->fab);

	if (!f)
		return NULL; /* renewed later */
	f->pause = true;
	f->sw.bytes = p->node->fab->cfg.zero_headers ? 0 : FAB_PAUSE_BYTES;
	f->pause_mask = p->pause_mask ? p->pause_mask : p->go_mask;
	f->pause_ns = p->pause_mask ? p->pause_ns : 0;
	if (p->pause_mask)
		p->pause_mask = 0;
	else
		p->go_mask = 0;
	p->stats.pauses++;
	return f;
}

static void start(struct fab_port *p, struct fab_frame *f, int64_t now_ns)
{
	int64_t ns = fab_send_ns(p, f->sw.bytes);

	fab_part_ends(f, FAB_QUEUEING, now_ns);
	p->out = f;
	p->stats.frames++;
	p->stats.bytes += f->sw.bytes;
	p->stats.busy_ns += ns;
	world_at(p->node->fab->world, &p->done, now_ns + ns);
}

void fab_kick(struct fab_port *p)
{
	int64_t now = p->node->fab->world->now_ns;
	struct fab_frame *f = NULL;

	if (p->out || !p->peer)
		return;
	if (p->pause_mask || p->go_mask)
		f = pause_frame(p);
	if (!f)
		f = p->node->ops->next(p->node, p, now);
	if (f)
		start(p, f, now);
}

void fab_pause(struct fab_port *p, uint8_t mask, int64_t pause_ns)
{
	if (pause_ns > 0) {
		p->pause_mask |= mask;
		p->go_mask &= (uint8_t)~mask;
		p->pause_ns = pause_ns;
	} else {
		p->go_mask |= mask;
		p->pause_mask &= (uint8_t)~mask;
	}
	fab_kick(p);
}

static void fly(struct fab_port *p, struct fab_frame *f, int64_t extra_ns,
		int64_t now_ns)
{
	f->to = p->peer;
	world_at(p->node->fab->world, &f->ev, now_ns + p->delay_ns + extra_ns);
}

/* The payload of a duplicate is the original's. */
static void fly_copy(struct fab_port *p, const struct fab_frame *f,
		     int64_t extra_ns, int64_t now_ns)
{
	struct fab_frame *copy = fab_take(p->node->fab);

	if (!copy)
		return;
	copy->sw = f->sw;
	copy->src = f->src;
	copy->dst = f->dst;
	copy->tos = f->tos;
	copy->ttl = f->ttl;
	copy->sport = f->sport;
	copy->flow_label = f->flow_label;
	copy->len_bytes = f->len_bytes;
	memcpy(copy->pkt, f->pkt, f->len_bytes);
	fly(p, copy, extra_ns, now_ns);
}

static void depart(struct fab_port *p, struct fab_frame *f, int64_t now_ns)
{
	struct fab *fab = p->node->fab;
	struct fault_verdict v = { 0 };

	if (p->faults && !f->pause) {
		struct fault_pkt pkt = { f->pkt, f->len_bytes,
					 f->len_bytes + ICRC_BYTES, f->tos };

		v = fault_judge(p->faults, FAULT_TX, &pkt, now_ns);
	}
	if (p->down || v.drop) {
		fab->stats.lost++;
		fab_give(fab, f);
		return;
	}
	if (v.mark_ce)
		f->tos |= ECN_CE;
	f->spoilt |= v.flips > 0;
	if (v.copy)
		fly_copy(p, f, v.delay_ns + v.copy_ns, now_ns);
	fly(p, f, v.delay_ns, now_ns);
}

static void port_done(struct world_event *e, int64_t now_ns)
{
	struct fab_port *p = CONTAINER_OF(e, struct fab_port, done);
	struct fab *fab = p->node->fab;
	struct fab_frame *f = p->out;

	p->out = NULL;
	fab_part_ends(f, FAB_TRANSMISSION, now_ns);
	if (fab->tap)
		fab->tap(fab->tap_ctx, p, f, now_ns);
	if (!f->pause)
		p->node->ops->sent(p->node, p, f, now_ns);
	depart(p, f, now_ns);
	fab_kick(p);
}

static void arrive(struct world_event *e, int64_t now_ns)
{
	struct fab_frame *f = CONTAINER_OF(e, struct fab_frame, ev);
	struct fab_port *p = f->to;

	fab_part_ends(f, FAB_PROPAGATION, now_ns);
	p->node->ops->rx(p->node, p, f, now_ns);
}

void fab_delivered(struct fab *fab, struct fab_frame *f, int64_t now_ns)
{
	struct fab_stats *s = &fab->stats;
	int64_t age = now_ns - f->born_ns;
	int64_t sum = 0;

	fab_part_ends(f, FAB_PROCESSING, now_ns);
	for (int i = 0; i < FAB_PARTS; i++) {
		s->part_ns[i] += f->part_ns[i];
		sum += f->part_ns[i];
	}
	ASSERT(sum == age);
	s->delivered++;
	s->age_ns += age;
	if (age > s->age_max_ns)
		s->age_max_ns = age;
}
