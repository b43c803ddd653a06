/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * psn.h - 24-bit packet sequence numbers [IBA 9.2.6, 9.7.1].
 *
 * A struct, so that `a < b` on two of them does not compile. Order is the sign
 * of the 24-bit difference: PSNs at most 2^23 - 1 apart compare right, across
 * the wrap too.
 */
#ifndef SOFTHCA_BASE_PSN_H
#define SOFTHCA_BASE_PSN_H

#include <stdbool.h>
#include <stdint.h>

#define PSN_MASK 0xffffffu

struct psn {
	uint32_t v; /* 0..PSN_MASK */
};

static inline struct psn psn_of(uint32_t v)
{
	return (struct psn){ .v = v & PSN_MASK };
}

static inline struct psn psn_add(struct psn a, int32_t n)
{
	return psn_of(a.v + (uint32_t)n);
}

/* a - b as a signed number, -2^23 .. 2^23 - 1. */
static inline int32_t psn_diff(struct psn a, struct psn b)
{
	return (int32_t)((a.v - b.v) << 8) >> 8;
}

static inline bool psn_eq(struct psn a, struct psn b)
{
	return a.v == b.v;
}

static inline bool psn_before(struct psn a, struct psn b)
{
	return psn_diff(a, b) < 0;
}

/* lo <= a <= hi */
static inline bool psn_within(struct psn a, struct psn lo, struct psn hi)
{
	return psn_diff(a, lo) >= 0 && psn_diff(hi, a) >= 0;
}

#endif
