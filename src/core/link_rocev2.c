/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * link_rocev2.c - what RoCEv2 is to the core: IP and UDP around the transport
 * packet [IBA A17].
 */
#include <string.h>

#include "core/hca.h"
#include "wire/net.h"

static uint32_t overhead_bytes(const struct gid *dgid)
{
	return (gid_is_v4(dgid) ? IPV4_BYTES : IPV6_BYTES) + UDP_BYTES +
	       ICRC_BYTES;
}

/* A Linux socket buffer is charged for its head, a power of two that holds
 * headers, data and 320 bytes of shared info, and for a struct of about as
 * much (measured: 832 bytes for the smallest frame, 8.5 KB for MTU 4096). */
static uint32_t charge_bytes(uint32_t frame_bytes)
{
	const uint32_t headers = ETH_BYTES + 2 + IPV6_BYTES + UDP_BYTES;
	const uint32_t overhead = 320;
	uint32_t need = frame_bytes + ICRC_BYTES + headers + overhead;
	uint32_t head = 512;

	while (head < need)
		head *= 2;
	return head + overhead;
}

/* IPv4: the header stands in the last 20 of the 40 bytes [IBA A17.4.5.2]. */
static void grh_encode(const struct rx_frame *f, uint8_t *p)
{
	uint32_t udp_bytes = UDP_BYTES + f->len_bytes + ICRC_BYTES;

	if (gid_is_v4(&f->src)) {
		struct ipv4 h = { .tos = f->tos,
				  .total_bytes =
					  (uint16_t)(IPV4_BYTES + udp_bytes),
				  .frag = 0x4000,
				  .ttl = f->ttl,
				  .proto = IPPROTO_UDP_NUM,
				  .src = gid_v4(&f->src),
				  .dst = gid_v4(&f->dst) };

		memset(p, 0, GRH_BYTES - IPV4_BYTES);
		ipv4_encode(&h, p + GRH_BYTES - IPV4_BYTES);
	} else {
		struct ipv6 h = { .tclass = f->tos,
				  .flow = f->flow_label,
				  .payload_bytes = (uint16_t)udp_bytes,
				  .next_hdr = IPPROTO_UDP_NUM,
				  .hop_limit = f->ttl,
				  .src = f->src,
				  .dst = f->dst };

		ipv6_encode(&h, p);
	}
}

/* A completion tells IPv4, IPv6 and RoCEv1 apart [IBA A17.4.5.1]; the interface
 * has no field for it. ConnectX uses the SL, which RoCE has not, and UCX looks
 * there: 8 is "UDP", and a network header of kind 1 (IPv6) or 2 (IPv4). */
static uint8_t ud_wc_sl(const struct rx_frame *f)
{
	return gid_is_v4(&f->src) ? 8 | 2 : 8 | 1;
}

const struct link_layer link_layer_rocev2 = {
	.name = "RoCEv2",
	.needs_grh = true,
	.overhead_bytes = overhead_bytes,
	.charge_bytes = charge_bytes,
	.grh_encode = grh_encode,
	.ud_wc_sl = ud_wc_sl,
};
