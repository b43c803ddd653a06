/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire/rocev2.h"

#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc.h"
#include "wire/bth.h"
#include "wire/icrc_shift.h"

#define IPV4_DF 0x4000
#define IPV4_ID_OFFSET 4  /* of the 16 bits of ID, DF and offset follow */
#define DUMMY_LRH_BYTES 8 /* of ones, in place of what RoCE does not have */
#define MASKED_MAX (DUMMY_LRH_BYTES + IPV6_BYTES + UDP_BYTES + BTH_BYTES)
#define TOGETHER 128 /* payloads up to here are copied behind the headers */

size_t rocev2_overhead(const struct rocev2_flow *f)
{
	return (gid_is_v4(&f->src) ? IPV4_BYTES : IPV6_BYTES) + UDP_BYTES;
}

static size_t put_ip(const struct rocev2_flow *f, size_t udp_bytes, uint8_t *p)
{
	bool v4 = gid_is_v4(&f->src);

	ASSERT(v4 == gid_is_v4(&f->dst));
	ASSERT(udp_bytes <= UINT16_MAX - (v4 ? IPV4_BYTES : 0));
	if (v4) {
		struct ipv4 ip = {
			.tos = f->tos,
			.total_bytes = (uint16_t)(IPV4_BYTES + udp_bytes),
			.id = f->ip_id,
			.frag = f->df ? IPV4_DF : 0,
			.ttl = f->ttl,
			.proto = IPPROTO_UDP_NUM,
			.src = gid_v4(&f->src),
			.dst = gid_v4(&f->dst),
		};
		return ipv4_encode(&ip, p);
	} else {
		struct ipv6 ip = {
			.tclass = f->tos,
			.flow = f->flow_label,
			.payload_bytes = (uint16_t)udp_bytes,
			.next_hdr = IPPROTO_UDP_NUM,
			.hop_limit = f->ttl,
			.src = f->src,
			.dst = f->dst,
		};
		return ipv6_encode(&ip, p);
	}
}

size_t rocev2_encode_headers(const struct rocev2_flow *f, size_t len,
			     uint8_t *p)
{
	size_t ip_bytes = put_ip(f, UDP_BYTES + len, p);
	struct udp udp = {
		.sport = f->sport,
		.dport = ROCEV2_UDP_PORT,
		.len_bytes = (uint16_t)(UDP_BYTES + len),
	};

	return ip_bytes + udp_encode(&udp, p + ip_bytes);
}

/* The two below write the IP header as the ICRC sees it: what changes on the
 * way is ones [IBA A17.3.3]. They return where it ends. */

static uint8_t *mask_ipv4(const struct rocev2_flow *f, size_t udp_bytes,
			  uint8_t *p)
{
	put_be16(p, 0x45ff); /* TOS */
	put_be16(p + 2, (uint16_t)(IPV4_BYTES + udp_bytes));
	put_be16(p + 4, f->ip_id);
	put_be16(p + 6, f->df ? IPV4_DF : 0);
	put_be16(p + 8, 0xff00 | IPPROTO_UDP_NUM); /* TTL */
	put_be16(p + 10, 0xffff);		   /* checksum */
	memcpy(p + 12, f->src.raw + 12, 4);
	memcpy(p + 16, f->dst.raw + 12, 4);
	return p + IPV4_BYTES;
}

static uint8_t *mask_ipv6(const struct rocev2_flow *f, size_t udp_bytes,
			  uint8_t *p)
{
	put_be32(p, 0x6fffffff); /* traffic class, flow label */
	put_be16(p + 4, (uint16_t)udp_bytes);
	put_be16(p + 6, IPPROTO_UDP_NUM << 8 | 0xff); /* hop limit */
	memcpy(p + 8, f->src.raw, 16);
	memcpy(p + 24, f->dst.raw, 16);
	return p + IPV6_BYTES;
}

/* Writes what the ICRC covers up to the BTH's end; returns where that is. */
static uint8_t *mask_headers(const struct rocev2_flow *f, const uint8_t *pkt,
			     size_t len, uint8_t *p)
{
	size_t udp_bytes = UDP_BYTES + len + ICRC_BYTES;
	bool v4 = gid_is_v4(&f->src);

	ASSERT(v4 == gid_is_v4(&f->dst));
	ASSERT(udp_bytes <= UINT16_MAX - (v4 ? IPV4_BYTES : 0));
	memset(p, 0xff, DUMMY_LRH_BYTES);
	p += DUMMY_LRH_BYTES;
	p = v4 ? mask_ipv4(f, udp_bytes, p) : mask_ipv6(f, udp_bytes, p);
	put_be16(p, f->sport);
	put_be16(p + 2, ROCEV2_UDP_PORT);
	put_be16(p + 4, (uint16_t)udp_bytes);
	put_be16(p + 6, 0xffff); /* checksum */
	p += UDP_BYTES;
	memcpy(p, pkt, BTH_BYTES);
	p[4] = 0xff; /* FECN, BECN, reserved */
	return p + BTH_BYTES;
}

uint32_t rocev2_icrc(const struct rocev2_flow *f, const uint8_t *pkt,
		     size_t len)
{
	uint8_t buf[MASKED_MAX + TOGETHER];
	uint8_t *end;
	uint32_t crc;

	ASSERT(len >= BTH_BYTES);
	end = mask_headers(f, pkt, len, buf);
	pkt += BTH_BYTES;
	len -= BTH_BYTES;
	if (len <= TOGETHER) { /* a copy is cheaper than a second call */
		memcpy(end, pkt, len);
		return crc32_update(0, buf, (size_t)(end + len - buf));
	}
	crc = crc32_update(0, buf, (size_t)(end - buf));
	return crc32_update(crc, pkt, len);
}

void rocev2_seal(const struct rocev2_flow *f, uint8_t *pkt, size_t len)
{
	put_le32(pkt + len, rocev2_icrc(f, pkt, len));
}

/* Expected xor received ICRC of a sealed packet that is long enough. */
static uint32_t icrc_delta(const struct rocev2_flow *f, const uint8_t *pkt,
			   size_t len)
{
	return rocev2_icrc(f, pkt, len - ICRC_BYTES) ^
	       get_le32(pkt + len - ICRC_BYTES);
}

static bool has_icrc(size_t len)
{
	return len >= BTH_BYTES + ICRC_BYTES &&
	       len <= UINT16_MAX - IPV4_BYTES - UDP_BYTES;
}

bool rocev2_icrc_ok(const struct rocev2_flow *f, const uint8_t *pkt, size_t len)
{
	return has_icrc(len) && icrc_delta(f, pkt, len) == 0;
}

bool rocev2_icrc_ok_any_id(const struct rocev2_flow *f, const uint8_t *pkt,
			   size_t len, uint16_t *ret_id, bool *ret_df)
{
	bool v4 = gid_is_v4(&f->src);
	uint32_t flips;

	if (!has_icrc(len))
		return false;
	flips = icrc_delta(f, pkt, len);
	if (v4 && flips) {
		/* Which 4 bytes, xored over those at the ID, would do. */
		flips = icrc_unshift(flips, IPV4_BYTES - IPV4_ID_OFFSET +
						    UDP_BYTES + len -
						    ICRC_BYTES);
		if (flips & ~UINT32_C(0x0040ffff))
			return false;
	} else if (flips) {
		return false;
	}
	*ret_id = f->ip_id ^
		  (uint16_t)((flips & 0xff) << 8 | (flips >> 8 & 0xff));
	*ret_df = f->df ^ (flips >> 22 & 1);
	return true;
}

/* IP header: its length, 0 when it is not ours; *ret_udp: bytes behind it. */
static size_t get_ip(struct rocev2_flow *f, const uint8_t *p, size_t len,
		     size_t *ret_udp)
{
	struct ipv4 v4;
	struct ipv6 v6;

	if (ipv4_decode(&v4, p, len)) {
		if (v4.proto != IPPROTO_UDP_NUM || v4.frag & ~IPV4_DF ||
		    v4.total_bytes < IPV4_BYTES)
			return 0;
		f->src = gid_from_v4(v4.src);
		f->dst = gid_from_v4(v4.dst);
		f->tos = v4.tos;
		f->ttl = v4.ttl;
		f->ip_id = v4.id;
		f->df = v4.frag & IPV4_DF;
		*ret_udp = v4.total_bytes - IPV4_BYTES;
		return IPV4_BYTES;
	}
	if (!ipv6_decode(&v6, p, len) || v6.next_hdr != IPPROTO_UDP_NUM)
		return 0;
	if (gid_is_v4(&v6.src) || gid_is_v4(&v6.dst))
		return 0; /* a flow of these would mean IPv4 */
	f->src = v6.src;
	f->dst = v6.dst;
	f->tos = v6.tclass;
	f->ttl = v6.hop_limit;
	f->flow_label = v6.flow;
	*ret_udp = v6.payload_bytes;
	return IPV6_BYTES;
}

size_t rocev2_decode_headers(struct rocev2_flow *ret, const uint8_t *p,
			     size_t len, size_t *ret_len)
{
	struct rocev2_flow f = { 0 };
	size_t udp_bytes, ip_bytes = get_ip(&f, p, len, &udp_bytes);
	struct udp udp;

	if (!ip_bytes || !udp_decode(&udp, p + ip_bytes, len - ip_bytes))
		return 0;
	if (udp.dport != ROCEV2_UDP_PORT || udp.len_bytes != udp_bytes ||
	    udp_bytes < UDP_BYTES || udp_bytes > len - ip_bytes)
		return 0;
	f.sport = udp.sport;
	*ret = f;
	*ret_len = udp_bytes - UDP_BYTES;
	return ip_bytes + UDP_BYTES;
}
