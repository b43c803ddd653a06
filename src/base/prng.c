/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/prng.h"

#include "base/assert.h"

static uint64_t splitmix(uint64_t *x)
{
	uint64_t z = (*x += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static uint64_t rotl(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

void prng_init(struct prng *r, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		r->s[i] = splitmix(&seed);
}

struct prng prng_split(const struct prng *r, const char *label)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a over the label */
	struct prng child;

	for (; *label; label++)
		h = (h ^ (uint8_t)*label) * 0x100000001b3u;
	prng_init(&child, h ^ r->s[0] ^ rotl(r->s[3], 17));
	return child;
}

uint64_t prng_u64(struct prng *r)
{
	uint64_t *s = r->s;
	uint64_t result = rotl(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

uint64_t prng_below(struct prng *r, uint64_t n)
{
	uint64_t limit, x;

	ASSERT(n > 0);
	limit = UINT64_MAX - UINT64_MAX % n;
	do {
		x = prng_u64(r);
	} while (x >= limit);
	return x % n;
}
