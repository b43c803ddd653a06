/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire/bth.h"

#include "base/assert.h"
#include "base/bytes.h"

void bth_decode(struct bth *bth, const uint8_t *p)
{
	bth->opcode = p[0];
	bth->solicited = p[1] >> 7;
	bth->migreq = p[1] >> 6 & 1;
	bth->pad = p[1] >> 4 & 3;
	bth->tver = p[1] & 0xf;
	bth->pkey = get_be16(p + 2);
	bth->fecn = p[4] >> 7;
	bth->becn = p[4] >> 6 & 1;
	bth->resv6 = p[4] & 0x3f;
	bth->dest_qpn = get_be24(p + 5);
	bth->ackreq = p[8] >> 7;
	bth->resv7 = p[8] & 0x7f;
	bth->psn = psn_of(get_be24(p + 9));
}

void bth_encode(const struct bth *bth, uint8_t *p)
{
	ASSERT(bth->pad <= 3 && bth->tver <= 0xf);
	ASSERT(bth->resv6 <= 0x3f && bth->resv7 <= 0x7f);
	ASSERT(bth->dest_qpn <= 0xffffff && bth->psn.v <= PSN_MASK);
	p[0] = bth->opcode;
	p[1] = (uint8_t)(bth->solicited << 7 | bth->migreq << 6 |
			 bth->pad << 4 | bth->tver);
	put_be16(p + 2, bth->pkey);
	p[4] = (uint8_t)(bth->fecn << 7 | bth->becn << 6 | bth->resv6);
	put_be24(p + 5, bth->dest_qpn);
	p[8] = (uint8_t)(bth->ackreq << 7 | bth->resv7);
	put_be24(p + 9, bth->psn.v);
}
