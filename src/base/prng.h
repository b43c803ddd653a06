/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * prng.h - an explicit, seeded, label-split generator (splitmix64 seeding
 * xoshiro256**). Not for cryptography. One owner each; no global state.
 */
#ifndef SOFTHCA_BASE_PRNG_H
#define SOFTHCA_BASE_PRNG_H

#include <stdbool.h>
#include <stdint.h>

struct prng {
	uint64_t s[4];
};

void prng_init(struct prng *r, uint64_t seed);

/* A child stream that depends on the parent's seed state and the label only;
 * advances the parent by nothing. Equal labels give equal streams. */
struct prng prng_split(const struct prng *r, const char *label);

uint64_t prng_u64(struct prng *r);

static inline uint32_t prng_u32(struct prng *r)
{
	return (uint32_t)(prng_u64(r) >> 32);
}

/* Uniform in 0 .. n-1; n > 0. */
uint64_t prng_below(struct prng *r, uint64_t n);

/* True with probability ppm / 1,000,000. */
static inline bool prng_chance(struct prng *r, uint32_t ppm)
{
	return prng_below(r, 1000000) < ppm;
}

#endif
