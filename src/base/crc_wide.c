/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Folding: a 128-bit piece A that lies D bits in front of a piece B may be
 * replaced by A * x^D mod P added to B. A piece is two 64-bit halves, which are
 * multiplied by x^(D + 32) and x^(D - 32) mod P each; the 32 bits account for
 * the product's being reflected. Four registers of four pieces go over the
 * bytes; then registers are folded into one, its pieces into one, and what is
 * left are 16 bytes with the same remainder, which libdeflate takes.
 */
#include "base/crc_wide.h"

#if CRC_WIDE

#include <immintrin.h>
#include <libdeflate.h>

#define TARGET                                                                 \
	__attribute__((target("avx512f,avx512vl,avx512dq,vpclmulqdq,pclmul")))

/* { x^(D + 32), x^(D - 32) } mod P, reflected, for D bits. */
struct fold {
	uint64_t low, high;
};

static const struct fold fold_128 = { 0x1751997d0, 0x0ccaa009e };
static const struct fold fold_256 = { 0x0f1da05aa, 0x15a546366 };
static const struct fold fold_384 = { 0x03db1ecdc, 0x174359406 };
static const struct fold fold_512 = { 0x154442bd4, 0x1c6e41596 };
static const struct fold fold_2048 = { 0x11542778a, 0x1322d1430 };

bool crc_wide_usable(void)
{
	return __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512vl") &&
	       __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("vpclmulqdq");
}

TARGET static inline __m128i load_fold(const struct fold *f)
{
	return _mm_set_epi64x((int64_t)f->high, (int64_t)f->low);
}

/* b + a * x^D, in each of the four pieces. */
TARGET static inline __m512i fold4(__m512i a, __m512i b, __m512i k)
{
	__m512i low = _mm512_clmulepi64_epi128(a, k, 0x00);
	__m512i high = _mm512_clmulepi64_epi128(a, k, 0x11);

	return _mm512_ternarylogic_epi64(low, high, b, 0x96); /* xor of three */
}

TARGET static inline __m128i fold1(__m128i a, __m128i b, const struct fold *f)
{
	__m128i k = load_fold(f);
	__m128i low = _mm_clmulepi64_si128(a, k, 0x00);
	__m128i high = _mm_clmulepi64_si128(a, k, 0x11);

	return _mm_xor_si128(_mm_xor_si128(low, high), b);
}

TARGET static inline __m512i load(const uint8_t *p)
{
	return _mm512_loadu_si512(p);
}

/* The four pieces of x as one. */
TARGET static __m128i join(__m512i x)
{
	__m128i last = _mm512_extracti64x2_epi64(x, 3);

	last = fold1(_mm512_castsi512_si128(x), last, &fold_384);
	last = fold1(_mm512_extracti64x2_epi64(x, 1), last, &fold_256);
	return fold1(_mm512_extracti64x2_epi64(x, 2), last, &fold_128);
}

TARGET uint32_t crc_wide_update(uint32_t crc, const uint8_t *p, size_t len)
{
	__m512i k = _mm512_broadcast_i64x2(load_fold(&fold_2048));
	__m512i x0 = load(p), x1 = load(p + 64);
	__m512i x2 = load(p + 128), x3 = load(p + 192);
	uint8_t rest[16];

	/* The state so far goes over the first bytes. */
	x0 = _mm512_xor_si512(
		x0, _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc)));
	for (p += 256, len -= 256; len >= 256; p += 256, len -= 256) {
		x0 = fold4(x0, load(p), k);
		x1 = fold4(x1, load(p + 64), k);
		x2 = fold4(x2, load(p + 128), k);
		x3 = fold4(x3, load(p + 192), k);
	}
	k = _mm512_broadcast_i64x2(load_fold(&fold_512));
	x3 = fold4(fold4(fold4(x0, x1, k), x2, k), x3, k);
	for (; len >= 64; p += 64, len -= 64)
		x3 = fold4(x3, load(p), k);
	_mm_storeu_si128((__m128i *)(void *)rest, join(x3));
	/* Its state is the complement of what it is given and returns. */
	crc = libdeflate_crc32(UINT32_MAX, rest, sizeof(rest));
	return libdeflate_crc32(crc, p, len);
}

#endif
