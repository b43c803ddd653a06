/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * simhost.c - drives one core in virtual time.
 */
#include "sim/simhost.h"

#include <errno.h>
#include <string.h>

#define ALL_CLASSES 0xffffu

static void on_timer(struct world_event *e, int64_t now_ns)
{
	(void)now_ns;
	simhost_kick(CONTAINER_OF(e, struct simhost, timer));
}

static void on_pump(struct world_event *e, int64_t now_ns)
{
	(void)now_ns;
	simhost_kick(CONTAINER_OF(e, struct simhost, pump));
}

static void on_frame(void *ctx, const uint8_t *frame, uint32_t len_bytes,
		     int64_t now_ns)
{
	struct simhost *h = ctx;
	struct rocev2_flow flow;
	struct rx_frame rx;
	size_t sealed = 0;
	size_t off;

	off = rocev2_decode_headers(&flow, frame, len_bytes, &sealed);
	if (!off || sealed < ICRC_BYTES) {
		h->rx_bad_headers++;
		return;
	}
	if (!rocev2_icrc_ok(&flow, frame + off, sealed)) {
		h->rx_bad_icrc++;
		return;
	}
	rx = (struct rx_frame){
		.pkt = frame + off,
		.len_bytes = (uint32_t)(sealed - ICRC_BYTES),
		.src = flow.src,
		.dst = flow.dst,
		.tos = flow.tos,
		.ttl = flow.ttl,
		.flow_label = flow.flow_label,
		.sport = flow.sport,
	};
	hca_rx(h->hca, &rx, now_ns);
	simhost_kick(h);
}

/* As between processes of one host: the other core's check, then bytes. Every
 * copy takes no time. */
static enum direct_verdict direct(struct simmem *m, const struct direct_req *r)
{
	struct simhost *h = CONTAINER_OF(m, struct simhost, mem);
	uint64_t va = h->direct_to->mem.base;

	if (prng_chance(&h->refuse_rng, h->refuse_ppm) ||
	    !hca_direct_check(h->direct_to->hca, r, &va) ||
	    !simmem_direct(m, r, &h->direct_to->mem, va + r->off))
		return DIRECT_NOT_NOW;
	return DIRECT_DONE;
}

int simhost_init(struct simhost *h, struct world *w, struct cable *cable,
		 const struct simhost_config *cfg)
{
	struct gid_entry gid = { .valid = true,
				 .gid = cfg->gid,
				 .netdev = 1,
				 .vlan = 0xffff,
				 .mtu_bytes = cfg->netdev_mtu };
	int rc;

	*h = (struct simhost){ .world = w,
			       .cable = cable,
			       .end = cfg->end,
			       .hold_frames = cfg->hold_frames,
			       .direct_to = cfg->direct_to,
			       .refuse_ppm = cfg->refuse_ppm };
	prng_init(&h->refuse_rng, cfg->hca.seed);
	world_event_init(&h->timer, on_timer);
	world_event_init(&h->pump, on_pump);
	rc = simmem_init(&h->mem, w->mem, cfg->mem_base, cfg->mem_bytes);
	if (rc)
		return rc;
	h->mem.direct = cfg->direct_to ? direct : NULL;
	h->hca = hca_new(&cfg->hca, &simmem_ops, &h->mem, w->now_ns);
	if (!h->hca) {
		simmem_fini(&h->mem);
		return -ENOMEM;
	}
	rc = hca_set_gid(h->hca, 0, &gid);
	ASSERT(rc == 0);
	hca_set_port(h->hca, PORT_STATE_ACTIVE, cfg->netdev_mtu);
	cable->port[h->end] = (struct cable_port){ .rx = on_frame, .ctx = h };
	return 0;
}

void simhost_drain(struct simhost *h)
{
	for (uint32_t i = 0; i < h->num_held; i++)
		hca_tx_done(h->hca, &h->held[i]);
	h->num_held = 0;
}

uint64_t simhost_fini(struct simhost *h, bool force)
{
	uint64_t left;

	simhost_drain(h);
	world_cancel(h->world, &h->timer);
	world_cancel(h->world, &h->pump);
	hca_free(h->hca, force);
	left = h->mem.live_allocs;
	simmem_fini(&h->mem);
	return left;
}

static void send_frame(struct simhost *h, const struct tx_frame *f)
{
	struct rocev2_flow flow = {
		.src = f->path->sgid,
		.dst = f->path->dgid,
		.sport = f->path->sport,
		.tos = f->tos,
		.ttl = f->path->hop_limit,
		.flow_label = f->path->flow_label,
		.df = true,
	};
	size_t off = rocev2_overhead(&flow);
	size_t len = f->len_bytes + ICRC_BYTES;

	/* The core wrote where IPv6 headers would leave it; the shorter IPv4
	 * header goes right before that. */
	rocev2_seal(&flow, f->pkt, f->len_bytes);
	rocev2_encode_headers(&flow, len, f->pkt - off);
	cable_send(h->cable, h->end, f->pkt - off, (uint32_t)(off + len));
}

static void frame_done(struct simhost *h, const struct tx_frame *f)
{
	if (!h->hold_frames) {
		hca_tx_done(h->hca, f);
		return;
	}
	if (h->num_held == SIMHOST_HELD)
		simhost_drain(h);
	h->held[h->num_held++] = *f;
}

static void transmit(struct simhost *h)
{
	int64_t now = h->world->now_ns;
	int64_t when;
	struct tx_frame f;

	for (;;) {
		if (!cable_room(h->cable, h->end, &when)) {
			world_at(h->world, &h->pump, when);
			return;
		}
		f = (struct tx_frame){ .pkt = h->buf + IPV6_BYTES + UDP_BYTES };
		if (!hca_tx(h->hca, ALL_CLASSES, &f, now)) {
			if (hca_tx_paused(h->hca))
				continue;
			break;
		}
		send_frame(h, &f);
		frame_done(h, &f);
	}
	simhost_drain(h);
}

void simhost_kick(struct simhost *h)
{
	int64_t now = h->world->now_ns;
	struct hca_event e;
	int64_t deadline;

	hca_doorbells(h->hca, now);
	if (hca_deadline(h->hca) <= now)
		hca_advance(h->hca, now);
	transmit(h);
	while (hca_event_next(h->hca, &e))
		if (h->on_event)
			h->on_event(h->event_ctx, &e, now);
	deadline = hca_deadline(h->hca);
	if (deadline == INT64_MAX)
		world_cancel(h->world, &h->timer);
	else /* a deadline that has passed must not stop the clock */
		world_at(h->world, &h->timer,
			 deadline > now ? deadline : now + 1);
}
