/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/obj/qp.h"

static struct rig rig;
static struct rig_pair pair;

static int open_rig(void **state)
{
	(void)state;
	rig_open(&rig, NULL);
	return 0;
}

static int close_rig(void **state)
{
	(void)state;
	rig_close(&rig);
	return 0;
}

/* All rx_drop_* together. */
static uint64_t drops(void)
{
	const struct hca_counters *c = hca_counters(rig.h[1].hca);
	uint64_t sum = 0;

#define ADD(name)                                                              \
	if (strncmp(#name, "rx_drop_", 8) == 0)                                \
		sum += c->name;
	HCA_COUNTERS(ADD)
#undef ADD
	return sum;
}

static void open_pair(enum qp_type type)
{
	struct rig_pair_config c = { .type = type };

	rig_pair_open(&pair, &rig, &c);
}

static void put_bth(uint8_t *p, uint8_t opcode, uint32_t qpn, uint8_t pad)
{
	struct bth b = {
		.opcode = opcode, .pad = pad, .pkey = 0xffff, .dest_qpn = qpn
	};

	bth_encode(&b, p);
}

/* B022: all opcodes into all QP types at all lengths to 200 bytes, the frame
 * cut off exactly at its end (the sanitizers see a read beyond). A frame that
 * is not of the QP's transport is one drop of the counter that it must be; no
 * frame is two drops. */
static void test_all_opcodes(void **state)
{
	static const enum qp_type types[] = { QP_TYPE_RC, QP_TYPE_UC,
					      QP_TYPE_UD };

	(void)state;
	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		open_pair(types[t]);
		for (uint32_t op = 0; op < 256; op++)
			for (uint32_t len = 0; len <= 200; len++) {
				const struct hca_counters *c =
					hca_counters(rig.h[1].hca);
				uint64_t before = drops();
				uint64_t malformed = c->rx_drop_malformed;
				uint64_t type = c->rx_drop_qp_type;
				uint8_t bth[BTH_BYTES];
				uint8_t *exact = calloc(1, len ? len : 1);
				bool bad;

				put_bth(bth, (uint8_t)op, qp_num(pair.e[1].qp),
					0);
				memcpy(exact, bth,
				       len < BTH_BYTES ? len : BTH_BYTES);
				rig_inject_raw(&rig.h[1], exact, len);
				free(exact);
				assert_true(drops() - before <= 1);
				bad = len % 4 ||
				      !opcode_lookup((uint8_t)op)->name ||
				      len < opcode_lookup((uint8_t)op)
						      ->hdr_bytes;
				if (bad)
					assert_int_equal(c->rx_drop_malformed,
							 malformed + 1);
				else if (op >> 5 != pair.e[1].qp->ops->wire &&
					 (op >> 5 == TRANSPORT_RC ||
					  op >> 5 == TRANSPORT_UC ||
					  op >> 5 == TRANSPORT_UD) &&
					 c->rx_drop_malformed == malformed)
					assert_int_equal(c->rx_drop_qp_type,
							 type + 1);
			}
		rig_pair_close(&pair);
	}
	assert_int_equal(rig_counter(&rig.h[1], rx_pkts), 3 * 256 * 201);
}

/* The same with random bytes behind the opcode, QPs kept alive. */
static void test_random_bytes(void **state)
{
	struct prng r;

	(void)state;
	prng_init(&r, 99);
	for (int t = QP_TYPE_RC; t <= QP_TYPE_UD; t++) {
		open_pair((enum qp_type)t);
		for (int i = 0; i < 20000; i++) {
			uint32_t len = (uint32_t)prng_below(&r, 100) * 4;
			uint64_t before = drops();
			uint8_t buf[400];

			for (uint32_t k = 0; k < sizeof(buf); k++)
				buf[k] = (uint8_t)prng_u32(&r);
			buf[1] &= 0xf0; /* version 0 */
			buf[2] = buf[3] = 0xff;
			buf[5] = (uint8_t)(qp_num(pair.e[1].qp) >> 16);
			buf[6] = (uint8_t)(qp_num(pair.e[1].qp) >> 8);
			buf[7] = (uint8_t)qp_num(pair.e[1].qp);
			rig_inject_raw(&rig.h[1], buf, len);
			assert_true(drops() - before <= 1);
			if (i % 50 == 0) { /* a fatal packet may have come */
				struct rig_pair_config c = {
					.type = (enum qp_type)t
				};

				assert_int_equal(
					rig_state(&pair.e[1], QP_STATE_RESET),
					0);
				rig_walk(&pair.e[1], QP_STATE_RTS, &pair.e[0],
					 &c);
			}
			while (!rig_empty(pair.e[1].rcq))
				;
			while (!rig_empty(pair.e[1].scq))
				;
		}
		rig_pair_close(&pair);
	}
}

static struct pkt to_qp(uint32_t qpn, uint8_t opcode)
{
	return (struct pkt){
		.bth = { .opcode = opcode, .pkey = 0xffff, .dest_qpn = qpn },
		.ext.deth = { .qkey = RIG_QKEY, .src_qpn = 5 }
	};
}

#define UC_ONLY OPCODE(TRANSPORT_UC, OP_SEND_ONLY)
#define UD_ONLY OPCODE(TRANSPORT_UD, OP_SEND_ONLY)

static void test_no_qp(void **state)
{
	uint32_t qpn;

	(void)state;
	open_pair(QP_TYPE_UC);
	qpn = qp_num(pair.e[1].qp);
	for (uint32_t bit = 0; bit < 24; bit++) { /* near misses */
		struct pkt p = to_qp(qpn ^ 1u << bit, UC_ONLY);

		rig_inject(&rig.h[1], &p);
	}
	assert_int_equal(rig_counter(&rig.h[1], rx_drop_no_qp), 24);
	/* Multicast, and the GSI, whose Q_Key is another. */
	{
		struct pkt p = to_qp(BTH_QPN_MULTICAST, UD_ONLY);

		rig_inject(&rig.h[1], &p);
		assert_int_equal(rig_counter(&rig.h[1], rx_drop_no_qp), 25);
		p = to_qp(BTH_QPN_GSI, UD_ONLY);
		rig_inject(&rig.h[1], &p);
		assert_int_equal(rig_counter(&rig.h[1], rx_drop_qkey), 1);
		p = to_qp(qpn, OPCODE_CNP); /* no congestion control here */
		rig_inject(&rig.h[1], &p);
		assert_int_equal(rig_counter(&rig.h[1], rp_cnp_ignored), 1);
	}
	rig_pair_close(&pair);
	{ /* B115 the other way round: gone is gone */
		struct pkt p = to_qp(qpn, UC_ONLY);

		rig_inject(&rig.h[1], &p);
	}
	assert_int_equal(rig_counter(&rig.h[1], rx_drop_no_qp), 26);
	assert_int_equal(drops(), 27);
}

static void test_states(void **state)
{
	static const struct {
		enum qp_state s;
		bool hears;
	} cases[] = {
		{ QP_STATE_RESET, false }, { QP_STATE_INIT, false },
		{ QP_STATE_RTR, true },	   { QP_STATE_RTS, true },
		{ QP_STATE_SQD, true },	   { QP_STATE_ERR, false },
	};
	struct rig_pair_config c = { .type = QP_TYPE_UD };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pkt p;
		uint64_t before, wqe;

		rig_end_open(&pair.e[1], &rig.h[1], &c);
		rig_walk(&pair.e[1], cases[i].s, &pair.e[1], &c);
		p = to_qp(qp_num(pair.e[1].qp), UD_ONLY);
		before = rig_counter(&rig.h[1], rx_drop_qp_state);
		wqe = rig_counter(&rig.h[1], rx_drop_no_wqe);
		rig_inject(&rig.h[1], &p);
		assert_int_equal(rig_counter(&rig.h[1], rx_drop_qp_state),
				 before + !cases[i].hears);
		assert_int_equal(rig_counter(&rig.h[1], rx_drop_no_wqe),
				 wqe + cases[i].hears);
		rig_end_close(&pair.e[1]);
	}
}

/* B125: the low 15 bits are equal, and not both members are limited. */
static void test_pkeys(void **state)
{
	static const struct {
		uint16_t own, got;
		bool ok;
	} cases[] = {
		{ 0xffff, 0xffff, true },  { 0xffff, 0x7fff, true },
		{ 0x7fff, 0xffff, true },  { 0x7fff, 0x7fff, false },
		{ 0xffff, 0xfffe, false }, { 0xffff, 0x8000, false },
		{ 0x8123, 0x0123, true },  { 0x8123, 0x8123, true },
		{ 0x8123, 0xffff, false }, { 0x8123, 0x0000, false },
	};

	(void)state;
	open_pair(QP_TYPE_UD);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pkt p = to_qp(qp_num(pair.e[1].qp), UD_ONLY);
		uint64_t before = rig_counter(&rig.h[1], rx_drop_pkey);

		assert_int_equal(hca_set_pkey(rig.h[1].hca, 0, cases[i].own),
				 0);
		p.bth.pkey = cases[i].got;
		rig_inject(&rig.h[1], &p);
		assert_int_equal(rig_counter(&rig.h[1], rx_drop_pkey),
				 before + !cases[i].ok);
	}
	assert_int_equal(hca_set_pkey(rig.h[1].hca, 1, 0xffff), -EINVAL);
	assert_int_equal(hca_pkey(rig.h[1].hca, 0), 0x8123);
	assert_int_equal(hca_pkey(rig.h[1].hca, 1), 0);
	while (!rig_no_event(&rig.h[1]))
		;
	rig_pair_close(&pair);
}

static void inject_from(const struct gid *src, const struct gid *dst,
			uint32_t qpn, uint8_t opcode)
{
	uint8_t buf[PKT_HDR_MAX] = { 0 };
	struct pkt p = to_qp(qpn, opcode);
	struct rx_frame f = { .pkt = buf, .src = *src, .dst = *dst };

	f.len_bytes = (uint32_t)pkt_encode_headers(&p, buf);
	hca_rx(rig.h[1].hca, &f, 0);
}

/* RC and UC hear their peer alone, UD hears everybody. */
static void test_addresses(void **state)
{
	static const struct {
		enum qp_type type;
		uint8_t opcode;
	} types[] = {
		{ QP_TYPE_RC, OPCODE(TRANSPORT_RC, OP_SEND_ONLY) },
		{ QP_TYPE_UC, UC_ONLY },
		{ QP_TYPE_UD, UD_ONLY },
	};
	struct gid other = gid_from_v4(0x0a000003);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		bool strict = types[i].type != QP_TYPE_UD;
		uint64_t before = rig_counter(&rig.h[1], rx_drop_src);
		uint32_t qpn;

		open_pair(types[i].type);
		qpn = qp_num(pair.e[1].qp);
		inject_from(&rig.h[0].gid, &rig.h[1].gid, qpn, types[i].opcode);
		assert_int_equal(rig_counter(&rig.h[1], rx_drop_src), before);
		inject_from(&other, &rig.h[1].gid, qpn, types[i].opcode);
		inject_from(&rig.h[0].gid, &other, qpn, types[i].opcode);
		assert_int_equal(rig_counter(&rig.h[1], rx_drop_src),
				 before + (strict ? 2 : 0));
		rig_pair_close(&pair);
	}
}

/* B154: a QP that talks to itself. */
static void test_self(void **state)
{
	static const enum qp_type types[] = { QP_TYPE_RC, QP_TYPE_UC };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct rig_pair_config c = { .type = types[i] };
		struct send_wr wr = { .opcode = WR_SEND, .flags = WR_SIGNALED };
		struct rig_end *e = &pair.e[0];

		rig_end_open(e, &rig.h[0], &c);
		rig_walk(e, QP_STATE_RTS, e, &c);
		memset(rig_bytes(&rig.h[0], RIG_VA), 0x77, 3000);
		assert_int_equal(rig_post_recv(e, 1, 8192, 4096), 0);
		assert_int_equal(rig_post_send(e, wr, 0, 3000), 0);
		rig_run(&rig, 1000000);
		assert_int_equal(rig_poll(e->scq).status, WC_SUCCESS);
		assert_int_equal(rig_poll(e->rcq).byte_len, 3000);
		assert_int_equal(*rig_bytes(&rig.h[0], RIG_VA + 8192 + 2999),
				 0x77);
		rig_end_close(e);
	}
}

#define RIGGED(t) cmocka_unit_test_setup_teardown(t, open_rig, close_rig)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIGGED(test_all_opcodes), RIGGED(test_random_bytes),
		RIGGED(test_no_qp),	  RIGGED(test_states),
		RIGGED(test_pkeys),	  RIGGED(test_addresses),
		RIGGED(test_self),
	};

	return cmocka_run_group_tests_name("hca_rx", tests, NULL, NULL);
}
