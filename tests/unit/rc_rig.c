/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_rig.c - see rc_rig.h. */
#include "rc_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

struct rig_away { /* where a frame's payload lies in its sender's memory */
	uint32_t n;
	struct tx_ref ref[TX_REFS_MAX];
};

struct rig_frame {
	struct dlist node;
	int64_t at_ns;
	int to;
	struct rx_frame f;
	struct rig_away away;
	uint8_t bytes[];
};

/* ---- memory ---- */

static void *ops_alloc(void *ctx, size_t size, size_t align)
{
	struct rig_ctx *c = ctx;
	void *p = NULL;

	if (align < sizeof(void *))
		align = sizeof(void *);
	assert_int_equal(posix_memalign(&p, align, size), 0);
	memset(p, 0, size);
	c->r->live++;
	return p;
}

static void ops_free(void *ctx, void *p)
{
	struct rig_ctx *c = ctx;

	if (p)
		c->r->live--;
	free(p);
}

static uint8_t *at(struct rig_ctx *c, uint64_t va, size_t len)
{
	struct rig_host *h = &c->r->h[c->h];

	if (va < RIG_VA || va - RIG_VA + len > RIG_MEM_BYTES)
		return NULL;
	if (va < h->hole_hi && va + len > h->hole_lo)
		return NULL;
	return h->mem + (va - RIG_VA);
}

static int ops_read(void *ctx, void *dst, uint64_t va, size_t len)
{
	uint8_t *p = at(ctx, va, len);

	if (!p)
		return -EFAULT;
	memcpy(dst, p, len);
	return 0;
}

static int ops_write(void *ctx, uint64_t va, const void *src, size_t len)
{
	uint8_t *p = at(ctx, va, len);

	if (!p)
		return -EFAULT;
	memcpy(p, src, len);
	return 0;
}

static int ops_cmp_swap(void *ctx, uint64_t va, uint64_t compare, uint64_t swap,
			uint64_t *ret)
{
	uint8_t *p = at(ctx, va, 8);

	if (!p)
		return -EFAULT;
	memcpy(ret, p, 8);
	if (*ret == compare)
		memcpy(p, &swap, 8);
	return 0;
}

static int ops_fetch_add(void *ctx, uint64_t va, uint64_t add, uint64_t *ret)
{
	uint8_t *p = at(ctx, va, 8);
	uint64_t sum;

	if (!p)
		return -EFAULT;
	memcpy(ret, p, 8);
	sum = *ret + add;
	memcpy(p, &sum, 8);
	return 0;
}

static bool copy_local(struct rig_ctx *c, const struct direct_req *q,
		       uint8_t *peer)
{
	if (q->inline_bytes) {
		memcpy(peer, q->inline_bytes, q->n);
		return true;
	}
	for (uint32_t i = 0; i < q->num_local; i++) {
		const struct direct_mem *m = &q->local[i];
		uint8_t *here = at(c, m->va, m->len_bytes);

		if (!here)
			return false;
		if (q->read)
			memcpy(here, peer, m->len_bytes);
		else
			memcpy(peer, here, m->len_bytes);
		peer += m->len_bytes;
	}
	return true;
}

static enum direct_verdict ops_direct(void *ctx, const struct direct_req *q)
{
	struct rig_ctx *c = ctx, *other = &c->r->ctx[!c->h];
	uint64_t va = RIG_VA;
	uint8_t *peer;

	if (c->r->refuse_direct ||
	    !hca_direct_check(c->r->h[!c->h].hca, q, &va))
		return DIRECT_NOT_NOW;
	peer = at(other, va + q->off, q->n);
	if (!peer || !copy_local(c, q, peer))
		return DIRECT_NOT_NOW;
	c->r->copies++;
	return DIRECT_DONE;
}

static void ops_path_out(void *ctx, struct path *p, uint32_t dest_qpn)
{
	struct rig_ctx *c = ctx;

	(void)dest_qpn;
	if (!c->r->conf.frame_bytes)
		return;
	p->out = 1;
	p->frame_bytes = c->r->conf.frame_bytes;
}

/* Of the other host's memory, as it is now. */
static int ops_fetch(void *ctx, uint64_t va, const void *away, uint32_t off,
		     size_t len)
{
	struct rig_ctx *c = ctx, *other = &c->r->ctx[!c->h];
	const struct rig_away *a = away;
	uint8_t *to = at(c, va, len);

	if (c->r->lose_refs) {
		c->r->lose_refs--;
		return -EAGAIN;
	}
	for (uint32_t i = 0; to && i < a->n && len; i++) {
		uint64_t have = a->ref[i].len_bytes;
		size_t n;
		uint8_t *from;

		if (off >= have) {
			off -= (uint32_t)have;
			continue;
		}
		n = have - off < len ? have - off : len;
		from = at(other, a->ref[i].va + off, n);
		if (!from)
			return -EAGAIN;
		memcpy(to, from, n);
		to += n;
		len -= n;
		off = 0;
	}
	return to ? 0 : -EFAULT;
}

static void ops_void(void *ctx, uint32_t qpn)
{
	(void)qpn;
	((struct rig_ctx *)ctx)->r->voided++;
}

static const struct hca_ops rig_ops = {
	.alloc = ops_alloc,
	.free = ops_free,
	.mem_read = ops_read,
	.mem_write = ops_write,
	.mem_cmp_swap = ops_cmp_swap,
	.mem_fetch_add = ops_fetch_add,
	.direct = ops_direct,
	.path_out = ops_path_out,
	.mem_fetch = ops_fetch,
	.refs_void = ops_void,
};

/* ---- making ---- */

static struct gid host_gid(int h)
{
	return gid_from_v4(0x0a000001u + (uint32_t)h);
}

static void defaults(struct rig_conf *c)
{
	if (!c->mtu)
		c->mtu = MTU_1024;
	if (!c->timeout)
		c->timeout = 14;
	else if (c->timeout == 255)
		c->timeout = 0;
	if (!c->max_rd_atomic)
		c->max_rd_atomic = 4;
	else if (c->max_rd_atomic == 255)
		c->max_rd_atomic = 0;
	if (!c->max_dest_rd_atomic)
		c->max_dest_rd_atomic = 4;
	else if (c->max_dest_rd_atomic == 255)
		c->max_dest_rd_atomic = 0;
	if (!c->access)
		c->access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
			    ACCESS_REMOTE_ATOMIC;
	if (c->access == 1u << 31)
		c->access = 0;
	if (!c->max_wr)
		c->max_wr = 64;
	if (!c->burst_pkts)
		c->burst_pkts = 8;
}

static void make_hca(struct rig *r, int h)
{
	struct rig_ctx *ctx = &r->ctx[h];
	struct hca_config cfg = {
		.limits = hca_limits_default,
		.link_layer = &link_layer_rocev2,
		.seed = 1 + (uint64_t)h,
		.node_guid = 0x1000 + (uint64_t)h,
		.qpn_base = 0x10000u * (uint32_t)(h + 1),
		.qpn_bits = 16,
		.dest_budget_bytes = r->conf.dest_budget,
		.read_budget_bytes = r->conf.read_budget,
		.burst_pkts = r->conf.burst_pkts,
		.direct_bytes = r->conf.direct_bytes,
		.cnp_sl = 6,
		.cnp_dscp = 48,
	};
	struct gid_entry e = { .valid = true,
			       .gid = host_gid(h),
			       .netdev = 1,
			       .vlan = 0xffff,
			       .mtu_bytes = 9000 };

	if (r->conf.dcqcn) {
		cfg.cc = &cc_dcqcn;
		cfg.cc_params = *r->conf.dcqcn;
	}
	*ctx = (struct rig_ctx){ .r = r, .h = h };
	r->h[h].hca = hca_new(&cfg, &rig_ops, ctx, 0);
	assert_non_null(r->h[h].hca);
	assert_int_equal(hca_set_gid(r->h[h].hca, 0, &e), 0);
	hca_set_port(r->h[h].hca, PORT_STATE_ACTIVE, 9000);
}

static struct qp *make_qp(struct rig *r, int i)
{
	struct rig_host *h = &r->h[i];
	struct qp_init qi = {
		.type = QP_TYPE_RC,
		.send_cq = h->scq,
		.recv_cq = h->rcq,
		.srq = h->srq,
		.cap = { .max_send_wr = r->conf.max_wr,
			 .max_recv_wr = h->srq ? 0 : r->conf.max_wr,
			 .max_send_sge = 4,
			 .max_recv_sge = 4,
			 .max_inline_bytes = 64 },
	};
	struct qp_cap cap;
	struct qp *qp;

	assert_int_equal(qp_create(h->pd, &qi, &cap, &qp), 0);
	return qp;
}

static void make_objects(struct rig *r, int i)
{
	struct rig_host *h = &r->h[i];
	struct mr_attr ma = { .va = RIG_VA,
			      .iova = RIG_IOVA,
			      .len_bytes = RIG_MEM_BYTES,
			      .access = ACCESS_LOCAL_WRITE |
					ACCESS_REMOTE_WRITE |
					ACCESS_REMOTE_READ |
					ACCESS_REMOTE_ATOMIC };
	struct srq_attr sa = { .max_wr = r->conf.max_wr, .max_sge = 4 };

	/* untouched pages cost nothing */
	h->mem = mmap(NULL, RIG_MEM_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(h->mem != MAP_FAILED);
	assert_int_equal(pd_create(h->hca, &h->pd), 0);
	assert_int_equal(mr_reg(h->pd, &ma, &h->mr), 0);
	assert_int_equal(cq_create(h->hca, 4 * r->conf.max_wr, NULL, &h->scq),
			 0);
	assert_int_equal(cq_create(h->hca, 4 * r->conf.max_wr, NULL, &h->rcq),
			 0);
	if (r->conf.use_srq) {
		assert_int_equal(pd_create(h->hca, &h->srq_pd), 0);
		assert_int_equal(mr_reg(h->srq_pd, &ma, &h->srq_mr), 0);
		assert_int_equal(srq_create(h->srq_pd, &sa, NULL, &h->srq), 0);
	}
	h->qp = make_qp(r, i);
}

static void connect_qp(struct rig *r, int i, struct qp *qp, struct qp *peer)
{
	const struct rig_conf *c = &r->conf;
	struct qp_attr a = { .state = QP_STATE_INIT,
			     .port_num = 1,
			     .access = c->access };

	assert_int_equal(qp_modify(qp, &a,
				   QP_ATTR_STATE | QP_ATTR_PKEY_INDEX |
					   QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS,
				   r->now_ns),
			 0);
	a.state = QP_STATE_RTR;
	a.ah = (struct ah_attr){ .is_global = true,
				 .dgid = host_gid(!i),
				 .port_num = 1 };
	a.path_mtu = c->mtu;
	a.dest_qpn = qp_num(peer);
	a.rq_psn = c->sq_psn[!i];
	a.max_dest_rd_atomic = c->max_dest_rd_atomic;
	a.min_rnr_timer = c->min_rnr_timer;
	assert_int_equal(qp_modify(qp, &a,
				   QP_ATTR_STATE | QP_ATTR_AV |
					   QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
					   QP_ATTR_RQ_PSN |
					   QP_ATTR_MAX_DEST_RD_ATOMIC |
					   QP_ATTR_MIN_RNR_TIMER,
				   r->now_ns),
			 0);
	qp_set_direct(qp, c->direct);
	if (i == 1 && c->rtr_only)
		return;
	a.state = QP_STATE_RTS;
	a.timeout = c->timeout;
	a.retry_cnt = c->retry_cnt;
	a.rnr_retry = c->rnr_retry;
	a.sq_psn = c->sq_psn[i];
	a.max_rd_atomic = c->max_rd_atomic;
	assert_int_equal(qp_modify(qp, &a,
				   QP_ATTR_STATE | QP_ATTR_TIMEOUT |
					   QP_ATTR_RETRY_CNT |
					   QP_ATTR_RNR_RETRY | QP_ATTR_SQ_PSN |
					   QP_ATTR_MAX_QP_RD_ATOMIC,
				   r->now_ns),
			 0);
}

struct rig *rig_new(const struct rig_conf *conf)
{
	struct rig *r = calloc(1, sizeof(*r));
	int i;

	assert_non_null(r);
	r->conf = conf ? *conf : (struct rig_conf){ .retry_cnt = 7 };
	defaults(&r->conf);
	dlist_init(&r->wire);
	for (i = 0; i < 2; i++) {
		make_hca(r, i);
		make_objects(r, i);
	}
	for (i = 0; i < 2; i++)
		connect_qp(r, i, r->h[i].qp, r->h[!i].qp);
	return r;
}

void rig_pair(struct rig *r, struct qp *ret[2])
{
	int i;

	for (i = 0; i < 2; i++)
		ret[i] = make_qp(r, i);
	for (i = 0; i < 2; i++)
		connect_qp(r, i, ret[i], ret[!i]);
}

static void free_wire(struct rig *r)
{
	struct dlist *n;

	while ((n = dlist_first(&r->wire))) {
		dlist_remove(n);
		free(CONTAINER_OF(n, struct rig_frame, node));
	}
}

void rig_free(struct rig *r)
{
	int i;

	free_wire(r);
	for (i = 0; i < 2; i++) {
		struct rig_host *h = &r->h[i];

		if (h->qp)
			assert_int_equal(qp_destroy(h->qp), 0);
		if (h->srq)
			assert_int_equal(srq_destroy(h->srq), 0);
		assert_int_equal(cq_destroy(h->scq), 0);
		assert_int_equal(cq_destroy(h->rcq), 0);
		if (h->mr)
			assert_int_equal(mr_dereg(h->mr), 0);
		if (h->srq_mr)
			assert_int_equal(mr_dereg(h->srq_mr), 0);
		if (h->srq_pd)
			assert_int_equal(pd_destroy(h->srq_pd), 0);
		assert_int_equal(pd_destroy(h->pd), 0);
		hca_free(h->hca, false);
		munmap(h->mem, RIG_MEM_BYTES);
	}
	assert_int_equal(r->live, 0);
	free(r);
}

/* ---- posting ---- */

struct sge rig_sge(struct rig *r, int h, uint32_t off, uint32_t len)
{
	return (struct sge){ .addr = RIG_IOVA + off,
			     .len_bytes = len,
			     .lkey = mr_key(r->h[h].mr) };
}

int rig_post_wr(struct rig *r, int h, const struct send_wr *wr)
{
	int ret = qp_post_send(r->h[h].qp, wr);

	qp_ring(r->h[h].qp);
	return ret;
}

int rig_post(struct rig *r, int h, enum wr_opcode op, uint32_t loff,
	     uint32_t roff, uint32_t len, uint32_t flags, uint64_t wr_id)
{
	struct sge sge = rig_sge(r, h, loff, len);
	struct send_wr wr = { .wr_id = wr_id,
			      .sge = &sge,
			      .num_sge = len ? 1 : 0,
			      .opcode = op,
			      .flags = flags,
			      .remote_addr = RIG_IOVA + roff,
			      .rkey = mr_key(r->h[!h].mr) };

	return rig_post_wr(r, h, &wr);
}

int rig_recv(struct rig *r, int h, uint32_t off, uint32_t len, uint64_t wr_id)
{
	struct sge sge = rig_sge(r, h, off, len);
	struct recv_wr wr = { .wr_id = wr_id,
			      .sge = &sge,
			      .num_sge = len ? 1 : 0 };
	struct rig_host *host = &r->h[h];

	if (host->srq) {
		sge.lkey = mr_key(host->srq_mr);
		return srq_post_recv(host->srq, &wr);
	}
	return qp_post_recv(host->qp, &wr);
}

/* ---- the wire ---- */

static void wire_add(struct rig *r, struct rig_frame *w)
{
	struct dlist *n = r->wire.prev;

	while (n != &r->wire &&
	       CONTAINER_OF(n, struct rig_frame, node)->at_ns > w->at_ns)
		n = n->prev;
	dlist_push_front(n, &w->node);
}

static void wire_put(struct rig *r, int from, const struct tx_frame *t,
		     const struct rig_fate *fate)
{
	struct rig_frame *w = malloc(sizeof(*w) + t->len_bytes);

	assert_non_null(w);
	memcpy(w->bytes, t->pkt, t->len_bytes);
	w->at_ns = r->now_ns + RIG_HOP_NS + fate->delay_ns;
	w->to = !from;
	w->f = (struct rx_frame){ .pkt = w->bytes,
				  .len_bytes = t->len_bytes,
				  .src = t->path->sgid,
				  .dst = t->path->dgid,
				  .tos = fate->ce ? t->tos | ECN_CE : t->tos,
				  .ttl = 64,
				  .sport = t->path->sport };
	if (t->nrefs) {
		w->away.n = t->nrefs;
		memcpy(w->away.ref, t->ref, t->nrefs * sizeof(t->ref[0]));
		w->f.away = &w->away;
		w->f.pkts = t->pkts;
		w->f.payload_bytes = t->payload_bytes;
	}
	wire_add(r, w);
}

static void frame_out(struct rig *r, int from, const struct tx_frame *t)
{
	struct rig_fate fate = { .copies = 1 };
	struct pkt p;
	int i;

	assert_int_equal(pkt_decode(&p, t->pkt, t->len_bytes), PKT_OK);
	if (r->logged < RIG_LOG_MAX) {
		r->log[r->logged] = (struct rig_log){ .from = from,
						      .at_ns = r->now_ns,
						      .pkt = p,
						      .tos = t->tos };
		r->log[r->logged].pkt.payload = NULL;
	}
	r->logged++;
	if (r->conf.no_peer)
		return;
	if (r->fate)
		fate = r->fate(r, from, &p, r->fate_arg);
	for (i = 0; i < fate.copies; i++)
		wire_put(r, from, t, &fate);
}

static void pump(struct rig *r)
{
	static uint8_t buf[PKT_MAX + ICRC_BYTES];
	struct hca_event ev;
	int i;

	for (i = 0; i < 2; i++) {
		struct hca *hca = r->h[i].hca;
		struct tx_frame t = { .pkt = buf };

		hca_doorbells(hca, r->now_ns);
		while (r->h[i].next_tx_ns <= r->now_ns &&
		       hca_tx(hca, 0xffff, &t, r->now_ns)) {
			if (r->conf.tx_gap_ns)
				r->h[i].next_tx_ns =
					r->now_ns + r->conf.tx_gap_ns;
			if (t.nrefs && r->refuse_refs) {
				hca_tx_refused(hca, &t);
			} else {
				r->refs_out += t.nrefs != 0;
				frame_out(r, i, &t);
				hca_tx_done(hca, &t);
			}
			t = (struct tx_frame){ .pkt = buf };
		}
		while (hca_event_next(hca, &ev)) {
			if (ev.kind == HCA_EVENT_ASYNC)
				r->h[i].async_seen |= 1u << ev.type;
		}
	}
}

static void deliver(struct rig *r)
{
	struct dlist *n;

	while ((n = dlist_first(&r->wire))) {
		struct rig_frame *w = CONTAINER_OF(n, struct rig_frame, node);

		if (w->at_ns > r->now_ns)
			return;
		dlist_remove(n);
		hca_rx(r->h[w->to].hca, &w->f, r->now_ns);
		free(w);
		pump(r);
	}
}

static int64_t next_time(struct rig *r)
{
	int64_t t = INT64_MAX;
	int i;

	if (!dlist_empty(&r->wire))
		t = CONTAINER_OF(r->wire.next, struct rig_frame, node)->at_ns;
	for (i = 0; i < 2; i++) {
		int64_t d = hca_deadline(r->h[i].hca);

		if (hca_tx_pending(r->h[i].hca) && r->h[i].next_tx_ns < d)
			d = r->h[i].next_tx_ns;
		if (d < t)
			t = d;
	}
	return t;
}

void rig_run(struct rig *r, int64_t until_ns)
{
	pump(r);
	for (;;) {
		int64_t t = next_time(r);
		int i;

		if (t > until_ns || t == INT64_MAX)
			break;
		if (t > r->now_ns)
			r->now_ns = t;
		deliver(r);
		for (i = 0; i < 2; i++)
			hca_advance(r->h[i].hca, r->now_ns);
		pump(r);
	}
	if (until_ns != INT64_MAX && until_ns > r->now_ns)
		r->now_ns = until_ns;
}

void rig_settle(struct rig *r)
{
	rig_run(r, INT64_MAX);
}

/* ---- looking ---- */

bool rig_wc(struct rig *r, int h, bool send, struct wc *ret)
{
	return cq_poll(send ? r->h[h].scq : r->h[h].rcq, 1, ret) == 1;
}

void rig_expect(struct rig *r, int h, bool send, uint64_t wr_id,
		enum wc_status status)
{
	struct wc wc;

	assert_true(rig_wc(r, h, send, &wc));
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, status);
	assert_int_equal(wc.qpn, qp_num(r->h[h].qp));
}

void rig_expect_none(struct rig *r, int h)
{
	struct wc wc;

	assert_false(rig_wc(r, h, true, &wc));
	assert_false(rig_wc(r, h, false, &wc));
}

bool rig_async(struct rig *r, int h, enum async_type t)
{
	return r->h[h].async_seen >> t & 1;
}

void rig_inject_held(struct rig *r, int h, struct pkt *p, const void *payload,
		     uint32_t len)
{
	uint8_t buf[PKT_MAX];
	struct rx_frame f = { .pkt = buf,
			      .src = host_gid(!h),
			      .dst = host_gid(h),
			      .ttl = 64,
			      .sport = 0xc000 };
	size_t hdr;

	p->bth.opcode = OPCODE(TRANSPORT_RC, p->bth.opcode & 0x1f);
	p->bth.pad = (uint8_t)pkt_pad(len);
	p->bth.pkey = BTH_PKEY_DEFAULT;
	p->bth.dest_qpn = qp_num(r->h[h].qp);
	hdr = pkt_encode_headers(p, buf);
	memset(buf + hdr, 0, len + p->bth.pad);
	if (payload)
		memcpy(buf + hdr, payload, len);
	f.len_bytes = (uint32_t)hdr + len + p->bth.pad;
	hca_rx(r->h[h].hca, &f, r->now_ns);
}

void rig_inject(struct rig *r, int h, struct pkt *p, const void *payload,
		uint32_t len)
{
	rig_inject_held(r, h, p, payload, len);
	pump(r);
}

void rig_inject_aeth(struct rig *r, int h, uint32_t psn, uint8_t syndrome,
		     uint32_t msn)
{
	struct pkt p = { .bth = { .opcode = OP_ACK, .psn = psn_of(psn) },
			 .ext.aeth = { .syndrome = syndrome, .msn = msn } };

	rig_inject(r, h, &p, NULL, 0);
}

static uint32_t log_len(const struct rig *r)
{
	return r->logged < RIG_LOG_MAX ? r->logged : RIG_LOG_MAX;
}

uint32_t rig_count(const struct rig *r, int from, enum op op)
{
	uint32_t i, n = 0;

	for (i = 0; i < log_len(r); i++)
		n += r->log[i].from == from &&
		     opcode_op(r->log[i].pkt.bth.opcode) == op;
	return n;
}

const struct rig_log *rig_nth(const struct rig *r, int from, uint32_t i)
{
	uint32_t k;

	for (k = 0; k < log_len(r); k++) {
		if (r->log[k].from == from && i-- == 0)
			return &r->log[k];
	}
	fail_msg("no such frame");
	return NULL;
}

const struct rig_log *rig_nth_op(const struct rig *r, int from, enum op op,
				 uint32_t i)
{
	uint32_t k;

	for (k = 0; k < log_len(r); k++) {
		if (r->log[k].from == from &&
		    opcode_op(r->log[k].pkt.bth.opcode) == op && i-- == 0)
			return &r->log[k];
	}
	fail_msg("no such frame");
	return NULL;
}

void rig_forget(struct rig *r)
{
	r->logged = 0;
}

static uint8_t pattern(uint32_t i, uint32_t seed)
{
	return (uint8_t)((i * 2654435761u + seed * 40503u) >> 13);
}

void rig_fill(struct rig *r, int h, uint32_t off, uint32_t len, uint32_t seed)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		r->h[h].mem[off + i] = pattern(i, seed);
}

bool rig_same(struct rig *r, int h, uint32_t off, uint32_t len, uint32_t seed)
{
	uint32_t i;

	for (i = 0; i < len; i++) {
		if (r->h[h].mem[off + i] != pattern(i, seed))
			return false;
	}
	return true;
}
