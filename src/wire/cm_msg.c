/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cm_msg.c - where the bits of each CM message are [IBA 12.6.5 - 12.6.14,
 * 12.11.1, 12.11.2], as tables that one encoder and one decoder walk.
 */
#include "wire/cm_msg.h"

#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"

#define CM_CLASS_VERSION 2

struct field {
	uint16_t at;	/* of the member in struct cm_msg */
	uint16_t bytes; /* size of the member */
	uint16_t bit;	/* from the start of the class's data, 0: MSB */
	uint16_t width; /* bits; above 64: an array of bytes */
};

/* A member at byte b, bit o from its MSB. */
#define F(member, b, o, w)                                                     \
	{                                                                      \
		offsetof(struct cm_msg, member),                               \
			sizeof(((struct cm_msg *)0)->member), (b)*8 + (o), w   \
	}
#define ARRAY(member, b)                                                       \
	{                                                                      \
		offsetof(struct cm_msg, member), 16, (b)*8, 128                \
	}
#define INFO(b)                                                                \
	{                                                                      \
		offsetof(struct cm_msg, info), CM_INFO_BYTES, (b)*8,           \
			CM_INFO_BYTES * 8                                      \
	}
#define IDS F(local_id, 0, 0, 32), F(remote_id, 4, 0, 32)
#define REQ_PATH(p, b)                                                         \
	F(p.local_lid, b, 0, 16), F(p.remote_lid, (b) + 2, 0, 16),             \
		ARRAY(p.local_gid, (b) + 4), ARRAY(p.remote_gid, (b) + 20),    \
		F(p.flow_label, (b) + 36, 0, 20), F(p.rate, (b) + 39, 2, 6),   \
		F(p.tclass, (b) + 40, 0, 8), F(p.hop_limit, (b) + 41, 0, 8),   \
		F(p.sl, (b) + 42, 0, 4), F(p.subnet_local, (b) + 42, 4, 1),    \
		F(p.ack_timeout, (b) + 43, 0, 5)
#define END                                                                    \
	{                                                                      \
		0, 0, 0, 0                                                     \
	}

static const struct field req_fields[] = {
	F(local_id, 0, 0, 32),
	F(vendor[0], 5, 0, 8),
	F(vendor[1], 6, 0, 8),
	F(vendor[2], 7, 0, 8),
	F(service_id, 8, 0, 64),
	F(ca_guid, 16, 0, 64),
	F(qkey, 28, 0, 32),
	F(qpn, 32, 0, 24),
	F(responder_resources, 35, 0, 8),
	F(eecn, 36, 0, 24),
	F(initiator_depth, 39, 0, 8),
	F(remote_eecn, 40, 0, 24),
	F(remote_timeout, 43, 0, 5),
	F(transport, 43, 5, 2),
	F(flow_control, 43, 7, 1),
	F(psn, 44, 0, 24),
	F(local_timeout, 47, 0, 5),
	F(retry_count, 47, 5, 3),
	F(pkey, 48, 0, 16),
	F(mtu, 50, 0, 4),
	F(rdc, 50, 4, 1),
	F(rnr_retry, 50, 5, 3),
	F(max_cm_retries, 51, 0, 4),
	F(srq, 51, 4, 1),
	F(ext_transport, 51, 5, 3),
	REQ_PATH(primary, 52),
	REQ_PATH(alternate, 96),
	END,
};

static const struct field mra_fields[] = {
	IDS,
	F(which, 8, 0, 2),
	F(service_timeout, 9, 0, 5),
	END,
};

static const struct field rej_fields[] = {
	IDS,
	F(which, 8, 0, 2),
	F(info_len, 9, 0, 7),
	F(reason, 10, 0, 16),
	INFO(12),
	END,
};

static const struct field rep_fields[] = {
	IDS,
	F(qkey, 8, 0, 32),
	F(qpn, 12, 0, 24),
	F(vendor[0], 15, 0, 8),
	F(eecn, 16, 0, 24),
	F(vendor[1], 19, 0, 8),
	F(psn, 20, 0, 24),
	F(vendor[2], 23, 0, 8),
	F(responder_resources, 24, 0, 8),
	F(initiator_depth, 25, 0, 8),
	F(ack_delay, 26, 0, 5),
	F(failover, 26, 5, 2),
	F(flow_control, 26, 7, 1),
	F(rnr_retry, 27, 0, 3),
	F(srq, 27, 3, 1),
	F(ca_guid, 28, 0, 64),
	END,
};

static const struct field ids_fields[] = { IDS, END };

static const struct field dreq_fields[] = { IDS, F(qpn, 8, 0, 24), END };

static const struct field lap_fields[] = {
	IDS,
	F(qpn, 12, 0, 24),
	F(remote_timeout, 15, 0, 5),
	F(alternate.local_lid, 20, 0, 16),
	F(alternate.remote_lid, 22, 0, 16),
	ARRAY(alternate.local_gid, 24),
	ARRAY(alternate.remote_gid, 40),
	F(alternate.flow_label, 56, 0, 20),
	F(alternate.tclass, 59, 0, 8),
	F(alternate.hop_limit, 60, 0, 8),
	F(alternate.rate, 61, 2, 6),
	F(alternate.sl, 62, 0, 4),
	F(alternate.subnet_local, 62, 4, 1),
	F(alternate.ack_timeout, 63, 0, 5),
	END,
};

static const struct field apr_fields[] = {
	IDS, F(info_len, 8, 0, 8), F(status, 9, 0, 8), INFO(12), END,
};

static const struct field sidr_req_fields[] = {
	F(local_id, 0, 0, 32),
	F(pkey, 4, 0, 16),
	F(service_id, 8, 0, 64),
	END,
};

static const struct field sidr_rep_fields[] = {
	F(local_id, 0, 0, 32),
	F(status, 4, 0, 8),
	F(info_len, 5, 0, 8),
	F(vendor[0], 6, 0, 8),
	F(vendor[1], 7, 0, 8),
	F(qpn, 8, 0, 24),
	F(vendor[2], 11, 0, 8),
	F(service_id, 12, 0, 64),
	F(qkey, 20, 0, 32),
	INFO(24),
	END,
};

struct layout {
	const char *name;
	const struct field *fields;
	uint16_t priv_at, priv_bytes; /* private data, to the MAD's end */
};

static const struct layout layouts[CM_ATTR_LAST - CM_ATTR_FIRST + 1] = {
	[CM_REQ - CM_ATTR_FIRST] = { "REQ", req_fields, 140, 92 },
	[CM_MRA - CM_ATTR_FIRST] = { "MRA", mra_fields, 10, 222 },
	[CM_REJ - CM_ATTR_FIRST] = { "REJ", rej_fields, 84, 148 },
	[CM_REP - CM_ATTR_FIRST] = { "REP", rep_fields, 36, 196 },
	[CM_RTU - CM_ATTR_FIRST] = { "RTU", ids_fields, 8, 224 },
	[CM_DREQ - CM_ATTR_FIRST] = { "DREQ", dreq_fields, 12, 220 },
	[CM_DREP - CM_ATTR_FIRST] = { "DREP", ids_fields, 8, 224 },
	[CM_SIDR_REQ -
		CM_ATTR_FIRST] = { "SIDR_REQ", sidr_req_fields, 16, 216 },
	[CM_SIDR_REP -
		CM_ATTR_FIRST] = { "SIDR_REP", sidr_rep_fields, 96, 136 },
	[CM_LAP - CM_ATTR_FIRST] = { "LAP", lap_fields, 64, 168 },
	[CM_APR - CM_ATTR_FIRST] = { "APR", apr_fields, 84, 148 },
};

static const struct layout *layout_of(unsigned attr)
{
	if (attr < CM_ATTR_FIRST || attr > CM_ATTR_LAST)
		return NULL;
	return &layouts[attr - CM_ATTR_FIRST];
}

size_t cm_private_bytes(enum cm_attr attr)
{
	const struct layout *l = layout_of(attr);

	return l ? l->priv_bytes : 0;
}

const char *cm_attr_name(enum cm_attr attr)
{
	const struct layout *l = layout_of(attr);

	return l ? l->name : "?";
}

/* ---- bits ---- */

static uint64_t bits_get(const uint8_t *p, const struct field *f)
{
	uint64_t v = 0;

	for (unsigned i = f->bit; i < (unsigned)f->bit + f->width; i++)
		v = v << 1 | (p[i / 8] >> (7 - i % 8) & 1u);
	return v;
}

static void bits_put(uint8_t *p, const struct field *f, uint64_t v)
{
	ASSERT(f->width == 64 || v >> f->width == 0);
	for (unsigned i = 0; i < f->width; i++) {
		unsigned at = f->bit + f->width - 1u - i;

		p[at / 8] |= (uint8_t)((v >> i & 1) << (7 - at % 8));
	}
}

static void member_set(uint8_t *m, unsigned bytes, uint64_t v)
{
	switch (bytes) {
	case 1:
		*m = (uint8_t)v;
		break;
	case 2:
		memcpy(m, &(uint16_t){ (uint16_t)v }, 2);
		break;
	case 4:
		memcpy(m, &(uint32_t){ (uint32_t)v }, 4);
		break;
	default:
		memcpy(m, &v, 8);
	}
}

static uint64_t member_get(const uint8_t *m, unsigned bytes)
{
	uint64_t v64;
	uint32_t v32;
	uint16_t v16;

	switch (bytes) {
	case 1:
		return *m;
	case 2:
		memcpy(&v16, m, 2);
		return v16;
	case 4:
		memcpy(&v32, m, 4);
		return v32;
	default:
		memcpy(&v64, m, 8);
		return v64;
	}
}

/* ---- messages ---- */

bool cm_msg_decode(struct cm_msg *ret, const uint8_t *mad)
{
	const uint8_t *p = mad + MAD_HDR_BYTES;
	const struct layout *l;
	struct mad_hdr h;

	mad_hdr_decode(&h, mad);
	l = layout_of(h.attr_id);
	if (!l || h.base_version != MAD_BASE_VERSION ||
	    h.mgmt_class != MAD_CLASS_CM ||
	    h.class_version != CM_CLASS_VERSION || h.method != MAD_METHOD_SEND)
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->attr = (enum cm_attr)h.attr_id;
	ret->tid = h.tid;
	ret->attr_mod = h.attr_mod;
	for (const struct field *f = l->fields; f->width; f++) {
		uint8_t *m = (uint8_t *)ret + f->at;

		if (f->width > 64)
			memcpy(m, p + f->bit / 8, f->bytes);
		else
			member_set(m, f->bytes, bits_get(p, f));
	}
	memcpy(ret->priv, p + l->priv_at, l->priv_bytes);
	return true;
}

void cm_msg_encode(const struct cm_msg *m, uint8_t *mad)
{
	const struct layout *l = layout_of(m->attr);
	uint8_t *p = mad + MAD_HDR_BYTES;
	struct mad_hdr h = {
		.base_version = MAD_BASE_VERSION,
		.mgmt_class = MAD_CLASS_CM,
		.class_version = CM_CLASS_VERSION,
		.method = MAD_METHOD_SEND,
		.tid = m->tid,
		.attr_id = (uint16_t)m->attr,
		.attr_mod = m->attr_mod,
	};

	ASSERT(l);
	mad_hdr_encode(&h, mad);
	memset(p, 0, MAD_DATA_BYTES);
	for (const struct field *f = l->fields; f->width; f++) {
		const uint8_t *from = (const uint8_t *)m + f->at;

		if (f->width > 64)
			memcpy(p + f->bit / 8, from, f->bytes);
		else
			bits_put(p, f, member_get(from, f->bytes));
	}
	memcpy(p + l->priv_at, m->priv, l->priv_bytes);
}

/* ---- rdma_cm's header ---- */

static void addr_decode(struct gid *ret, const uint8_t *p, unsigned ip)
{
	if (ip == 4)
		*ret = gid_from_v4(get_be32(p + 12));
	else
		memcpy(ret->raw, p, sizeof(ret->raw));
}

static void addr_encode(const struct gid *g, uint8_t *p, unsigned ip)
{
	if (ip == 4) {
		memset(p, 0, 12);
		put_be32(p + 12, gid_v4(g));
	} else {
		memcpy(p, g->raw, sizeof(g->raw));
	}
}

bool rdmacm_hdr_decode(struct rdmacm_hdr *ret, const uint8_t *p)
{
	unsigned ip = p[1] >> 4;

	if (p[0] != 0 || (ip != 4 && ip != 6))
		return false;
	ret->version = p[0];
	ret->ip = (uint8_t)ip;
	ret->sport = get_be16(p + 2);
	addr_decode(&ret->src, p + 4, ip);
	addr_decode(&ret->dst, p + 20, ip);
	return true;
}

void rdmacm_hdr_encode(const struct rdmacm_hdr *h, uint8_t *p)
{
	p[0] = h->version;
	p[1] = (uint8_t)(h->ip << 4);
	put_be16(p + 2, h->sport);
	addr_encode(&h->src, p + 4, h->ip);
	addr_encode(&h->dst, p + 20, h->ip);
}
