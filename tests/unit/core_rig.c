/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>

#include <cmocka.h>

/* ---- memory ---- */

static void *op_alloc(void *ctx, size_t size, size_t align)
{
	struct rig_host *h = ctx;
	uintptr_t at;
	void *raw;

	if (h->alloc_fails_after == 0)
		return NULL;
	if (h->alloc_fails_after > 0)
		h->alloc_fails_after--;
	/* calloc: large rings cost no pages until they are used. */
	raw = calloc(1, size + align + sizeof(raw));
	if (!raw)
		return NULL;
	at = ((uintptr_t)raw + sizeof(raw) + align - 1) & ~(align - 1);
	memcpy((uint8_t *)at - sizeof(raw), &raw, sizeof(raw));
	h->allocs++;
	h->alloc_bytes += size;
	return (void *)at;
}

static void op_free(void *ctx, void *p)
{
	struct rig_host *h = ctx;
	void *raw;

	memcpy(&raw, (uint8_t *)p - sizeof(raw), sizeof(raw));
	h->allocs--;
	free(raw);
}

static uint8_t *reach(struct rig_host *h, uint64_t va, size_t len)
{
	if (va < RIG_VA || va - RIG_VA > RIG_MEM_BYTES ||
	    len > RIG_MEM_BYTES - (va - RIG_VA))
		return NULL;
	if (va < h->fault_hi && va + len > h->fault_lo)
		return NULL;
	return h->mem + (va - RIG_VA);
}

static int op_read(void *ctx, void *dst, uint64_t va, size_t len)
{
	const uint8_t *p = reach(ctx, va, len);

	if (!p)
		return -EFAULT;
	((struct rig_host *)ctx)->read_bytes += len;
	memcpy(dst, p, len);
	return 0;
}

static int op_write(void *ctx, uint64_t va, const void *src, size_t len)
{
	uint8_t *p = reach(ctx, va, len);

	if (!p)
		return -EFAULT;
	((struct rig_host *)ctx)->written_bytes += len;
	memcpy(p, src, len);
	return 0;
}

static int op_cmp_swap(void *ctx, uint64_t va, uint64_t compare, uint64_t swap,
		       uint64_t *ret_orig)
{
	uint8_t *p = reach(ctx, va, 8);

	if (!p)
		return -EFAULT;
	memcpy(ret_orig, p, 8);
	if (*ret_orig == compare)
		memcpy(p, &swap, 8);
	return 0;
}

static int op_fetch_add(void *ctx, uint64_t va, uint64_t add,
			uint64_t *ret_orig)
{
	uint8_t *p = reach(ctx, va, 8);
	uint64_t sum;

	if (!p)
		return -EFAULT;
	memcpy(ret_orig, p, 8);
	sum = *ret_orig + add;
	memcpy(p, &sum, 8);
	return 0;
}

static const struct hca_ops ops = {
	.alloc = op_alloc,
	.free = op_free,
	.mem_read = op_read,
	.mem_write = op_write,
	.mem_cmp_swap = op_cmp_swap,
	.mem_fetch_add = op_fetch_add,
};

uint8_t *rig_bytes(struct rig_host *h, uint64_t va)
{
	assert_true(va >= RIG_VA && va - RIG_VA < RIG_MEM_BYTES);
	return h->mem + (va - RIG_VA);
}

/* ---- the desk ---- */

static void host_open(struct rig *r, int i, const struct hca_config *cfg)
{
	struct rig_host *h = &r->h[i];
	struct hca_config c = cfg ? *cfg : (struct hca_config){ 0 };
	struct gid_entry e = { .valid = true,
			       .netdev = 2,
			       .vlan = 0xffff,
			       .mtu_bytes = RIG_NETDEV_MTU };

	h->rig = r;
	h->alloc_fails_after = -1;
	h->gid = gid_from_v4(0x0a000001u + (uint32_t)i);
	h->mem = calloc(1, RIG_MEM_BYTES);
	assert_non_null(h->mem);
	if (!c.limits.max_qp)
		c.limits = hca_limits_default;
	if (!c.link_layer)
		c.link_layer = &link_layer_rocev2;
	if (!c.node_guid)
		c.node_guid = 0x0200000000000001ull + (uint64_t)i;
	if (!c.qpn_bits) {
		c.qpn_bits = 16;
		c.qpn_base = (uint32_t)(i + 1) << 16;
	}
	c.seed += (uint64_t)i + 1;
	h->hca = hca_new(&c, &ops, h, 0);
	assert_non_null(h->hca);
	e.gid = h->gid;
	assert_int_equal(hca_set_gid(h->hca, 0, &e), 0);
	e.gid = (struct gid){ .raw = { 0xfd, [15] = (uint8_t)(i + 1) } };
	assert_int_equal(hca_set_gid(h->hca, 1, &e), 0);
	hca_set_port(h->hca, PORT_STATE_ACTIVE, RIG_NETDEV_MTU);
}

void rig_open(struct rig *r, const struct rig_config *cfg)
{
	memset(r, 0, sizeof(*r));
	for (int i = 0; i < 2; i++)
		host_open(r, i, cfg ? &cfg->hca : NULL);
}

static void close_both(struct rig *r, bool force)
{
	for (int i = 0; i < 2; i++) {
		hca_free(r->h[i].hca, force);
		assert_int_equal(r->h[i].allocs, 0);
		free(r->h[i].mem);
	}
}

void rig_close(struct rig *r)
{
	close_both(r, false);
}

void rig_close_force(struct rig *r)
{
	close_both(r, true);
}

static struct rx_frame heard(const struct tx_frame *tx)
{
	return (struct rx_frame){ .pkt = tx->pkt,
				  .len_bytes = tx->len_bytes,
				  .src = tx->path->sgid,
				  .dst = tx->path->dgid,
				  .tos = tx->tos,
				  .ttl = tx->path->hop_limit,
				  .flow_label = tx->path->flow_label,
				  .sport = tx->path->sport };
}

static struct rig_host *at(struct rig *r, const struct gid *g)
{
	for (int i = 0; i < 2; i++)
		for (uint32_t k = 0; k < 2; k++)
			if (gid_eq(&hca_gid(r->h[i].hca, k)->gid, g))
				return &r->h[i];
	return NULL;
}

static bool carry(struct rig *r, int from)
{
	static uint8_t buf[PKT_MAX + ICRC_BYTES];
	struct tx_frame tx = { .pkt = buf };
	enum rig_fate fate = RIG_DELIVER;
	struct rig_host *to;
	struct rx_frame rx;

	if (!hca_tx(r->h[from].hca, 0xffff, &tx, r->now_ns))
		return false;
	r->frames++;
	rx = heard(&tx);
	to = at(r, &rx.dst);
	if (r->filter)
		fate = r->filter(r, from, &rx, buf);
	hca_tx_done(r->h[from].hca, &tx);
	if (to && fate == RIG_DELIVER)
		hca_rx(to->hca, &rx, r->now_ns);
	return true;
}

void rig_pump(struct rig *r)
{
	unsigned limit = 10000000;
	bool moved;

	do {
		moved = false;
		for (int i = 0; i < 2; i++) {
			hca_doorbells(r->h[i].hca, r->now_ns);
			moved |= carry(r, i);
		}
		assert_true(limit-- > 0);
	} while (moved);
	for (int i = 0; i < 2; i++)
		assert_false(hca_tx_pending(r->h[i].hca));
}

void rig_run(struct rig *r, int64_t ns)
{
	int64_t end = r->now_ns + ns;

	for (;;) {
		int64_t d0, d1, next;

		rig_pump(r);
		d0 = hca_deadline(r->h[0].hca);
		d1 = hca_deadline(r->h[1].hca);
		next = d0 < d1 ? d0 : d1;
		if (next > end)
			break;
		if (next > r->now_ns)
			r->now_ns = next;
		else
			r->now_ns++;
		hca_advance(r->h[0].hca, r->now_ns);
		hca_advance(r->h[1].hca, r->now_ns);
	}
	r->now_ns = end;
}

/* ---- pairs ---- */

static void fill_cap(struct qp_cap *c)
{
	if (!c->max_send_wr)
		c->max_send_wr = 16;
	if (!c->max_recv_wr)
		c->max_recv_wr = 16;
	if (!c->max_send_sge)
		c->max_send_sge = 4;
	if (!c->max_recv_sge)
		c->max_recv_sge = 4;
	if (!c->max_inline_bytes)
		c->max_inline_bytes = 64;
}

void rig_end_open(struct rig_end *e, struct rig_host *h,
		  const struct rig_pair_config *cfg)
{
	struct mr_attr ma = { .va = RIG_VA,
			      .iova = RIG_VA,
			      .len_bytes = RIG_MEM_BYTES,
			      .access = ACCESS_LOCAL_WRITE |
					ACCESS_REMOTE_WRITE |
					ACCESS_REMOTE_READ |
					ACCESS_REMOTE_ATOMIC };
	struct srq_attr sa = { .max_wr = cfg->srq_wr, .max_sge = 4 };
	struct qp_init qi = { .type = cfg->type,
			      .cap = cfg->cap,
			      .sq_sig_all = cfg->sq_sig_all,
			      .user = e };
	uint32_t cqe = cfg->cqe ? cfg->cqe : 256;

	memset(e, 0, sizeof(*e));
	e->host = h;
	assert_int_equal(pd_create(h->hca, &e->pd), 0);
	assert_int_equal(cq_create(h->hca, cqe, e, &e->scq), 0);
	assert_int_equal(cq_create(h->hca, cqe, e, &e->rcq), 0);
	assert_int_equal(mr_reg(e->pd, &ma, &e->mr), 0);
	if (cfg->srq_wr && h == &h->rig->h[1])
		assert_int_equal(srq_create(e->pd, &sa, e, &e->srq), 0);
	fill_cap(&qi.cap);
	qi.send_cq = e->scq;
	qi.recv_cq = e->rcq;
	qi.srq = e->srq;
	assert_int_equal(qp_create(e->pd, &qi, &e->cap, &e->qp), 0);
}

void rig_end_close(struct rig_end *e)
{
	assert_int_equal(qp_destroy(e->qp), 0);
	if (e->srq)
		assert_int_equal(srq_destroy(e->srq), 0);
	assert_int_equal(mr_dereg(e->mr), 0);
	assert_int_equal(cq_destroy(e->scq), 0);
	assert_int_equal(cq_destroy(e->rcq), 0);
	assert_int_equal(pd_destroy(e->pd), 0);
}

static uint32_t attrs_init(enum qp_type type, struct qp_attr *a)
{
	a->port_num = 1;
	a->access =
		ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;
	a->qkey = RIG_QKEY;
	return QP_ATTR_PKEY_INDEX | QP_ATTR_PORT |
	       (type == QP_TYPE_UD ? QP_ATTR_QKEY : QP_ATTR_ACCESS_FLAGS);
}

static uint32_t attrs_rtr(enum qp_type type, const struct rig_end *peer,
			  const struct rig_pair_config *cfg, struct qp_attr *a)
{
	a->ah.is_global = true;
	a->ah.dgid = peer->host->gid;
	a->ah.port_num = 1;
	a->path_mtu = cfg->mtu ? cfg->mtu : MTU_1024;
	a->dest_qpn = qp_num(peer->qp);
	a->rq_psn = cfg->sq_psn;
	a->max_dest_rd_atomic = 4;
	a->min_rnr_timer = 12;
	if (type == QP_TYPE_UD)
		return 0;
	return QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
	       QP_ATTR_RQ_PSN |
	       (type == QP_TYPE_RC
			? QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER
			: 0);
}

static uint32_t attrs_rts(enum qp_type type, const struct rig_pair_config *cfg,
			  struct qp_attr *a)
{
	a->sq_psn = cfg->sq_psn;
	a->timeout = 14;
	a->retry_cnt = 7;
	a->rnr_retry = 7;
	a->max_rd_atomic = 4;
	return QP_ATTR_SQ_PSN |
	       (type == QP_TYPE_RC
			? QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT |
				  QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC
			: 0);
}

uint32_t rig_attrs(enum qp_type type, enum qp_state to,
		   const struct rig_end *peer,
		   const struct rig_pair_config *cfg, struct qp_attr *a)
{
	uint32_t mask = 0;

	memset(a, 0, sizeof(*a));
	a->state = to;
	if (to == QP_STATE_INIT)
		mask = attrs_init(type, a);
	else if (to == QP_STATE_RTR)
		mask = attrs_rtr(type, peer, cfg, a);
	else if (to == QP_STATE_RTS)
		mask = attrs_rts(type, cfg, a);
	return mask | QP_ATTR_STATE;
}

void rig_walk(struct rig_end *e, enum qp_state to, const struct rig_end *peer,
	      const struct rig_pair_config *cfg)
{
	enum qp_state upto = to > QP_STATE_RTS ? QP_STATE_RTS : to;

	for (int s = QP_STATE_INIT; s <= (int)upto; s++) {
		struct qp_attr a;
		uint32_t mask =
			rig_attrs(cfg->type, (enum qp_state)s, peer, cfg, &a);

		assert_int_equal(
			qp_modify(e->qp, &a, mask, e->host->rig->now_ns), 0);
	}
	if (to == QP_STATE_SQE) /* no modify leads there */
		fail();
	if (to > QP_STATE_RTS)
		assert_int_equal(rig_state(e, to), 0);
	assert_int_equal(qp_state(e->qp), to);
}

int rig_state(struct rig_end *e, enum qp_state to)
{
	struct qp_attr a = { .state = to };

	return qp_modify(e->qp, &a, QP_ATTR_STATE, e->host->rig->now_ns);
}

void rig_pair_open(struct rig_pair *p, struct rig *r,
		   const struct rig_pair_config *cfg)
{
	enum qp_state to = cfg->stop ? cfg->stop : QP_STATE_RTS;

	p->rig = r;
	for (int i = 0; i < 2; i++)
		rig_end_open(&p->e[i], &r->h[i], cfg);
	for (int i = 0; i < 2; i++)
		rig_walk(&p->e[i], to, &p->e[!i], cfg);
}

void rig_pair_close(struct rig_pair *p)
{
	for (int i = 0; i < 2; i++)
		rig_end_close(&p->e[i]);
}

struct ah *rig_ah(struct rig_end *from, const struct rig_host *to)
{
	struct ah_attr a = { .is_global = true,
			     .dgid = to->gid,
			     .port_num = 1 };
	struct ah *ah = NULL;

	assert_int_equal(ah_create(from->pd, &a, &ah), 0);
	return ah;
}

int rig_post_recv(struct rig_end *e, uint64_t wr_id, uint32_t off, uint32_t len)
{
	struct sge sge = { .addr = RIG_VA + off,
			   .len_bytes = len,
			   .lkey = mr_key(e->mr) };
	struct recv_wr wr = { .wr_id = wr_id, .sge = &sge, .num_sge = len > 0 };
	int rc;

	if (e->srq)
		return srq_post_recv(e->srq, &wr);
	rc = qp_post_recv(e->qp, &wr);
	if (!rc)
		qp_ring(e->qp);
	return rc;
}

int rig_post_send(struct rig_end *e, struct send_wr wr, uint32_t off,
		  uint32_t len)
{
	struct sge sge = { .addr = RIG_VA + off,
			   .len_bytes = len,
			   .lkey = mr_key(e->mr) };
	int rc;

	wr.sge = &sge;
	wr.num_sge = len > 0;
	rc = qp_post_send(e->qp, &wr);
	if (!rc)
		qp_ring(e->qp);
	return rc;
}

struct wc rig_poll(struct cq *cq)
{
	struct wc wc = { 0 };

	assert_int_equal(cq_poll(cq, 1, &wc), 1);
	return wc;
}

bool rig_empty(struct cq *cq)
{
	struct wc wc;

	return cq_poll(cq, 1, &wc) == 0;
}

struct hca_event rig_event(struct rig_host *h)
{
	struct hca_event ev = { 0 };

	assert_true(hca_event_next(h->hca, &ev));
	return ev;
}

bool rig_no_event(struct rig_host *h)
{
	struct hca_event ev;

	return !hca_event_next(h->hca, &ev);
}

void rig_inject_raw(struct rig_host *to, const uint8_t *bytes, uint32_t len)
{
	const struct rig_host *from = &to->rig->h[to == &to->rig->h[0]];
	struct rx_frame rx = { .pkt = bytes,
			       .len_bytes = len,
			       .src = from->gid,
			       .dst = to->gid,
			       .ttl = 64 };

	hca_rx(to->hca, &rx, to->rig->now_ns);
}

void rig_inject(struct rig_host *to, const struct pkt *pkt)
{
	uint8_t buf[PKT_MAX] = { 0 };
	struct pkt p = *pkt;
	size_t hdr;

	p.bth.pad = (uint8_t)pkt_pad(p.payload_bytes);
	hdr = pkt_encode_headers(&p, buf);
	if (p.payload_bytes)
		memcpy(buf + hdr, p.payload, p.payload_bytes);
	rig_inject_raw(to, buf, (uint32_t)hdr + p.payload_bytes + p.bth.pad);
}

bool rig_tx(struct rig_host *h, uint32_t class_mask, struct rig_frame *ret)
{
	struct tx_frame tx = { .pkt = ret->buf };

	hca_doorbells(h->hca, h->rig->now_ns);
	if (!hca_tx(h->hca, class_mask, &tx, h->rig->now_ns))
		return false;
	ret->path = *tx.path;
	ret->tos = tx.tos;
	assert_int_equal(pkt_decode(&ret->pkt, tx.pkt, tx.len_bytes), PKT_OK);
	assert_int_equal(ret->pkt.bth.dest_qpn, tx.dest_qpn);
	hca_tx_done(h->hca, &tx);
	return true;
}
