/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

/* Both generators' published vectors. */
static void test_known_answers(void **state)
{
	static const uint64_t splitmix[4] = { UINT64_C(6457827717110365317),
					      UINT64_C(3203168211198807973),
					      UINT64_C(9817491932198370423),
					      UINT64_C(4593380528125082431) };
	static const uint64_t xoshiro[5] = { 11520, 0, 1509978240,
					     UINT64_C(1215971899390074240),
					     UINT64_C(1216172134540287360) };
	struct prng r;

	(void)state;
	prng_init(&r, 1234567);
	assert_memory_equal(r.s, splitmix, sizeof(splitmix));
	r = (struct prng){ .s = { 1, 2, 3, 4 } };
	for (int i = 0; i < 5; i++)
		assert_int_equal(prng_u64(&r), xoshiro[i]);
}

static void test_split_depends_on_seed_and_label_only(void **state)
{
	struct prng r, before, a, b, c, d;

	(void)state;
	prng_init(&r, 7);
	before = r;
	a = prng_split(&r, "loss");
	b = prng_split(&r, "loss");
	c = prng_split(&r, "delay");
	assert_memory_equal(&r, &before, sizeof(r));
	assert_memory_equal(&a, &b, sizeof(a));
	assert_memory_not_equal(&a, &c, sizeof(a));
	prng_init(&r, 8);
	d = prng_split(&r, "loss");
	assert_memory_not_equal(&a, &d, sizeof(a));
}

/* 70,000 draws of 7: each within 4 sigma (4 * sqrt(7e4 * 6/49) = 370). */
static void test_below_is_uniform(void **state)
{
	unsigned count[7] = { 0 };
	struct prng r;

	(void)state;
	prng_init(&r, 42);
	for (int i = 0; i < 70000; i++)
		count[prng_below(&r, 7)]++;
	for (int i = 0; i < 7; i++)
		assert_in_range(count[i], 10000 - 370, 10000 + 370);
}

static void test_below_edges(void **state)
{
	uint64_t high = 0;
	struct prng r;

	(void)state;
	prng_init(&r, 1);
	for (int i = 0; i < 1000; i++) {
		uint64_t x = prng_below(&r, UINT64_C(1) << 63 | 1);

		assert_int_equal(prng_below(&r, 1), 0);
		assert_true(x <= UINT64_C(1) << 63);
		high += x >> 62;
	}
	assert_in_range(high, 400, 600);
}

static void test_chance(void **state)
{
	unsigned hits = 0;
	struct prng r;

	(void)state;
	prng_init(&r, 9);
	for (int i = 0; i < 10000; i++) {
		assert_false(prng_chance(&r, 0));
		assert_true(prng_chance(&r, 1000000));
		hits += prng_chance(&r, 80000);
	}
	assert_in_range(hits, 800 - 110, 800 + 110);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_answers),
		cmocka_unit_test(test_split_depends_on_seed_and_label_only),
		cmocka_unit_test(test_below_is_uniform),
		cmocka_unit_test(test_below_edges),
		cmocka_unit_test(test_chance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
