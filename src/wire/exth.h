/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * exth.h - the extension headers [IBA 9.3] and the AETH syndromes
 * [IBA 9.7.5.1.2, 9.7.5.2.8, tables 44-46].
 */
#ifndef SOFTHCA_WIRE_EXTH_H
#define SOFTHCA_WIRE_EXTH_H

#include <stdbool.h>
#include <stdint.h>

struct reth {
	uint64_t va;
	uint32_t rkey;
	uint32_t len_bytes; /* the whole message's */
};

struct aeth {
	uint8_t syndrome;
	uint32_t msn; /* 24 bits */
};

struct atomiceth {
	uint64_t va;
	uint32_t rkey;
	uint64_t swap_or_add;
	uint64_t compare;
};

struct deth {
	uint32_t qkey;
	uint8_t resv8;
	uint32_t src_qpn; /* 24 bits */
};

struct exths { /* those that the opcode names are valid */
	struct reth reth;
	struct aeth aeth;
	struct atomiceth atomiceth;
	struct deth deth;
	uint64_t atomicacketh; /* original value */
	uint32_t immdt;	       /* host order of the big-endian field */
	uint32_t ieth;	       /* rkey to invalidate */
	uint32_t feth;	       /* FLUSH: type and selectivity bits, raw */
	uint32_t xrceth;       /* XRC: SRQ number in the low 24 bits, raw */
};

/* Syndrome: bit 7 zero, bits 6..5 the kind, bits 4..0 credit count, RNR timer
 * or NAK code. */
enum aeth_kind {
	AETH_ACK = 0,
	AETH_RNR_NAK = 1,
	AETH_RESERVED = 2,
	AETH_NAK = 3,
};

enum nak_code {
	NAK_PSN_SEQUENCE = 0,
	NAK_INVALID_REQUEST = 1,
	NAK_REMOTE_ACCESS = 2,
	NAK_REMOTE_OPERATIONAL = 3,
	NAK_INVALID_RD_REQUEST = 4,
};

#define AETH_CREDITS_INVALID 0x1f /* "this field carries no credit count" */

static inline enum aeth_kind aeth_kind(uint8_t syndrome)
{
	return (enum aeth_kind)(syndrome >> 5 & 3);
}

static inline uint8_t aeth_value(uint8_t syndrome)
{
	return syndrome & 0x1f;
}

static inline uint8_t aeth_syndrome(enum aeth_kind kind, uint8_t value)
{
	return (uint8_t)(kind << 5 | (value & 0x1f));
}

/* The RNR timer code 0..31 in ns, 655.36 ms for code 0 [IBA table 45]. */
int64_t rnr_timer_ns(uint8_t code);

/* Credits that a 5-bit credit code grants, 0..32768; code 31: none stated,
 * returns UINT32_MAX [IBA table 44]. */
uint32_t aeth_credits(uint8_t code);

/* The largest code that grants at most n credits. */
uint8_t aeth_credit_code(uint32_t n);

#endif
