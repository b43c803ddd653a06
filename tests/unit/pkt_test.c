/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire/pkt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/prng.h"

/* What pkt.h says of len bytes that begin with this opcode and pad. */
static enum pkt_verdict oracle(uint8_t opcode, unsigned pad, unsigned tver,
			       size_t len)
{
	const struct opcode_info *info = opcode_lookup(opcode);
	size_t body;

	if (len < 12)
		return PKT_SHORT;
	if (tver)
		return PKT_BAD_TVER;
	if (!info->name)
		return PKT_BAD_OPCODE;
	if (len < info->hdr_bytes)
		return PKT_SHORT;
	if (len & 3)
		return PKT_BAD_LENGTH;
	body = len - info->hdr_bytes;
	if (pad > body)
		return PKT_BAD_PAD;
	if (body > 0 && !(info->flags & OPCODE_PAYLOAD))
		return PKT_BAD_PAD;
	return body - pad > 4096 ? PKT_TOO_LONG : PKT_OK;
}

static void check_ok(const struct pkt *k, const uint8_t *p, size_t len)
{
	uint8_t hdr[PKT_HDR_MAX + 1], *want;
	size_t bytes = k->info->hdr_bytes;

	assert_ptr_equal(k->info, opcode_lookup(p[0]));
	assert_ptr_equal(k->payload, p + bytes);
	assert_int_equal(k->payload_bytes, len - bytes - k->bth.pad);
	assert_true(bytes <= PKT_HDR_MAX);
	memset(hdr, 0xee, sizeof(hdr));
	assert_int_equal(pkt_encode_headers(k, hdr), bytes);
	assert_int_equal(hdr[bytes], 0xee);
	want = malloc(bytes);
	memcpy(want, p, bytes);
	if (k->info->exth & EXTH_CNP_PAD)
		memset(want + 12, 0, 16); /* reserved: not kept */
	assert_memory_equal(hdr, want, bytes);
	free(want);
}

/* On the heap and of exactly len bytes, so that sanitizers see a read past. */
static enum pkt_verdict decode_random(struct prng *r, uint8_t opcode,
				      unsigned pad, unsigned tver, size_t len)
{
	uint8_t *p = malloc(len ? len : 1);
	struct pkt k, untouched;
	enum pkt_verdict v;

	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)prng_u64(r);
	if (len > 0)
		p[0] = opcode;
	if (len > 1)
		p[1] = (uint8_t)((p[1] & 0xc0) | pad << 4 | tver);
	memset(&k, 0xa5, sizeof(k));
	untouched = k;
	v = pkt_decode(&k, p, len);
	if (v == PKT_OK)
		check_ok(&k, p, len);
	else
		assert_memory_equal(&k, &untouched, sizeof(k));
	free(p);
	return v;
}

static void test_every_opcode_and_length(void **state)
{
	unsigned count[PKT_VERDICTS] = { 0 };
	struct prng r;

	(void)state;
	prng_init(&r, 11);
	for (unsigned op = 0; op < 256; op++)
		for (size_t len = 0; len <= 80; len++)
			for (unsigned pad = 0; pad <= 4; pad++) {
				unsigned tver = pad == 4;
				enum pkt_verdict v = decode_random(
					&r, (uint8_t)op, pad & 3, tver, len);

				assert_int_equal(v, oracle((uint8_t)op, pad & 3,
							   tver, len));
				count[v]++;
			}
	for (int v = 0; v < PKT_VERDICTS; v++)
		if (v != PKT_TOO_LONG)
			assert_true(count[v] > 100);
}

static void test_longest(void **state)
{
	struct prng r;

	(void)state;
	prng_init(&r, 12);
	assert_int_equal(decode_random(&r, 0x04, 0, 0, 12 + 4096), PKT_OK);
	assert_int_equal(decode_random(&r, 0x04, 3, 0, 12 + 4096), PKT_OK);
	assert_int_equal(decode_random(&r, 0x04, 3, 0, 12 + 4100),
			 PKT_TOO_LONG);
	assert_int_equal(decode_random(&r, 0x04, 0, 0, 12 + 4100),
			 PKT_TOO_LONG);
	assert_int_equal(decode_random(&r, 0xab, 0, 0, 36 + 4096), PKT_OK);
	assert_int_equal(decode_random(&r, 0xab, 0, 0, 36 + 65000),
			 PKT_TOO_LONG);
}

/* One packet with each header, its bytes as the specification draws them. */
static void test_write_only_imm(void **state)
{
	static const uint8_t p[] = {
		0x0b, 0xb0, 0xff, 0xff, 0,    0,    0,	  0x11, 0x80,
		0,    0,    5,	  1,	2,    3,    4,	  5,	6,
		7,    8,    0xa1, 0xa2, 0xa3, 0xa4, 0x00, 0x01, 0x02,
		0x01, 0xca, 0xfe, 0xba, 0xbe, 'x',  0,	  0,	0,
	};
	struct pkt k;

	(void)state;
	assert_int_equal(pkt_decode(&k, p, sizeof(p)), PKT_OK);
	assert_true(k.bth.solicited);
	assert_int_equal(k.bth.pad, 3);
	assert_int_equal(k.ext.reth.va, UINT64_C(0x0102030405060708));
	assert_int_equal(k.ext.reth.rkey, 0xa1a2a3a4);
	assert_int_equal(k.ext.reth.len_bytes, 0x10201);
	assert_int_equal(k.ext.immdt, 0xcafebabe);
	assert_int_equal(k.payload_bytes, 1);
	assert_int_equal(k.payload[0], 'x');
}

static void test_cmp_swap(void **state)
{
	static const uint8_t p[] = {
		0x13, 0,    0xff, 0xff, 0,    0,    0,	  0x11, 0x80, 0,
		0,    5,    0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x80,
		0xaa, 0xbb, 0xcc, 0xdd, 1,    2,    3,	  4,	5,    6,
		7,    8,    9,	  10,	11,   12,   13,	  14,	15,   16,
	};
	struct pkt k;

	(void)state;
	assert_int_equal(pkt_decode(&k, p, sizeof(p)), PKT_OK);
	assert_int_equal(k.ext.atomiceth.va, UINT64_C(0x1020304050607080));
	assert_int_equal(k.ext.atomiceth.rkey, 0xaabbccdd);
	assert_int_equal(k.ext.atomiceth.swap_or_add,
			 UINT64_C(0x0102030405060708));
	assert_int_equal(k.ext.atomiceth.compare, UINT64_C(0x090a0b0c0d0e0f10));
}

static void test_atomic_ack(void **state)
{
	static const uint8_t p[] = {
		0x12, 0, 0xff, 0xff, 0, 0, 0, 0x12, 0, 0, 0, 9,
		0x1f, 1, 2,    3,    8, 7, 6, 5,    4, 3, 2, 1,
	};
	struct pkt k;

	(void)state;
	assert_int_equal(pkt_decode(&k, p, sizeof(p)), PKT_OK);
	assert_int_equal(k.ext.aeth.syndrome, 0x1f);
	assert_int_equal(k.ext.aeth.msn, 0x010203);
	assert_int_equal(k.ext.atomicacketh, UINT64_C(0x0807060504030201));
	assert_int_equal(k.payload_bytes, 0);
}

static void test_ud_send_imm(void **state)
{
	static const uint8_t p[] = {
		0x65, 0, 0xff, 0xff, 0,	   0xff, 0xff, 0xff, 0, 0, 0, 1,
		0x80, 1, 0,    0,    0x5a, 0,	 0,    1,    9, 8, 7, 6,
	};
	struct pkt k;

	(void)state;
	assert_int_equal(pkt_decode(&k, p, sizeof(p)), PKT_OK);
	assert_int_equal(k.ext.deth.qkey, 0x80010000);
	assert_int_equal(k.ext.deth.resv8, 0x5a);
	assert_int_equal(k.ext.deth.src_qpn, 1);
	assert_int_equal(k.ext.immdt, 0x09080706);
	assert_int_equal(k.bth.dest_qpn, BTH_QPN_MULTICAST);
}

static void test_xrc_send_inv_and_flush(void **state)
{
	static const uint8_t inv[] = {
		0xb7, 0, 0xff, 0xff, 0, 0, 0, 0x12, 0, 0,
		0,    9, 0,    1,    2, 3, 4, 5,    6, 7,
	};
	static const uint8_t flush[] = {
		0x1c, 0, 0xff, 0xff, 0,	   0, 0, 0x12, 0, 0, 0,
		9,    0, 0,    0,    0x13, 0, 0, 0,    0, 0, 0,
		1,    0, 0xab, 0xcd, 0xef, 1, 0, 0,    2, 0,
	};
	struct pkt k;

	(void)state;
	assert_int_equal(pkt_decode(&k, inv, sizeof(inv)), PKT_OK);
	assert_int_equal(k.ext.xrceth, 0x010203);
	assert_int_equal(k.ext.ieth, 0x04050607);
	assert_int_equal(pkt_decode(&k, flush, sizeof(flush)), PKT_OK);
	assert_int_equal(k.ext.feth, 0x13);
	assert_int_equal(k.ext.reth.va, 0x100);
	assert_int_equal(k.ext.reth.rkey, 0xabcdef01);
	assert_int_equal(k.ext.reth.len_bytes, 0x200);
}

static void test_pad_and_names(void **state)
{
	static const uint32_t pad[] = { 0, 3, 2, 1 };

	(void)state;
	for (uint32_t n = 0; n < 20; n++)
		assert_int_equal(pkt_pad(n), pad[n % 4]);
	for (int v = 0; v < PKT_VERDICTS; v++)
		for (int w = 0; w < v; w++)
			assert_string_not_equal(
				pkt_verdict_name((enum pkt_verdict)v),
				pkt_verdict_name((enum pkt_verdict)w));
	assert_string_equal(pkt_verdict_name(PKT_BAD_PAD), "bad_pad");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_opcode_and_length),
		cmocka_unit_test(test_longest),
		cmocka_unit_test(test_write_only_imm),
		cmocka_unit_test(test_cmp_swap),
		cmocka_unit_test(test_atomic_ack),
		cmocka_unit_test(test_ud_send_imm),
		cmocka_unit_test(test_xrc_send_inv_and_flush),
		cmocka_unit_test(test_pad_and_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
