/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fabhost.c - drives one core among many in virtual time. */
#include "sim/fabhost.h"

#include <errno.h>

#define NS_PER_S UINT64_C(1000000000)

static struct fabhost *of(struct fab_node *n)
{
	return CONTAINER_OF(n, struct fabhost, node);
}

static struct fab_port *port_of(struct fabhost *h)
{
	return &h->node.port[0];
}

static int64_t cost_ns(const struct fabhost *h, uint32_t bytes)
{
	int64_t ns = h->cfg.pkt_ns;

	if (h->cfg.bus_bps)
		ns += (int64_t)(bytes * UINT64_C(8) * NS_PER_S /
				h->cfg.bus_bps);
	return ns;
}

/* ---- out ---- */

/* The classes that may send: both service levels of a priority that is not
 * paused. */
static uint32_t open_classes(const struct fabhost *h, int64_t now_ns)
{
	uint32_t mask = 0;

	for (unsigned i = 0; i < NETSWITCH_PRIOS; i++)
		if (h->paused_until_ns[i] <= now_ns)
			mask |= 0x101u << i;
	return mask;
}

static void describe(struct fabhost *h, struct fab_frame *f,
		     const struct tx_frame *t)
{
	const struct opcode_info *op = opcode_lookup(t->pkt[0]);
	uint32_t around = op->hdr_bytes + (t->pkt[1] >> 4 & 3u);

	f->src = t->path->sgid;
	f->dst = t->path->dgid;
	f->tos = t->tos;
	f->ttl = t->path->hop_limit;
	f->sport = t->path->sport;
	f->flow_label = t->path->flow_label;
	f->len_bytes = t->len_bytes;
	f->sw.prio = t->sl & 7;
	f->sw.dst = h->index_of(h->index_ctx, &f->dst);
	f->sw.hash = f->sport * 0x9e3779b1u >> 16;
	f->sw.bytes = fab_wire_bytes(h->node.fab, &f->dst, t->len_bytes,
				     t->len_bytes - around);
}

/* After whatever may have changed the core's deadline. */
static void set_timer(struct fabhost *h)
{
	struct world *w = h->node.fab->world;
	int64_t at = hca_deadline(h->hca);

	if (at <= w->now_ns)
		at = w->now_ns + 1;
	if (at == INT64_MAX || h->crashed)
		world_cancel(w, &h->timer);
	else if (!world_scheduled(&h->timer) || h->timer.at_ns != at)
		world_at(w, &h->timer, at);
}

static struct fab_frame *build(struct fabhost *h, int64_t now_ns)
{
	struct fab_frame *f = fab_take(h->node.fab);
	struct tx_frame t;

	if (!f)
		return NULL;
	t = (struct tx_frame){ .pkt = f->pkt };
	if (h->crashed ||
	    !hca_tx(h->hca, open_classes(h, now_ns), &t, now_ns)) {
		fab_give(h->node.fab, f);
		return NULL;
	}
	describe(h, f, &t);
	hca_tx_done(h->hca, &t);
	return f;
}

static void build_ahead(struct fabhost *h, int64_t now_ns)
{
	while (h->num_ahead < FABHOST_AHEAD) {
		struct fab_frame *f = build(h, now_ns);

		if (!f)
			break;
		if (h->tx_busy_ns < now_ns)
			h->tx_busy_ns = now_ns;
		h->tx_busy_ns += cost_ns(h, f->sw.bytes);
		h->ready_ns[h->num_ahead] = h->tx_busy_ns;
		h->ahead[h->num_ahead++] = f;
	}
}

static struct fab_frame *next_built(struct fabhost *h, int64_t now_ns)
{
	struct fab_frame *f;

	build_ahead(h, now_ns);
	if (!h->num_ahead)
		return NULL;
	if (h->ready_ns[0] > now_ns) {
		world_at(h->node.fab->world, &h->built, h->ready_ns[0]);
		return NULL;
	}
	f = h->ahead[0];
	h->num_ahead--;
	for (uint32_t i = 0; i < h->num_ahead; i++) {
		h->ahead[i] = h->ahead[i + 1];
		h->ready_ns[i] = h->ready_ns[i + 1];
	}
	fab_part_ends(f, FAB_PROCESSING, now_ns);
	return f;
}

static struct fab_frame *next(struct fab_node *n, struct fab_port *p,
			      int64_t now_ns)
{
	struct fabhost *h = of(n);
	bool at_once = !h->cfg.pkt_ns && !h->cfg.bus_bps;
	struct fab_frame *f =
		at_once ? build(h, now_ns) : next_built(h, now_ns);

	(void)p;
	set_timer(h);
	return f;
}

static void sent(struct fab_node *n, struct fab_port *p, struct fab_frame *f,
		 int64_t now_ns)
{
	(void)n;
	(void)p;
	(void)f;
	(void)now_ns;
}

/* ---- in ---- */

static void take_in(struct fabhost *h, struct fab_frame *f, int64_t now_ns)
{
	struct rx_frame rx = { .pkt = f->pkt,
			       .len_bytes = f->len_bytes,
			       .src = f->src,
			       .dst = f->dst,
			       .tos = f->tos,
			       .ttl = f->ttl,
			       .flow_label = f->flow_label,
			       .sport = f->sport };

	fab_delivered(h->node.fab, f, now_ns);
	if (f->spoilt)
		h->node.fab->stats.spoilt++;
	else if (!h->crashed)
		hca_rx(h->hca, &rx, now_ns);
	fab_give(h->node.fab, f);
}

static void maybe_go_on(struct fabhost *h)
{
	if (!h->pausing || h->rxq_bytes > h->cfg.rx_xoff_bytes / 2)
		return;
	h->pausing = false;
	fab_pause(port_of(h), h->cfg.lossless, 0);
}

static void on_taken(struct world_event *e, int64_t now_ns)
{
	struct fabhost *h = CONTAINER_OF(e, struct fabhost, taken);
	struct fab_frame *f = h->rxq;

	h->rxq = f->next;
	if (!h->rxq)
		h->rxq_tail = &h->rxq;
	h->rxq_bytes -= f->sw.bytes;
	take_in(h, f, now_ns);
	if (h->rxq)
		world_at(h->node.fab->world, &h->taken,
			 now_ns + cost_ns(h, h->rxq->sw.bytes));
	maybe_go_on(h);
	fabhost_kick(h);
}

/* Begun past the mark, and renewed at half time as long as frames come. */
static void maybe_pause(struct fabhost *h, int64_t now_ns)
{
	if (!h->cfg.rx_xoff_bytes || !h->cfg.lossless)
		return;
	if (h->pausing ? now_ns < h->pause_renew_ns
		       : h->rxq_bytes <= h->cfg.rx_xoff_bytes)
		return;
	h->pausing = true;
	h->pause_renew_ns = now_ns + h->cfg.pause_ns / 2;
	fab_pause(port_of(h), h->cfg.lossless, h->cfg.pause_ns);
}

static void wait_in_line(struct fabhost *h, struct fab_frame *f, int64_t now_ns)
{
	if (h->cfg.rx_max_bytes &&
	    h->rxq_bytes + f->sw.bytes > h->cfg.rx_max_bytes) {
		h->stats.rx_dropped++;
		fab_give(h->node.fab, f);
		return;
	}
	if (!h->rxq)
		world_at(h->node.fab->world, &h->taken,
			 now_ns + cost_ns(h, f->sw.bytes));
	f->next = NULL;
	*h->rxq_tail = f;
	h->rxq_tail = &f->next;
	h->rxq_bytes += f->sw.bytes;
	maybe_pause(h, now_ns);
}

static void obey(struct fabhost *h, const struct fab_frame *f, int64_t now_ns)
{
	int64_t first = INT64_MAX;

	h->stats.pauses_rx += f->pause_ns > 0;
	for (unsigned i = 0; i < NETSWITCH_PRIOS; i++) {
		if (f->pause_mask >> i & 1)
			h->paused_until_ns[i] = now_ns + f->pause_ns;
		if (h->paused_until_ns[i] > now_ns &&
		    h->paused_until_ns[i] < first)
			first = h->paused_until_ns[i];
	}
	if (first != INT64_MAX)
		world_at(h->node.fab->world, &h->unpause, first);
	else
		world_cancel(h->node.fab->world, &h->unpause);
}

static void rx(struct fab_node *n, struct fab_port *p, struct fab_frame *f,
	       int64_t now_ns)
{
	struct fabhost *h = of(n);

	if (f->pause) {
		obey(h, f, now_ns);
		fab_give(n->fab, f);
		fab_kick(p);
		return;
	}
	if (h->cfg.pkt_ns || h->cfg.bus_bps)
		wait_in_line(h, f, now_ns);
	else
		take_in(h, f, now_ns);
	fabhost_kick(h);
}

static const struct fab_node_ops ops = {
	.next = next,
	.sent = sent,
	.rx = rx,
};

/* ---- life ---- */

static void on_timer(struct world_event *e, int64_t now_ns)
{
	(void)now_ns;
	fabhost_kick(CONTAINER_OF(e, struct fabhost, timer));
}

static void on_built(struct world_event *e, int64_t now_ns)
{
	(void)now_ns;
	fab_kick(port_of(CONTAINER_OF(e, struct fabhost, built)));
}

static void on_unpause(struct world_event *e, int64_t now_ns)
{
	struct fabhost *h = CONTAINER_OF(e, struct fabhost, unpause);
	const struct fab_frame nothing = { .pause_ns = 0 };

	obey(h, &nothing, now_ns); /* sets the next expiry */
	fab_kick(port_of(h));
}

int fabhost_init(struct fabhost *h, struct fab *fab,
		 const struct fabhost_config *cfg)
{
	struct gid_entry gid = { .valid = true,
				 .gid = cfg->gid,
				 .netdev = 1,
				 .vlan = 0xffff,
				 .mtu_bytes = cfg->netdev_mtu };
	int rc;

	*h = (struct fabhost){ .cfg = *cfg };
	rc = fab_node_init(&h->node, fab, &ops, 1);
	if (rc)
		return rc;
	rc = simmem_init(&h->mem, fab->world->mem, cfg->mem_base,
			 cfg->mem_bytes);
	if (rc)
		goto err_node;
	h->hca = hca_new(&cfg->hca, &simmem_ops, &h->mem, fab->world->now_ns);
	rc = -EINVAL;
	if (!h->hca)
		goto err_mem;
	rc = hca_set_gid(h->hca, 0, &gid);
	ASSERT(rc == 0);
	hca_set_port(h->hca, PORT_STATE_ACTIVE, cfg->netdev_mtu);
	world_event_init(&h->timer, on_timer);
	world_event_init(&h->built, on_built);
	world_event_init(&h->taken, on_taken);
	world_event_init(&h->unpause, on_unpause);
	h->rxq_tail = &h->rxq;
	return 0;
err_mem:
	simmem_fini(&h->mem);
err_node:
	fab_node_fini(&h->node);
	return rc;
}

void fabhost_fini(struct fabhost *h)
{
	struct world *w = h->node.fab->world;

	world_cancel(w, &h->timer);
	world_cancel(w, &h->built);
	world_cancel(w, &h->taken);
	world_cancel(w, &h->unpause);
	hca_free(h->hca, true);
	simmem_fini(&h->mem);
	fab_node_fini(&h->node);
}

void fabhost_kick(struct fabhost *h)
{
	struct world *w = h->node.fab->world;
	struct hca_event e;

	if (h->in_kick)
		return;
	h->in_kick = true;
	hca_doorbells(h->hca, w->now_ns);
	if (hca_deadline(h->hca) <= w->now_ns)
		hca_advance(h->hca, w->now_ns);
	while (hca_event_next(h->hca, &e))
		if (e.kind == HCA_EVENT_COMP && h->on_comp)
			h->on_comp(cq_user(e.cq), h, w->now_ns);
	hca_doorbells(h->hca, w->now_ns);
	fab_kick(port_of(h));
	set_timer(h);
	h->in_kick = false;
}
