/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * wl_post.c - random work requests, right ones and wrong ones.
 */
#include <string.h>

#include "sim/wl_priv.h"

static uint32_t below(struct wl_end *e, uint32_t n)
{
	return (uint32_t)prng_below(&e->host->rng, n);
}

static bool chance(struct wl_end *e, uint32_t percent)
{
	return below(e, 100) < percent;
}

uint8_t wl_cut(struct wl *wl, struct prng *rng, uint64_t off, uint32_t len,
	       struct piece *piece)
{
	uint32_t n = 1 + (uint32_t)prng_below(rng, wl->sges);

	if (!len && prng_chance(rng, 500000))
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t part = len;

		if (i + 1 < n)
			part = (uint32_t)prng_below(rng, (uint64_t)len + 1);
		off += prng_below(rng, 64);
		piece[i] = (struct piece){ .off = off, .len = part };
		off += part;
		len -= part;
	}
	return (uint8_t)n;
}

/* ---- receives ---- */

static uint64_t recv_id(const struct wl_rq *rq, uint32_t slot)
{
	uint64_t pool = rq->owner ? wl_end_id(rq->owner) : 0xff;

	return WL_RECV_BIT | pool << 40 | (uint64_t)slot << 32 |
	       (rq->next_serial & UINT32_MAX);
}

static void fill_slot(struct wl_end *e, struct wl_rq *rq, uint32_t slot)
{
	struct wl *wl = e->pair->wl;
	struct rslot *s = &rq->slot[slot];
	uint64_t off = rq->area.off + (uint64_t)slot * wl_slot_bytes(wl);
	bool small = wl->cfg.errors && !rq->srq && below(e, 1000) < 5;

	s->cap = wl->max_msg;
	if (small)
		s->cap = below(e, wl->max_msg);
	if (wl->cfg.type == QP_TYPE_UD)
		s->cap += WL_GRH;
	memset(e->host->sim.mem.bytes + off, (int)(0x80 | slot),
	       wl_slot_bytes(wl));
	image_learn(&e->host->image, off, wl_slot_bytes(wl));
	s->num_pieces = wl_cut(wl, &e->host->rng, off, s->cap, s->piece);
	s->wr_id = recv_id(rq, slot);
	s->serial = rq->next_serial++;
	s->posted = true;
	rq->num_posted++;
}

static void post_one_receive(struct wl_end *e, uint32_t slot)
{
	struct wl_rq *rq = e->rq;
	struct rslot *s = &rq->slot[slot];
	struct sge sge[MSG_PIECES];
	struct recv_wr wr = { .sge = sge };
	int rc;

	fill_slot(e, rq, slot);
	for (unsigned i = 0; i < s->num_pieces; i++)
		sge[i] = (struct sge){
			.addr = area_addr(&rq->area, s->piece[i].off),
			.len_bytes = s->piece[i].len,
			.lkey = rq->area.key,
		};
	wr.wr_id = s->wr_id;
	wr.num_sge = s->num_pieces;
	rc = rq->srq ? srq_post_recv(rq->srq, &wr) : qp_post_recv(e->qp, &wr);
	if (rc)
		wl_fail(e->pair->wl, "receive refused (end, n, -errno)",
			wl_end_id(e), rq->num_posted, (uint64_t)-rc);
}

void wl_post_receives(struct wl_end *e)
{
	uint32_t percent = e->pair->wl->recv_percent;

	for (uint32_t i = 0; i < e->rq->depth; i++)
		if (!e->rq->slot[i].posted && chance(e, percent))
			post_one_receive(e, i);
}

/* ---- sends ---- */

static const uint8_t rc_kinds[] = { WR_WRITE, WR_WRITE,	    WR_WRITE_IMM,
				    WR_SEND,  WR_SEND,	    WR_SEND_IMM,
				    WR_READ,  WR_READ,	    WR_CMP_SWAP,
				    WR_READ,  WR_FETCH_ADD, WR_FETCH_ADD };
static const uint8_t uc_kinds[] = { WR_WRITE, WR_WRITE_IMM, WR_SEND,
				    WR_SEND_IMM };
static const uint8_t ud_kinds[] = { WR_SEND, WR_SEND_IMM };

static uint8_t pick_kind(struct wl_end *e)
{
	switch (e->pair->wl->cfg.type) {
	case QP_TYPE_RC:
		return rc_kinds[below(e, ARRAY_SIZE(rc_kinds))];
	case QP_TYPE_UC:
		return uc_kinds[below(e, ARRAY_SIZE(uc_kinds))];
	default:
		return ud_kinds[below(e, ARRAY_SIZE(ud_kinds))];
	}
}

static uint32_t pick_len(struct wl_end *e)
{
	uint32_t max = e->pair->wl->max_msg;
	uint32_t mtu = mtu_bytes(e->pair->wl->mtu);
	uint32_t len;

	switch (below(e, 8)) {
	case 0:
		len = 0;
		break;
	case 1:
		len = below(e, 16);
		break;
	case 2:
		len = mtu - 1 + below(e, 3);
		break;
	case 3:
		len = 2 * mtu - 1 + below(e, 3);
		break;
	case 4:
		len = mtu * (1 + below(e, 8));
		break;
	default:
		len = below(e, max + 1);
	}
	return len > max ? max : len;
}

/* A local buffer that no message uses; false: none. */
static bool take_slot(struct wl_end *e, uint32_t *ret_slot)
{
	for (uint32_t i = 0; i < e->pair->wl->depth; i++) {
		if (!(e->slots_used & 1u << i)) {
			e->slots_used |= 1u << i;
			*ret_slot = i;
			return true;
		}
	}
	return false;
}

static uint64_t slot_off(const struct wl_end *e, uint32_t slot)
{
	return e->local.off + (uint64_t)slot * wl_slot_bytes(e->pair->wl);
}

static void pick_target(struct wl_end *e, struct msg *m)
{
	uint32_t room = e->out.target_bytes;

	if (msg_is_atomic(m)) {
		m->target_off = 8 * below(e, room / 8);
		m->shared = m->kind == WR_FETCH_ADD && chance(e, 50);
		/* Small values, so that compares sometimes hit. */
		m->compare_add = m->shared ? 1 : below(e, 3);
		m->swap = below(e, 3);
		/* A word that a compare can be right about. */
		if (m->kind == WR_CMP_SWAP && chance(e, 50))
			memcpy(&m->compare_add,
			       e->out.dst->mem->bytes + e->out.target_off +
				       m->target_off,
			       8);
	} else if (room) {
		m->target_off = below(e, room - m->len + 1);
	}
}

/* The message's flags and bytes; its buffer is filled. */
static void make(struct wl_end *e, struct msg *m, uint32_t slot)
{
	struct wl *wl = e->pair->wl;
	struct prng *rng = &e->host->rng;

	*m = (struct msg){ .kind = pick_kind(e), .slot = slot };
	m->len = msg_is_atomic(m) ? 8 : pick_len(e);
	m->pattern = prng_u64(rng);
	m->imm_be = prng_u32(rng);
	m->fence = chance(e, 10);
	m->signaled = wl->sig_all || chance(e, 60);
	m->is_inline = m->kind != WR_READ && !msg_is_atomic(m) &&
		       m->len <= WL_INLINE && chance(e, 50);
	m->num_pieces = wl_cut(wl, rng, slot_off(e, slot), m->len, m->piece);
	pick_target(e, m);
}

/* The same buffer goes out again as soon as the READ before has filled it
 * [IBA 10.8.3.3: fence]. */
static void make_from_read(struct wl_end *e, struct msg *m,
			   const struct msg *read)
{
	make(e, m, read->slot);
	m->kind = chance(e, 50) ? WR_SEND : WR_WRITE;
	m->shared = m->is_inline = false;
	m->fence = m->from_read = true;
	m->len = read->len;
	m->num_pieces = read->num_pieces;
	memcpy(m->piece, read->piece, sizeof(m->piece));
	m->target_off = 0;
	pick_target(e, m);
}

static void fill_pieces(struct wl_end *e, const struct msg *m,
			const uint8_t *src)
{
	for (unsigned i = 0; i < m->num_pieces; i++) {
		image_set(&e->host->image, m->piece[i].off, src,
			  m->piece[i].len);
		src += m->piece[i].len;
	}
}

/* Wrong on purpose; what the model expects of it. */
static void spoil(struct wl_end *e, struct msg *m, struct send_wr *wr,
		  struct sge *sge)
{
	bool remote = m->kind != WR_SEND && m->kind != WR_SEND_IMM && m->len;

	if (m->shared || m->from_read)
		return;
	if (!remote) {
		if (!m->num_pieces || !sge[0].len_bytes || m->is_inline)
			return;
		sge[0].lkey ^= 0x5500;
		m->expect = WC_LOC_PROT_ERR;
		return;
	}
	m->expect = WC_REM_ACCESS_ERR;
	switch (below(e, 6)) {
	case 0:
		wr->rkey ^= 0x40; /* the key's free byte */
		break;
	case 1: /* the last byte is one past the end */
		wr->remote_addr = area_addr(
			&e->peer->target,
			e->out.target_off + e->out.target_bytes - m->len);
		wr->remote_addr += msg_is_atomic(m) ? 8 : 1;
		break;
	case 2:
		wr->remote_addr = UINT64_MAX - 7;
		break;
	case 3:
		wr->rkey = e->peer->host->forbidden.key;
		wr->remote_addr = e->peer->host->forbidden.iova;
		break;
	case 4:
		wr->rkey = e->peer->host->alien.key;
		wr->remote_addr = e->peer->host->alien.iova;
		break;
	default:
		if (msg_is_atomic(m)) {
			wr->remote_addr += 4;
			m->expect = WC_REM_INV_REQ_ERR;
		} else {
			wr->rkey ^= 0x01000000;
		}
	}
}

static void aim(struct wl_end *e, const struct msg *m, struct send_wr *wr)
{
	const struct wl_end *p = e->peer;

	wr->ah = e->ah;
	wr->remote_qpn = p->qpn;
	wr->remote_qkey = WL_QKEY;
	if (m->shared) {
		wr->rkey = p->host->shared.key;
		wr->remote_addr = p->host->shared.iova;
	} else if (p->target.len) {
		wr->rkey = p->target.key;
		wr->remote_addr = area_addr(&p->target,
					    e->out.target_off + m->target_off);
	}
	if (!m->len && chance(e, 50)) { /* B013: keys of nothing are free */
		wr->rkey = 0xdeadbeef;
		wr->remote_addr = prng_u64(&e->host->rng);
	}
}

static void post(struct wl_end *e, struct msg *m, uint32_t index)
{
	struct wl *wl = e->pair->wl;
	struct sge sge[MSG_PIECES];
	struct send_wr wr = {
		.wr_id = wl_send_id(e, index),
		.sge = sge,
		.num_sge = m->num_pieces,
		.opcode = m->kind,
		.imm_be_or_rkey = m->imm_be,
		.compare_add = m->compare_add,
		.swap = m->swap,
		.flags = (m->fence ? WR_FENCE : 0u) |
			 (m->signaled ? WR_SIGNALED : 0u) |
			 (m->is_inline ? WR_INLINE : 0u) |
			 (msg_takes_receive(m) ? WR_SOLICITED : 0u),
	};
	int rc;

	for (unsigned i = 0; i < m->num_pieces; i++)
		sge[i] = (struct sge){
			.addr = m->is_inline
					? e->host->sim.mem.base +
						  m->piece[i].off
					: area_addr(&e->local, m->piece[i].off),
			.len_bytes = m->piece[i].len,
			.lkey = m->is_inline ? 0 : e->local.key,
		};
	aim(e, m, &wr);
	if (wl->cfg.errors && below(e, 1000) < 8)
		spoil(e, m, &wr, sge);
	rc = qp_post_send(e->qp, &wr);
	if (rc)
		wl_fail(wl, "send refused (end, message, -errno)", wl_end_id(e),
			index, (uint64_t)-rc);
}

/* Ends with the message posted and its slot taken. */
static void commit(struct wl_end *e, struct msg *m)
{
	struct flow *f = &e->out;
	uint32_t index = f->posted;

	/* Space is given back by completions only. */
	if (index + 1 == e->pair->wl->cfg.msgs ||
	    index - f->done >= e->pair->wl->depth / 2)
		m->signaled = true;
	if (!m->from_read) {
		pattern_fill(m->pattern, f->payload, m->len);
		fill_pieces(e, m, f->payload);
	}
	f->posted++;
	post(e, m, index);
	if (m->is_inline) { /* B106, B107: taken at post, reusable at once */
		pattern_fill(~m->pattern, f->payload, m->len);
		fill_pieces(e, m, f->payload);
	}
}

/* Receives that messages on their way will take at e's peer. */
static uint32_t receives_owed(const struct wl_rq *rq, struct wl *wl)
{
	uint32_t owed = 0;

	for (uint32_t i = 0; i < wl->num_pairs * 2; i++) {
		struct wl_end *e = &wl->pair[i / 2].end[i % 2];

		if (e->peer->rq != rq)
			continue;
		for (uint32_t k = e->out.received; k < e->out.posted; k++)
			owed += msg_takes_receive(&e->out.msgs[k]);
	}
	return owed;
}

static bool may_post(struct wl_end *e)
{
	struct wl *wl = e->pair->wl;
	struct flow *f = &e->out;

	if (f->posted >= wl->cfg.msgs || f->posted - f->done + 2 > wl->depth)
		return false;
	/* UC and UD drop what no receive waits for. To tell that from a fault
	 * of the core, a run without faults keeps within the receives. */
	if (!f->ordered && wl->clean &&
	    receives_owed(e->peer->rq, wl) >= e->peer->rq->num_posted)
		return false;
	return true;
}

void wl_post_sends(struct wl_end *e)
{
	struct flow *f = &e->out;
	uint32_t n = 1 + below(e, 4);
	uint32_t slot;

	while (n-- && may_post(e) && take_slot(e, &slot)) {
		struct msg *m = &f->msgs[f->posted];

		make(e, m, slot);
		commit(e, m);
		if (m->kind == WR_READ && m->expect == WC_SUCCESS &&
		    f->posted < e->pair->wl->cfg.msgs && chance(e, 40)) {
			make_from_read(e, &f->msgs[f->posted], m);
			commit(e, &f->msgs[f->posted]);
		}
	}
	qp_ring(e->qp);
}

void wl_post_sentinels(struct wl_end *e)
{
	uint64_t id = WL_SENTINEL_BIT | wl_end_id(e);
	struct send_wr send = { .wr_id = id,
				.opcode = WR_SEND,
				.ah = e->ah,
				.remote_qpn = e->peer->qpn,
				.remote_qkey = WL_QKEY };
	struct recv_wr recv = { .wr_id = id | WL_RECV_BIT };
	int rc = qp_post_send(e->qp, &send);

	if (!rc && !e->rq->srq)
		rc = qp_post_recv(e->qp, &recv);
	if (rc)
		wl_fail(e->pair->wl, "post to a dead QP refused (end, -errno)",
			wl_end_id(e), (uint64_t)-rc, 0);
	qp_ring(e->qp);
}
