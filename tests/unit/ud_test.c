/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <errno.h>

#include <cmocka.h>

#include "base/bytes.h"

static struct rig rig;
static struct rig_pair pair;
static struct ah *ah; /* of end 0, to end 1 */

static void fill(struct rig_host *h, uint32_t off, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		rig_bytes(h, RIG_VA + off)[i] = (uint8_t)(i * 7 + 3);
}

static bool filled(struct rig_host *h, uint32_t off, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		if (rig_bytes(h, RIG_VA + off)[i] != (uint8_t)(i * 7 + 3))
			return false;
	return true;
}

static int open_pair(void **state)
{
	struct rig_pair_config c = { .type = QP_TYPE_UD, .sq_psn = 0xfffffe };

	(void)state;
	rig_open(&rig, NULL);
	rig_pair_open(&pair, &rig, &c);
	ah = rig_ah(&pair.e[0], &rig.h[1]);
	return 0;
}

static int close_pair(void **state)
{
	(void)state;
	assert_int_equal(ah_destroy(ah), 0);
	rig_pair_close(&pair);
	rig_close(&rig);
	return 0;
}

static struct send_wr to_peer(uint64_t wr_id, uint32_t opcode)
{
	return (struct send_wr){ .wr_id = wr_id,
				 .opcode = opcode,
				 .flags = WR_SIGNALED,
				 .ah = ah,
				 .remote_qpn = qp_num(pair.e[1].qp),
				 .remote_qkey = RIG_QKEY };
}

/* B016: sizes down to zero; byte_len counts the 40 bytes before the data. */
static void test_sizes(void **state)
{
	static const uint32_t sizes[] = { 0,   1,   2,	  3,	4,   5,
					  255, 256, 1024, 4095, 4096 };

	(void)state;
	fill(&rig.h[0], 0, 4096);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint32_t n = sizes[i];
		struct wc wc;

		memset(rig_bytes(&rig.h[1], RIG_VA), 0xee, 5000);
		assert_int_equal(rig_post_recv(&pair.e[1], 70 + i, 0, 4136), 0);
		assert_int_equal(
			rig_post_send(&pair.e[0], to_peer(i, WR_SEND), 0, n),
			0);
		rig_pump(&rig);
		wc = rig_poll(pair.e[0].scq);
		assert_int_equal(wc.status, WC_SUCCESS);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.opcode, WC_SEND);
		wc = rig_poll(pair.e[1].rcq);
		assert_int_equal(wc.status, WC_SUCCESS);
		assert_int_equal(wc.wr_id, 70 + i);
		assert_int_equal(wc.opcode, WC_RECV);
		assert_int_equal(wc.byte_len, 40 + n);
		assert_int_equal(wc.wc_flags, WC_GRH);
		assert_int_equal(wc.src_qpn, qp_num(pair.e[0].qp));
		assert_int_equal(wc.qpn, qp_num(pair.e[1].qp));
		assert_true(filled(&rig.h[1], 40, n));
		assert_int_equal(*rig_bytes(&rig.h[1], RIG_VA + 40 + n), 0xee);
	}
	assert_int_equal(rig_counter(&rig.h[0], tx_pkts), ARRAY_SIZE(sizes));
	assert_int_equal(rig_counter(&rig.h[1], rsp_send_msgs),
			 ARRAY_SIZE(sizes));
	assert_int_equal(rig_counter(&rig.h[0], tx_payload_bytes),
			 rig_counter(&rig.h[1], rx_payload_bytes));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sizes, open_pair,
						close_pair),
	};

	return cmocka_run_group_tests_name("ud", tests, NULL, NULL);
}
