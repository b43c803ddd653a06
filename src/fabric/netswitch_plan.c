/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* netswitch_plan.c - thresholds that keep a switch lossless and let ECN act
 * before PFC. */
#include "fabric/netswitch.h"

#define PAUSE_BYTES 64 /* a PFC frame */
#define NS_PER_S UINT64_C(1000000000)

static uint64_t bytes_in(uint64_t rate_bps, int64_t ns)
{
	return (rate_bps / 8 * (uint64_t)ns + NS_PER_S - 1) / NS_PER_S;
}

uint64_t netswitch_headroom(uint64_t rate_bps, int64_t one_way_ns,
			    uint32_t mtu_bytes, int64_t reaction_ns)
{
	return bytes_in(rate_bps, 2 * one_way_ns + reaction_ns) +
	       2 * (uint64_t)mtu_bytes + PAUSE_BYTES;
}

static int64_t without_headroom(uint64_t buffer_bytes, uint32_t ports,
				uint64_t headroom_bytes)
{
	return (int64_t)buffer_bytes -
	       (int64_t)(NETSWITCH_PRIOS * ports * headroom_bytes);
}

int64_t netswitch_static_xoff(uint64_t buffer_bytes, uint32_t ports,
			      uint64_t headroom_bytes)
{
	return without_headroom(buffer_bytes, ports, headroom_bytes) /
	       (NETSWITCH_PRIOS * (int64_t)ports);
}

int64_t netswitch_static_ecn_bound(uint64_t buffer_bytes, uint32_t ports,
				   uint64_t headroom_bytes)
{
	return netswitch_static_xoff(buffer_bytes, ports, headroom_bytes) /
	       (int64_t)ports;
}

int64_t netswitch_dynamic_ecn_bound(uint64_t buffer_bytes, uint32_t ports,
				    uint64_t headroom_bytes, uint32_t beta_num,
				    uint32_t beta_den)
{
	int64_t b = without_headroom(buffer_bytes, ports, headroom_bytes);

	return b * beta_num /
	       (NETSWITCH_PRIOS * (int64_t)ports * (beta_num + beta_den));
}
