/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * wl_setup.c - the shape of a round, drawn from its seed, and its objects.
 */
#include <errno.h>
#include <string.h>

#include "sim/wl_priv.h"

#define WL_BURST 64
#define WL_GAP 256 /* canaries between areas, at least */

static uint32_t draw(struct prng *r, uint32_t lo, uint32_t hi)
{
	return lo + (uint32_t)prng_below(r, hi - lo + 1);
}

static void draw_attr(struct wl *wl, struct prng *r)
{
	wl->attr = (struct qp_attr){
		.min_rnr_timer = (uint8_t)draw(r, 1, 18),
		.timeout = (uint8_t)draw(r, 11, 13),
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = (uint8_t)draw(r, 1, 8),
	};
	wl->hasty = prng_chance(r, 200000);
	wl->attr.max_dest_rd_atomic =
		(uint8_t)draw(r, wl->attr.max_rd_atomic, 16);
}

static void draw_sizes(struct wl *wl, struct prng *r)
{
	uint32_t mtu;

	wl->mtu = (enum mtu_code)draw(r, MTU_256, MTU_4096);
	mtu = mtu_bytes(wl->mtu);
	wl->netdev_mtu = prng_chance(r, 500000) ? 9000 : mtu + 200;
	wl->max_msg = mtu * draw(r, 1, prng_chance(r, 200000) ? 64 : 8);
	if (wl->max_msg > 16384)
		wl->max_msg = 16384;
	if (wl->cfg.type == QP_TYPE_UD)
		wl->max_msg = mtu;
	wl->depth = draw(r, 4, WL_SLOTS);
	wl->sges = draw(r, 1, MSG_PIECES);
}

void wl_draw(struct wl *wl)
{
	struct prng r = world_rng(&wl->world, "shape");
	const struct fault_plan *f = &wl->cfg.faults;

	wl->num_pairs = draw(&r, 1, WL_PAIRS);
	draw_sizes(wl, &r);
	draw_attr(wl, &r);
	/* Stingy ones make RNR NAKs. */
	wl->recv_percent = prng_chance(&r, 400000) ? draw(&r, 1, 4) : 90;
	wl->use_srq = prng_chance(&r, 250000);
	wl->v6 = prng_chance(&r, 500000);
	wl->sig_all = prng_chance(&r, 200000);
	wl->orderly = !fault_does(f, FAULT_DUP) &&
		      !fault_does(f, FAULT_REORDER) &&
		      !fault_does(f, FAULT_DELAY);
	wl->clean = f->num_rules == 0;
	if (wl->cfg.type != QP_TYPE_RC)
		wl->cfg.errors = false;
}

/* ---- memory ---- */

int wl_area_reg(struct wl_host *h, struct pd *pd, struct area *a)
{
	struct mr_attr attr = { .va = h->sim.mem.base + a->off,
				.iova = a->iova,
				.len_bytes = a->len,
				.access = a->access };
	int rc = mr_reg(pd, &attr, &a->mr);

	if (!rc)
		a->key = mr_key(a->mr);
	return rc;
}

static int area_new(struct wl_host *h, struct pd *pd, struct area *a,
		    uint64_t len, uint32_t access)
{
	h->brk += WL_GAP + 64 * prng_below(&h->rng, 8);
	*a = (struct area){ .off = h->brk, .len = len };
	h->brk = (h->brk + len + 63) & ~63ull;
	ASSERT(h->brk + WL_GAP <= h->sim.mem.len_bytes);
	/* B086: an iova need not be the address. */
	a->iova = h->sim.mem.base + a->off;
	if (prng_chance(&h->rng, 500000))
		a->iova = prng_u64(&h->rng) & 0xffffffffffffffc0u;
	if (a->iova + len < a->iova)
		a->iova = h->sim.mem.base + a->off;
	a->access = access;
	return wl_area_reg(h, pd, a);
}

static uint64_t memory_needed(const struct wl *wl)
{
	uint64_t slots = (uint64_t)wl_slot_bytes(wl) * WL_SLOTS;
	uint64_t an_end = 2 * slots + wl->max_msg + 64 + 4 * 1024;

	return wl->num_pairs * an_end + slots + 2 * wl->max_msg + 16 * 1024;
}

#define REMOTE_ALL                                                             \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |       \
	 ACCESS_REMOTE_ATOMIC)

static int host_areas(struct wl_host *h)
{
	uint32_t some = h->wl->max_msg + 64;
	int rc = area_new(h, h->pd, &h->shared, 8, REMOTE_ALL);

	if (!rc)
		rc = area_new(h, h->pd, &h->forbidden, some,
			      ACCESS_LOCAL_WRITE);
	if (!rc)
		rc = area_new(h, h->alien_pd, &h->alien, some, REMOTE_ALL);
	if (!rc)
		memset(h->sim.mem.bytes + h->shared.off, 0, 8);
	return rc;
}

/* ---- hosts ---- */

static void on_event(void *ctx, const struct hca_event *e, int64_t now_ns)
{
	struct wl_host *h = ctx;
	struct wl_end *end;

	(void)now_ns;
	h->wl->stats.events++;
	if (e->kind == HCA_EVENT_COMP) {
		for (unsigned i = 0; i < 2; i++)
			h->comp[i] |= h->cq[i] == e->cq;
		return;
	}
	if (e->type == ASYNC_CQ_ERR || !e->qp) {
		wl_fail(h->wl, "asynchronous event (host, type)", h->index,
			e->type, 0);
		return;
	}
	end = qp_user(e->qp);
	if (e->type == ASYNC_COMM_EST || e->type == ASYNC_QP_LAST_WQE_REACHED)
		return;
	if (!h->wl->cfg.errors)
		wl_fail(h->wl, "asynchronous QP error (end, type)",
			wl_end_id(end), e->type, 0);
	end->failed = true;
}

static void host_config(struct wl *wl, unsigned i, struct prng *r,
			struct simhost_config *cfg)
{
	*cfg = (struct simhost_config){
		.hca = { .limits = hca_limits_default,
			 .link_layer = &link_layer_rocev2,
			 .seed = prng_u64(r),
			 .node_guid = 0x0200000000000001u + i,
			 .qpn_base = (i + 1) << 16,
			 .qpn_bits = 16,
			 .burst_pkts = draw(r, 1, WL_BURST) },
		.gid = gid_from_v4(0x0a000001 + i),
		.netdev_mtu = wl->netdev_mtu,
		.mem_base = 0x100000ull * draw(r, 1, 1 << 20),
		.mem_bytes = memory_needed(wl),
		.end = i,
		.hold_frames = prng_chance(r, 300000),
	};
	if (wl->cfg.direct) {
		cfg->direct_to = &wl->host[!i].sim;
		cfg->refuse_ppm = draw(r, 0, 1) * 200000;
		cfg->hca.direct_bytes = draw(r, 1, 20000);
	}
	if (prng_chance(r, 500000))
		cfg->hca.dest_budget_bytes = draw(r, 10000, 200000);
	if (prng_chance(r, 500000))
		cfg->hca.read_budget_bytes = draw(r, 10000, 200000);
	if (wl->v6)
		cfg->gid =
			(struct gid){ .raw = { 0xfd,
					       1, [15] = (uint8_t)(1 + i) } };
}

static int host_cqs(struct wl_host *h)
{
	int rc = cq_create(h->sim.hca, WL_CQE, NULL, &h->cq[0]);

	if (rc)
		return rc;
	h->cq[1] = h->cq[0];
	if (prng_chance(&h->rng, 600000))
		rc = cq_create(h->sim.hca, WL_CQE, NULL, &h->cq[1]);
	h->by_event = prng_chance(&h->rng, 300000);
	for (unsigned i = 0; i < 2 && !rc && h->by_event; i++)
		cq_arm(h->cq[i], false);
	return rc;
}

static int host_srq(struct wl_host *h)
{
	struct wl *wl = h->wl;
	struct srq_attr attr = { .max_wr = WL_SLOTS, .max_sge = wl->sges };
	int rc;

	if (!wl->use_srq)
		return 0;
	h->srq.depth = WL_SLOTS;
	rc = area_new(h, h->pd, &h->srq.area,
		      (uint64_t)WL_SLOTS * wl_slot_bytes(wl),
		      ACCESS_LOCAL_WRITE);
	return rc ? rc : srq_create(h->pd, &attr, NULL, &h->srq.srq);
}

static void fill_memory(struct wl_host *h)
{
	/* A length that fits in 32 bits: a few MiB. */
	pattern_fill(prng_u64(&h->rng), h->sim.mem.bytes,
		     (uint32_t)h->sim.mem.len_bytes);
}

static int host_setup(struct wl *wl, unsigned i)
{
	struct wl_host *h = &wl->host[i];
	const struct sim_alloc *mem = wl->world.mem;
	struct simhost_config cfg;
	int rc;

	h->wl = wl;
	h->index = i;
	h->rng = world_rng(&wl->world, i ? "host 1" : "host 0");
	host_config(wl, i, &h->rng, &cfg);
	rc = simhost_init(&h->sim, &wl->world, &wl->cable, &cfg);
	if (rc)
		return rc;
	h->sim.on_event = on_event;
	h->sim.event_ctx = h;
	h->image.mem = &h->sim.mem;
	h->image.bytes = mem->alloc(mem->ctx, cfg.mem_bytes, 64);
	h->adds = mem->alloc(mem->ctx, (wl->cfg.msgs * WL_PAIRS + 1) * 8u, 8);
	if (!h->image.bytes || !h->adds)
		return -ENOMEM;
	fill_memory(h);
	rc = pd_create(h->sim.hca, &h->pd);
	if (!rc)
		rc = pd_create(h->sim.hca, &h->alien_pd);
	if (!rc)
		rc = host_areas(h);
	if (!rc)
		rc = host_cqs(h);
	return rc ? rc : host_srq(h);
}

/* ---- ends ---- */

static int flow_new(struct wl *wl, struct wl_end *e)
{
	const struct sim_alloc *mem = wl->world.mem;
	struct flow *f = &e->out;
	uint32_t bytes = ((wl->max_msg + 7) & ~7u) + 64;

	f->src = &e->host->image;
	f->dst = &e->peer->host->image;
	f->ordered = wl->cfg.type == QP_TYPE_RC;
	f->scratch_bytes = bytes;
	f->msgs = mem->alloc(mem->ctx, wl->cfg.msgs * sizeof(f->msgs[0]), 8);
	f->cur = mem->alloc(mem->ctx, bytes, 8);
	f->ok = mem->alloc(mem->ctx, bytes, 8);
	f->payload = mem->alloc(mem->ctx, 2ul * bytes, 8);
	if (!f->msgs || !f->cur || !f->ok || !f->payload)
		return -ENOMEM;
	if (wl->cfg.type == QP_TYPE_UD)
		return 0;
	f->target_bytes = bytes - 32;
	return 0;
}

static int end_setup(struct wl *wl, struct wl_pair *p, unsigned i)
{
	struct wl_end *e = &p->end[i];
	uint64_t slots = (uint64_t)WL_SLOTS * wl_slot_bytes(wl);
	int rc;

	e->pair = p;
	e->host = &wl->host[i];
	e->peer = &p->end[!i];
	e->rq = wl->use_srq ? &e->host->srq : &e->own_rq;
	e->own_rq.owner = e;
	e->own_rq.depth = 2 + (uint32_t)prng_below(&e->host->rng, WL_SLOTS - 1);
	rc = area_new(e->host, e->host->pd, &e->local, slots,
		      ACCESS_LOCAL_WRITE);
	if (!rc && !wl->use_srq)
		rc = area_new(e->host, e->host->pd, &e->own_rq.area, slots,
			      ACCESS_LOCAL_WRITE);
	return rc;
}

static int target_setup(struct wl_end *e)
{
	struct flow *in = &e->peer->out;
	int rc;

	if (!in->target_bytes)
		return 0;
	rc = area_new(e->host, e->host->pd, &e->target, in->target_bytes,
		      REMOTE_ALL);
	in->target_off = e->target.off;
	e->revoked = e->pair->wl->world.mem->alloc(e->pair->wl->world.mem->ctx,
						   in->target_bytes, 8);
	if (!rc && !e->revoked)
		rc = -ENOMEM;
	return rc;
}

static int pair_setup(struct wl *wl, unsigned index)
{
	struct wl_pair *p = &wl->pair[index];
	int rc = 0;

	p->wl = wl;
	p->index = index;
	for (unsigned i = 0; i < 2 && !rc; i++)
		rc = end_setup(wl, p, i);
	for (unsigned i = 0; i < 2 && !rc; i++)
		rc = flow_new(wl, &p->end[i]);
	for (unsigned i = 0; i < 2 && !rc; i++)
		rc = target_setup(&p->end[i]);
	return rc;
}

static int cable_setup(struct wl *wl)
{
	struct prng r = world_rng(&wl->world, "cable shape");
	struct cable_config cfg = {
		.latency_ns = draw(&r, 200, 50000),
		.ns_per_kib = prng_chance(&r, 500000) ? draw(&r, 20, 8000) : 0,
		.frames = 512,
		.backlog = draw(&r, 1, 16),
		.faults = &wl->cfg.faults,
	};
	int rc = cable_init(&wl->cable, &wl->world, &cfg, "cable");
	/* An answer waits while the other QPs send a burst each. */
	int64_t bursts_ns = cfg.ns_per_kib * 5 * WL_PAIRS * WL_BURST;
	int64_t rtt_ns = wl_cable_quiet_ns(wl) + cfg.latency_ns + bursts_ns;

	/* Half of the slowest round trip: many a packet is sent again that
	 * was not lost. */
	for (uint8_t t = 1; wl->hasty && !rc; t++) {
		wl->attr.timeout = t;
		if ((INT64_C(4096) << t) >= rtt_ns / 2)
			break;
	}
	return rc;
}

int wl_setup(struct wl *wl)
{
	int rc = cable_setup(wl);

	if (rc)
		return rc;
	wirewatch_init(&wl->watch, &wl->verdict, &wl->cable, mtu_bytes(wl->mtu),
		       wl->clean);
	wl->watch.trace = wl->cfg.trace;
	for (unsigned i = 0; i < 2 && !rc; i++)
		rc = host_setup(wl, i);
	for (uint32_t i = 0; i < wl->num_pairs && !rc; i++)
		rc = pair_setup(wl, i);
	for (unsigned i = 0; i < 2 && !rc; i++)
		memcpy(wl->host[i].image.bytes, wl->host[i].sim.mem.bytes,
		       wl->host[i].sim.mem.len_bytes);
	for (uint32_t i = 0; i < wl->num_pairs && !rc; i++)
		rc = wl_pair_connect(&wl->pair[i]);
	return rc;
}

/* ---- the end ---- */

static void area_free(struct wl *wl, struct area *a)
{
	int rc = a->mr ? mr_dereg(a->mr) : 0;

	if (rc)
		wl_fail(wl, "dereg refused (-errno)", (uint64_t)-rc, 0, 0);
	a->mr = NULL;
}

static void end_teardown(struct wl_end *e)
{
	const struct sim_alloc *mem = e->pair->wl->world.mem;

	area_free(e->pair->wl, &e->local);
	area_free(e->pair->wl, &e->own_rq.area);
	area_free(e->pair->wl, &e->target);
	mem->free(mem->ctx, e->revoked);
	mem->free(mem->ctx, e->out.msgs);
	mem->free(mem->ctx, e->out.cur);
	mem->free(mem->ctx, e->out.ok);
	mem->free(mem->ctx, e->out.payload);
}

static void host_teardown(struct wl_host *h)
{
	const struct sim_alloc *mem = h->wl->world.mem;
	struct wl *wl = h->wl;
	uint64_t leaked;
	int rc = 0;

	if (h->srq.srq)
		rc = srq_destroy(h->srq.srq);
	area_free(wl, &h->srq.area);
	area_free(wl, &h->shared);
	area_free(wl, &h->forbidden);
	area_free(wl, &h->alien);
	if (!rc && h->cq[1] != h->cq[0])
		rc = cq_destroy(h->cq[1]);
	if (!rc)
		rc = cq_destroy(h->cq[0]);
	if (!rc)
		rc = pd_destroy(h->pd);
	if (!rc)
		rc = pd_destroy(h->alien_pd);
	if (rc)
		wl_fail(wl, "destroy refused (host, -errno)", h->index,
			(uint64_t)-rc, 0);
	leaked = simhost_fini(&h->sim, wl->verdict.what != NULL);
	if (leaked)
		wl_fail(wl, "the core leaked (host, allocations)", h->index,
			leaked, 0);
	mem->free(mem->ctx, h->image.bytes);
	mem->free(mem->ctx, h->adds);
}

void wl_teardown(struct wl *wl)
{
	for (uint32_t i = 0; i < wl->num_pairs * 2; i++)
		end_teardown(&wl->pair[i / 2].end[i % 2]);
	for (unsigned i = 0; i < 2; i++)
		host_teardown(&wl->host[i]);
	wl->stats.cable = wl->cable.stats;
	cable_fini(&wl->cable);
}
