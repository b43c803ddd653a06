/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * workload.c - one round: set up, run, judge, tear down.
 */
#include "sim/workload.h"

#include <errno.h>
#include <string.h>

#include "sim/wl_priv.h"

/* Every wait of the transport is shorter: with timeout code 13 and 7 retries
 * a requester gives up after 8 * 4 * 34 ms. */
#define WL_PATIENCE_NS 4000000000
#define WL_GRACE_NS 3000000
#define WL_EVENTS_MAX 4096

int64_t wl_cable_quiet_ns(const struct wl *wl)
{
	const struct cable_config *c = &wl->cable.cfg;
	int64_t queue = (int64_t)(c->backlog + 2) * c->ns_per_kib * 5;

	return c->latency_ns + fault_late_ns(&wl->cfg.faults) + queue + 1;
}

void wl_shared_add(struct wl_end *e, uint64_t orig)
{
	struct wl_host *h = e->peer->host;

	h->adds[h->num_adds++] = orig;
}

static bool pair_idle(const struct wl_pair *p)
{
	const struct wl *wl = p->wl;

	return p->end[0].out.done == wl->cfg.msgs &&
	       p->end[1].out.done == wl->cfg.msgs;
}

/* RTS to SQD and back: sends wait, nothing is lost [IBA 10.3.1.5]. */
static void toggle_sqd(struct wl_end *e)
{
	struct wl *wl = e->pair->wl;
	enum qp_state s = qp_state(e->qp);
	struct qp_attr a = { .state = s == QP_STATE_SQD ? QP_STATE_RTS
							: QP_STATE_SQD };

	if (s != QP_STATE_RTS && s != QP_STATE_SQD)
		return;
	if (qp_modify(e->qp, &a, QP_ATTR_STATE, wl->world.now_ns))
		wl_fail(wl, "RTS to SQD or back refused (end, state)",
			wl_end_id(e), s, 0);
}

static void pair_tick(struct wl_pair *p, struct wl_host *h)
{
	struct wl *wl = p->wl;
	struct wl_end *e = &p->end[h->index];

	if (!p->up) {
		if (!pair_idle(p) && wl->world.now_ns >= p->reconnect_at_ns &&
		    wl_pair_connect(p))
			wl_fail(wl, "reconnecting failed (pair)", p->index, 0,
				0);
		return;
	}
	if (p->end[0].failed || p->end[1].failed ||
	    (wl->cfg.errors && prng_chance(&h->rng, 2000))) {
		wl->stats.failures++;
		wl_pair_end(p);
		return;
	}
	if (wl->cfg.errors && e->target.mr && prng_chance(&h->rng, 2000))
		wl_revoke(e);
	if (qp_state(e->qp) == QP_STATE_SQD || prng_chance(&h->rng, 5000))
		toggle_sqd(e);
	wl_post_receives(e);
	wl_post_sends(e);
}

/* Grows or shrinks a CQ amid traffic [IBA 11.2.5.3]. */
static void resize_cq(struct wl_host *h)
{
	unsigned which = (unsigned)prng_below(&h->rng, 2);
	uint32_t cqe = WL_CQE + (uint32_t)prng_below(&h->rng, WL_CQE);
	int rc = cq_resize(h->cq[which], cqe);

	if (rc || cq_cqe(h->cq[which]) < cqe)
		wl_fail(h->wl, "CQ not resized (host, to, -errno)", h->index,
			cqe, (uint64_t)-rc);
}

static void poll_host(struct wl_host *h)
{
	for (unsigned i = 0; i < 2; i++) {
		if (!h->by_event) {
			wl_poll(h, i, (uint32_t)prng_below(&h->rng, 16));
		} else if (h->comp[i]) {
			h->comp[i] = false;
			cq_arm(h->cq[i], false);
			wl_poll(h, i, UINT32_MAX);
		}
	}
}

/* How long the program is away; longer while the transport waits. */
static int64_t nap_ns(struct wl_host *h)
{
	const struct wl *wl = h->wl;
	bool stalled = wl->world.now_ns - wl->last_progress_ns > 1000000;

	return 100 + (int64_t)prng_below(&h->rng, stalled ? 500000 : 20000);
}

/* The program on this host gets the CPU. */
static void on_tick(struct world_event *ev, int64_t now_ns)
{
	struct wl_host *h = CONTAINER_OF(ev, struct wl_host, tick);

	poll_host(h);
	if (prng_chance(&h->rng, 3000))
		resize_cq(h);
	for (uint32_t i = 0; i < h->wl->num_pairs; i++)
		if (!h->wl->verdict.what)
			pair_tick(&h->wl->pair[i], h);
	if (h->wl->verdict.what)
		return;
	simhost_kick(&h->sim);
	simhost_kick(&h->wl->host[!h->index].sim);
	world_at(&h->wl->world, &h->tick, now_ns + nap_ns(h));
}

static bool all_posted(const struct wl *wl)
{
	for (uint32_t i = 0; i < wl->num_pairs * 2; i++)
		if (wl->pair[i / 2].end[i % 2].out.posted < wl->cfg.msgs)
			return false;
	return true;
}

static bool all_idle(const struct wl *wl)
{
	for (uint32_t i = 0; i < wl->num_pairs; i++)
		if (!pair_idle(&wl->pair[i]))
			return false;
	return true;
}

static void run(struct wl *wl)
{
	int64_t end_ns = INT64_MAX;

	wl->last_progress_ns = wl->world.now_ns;
	while (!wl->verdict.what && world_step(&wl->world, end_ns)) {
		if (wl->finishing)
			continue;
		if (all_posted(wl)) /* from here on it must get through */
			wl->cable.cfg.faults = NULL;
		if (all_idle(wl)) {
			wl->finishing = true;
			end_ns = wl->world.now_ns + WL_GRACE_NS +
				 wl_cable_quiet_ns(wl);
		} else if (wl->world.now_ns - wl->last_progress_ns >
			   WL_PATIENCE_NS) {
			wl_fail(wl, "no progress", wl->stats.msgs,
				wl->world.fired, 0);
		}
	}
}

/* ---- judgement ---- */

/* The originals of adds of 1 are a permutation of 0..n-1 and n is the sum, as
 * far as it is known which adds happened. */
static void judge_adds(struct wl_host *h)
{
	struct wl *wl = h->wl;
	uint64_t value;

	memcpy(&value, h->sim.mem.bytes + h->shared.off, sizeof(value));
	if (value < h->num_adds || value > h->num_adds + h->adds_unsure)
		wl_fail(wl, "counter is not the sum of the adds (is, adds, +)",
			value, h->num_adds, h->adds_unsure);
	for (uint32_t i = 0; i < h->num_adds; i++) {
		if (h->adds[i] >= value)
			wl_fail(wl, "an add saw a value of the future", value,
				h->adds[i], 0);
		for (uint32_t k = 0; k < i; k++)
			if (h->adds[k] == h->adds[i])
				wl_fail(wl, "two adds saw the same value",
					h->adds[i], k, i);
	}
	image_learn(&h->image, h->shared.off, sizeof(value));
}

static void judge_host(struct wl_host *h)
{
	struct wl *wl = h->wl;
	struct wc wc;
	uint64_t off;

	for (unsigned i = 0; i < 2; i++)
		if (cq_poll(h->cq[i], 1, &wc))
			wl_fail(wl, "a completion too many (host, wr_id)",
				h->index, wc.wr_id, 0);
	judge_adds(h);
	if (!image_same(&h->image, 0, h->sim.mem.len_bytes, &off))
		wl_fail(wl, "memory changed that no message names (host, off)",
			h->index, off, 0);
	wl->stats.retransmits += hca_counters(h->sim.hca)->req_retransmits;
	wl->stats.direct += hca_counters(h->sim.hca)->direct_writes +
			    hca_counters(h->sim.hca)->direct_reads;
	wl->stats.direct_refused += hca_counters(h->sim.hca)->direct_refused;
	wl->stats.rnr_naks += hca_counters(h->sim.hca)->rsp_rnr_naks;
}

static void judge(struct wl *wl)
{
	for (uint32_t i = 0; i < wl->num_pairs && !wl->verdict.what; i++)
		if (wl->pair[i].up)
			wl_pair_end(&wl->pair[i]);
	for (unsigned i = 0; i < 2 && !wl->verdict.what; i++)
		judge_host(&wl->host[i]);
}

/* After a failure: whatever state things are in, give everything back. */
static void abandon(struct wl *wl)
{
	for (uint32_t i = 0; i < wl->num_pairs * 2; i++) {
		struct wl_end *e = &wl->pair[i / 2].end[i % 2];

		simhost_drain(&wl->host[i % 2].sim);
		if (e->qp && !qp_destroy(e->qp))
			e->qp = NULL;
		if (e->ah && !ah_destroy(e->ah))
			e->ah = NULL;
	}
}

int wl_run(struct wl *wl, const struct wl_config *cfg, uint64_t seed,
	   const struct sim_alloc *mem)
{
	int rc;

	memset(wl, 0, sizeof(*wl));
	wl->cfg = *cfg;
	rc = world_init(&wl->world, mem, seed, WL_EVENTS_MAX);
	if (rc)
		return rc;
	wl_draw(wl);
	rc = wl_setup(wl);
	if (rc)
		return rc;
	for (unsigned i = 0; i < 2; i++) {
		world_event_init(&wl->host[i].tick, on_tick);
		world_at(&wl->world, &wl->host[i].tick, 1 + (int64_t)i);
	}
	run(wl);
	for (unsigned i = 0; i < 2; i++)
		world_cancel(&wl->world, &wl->host[i].tick);
	judge(wl);
	if (wl->verdict.what)
		abandon(wl);
	wl_teardown(wl);
	world_fini(&wl->world);
	return 0;
}
