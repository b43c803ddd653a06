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
#define PREFIX_MAX (DUMMY_LRH_BYTES + IPV6_BYTES + UDP_BYTES + BTH_BYTES)

size_t rocev2_overhead(const struct rocev2_flow *f)
{
	return (gid_is_v4(&f->src) ? IPV4_BYTES : IPV6_BYTES) + UDP_BYTES;
}

static size_t put_ip(const struct rocev2_flow *f, size_t udp_bytes, uint8_t *p)
{
	bool v4 = gid_is_v4(&f->src);

	ASSERT(v4 == gid_is_v4(&f->dst));
	ASSERT(udp_bytes <= UINT16_MAX - IPV4_BYTES);
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

/* Writes what the ICRC covers up to the BTH's end, with the fields that change
 * on the way as ones [IBA A17.3.3]; returns its length. */
static size_t icrc_prefix(const struct rocev2_flow *f, const uint8_t *pkt,
			  size_t len, uint8_t *p)
{
	uint8_t *ip = p + DUMMY_LRH_BYTES;
	uint8_t *bth = ip + rocev2_encode_headers(f, len + ICRC_BYTES, ip);

	memset(p, 0xff, DUMMY_LRH_BYTES);
	if (ip[0] >> 4 == 4) {
		ip[1] = 0xff; /* TOS */
		ip[8] = 0xff; /* TTL */
		put_be16(ip + 10, 0xffff);
	} else {
		put_be32(ip, 0x6fffffff); /* traffic class, flow label */
		ip[7] = 0xff;		  /* hop limit */
	}
	put_be16(bth - 2, 0xffff); /* UDP checksum */
	memcpy(bth, pkt, BTH_BYTES);
	bth[4] = 0xff; /* FECN, BECN, reserved */
	return (size_t)(bth + BTH_BYTES - p);
}

uint32_t rocev2_icrc(const struct rocev2_flow *f, const uint8_t *pkt,
		     size_t len)
{
	uint8_t prefix[PREFIX_MAX];
	uint32_t crc;

	ASSERT(len >= BTH_BYTES);
	crc = crc32_update(0, prefix, icrc_prefix(f, pkt, len, prefix));
	return crc32_update(crc, pkt + BTH_BYTES, len - BTH_BYTES);
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
