/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rocev2.h - the RoCEv2 encapsulation: IP and UDP around a transport packet,
 * and the ICRC over both [IBA A17.3, A17.4; ICRC: IBA 7.8.1, A17.3.3].
 */
#ifndef SOFTHCA_WIRE_ROCEV2_H
#define SOFTHCA_WIRE_ROCEV2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/net.h"

/* What the network headers of one packet say. */
struct rocev2_flow {
	struct gid src, dst; /* both IPv4-mapped or neither */
	uint16_t sport;
	uint8_t tos;	     /* TOS or traffic class, ECN included */
	uint8_t ttl;	     /* TTL or hop limit */
	uint32_t flow_label; /* IPv6, 20 bits */
	uint16_t ip_id;	     /* IPv4 */
	bool df;	     /* IPv4 don't-fragment */
};

/* IPv4: 20 or IPv6: 40, and 8 for UDP. */
size_t rocev2_overhead(const struct rocev2_flow *f);

/* The ICRC of the transport packet pkt (BTH to pad) of len bytes under these
 * network headers, ready to be stored little-endian. Ports, IPv4 ID, DF,
 * lengths and addresses are covered; TOS, TTL, flow label, checksums and the
 * BTH's byte 4 are not. */
uint32_t rocev2_icrc(const struct rocev2_flow *f, const uint8_t *pkt,
		     size_t len);

/* Appends the ICRC to the packet: writes ICRC_BYTES at pkt + len. */
void rocev2_seal(const struct rocev2_flow *f, uint8_t *pkt, size_t len);

/* True when the last ICRC_BYTES of the len bytes at pkt are right. */
bool rocev2_icrc_ok(const struct rocev2_flow *f, const uint8_t *pkt,
		    size_t len);

/* Like rocev2_icrc_ok, but for a receiver that cannot see the IPv4 ID and DF
 * (plain UDP sockets): true when some ID and DF make the ICRC right. CRC is
 * linear, so this is one subspace test of 17 dimensions, a 2^-15 check.
 * *ret_id and *ret_df receive the pair found. IPv6: the same as the exact
 * check. */
bool rocev2_icrc_ok_any_id(const struct rocev2_flow *f, const uint8_t *pkt,
			   size_t len, uint16_t *ret_id, bool *ret_df);

/* Writes IP and UDP headers for a sealed packet of len bytes (ICRC included);
 * returns rocev2_overhead(). UDP checksum 0 on IPv4 and IPv6 alike, as kernel
 * Soft-RoCE sends. */
size_t rocev2_encode_headers(const struct rocev2_flow *f, size_t len,
			     uint8_t *p);

/* Decodes IP and UDP headers at p. Returns their length (the transport packet
 * starts there) and fills *ret, with the sealed packet's length in *ret_len;
 * 0 when it is no RoCEv2 packet (not UDP, other port, fragment, lengths that
 * disagree, IPv4-mapped addresses in an IPv6 header). *ret_len may be less than
 * a BTH. The IPv4 header checksum is not looked at. */
size_t rocev2_decode_headers(struct rocev2_flow *ret, const uint8_t *p,
			     size_t len, size_t *ret_len);

#endif
