/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <errno.h>

#include <cmocka.h>

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
		assert_int_equal(wc.sl, 0xa); /* IPv4, UDP */
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

/* What stands in the 40 bytes before the data. */
static void test_grh_v4(void **state)
{
	struct ipv4 ip;
	uint8_t *p = rig_bytes(&rig.h[1], RIG_VA);

	(void)state;
	memset(p, 0xee, 100);
	assert_int_equal(rig_post_recv(&pair.e[1], 1, 0, 100), 0);
	assert_int_equal(rig_post_send(&pair.e[0], to_peer(1, WR_SEND), 0, 5),
			 0);
	rig_pump(&rig);
	for (int i = 0; i < 20; i++)
		assert_int_equal(p[i], 0);
	assert_int_equal(ipv4_decode(&ip, p + 20, 20), 20);
	assert_int_equal(ip.src, gid_v4(&rig.h[0].gid));
	assert_int_equal(ip.dst, gid_v4(&rig.h[1].gid));
	assert_int_equal(ip.proto, IPPROTO_UDP_NUM);
	assert_int_equal(ip.ttl, 64);
	/* IP, UDP, BTH, DETH, payload with pad, ICRC */
	assert_int_equal(ip.total_bytes, 20 + 8 + 12 + 8 + 8 + 4);
	assert_int_equal(inet_sum(0, p + 20, 20), 0xffff);
}

static void test_grh_v6(void **state)
{
	struct ah_attr a = { .is_global = true,
			     .dgid = hca_gid(rig.h[1].hca, 1)->gid,
			     .sgid_index = 1,
			     .hop_limit = 9,
			     .traffic_class = 0x84,
			     .flow_label = 0x12345,
			     .port_num = 1 };
	struct send_wr wr = to_peer(1, WR_SEND);
	struct ipv6 ip;
	struct wc wc;

	(void)state;
	assert_int_equal(ah_create(pair.e[0].pd, &a, &wr.ah), 0);
	assert_int_equal(rig_post_recv(&pair.e[1], 1, 0, 100), 0);
	assert_int_equal(rig_post_send(&pair.e[0], wr, 0, 8), 0);
	assert_int_equal(ah_destroy(wr.ah), 0);
	rig_pump(&rig);
	wc = rig_poll(pair.e[1].rcq);
	assert_int_equal(wc.byte_len, 48);
	assert_int_equal(wc.sl, 9); /* IPv6, UDP */
	assert_int_equal(ipv6_decode(&ip, rig_bytes(&rig.h[1], RIG_VA), 40),
			 40);
	assert_memory_equal(&ip.src, &hca_gid(rig.h[0].hca, 1)->gid, 16);
	assert_memory_equal(&ip.dst, &a.dgid, 16);
	assert_int_equal(ip.hop_limit, 9);
	assert_int_equal(ip.tclass, 0x84);
	assert_int_equal(ip.flow, 0x12345);
	assert_int_equal(ip.payload_bytes, 8 + 12 + 8 + 8 + 4);
}

static void test_imm_solicited(void **state)
{
	struct send_wr wr = to_peer(1, WR_SEND_IMM);
	struct wc wc;

	(void)state;
	wr.imm_be_or_rkey = 0xaabbccdd;
	wr.flags |= WR_SOLICITED;
	assert_int_equal(rig_post_recv(&pair.e[1], 1, 0, 100), 0);
	cq_arm(pair.e[1].rcq, true);
	assert_int_equal(rig_post_send(&pair.e[0], wr, 0, 0), 0);
	rig_pump(&rig);
	wc = rig_poll(pair.e[1].rcq);
	assert_int_equal(wc.wc_flags, WC_GRH | WC_WITH_IMM);
	assert_int_equal(wc.imm_be_or_rkey, 0xaabbccdd);
	assert_int_equal(wc.byte_len, 40);
	assert_int_equal(rig_event(&rig.h[1]).kind, HCA_EVENT_COMP);
}

/* The receiver's Q_Key, or the sender's own when the high bit is set. */
static void test_qkeys(void **state)
{
	static const struct {
		uint32_t own, remote;
		bool ok;
	} cases[] = {
		{ 0x22, RIG_QKEY, true },
		{ 0x22, RIG_QKEY ^ 1, false },
		{ 0x22, 0, false },
		{ RIG_QKEY, 0x80000000, true },
		{ RIG_QKEY, 0xffffffff, true },
		{ 0x22, 0x80000000 | RIG_QKEY, false },
	};
	uint64_t bad = 0;

	(void)state;
	assert_int_equal(rig_post_recv(&pair.e[1], 1, 0, 100), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct qp_attr a = { .qkey = cases[i].own };
		struct send_wr wr = to_peer(i, WR_SEND);

		assert_int_equal(qp_modify(pair.e[0].qp, &a, QP_ATTR_QKEY, 0),
				 0);
		wr.remote_qkey = cases[i].remote;
		assert_int_equal(rig_post_send(&pair.e[0], wr, 0, 8), 0);
		rig_pump(&rig);
		bad += !cases[i].ok;
		assert_int_equal(rig_counter(&rig.h[1], rx_drop_qkey), bad);
		if (cases[i].ok) {
			assert_int_equal(rig_poll(pair.e[1].rcq).byte_len, 48);
			assert_int_equal(rig_post_recv(&pair.e[1], 1, 0, 100),
					 0);
		}
	}
}

/* B119 */
static void test_too_small(void **state)
{
	(void)state;
	assert_int_equal(rig_post_recv(&pair.e[1], 1, 0, 40 + 1024), 0);
	assert_int_equal(
		rig_post_send(&pair.e[0], to_peer(1, WR_SEND), 0, 2048), 0);
	assert_int_equal(
		rig_post_send(&pair.e[0], to_peer(1, WR_SEND), 0, 1025), 0);
	rig_pump(&rig);
	assert_true(rig_empty(pair.e[1].rcq));
	assert_int_equal(rig_counter(&rig.h[1], rx_drop_len), 2);
	assert_int_equal(qp_state(pair.e[1].qp), QP_STATE_RTS);
	assert_int_equal(
		rig_post_send(&pair.e[0], to_peer(1, WR_SEND), 0, 1024), 0);
	rig_pump(&rig);
	assert_int_equal(rig_poll(pair.e[1].rcq).byte_len, 40 + 1024);
	/* Not even room for the header. */
	assert_int_equal(rig_post_recv(&pair.e[1], 2, 0, 39), 0);
	assert_int_equal(rig_post_send(&pair.e[0], to_peer(1, WR_SEND), 0, 0),
			 0);
	rig_pump(&rig);
	assert_int_equal(rig_counter(&rig.h[1], rx_drop_len), 3);
	assert_true(rig_empty(pair.e[1].rcq));
}

/* The pad is zero, whatever the driver's buffer held. */
static void test_pad(void **state)
{
	struct rig_frame f;

	(void)state;
	fill(&rig.h[0], 0, 8);
	for (uint32_t n = 5; n <= 8; n++) {
		memset(f.buf, 0xff, sizeof(f.buf));
		assert_int_equal(
			rig_post_send(&pair.e[0], to_peer(1, WR_SEND), 0, n),
			0);
		assert_true(rig_tx(&rig.h[0], 1, &f));
		assert_int_equal(f.pkt.payload_bytes, n);
		assert_int_equal(f.pkt.bth.pad, 8 - n);
		for (uint32_t i = n; i < 8; i++)
			assert_int_equal(f.pkt.payload[i], 0);
	}
}

static void test_no_wqe(void **state)
{
	(void)state;
	assert_int_equal(rig_post_send(&pair.e[0], to_peer(1, WR_SEND), 0, 8),
			 0);
	rig_pump(&rig);
	assert_int_equal(rig_counter(&rig.h[1], rx_drop_no_wqe), 1);
	assert_int_equal(rig_poll(pair.e[0].scq).status, WC_SUCCESS);
}

/* The port's MTU shrinks between post and send. */
static void test_mtu_shrinks(void **state)
{
	struct wc wc;

	(void)state;
	assert_int_equal(
		rig_post_send(&pair.e[0], to_peer(1, WR_SEND), 0, 2000), 0);
	assert_int_equal(rig_post_send(&pair.e[0], to_peer(2, WR_SEND), 0, 8),
			 0);
	hca_set_port(rig.h[0].hca, PORT_STATE_ACTIVE, 1500);
	rig_pump(&rig);
	wc = rig_poll(pair.e[0].scq);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.status, WC_LOC_LEN_ERR);
	assert_int_equal(rig_poll(pair.e[0].scq).status, WC_WR_FLUSH_ERR);
	assert_int_equal(qp_state(pair.e[0].qp), QP_STATE_SQE);
	assert_int_equal(rig_counter(&rig.h[0], tx_pkts), 0);
	assert_int_equal(rig_counter(&rig.h[0], local_errors), 1);
}

static void test_bad_lkey(void **state)
{
	struct sge sge = { .addr = RIG_VA, .len_bytes = 100, .lkey = 1 };
	struct recv_wr wr = { .wr_id = 9, .sge = &sge, .num_sge = 1 };
	struct wc wc;

	(void)state;
	assert_int_equal(qp_post_recv(pair.e[1].qp, &wr), 0);
	assert_int_equal(rig_post_send(&pair.e[0], to_peer(1, WR_SEND), 0, 8),
			 0);
	rig_pump(&rig);
	wc = rig_poll(pair.e[1].rcq);
	assert_int_equal(wc.wr_id, 9);
	assert_int_equal(wc.status, WC_LOC_PROT_ERR);
	assert_int_equal(qp_state(pair.e[1].qp), QP_STATE_ERR);
}

/* The path of a frame that is out stays as it was, whatever is posted. */
static void test_path_while_out(void **state)
{
	static uint8_t buf[PKT_MAX + ICRC_BYTES];
	struct tx_frame f = { .pkt = buf };
	struct path was;

	(void)state;
	for (int i = 0; i < 16; i++)
		assert_int_equal(rig_post_send(&pair.e[0],
					       to_peer((uint64_t)i, WR_SEND), 0,
					       0),
				 0);
	hca_doorbells(rig.h[0].hca, 0);
	assert_true(hca_tx(rig.h[0].hca, 1, &f, 0));
	was = *f.path;
	assert_int_equal(rig_state(&pair.e[0], QP_STATE_ERR), 0);
	assert_int_equal(rig_post_send(&pair.e[0], to_peer(1, WR_SEND), 0, 0),
			 -ENOMEM);
	hca_doorbells(rig.h[0].hca, 0);
	assert_memory_equal(f.path, &was, sizeof(was));
	hca_tx_done(rig.h[0].hca, &f);
	assert_int_equal(rig_poll(pair.e[0].scq).status, WC_SUCCESS);
	for (int i = 1; i < 16; i++)
		assert_int_equal(rig_poll(pair.e[0].scq).status,
				 WC_WR_FLUSH_ERR);
	assert_true(rig_empty(pair.e[0].scq));
}

static void test_ah_errors(void **state)
{
	struct ah_attr good = { .is_global = true,
				.dgid = rig.h[1].gid,
				.port_num = 1 };
	struct ah_attr a;
	struct ah *h;

	(void)state;
#define BAD(change)                                                            \
	do {                                                                   \
		a = good;                                                      \
		change;                                                        \
		assert_int_equal(ah_create(pair.e[0].pd, &a, &h), -EINVAL);    \
	} while (0)
	BAD(a.is_global = false); /* B124 */
	BAD(a.sgid_index = 7);
	BAD(a.sgid_index = 1); /* of the other family */
	BAD(a.port_num = 0);
	BAD(a.port_num = 2);
	BAD(a.sl = 16);
	BAD(a.flow_label = 1 << 20);
#undef BAD
	assert_int_equal(pd_destroy(pair.e[0].pd), -EBUSY);
	assert_int_equal(ah_path(ah)->hop_limit, 64);
	assert_int_equal(ah_path(ah)->netdev, 2);
}

#define PAIRED(t) cmocka_unit_test_setup_teardown(t, open_pair, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAIRED(test_sizes),
		PAIRED(test_grh_v4),
		PAIRED(test_grh_v6),
		PAIRED(test_imm_solicited),
		PAIRED(test_qkeys),
		PAIRED(test_too_small),
		PAIRED(test_pad),
		PAIRED(test_no_wqe),
		PAIRED(test_mtu_shrinks),
		PAIRED(test_bad_lkey),
		PAIRED(test_path_while_out),
		PAIRED(test_ah_errors),
	};

	return cmocka_run_group_tests_name("ud", tests, NULL, NULL);
}
