/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fabflow.c - connects two hosts and keeps messages coming. */
#include "sim/fabflow.h"

#include <errno.h>

#define RING_MAX 4096
#define POLL_MAX 16

int fabflow_end_init(struct fabflow_end *e, struct fabhost *h)
{
	struct mr_attr attr = { .va = h->mem.base,
				.iova = h->mem.base,
				.len_bytes = h->mem.len_bytes,
				.access = ACCESS_LOCAL_WRITE |
					  ACCESS_REMOTE_WRITE |
					  ACCESS_REMOTE_READ |
					  ACCESS_REMOTE_ATOMIC };
	int rc = pd_create(h->hca, &e->pd);

	return rc ? rc : mr_reg(e->pd, &attr, &e->mr);
}

/* ---- posting ---- */

static uint32_t draw_size(struct fabflow *f)
{
	uint64_t at = f->weights > 1 ? prng_below(&f->rng, f->weights) : 0;

	for (uint32_t i = 0; i < f->cfg.sizes; i++) {
		if (at < f->cfg.size[i].weight)
			return f->cfg.size[i].bytes;
		at -= f->cfg.size[i].weight;
	}
	return f->cfg.size[0].bytes;
}

static bool post_recv(struct fabflow *f)
{
	struct sge sge = { f->dst->mem.base, (uint32_t)f->dst->mem.len_bytes,
			   f->recv_lkey };
	struct recv_wr wr = { .sge = &sge, .num_sge = 1 };

	return qp_post_recv(f->qp[1], &wr) == 0;
}

static bool over(const struct fabflow *f, int64_t now_ns)
{
	if (f->cfg.count && f->stats.posted >= f->cfg.count)
		return true;
	return now_ns >= f->cfg.stop_ns;
}

static bool post(struct fabflow *f, int64_t now_ns)
{
	uint32_t n = f->cfg.opcode == WR_FETCH_ADD ? 8 : draw_size(f);
	struct sge sge = { f->src->mem.base, n, f->lkey };
	struct send_wr wr = { .sge = &sge,
			      .num_sge = n ? 1 : 0,
			      .opcode = f->cfg.opcode,
			      .flags = WR_SIGNALED,
			      .remote_addr = f->dst->mem.base,
			      .rkey = f->rkey,
			      .compare_add = 1 };
	uint32_t slot;

	if (f->outstanding >= f->ring || qp_post_send(f->qp[0], &wr))
		return false;
	slot = (f->head + f->outstanding) % f->ring;
	f->posted_ns[slot] = now_ns;
	f->posted_bytes[slot] = n;
	f->outstanding++;
	f->stats.posted++;
	return true;
}

static void fill(struct fabflow *f, int64_t now_ns)
{
	bool any = false;

	while (f->outstanding < f->cfg.depth && !over(f, now_ns) &&
	       post(f, now_ns))
		any = true;
	if (any)
		(void)qp_ring(f->qp[0]);
}

static void on_start(struct world_event *e, int64_t now_ns)
{
	struct fabflow *f = CONTAINER_OF(e, struct fabflow, start);

	if (f->cfg.interval_ns)
		world_at(f->src->node.fab->world, &f->tick, now_ns);
	else
		fill(f, now_ns);
	fabhost_kick(f->src);
}

static void on_tick(struct world_event *e, int64_t now_ns)
{
	struct fabflow *f = CONTAINER_OF(e, struct fabflow, tick);

	if (over(f, now_ns))
		return;
	if (post(f, now_ns))
		(void)qp_ring(f->qp[0]);
	world_at(f->src->node.fab->world, &f->tick,
		 now_ns + f->cfg.interval_ns);
	fabhost_kick(f->src);
}

static void on_repost(struct world_event *e, int64_t now_ns)
{
	struct fabflow *f = CONTAINER_OF(e, struct fabflow, repost);

	if (f->owed && post_recv(f))
		f->owed--;
	(void)qp_ring(f->qp[1]);
	if (f->owed)
		world_at(f->src->node.fab->world, &f->repost,
			 now_ns + f->cfg.receive_delay_ns);
	fabhost_kick(f->dst);
}

/* ---- completions ---- */

static void sent(struct fabflow *f, const struct wc *wc, int64_t now_ns)
{
	struct fabflow_stats *s = &f->stats;
	int64_t took = now_ns - f->posted_ns[f->head];
	uint32_t n = f->posted_bytes[f->head];

	f->head = (f->head + 1) % f->ring;
	f->outstanding--;
	if (wc->status != WC_SUCCESS) {
		s->failed++;
		return;
	}
	if (!s->completed++)
		s->first_ns = now_ns;
	s->last_ns = now_ns;
	s->bytes += n;
	s->time_ns += took;
	if (took > s->time_max_ns)
		s->time_max_ns = took;
}

static void received(struct fabflow *f, const struct wc *wc, int64_t now_ns)
{
	struct world *w = f->src->node.fab->world;

	if (wc->status != WC_SUCCESS)
		return;
	f->stats.delivered += wc->byte_len;
	if (!f->cfg.receive_delay_ns) {
		(void)post_recv(f);
		return;
	}
	f->owed++;
	if (!world_scheduled(&f->repost))
		world_at(w, &f->repost, now_ns + f->cfg.receive_delay_ns);
}

/* True: there were some. */
static bool poll_end(struct fabflow *f, int end, int64_t now_ns)
{
	struct wc wc[POLL_MAX];
	int n = cq_poll(f->cq[end], POLL_MAX, wc);

	for (int i = 0; i < n; i++) {
		if (end == 0)
			sent(f, &wc[i], now_ns);
		else
			received(f, &wc[i], now_ns);
	}
	return n > 0;
}

void fabflow_on_comp(void *flow, struct fabhost *h, int64_t now_ns)
{
	struct fabflow *f = flow;
	int end = h == f->dst; /* a host is not its own peer */

	cq_arm(f->cq[end], false);
	while (poll_end(f, end, now_ns))
		;
	if (end == 0 && !f->cfg.interval_ns && !f->stats.failed)
		fill(f, now_ns);
}

uint64_t fabflow_rate(const struct fabflow *f)
{
	return qp_rate_bps(f->qp[0]);
}

/* ---- life ---- */

static int make_end(struct fabflow *f, int i, struct fabhost *h,
		    const struct fabflow_end *end)
{
	struct qp_init init = {
		.type = f->cfg.type,
		.cap = { .max_send_wr = f->ring,
			 .max_recv_wr = f->cfg.receives,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct qp_cap cap;
	int rc = cq_create(h->hca, f->ring + f->cfg.receives + 1, f, &f->cq[i]);

	if (rc)
		return rc;
	init.send_cq = init.recv_cq = f->cq[i];
	return qp_create(end->pd, &init, &cap, &f->qp[i]);
}

static int connect(struct fabflow *f, int i, const struct gid *to)
{
	const struct fabflow_config *c = &f->cfg;
	bool rc = c->type == QP_TYPE_RC;
	struct qp_attr a = {
		.state = QP_STATE_INIT,
		.port_num = 1,
		.access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
			  ACCESS_REMOTE_ATOMIC,
		.path_mtu = c->mtu,
		.dest_qpn = qp_num(f->qp[!i]),
		.rq_psn = i ? 1000 : 2000,
		.sq_psn = i ? 2000 : 1000,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = c->min_rnr_timer,
		.timeout = c->timeout,
		.retry_cnt = c->retry_cnt,
		.rnr_retry = c->rnr_retry,
		.ah = { .is_global = true,
			.dgid = *to,
			.traffic_class = (uint8_t)(c->prio << 5),
			.hop_limit = 64,
			.sl = c->prio,
			.port_num = 1 },
	};
	int err;

	if (!rc)
		a.access = ACCESS_REMOTE_WRITE;
	err = qp_modify(f->qp[i], &a,
			QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT |
				QP_ATTR_ACCESS_FLAGS,
			0);
	if (err)
		return err;
	a.state = QP_STATE_RTR;
	err = qp_modify(
		f->qp[i], &a,
		QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU |
			QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
			(rc ? QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER
			    : 0),
		0);
	if (err)
		return err;
	a.state = QP_STATE_RTS;
	return qp_modify(
		f->qp[i], &a,
		QP_ATTR_STATE | QP_ATTR_SQ_PSN |
			(rc ? QP_ATTR_MAX_QP_RD_ATOMIC | QP_ATTR_TIMEOUT |
					 QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY
			    : 0),
		0);
}

static int make(struct fabflow *f, const struct fabflow_end *src_end,
		const struct fabflow_end *dst_end)
{
	const struct sim_alloc *mem = f->src->node.fab->world->mem;
	int rc;

	f->posted_ns = mem->alloc(mem->ctx, f->ring * sizeof(f->posted_ns[0]),
				  _Alignof(int64_t));
	f->posted_bytes =
		mem->alloc(mem->ctx, f->ring * sizeof(f->posted_bytes[0]),
			   _Alignof(uint32_t));
	if (!f->posted_ns || !f->posted_bytes)
		return -ENOMEM;
	rc = make_end(f, 0, f->src, src_end);
	if (!rc)
		rc = make_end(f, 1, f->dst, dst_end);
	if (!rc)
		rc = connect(f, 0, &f->dst->cfg.gid);
	if (!rc)
		rc = connect(f, 1, &f->src->cfg.gid);
	for (uint32_t i = 0; !rc && i < f->cfg.receives; i++)
		if (!post_recv(f))
			rc = -ENOMEM;
	if (!rc) {
		cq_arm(f->cq[0], false);
		cq_arm(f->cq[1], false);
	}
	return rc;
}

int fabflow_init(struct fabflow *f, const struct fabflow_config *cfg,
		 uint32_t index, struct fabhost *src,
		 const struct fabflow_end *src_end, struct fabhost *dst,
		 const struct fabflow_end *dst_end)
{
	struct world *w = src->node.fab->world;
	int rc;

	*f = (struct fabflow){
		.src = src, .dst = dst, .cfg = *cfg, .index = index
	};
	f->rng = world_rng(w, "flow");
	f->rng.s[0] ^= index * UINT64_C(0x9e3779b97f4a7c15);
	for (uint32_t i = 0; i < cfg->sizes; i++)
		f->weights += cfg->size[i].weight;
	f->ring = cfg->interval_ns ? RING_MAX : cfg->depth;
	f->lkey = mr_key(src_end->mr);
	f->rkey = f->recv_lkey = mr_key(dst_end->mr);
	world_event_init(&f->start, on_start);
	world_event_init(&f->tick, on_tick);
	world_event_init(&f->repost, on_repost);
	rc = make(f, src_end, dst_end);
	if (rc) {
		fabflow_fini(f);
		return rc;
	}
	world_at(w, &f->start, cfg->start_ns);
	return 0;
}

void fabflow_fini(struct fabflow *f)
{
	struct world *w = f->src->node.fab->world;

	world_cancel(w, &f->start);
	world_cancel(w, &f->tick);
	world_cancel(w, &f->repost);
	if (f->posted_ns)
		w->mem->free(w->mem->ctx, f->posted_ns);
	if (f->posted_bytes)
		w->mem->free(w->mem->ctx, f->posted_bytes);
	f->posted_ns = NULL;
	f->posted_bytes = NULL;
}
