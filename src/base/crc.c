/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/crc.h"

#include <libdeflate.h>

uint32_t crc32_update(uint32_t crc, const void *data, size_t len)
{
	return libdeflate_crc32(crc, data, len);
}
