/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire/net.h"

#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"

static const uint8_t v4_prefix[12] = { [10] = 0xff, [11] = 0xff };

bool gid_is_v4(const struct gid *g)
{
	return memcmp(g->raw, v4_prefix, sizeof(v4_prefix)) == 0;
}

bool gid_is_zero(const struct gid *g)
{
	static const struct gid zero;

	return gid_eq(g, &zero);
}

static bool is_group_v4(const uint8_t *p)
{
	return (p[0] & 0xf0) == 0xe0;
}

bool gid_is_multicast(const struct gid *g)
{
	return gid_is_v4(g) ? is_group_v4(g->raw + 12) : g->raw[0] == 0xff;
}

struct gid gid_group_v4(const struct gid *g)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	if (gid_is_v4(g))
		return *g;
	if (g->raw[10] == 0xff && g->raw[11] == 0xff &&
	    is_group_v4(g->raw + 12))
		return gid_from_v4(get_be32(g->raw + 12));
	for (size_t i = 0; i < sizeof(g->raw); i++)
		hash = (hash ^ g->raw[i]) * 16777619u;
	return gid_from_v4(0xefc00000u | (hash ^ hash >> 18) % (1u << 18));
}

bool gid_eq(const struct gid *a, const struct gid *b)
{
	return memcmp(a->raw, b->raw, sizeof(a->raw)) == 0;
}

struct gid gid_from_v4(uint32_t addr_host_order)
{
	struct gid g;

	memcpy(g.raw, v4_prefix, sizeof(v4_prefix));
	put_be32(g.raw + 12, addr_host_order);
	return g;
}

uint32_t gid_v4(const struct gid *g)
{
	ASSERT(gid_is_v4(g));
	return get_be32(g->raw + 12);
}

size_t eth_decode(struct eth *ret, const uint8_t *p, size_t len)
{
	bool vlan = len >= ETH_BYTES && get_be16(p + 12) == ETHERTYPE_VLAN;
	size_t bytes = ETH_BYTES + (vlan ? VLAN_BYTES : 0);

	if (len < bytes)
		return 0;
	memcpy(ret->dst, p, 6);
	memcpy(ret->src, p + 6, 6);
	ret->has_vlan = vlan;
	ret->vlan_tci = vlan ? get_be16(p + 14) : 0;
	ret->ethertype = get_be16(p + bytes - 2);
	return bytes;
}

size_t eth_encode(const struct eth *h, uint8_t *p)
{
	size_t bytes = ETH_BYTES + (h->has_vlan ? VLAN_BYTES : 0);

	memcpy(p, h->dst, 6);
	memcpy(p + 6, h->src, 6);
	if (h->has_vlan) {
		put_be16(p + 12, ETHERTYPE_VLAN);
		put_be16(p + 14, h->vlan_tci);
	}
	put_be16(p + bytes - 2, h->ethertype);
	return bytes;
}

size_t ipv4_decode(struct ipv4 *ret, const uint8_t *p, size_t len)
{
	if (len < IPV4_BYTES || p[0] != 0x45)
		return 0;
	ret->tos = p[1];
	ret->total_bytes = get_be16(p + 2);
	ret->id = get_be16(p + 4);
	ret->frag = get_be16(p + 6);
	ret->ttl = p[8];
	ret->proto = p[9];
	ret->checksum = get_be16(p + 10);
	ret->src = get_be32(p + 12);
	ret->dst = get_be32(p + 16);
	return IPV4_BYTES;
}

size_t ipv4_encode(const struct ipv4 *h, uint8_t *p)
{
	p[0] = 0x45;
	p[1] = h->tos;
	put_be16(p + 2, h->total_bytes);
	put_be16(p + 4, h->id);
	put_be16(p + 6, h->frag);
	p[8] = h->ttl;
	p[9] = h->proto;
	put_be16(p + 10, 0);
	put_be32(p + 12, h->src);
	put_be32(p + 16, h->dst);
	put_be16(p + 10, (uint16_t)~inet_sum(0, p, IPV4_BYTES));
	return IPV4_BYTES;
}

size_t ipv6_decode(struct ipv6 *ret, const uint8_t *p, size_t len)
{
	if (len < IPV6_BYTES || p[0] >> 4 != 6)
		return 0;
	ret->tclass = (uint8_t)(get_be16(p) >> 4);
	ret->flow = get_be24(p + 1) & 0xfffff;
	ret->payload_bytes = get_be16(p + 4);
	ret->next_hdr = p[6];
	ret->hop_limit = p[7];
	memcpy(ret->src.raw, p + 8, 16);
	memcpy(ret->dst.raw, p + 24, 16);
	return IPV6_BYTES;
}

size_t ipv6_encode(const struct ipv6 *h, uint8_t *p)
{
	ASSERT(h->flow <= 0xfffff);
	put_be32(p, 6u << 28 | (uint32_t)h->tclass << 20 | h->flow);
	put_be16(p + 4, h->payload_bytes);
	p[6] = h->next_hdr;
	p[7] = h->hop_limit;
	memcpy(p + 8, h->src.raw, 16);
	memcpy(p + 24, h->dst.raw, 16);
	return IPV6_BYTES;
}

size_t udp_decode(struct udp *ret, const uint8_t *p, size_t len)
{
	if (len < UDP_BYTES)
		return 0;
	ret->sport = get_be16(p);
	ret->dport = get_be16(p + 2);
	ret->len_bytes = get_be16(p + 4);
	ret->checksum = get_be16(p + 6);
	return UDP_BYTES;
}

size_t udp_encode(const struct udp *h, uint8_t *p)
{
	put_be16(p, h->sport);
	put_be16(p + 2, h->dport);
	put_be16(p + 4, h->len_bytes);
	put_be16(p + 6, h->checksum);
	return UDP_BYTES;
}

uint16_t inet_sum(uint32_t start, const uint8_t *p, size_t len)
{
	uint64_t sum = start;

	for (; len >= 2; p += 2, len -= 2)
		sum += get_be16(p);
	if (len)
		sum += (uint32_t)p[0] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}
