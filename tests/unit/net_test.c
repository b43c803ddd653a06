/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire/net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static void test_gids(void **state)
{
	struct gid v4 = gid_from_v4(0x0a4d0002), zero = { { 0 } }, near = v4;

	(void)state;
	assert_memory_equal(v4.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\x4d\0\2",
			    16);
	assert_true(gid_is_v4(&v4));
	assert_int_equal(gid_v4(&v4), 0x0a4d0002);
	assert_false(gid_is_v4(&zero));
	assert_true(gid_is_zero(&zero));
	assert_false(gid_is_zero(&v4));
	for (int i = 0; i < 16; i++) {
		near.raw[i] ^= 1;
		assert_false(gid_eq(&v4, &near));
		assert_int_equal(gid_is_v4(&near), i >= 12);
		near.raw[i] ^= 1;
	}
	assert_true(gid_eq(&v4, &near));
}

static void test_inet_sum(void **state)
{
	static const uint8_t rfc1071[] = { 0x00, 0x01, 0xf2, 0x03,
					   0xf4, 0xf5, 0xf6, 0xf7 };
	static const uint8_t ones[4] = { 0xff, 0xff, 0xff, 0xff };

	(void)state;
	assert_int_equal(inet_sum(0, rfc1071, 8), 0xddf2);
	assert_int_equal(inet_sum(0, rfc1071, 7), 0xddf2 - 0xf7);
	assert_int_equal(inet_sum(0, rfc1071, 0), 0);
	assert_int_equal(inet_sum(0, rfc1071 + 2, 1), 0xf200);
	assert_int_equal(inet_sum(0x12345, ones, 0), 0x2346);
	assert_int_equal(inet_sum(UINT32_MAX, ones, 4), 0xffff);
}

static void test_eth(void **state)
{
	static const uint8_t plain[] = { 1, 2, 3,  4,  5,  6,	 7,
					 8, 9, 10, 11, 12, 0x08, 0x00 };
	static const uint8_t tagged[] = { 1,	2, 3,	 4,    5,    6,
					  7,	8, 9,	 10,   11,   12,
					  0x81, 0, 0x60, 0x2a, 0x86, 0xdd };
	uint8_t out[18];
	struct eth h;

	(void)state;
	assert_int_equal(eth_decode(&h, plain, 14), 14);
	assert_false(h.has_vlan);
	assert_int_equal(h.ethertype, ETHERTYPE_IPV4);
	assert_memory_equal(h.dst, plain, 6);
	assert_memory_equal(h.src, plain + 6, 6);
	assert_int_equal(eth_encode(&h, out), 14);
	assert_memory_equal(out, plain, 14);
	assert_int_equal(eth_decode(&h, tagged, 18), 18);
	assert_true(h.has_vlan);
	assert_int_equal(h.vlan_tci, 0x602a);
	assert_int_equal(h.ethertype, ETHERTYPE_IPV6);
	assert_int_equal(eth_encode(&h, out), 18);
	assert_memory_equal(out, tagged, 18);
	for (size_t len = 0; len < 18; len++)
		assert_int_equal(eth_decode(&h, tagged, len), 0);
	for (size_t len = 0; len < 14; len++)
		assert_int_equal(eth_decode(&h, plain, len), 0);
}

static const uint8_t v4_header[] = { 0x45, 0xba, 0x00, 0x73, 0x12, 0x34, 0x40,
				     0x00, 0x3f, 0x11, 0,    0,	   0xc0, 0xa8,
				     0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7 };

static void test_ipv4(void **state)
{
	uint8_t out[20], bad[20];
	struct ipv4 h;

	(void)state;
	assert_int_equal(ipv4_decode(&h, v4_header, 20), 20);
	assert_int_equal(h.tos, 0xba);
	assert_int_equal(h.total_bytes, 0x73);
	assert_int_equal(h.id, 0x1234);
	assert_int_equal(h.frag, 0x4000);
	assert_int_equal(h.ttl, 0x3f);
	assert_int_equal(h.proto, 17);
	assert_int_equal(h.src, 0xc0a80001);
	assert_int_equal(h.dst, 0xc0a800c7);
	assert_int_equal(ipv4_encode(&h, out), 20);
	assert_int_equal(inet_sum(0, out, 20), 0xffff);
	memcpy(out + 10, v4_header + 10, 2);
	assert_memory_equal(out, v4_header, 20);
	memcpy(bad, v4_header, 20);
	for (int b = 0; b < 256; b++) {
		bad[0] = (uint8_t)b;
		assert_int_equal(ipv4_decode(&h, bad, 20), b == 0x45 ? 20 : 0);
	}
	for (size_t len = 0; len < 20; len++)
		assert_int_equal(ipv4_decode(&h, v4_header, len), 0);
}

/* A header whose checksum is known from elsewhere. */
static void test_ipv4_checksum(void **state)
{
	struct ipv4 h = { .total_bytes = 0x73,
			  .frag = 0x4000,
			  .ttl = 0x40,
			  .proto = 17,
			  .src = 0xc0a80001,
			  .dst = 0xc0a800c7 };
	uint8_t out[20];

	(void)state;
	ipv4_encode(&h, out);
	assert_memory_equal(out + 10, "\xb8\x61", 2);
	assert_int_equal(ipv4_decode(&h, out, 20), 20);
	assert_int_equal(h.checksum, 0xb861);
}

static void test_ipv6(void **state)
{
	uint8_t in[40] = { 0x6a, 0xbc, 0xde, 0xf1, 0x01, 0x02, 17, 64 };
	uint8_t out[40];
	struct ipv6 h;

	(void)state;
	for (int i = 8; i < 40; i++)
		in[i] = (uint8_t)i;
	assert_int_equal(ipv6_decode(&h, in, 40), 40);
	assert_int_equal(h.tclass, 0xab);
	assert_int_equal(h.flow, 0xcdef1);
	assert_int_equal(h.payload_bytes, 0x102);
	assert_int_equal(h.next_hdr, 17);
	assert_int_equal(h.hop_limit, 64);
	assert_memory_equal(h.src.raw, in + 8, 16);
	assert_memory_equal(h.dst.raw, in + 24, 16);
	assert_int_equal(ipv6_encode(&h, out), 40);
	assert_memory_equal(out, in, 40);
	for (size_t len = 0; len < 40; len++)
		assert_int_equal(ipv6_decode(&h, in, len), 0);
	in[0] = 0x5a;
	assert_int_equal(ipv6_decode(&h, in, 40), 0);
}

static void test_udp(void **state)
{
	static const uint8_t in[] = { 0xc1, 0x21, 0x12, 0xb7,
				      0x01, 0x20, 0xab, 0xcd };
	uint8_t out[8];
	struct udp h;

	(void)state;
	assert_int_equal(udp_decode(&h, in, 8), 8);
	assert_int_equal(h.sport, 49441);
	assert_int_equal(h.dport, ROCEV2_UDP_PORT);
	assert_int_equal(h.len_bytes, 288);
	assert_int_equal(h.checksum, 0xabcd);
	assert_int_equal(udp_encode(&h, out), 8);
	assert_memory_equal(out, in, 8);
	for (size_t len = 0; len < 8; len++)
		assert_int_equal(udp_decode(&h, in, len), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gids),
		cmocka_unit_test(test_inet_sum),
		cmocka_unit_test(test_eth),
		cmocka_unit_test(test_ipv4),
		cmocka_unit_test(test_ipv4_checksum),
		cmocka_unit_test(test_ipv6),
		cmocka_unit_test(test_udp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
