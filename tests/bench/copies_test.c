/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * copies_test.c - how often the core touches a payload in user memory: it is
 * gathered once, into frames, and scattered once. What a link does in between
 * is its own (docs/benchmarks.md).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../unit/core_rig.h"

#define BYTES 10000u
#define UD_BYTES 1000u

static struct rig rig;
static struct rig_pair pair;

static void open_pair(enum qp_type type)
{
	struct rig_pair_config c = { .type = type };

	rig_open(&rig, NULL);
	rig_pair_open(&pair, &rig, &c);
}

static void close_pair(void)
{
	rig_pair_close(&pair);
	rig_close(&rig);
}

/* Host `from` has read the payload once and written nothing, the other has
 * written it once and read nothing. */
static void expect_once(int from, uint64_t bytes, uint64_t headers)
{
	assert_int_equal(rig.h[from].read_bytes, bytes);
	assert_int_equal(rig.h[from].written_bytes, 0);
	assert_int_equal(rig.h[!from].written_bytes, bytes + headers);
	assert_int_equal(rig.h[!from].read_bytes, 0);
}

static void one_message(enum qp_type type, enum wr_opcode op, uint32_t bytes,
			struct ah *ah)
{
	struct send_wr wr = { .opcode = op,
			      .flags = WR_SIGNALED,
			      .remote_addr = RIG_VA + (1 << 20),
			      .rkey = mr_key(pair.e[1].mr),
			      .ah = ah,
			      .remote_qpn = qp_num(pair.e[1].qp),
			      .remote_qkey = RIG_QKEY };
	bool send = op == WR_SEND;
	uint32_t grh = type == QP_TYPE_UD ? 40 : 0;

	if (send)
		assert_int_equal(
			rig_post_recv(&pair.e[1], 1, 1 << 20, bytes + grh), 0);
	assert_int_equal(rig_post_send(&pair.e[0], wr, 0, bytes), 0);
	rig_pump(&rig);
	assert_int_equal(rig_poll(pair.e[0].scq).status, WC_SUCCESS);
	if (send)
		assert_int_equal(rig_poll(pair.e[1].rcq).status, WC_SUCCESS);
}

static void test_send(void **state)
{
	(void)state;
	open_pair(QP_TYPE_RC);
	one_message(QP_TYPE_RC, WR_SEND, BYTES, NULL);
	expect_once(0, BYTES, 0);
	close_pair();
}

static void test_write(void **state)
{
	(void)state;
	open_pair(QP_TYPE_RC);
	one_message(QP_TYPE_RC, WR_WRITE, BYTES, NULL);
	expect_once(0, BYTES, 0);
	close_pair();
}

static void test_read(void **state)
{
	(void)state;
	open_pair(QP_TYPE_RC);
	one_message(QP_TYPE_RC, WR_READ, BYTES, NULL);
	expect_once(1, BYTES, 0);
	close_pair();
}

static void test_uc_write(void **state)
{
	(void)state;
	open_pair(QP_TYPE_UC);
	one_message(QP_TYPE_UC, WR_WRITE, BYTES, NULL);
	expect_once(0, BYTES, 0);
	close_pair();
}

static void test_ud_send(void **state)
{
	struct ah *ah;

	(void)state;
	open_pair(QP_TYPE_UD);
	ah = rig_ah(&pair.e[0], &rig.h[1]);
	one_message(QP_TYPE_UD, WR_SEND, UD_BYTES, ah);
	expect_once(0, UD_BYTES, 40); /* the GRH that a receive begins with */
	assert_int_equal(ah_destroy(ah), 0);
	close_pair();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_send),	cmocka_unit_test(test_write),
		cmocka_unit_test(test_read),	cmocka_unit_test(test_uc_write),
		cmocka_unit_test(test_ud_send),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
