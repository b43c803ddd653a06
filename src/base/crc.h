/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc.h - CRC entry points, over libdeflate. */
#ifndef SOFTHCA_BASE_CRC_H
#define SOFTHCA_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* The Ethernet CRC-32 (reflected, init and final xor of all ones) of `len`
 * bytes, continuing `crc`; start with 0. */
uint32_t crc32_update(uint32_t crc, const void *data, size_t len);

#endif
