/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * pkt.h - a transport packet: BTH, extension headers, payload and pad; what
 * lies between the network headers and the ICRC. It is the same on RoCEv2,
 * RoCEv1 and InfiniBand.
 */
#ifndef SOFTHCA_WIRE_PKT_H
#define SOFTHCA_WIRE_PKT_H

#include <stddef.h>
#include <stdint.h>

#include "wire/bth.h"
#include "wire/exth.h"
#include "wire/opcode.h"

#define PKT_HDR_MAX 64 /* BTH and every header that one opcode can carry */
#define PKT_PAYLOAD_MAX 4096
#define PKT_MAX (PKT_HDR_MAX + PKT_PAYLOAD_MAX)

enum pkt_verdict {
	PKT_OK = 0,
	PKT_SHORT,	/* less than the headers that the opcode names */
	PKT_BAD_OPCODE, /* reserved */
	PKT_BAD_TVER,	/* transport version not 0 [IBA 9.6.1.1] */
	PKT_BAD_PAD, /* pad longer than the payload, or payload where none may
			be */
	PKT_BAD_LENGTH, /* not a multiple of 4 */
	PKT_TOO_LONG,	/* more payload than PKT_PAYLOAD_MAX */
	PKT_VERDICTS
};

const char *pkt_verdict_name(enum pkt_verdict v);

struct pkt {
	struct bth bth;
	struct exths ext;
	const struct opcode_info *info; /* of bth.opcode */
	const uint8_t *payload;		/* into the caller's bytes */
	uint32_t payload_bytes;		/* without pad */
	/* Of frames that never were on a wire (core/hca.h): consecutive packets
	 * of one message that it stands for, and where the payload is when
	 * payload is NULL. pkt_decode() says 1 and NULL. */
	uint32_t pkts;
	const void *away;
};

/* Decodes len bytes (ICRC already taken off). Total: any bytes give a
 * verdict, nothing past len is read. *ret is untouched unless PKT_OK. */
enum pkt_verdict pkt_decode(struct pkt *ret, const uint8_t *p, size_t len);

/* Writes BTH and the extension headers that pkt->bth.opcode names to p
 * (room for PKT_HDR_MAX) and returns their length; payload and pad are the
 * caller's. The opcode must not be reserved. */
size_t pkt_encode_headers(const struct pkt *pkt, uint8_t *p);

/* Pad bytes after a payload of n bytes: 0..3. */
static inline uint32_t pkt_pad(uint32_t n)
{
	return (4 - (n & 3)) & 3;
}

#endif
