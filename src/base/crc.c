/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/crc.h"

#include <libdeflate.h>

#include "base/crc_wide.h"

uint32_t crc32_update(uint32_t crc, const void *data, size_t len)
{
#if CRC_WIDE
	if (len >= CRC_WIDE_MIN_BYTES && crc_wide_usable())
		return crc_wide_update(crc, data, len);
#endif
	return libdeflate_crc32(crc, data, len);
}
