/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/crc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/prng.h"

/* Bit by bit, from the definition. */
static uint32_t crc32_slow(const uint8_t *p, size_t len)
{
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < len * 8; i++) {
		uint32_t bit = (crc ^ (p[i / 8] >> i % 8)) & 1;

		crc = crc >> 1 ^ (bit ? 0xedb88320 : 0);
	}
	return ~crc;
}

static void test_known_answers(void **state)
{
	uint8_t zeros[32] = { 0 };

	(void)state;
	assert_int_equal(crc32_update(0, "123456789", 9), 0xcbf43926);
	assert_int_equal(crc32_update(0, zeros, 32), 0x190a55ad);
	assert_int_equal(crc32_update(0, zeros, 0), 0);
	assert_int_equal(crc32_update(0xdeadbeef, zeros, 0), 0xdeadbeef);
}

/* Each length and alignment up to where wide instructions are in full use. */
static void test_against_bits(void **state)
{
	uint8_t buf[1700];
	struct prng r;

	(void)state;
	prng_init(&r, 3);
	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)prng_u64(&r);
	for (size_t len = 0; len < 1660; len++) {
		const uint8_t *p = buf + len % 33;
		uint32_t want = crc32_slow(p, len);
		size_t cut = prng_below(&r, len + 1);
		uint32_t head = crc32_update(0, p, cut);

		assert_int_equal(crc32_update(0, p, len), want);
		assert_int_equal(crc32_update(head, p + cut, len - cut), want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_answers),
		cmocka_unit_test(test_against_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
