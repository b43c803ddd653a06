/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rocev2_decode_headers on bytes from the IP header on; what decodes encodes
 * to the same bytes but for the checksums, which a decoder does not keep. */
#include "wire/rocev2.h"

#include <string.h>

#include "base/assert.h"
#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t want[IPV6_BYTES + UDP_BYTES], again[IPV6_BYTES + UDP_BYTES];
	struct rocev2_flow f;
	size_t hdr, len;

	hdr = rocev2_decode_headers(&f, data, size, &len);
	if (!hdr)
		return 0;
	ASSERT(hdr == rocev2_overhead(&f) && hdr + len <= size);
	ASSERT(rocev2_encode_headers(&f, len, again) == hdr);
	memcpy(want, data, hdr);
	memcpy(want + hdr - 2, again + hdr - 2, 2); /* UDP's */
	if (hdr == IPV4_BYTES + UDP_BYTES)
		memcpy(want + 10, again + 10, 2); /* IPv4's */
	ASSERT(memcmp(want, again, hdr) == 0);
	return 0;
}
