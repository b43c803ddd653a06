/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire/pkt.h"

#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"

static const char *const verdict_names[PKT_VERDICTS] = {
	[PKT_OK] = "ok",
	[PKT_SHORT] = "short",
	[PKT_BAD_OPCODE] = "bad_opcode",
	[PKT_BAD_TVER] = "bad_tver",
	[PKT_BAD_PAD] = "bad_pad",
	[PKT_BAD_LENGTH] = "bad_length",
	[PKT_TOO_LONG] = "too_long",
};

const char *pkt_verdict_name(enum pkt_verdict v)
{
	ASSERT(v < PKT_VERDICTS);
	return verdict_names[v];
}

static const uint8_t *get_reth(struct reth *h, const uint8_t *p)
{
	h->va = get_be64(p);
	h->rkey = get_be32(p + 8);
	h->len_bytes = get_be32(p + 12);
	return p + 16;
}

static uint8_t *put_reth(const struct reth *h, uint8_t *p)
{
	put_be64(p, h->va);
	put_be32(p + 8, h->rkey);
	put_be32(p + 12, h->len_bytes);
	return p + 16;
}

static const uint8_t *get_atomiceth(struct atomiceth *h, const uint8_t *p)
{
	h->va = get_be64(p);
	h->rkey = get_be32(p + 8);
	h->swap_or_add = get_be64(p + 12);
	h->compare = get_be64(p + 20);
	return p + 28;
}

static uint8_t *put_atomiceth(const struct atomiceth *h, uint8_t *p)
{
	put_be64(p, h->va);
	put_be32(p + 8, h->rkey);
	put_be64(p + 12, h->swap_or_add);
	put_be64(p + 20, h->compare);
	return p + 28;
}

static const uint8_t *get_deth(struct deth *h, const uint8_t *p)
{
	h->qkey = get_be32(p);
	h->resv8 = p[4];
	h->src_qpn = get_be24(p + 5);
	return p + 8;
}

static uint8_t *put_deth(const struct deth *h, uint8_t *p)
{
	ASSERT(h->src_qpn <= 0xffffff);
	put_be32(p, h->qkey);
	p[4] = h->resv8;
	put_be24(p + 5, h->src_qpn);
	return p + 8;
}

static const uint8_t *get_aeth(struct aeth *h, const uint8_t *p)
{
	h->syndrome = p[0];
	h->msn = get_be24(p + 1);
	return p + 4;
}

static uint8_t *put_aeth(const struct aeth *h, uint8_t *p)
{
	ASSERT(h->msn <= 0xffffff);
	p[0] = h->syndrome;
	put_be24(p + 1, h->msn);
	return p + 4;
}

static const uint8_t *get_word(uint32_t *v, const uint8_t *p)
{
	*v = get_be32(p);
	return p + 4;
}

static uint8_t *put_word(uint32_t v, uint8_t *p)
{
	put_be32(p, v);
	return p + 4;
}

/* The one place, with put_exths, that knows the order of the headers. */
static const uint8_t *get_exths(struct exths *e, unsigned which,
				const uint8_t *p)
{
	if (which & EXTH_XRCETH)
		p = get_word(&e->xrceth, p);
	if (which & EXTH_DETH)
		p = get_deth(&e->deth, p);
	if (which & EXTH_FETH)
		p = get_word(&e->feth, p);
	if (which & EXTH_RETH)
		p = get_reth(&e->reth, p);
	if (which & EXTH_ATOMICETH)
		p = get_atomiceth(&e->atomiceth, p);
	if (which & EXTH_AETH)
		p = get_aeth(&e->aeth, p);
	if (which & EXTH_ATOMICACKETH) {
		e->atomicacketh = get_be64(p);
		p += 8;
	}
	if (which & EXTH_IMMDT)
		p = get_word(&e->immdt, p);
	if (which & EXTH_IETH)
		p = get_word(&e->ieth, p);
	if (which & EXTH_CNP_PAD)
		p += 16;
	return p;
}

static uint8_t *put_exths(const struct exths *e, unsigned which, uint8_t *p)
{
	if (which & EXTH_XRCETH)
		p = put_word(e->xrceth, p);
	if (which & EXTH_DETH)
		p = put_deth(&e->deth, p);
	if (which & EXTH_FETH)
		p = put_word(e->feth, p);
	if (which & EXTH_RETH)
		p = put_reth(&e->reth, p);
	if (which & EXTH_ATOMICETH)
		p = put_atomiceth(&e->atomiceth, p);
	if (which & EXTH_AETH)
		p = put_aeth(&e->aeth, p);
	if (which & EXTH_ATOMICACKETH) {
		put_be64(p, e->atomicacketh);
		p += 8;
	}
	if (which & EXTH_IMMDT)
		p = put_word(e->immdt, p);
	if (which & EXTH_IETH)
		p = put_word(e->ieth, p);
	if (which & EXTH_CNP_PAD) {
		memset(p, 0, 16); /* reserved: sent as zero */
		p += 16;
	}
	return p;
}

/* What can be judged once the BTH is known; body: bytes after the headers. */
static enum pkt_verdict judge_body(const struct bth *bth,
				   const struct opcode_info *info, size_t body)
{
	if (bth->pad > body || (body && !(info->flags & OPCODE_PAYLOAD)))
		return PKT_BAD_PAD;
	if (body - bth->pad > PKT_PAYLOAD_MAX)
		return PKT_TOO_LONG;
	return PKT_OK;
}

enum pkt_verdict pkt_decode(struct pkt *ret, const uint8_t *p, size_t len)
{
	const struct opcode_info *info;
	enum pkt_verdict v;
	struct bth bth;

	if (len < BTH_BYTES)
		return PKT_SHORT;
	bth_decode(&bth, p);
	if (bth.tver != 0)
		return PKT_BAD_TVER;
	info = opcode_lookup(bth.opcode);
	if (!info->name)
		return PKT_BAD_OPCODE;
	if (len < info->hdr_bytes)
		return PKT_SHORT;
	if (len % 4)
		return PKT_BAD_LENGTH;
	v = judge_body(&bth, info, len - info->hdr_bytes);
	if (v != PKT_OK)
		return v;
	ret->bth = bth;
	ret->info = info;
	ret->payload = get_exths(&ret->ext, info->exth, p + BTH_BYTES);
	ASSERT(ret->payload == p + info->hdr_bytes);
	ret->payload_bytes = (uint32_t)(len - info->hdr_bytes - bth.pad);
	ret->pkts = 1;
	ret->away = NULL;
	return PKT_OK;
}

size_t pkt_encode_headers(const struct pkt *pkt, uint8_t *p)
{
	const struct opcode_info *info = opcode_lookup(pkt->bth.opcode);
	const uint8_t *end;

	ASSERT(info->name);
	bth_encode(&pkt->bth, p);
	end = put_exths(&pkt->ext, info->exth, p + BTH_BYTES);
	ASSERT(end == p + info->hdr_bytes);
	return info->hdr_bytes;
}
