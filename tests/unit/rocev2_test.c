/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire/rocev2.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "wire/icrc_shift.h"

#define MAX 4300

/* Both as kernel Soft-RoCE sent them, from the IP header to the ICRC. */
static const char v4_fetch_add[] =
	"450000481f834000401106840a4d00030a4d0002c34912b700340000"
	"1400ffff0000001d80aaec9a0000558b1251b00000000d2c00000000"
	"0000000100000000000000000f1e0896";
static const char v6_ud_send[] =
	"6000000000841140fd770000000000000000000000000003fd770000"
	"000000000000000000000002cab312b7008400006400ffff00000018"
	"00ea18db11111111000000187b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b"
	"7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b"
	"7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b"
	"7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b"
	"7f24b256";

struct sample {
	uint8_t ip[256]; /* the whole packet */
	size_t len;
	struct rocev2_flow flow;
	const uint8_t *pkt;
	size_t pkt_len; /* ICRC included */
};

static void load(struct sample *s, const char *hex)
{
	size_t hdr;

	s->len = strlen(hex) / 2;
	for (size_t i = 0; i < s->len; i++) {
		char byte[3] = { hex[2 * i], hex[2 * i + 1], 0 };

		s->ip[i] = (uint8_t)strtoul(byte, NULL, 16);
	}
	hdr = rocev2_decode_headers(&s->flow, s->ip, s->len, &s->pkt_len);
	assert_int_equal(hdr, s->ip[0] >> 4 == 4 ? 28 : 48);
	assert_int_equal(hdr, rocev2_overhead(&s->flow));
	assert_int_equal(hdr + s->pkt_len, s->len);
	s->pkt = s->ip + hdr;
}

/* The same rules again, over whole bytes of the IP packet, bit by bit. */
static uint32_t icrc_slow(const uint8_t *ip, size_t len)
{
	static const uint8_t v4_ones[] = { 1, 8, 10, 11, 26, 27, 32 };
	static const uint8_t v6_ones[] = { 1, 2, 3, 7, 46, 47, 52 };
	bool v4 = ip[0] >> 4 == 4;
	uint32_t crc = UINT32_MAX;
	uint8_t m[8 + MAX];

	memset(m, 0xff, 8);
	memcpy(m + 8, ip, len);
	for (int i = 0; i < 7; i++)
		m[8 + (v4 ? v4_ones[i] : v6_ones[i])] = 0xff;
	if (!v4)
		m[8] |= 0x0f;
	for (size_t i = 0; i < (8 + len) * 8; i++) {
		uint32_t bit = (crc ^ (m[i / 8] >> i % 8)) & 1;

		crc = crc >> 1 ^ (bit ? 0xedb88320 : 0);
	}
	return ~crc;
}

static void test_golden(void **state)
{
	const char *hex[] = { v4_fetch_add, v6_ud_send };
	struct sample s;

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint8_t hdr[48];

		load(&s, hex[i]);
		assert_true(rocev2_icrc_ok(&s.flow, s.pkt, s.pkt_len));
		assert_int_equal(icrc_slow(s.ip, s.len - 4),
				 get_le32(s.ip + s.len - 4));
		rocev2_encode_headers(&s.flow, s.pkt_len, hdr);
		assert_memory_equal(hdr, s.ip, (size_t)(s.pkt - s.ip));
	}
}

static void test_golden_fields(void **state)
{
	struct sample s;

	(void)state;
	load(&s, v4_fetch_add);
	assert_int_equal(gid_v4(&s.flow.src), 0x0a4d0003);
	assert_int_equal(gid_v4(&s.flow.dst), 0x0a4d0002);
	assert_int_equal(s.flow.sport, 0xc349);
	assert_int_equal(s.flow.tos, 0);
	assert_int_equal(s.flow.ttl, 64);
	assert_int_equal(s.flow.ip_id, 0x1f83);
	assert_true(s.flow.df);
	load(&s, v6_ud_send);
	assert_int_equal(s.flow.src.raw[15], 3);
	assert_int_equal(s.flow.dst.raw[15], 2);
	assert_int_equal(s.flow.ttl, 64);
	assert_int_equal(s.flow.flow_label, 0);
}

static struct rocev2_flow random_flow(struct prng *r, bool v4)
{
	struct rocev2_flow f = { .sport = (uint16_t)prng_u64(r),
				 .tos = (uint8_t)prng_u64(r),
				 .ttl = (uint8_t)prng_u64(r) };

	if (v4) {
		f.src = gid_from_v4(prng_u32(r));
		f.dst = gid_from_v4(prng_u32(r));
		f.ip_id = (uint16_t)prng_u64(r);
		f.df = prng_u64(r) & 1;
		return f;
	}
	for (int i = 0; i < 16; i++) {
		f.src.raw[i] = (uint8_t)prng_u64(r);
		f.dst.raw[i] = (uint8_t)prng_u64(r);
	}
	f.flow_label = prng_u32(r) & 0xfffff;
	return f;
}

/* Encode, seal, check by the slow way, decode: every length that matters. */
static void test_seal_and_decode(void **state)
{
	uint8_t p[48 + MAX];
	struct prng r;

	(void)state;
	prng_init(&r, 21);
	for (size_t len = 12; len <= 4200; len += len < 200 ? 1 : 67) {
		struct rocev2_flow f = random_flow(&r, len & 1), back;
		size_t hdr = rocev2_encode_headers(&f, len + 4, p), back_len;

		assert_int_equal(hdr, rocev2_overhead(&f));
		for (size_t i = 0; i < len; i++)
			p[hdr + i] = (uint8_t)prng_u64(&r);
		rocev2_seal(&f, p + hdr, len);
		assert_int_equal(get_le32(p + hdr + len),
				 icrc_slow(p, hdr + len));
		assert_true(rocev2_icrc_ok(&f, p + hdr, len + 4));
		memset(&back, 0xa5, sizeof(back));
		assert_int_equal(rocev2_decode_headers(&back, p, hdr + len + 4,
						       &back_len),
				 hdr);
		assert_int_equal(back_len, len + 4);
		assert_int_equal(rocev2_encode_headers(&back, len + 4, p), hdr);
		assert_true(rocev2_icrc_ok(&back, p + hdr, len + 4));
	}
}

/* What 16 bits of length can say at most: headers only. */
static void test_largest_headers(void **state)
{
	static uint8_t p[65535 + IPV6_BYTES];
	struct prng r;

	(void)state;
	prng_init(&r, 22);
	for (int v4 = 0; v4 < 2; v4++) {
		size_t max = 65535 - UDP_BYTES - (v4 ? IPV4_BYTES : 0);
		struct rocev2_flow f = random_flow(&r, v4), back;
		size_t hdr = rocev2_encode_headers(&f, max, p), len;

		assert_int_equal(
			rocev2_decode_headers(&back, p, hdr + max, &len), hdr);
		assert_int_equal(len, max);
		assert_int_equal(rocev2_encode_headers(&back, len, p), hdr);
	}
}

/* Each bit of the packet is covered, or is one that may change on the way. */
static void test_coverage(void **state)
{
	static const bool v4_open[72] = {
		[1] = 1,  [8] = 1,  [10] = 1, [11] = 1,
		[26] = 1, [27] = 1, [32] = 1
	};
	struct sample s;

	(void)state;
	load(&s, v4_fetch_add);
	for (size_t bit = 0; bit < s.len * 8; bit++) {
		struct rocev2_flow f;
		bool ok = false;
		size_t len;

		s.ip[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (rocev2_decode_headers(&f, s.ip, s.len, &len))
			ok = rocev2_icrc_ok(&f, s.pkt, len);
		assert_int_equal(ok, v4_open[bit / 8]);
		s.ip[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void test_too_short(void **state)
{
	struct sample s;
	uint16_t id;
	bool df;

	(void)state;
	load(&s, v4_fetch_add);
	for (size_t len = 0; len < s.pkt_len; len++) {
		uint8_t *p = malloc(len ? len : 1); /* for the sanitizers */

		memcpy(p, s.pkt, len);
		assert_false(rocev2_icrc_ok(&s.flow, p, len));
		assert_false(rocev2_icrc_ok_any_id(&s.flow, p, len, &id, &df));
		free(p);
	}
}

static void test_any_id_finds_each(void **state)
{
	struct sample s;
	uint8_t p[64];

	(void)state;
	load(&s, v4_fetch_add);
	memcpy(p, s.pkt, s.pkt_len);
	for (uint32_t i = 0; i < 0x20000; i += i < 300 ? 1 : 7) {
		struct rocev2_flow sent = s.flow;
		uint16_t id = 1;
		bool df = false;

		sent.ip_id = (uint16_t)i;
		sent.df = i >> 16;
		rocev2_seal(&sent, p, s.pkt_len - 4);
		assert_true(
			rocev2_icrc_ok_any_id(&s.flow, p, s.pkt_len, &id, &df));
		assert_int_equal(id, sent.ip_id);
		assert_int_equal(df, sent.df);
		assert_int_equal(rocev2_icrc_ok(&s.flow, p, s.pkt_len),
				 id == s.flow.ip_id && df == s.flow.df);
	}
}

static void test_any_id_at_each_length(void **state)
{
	static uint8_t p[MAX];
	struct prng r;

	(void)state;
	prng_init(&r, 31);
	for (size_t len = 12; len <= 4200; len++) {
		struct rocev2_flow f = random_flow(&r, true), guess = f;
		uint16_t id = 0;
		bool df = false;

		p[len - 1] = (uint8_t)prng_u64(&r);
		rocev2_seal(&f, p, len);
		guess.ip_id = 0;
		guess.df = true;
		assert_true(
			rocev2_icrc_ok_any_id(&guess, p, len + 4, &id, &df));
		assert_int_equal(id, f.ip_id);
		assert_int_equal(df, f.df);
	}
}

/* 100,000 random damages pass with chance 2^-15: 3 expected, 15 never. */
static void test_any_id_rejects_damage(void **state)
{
	unsigned passed = 0;
	struct sample s;
	uint8_t p[64];
	struct prng r;
	uint16_t id = 77;
	bool df = true;

	(void)state;
	prng_init(&r, 41);
	load(&s, v4_fetch_add);
	memcpy(p, s.pkt, s.pkt_len);
	for (size_t bit = 0; bit < s.pkt_len * 8; bit++) {
		p[bit / 8] ^= (uint8_t)(1 << bit % 8);
		if (bit / 8 != 4) /* FECN, BECN: not covered */
			assert_false(rocev2_icrc_ok_any_id(
				&s.flow, p, s.pkt_len, &id, &df));
		p[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_int_equal(id, 77);
	for (int i = 0; i < 100000; i++) {
		put_be32(p + 40, prng_u32(&r));
		p[prng_below(&r, 12)] ^= (uint8_t)(1 + prng_below(&r, 255));
		passed +=
			rocev2_icrc_ok_any_id(&s.flow, p, s.pkt_len, &id, &df);
	}
	assert_in_range(passed, 0, 15);
}

/* Which single bits the relaxed check is blind to depends on their distance
 * from the ID only: docs/wire.md names the two. The exact check sees all. */
static void test_any_id_single_bits(void **state)
{
	static uint8_t p[12 + 4096 + 4];
	struct rocev2_flow f;
	struct prng r;
	uint16_t id;
	bool df;

	(void)state;
	prng_init(&r, 51);
	f = random_flow(&r, true);
	rocev2_seal(&f, p, sizeof(p) - 4);
	for (size_t bit = 0; bit < sizeof(p) * 8; bit++) {
		size_t ip_byte = 28 + bit / 8;
		bool blind = (ip_byte == 201 && bit % 8 == 3) ||
			     (ip_byte == 1862 && bit % 8 == 6);

		if (ip_byte == 32) /* FECN, BECN, reserved: not covered */
			continue;
		p[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(rocev2_icrc_ok(&f, p, sizeof(p)));
		assert_int_equal(
			rocev2_icrc_ok_any_id(&f, p, sizeof(p), &id, &df),
			blind);
		p[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

/* Of the 32 bits from the ID on, only ID and DF may differ: not the reserved
 * flag, more-fragments or the offset. */
static void test_any_id_opens_17_bits(void **state)
{
	struct sample s;
	uint16_t id;
	bool df;

	(void)state;
	for (unsigned bit = 0; bit < 32; bit++) {
		load(&s, v4_fetch_add);
		s.ip[4 + bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
		put_le32(s.ip + s.len - 4, icrc_slow(s.ip, s.len - 4));
		assert_int_equal(rocev2_icrc_ok_any_id(&s.flow, s.pkt,
						       s.pkt_len, &id, &df),
				 bit < 16 || bit == 17);
	}
}

static void test_any_id_on_ipv6_is_exact(void **state)
{
	struct sample s;
	uint8_t p[160];
	uint16_t id = 9;
	bool df = true;

	(void)state;
	load(&s, v6_ud_send);
	memcpy(p, s.pkt, s.pkt_len);
	assert_true(rocev2_icrc_ok_any_id(&s.flow, p, s.pkt_len, &id, &df));
	for (size_t i = s.pkt_len - 4; i < s.pkt_len; i++)
		for (int x = 1; x < 256; x++) {
			p[i] ^= (uint8_t)x;
			assert_false(rocev2_icrc_ok_any_id(
				&s.flow, p, s.pkt_len, &id, &df));
			p[i] ^= (uint8_t)x;
		}
}

/* Against the definition: a register of flips, run on by zero bits. */
static void test_unshift_every_distance(void **state)
{
	const uint32_t flips = 0x12345678;
	uint32_t reg = flips;

	(void)state;
	for (size_t bytes = 0; bytes < 1 << 18; bytes++) {
		if (bytes < 5000 || bytes % 61 == 0)
			assert_int_equal(icrc_unshift(reg, bytes), flips);
		for (int k = 0; k < 8; k++)
			reg = reg >> 1 ^ (reg & 1 ? 0xedb88320 : 0);
	}
}

struct edit {
	uint8_t at, value;
};

/* One change each that makes it no RoCEv2 packet. */
static void check_edits(const char *hex, const struct edit *edit, size_t n)
{
	struct sample s;

	for (size_t i = 0; i < n; i++) {
		struct rocev2_flow f, untouched;
		size_t len = 1234;

		load(&s, hex);
		memset(&f, 0xa5, sizeof(f));
		untouched = f;
		assert_int_not_equal(s.ip[edit[i].at], edit[i].value);
		s.ip[edit[i].at] = edit[i].value;
		assert_int_equal(rocev2_decode_headers(&f, s.ip, s.len, &len),
				 0);
		assert_memory_equal(&f, &untouched, sizeof(f));
		assert_int_equal(len, 1234);
	}
}

static void test_decode_refuses(void **state)
{
	static const struct edit v4[] = {
		{ 0, 0x46 },  /* options */
		{ 0, 0x65 },  /* neither 4 nor 6 */
		{ 2, 1 },     /* longer than what there is */
		{ 3, 0x47 },  /* not what UDP says */
		{ 3, 0x10 },  /* less than its own header */
		{ 6, 0x60 },  /* more fragments */
		{ 6, 0xc0 },  /* reserved flag */
		{ 7, 0x01 },  /* fragment offset */
		{ 9, 6 },     /* TCP */
		{ 22, 0 },    /* another port */
		{ 23, 0xb8 }, /* another port */
		{ 25, 0x33 }, /* not what IP says */
	};
	static const struct edit v6[] = {
		{ 0, 0x50 }, { 4, 1 },	{ 5, 0x83 },  { 6, 44 },
		{ 6, 6 },    { 42, 0 }, { 45, 0x85 },
	};

	(void)state;
	check_edits(v4_fetch_add, v4, sizeof(v4) / sizeof(v4[0]));
	check_edits(v6_ud_send, v6, sizeof(v6) / sizeof(v6[0]));
}

/* A UDP length below its header, agreed on by IP. */
static void test_decode_refuses_tiny_udp(void **state)
{
	struct rocev2_flow f;
	struct sample s;
	size_t len;

	(void)state;
	load(&s, v4_fetch_add);
	for (uint8_t udp = 0; udp < 10; udp++) {
		s.ip[3] = (uint8_t)(20 + udp);
		s.ip[25] = udp;
		assert_int_equal(rocev2_decode_headers(&f, s.ip, s.len, &len),
				 udp < 8 ? 0 : 28);
		if (udp >= 8)
			assert_int_equal(len, udp - 8);
	}
}

/* An IPv6 header with an IPv4-mapped address would make a flow that lies. */
static void test_decode_refuses_mapped_in_ipv6(void **state)
{
	struct gid mapped = gid_from_v4(0x0a000001);
	struct rocev2_flow f;
	struct sample s;
	size_t len;

	(void)state;
	for (int at = 8; at <= 24; at += 16) {
		load(&s, v6_ud_send);
		memcpy(s.ip + at, mapped.raw, 16);
		assert_int_equal(rocev2_decode_headers(&f, s.ip, s.len, &len),
				 0);
	}
}

static void test_decode_truncated(void **state)
{
	const char *hex[] = { v4_fetch_add, v6_ud_send };
	struct rocev2_flow f;
	struct sample s;
	size_t pkt_len;

	(void)state;
	for (int i = 0; i < 2; i++) {
		load(&s, hex[i]);
		for (size_t len = 0; len < s.len; len++) {
			uint8_t *p = malloc(len ? len : 1);

			memcpy(p, s.ip, len);
			assert_int_equal(
				rocev2_decode_headers(&f, p, len, &pkt_len), 0);
			free(p);
		}
		/* Ethernet's padding behind it is no harm. */
		assert_true(
			rocev2_decode_headers(&f, s.ip, s.len + 6, &pkt_len));
		assert_int_equal(pkt_len, s.pkt_len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_golden_fields),
		cmocka_unit_test(test_seal_and_decode),
		cmocka_unit_test(test_largest_headers),
		cmocka_unit_test(test_coverage),
		cmocka_unit_test(test_too_short),
		cmocka_unit_test(test_any_id_finds_each),
		cmocka_unit_test(test_any_id_at_each_length),
		cmocka_unit_test(test_any_id_rejects_damage),
		cmocka_unit_test(test_any_id_single_bits),
		cmocka_unit_test(test_any_id_opens_17_bits),
		cmocka_unit_test(test_any_id_on_ipv6_is_exact),
		cmocka_unit_test(test_unshift_every_distance),
		cmocka_unit_test(test_decode_refuses),
		cmocka_unit_test(test_decode_refuses_tiny_udp),
		cmocka_unit_test(test_decode_refuses_mapped_in_ipv6),
		cmocka_unit_test(test_decode_truncated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
