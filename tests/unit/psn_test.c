/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/psn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_wraps_at_24_bits(void **state)
{
	(void)state;
	assert_int_equal(psn_of(0x1000000).v, 0);
	assert_int_equal(psn_of(0xff123456).v, 0x123456);
	assert_int_equal(psn_add(psn_of(PSN_MASK), 1).v, 0);
	assert_int_equal(psn_add(psn_of(0), -1).v, PSN_MASK);
	assert_int_equal(psn_add(psn_of(5), 0x1000000).v, 5);
}

/* Around points that matter, each distance that matters. */
static void test_diff_and_order(void **state)
{
	static const uint32_t at[] = { 0,	 1,	   0x7fffff, 0x800000,
				       0x800001, 0xfffffe, 0xffffff };
	static const int32_t by[] = { 0, 1, 2, 1000, 0x7ffffe, 0x7fffff };

	(void)state;
	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		struct psn a = psn_of(at[i]);

		for (unsigned k = 0; k < sizeof(by) / sizeof(by[0]); k++) {
			struct psn b = psn_add(a, by[k]);

			assert_int_equal(psn_diff(b, a), by[k]);
			assert_int_equal(psn_diff(a, b), -by[k]);
			assert_int_equal(psn_before(a, b), by[k] > 0);
			assert_false(psn_before(b, a));
			assert_int_equal(psn_eq(a, b), by[k] == 0);
		}
	}
}

/* The one distance that has no order. */
static void test_half_way_is_negative(void **state)
{
	(void)state;
	assert_int_equal(psn_diff(psn_of(0x800000), psn_of(0)), -0x800000);
	assert_int_equal(psn_diff(psn_of(0), psn_of(0x800000)), -0x800000);
}

static void test_within(void **state)
{
	struct psn lo = psn_of(0xfffffe), hi = psn_of(2);

	(void)state;
	for (int32_t i = 0; i <= 4; i++)
		assert_true(psn_within(psn_add(lo, i), lo, hi));
	assert_false(psn_within(psn_of(0xfffffd), lo, hi));
	assert_false(psn_within(psn_of(3), lo, hi));
	assert_true(psn_within(lo, lo, lo));
	assert_false(psn_within(psn_add(lo, 1), lo, lo));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wraps_at_24_bits),
		cmocka_unit_test(test_diff_and_order),
		cmocka_unit_test(test_half_way_is_negative),
		cmocka_unit_test(test_within),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
