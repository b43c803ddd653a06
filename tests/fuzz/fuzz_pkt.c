/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pkt_decode: total; what decodes encodes to the same bytes. */
#include "wire/pkt.h"

#include <string.h>

#include "base/assert.h"
#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t again[PKT_HDR_MAX];
	enum pkt_verdict v;
	struct pkt k;

	v = pkt_decode(&k, data, size);
	ASSERT(pkt_verdict_name(v));
	if (v != PKT_OK)
		return 0;
	ASSERT(k.payload + k.payload_bytes + k.bth.pad == data + size);
	ASSERT(pkt_encode_headers(&k, again) == k.info->hdr_bytes);
	if (!(k.info->exth & EXTH_CNP_PAD)) /* reserved bytes are not kept */
		ASSERT(memcmp(again, data, k.info->hdr_bytes) == 0);
	return 0;
}
