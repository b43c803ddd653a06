/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rc_direct_test.c - WRITEs and READs that are copied without packets: only
 * when every earlier request was executed, and without deciding an error.
 */
#include "rc_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define ROFF 0x100000u
#define ALL WR_SIGNALED

static struct rig *rig_direct(uint32_t access)
{
	const struct rig_conf c = { .retry_cnt = 7,
				    .direct = true,
				    .access = access,
				    .direct_bytes = DIRECT_PIECE_BYTES };

	return rig_new(&c);
}

/* Of every length: no packet, the right bytes, a completion if asked for. */
static void write_and_read(void **state)
{
	static const uint32_t lens[] = { 0,    1,      8,      1023,
					 1024, 100000, 262144, 2000000 };
	struct rig *r = rig_direct(0);
	struct wc wc;

	(void)state;
	for (uint32_t i = 0; i < 8; i++) {
		rig_fill(r, 0, 0, lens[i], i);
		assert_int_equal(rig_post(r, 0, WR_WRITE, 0, ROFF, lens[i],
					  i & 1 ? ALL : 0, i),
				 0);
		rig_settle(r);
		assert_true(rig_same(r, 1, ROFF, lens[i], i));
		memset(r->h[0].mem, 0, lens[i]);
		assert_int_equal(
			rig_post(r, 0, WR_READ, 0, ROFF, lens[i], ALL, 100 + i),
			0);
		rig_settle(r);
		assert_true(rig_same(r, 0, 0, lens[i], i));
		if (i & 1)
			rig_expect(r, 0, true, i, WC_SUCCESS);
		assert_true(rig_wc(r, 0, true, &wc));
		assert_int_equal(wc.wr_id, 100 + i);
		assert_int_equal(wc.opcode, WC_RDMA_READ);
		assert_int_equal(wc.byte_len, lens[i]);
	}
	rig_expect_none(r, 0);
	assert_int_equal(r->logged, 0);
	assert_int_equal(rig_counter(r, 0, direct_writes), 8);
	assert_int_equal(rig_counter(r, 0, direct_reads), 8);
	assert_int_equal(rig_counter(r, 0, req_write_msgs), 8);
	assert_int_equal(rig_counter(r, 0, direct_refused), 0);
	assert_int_equal(rig_counter(r, 1, rsp_write_msgs), 0);
	rig_free(r);
}

static void pieces_and_inline(void **state)
{
	struct rig *r = rig_direct(0);
	struct sge sge[3] = { rig_sge(r, 0, 0, 700), rig_sge(r, 0, 5000, 0),
			      rig_sge(r, 0, 700, 300) };
	uint8_t bytes[24] = "not from a region";
	struct sge in = { .addr = (uintptr_t)bytes, .len_bytes = 24 };
	struct send_wr wr = { .sge = sge,
			      .num_sge = 3,
			      .opcode = WR_WRITE,
			      .remote_addr = RIG_IOVA + ROFF,
			      .rkey = mr_key(r->h[1].mr) };

	(void)state;
	rig_fill(r, 0, 0, 1000, 3);
	assert_int_equal(rig_post_wr(r, 0, &wr), 0);
	rig_settle(r);
	assert_true(rig_same(r, 1, ROFF, 1000, 3));
	/* The rig's inline data are read through its memory: post copies. */
	memcpy(r->h[0].mem + 3000, bytes, 24);
	in = rig_sge(r, 0, 3000, 24);
	in.addr = RIG_VA + 3000;
	wr = (struct send_wr){ .sge = &in,
			       .num_sge = 1,
			       .opcode = WR_WRITE,
			       .flags = WR_INLINE,
			       .remote_addr = RIG_IOVA + ROFF,
			       .rkey = mr_key(r->h[1].mr) };
	assert_int_equal(rig_post_wr(r, 0, &wr), 0);
	memset(r->h[0].mem + 3000, 0, 24);
	rig_settle(r);
	assert_memory_equal(r->h[1].mem + ROFF, bytes, 24);
	assert_int_equal(r->logged, 0);
	rig_free(r);
}

/* A message of one packet follows a SEND at once, as a packet; a longer one
 * waits until the SEND was executed. PSNs go on as if nothing was between. */
static void behind_a_send(void **state)
{
	struct rig *r = rig_direct(0);

	(void)state;
	rig_fill(r, 0, 0, 100000, 1);
	assert_int_equal(rig_recv(r, 1, 0, 64, 70), 0);
	assert_int_equal(rig_recv(r, 1, 0, 64, 71), 0);
	assert_int_equal(rig_post(r, 0, WR_SEND, 0, 0, 64, ALL, 1), 0);
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, ROFF, 64, ALL, 2), 0);
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, ROFF, 100000, ALL, 3), 0);
	assert_int_equal(rig_post(r, 0, WR_SEND, 0, 0, 64, ALL, 4), 0);
	rig_run(r, r->now_ns); /* nothing has arrived yet */
	assert_int_equal(r->copies, 0);
	assert_int_equal(r->logged, 2);
	assert_int_equal(rig_count(r, 0, OP_WRITE_ONLY), 1);
	rig_settle(r);
	assert_true(rig_same(r, 1, ROFF, 100000, 1));
	assert_int_equal(rig_counter(r, 0, direct_writes), 1);
	assert_int_equal(rig_count(r, 0, OP_WRITE_FIRST), 0);
	for (uint64_t id = 1; id <= 4; id++)
		rig_expect(r, 0, true, id, WC_SUCCESS);
	rig_expect(r, 1, false, 70, WC_SUCCESS);
	rig_expect(r, 1, false, 71, WC_SUCCESS);
	assert_int_equal(rig_nth_op(r, 0, OP_SEND_ONLY, 1)->pkt.bth.psn.v, 2);
	rig_free(r);
}

/* The receiver is slow: the message behind the SEND waits for it. */
static void behind_rnr(void **state)
{
	const struct rig_conf c = { .retry_cnt = 7,
				    .rnr_retry = 7,
				    .min_rnr_timer = 10,
				    .direct = true };
	struct rig *r = rig_new(&c);

	(void)state;
	rig_fill(r, 0, 0, 5000, 1);
	assert_int_equal(rig_post(r, 0, WR_SEND, 0, 0, 64, ALL, 1), 0);
	assert_int_equal(rig_post(r, 0, WR_READ, 0, ROFF, 5000, ALL, 2), 0);
	rig_run(r, 1000000);
	assert_int_equal(r->copies, 0);
	assert_int_equal(rig_recv(r, 1, 0, 64, 70), 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	rig_expect(r, 0, true, 2, WC_SUCCESS);
	assert_int_equal(r->copies, 1);
	rig_free(r);
}

static void with_immediate(void **state)
{
	struct rig *r = rig_direct(0);

	(void)state;
	rig_fill(r, 0, 0, 3000, 1);
	assert_int_equal(rig_recv(r, 1, 0, 0, 70), 0);
	assert_int_equal(rig_post(r, 0, WR_WRITE_IMM, 0, ROFF, 3000, ALL, 1),
			 0);
	rig_settle(r);
	assert_true(rig_same(r, 1, ROFF, 3000, 1));
	assert_int_equal(r->copies, 0);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	rig_expect(r, 1, false, 70, WC_SUCCESS);
	rig_free(r);
}

/* ---- what may not be copied goes as packets, and the responder judges ---- */

static void expect_refused(struct rig *r, enum wc_status status)
{
	rig_settle(r);
	rig_expect(r, 0, true, 1, status);
	assert_int_equal(r->copies, 0);
	assert_int_equal(rig_counter(r, 0, direct_refused), 1);
	assert_int_equal(rig_counter(r, 0, direct_writes), 0);
	rig_free(r);
}

static void post_write(struct rig *r, uint64_t remote, uint32_t rkey,
		       uint32_t len)
{
	struct sge sge = rig_sge(r, 0, 0, len);
	struct send_wr wr = { .wr_id = 1,
			      .sge = &sge,
			      .num_sge = 1,
			      .opcode = WR_WRITE,
			      .flags = ALL,
			      .remote_addr = remote,
			      .rkey = rkey };

	assert_int_equal(rig_post_wr(r, 0, &wr), 0);
}

static void refused_key(void **state)
{
	struct rig *r = rig_direct(0);

	(void)state;
	post_write(r, RIG_IOVA, mr_key(r->h[1].mr) ^ 1, 64);
	expect_refused(r, WC_REM_ACCESS_ERR);
}

static void refused_bounds(void **state)
{
	struct rig *r = rig_direct(0);

	(void)state;
	post_write(r, RIG_IOVA + RIG_MEM_BYTES - 300000, mr_key(r->h[1].mr),
		   300001);
	expect_refused(r, WC_REM_ACCESS_ERR);
}

static void refused_qp_access(void **state)
{
	struct rig *r = rig_direct(ACCESS_REMOTE_READ);

	(void)state;
	post_write(r, RIG_IOVA, mr_key(r->h[1].mr), 64);
	expect_refused(r, WC_REM_INV_REQ_ERR);
}

static void refused_domain(void **state)
{
	struct rig *r = rig_direct(0);
	struct mr_attr a = { .va = RIG_VA,
			     .iova = RIG_IOVA,
			     .len_bytes = 4096,
			     .access =
				     ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE };
	struct pd *pd;
	struct mr *mr;

	(void)state;
	assert_int_equal(pd_create(r->h[1].hca, &pd), 0);
	assert_int_equal(mr_reg(pd, &a, &mr), 0);
	post_write(r, RIG_IOVA, mr_key(mr), 64);
	rig_settle(r);
	assert_int_equal(mr_dereg(mr), 0);
	assert_int_equal(pd_destroy(pd), 0);
	expect_refused(r, WC_REM_ACCESS_ERR);
}

static void refused_unmapped(void **state)
{
	struct rig *r = rig_direct(0);

	(void)state;
	r->h[1].hole_lo = RIG_VA + 10;
	r->h[1].hole_hi = RIG_VA + 11;
	post_write(r, RIG_IOVA, mr_key(r->h[1].mr), 64);
	expect_refused(r, WC_REM_OP_ERR);
}

static void refused_local_key(void **state)
{
	struct rig *r = rig_direct(0);
	struct sge sge = rig_sge(r, 0, 0, 64);
	struct send_wr wr = { .wr_id = 1,
			      .sge = &sge,
			      .num_sge = 1,
			      .opcode = WR_READ,
			      .flags = ALL,
			      .remote_addr = RIG_IOVA,
			      .rkey = mr_key(r->h[1].mr) };

	(void)state;
	sge.lkey ^= 1;
	assert_int_equal(rig_post_wr(r, 0, &wr), 0);
	expect_refused(r, WC_LOC_PROT_ERR);
}

/* The peer's QP is in the error state: silence, as from any such peer. */
static void refused_dead_peer(void **state)
{
	const struct rig_conf c = { .retry_cnt = 1, .direct = true };
	struct rig *r = rig_new(&c);
	struct qp_attr a = { .state = QP_STATE_ERR };

	(void)state;
	assert_int_equal(qp_modify(r->h[1].qp, &a, QP_ATTR_STATE, 0), 0);
	post_write(r, RIG_IOVA, mr_key(r->h[1].mr), 64);
	expect_refused(r, WC_RETRY_EXC_ERR);
}

/* Refused for now, and later not: the message goes as packets, the next one is
 * copied. */
static void refused_for_now(void **state)
{
	struct rig *r = rig_direct(0);

	(void)state;
	r->refuse_direct = true;
	rig_fill(r, 0, 0, 300000, 5);
	post_write(r, RIG_IOVA + ROFF, mr_key(r->h[1].mr), 300000);
	rig_settle(r);
	assert_true(rig_same(r, 1, ROFF, 300000, 5));
	assert_true(r->logged > 0);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	r->refuse_direct = false;
	rig_forget(r);
	rig_fill(r, 0, 0, 300000, 6);
	post_write(r, RIG_IOVA + ROFF, mr_key(r->h[1].mr), 300000);
	rig_settle(r);
	assert_true(rig_same(r, 1, ROFF, 300000, 6));
	assert_int_equal(r->logged, 0);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	rig_free(r);
}

/* ---- a large message, one budget at a time ---- */

/* One call copies a piece; the rest is still to be done. */
static void one_call(struct rig *r)
{
	static uint8_t buf[PKT_MAX + ICRC_BYTES];
	struct tx_frame t = { .pkt = buf };

	hca_doorbells(r->h[0].hca, r->now_ns);
	assert_false(hca_tx(r->h[0].hca, 0xffff, &t, r->now_ns));
}

static void takes_turns(void **state)
{
	struct rig *r = rig_direct(0);
	struct qp *two[2];
	struct sge sge;
	struct send_wr wr = { .wr_id = 9,
			      .sge = &sge,
			      .num_sge = 1,
			      .opcode = WR_WRITE,
			      .flags = ALL,
			      .remote_addr = RIG_IOVA + ROFF,
			      .rkey = mr_key(r->h[1].mr) };
	struct wc wc;

	(void)state;
	rig_pair(r, two);
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, ROFF, 1000000, ALL, 1), 0);
	one_call(r);
	assert_int_equal(r->copies, 1);
	assert_true(hca_tx_paused(r->h[0].hca));
	sge = rig_sge(r, 0, 0, 100);
	assert_int_equal(qp_post_send(two[0], &wr), 0);
	qp_ring(two[0]);
	one_call(r);
	one_call(r);
	assert_true(rig_wc(r, 0, true, &wc)); /* the small one is not behind */
	assert_int_equal(wc.wr_id, 9);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	assert_false(hca_tx_paused(r->h[0].hca));
	assert_int_equal(qp_destroy(two[0]), 0);
	assert_int_equal(qp_destroy(two[1]), 0);
	rig_free(r);
}

/* SQD: what was begun ends, and only then the queue is drained. */
static void drains(void **state)
{
	struct rig *r = rig_direct(0);
	struct qp_attr a = { .state = QP_STATE_SQD,
			     .en_sqd_async_notify = true };

	(void)state;
	rig_fill(r, 0, 0, 1000000, 4);
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, ROFF, 1000000, ALL, 1), 0);
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, ROFF, 1000000, ALL, 2), 0);
	one_call(r);
	assert_int_equal(qp_modify(r->h[0].qp, &a,
				   QP_ATTR_STATE | QP_ATTR_EN_SQD_ASYNC_NOTIFY,
				   r->now_ns),
			 0);
	assert_false(rig_async(r, 0, ASYNC_SQ_DRAINED));
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	rig_expect_none(r, 0);
	assert_true(rig_async(r, 0, ASYNC_SQ_DRAINED));
	assert_true(rig_same(r, 1, ROFF, 1000000, 4));
	assert_int_equal(r->copies, 4);
	a.state = QP_STATE_RTS;
	assert_int_equal(qp_modify(r->h[0].qp, &a, QP_ATTR_STATE, r->now_ns),
			 0);
	rig_settle(r);
	rig_expect(r, 0, true, 2, WC_SUCCESS);
	rig_free(r);
}

static void fails_in_the_middle(void **state)
{
	struct rig *r = rig_direct(0);
	struct qp_attr a = { .state = QP_STATE_ERR };

	(void)state;
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, ROFF, 1000000, ALL, 1), 0);
	assert_int_equal(rig_post(r, 0, WR_READ, 0, ROFF, 1000000, ALL, 2), 0);
	one_call(r);
	assert_int_equal(qp_modify(r->h[0].qp, &a, QP_ATTR_STATE, r->now_ns),
			 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_WR_FLUSH_ERR);
	rig_expect(r, 0, true, 2, WC_WR_FLUSH_ERR);
	assert_int_equal(r->copies, 1);
	assert_int_equal(r->logged, 0);
	rig_free(r);
}

/* The peer closes in the middle: packets for all of it. */
static void shut_in_the_middle(void **state)
{
	struct rig *r = rig_direct(0);

	(void)state;
	rig_fill(r, 0, 0, 1000000, 4);
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, ROFF, 1000000, ALL, 1), 0);
	one_call(r);
	r->refuse_direct = true;
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	assert_true(rig_same(r, 1, ROFF, 1000000, 4));
	assert_int_equal(rig_counter(r, 1, rsp_msg_bytes), 1000000);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_and_read),
		cmocka_unit_test(pieces_and_inline),
		cmocka_unit_test(behind_a_send),
		cmocka_unit_test(behind_rnr),
		cmocka_unit_test(with_immediate),
		cmocka_unit_test(refused_key),
		cmocka_unit_test(refused_bounds),
		cmocka_unit_test(refused_qp_access),
		cmocka_unit_test(refused_domain),
		cmocka_unit_test(refused_unmapped),
		cmocka_unit_test(refused_local_key),
		cmocka_unit_test(refused_dead_peer),
		cmocka_unit_test(refused_for_now),
		cmocka_unit_test(takes_turns),
		cmocka_unit_test(drains),
		cmocka_unit_test(fails_in_the_middle),
		cmocka_unit_test(shut_in_the_middle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
