/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/wq.h"

#include <errno.h>
#include <string.h>

#include "base/mutant.h"
#include "core/obj/hca_priv.h"
#include "core/obj/mkey.h"

static uint32_t round16(uint32_t n)
{
	return (n + 15) & ~15u;
}

static int ring_init(struct wring *r, struct hca *hca, uint32_t wr)
{
	uint32_t slots = 1;

	spsc_init(&r->idx);
	r->slots = NULL;
	r->mask = 0;
	r->capacity = wr;
	if (wr == 0)
		return 0;
	while (slots < wr)
		slots *= 2;
	r->mask = slots - 1;
	r->slots = hca_alloc(hca, (size_t)slots * r->stride_bytes);
	return r->slots ? 0 : -ENOMEM;
}

int wring_init_send(struct wring *r, struct hca *hca, uint32_t wr, uint32_t sge,
		    uint32_t inline_bytes)
{
	uint32_t tail = sge * (uint32_t)sizeof(struct sge);

	if (tail < inline_bytes)
		tail = round16(inline_bytes);
	r->max_sge = sge;
	r->max_inline_bytes = tail; /* the SGEs' room is there anyway */
	if (r->max_inline_bytes > hca->cfg.limits.max_inline_bytes)
		r->max_inline_bytes = hca->cfg.limits.max_inline_bytes;
	r->stride_bytes = round16((uint32_t)sizeof(struct wqe) + tail);
	return ring_init(r, hca, wr);
}

int wring_init_recv(struct wring *r, struct hca *hca, uint32_t wr, uint32_t sge)
{
	r->max_sge = sge;
	r->max_inline_bytes = 0;
	r->stride_bytes = round16((uint32_t)sizeof(struct rwqe) +
				  sge * (uint32_t)sizeof(struct sge));
	return ring_init(r, hca, wr);
}

void wring_fini(struct wring *r, struct hca *hca)
{
	if (!MUTANT(ring_leaked))
		hca_release(hca, r->slots);
	r->slots = NULL;
	r->capacity = 0;
}

void wring_reset(struct wring *r)
{
	/* The consumer's index moves: right beside a producer as well. */
	spsc_pop(&r->idx, spsc_ready(&r->idx));
}

int wring_post_recv(struct wring *r, const struct recv_wr *wr)
{
	uint64_t len = 0;
	struct rwqe *w;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > r->max_sge)
		return -EINVAL;
	if (spsc_filled(&r->idx) >= r->capacity)
		return -ENOMEM;
	w = wring_slot(r, spsc_tail(&r->idx));
	w->wr_id = wr->wr_id;
	w->num_sge = (uint32_t)wr->num_sge;
	for (int i = 0; i < wr->num_sge; i++) {
		w->sge[i] = wr->sge[i];
		len += wr->sge[i].len_bytes;
	}
	w->len_bytes = len > UINT32_MAX ? UINT32_MAX : (uint32_t)len;
	spsc_push(&r->idx, 1);
	return 0;
}

/* One piece of an SGE list between list offsets. */
struct piece {
	uint64_t addr; /* iova */
	uint32_t lkey;
	uint32_t len;
};

/* The part of sge[i] that bytes off.. of the list begin in; advances. */
static bool next_piece(const struct sge *sge, uint32_t n, uint32_t *i,
		       uint32_t *off, uint32_t want, struct piece *ret)
{
	while (*i < n && *off >= sge[*i].len_bytes)
		*off -= sge[(*i)++].len_bytes;
	if (MUTANT(sge_offset_lost) && *i)
		*off = 0;
	if (*i == n)
		return false;
	ret->addr = sge[*i].addr + *off;
	ret->lkey = sge[*i].lkey;
	ret->len = sge[*i].len_bytes - *off;
	if (ret->len > want)
		ret->len = want;
	*off += ret->len;
	return true;
}

/* ---- memory behind an lkey ---- */

static int piece_read(struct hca *hca, const struct pd *pd,
		      const struct piece *p, uint8_t *dst)
{
	const struct mkey *k;
	uint64_t va;

	k = mkey_local(hca, pd, p->lkey, p->addr, p->len, 0, &va);
	if (!k)
		return -EACCES;
	if (!k->null)
		return hca->ops->mem_read(hca->ops_ctx, dst, va, p->len);
	memset(dst, 0, p->len);
	return 0;
}

enum wc_status wqe_gather(struct hca *hca, const struct pd *pd, struct wqe *w,
			  uint32_t off, uint32_t len, uint8_t *dst)
{
	uint32_t i = 0;
	struct piece p;

	ASSERT(off + len >= off && off + len <= w->len_bytes);
	if (w->flags & WR_INLINE) {
		memcpy(dst, w->tail + off, len);
		return WC_SUCCESS;
	}
	for (; len; len -= p.len, dst += p.len) {
		bool some =
			next_piece(wqe_sge(w), w->num_sge, &i, &off, len, &p);

		ASSERT(some);
		if (piece_read(hca, pd, &p, dst))
			return WC_LOC_PROT_ERR;
	}
	return WC_SUCCESS;
}

uint32_t wqe_refs(struct hca *hca, const struct pd *pd, struct wqe *w,
		  uint32_t off, uint32_t len, struct tx_ref *ret, uint32_t max)
{
	uint32_t i = 0, n = 0;
	struct piece p;
	uint64_t va;

	ASSERT(off + len >= off && off + len <= w->len_bytes);
	if (w->flags & WR_INLINE)
		return 0;
	for (; len; len -= p.len) {
		const struct mkey *k;

		if (n == max ||
		    !next_piece(wqe_sge(w), w->num_sge, &i, &off, len, &p))
			return 0;
		k = mkey_local(hca, pd, p.lkey, p.addr, p.len, 0, &va);
		if (!k || k->null)
			return 0;
		ret[n++] = (struct tx_ref){ .va = va, .len_bytes = p.len };
	}
	return n;
}

/* Where received bytes come from: our memory, or wherever `away` says. */
struct source {
	const uint8_t *bytes; /* NULL: away */
	const void *away;
	uint32_t off; /* of away */
};

static int store(struct hca *hca, uint64_t va, const struct source *s,
		 uint32_t n)
{
	if (s->bytes)
		return hca->ops->mem_write(hca->ops_ctx, va, s->bytes, n);
	return hca->ops->mem_fetch(hca->ops_ctx, va, s->away, s->off, n);
}

static int piece_write(struct hca *hca, const struct pd *pd,
		       const struct piece *p, struct source *s)
{
	const struct mkey *k;
	uint64_t va;
	int err;

	k = mkey_local(hca, pd, p->lkey, p->addr, p->len, ACCESS_LOCAL_WRITE,
		       &va);
	if (!k)
		return -EACCES;
	err = k->null ? 0 : store(hca, va, s, p->len);
	s->off += p->len;
	if (s->bytes)
		s->bytes += p->len;
	return err;
}

/* *ret_lost: the source failed. */
static enum wc_status scatter(struct hca *hca, const struct pd *pd,
			      const struct sge *sge, uint32_t num_sge,
			      uint32_t off, uint32_t len, struct source s,
			      bool *ret_lost)
{
	uint32_t i = 0;
	struct piece p;
	int err;

	*ret_lost = false;
	for (; len; len -= p.len) {
		if (!next_piece(sge, num_sge, &i, &off, len, &p))
			return WC_LOC_LEN_ERR;
		err = piece_write(hca, pd, &p, &s);
		if (err) {
			*ret_lost = err == -EAGAIN;
			return WC_LOC_PROT_ERR;
		}
	}
	return WC_SUCCESS;
}

enum wc_status wqe_scatter(struct hca *hca, const struct pd *pd, struct wqe *w,
			   uint32_t off, uint32_t len, const uint8_t *src)
{
	bool lost;

	ASSERT(!(w->flags & WR_INLINE));
	return scatter(hca, pd, wqe_sge(w), w->num_sge, off, len,
		       (struct source){ .bytes = src }, &lost);
}

static bool within(const struct rwqe *w, uint32_t off, uint32_t len)
{
	return off <= w->len_bytes && len <= w->len_bytes - off;
}

enum wc_status rwqe_scatter(struct hca *hca, const struct pd *pd,
			    const struct rwqe *w, uint32_t off, uint32_t len,
			    const uint8_t *src)
{
	bool lost;

	if (!within(w, off, len))
		return WC_LOC_LEN_ERR;
	return scatter(hca, pd, w->sge, w->num_sge, off, len,
		       (struct source){ .bytes = src }, &lost);
}

enum wc_status rwqe_fetch(struct hca *hca, const struct pd *pd,
			  const struct rwqe *w, uint32_t off, uint32_t len,
			  const void *away, bool *ret_lost)
{
	*ret_lost = false;
	if (!within(w, off, len))
		return WC_LOC_LEN_ERR;
	return scatter(hca, pd, w->sge, w->num_sge, off, len,
		       (struct source){ .away = away }, ret_lost);
}
