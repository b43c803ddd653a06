/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * icrc_shift.h - running the ICRC's register backwards (see docs/wire.md).
 */
#ifndef SOFTHCA_WIRE_ICRC_SHIFT_H
#define SOFTHCA_WIRE_ICRC_SHIFT_H

#include <stddef.h>
#include <stdint.h>

/* delta is what changes in the CRC-32 of a message when `flips` is xored over
 * the 4 bytes (little-endian) that begin `bytes` before its end; returns
 * flips. It exists and is unique for any delta. bytes: 0 .. 2^18 - 1. A few
 * multiplications in GF(2^32), whatever the distance. */
uint32_t icrc_unshift(uint32_t delta, size_t bytes);

#endif
