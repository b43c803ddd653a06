/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire/exth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* [IBA table 45], in units of 10 us. B004: what the wait is measured by. */
static const uint32_t rnr_10us[32] = {
	65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
	48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

/* [IBA table 44] */
static const uint32_t credits[31] = {
	0,    1,    2,	  3,	4,    6,     8,	    12,	   16,	  24,	32,
	48,   64,   96,	  128,	192,  256,   384,   512,   768,	  1024, 1536,
	2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
};

static void test_rnr_timer_table(void **state)
{
	(void)state;
	for (uint8_t code = 0; code < 32; code++)
		assert_int_equal(rnr_timer_ns(code),
				 (int64_t)rnr_10us[code] * 10000);
}

static void test_credit_table(void **state)
{
	(void)state;
	for (uint8_t code = 0; code < 31; code++)
		assert_int_equal(aeth_credits(code), credits[code]);
	assert_int_equal(aeth_credits(AETH_CREDITS_INVALID), UINT32_MAX);
}

static void test_credit_code_rounds_down(void **state)
{
	uint8_t want = 0;

	(void)state;
	for (uint32_t n = 0; n < 40000; n++) {
		if (want < 30 && credits[want + 1] == n)
			want++;
		assert_int_equal(aeth_credit_code(n), want);
	}
	assert_int_equal(aeth_credit_code(UINT32_MAX), 30);
}

static void test_syndromes(void **state)
{
	(void)state;
	assert_int_equal(aeth_syndrome(AETH_ACK, AETH_CREDITS_INVALID), 0x1f);
	assert_int_equal(aeth_syndrome(AETH_RNR_NAK, 12), 0x2c);
	assert_int_equal(aeth_syndrome(AETH_NAK, NAK_PSN_SEQUENCE), 0x60);
	assert_int_equal(aeth_syndrome(AETH_NAK, NAK_INVALID_REQUEST), 0x61);
	assert_int_equal(aeth_syndrome(AETH_NAK, NAK_REMOTE_ACCESS), 0x62);
	assert_int_equal(aeth_syndrome(AETH_NAK, NAK_REMOTE_OPERATIONAL), 0x63);
	assert_int_equal(aeth_syndrome(AETH_NAK, NAK_INVALID_RD_REQUEST), 0x64);
	for (unsigned s = 0; s < 128; s++) {
		assert_int_equal(aeth_kind((uint8_t)s), s >> 5);
		assert_int_equal(aeth_value((uint8_t)s), s & 31);
		assert_int_equal(aeth_syndrome(aeth_kind((uint8_t)s),
					       aeth_value((uint8_t)s)),
				 s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rnr_timer_table),
		cmocka_unit_test(test_credit_table),
		cmocka_unit_test(test_credit_code_rounds_down),
		cmocka_unit_test(test_syndromes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
