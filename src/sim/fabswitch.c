/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fabswitch.c - carries frames and pauses between a switch and its cables. */
#include "sim/fabswitch.h"

#include <errno.h>

static struct fabswitch *of(struct fab_node *n)
{
	return CONTAINER_OF(n, struct fabswitch, node);
}

static struct fab_frame *frame_of(struct netswitch_frame *f)
{
	return CONTAINER_OF(f, struct fab_frame, sw);
}

/* After anything that may have changed pauses, the storm's or the time. */
static void settle(struct fabswitch *s)
{
	struct netswitch_pause p;
	struct netswitch_frame *f;
	int64_t at;

	while ((f = netswitch_thrown(s->sw)))
		fab_give(s->node.fab, frame_of(f));
	while (netswitch_pause_tx(s->sw, &p))
		fab_pause(&s->node.port[p.port], p.mask, p.pause_ns);
	at = netswitch_deadline(s->sw);
	if (at == INT64_MAX)
		world_cancel(s->node.fab->world, &s->timer);
	else if (!world_scheduled(&s->timer) || s->timer.at_ns != at)
		world_at(s->node.fab->world, &s->timer, at);
}

static void on_timer(struct world_event *e, int64_t now_ns)
{
	struct fabswitch *s = CONTAINER_OF(e, struct fabswitch, timer);

	netswitch_advance(s->sw, now_ns);
	settle(s);
	for (uint32_t i = 0; i < s->node.ports; i++)
		fab_kick(&s->node.port[i]);
}

static struct fab_frame *next(struct fab_node *n, struct fab_port *p,
			      int64_t now_ns)
{
	struct netswitch_frame *f = netswitch_tx(of(n)->sw, p->index, now_ns);

	if (!f)
		return NULL;
	if (f->ce)
		frame_of(f)->tos |= ECN_CE;
	return frame_of(f);
}

static void sent(struct fab_node *n, struct fab_port *p, struct fab_frame *f,
		 int64_t now_ns)
{
	(void)p;
	netswitch_done(of(n)->sw, &f->sw, now_ns);
	settle(of(n));
}

static void rx(struct fab_node *n, struct fab_port *p, struct fab_frame *f,
	       int64_t now_ns)
{
	struct fabswitch *s = of(n);

	if (f->pause) {
		netswitch_pause_rx(s->sw, p->index, f->pause_mask, f->pause_ns,
				   now_ns);
		fab_give(n->fab, f);
		settle(s);
		fab_kick(p);
		return;
	}
	f->sw.ect = (f->tos & ECN_CE) != ECN_NOT_ECT;
	if (netswitch_rx(s->sw, p->index, &f->sw, now_ns) != NETSWITCH_QUEUED) {
		fab_give(n->fab, f);
		settle(s);
		return;
	}
	if (s->mirror)
		s->mirror(s->mirror_ctx, f, now_ns);
	settle(s);
	fab_kick(&n->port[f->sw.out_port]);
}

static const struct fab_node_ops ops = {
	.next = next,
	.sent = sent,
	.rx = rx,
};

int fabswitch_init(struct fabswitch *s, struct fab *fab,
		   const struct netswitch_config *cfg)
{
	const struct sim_alloc *mem = fab->world->mem;
	int rc;

	*s = (struct fabswitch){ 0 };
	if (netswitch_config_check(cfg))
		return -EINVAL;
	rc = fab_node_init(&s->node, fab, &ops, cfg->ports);
	if (rc)
		return rc;
	world_event_init(&s->timer, on_timer);
	s->sw = netswitch_new(cfg, mem->alloc, mem->free, mem->ctx);
	if (s->sw)
		return 0;
	fab_node_fini(&s->node);
	return -ENOMEM;
}

void fabswitch_fini(struct fabswitch *s)
{
	world_cancel(s->node.fab->world, &s->timer);
	netswitch_free(s->sw);
	fab_node_fini(&s->node);
}
