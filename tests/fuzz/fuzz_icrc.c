/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The ICRC checks. The input is bytes from the IP header on; when it is no
 * RoCEv2 packet its first bytes make up a flow instead, so that short and odd
 * transport packets are reached too.
 */
#include "wire/rocev2.h"

#include <string.h>

#include "base/assert.h"
#include "fuzz_target.h"

/* The exact check and the relaxed one agree. */
static void check(const struct rocev2_flow *f, const uint8_t *pkt, size_t len)
{
	bool exact = rocev2_icrc_ok(f, pkt, len), df = f->df;
	struct rocev2_flow found = *f;
	uint16_t id = f->ip_id;

	if (!rocev2_icrc_ok_any_id(f, pkt, len, &id, &df)) {
		ASSERT(!exact && id == f->ip_id && df == f->df);
		return;
	}
	ASSERT(exact == (id == f->ip_id && df == f->df));
	found.ip_id = id;
	found.df = df;
	ASSERT(rocev2_icrc_ok(&found, pkt, len));
	found.ip_id ^= 1;
	ASSERT(rocev2_icrc_ok(&found, pkt, len) == !gid_is_v4(&f->src));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rocev2_flow f = { .ttl = 64 };
	size_t hdr, len;

	hdr = rocev2_decode_headers(&f, data, size, &len);
	if (hdr) {
		check(&f, data + hdr, len);
		return 0;
	}
	if (size < 4)
		return 0;
	f.src = f.dst = gid_from_v4((uint32_t)data[1] << 24);
	if (data[0] & 1)
		f.src.raw[0] = f.dst.raw[0] = 0xfd;
	f.ip_id = data[2];
	f.df = data[3] & 1;
	check(&f, data + 4, size - 4);
	return 0;
}
