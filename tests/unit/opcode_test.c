/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * THE table against one written the other way round: by opcode number, with
 * sizes and headers spelled out [IBA table 38; annexes A14, A17, A19].
 */
#include "wire/opcode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct row {
	uint8_t op;
	const char *name;
	uint8_t exth_bytes;
	uint16_t exth;
	const char *flags; /* a letter each, see flag_letters */
};

/* In the order of enum opcode_flags: Start End Payload reQuest rEsponse ... */
static const char flag_letters[] = "SEPQRswraW";

/* What RC has; UC the first 12 of it; XRC all, requests longer by XRCETH. */
static const struct row rc[] = {
	{ 0x00, "SEND_FIRST", 0, 0, "SPQs" },
	{ 0x01, "SEND_MIDDLE", 0, 0, "PQs" },
	{ 0x02, "SEND_LAST", 0, 0, "EPQsW" },
	{ 0x03, "SEND_LAST_IMM", 4, EXTH_IMMDT, "EPQsW" },
	{ 0x04, "SEND_ONLY", 0, 0, "SEPQsW" },
	{ 0x05, "SEND_ONLY_IMM", 4, EXTH_IMMDT, "SEPQsW" },
	{ 0x06, "WRITE_FIRST", 16, EXTH_RETH, "SPQw" },
	{ 0x07, "WRITE_MIDDLE", 0, 0, "PQw" },
	{ 0x08, "WRITE_LAST", 0, 0, "EPQw" },
	{ 0x09, "WRITE_LAST_IMM", 4, EXTH_IMMDT, "EPQwW" },
	{ 0x0a, "WRITE_ONLY", 16, EXTH_RETH, "SEPQw" },
	{ 0x0b, "WRITE_ONLY_IMM", 20, EXTH_RETH | EXTH_IMMDT, "SEPQwW" },
	{ 0x0c, "READ_REQUEST", 16, EXTH_RETH, "SEQr" },
	{ 0x0d, "READ_RESP_FIRST", 4, EXTH_AETH, "SPRr" },
	{ 0x0e, "READ_RESP_MIDDLE", 0, 0, "PRr" },
	{ 0x0f, "READ_RESP_LAST", 4, EXTH_AETH, "EPRr" },
	{ 0x10, "READ_RESP_ONLY", 4, EXTH_AETH, "SEPRr" },
	{ 0x11, "ACK", 4, EXTH_AETH, "SER" },
	{ 0x12, "ATOMIC_ACK", 12, EXTH_AETH | EXTH_ATOMICACKETH, "SERa" },
	{ 0x13, "CMP_SWAP", 28, EXTH_ATOMICETH, "SEQa" },
	{ 0x14, "FETCH_ADD", 28, EXTH_ATOMICETH, "SEQa" },
	{ 0x16, "SEND_LAST_INV", 4, EXTH_IETH, "EPQsW" },
	{ 0x17, "SEND_ONLY_INV", 4, EXTH_IETH, "SEPQsW" },
	{ 0x1c, "FLUSH", 20, EXTH_FETH | EXTH_RETH, "SEQ" },
	{ 0x1d, "ATOMIC_WRITE", 16, EXTH_RETH, "SEPQ" },
};

static const struct row ud[] = {
	{ 0x64, "SEND_ONLY", 8, EXTH_DETH, "SEPQsW" },
	{ 0x65, "SEND_ONLY_IMM", 12, EXTH_DETH | EXTH_IMMDT, "SEPQsW" },
};

static uint16_t flags_of(const char *letters)
{
	uint16_t flags = 0;

	for (; *letters; letters++)
		flags |= (uint16_t)(1 << (strchr(flag_letters, *letters) -
					  flag_letters));
	return flags;
}

static bool seen[256];

static void check(uint8_t opcode, const char *transport, const struct row *r)
{
	const struct opcode_info *info = opcode_lookup(opcode);
	bool xrc_request =
		strcmp(transport, "XRC") == 0 && strchr(r->flags, 'Q');
	char name[40];

	snprintf(name, sizeof(name), "%s_%s", transport, r->name);
	assert_non_null(info->name);
	assert_string_equal(info->name, name);
	assert_int_equal(info->flags, flags_of(r->flags));
	assert_int_equal(info->exth, r->exth | (xrc_request ? EXTH_XRCETH : 0));
	assert_int_equal(info->hdr_bytes,
			 12 + r->exth_bytes + (xrc_request ? 4 : 0));
	assert_false(seen[opcode]);
	seen[opcode] = true;
}

static void test_all_256(void **state)
{
	const struct opcode_info *cnp = opcode_lookup(0x81);

	(void)state;
	for (size_t i = 0; i < sizeof(rc) / sizeof(rc[0]); i++) {
		check(rc[i].op, "RC", &rc[i]);
		check(0xa0 | rc[i].op, "XRC", &rc[i]);
		if (rc[i].op <= 0x0b)
			check(0x20 | rc[i].op, "UC", &rc[i]);
	}
	for (size_t i = 0; i < sizeof(ud) / sizeof(ud[0]); i++)
		check(ud[i].op, "UD", &ud[i]);
	assert_string_equal(cnp->name, "CNP");
	assert_int_equal(cnp->exth, EXTH_CNP_PAD);
	assert_int_equal(cnp->flags, 0);
	assert_int_equal(cnp->hdr_bytes, 28);
	seen[0x81] = true;
	for (int i = 0; i < 256; i++)
		if (!seen[i])
			assert_null(opcode_lookup((uint8_t)i)->name);
}

static void test_split_and_join(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 256; i++) {
		uint8_t o = (uint8_t)i;

		assert_int_equal(opcode_transport(o), i >> 5);
		assert_int_equal(opcode_op(o), i & 31);
		assert_int_equal(OPCODE(opcode_transport(o), opcode_op(o)), i);
	}
	assert_int_equal(OPCODE_CNP, 0x81);
	assert_int_equal(OPCODE(TRANSPORT_UD, OP_SEND_ONLY), 0x64);
	assert_int_equal(OPCODE(TRANSPORT_XRC, OP_ACK), 0xb1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_256),
		cmocka_unit_test(test_split_and_join),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
