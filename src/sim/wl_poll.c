/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * wl_poll.c - each completion against the model: which, when, what, where.
 */
#include <string.h>

#include "sim/wl_priv.h"

static struct wl_end *end_by_qpn(struct wl_host *h, uint32_t qpn)
{
	for (uint32_t i = 0; i < h->wl->num_pairs; i++) {
		struct wl_end *e = &h->wl->pair[i].end[h->index];

		if (e->qp && e->qpn == qpn)
			return e;
	}
	return NULL;
}

/* ---- sends ---- */

static void retire(struct wl_end *e)
{
	struct wl *wl = e->pair->wl;
	struct flow *f = &e->out;
	struct msg *m = &f->msgs[f->retired];
	uint64_t off = 0;
	const char *bad = flow_retire(f, f->retired, &off);

	if (bad)
		wl_fail(wl, bad, wl_end_id(e), f->retired - 1, off);
	if (m->expect != WC_SUCCESS)
		wl_fail(wl, "a wrong request succeeded (end, message, want)",
			wl_end_id(e), f->retired - 1, m->expect);
	if (m->shared)
		wl_shared_add(e, m->orig);
	if (m->kind == WR_READ)
		wl->stats.read_bytes += m->len;
	f->done++;
	wl->stats.msgs++;
}

/* Flushing needs a reason: an error at this end, which a completion in the
 * other CQ may be about to tell. */
static bool died(const struct wl_end *e)
{
	const struct wl *wl = e->pair->wl;

	return e->failed || (qp_state(e->qp) == QP_STATE_ERR &&
			     (wl->cfg.errors || !wl->clean));
}

/* May this message end like that? */
static bool error_fits(const struct wl_end *e, const struct msg *m,
		       uint32_t status)
{
	const struct wl *wl = e->pair->wl;

	if (status == WC_WR_FLUSH_ERR)
		return died(e);
	if (e->out.done > e->out.retired) /* after the first error */
		return false;
	if (status == m->expect)
		return true;
	if (status == WC_REM_ACCESS_ERR) /* see wl_revoke */
		return !e->peer->target.mr && !m->shared && m->len &&
		       m->kind != WR_SEND && m->kind != WR_SEND_IMM;
	/* Timeouts too short for the path count even while the peer answers
	 * with RNR NAKs. */
	if (status == WC_RETRY_EXC_ERR)
		return !wl->clean || wl->hasty || e->peer->failed ||
		       qp_state(e->peer->qp) == QP_STATE_ERR;
	/* The receive was made too short, see fill_slot. */
	return status == WC_REM_INV_REQ_ERR && wl->cfg.errors &&
	       msg_takes_receive(m);
}

static void send_error(struct wl_end *e, uint32_t i, const struct wc *wc)
{
	struct wl *wl = e->pair->wl;

	if (!error_fits(e, &e->out.msgs[i], wc->status))
		wl_fail(wl,
			"unexpected status of a send (end, message, status)",
			wl_end_id(e), i, wc->status);
	e->failed = true;
	e->out.done++;
}

static const uint8_t wc_opcode_of[] = {
	[WR_WRITE] = WC_RDMA_WRITE,    [WR_WRITE_IMM] = WC_RDMA_WRITE,
	[WR_SEND] = WC_SEND,	       [WR_SEND_IMM] = WC_SEND,
	[WR_READ] = WC_RDMA_READ,      [WR_CMP_SWAP] = WC_COMP_SWAP,
	[WR_FETCH_ADD] = WC_FETCH_ADD,
};

static void check_send_wc(struct wl_end *e, uint32_t i, const struct wc *wc)
{
	const struct msg *m = &e->out.msgs[i];

	if (!m->signaled)
		wl_fail(e->pair->wl, "completion of an unsignaled success",
			wl_end_id(e), i, m->kind);
	if (wc->opcode != wc_opcode_of[m->kind])
		wl_fail(e->pair->wl,
			"wrong opcode of a send (end, message, is)",
			wl_end_id(e), i, wc->opcode);
	if ((m->kind == WR_READ || msg_is_atomic(m)) && wc->byte_len != m->len)
		wl_fail(e->pair->wl, "wrong byte_len of a READ (end, m, is)",
			wl_end_id(e), i, wc->byte_len);
}

/* Unsignaled ones before message `to` succeeded, or they would have been
 * reported. */
static void retire_silent(struct wl_end *e, uint32_t to)
{
	struct flow *f = &e->out;

	while (f->done < to && f->done == f->retired &&
	       !f->msgs[f->done].signaled)
		retire(e);
}

static void on_send(struct wl_host *h, struct wl_end *e, const struct wc *wc)
{
	struct wl *wl = h->wl;
	struct flow *f = &e->out;
	uint32_t i = (uint32_t)wc->wr_id;

	if (wc->wr_id != wl_send_id(e, i) || i < f->done || i >= f->posted) {
		wl_fail(wl, "a send completed twice or was never posted",
			wl_end_id(e), wc->wr_id, f->done);
		return;
	}
	retire_silent(e, i);
	if (f->done != i) {
		wl_fail(wl, "completion skipped (end, message, got)",
			wl_end_id(e), f->done, i);
		return;
	}
	if (wc->status != WC_SUCCESS) {
		send_error(e, i, wc);
		return;
	}
	check_send_wc(e, i, wc);
	if (f->done != f->retired) {
		wl_fail(wl, "success after an error", wl_end_id(e), i, 0);
		return;
	}
	retire(e);
}

/* Which local buffers are still needed: by what has not completed, and by
 * what was read and sent on until the receiver has compared it. */
void wl_release_slots(struct wl_end *e)
{
	const struct flow *f = &e->out;
	uint32_t used = 0;

	for (uint32_t i = f->conn_first; i < f->posted; i++) {
		const struct msg *m = &f->msgs[i];
		bool waits =
			m->from_read && msg_takes_receive(m) && !m->received;

		if (i >= f->done || waits)
			used |= 1u << m->slot;
	}
	e->slots_used = used;
}

/* ---- receives ---- */

static struct rslot *slot_of(struct wl_host *h, struct wl_end *e, uint64_t id)
{
	uint32_t i = id >> 32 & 0xff;

	if (i >= e->rq->depth || !e->rq->slot[i].posted ||
	    e->rq->slot[i].wr_id != id) {
		wl_fail(h->wl, "a receive completed twice or never was posted",
			wl_end_id(e), id, 0);
		return NULL;
	}
	return &e->rq->slot[i];
}

static uint32_t grh_bytes(const struct wl *wl)
{
	return wl->cfg.type == QP_TYPE_UD ? WL_GRH : 0;
}

/* Copies bytes skip .. skip + len of a receive buffer out of memory. */
static void received_bytes(const struct wl_host *h, const struct rslot *s,
			   uint32_t skip, uint32_t len, uint8_t *dst)
{
	for (unsigned i = 0; i < s->num_pieces && len; i++) {
		uint32_t n = s->piece[i].len;
		uint64_t off = s->piece[i].off;

		if (skip >= n) {
			skip -= n;
			continue;
		}
		off += skip;
		n -= skip;
		skip = 0;
		if (n > len)
			n = len;
		memcpy(dst, h->sim.mem.bytes + off, n);
		dst += n;
		len -= n;
	}
}

/* Enters len bytes into the image of a receive buffer, from its start. */
static void enter_received(struct wl_host *h, const struct rslot *s,
			   const uint8_t *src, uint32_t len)
{
	for (unsigned i = 0; i < s->num_pieces && len; i++) {
		uint32_t n = s->piece[i].len < len ? s->piece[i].len : len;

		memcpy(h->image.bytes + s->piece[i].off, src, n);
		src += n;
		len -= n;
	}
}

static void learn_received(struct wl_host *h, const struct rslot *s)
{
	for (unsigned i = 0; i < s->num_pieces; i++)
		image_learn(&h->image, s->piece[i].off, s->piece[i].len);
}

/* Is this completion the arrival of message m? Its payload is then in
 * f->payload. */
static bool is_message(struct wl_end *e, const struct rslot *s,
		       const struct wc *wc, struct flow *f, const struct msg *m)
{
	uint32_t grh = grh_bytes(e->pair->wl);
	uint8_t *got = f->payload + f->scratch_bytes;
	uint32_t opcode =
		m->kind == WR_WRITE_IMM ? WC_RECV_RDMA_WITH_IMM : WC_RECV;
	uint32_t imm_flag = msg_has_imm(m) ? WC_WITH_IMM : 0;

	if (!msg_takes_receive(m) || wc->byte_len != m->len + grh ||
	    wc->opcode != opcode || (wc->wc_flags & WC_WITH_IMM) != imm_flag)
		return false;
	if (imm_flag && wc->imm_be_or_rkey != m->imm_be)
		return false;
	msg_payload(f, m, f->payload);
	if (m->kind == WR_WRITE_IMM)
		return true;
	received_bytes(e->host, s, grh, m->len, got);
	return !memcmp(got, f->payload, m->len);
}

/* The message that has arrived; UINT32_MAX: none can have. */
static uint32_t match(struct wl_end *e, const struct rslot *s,
		      const struct wc *wc)
{
	struct flow *f = &e->peer->out;
	uint32_t i = e->pair->wl->orderly ? f->received : f->conn_first;

	if (f->ordered)
		i = f->received;
	for (; i < f->posted; i++) {
		if (is_message(e, s, wc, f, &f->msgs[i]))
			return i;
		/* Nothing may be left out of order, or lost. */
		if ((f->ordered || e->pair->wl->clean) &&
		    msg_takes_receive(&f->msgs[i]))
			break;
	}
	return UINT32_MAX;
}

static void check_buffer(struct wl_end *e, const struct rslot *s,
			 const struct wc *wc, const struct msg *m)
{
	struct wl *wl = e->pair->wl;
	struct flow *f = &e->peer->out;
	uint64_t first = e->rq->area.off +
			 (uint64_t)(s - e->rq->slot) * wl_slot_bytes(wl);
	uint64_t off;

	if (!f->ordered) /* part of a lost message may have been here */
		learn_received(e->host, s);
	else if (m->kind != WR_WRITE_IMM)
		enter_received(e->host, s, f->payload, m->len);
	if (!image_same(&e->host->image, first, wl_slot_bytes(wl), &off))
		wl_fail(wl, "receive buffer changed outside the message",
			wl_end_id(e), off - first, wc->byte_len);
}

static void arrived(struct wl_end *e, const struct rslot *s,
		    const struct wc *wc)
{
	struct wl *wl = e->pair->wl;
	struct flow *f = &e->peer->out;
	uint32_t i = match(e, s, wc);
	uint64_t off = 0;
	const char *bad;

	if (i == UINT32_MAX) {
		wl_fail(wl, "received what was not sent (end, next, byte_len)",
			wl_end_id(e), f->received, wc->byte_len);
		return;
	}
	check_buffer(e, s, wc, &f->msgs[i]);
	if (wl->cfg.type == QP_TYPE_UD &&
	    (wc->src_qpn != e->peer->qpn || !(wc->wc_flags & WC_GRH)))
		wl_fail(wl, "UD completion without source or GRH", wl_end_id(e),
			wc->src_qpn, wc->wc_flags);
	bad = flow_arrived(f, i, &off);
	if (bad)
		wl_fail(wl, bad, wl_end_id(e->peer), i, off);
	f->msgs[i].received = true;
	if (f->ordered || wl->orderly)
		f->received = i + 1;
	wl->stats.receives++;
}

/* A message longer than the receive [IBA 9.7.4.1.7]. */
static bool too_long(const struct wl_end *e, const struct rslot *s)
{
	const struct flow *f = &e->peer->out;

	for (uint32_t i = f->received; i < f->posted; i++)
		if (msg_takes_receive(&f->msgs[i]))
			return f->msgs[i].kind != WR_WRITE_IMM &&
			       f->msgs[i].len > s->cap;
	return false;
}

static void recv_error(struct wl_end *e, const struct rslot *s,
		       const struct wc *wc)
{
	bool fits = wc->status == WC_WR_FLUSH_ERR
			    ? died(e)
			    : wc->status == WC_LOC_LEN_ERR && too_long(e, s);

	if (!fits)
		wl_fail(e->pair->wl,
			"unexpected status of a receive (end, serial, status)",
			wl_end_id(e), s->serial, wc->status);
	e->failed = true;
	learn_received(e->host, s);
}

static void on_recv(struct wl_host *h, struct wl_end *e, const struct wc *wc)
{
	struct rslot *s = slot_of(h, e, wc->wr_id);

	if (!s)
		return;
	if (e->rq->srq ? s->serial < e->recv_done : s->serial != e->recv_done)
		wl_fail(h->wl, "receives out of order (end, serial, next)",
			wl_end_id(e), s->serial, e->recv_done);
	e->recv_done = s->serial + 1;
	if (wc->status == WC_SUCCESS)
		arrived(e, s, wc);
	else
		recv_error(e, s, wc);
	s->posted = false;
	e->rq->num_posted--;
}

/* ---- both ---- */

static void on_sentinel(struct wl_end *e, const struct wc *wc)
{
	struct wl *wl = e->pair->wl;
	bool recv = wc->wr_id & WL_RECV_BIT;

	if (wc->status != WC_WR_FLUSH_ERR)
		wl_fail(wl, "post to a dead QP was not flushed (end, status)",
			wl_end_id(e), wc->status, 0);
	if (!recv)
		retire_silent(e, e->out.posted);
	if (recv ? e->rq->num_posted != 0 : e->out.done != e->out.posted)
		wl_fail(wl, "flushed out of order (end, receive?)",
			wl_end_id(e), recv, 0);
	e->sentinels++;
}

static void on_wc(struct wl_host *h, unsigned which, const struct wc *wc)
{
	struct wl_end *e = end_by_qpn(h, wc->qpn);
	bool recv = wc->wr_id & WL_RECV_BIT;

	h->wl->last_progress_ns = h->wl->world.now_ns;
	if (!e) {
		wl_fail(h->wl, "completion of no QP (host, qpn, wr_id)",
			h->index, wc->qpn, wc->wr_id);
		return;
	}
	if (h->cq[recv] != h->cq[which])
		wl_fail(h->wl, "completion in the wrong CQ (end, wr_id)",
			wl_end_id(e), wc->wr_id, 0);
	if (wc->wr_id & WL_SENTINEL_BIT)
		on_sentinel(e, wc);
	else if (recv)
		on_recv(h, e, wc);
	else
		on_send(h, e, wc);
	wl_release_slots(e);
	wl_release_slots(e->peer);
}

void wl_poll(struct wl_host *h, unsigned which, uint32_t most)
{
	struct wc wc;

	while (most-- && !h->wl->verdict.what &&
	       cq_poll(h->cq[which], 1, &wc) == 1)
		on_wc(h, which, &wc);
}
