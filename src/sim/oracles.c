/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * oracles.c - the byte model.
 */
#include "sim/oracles.h"

#include <string.h>

void verdict_fail(struct verdict *v, int64_t now_ns, const char *what,
		  uint64_t a, uint64_t b, uint64_t c)
{
	if (v->what)
		return;
	*v = (struct verdict){
		.what = what, .a = a, .b = b, .c = c, .at_ns = now_ns
	};
}

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 33)) * 0xff51afd7ed558ccdu;
	z = (z ^ (z >> 33)) * 0xc4ceb9fe1a85ec53u;
	return z ^ (z >> 33);
}

void pattern_fill(uint64_t pattern, uint8_t *dst, uint32_t len)
{
	uint64_t word;
	uint32_t n;

	for (uint32_t i = 0; i < len; i += n) {
		word = mix(pattern + i);
		n = len - i < sizeof(word) ? len - i : (uint32_t)sizeof(word);
		memcpy(dst + i, &word, n);
	}
}

void image_set(struct image *im, uint64_t off, const uint8_t *src, uint32_t len)
{
	ASSERT(off + len <= im->mem->len_bytes);
	memcpy(im->bytes + off, src, len);
	memcpy(im->mem->bytes + off, src, len);
}

void image_learn(struct image *im, uint64_t off, uint32_t len)
{
	ASSERT(off + len <= im->mem->len_bytes);
	memcpy(im->bytes + off, im->mem->bytes + off, len);
}

bool image_same(const struct image *im, uint64_t off, uint64_t len,
		uint64_t *ret_off)
{
	ASSERT(off + len <= im->mem->len_bytes);
	if (!memcmp(im->bytes + off, im->mem->bytes + off, len))
		return true;
	while (im->bytes[off] == im->mem->bytes[off])
		off++;
	*ret_off = off;
	return false;
}

/* The pieces' bytes as they are in memory now. */
static void gather(const struct image *im, const struct msg *m, uint8_t *dst)
{
	for (unsigned i = 0; i < m->num_pieces; i++) {
		memcpy(dst, im->mem->bytes + m->piece[i].off, m->piece[i].len);
		dst += m->piece[i].len;
	}
}

void msg_payload(const struct flow *f, const struct msg *m, uint8_t *dst)
{
	if (m->from_read) /* same pieces as the READ before it */
		gather(f->src, m, dst);
	else
		pattern_fill(m->pattern, dst, m->len);
}

/* A window of the target, 8-byte aligned at both ends so that an atomic lies
 * inside or outside as a whole. */
struct window {
	uint32_t off, len;
};

static struct window window_around(uint32_t off, uint32_t len)
{
	uint32_t end = (off + len + 7) & ~7u;

	return (struct window){ .off = off & ~7u, .len = end - (off & ~7u) };
}

/* Would executing m fail as a whole at the target? */
static bool refused(const struct msg *m)
{
	return m->expect != WC_SUCCESS && m->expect != WC_LOC_PROT_ERR;
}

static void apply_write(struct flow *f, const struct msg *m, struct window w)
{
	uint32_t from = m->target_off > w.off ? m->target_off : w.off;
	uint32_t m_end = m->target_off + m->len;
	uint32_t to = m_end < w.off + w.len ? m_end : w.off + w.len;

	if (from >= to)
		return;
	msg_payload(f, m, f->payload);
	memcpy(f->cur + (from - w.off), f->payload + (from - m->target_off),
	       to - from);
}

static void apply_atomic(struct flow *f, const struct msg *m, struct window w)
{
	uint64_t v;

	if (m->shared || m->target_off < w.off ||
	    m->target_off >= w.off + w.len)
		return;
	memcpy(&v, f->cur + (m->target_off - w.off), sizeof(v));
	if (m->kind == WR_FETCH_ADD)
		v += m->compare_add;
	else if (v == m->compare_add)
		v = m->swap;
	memcpy(f->cur + (m->target_off - w.off), &v, sizeof(v));
}

static void apply(struct flow *f, const struct msg *m, struct window w)
{
	if (msg_writes(m))
		apply_write(f, m, w);
	else if (msg_is_atomic(m))
		apply_atomic(f, m, w);
}

/* f->cur becomes the window as it is before message i is executed. */
static void window_before(struct flow *f, uint32_t i, struct window w)
{
	ASSERT(w.len <= f->scratch_bytes);
	memcpy(f->cur, f->dst->bytes + f->target_off + w.off, w.len);
	for (uint32_t k = f->retired; k < i; k++)
		if (!refused(&f->msgs[k]))
			apply(f, &f->msgs[k], w);
}

static void mark(struct flow *f, struct window w, const uint8_t *actual)
{
	for (uint32_t b = 0; b < w.len; b++)
		f->ok[b] |= f->cur[b] == actual[b];
}

/* Marks in f->ok every byte of `actual` that equals the window after messages
 * up to `from`, or after any later one that may have run by now. */
static void scan(struct flow *f, uint32_t from, bool until_fence,
		 struct window w, const uint8_t *actual)
{
	memset(f->ok, 0, w.len);
	mark(f, w, actual);
	for (uint32_t k = from; k < f->posted; k++) {
		if (refused(&f->msgs[k]))
			break;
		if (until_fence && f->msgs[k].fence)
			break;
		apply(f, &f->msgs[k], w);
		mark(f, w, actual);
	}
}

/* True when bytes off .. off + len of the scanned window are all right. */
static bool all_ok(const struct flow *f, struct window w, uint32_t off,
		   uint32_t len, uint64_t *ret_off)
{
	for (uint32_t b = off; b < off + len; b++) {
		if (!f->ok[b - w.off]) {
			*ret_off = b;
			return false;
		}
	}
	return true;
}

static const uint8_t *target_now(const struct flow *f, uint32_t off)
{
	return f->dst->mem->bytes + f->target_off + off;
}

/* The target bytes of a write or atomic that was executed. */
static const char *check_target(struct flow *f, uint32_t i, uint64_t *ret_off)
{
	const struct msg *m = &f->msgs[i];
	struct window w = window_around(m->target_off, m->len);

	if (m->shared || !m->len)
		return NULL;
	window_before(f, i + 1, w);
	scan(f, i + 1, false, w, target_now(f, w.off));
	return all_ok(f, w, m->target_off, m->len, ret_off)
		       ? NULL
		       : "target bytes are not the message's (offset)";
}

/* What a READ stored locally. */
static const char *check_read(struct flow *f, uint32_t i, uint64_t *ret_off)
{
	const struct msg *m = &f->msgs[i];
	struct window w = window_around(m->target_off, m->len);
	uint8_t *landed = f->payload + f->scratch_bytes;

	if (!m->len)
		return NULL;
	window_before(f, i, w);
	/* Only the message's own bytes were read; the rest of the window is
	 * not compared. */
	memset(landed, 0, w.len);
	gather(f->src, m, landed + (m->target_off - w.off));
	scan(f, i + 1, true, w, landed);
	return all_ok(f, w, m->target_off, m->len, ret_off)
		       ? NULL
		       : "READ data were never at the target (offset)";
}

static const char *check_atomic(struct flow *f, uint32_t i, uint64_t *ret_off)
{
	struct msg *m = &f->msgs[i];
	struct window w = window_around(m->target_off, 8);
	uint64_t before;

	gather(f->src, m, (uint8_t *)&m->orig);
	if (m->shared)
		return NULL;
	window_before(f, i, w);
	memcpy(&before, f->cur, sizeof(before));
	if (before != m->orig) {
		*ret_off = m->target_off;
		return "atomic returned a wrong original value (offset)";
	}
	return check_target(f, i, ret_off);
}

static void learn_pieces(struct image *im, const struct msg *m)
{
	for (unsigned i = 0; i < m->num_pieces; i++)
		image_learn(im, m->piece[i].off, m->piece[i].len);
}

/* Enters message i into the target's image. */
static void enter(struct flow *f, uint32_t i)
{
	const struct msg *m = &f->msgs[i];
	struct window w = window_around(m->target_off, m->len);

	if (m->shared || !(msg_writes(m) || msg_is_atomic(m)))
		return;
	window_before(f, i, w);
	apply(f, m, w);
	memcpy(f->dst->bytes + f->target_off + w.off, f->cur, w.len);
}

const char *flow_retire(struct flow *f, uint32_t i, uint64_t *ret_off)
{
	struct msg *m = &f->msgs[i];
	const char *bad = NULL;

	ASSERT(i == f->retired && i < f->posted);
	if (!f->ordered) { /* target is judged at the end, flow_settle */
		f->retired++;
		return NULL;
	}
	if (msg_writes(m))
		bad = check_target(f, i, ret_off);
	else if (m->kind == WR_READ)
		bad = check_read(f, i, ret_off);
	else if (msg_is_atomic(m))
		bad = check_atomic(f, i, ret_off);
	if (m->kind == WR_READ || msg_is_atomic(m))
		learn_pieces(f->src, m);
	enter(f, i);
	f->retired++;
	return bad;
}

const char *flow_arrived(struct flow *f, uint32_t i, uint64_t *ret_off)
{
	const char *bad = NULL;

	if (!f->ordered)
		return NULL;
	/* A fenced message leaves after the READ before it has landed. */
	if (f->msgs[i].from_read && i - 1 >= f->retired)
		bad = check_read(f, i - 1, ret_off);
	for (uint32_t k = f->retired; k <= i && !bad; k++)
		if (msg_writes(&f->msgs[k]))
			bad = check_target(f, k, ret_off);
	return bad;
}

static const char *settle_target(struct flow *f, uint64_t *ret_off)
{
	struct window w = { .off = 0, .len = f->target_bytes };
	uint32_t from = f->ordered ? f->retired : f->conn_first;
	const char *bad = NULL;

	memcpy(f->cur, f->dst->bytes + f->target_off, w.len);
	scan(f, from, false, w, target_now(f, 0));
	if (!all_ok(f, w, 0, w.len, ret_off))
		bad = "target holds what no message left there (offset)";
	image_learn(f->dst, f->target_off, w.len);
	return bad;
}

const char *flow_settle(struct flow *f, uint64_t *ret_off)
{
	const char *bad = f->target_bytes ? settle_target(f, ret_off) : NULL;

	for (uint32_t i = f->retired; i < f->posted; i++) {
		const struct msg *m = &f->msgs[i];

		if (m->kind == WR_READ || msg_is_atomic(m))
			learn_pieces(f->src, m);
	}
	return bad;
}
