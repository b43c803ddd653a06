/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * net.h - Ethernet, IPv4, IPv6, UDP and the GRH, as far as RoCE needs them.
 *
 * Addresses are GIDs: 16 bytes, IPv4 as ::ffff:a.b.c.d [IBA A17.4.5].
 */
#ifndef SOFTHCA_WIRE_NET_H
#define SOFTHCA_WIRE_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ETH_BYTES 14
#define VLAN_BYTES 4
#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define UDP_BYTES 8
#define GRH_BYTES 40
#define ICRC_BYTES 4

#define ROCEV2_UDP_PORT 4791
#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_ROCEV1 0x8915
#define IPPROTO_UDP_NUM 17
#define GRH_NEXT_HDR_IBA 0x1b

enum ecn { /* low two bits of TOS / traffic class [RFC 3168] */
	   ECN_NOT_ECT = 0,
	   ECN_ECT1 = 1,
	   ECN_ECT0 = 2,
	   ECN_CE = 3,
};

struct gid {
	uint8_t raw[16];
};

bool gid_is_v4(const struct gid *g); /* ::ffff:0:0/96 */
bool gid_is_zero(const struct gid *g);
bool gid_is_multicast(const struct gid *g);
/* The IPv4 group of a multicast GID: the address that it maps, or has in its
 * last bytes after ffff as rdma_cm's names have; else one of 239.192.0.0/14
 * that follows from all of its bytes, by a convention of our own. */
struct gid gid_group_v4(const struct gid *g);
bool gid_eq(const struct gid *a, const struct gid *b);
struct gid gid_from_v4(uint32_t addr_host_order);
uint32_t gid_v4(const struct gid *g); /* host order; gid_is_v4 must hold */

struct eth {
	uint8_t dst[6], src[6];
	bool has_vlan;
	uint16_t vlan_tci;
	uint16_t ethertype;
};

struct ipv4 { /* no options: RoCE headers have none */
	uint8_t tos;
	uint16_t total_bytes;
	uint16_t id;
	uint16_t frag; /* flags and offset, raw; DF is 0x4000 */
	uint8_t ttl;
	uint8_t proto;
	uint16_t checksum; /* as on the wire; ipv4_encode computes it */
	uint32_t src, dst; /* host order */
};

struct ipv6 { /* the GRH has the same layout [IBA 8.3] */
	uint8_t tclass;
	uint32_t flow; /* 20 bits */
	uint16_t payload_bytes;
	uint8_t next_hdr;
	uint8_t hop_limit;
	struct gid src, dst;
};

struct udp {
	uint16_t sport, dport;
	uint16_t len_bytes; /* header included */
	uint16_t checksum;  /* raw; 0: none */
};

/* Decoders return the header's bytes, or 0 when len is too short or the
 * header is not of this kind (version, header length). */
size_t eth_decode(struct eth *ret, const uint8_t *p, size_t len);
size_t ipv4_decode(struct ipv4 *ret, const uint8_t *p, size_t len);
size_t ipv6_decode(struct ipv6 *ret, const uint8_t *p, size_t len);
size_t udp_decode(struct udp *ret, const uint8_t *p, size_t len);

/* Encoders return the bytes written; p has room. */
size_t eth_encode(const struct eth *h, uint8_t *p);
size_t ipv4_encode(const struct ipv4 *h, uint8_t *p); /* computes checksum */
size_t ipv6_encode(const struct ipv6 *h, uint8_t *p);
size_t udp_encode(const struct udp *h, uint8_t *p);

/* The 16-bit one's complement sum over len bytes, folded, not inverted. */
uint16_t inet_sum(uint32_t start, const uint8_t *p, size_t len);

#endif
