/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct rig rig;
static struct rig_pair pair;
static struct rig_pair_config config;

#define FAR (1u << 20) /* offset of the receiver's buffers */

static void fill(uint32_t len, uint8_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		rig_bytes(&rig.h[0], RIG_VA)[i] = (uint8_t)(i * 13 + seed);
}

static bool arrived(uint32_t off, uint32_t len, uint8_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		if (rig_bytes(&rig.h[1], RIG_VA + off)[i] !=
		    (uint8_t)(i * 13 + seed))
			return false;
	return true;
}

static void open_with(struct rig_pair_config c)
{
	c.type = QP_TYPE_UC;
	config = c;
	rig_open(&rig, NULL);
	rig_pair_open(&pair, &rig, &config);
}

static int open_pair(void **state)
{
	(void)state;
	open_with((struct rig_pair_config){ .sq_psn = 0xfffffd });
	return 0;
}

static int close_pair(void **state)
{
	(void)state;
	rig_pair_close(&pair);
	rig_close(&rig);
	return 0;
}

static struct send_wr wr_of(uint32_t opcode, uint64_t id)
{
	return (struct send_wr){ .wr_id = id,
				 .opcode = opcode,
				 .flags = WR_SIGNALED,
				 .imm_be_or_rkey = 0x04030201,
				 .remote_addr = RIG_VA + FAR,
				 .rkey = mr_key(pair.e[1].mr) };
}

static bool takes_wqe(uint32_t opcode)
{
	return opcode != WR_WRITE;
}

static void check_recv(uint32_t opcode, uint32_t len, uint64_t id)
{
	bool write = opcode == WR_WRITE_IMM;
	bool imm = write || opcode == WR_SEND_IMM;
	struct wc wc = rig_poll(pair.e[1].rcq);

	assert_int_equal(wc.status, WC_SUCCESS);
	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.byte_len, len); /* B035 */
	assert_int_equal(wc.opcode, write ? WC_RECV_RDMA_WITH_IMM : WC_RECV);
	assert_int_equal(wc.wc_flags, imm ? WC_WITH_IMM : 0);
	if (imm)
		assert_int_equal(wc.imm_be_or_rkey, 0x04030201);
}

static void one_message(uint32_t opcode, uint32_t len, uint64_t id)
{
	struct rig_host *rx = &rig.h[1];
	struct wc wc;

	fill(len, (uint8_t)id);
	memset(rig_bytes(rx, RIG_VA + FAR), 0xee, len + 1);
	if (takes_wqe(opcode))
		assert_int_equal(
			rig_post_recv(&pair.e[1], id + 500, FAR,
				      opcode == WR_WRITE_IMM ? 0 : len),
			0);
	assert_int_equal(rig_post_send(&pair.e[0], wr_of(opcode, id), 0, len),
			 0);
	rig_pump(&rig);
	wc = rig_poll(pair.e[0].scq);
	assert_int_equal(wc.status, WC_SUCCESS);
	assert_int_equal(wc.wr_id, id);
	assert_true(arrived(FAR, len, (uint8_t)id));
	assert_int_equal(*rig_bytes(rx, RIG_VA + FAR + len), 0xee);
	if (takes_wqe(opcode))
		check_recv(opcode, len, id + 500);
	assert_true(rig_empty(pair.e[1].rcq));
	assert_true(rig_empty(pair.e[0].scq));
}

/* Every opcode, every MTU, lengths around the packet borders, across the PSN
 * wrap. */
static void test_messages(void **state)
{
	static const uint32_t opcodes[] = { WR_SEND, WR_SEND_IMM, WR_WRITE,
					    WR_WRITE_IMM };
	uint64_t id = 0;

	(void)state;
	for (enum mtu_code mtu = MTU_256; mtu <= MTU_4096; mtu++) {
		uint32_t m = mtu_bytes(mtu);
		uint32_t lens[] = { 0,	   1,	      m - 1, m,
				    m + 1, 2 * m,     100,   5 * m + 3,
				    3 * m, 3 * m - 1, 70000 };

		open_with((struct rig_pair_config){ .mtu = mtu,
						    .sq_psn = 0xfffff0 });
		for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++)
			for (size_t k = 0; k < ARRAY_SIZE(lens); k++)
				one_message(opcodes[i], lens[k], ++id);
		assert_int_equal(rig_counter(&rig.h[0], tx_payload_bytes),
				 rig_counter(&rig.h[1], rx_payload_bytes));
		close_pair(NULL);
	}
}

static enum rig_fate drop_nth(struct rig *r, int from, struct rx_frame *f,
			      uint8_t *pkt)
{
	int *left = r->filter_ctx;

	(void)from;
	(void)f;
	(void)pkt;
	return (*left)-- == 0 ? RIG_DROP : RIG_DELIVER;
}

/* A message that loses any one packet is lost whole; its receive WQE serves
 * the next message. */
static void test_loss(void **state)
{
	(void)state;
	for (int lost = 0; lost < 5; lost++) {
		int left = lost;
		struct wc wc;

		open_pair(NULL);
		assert_int_equal(rig_post_recv(&pair.e[1], 1, FAR, 8192), 0);
		fill(5000, 9);
		rig.filter = drop_nth;
		rig.filter_ctx = &left;
		assert_int_equal(
			rig_post_send(&pair.e[0], wr_of(WR_SEND, 10), 0, 5000),
			0);
		rig_pump(&rig);
		rig.filter = NULL;
		assert_true(rig_empty(pair.e[1].rcq));
		fill(3000, 77);
		assert_int_equal(
			rig_post_send(&pair.e[0], wr_of(WR_SEND, 11), 0, 3000),
			0);
		rig_pump(&rig);
		wc = rig_poll(pair.e[1].rcq);
		assert_int_equal(wc.status, WC_SUCCESS);
		assert_int_equal(wc.wr_id, 1);
		assert_int_equal(wc.byte_len, 3000);
		assert_true(arrived(FAR, 3000, 77));
		/* What followed the gap within the message. */
		assert_int_equal(rig_counter(&rig.h[1], rx_drop_out_of_seq),
				 4 - lost);
		close_pair(NULL);
	}
}

static struct pkt packet(uint8_t op, uint32_t psn, const void *payload,
			 uint32_t n)
{
	return (struct pkt){
		.bth = { .opcode = OPCODE(TRANSPORT_UC, op),
			 .pkey = 0xffff,
			 .dest_qpn = qp_num(pair.e[1].qp),
			 .psn = psn_of(psn) },
		.payload = payload,
		.payload_bytes = n,
	};
}

/* B020: what each place in a message must be long, at MTU 1024. */
static void test_lengths(void **state)
{
	static const struct {
		uint8_t op;
		uint32_t reth, bytes;
		bool ok;
	} cases[] = {
		{ OP_SEND_ONLY, 0, 0, true },
		{ OP_SEND_ONLY, 0, 1024, true },
		{ OP_SEND_ONLY, 0, 1028, false },
		{ OP_SEND_FIRST, 0, 1020, false },
		{ OP_SEND_FIRST, 0, 1028, false },
		{ OP_SEND_FIRST, 0, 0, false },
		{ OP_WRITE_ONLY, 8, 8, true },
		{ OP_WRITE_ONLY, 0, 0, true },
		{ OP_WRITE_ONLY, 8, 4, false },
		{ OP_WRITE_ONLY, 4, 8, false },
		{ OP_WRITE_ONLY, 2048, 1024, false },
		{ OP_WRITE_FIRST, 1024, 1024, false },
		{ OP_WRITE_FIRST, 2048, 1020, false },
		{ OP_WRITE_FIRST, 0xffffffff, 1024, false },
	};
	static const uint8_t data[2048];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pkt p;

		open_pair(NULL);
		assert_int_equal(rig_post_recv(&pair.e[1], 1, FAR, 8192), 0);
		p = packet(cases[i].op, 0xfffffd, data, cases[i].bytes);
		p.ext.reth = (struct reth){ .va = RIG_VA + FAR,
					    .rkey = mr_key(pair.e[1].mr),
					    .len_bytes = cases[i].reth };
		rig_inject(&rig.h[1], &p);
		assert_int_equal(rig_counter(&rig.h[1], rx_drop_len),
				 !cases[i].ok);
		assert_int_equal(qp_state(pair.e[1].qp), QP_STATE_RTS);
		close_pair(NULL);
	}
}

/* The second packet of a message of 1024-byte packets. */
static void test_later_lengths(void **state)
{
	static const struct {
		uint8_t first, second;
		uint32_t reth, bytes;
		bool ok;
	} cases[] = {
		{ OP_SEND_FIRST, OP_SEND_MIDDLE, 0, 1024, true },
		{ OP_SEND_FIRST, OP_SEND_MIDDLE, 0, 1020, false },
		{ OP_SEND_FIRST, OP_SEND_LAST, 0, 1, true },
		{ OP_SEND_FIRST, OP_SEND_LAST, 0, 0, false },
		{ OP_SEND_FIRST, OP_SEND_LAST, 0, 1028, false },
		{ OP_WRITE_FIRST, OP_WRITE_LAST, 1025, 1, true },
		{ OP_WRITE_FIRST, OP_WRITE_LAST, 1025, 2, false },
		{ OP_WRITE_FIRST, OP_WRITE_LAST, 2048, 1020, false },
		{ OP_WRITE_FIRST, OP_WRITE_MIDDLE, 2048, 1024, false },
		{ OP_WRITE_FIRST, OP_WRITE_MIDDLE, 2049, 1024, true },
	};
	static const uint8_t data[2048];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pkt p;

		open_pair(NULL);
		assert_int_equal(rig_post_recv(&pair.e[1], 1, FAR, 8192), 0);
		p = packet(cases[i].first, 0xfffffd, data, 1024);
		p.ext.reth = (struct reth){ .va = RIG_VA + FAR,
					    .rkey = mr_key(pair.e[1].mr),
					    .len_bytes = cases[i].reth };
		rig_inject(&rig.h[1], &p);
		assert_int_equal(rig_counter(&rig.h[1], rx_drop_len), 0);
		p = packet(cases[i].second, 0xfffffe, data, cases[i].bytes);
		rig_inject(&rig.h[1], &p);
		assert_int_equal(rig_counter(&rig.h[1], rx_drop_len),
				 !cases[i].ok);
		close_pair(NULL);
	}
}

/* MIDDLE and LAST without a FIRST, SEND into a WRITE, a message inside
 * another. */
static void test_order(void **state)
{
	static const uint8_t data[1024] = { 5 };
	struct rig_host *h = &rig.h[1];
	struct pkt p;

	(void)state;
	assert_int_equal(rig_post_recv(&pair.e[1], 1, FAR, 8192), 0);
	p = packet(OP_SEND_MIDDLE, 0xfffffd, data, 1024);
	rig_inject(h, &p);
	p = packet(OP_SEND_LAST, 0xfffffe, data, 1024);
	rig_inject(h, &p);
	assert_int_equal(rig_counter(h, rx_drop_out_of_seq), 2);
	p = packet(OP_SEND_FIRST, 0xffffff, data, 1024);
	rig_inject(h, &p);
	p = packet(OP_WRITE_MIDDLE, 0, data, 1024);
	rig_inject(h, &p);
	assert_int_equal(rig_counter(h, rx_drop_out_of_seq), 3);
	p = packet(OP_SEND_LAST, 1, data, 1024);
	rig_inject(h, &p);
	assert_int_equal(rig_counter(h, rx_drop_out_of_seq), 4);
	assert_true(rig_empty(pair.e[1].rcq));
	/* A FIRST whose message is cut off by an ONLY. */
	p = packet(OP_SEND_FIRST, 2, data, 1024);
	rig_inject(h, &p);
	p = packet(OP_SEND_ONLY, 3, data, 10);
	rig_inject(h, &p);
	assert_int_equal(rig_poll(pair.e[1].rcq).byte_len, 10);
	/* A repeated ONLY is a new message to UC. */
	assert_int_equal(rig_post_recv(&pair.e[1], 2, FAR, 8192), 0);
	rig_inject(h, &p);
	assert_int_equal(rig_poll(pair.e[1].rcq).wr_id, 2);
	assert_int_equal(rig_counter(h, rx_drop_out_of_seq), 4);
}

/* B013: no byte, no key; any other WRITE without its rights is dropped and
 * changes nothing. */
static void test_write_access(void **state)
{
	static const struct {
		uint64_t addr;
		uint32_t key_xor, len;
		bool ok;
	} cases[] = {
		{ RIG_VA + FAR, 0, 64, true },
		{ RIG_VA + FAR, 1, 64, false },
		{ RIG_VA + FAR, 0x100, 64, false },
		{ 0xdeadbeef, 0x12345600, 0, true },
		{ RIG_VA - 1, 0, 64, false },
		{ RIG_VA + RIG_MEM_BYTES - 63, 0, 64, false },
		{ RIG_VA + RIG_MEM_BYTES - 64, 0, 64, true },
		{ UINT64_MAX - 62, 0, 64, false },
		/* The first packet fits, the message does not. */
		{ RIG_VA + RIG_MEM_BYTES - 2048, 0, 3000, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct send_wr wr;
		uint8_t *last;

		open_pair(NULL);
		fill(3000, 1);
		wr = wr_of(WR_WRITE, i);
		wr.remote_addr = cases[i].addr;
		wr.rkey ^= cases[i].key_xor;
		assert_int_equal(rig_post_send(&pair.e[0], wr, 0, cases[i].len),
				 0);
		rig_pump(&rig);
		assert_int_equal(rig_poll(pair.e[0].scq).status, WC_SUCCESS);
		assert_int_equal(rig_counter(&rig.h[1], rsp_write_msgs),
				 cases[i].ok);
		assert_int_equal(rig_counter(&rig.h[1], rx_drop_access) > 0,
				 !cases[i].ok);
		last = rig_bytes(&rig.h[1], RIG_VA + RIG_MEM_BYTES - 2048);
		if (!cases[i].ok)
			assert_int_equal(*last, 0);
		assert_int_equal(qp_state(pair.e[1].qp), QP_STATE_RTS);
		close_pair(NULL);
	}
}

static void test_write_needs_qp_access(void **state)
{
	struct qp_attr a = { .access = ACCESS_REMOTE_READ };

	(void)state;
	assert_int_equal(qp_modify(pair.e[1].qp, &a, QP_ATTR_ACCESS_FLAGS, 0),
			 0);
	fill(64, 1);
	assert_int_equal(rig_post_send(&pair.e[0], wr_of(WR_WRITE, 1), 0, 64),
			 0);
	rig_pump(&rig);
	assert_int_equal(rig_counter(&rig.h[1], rx_drop_access), 1);
	assert_int_equal(*rig_bytes(&rig.h[1], RIG_VA + FAR), 0);
}

static void test_no_buffer(void **state)
{
	(void)state;
	fill(4000, 1);
	/* None posted: the message is dropped, one packet at a time. */
	assert_int_equal(rig_post_send(&pair.e[0], wr_of(WR_SEND, 1), 0, 4000),
			 0);
	rig_pump(&rig);
	assert_int_equal(rig_counter(&rig.h[1], rx_drop_no_wqe), 1);
	assert_int_equal(rig_counter(&rig.h[1], rx_drop_out_of_seq), 3);
	/* Too small: dropped, and it serves the next. */
	assert_int_equal(rig_post_recv(&pair.e[1], 8, FAR, 1500), 0);
	assert_int_equal(rig_post_send(&pair.e[0], wr_of(WR_SEND, 2), 0, 4000),
			 0);
	assert_int_equal(rig_post_send(&pair.e[0], wr_of(WR_SEND, 3), 0, 1500),
			 0);
	rig_pump(&rig);
	assert_int_equal(rig_counter(&rig.h[1], rx_drop_len), 1);
	assert_int_equal(rig_poll(pair.e[1].rcq).byte_len, 1500);
	assert_int_equal(qp_state(pair.e[1].qp), QP_STATE_RTS);
	/* An immediate without a WQE. */
	assert_int_equal(
		rig_post_send(&pair.e[0], wr_of(WR_WRITE_IMM, 4), 0, 8), 0);
	rig_pump(&rig);
	assert_int_equal(rig_counter(&rig.h[1], rx_drop_no_wqe), 2);
}

/* Memory that went away under the sender: the WQE fails in its turn, the rest
 * is flushed, and the QP can go on [IBA 10.3.1.6]. */
static void test_send_fault(void **state)
{
	struct wc wc;

	(void)state;
	fill(64, 1);
	rig.h[0].fault_lo = RIG_VA + 5000;
	rig.h[0].fault_hi = RIG_VA + 5001;
	assert_int_equal(rig_post_send(&pair.e[0], wr_of(WR_WRITE, 1), 0, 64),
			 0);
	assert_int_equal(rig_post_send(&pair.e[0], wr_of(WR_WRITE, 2), 0, 8000),
			 0);
	assert_int_equal(rig_post_send(&pair.e[0], wr_of(WR_WRITE, 3), 0, 64),
			 0);
	rig_pump(&rig);
	assert_int_equal(rig_poll(pair.e[0].scq).status, WC_SUCCESS);
	wc = rig_poll(pair.e[0].scq);
	assert_int_equal(wc.status, WC_LOC_PROT_ERR);
	assert_int_equal(wc.wr_id, 2);
	wc = rig_poll(pair.e[0].scq);
	assert_int_equal(wc.status, WC_WR_FLUSH_ERR);
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(qp_state(pair.e[0].qp), QP_STATE_SQE);
	/* Posted in SQE: flushed. */
	assert_int_equal(rig_post_send(&pair.e[0], wr_of(WR_WRITE, 4), 0, 64),
			 0);
	rig_pump(&rig);
	assert_int_equal(rig_poll(pair.e[0].scq).status, WC_WR_FLUSH_ERR);
	assert_int_equal(rig_state(&pair.e[0], QP_STATE_RTS), 0);
	one_message(WR_SEND, 5000, 60);
	one_message(WR_WRITE, 100, 61);
}

static void test_recv_fault(void **state)
{
	struct wc wc;

	(void)state;
	rig.h[1].fault_lo = RIG_VA + FAR;
	rig.h[1].fault_hi = RIG_VA + FAR + 1;
	assert_int_equal(rig_post_recv(&pair.e[1], 1, FAR, 100), 0);
	assert_int_equal(rig_post_recv(&pair.e[1], 2, FAR, 100), 0);
	assert_int_equal(rig_post_send(&pair.e[0], wr_of(WR_SEND, 1), 0, 64),
			 0);
	rig_pump(&rig);
	wc = rig_poll(pair.e[1].rcq);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.status, WC_LOC_PROT_ERR);
	wc = rig_poll(pair.e[1].rcq);
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(wc.status, WC_WR_FLUSH_ERR);
	assert_int_equal(qp_state(pair.e[1].qp), QP_STATE_ERR);
}

/* A WQE is complete when its last frame was handed out, not before. */
static void test_completes_when_handed_out(void **state)
{
	static uint8_t buf[3][PKT_MAX + ICRC_BYTES];
	struct tx_frame f[3] = { { .pkt = buf[0] },
				 { .pkt = buf[1] },
				 { .pkt = buf[2] } };
	struct hca *hca = rig.h[0].hca;

	(void)state;
	assert_int_equal(rig_post_send(&pair.e[0], wr_of(WR_WRITE, 1), 0, 2000),
			 0);
	assert_int_equal(rig_post_send(&pair.e[0], wr_of(WR_WRITE, 2), 0, 10),
			 0);
	hca_doorbells(hca, 0);
	for (int i = 0; i < 3; i++)
		assert_true(hca_tx(hca, 1, &f[i], 0));
	assert_true(rig_empty(pair.e[0].scq));
	assert_int_equal(qp_destroy(pair.e[0].qp), -EBUSY);
	assert_int_equal(rig_state(&pair.e[0], QP_STATE_RESET), -EBUSY);
	hca_tx_done(hca, &f[0]);
	assert_true(rig_empty(pair.e[0].scq));
	hca_tx_done(hca, &f[1]);
	assert_int_equal(rig_poll(pair.e[0].scq).wr_id, 1);
	/* To ERR while the last is out: it went out, so it succeeds; a WQE
	 * behind it is flushed after it. */
	assert_int_equal(rig_post_send(&pair.e[0], wr_of(WR_WRITE, 3), 0, 10),
			 0);
	assert_int_equal(rig_state(&pair.e[0], QP_STATE_ERR), 0);
	assert_true(rig_empty(pair.e[0].scq));
	hca_tx_done(hca, &f[2]);
	assert_int_equal(rig_poll(pair.e[0].scq).status, WC_SUCCESS);
	assert_int_equal(rig_poll(pair.e[0].scq).status, WC_WR_FLUSH_ERR);
}

static void test_fields(void **state)
{
	struct rig_frame f;
	struct send_wr wr = wr_of(WR_WRITE_IMM, 1);

	(void)state;
	wr.flags |= WR_SOLICITED | WR_FENCE;
	assert_int_equal(rig_post_send(&pair.e[0], wr, 0, 1500), 0);
	assert_true(rig_tx(&rig.h[0], 1, &f));
	assert_int_equal(f.pkt.bth.opcode,
			 OPCODE(TRANSPORT_UC, OP_WRITE_FIRST));
	assert_int_equal(f.pkt.bth.psn.v, 0xfffffd);
	assert_false(f.pkt.bth.solicited);
	assert_int_equal(f.pkt.bth.pkey, 0xffff);
	assert_int_equal(f.pkt.ext.reth.len_bytes, 1500);
	assert_int_equal(f.tos & 3, ECN_ECT0);
	assert_int_equal(f.path.hop_limit, 64);
	assert_true(rig_tx(&rig.h[0], 1, &f));
	assert_int_equal(f.pkt.bth.opcode,
			 OPCODE(TRANSPORT_UC, OP_WRITE_LAST_IMM));
	assert_true(f.pkt.bth.solicited);
	assert_false(f.pkt.bth.ackreq);
	assert_int_equal(f.pkt.bth.psn.v, 0xfffffe);
	assert_int_equal(f.pkt.ext.immdt, 0x01020304);
	assert_int_equal(f.pkt.payload_bytes, 476);
	assert_false(rig_tx(&rig.h[0], 1, &f));
}

static void test_comm_est(void **state)
{
	(void)state;
	open_with((struct rig_pair_config){ .stop = QP_STATE_RTR });
	for (uint32_t i = 0; i < 2; i++) {
		struct pkt p = packet(OP_SEND_ONLY, i, NULL, 0);

		rig_inject(&rig.h[1], &p);
	}
	assert_int_equal(rig_event(&rig.h[1]).type, ASYNC_COMM_EST);
	assert_true(rig_no_event(&rig.h[1]));
	close_pair(NULL);
}

#define PAIRED(t) cmocka_unit_test_setup_teardown(t, open_pair, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_later_lengths),
		PAIRED(test_order),
		cmocka_unit_test(test_write_access),
		PAIRED(test_write_needs_qp_access),
		PAIRED(test_no_buffer),
		PAIRED(test_send_fault),
		PAIRED(test_recv_fault),
		PAIRED(test_completes_when_handed_out),
		PAIRED(test_fields),
		cmocka_unit_test(test_comm_est),
	};

	return cmocka_run_group_tests_name("uc", tests, NULL, NULL);
}
