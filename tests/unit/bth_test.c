/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire/bth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/prng.h"

static void test_fields_at_their_places(void **state)
{
	static const uint8_t bytes[BTH_BYTES] = { 0x0a, 0xe5, 0x12, 0x34,
						  0x95, 0xab, 0xcd, 0xef,
						  0xd6, 0x65, 0x43, 0x21 };
	struct bth h;
	uint8_t out[BTH_BYTES];

	(void)state;
	bth_decode(&h, bytes);
	assert_int_equal(h.opcode, 0x0a);
	assert_true(h.solicited);
	assert_true(h.migreq);
	assert_int_equal(h.pad, 2);
	assert_int_equal(h.tver, 5);
	assert_int_equal(h.pkey, 0x1234);
	assert_true(h.fecn);
	assert_false(h.becn);
	assert_int_equal(h.resv6, 0x15);
	assert_int_equal(h.dest_qpn, 0xabcdef);
	assert_true(h.ackreq);
	assert_int_equal(h.resv7, 0x56);
	assert_int_equal(h.psn.v, 0x654321);
	bth_encode(&h, out);
	assert_memory_equal(out, bytes, sizeof(out));
}

/* Any bytes decode and come back; each bit belongs to one field only. */
static void test_round_trip(void **state)
{
	uint8_t in[BTH_BYTES], out[BTH_BYTES];
	struct bth h;
	struct prng r;

	(void)state;
	prng_init(&r, 5);
	for (int i = 0; i < 20000; i++) {
		memset(in, 0, sizeof(in));
		if (i < 96)
			in[i / 8] = (uint8_t)(1 << i % 8);
		for (int k = 0; i >= 96 && k < BTH_BYTES; k++)
			in[k] = (uint8_t)prng_u64(&r);
		memset(&h, 0xa5, sizeof(h));
		memset(out, 0x5a, sizeof(out));
		bth_decode(&h, in);
		bth_encode(&h, out);
		assert_memory_equal(in, out, sizeof(in));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields_at_their_places),
		cmocka_unit_test(test_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
