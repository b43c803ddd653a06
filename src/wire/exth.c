/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire/exth.h"

#include "base/assert.h"

/* Both tables are powers of two and the values midway between them; code 0 of
 * the timer stands for what code 32 would be. */

int64_t rnr_timer_ns(uint8_t code)
{
	unsigned c = code ? code : 32;

	ASSERT(code < 32);
	if (c == 1)
		return 10000;
	return INT64_C(10000) * (c & 1 ? 3 : 2) << (c / 2 - 1);
}

uint32_t aeth_credits(uint8_t code)
{
	ASSERT(code < 32);
	if (code == AETH_CREDITS_INVALID)
		return UINT32_MAX;
	if (code < 2)
		return code;
	return (code & 1 ? 3u : 2u) << (code / 2 - 1);
}

uint8_t aeth_credit_code(uint32_t n)
{
	uint8_t code = AETH_CREDITS_INVALID - 1;

	while (aeth_credits(code) > n)
		code--;
	return code;
}
