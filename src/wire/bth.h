/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * bth.h - the base transport header [IBA 9.2].
 */
#ifndef SOFTHCA_WIRE_BTH_H
#define SOFTHCA_WIRE_BTH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/psn.h"

#define BTH_BYTES 12
#define BTH_PKEY_DEFAULT 0xffff
#define BTH_QPN_MULTICAST 0xffffffu
#define BTH_QPN_GSI 1u

struct bth {
	uint8_t opcode;
	bool solicited; /* SE */
	bool migreq;	/* M */
	uint8_t pad;	/* 0..3 */
	uint8_t tver;	/* 0..15; only 0 is defined */
	uint16_t pkey;
	bool fecn;     /* with RoCEv2 the IP ECN field counts, these stay 0 */
	bool becn;     /* set on a CNP */
	uint8_t resv6; /* 6 bits, kept so that re-encoding is exact */
	uint32_t dest_qpn; /* 24 bits */
	bool ackreq;	   /* A */
	uint8_t resv7;	   /* 7 bits */
	struct psn psn;
};

/* Reads BTH_BYTES from p; every byte pattern is a valid struct. */
void bth_decode(struct bth *bth, const uint8_t *p);

/* Writes BTH_BYTES to p; fields above their width are a broken invariant. */
void bth_encode(const struct bth *bth, uint8_t *p);

#endif
