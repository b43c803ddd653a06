/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mad.h - the management datagram: 24 bytes of common header, 232 of the
 * class's data [IBA 13.4.2].
 */
#ifndef SOFTHCA_WIRE_MAD_H
#define SOFTHCA_WIRE_MAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAD_BYTES 256
#define MAD_HDR_BYTES 24
#define MAD_DATA_BYTES (MAD_BYTES - MAD_HDR_BYTES)
#define MAD_BASE_VERSION 1

#define GSI_QKEY 0x80010000u /* of QP1 [IBA 3.5.3] */

enum mad_class {
	MAD_CLASS_CM = 0x07,
};

enum mad_method {
	MAD_METHOD_SEND = 0x03,
};

struct mad_hdr {
	uint8_t base_version;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t method; /* bit 7: a response */
	uint16_t status;
	uint16_t class_specific;
	uint64_t tid;
	uint16_t attr_id;
	uint32_t attr_mod;
};

/* Reads MAD_HDR_BYTES; every byte pattern is a header. */
void mad_hdr_decode(struct mad_hdr *ret, const uint8_t *p);
/* Writes MAD_HDR_BYTES, the reserved ones as zero. */
void mad_hdr_encode(const struct mad_hdr *h, uint8_t *p);

#endif
