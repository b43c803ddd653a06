/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * opcode.h - THE table of BTH opcodes: what each is called, which transport it
 * belongs to, which extension headers follow in which order, and whether it
 * carries payload [IBA 9.2.1, table 38; CNP: IBA annex A17.9.3].
 * Nothing else in the tree knows this.
 */
#ifndef SOFTHCA_WIRE_OPCODE_H
#define SOFTHCA_WIRE_OPCODE_H

#include <stdint.h>

enum transport { /* bits 7..5 of the opcode */
		 TRANSPORT_RC = 0,
		 TRANSPORT_UC = 1,
		 TRANSPORT_RD = 2,
		 TRANSPORT_UD = 3,
		 TRANSPORT_CNP = 4,
		 TRANSPORT_XRC = 5,
};

enum op { /* bits 4..0 of the opcode */
	  OP_SEND_FIRST = 0x00,
	  OP_SEND_MIDDLE = 0x01,
	  OP_SEND_LAST = 0x02,
	  OP_SEND_LAST_IMM = 0x03,
	  OP_SEND_ONLY = 0x04,
	  OP_SEND_ONLY_IMM = 0x05,
	  OP_WRITE_FIRST = 0x06,
	  OP_WRITE_MIDDLE = 0x07,
	  OP_WRITE_LAST = 0x08,
	  OP_WRITE_LAST_IMM = 0x09,
	  OP_WRITE_ONLY = 0x0a,
	  OP_WRITE_ONLY_IMM = 0x0b,
	  OP_READ_REQUEST = 0x0c,
	  OP_READ_RESP_FIRST = 0x0d,
	  OP_READ_RESP_MIDDLE = 0x0e,
	  OP_READ_RESP_LAST = 0x0f,
	  OP_READ_RESP_ONLY = 0x10,
	  OP_ACK = 0x11,
	  OP_ATOMIC_ACK = 0x12,
	  OP_CMP_SWAP = 0x13,
	  OP_FETCH_ADD = 0x14,
	  OP_SEND_LAST_INV = 0x16,
	  OP_SEND_ONLY_INV = 0x17,
	  OP_FLUSH = 0x1c,
	  OP_ATOMIC_WRITE = 0x1d,
};

#define OPCODE(transport, op) ((uint8_t)((transport) << 5 | (op)))
#define OPCODE_CNP 0x81

static inline enum transport opcode_transport(uint8_t opcode)
{
	return (enum transport)(opcode >> 5);
}

static inline enum op opcode_op(uint8_t opcode)
{
	return (enum op)(opcode & 0x1f);
}

/* Extension headers, one bit each, in the order in which they stand on the
 * wire when several are present. */
enum exth {
	EXTH_XRCETH = 1 << 0,	    /* 4 bytes */
	EXTH_DETH = 1 << 1,	    /* 8 */
	EXTH_RETH = 1 << 2,	    /* 16 */
	EXTH_ATOMICETH = 1 << 3,    /* 28 */
	EXTH_AETH = 1 << 4,	    /* 4 */
	EXTH_ATOMICACKETH = 1 << 5, /* 8 */
	EXTH_IMMDT = 1 << 6,	    /* 4 */
	EXTH_IETH = 1 << 7,	    /* 4 */
	EXTH_FETH = 1 << 8,	    /* 4; before RETH, FLUSH only */
	EXTH_CNP_PAD = 1 << 9,	    /* 16 reserved bytes of a CNP */
};

enum opcode_flags {
	OPCODE_START = 1 << 0,	 /* first packet of a message (FIRST or ONLY) */
	OPCODE_END = 1 << 1,	 /* last packet of a message (LAST or ONLY) */
	OPCODE_PAYLOAD = 1 << 2, /* payload may follow */
	OPCODE_REQUEST = 1 << 3,
	OPCODE_RESPONSE = 1 << 4,
	OPCODE_SEND = 1 << 5,
	OPCODE_WRITE = 1 << 6,
	OPCODE_READ = 1 << 7,	  /* request or response */
	OPCODE_ATOMIC = 1 << 8,	  /* request or response */
	OPCODE_RECV_WQE = 1 << 9, /* completes a receive WQE: SENDs at END, and
				     WRITEs with immediate at END */
};

struct opcode_info {
	const char *name;  /* "RC_SEND_FIRST"; NULL: no such opcode */
	uint16_t exth;	   /* enum exth bits */
	uint16_t flags;	   /* enum opcode_flags bits */
	uint8_t hdr_bytes; /* BTH and extension headers together */
};

/* Total over all 256 values: name is NULL for reserved opcodes (all of RD
 * too, which nobody builds). Static storage. */
const struct opcode_info *opcode_lookup(uint8_t opcode);

#endif
