/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * script_pkt.c - fields of the packet language.
 */
#include "script_pkt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_WITHIN_NS 1000 /* an answer that waits for no timer */

uint32_t script_bytes(const struct line *l, const char *text, uint8_t *dst,
		      uint32_t room)
{
	unsigned len, seed = 0, off = 0;
	int end = 0;

	if (sscanf(text, "%u%n:%u%n@%u%n", &len, &end, &seed, &end, &off,
		   &end) < 1 ||
	    text[end])
		line_error(l, "not LEN:SEED@OFF: %s", text);
	if (len > room)
		line_error(l, "too many bytes: %s", text);
	for (uint32_t i = 0; i < len; i++)
		dst[i] = rig_pattern(seed, off + i);
	return len;
}

/* Every opcode by the name that wire's table gives it; "OP_0x1f" is any. */
static int opcode_named(const struct line *l, const char *name)
{
	if (!strncmp(name, "OP_0x", 5))
		return (int)line_num_of(l, name + 3) & 0xff;
	for (unsigned i = 0; i < 256; i++) {
		const struct opcode_info *info = opcode_lookup((uint8_t)i);

		if (info->name && !strcmp(info->name, name))
			return (int)i;
	}
	line_error(l, "no such opcode: %s", name);
}

static uint8_t syndrome_of(const struct line *l, const char *text)
{
	static const char *const kinds[] = { "ack", "rnr", "reserved", "nak",
					     NULL };
	char kind[16];
	unsigned value = 0;
	int end = 0, n;

	n = sscanf(text, "%15[a-z]%n:%u%n", kind, &end, &value, &end);
	if (n < 1 || text[end] || value > 31)
		line_error(l, "not ack:N, rnr:N or nak:N: %s", text);
	n = line_enum(l, kind, kinds);
	if (n == AETH_ACK && !strchr(text, ':'))
		value = AETH_CREDITS_INVALID;
	return aeth_syndrome((enum aeth_kind)n, (uint8_t)value);
}

/* Every number that a packet can carry, by name. */
enum field_kind { F_NUM, F_ADDR, F_KEY, F_SYNDROME, F_SRQN };

struct field {
	const char *name;
	enum field_kind kind;
	uint16_t exth; /* only in packets that carry one of these; 0: BTH */
	uint64_t (*get)(const struct pkt *p);
	void (*set)(struct pkt *p, uint64_t v);
};

#define FIELD(fn, member, type)                                                \
	static uint64_t get_##fn(const struct pkt *p)                          \
	{                                                                      \
		return p->member;                                              \
	}                                                                      \
	static void set_##fn(struct pkt *p, uint64_t v)                        \
	{                                                                      \
		p->member = (type)v;                                           \
	}

FIELD(psn, bth.psn.v, uint32_t)
FIELD(qpn, bth.dest_qpn, uint32_t)
FIELD(pkey, bth.pkey, uint16_t)
FIELD(tver, bth.tver, uint8_t)
FIELD(pad, bth.pad, uint8_t)
FIELD(ackreq, bth.ackreq, bool)
FIELD(se, bth.solicited, bool)
FIELD(migreq, bth.migreq, bool)
FIELD(va, ext.reth.va, uint64_t)
FIELD(rkey, ext.reth.rkey, uint32_t)
FIELD(len, ext.reth.len_bytes, uint32_t)
FIELD(syndrome, ext.aeth.syndrome, uint8_t)
FIELD(msn, ext.aeth.msn, uint32_t)
FIELD(ava, ext.atomiceth.va, uint64_t)
FIELD(arkey, ext.atomiceth.rkey, uint32_t)
FIELD(add, ext.atomiceth.swap_or_add, uint64_t)
FIELD(cmp, ext.atomiceth.compare, uint64_t)
FIELD(orig, ext.atomicacketh, uint64_t)
FIELD(qkey, ext.deth.qkey, uint32_t)
FIELD(srcqpn, ext.deth.src_qpn, uint32_t)
FIELD(imm, ext.immdt, uint32_t)
FIELD(inv, ext.ieth, uint32_t)
FIELD(srqn, ext.xrceth, uint32_t)

#define ROW(n, kind, exth, fn)                                                 \
	{                                                                      \
		n, kind, exth, get_##fn, set_##fn                              \
	}
static const struct field fields[] = {
	ROW("psn", F_NUM, 0, psn),
	ROW("qpn", F_NUM, 0, qpn),
	ROW("pkey", F_NUM, 0, pkey),
	ROW("tver", F_NUM, 0, tver),
	ROW("pad", F_NUM, 0, pad),
	ROW("ackreq", F_NUM, 0, ackreq),
	ROW("se", F_NUM, 0, se),
	ROW("migreq", F_NUM, 0, migreq),
	ROW("va", F_ADDR, EXTH_RETH, va),
	ROW("rkey", F_KEY, EXTH_RETH, rkey),
	ROW("len", F_NUM, EXTH_RETH, len),
	ROW("syndrome", F_SYNDROME, EXTH_AETH, syndrome),
	ROW("msn", F_NUM, EXTH_AETH, msn),
	ROW("va", F_ADDR, EXTH_ATOMICETH, ava),
	ROW("rkey", F_KEY, EXTH_ATOMICETH, arkey),
	ROW("add", F_NUM, EXTH_ATOMICETH, add),
	ROW("swap", F_NUM, EXTH_ATOMICETH, add),
	ROW("cmp", F_NUM, EXTH_ATOMICETH, cmp),
	ROW("orig", F_NUM, EXTH_ATOMICACKETH, orig),
	ROW("qkey", F_NUM, EXTH_DETH, qkey),
	ROW("srcqpn", F_NUM, EXTH_DETH, srcqpn),
	ROW("imm", F_NUM, EXTH_IMMDT, imm),
	ROW("inv", F_KEY, EXTH_IETH, inv),
	ROW("srqn", F_SRQN, EXTH_XRCETH, srqn),
};

static uint64_t field_value(struct rig *r, const struct line *l,
			    const struct field *f, const char *text)
{
	switch (f->kind) {
	case F_ADDR:
		return line_name(l, text, rig_addr, r);
	case F_KEY:
		return line_name(l, text, rig_key, r);
	case F_SYNDROME:
		return syndrome_of(l, text);
	case F_SRQN:
		return line_name(l, text, rig_srqn, r);
	default:
		return line_num_of(l, text);
	}
}

static bool has_field(const struct field *f, uint16_t exth)
{
	return !f->exth || (exth & f->exth);
}

void script_gid(struct line *l, const char *key, struct gid *gid)
{
	const char *v = line_get(l, key);
	unsigned a, b, c, d;

	if (!v)
		return;
	if (sscanf(v, "%u.%u.%u.%u", &a, &b, &c, &d) != 4)
		line_error(l, "not an IPv4 address: %s", v);
	*gid = gid_from_v4(a << 24 | b << 16 | c << 8 | d);
}

/* ---- > ---- */

static void set_fields(struct rig *r, struct line *l, struct pkt *p)
{
	uint16_t exth = p->info->exth;
	const char *v;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (!has_field(&fields[i], exth))
			continue;
		v = line_get(l, fields[i].name);
		if (v)
			fields[i].set(p, field_value(r, l, &fields[i], v));
	}
	p->bth.ackreq |= line_flag(l, "ackreq");
	p->bth.solicited |= line_flag(l, "se");
}

static uint32_t headers(const struct pkt *p, uint8_t *buf)
{
	if (p->info->name)
		return (uint32_t)pkt_encode_headers(p, buf);
	bth_encode(&p->bth, buf);
	return BTH_BYTES;
}

void script_inject(struct rig *r, struct line *l)
{
	static uint8_t buf[PKT_MAX * 2];
	const char *name = line_word(l);
	struct gid src = r->peer, dst = r->self;
	struct pkt p = { .bth = { .pkey = 0xffff,
				  .migreq = true,
				  .dest_qpn = qp_num(r->qp) } };
	const char *payload, *v;
	uint32_t len, n = 0;

	if (!name)
		line_error(l, "> OPCODE field=value ...");
	p.bth.opcode = (uint8_t)opcode_named(l, name);
	p.info = opcode_lookup(p.bth.opcode);
	p.ext.deth =
		(struct deth){ .qkey = r->peer_qkey, .src_qpn = r->dest_qpn };
	payload = line_get(l, "payload");
	if (payload)
		n = script_bytes(l, payload, buf + PKT_HDR_MAX, PKT_MAX);
	p.bth.pad = (uint8_t)pkt_pad(n);
	set_fields(r, l, &p);
	len = headers(&p, buf);
	memmove(buf + len, buf + PKT_HDR_MAX, n);
	memset(buf + len + n, 0, pkt_pad(n));
	len += n + pkt_pad(n);
	v = line_get(l, "cut");
	if (v)
		len = (uint32_t)line_num_of(l, v);
	script_gid(l, "src", &src);
	script_gid(l, "dst", &dst);
	line_done(l);
	rig_inject(r, buf, len, &src, &dst);
}

/* ---- < ---- */

static void compare_fields(struct rig *r, struct line *l, const struct pkt *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const struct field *f = &fields[i];
		const char *v;
		uint64_t want, got;

		if (!has_field(f, p->info->exth))
			continue;
		v = line_get(l, f->name);
		if (!v)
			continue;
		want = field_value(r, l, f, v);
		got = f->get(p);
		/* Without a number: any credit count. */
		if (f->kind == F_SYNDROME && !strcmp(v, "ack"))
			got = want = aeth_kind((uint8_t)got);
		if (want != got)
			line_fail(l,
				  "%s: %s is %#" PRIx64 ", expected %#" PRIx64,
				  p->info->name, f->name, got, want);
	}
	if (line_flag(l, "ackreq") && !p->bth.ackreq)
		line_fail(l, "%s: no ackreq", p->info->name);
	if (line_flag(l, "noackreq") && p->bth.ackreq)
		line_fail(l, "%s: ackreq is set", p->info->name);
	if (line_flag(l, "se") && !p->bth.solicited)
		line_fail(l, "%s: not solicited", p->info->name);
}

static void compare_payload(struct line *l, const struct pkt *p)
{
	static uint8_t want[PKT_MAX];
	const char *v = line_get(l, "payload");
	uint32_t n = v ? script_bytes(l, v, want, sizeof(want)) : 0;

	if (p->payload_bytes != n)
		line_fail(l, "%s: payload of %u bytes, expected %u",
			  p->info->name, p->payload_bytes, n);
	for (uint32_t i = 0; i < n; i++)
		if (p->payload[i] != want[i])
			line_fail(l, "%s: payload byte %u is %#x, expected %#x",
				  p->info->name, i, p->payload[i], want[i]);
}

static struct rig_frame *await(struct rig *r, struct line *l, const char *name)
{
	int64_t start = r->now_ns;
	int64_t after = line_time(l, "after");
	int64_t within = line_time(l, "within");
	struct rig_frame *f;

	if (within < 0)
		within = DEFAULT_WITHIN_NS;
	rig_run(r, start + within, true);
	f = rig_frame_next(r);
	if (!f)
		line_fail(l, "no frame, expected %s", name);
	if (after >= 0 && f->at_ns < start + after)
		line_fail(l, "%s came after %" PRId64 " ns, expected %" PRId64,
			  name, f->at_ns - start, after);
	return f;
}

void script_expect(struct rig *r, struct line *l)
{
	const char *name = line_word(l);
	struct rig_frame *f;
	struct pkt p;
	enum pkt_verdict v;
	struct gid dst;

	if (!name)
		line_error(l, "< OPCODE field=value ...");
	opcode_named(l, name);
	f = await(r, l, name);
	v = pkt_decode(&p, f->bytes, f->len_bytes);
	if (v != PKT_OK)
		line_fail(l, "frame does not decode: %s", pkt_verdict_name(v));
	if (strcmp(p.info->name, name))
		line_fail(l, "got %s psn=%u, expected %s", p.info->name,
			  p.bth.psn.v, name);
	if (p.bth.dest_qpn != r->dest_qpn)
		line_fail(l, "%s: to QPN %#x, expected %#x", name,
			  p.bth.dest_qpn, r->dest_qpn);
	compare_fields(r, l, &p);
	compare_payload(l, &p);
	dst = f->dst;
	script_gid(l, "dst", &dst);
	if (!gid_eq(&dst, &f->dst))
		line_fail(l, "%s goes somewhere else", name);
	line_done(l);
}
