/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The Ethernet, IP and UDP decoders, each on the input's very bytes and one
 * behind the other. */
#include "wire/net.h"

#include <string.h>

#include "base/assert.h"
#include "fuzz_target.h"

static void fuzz_eth(const uint8_t *data, size_t size)
{
	uint8_t again[ETH_BYTES + VLAN_BYTES];
	struct eth h;
	size_t n = eth_decode(&h, data, size);

	ASSERT(n <= size && n <= sizeof(again));
	if (!n)
		return;
	ASSERT(eth_encode(&h, again) == n);
	ASSERT(memcmp(again, data, n) == 0);
}

static void fuzz_ipv4(const uint8_t *data, size_t size)
{
	uint8_t again[IPV4_BYTES];
	struct ipv4 h;

	if (!ipv4_decode(&h, data, size))
		return;
	ASSERT(size >= IPV4_BYTES);
	ASSERT(ipv4_encode(&h, again) == IPV4_BYTES);
	ASSERT(inet_sum(0, again, IPV4_BYTES) == 0xffff);
	ASSERT(memcmp(again, data, 10) == 0);
	ASSERT(memcmp(again + 12, data + 12, 8) == 0);
}

static void fuzz_ipv6(const uint8_t *data, size_t size)
{
	uint8_t again[IPV6_BYTES];
	struct ipv6 h;

	if (!ipv6_decode(&h, data, size))
		return;
	ASSERT(size >= IPV6_BYTES);
	ASSERT(ipv6_encode(&h, again) == IPV6_BYTES);
	ASSERT(memcmp(again, data, IPV6_BYTES) == 0);
}

static void fuzz_udp(const uint8_t *data, size_t size)
{
	uint8_t again[UDP_BYTES];
	struct udp h;

	if (!udp_decode(&h, data, size))
		return;
	ASSERT(size >= UDP_BYTES);
	ASSERT(udp_encode(&h, again) == UDP_BYTES);
	ASSERT(memcmp(again, data, UDP_BYTES) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct eth h;
	size_t n = eth_decode(&h, data, size);

	fuzz_eth(data, size);
	fuzz_ipv4(data, size);
	fuzz_ipv4(data + n, size - n);
	fuzz_ipv6(data, size);
	fuzz_ipv6(data + n, size - n);
	fuzz_udp(data, size);
	inet_sum((uint32_t)size, data, size);
	return 0;
}
