/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "wire/opcode.h"

#include "wire/bth.h"

/* Bytes of the extension headers in a set: a constant expression. */
#define LEN(exth, one, bytes) ((exth) & (one) ? (bytes) : 0)
#define EXTH_BYTES(e)                                                          \
	(LEN(e, EXTH_XRCETH, 4) + LEN(e, EXTH_DETH, 8) +                       \
	 LEN(e, EXTH_RETH, 16) + LEN(e, EXTH_ATOMICETH, 28) +                  \
	 LEN(e, EXTH_AETH, 4) + LEN(e, EXTH_ATOMICACKETH, 8) +                 \
	 LEN(e, EXTH_IMMDT, 4) + LEN(e, EXTH_IETH, 4) + LEN(e, EXTH_FETH, 4) + \
	 LEN(e, EXTH_CNP_PAD, 16))

#define FIRST OPCODE_START
#define MIDDLE 0
#define LAST OPCODE_END
#define ONLY (OPCODE_START | OPCODE_END)
#define SEND (OPCODE_SEND | OPCODE_REQUEST | OPCODE_PAYLOAD)
#define WRITE (OPCODE_WRITE | OPCODE_REQUEST | OPCODE_PAYLOAD)
#define READ_RESP (OPCODE_READ | OPCODE_RESPONSE | OPCODE_PAYLOAD)
#define ATOMIC_REQ (OPCODE_ATOMIC | OPCODE_REQUEST | ONLY)
#define WQE OPCODE_RECV_WQE

/* Two levels, so that T is expanded before it is pasted and stringised. */
#define ROW(t, op, headers, flag_bits) ROW_(t, op, headers, flag_bits)
#define ROW_(t, op, headers, flag_bits)                                        \
	[OPCODE(TRANSPORT_##t, OP_##op)] = {                                   \
		.name = #t "_" #op,                                            \
		.exth = (headers),                                             \
		.flags = (flag_bits),                                          \
		.hdr_bytes = BTH_BYTES + EXTH_BYTES(headers),                  \
	}

/* SENDs and WRITEs that all connected transports have; x: headers that each of
 * the transport's requests carries first. */
#define ROWS_SEND_WRITE(t, x)                                                  \
	ROW(t, SEND_FIRST, x, SEND | FIRST),                                   \
		ROW(t, SEND_MIDDLE, x, SEND | MIDDLE),                         \
		ROW(t, SEND_LAST, x, SEND | LAST | WQE),                       \
		ROW(t, SEND_LAST_IMM, (x) | EXTH_IMMDT, SEND | LAST | WQE),    \
		ROW(t, SEND_ONLY, x, SEND | ONLY | WQE),                       \
		ROW(t, SEND_ONLY_IMM, (x) | EXTH_IMMDT, SEND | ONLY | WQE),    \
		ROW(t, WRITE_FIRST, (x) | EXTH_RETH, WRITE | FIRST),           \
		ROW(t, WRITE_MIDDLE, x, WRITE | MIDDLE),                       \
		ROW(t, WRITE_LAST, x, WRITE | LAST),                           \
		ROW(t, WRITE_LAST_IMM, (x) | EXTH_IMMDT, WRITE | LAST | WQE),  \
		ROW(t, WRITE_ONLY, (x) | EXTH_RETH, WRITE | ONLY),             \
		ROW(t, WRITE_ONLY_IMM, (x) | EXTH_RETH | EXTH_IMMDT,           \
		    WRITE | ONLY | WQE)

/* What only the reliable ones have. FLUSH and ATOMIC WRITE are answered with
 * READ_RESP_ONLY of no bytes [IBA annex A19]. */
#define ROWS_RELIABLE(t, x)                                                    \
	ROW(t, READ_REQUEST, (x) | EXTH_RETH,                                  \
	    OPCODE_READ | OPCODE_REQUEST | ONLY),                              \
		ROW(t, READ_RESP_FIRST, EXTH_AETH, READ_RESP | FIRST),         \
		ROW(t, READ_RESP_MIDDLE, 0, READ_RESP | MIDDLE),               \
		ROW(t, READ_RESP_LAST, EXTH_AETH, READ_RESP | LAST),           \
		ROW(t, READ_RESP_ONLY, EXTH_AETH, READ_RESP | ONLY),           \
		ROW(t, ACK, EXTH_AETH, OPCODE_RESPONSE | ONLY),                \
		ROW(t, ATOMIC_ACK, EXTH_AETH | EXTH_ATOMICACKETH,              \
		    OPCODE_ATOMIC | OPCODE_RESPONSE | ONLY),                   \
		ROW(t, CMP_SWAP, (x) | EXTH_ATOMICETH, ATOMIC_REQ),            \
		ROW(t, FETCH_ADD, (x) | EXTH_ATOMICETH, ATOMIC_REQ),           \
		ROW(t, SEND_LAST_INV, (x) | EXTH_IETH, SEND | LAST | WQE),     \
		ROW(t, SEND_ONLY_INV, (x) | EXTH_IETH, SEND | ONLY | WQE),     \
		ROW(t, FLUSH, (x) | EXTH_FETH | EXTH_RETH,                     \
		    OPCODE_REQUEST | ONLY),                                    \
		ROW(t, ATOMIC_WRITE, (x) | EXTH_RETH,                          \
		    OPCODE_REQUEST | OPCODE_PAYLOAD | ONLY)

static const struct opcode_info opcodes[256] = {
	ROWS_SEND_WRITE(RC, 0),
	ROWS_RELIABLE(RC, 0),
	ROWS_SEND_WRITE(UC, 0),
	ROW(UD, SEND_ONLY, EXTH_DETH, SEND | ONLY | WQE),
	ROW(UD, SEND_ONLY_IMM, EXTH_DETH | EXTH_IMMDT, SEND | ONLY | WQE),
	ROWS_SEND_WRITE(XRC, EXTH_XRCETH),
	ROWS_RELIABLE(XRC, EXTH_XRCETH),
	[OPCODE_CNP] = { .name = "CNP",
			 .exth = EXTH_CNP_PAD,
			 .hdr_bytes = BTH_BYTES + EXTH_BYTES(EXTH_CNP_PAD) },
};

const struct opcode_info *opcode_lookup(uint8_t opcode)
{
	return &opcodes[opcode];
}
