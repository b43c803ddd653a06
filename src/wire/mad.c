/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mad.c - the common MAD header [IBA 13.4.2]. */
#include "wire/mad.h"

#include "base/bytes.h"

void mad_hdr_decode(struct mad_hdr *ret, const uint8_t *p)
{
	*ret = (struct mad_hdr){
		.base_version = p[0],
		.mgmt_class = p[1],
		.class_version = p[2],
		.method = p[3],
		.status = get_be16(p + 4),
		.class_specific = get_be16(p + 6),
		.tid = get_be64(p + 8),
		.attr_id = get_be16(p + 16),
		.attr_mod = get_be32(p + 20),
	};
}

void mad_hdr_encode(const struct mad_hdr *h, uint8_t *p)
{
	p[0] = h->base_version;
	p[1] = h->mgmt_class;
	p[2] = h->class_version;
	p[3] = h->method;
	put_be16(p + 4, h->status);
	put_be16(p + 6, h->class_specific);
	put_be64(p + 8, h->tid);
	put_be16(p + 16, h->attr_id);
	put_be16(p + 18, 0);
	put_be32(p + 20, h->attr_mod);
}
