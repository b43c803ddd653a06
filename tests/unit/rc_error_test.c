/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_error_test.c - how RC work ends in errors, at both ends of a connection
 * [IBA 9.9.2, 9.9.3, 10.3.1.7, 11.6.2]. */
#include "rc_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define ROFF 0x100000u
#define MTU 1024u

/* One bad request between two good ones: what the requester is told and how
 * the responder's receive ends, and both QPs are in error (B047). Within one
 * timeout, B007. */
struct wrong {
	enum wr_opcode op;
	uint32_t len;
	uint64_t raddr; /* from RIG_IOVA */
	uint32_t rkey;	/* 0: the right one */
	enum wc_status status, recv;
	enum async_type event; /* at the responder; COMM_EST: none */
};

static const struct wrong wrongs[] = {
	{ WR_WRITE, 8, 0, 0xdeadbeef, WC_REM_ACCESS_ERR, WC_WR_FLUSH_ERR,
	  ASYNC_QP_ACCESS_ERR },
	{ WR_WRITE, 8, RIG_MEM_BYTES - 7, 0, WC_REM_ACCESS_ERR, WC_WR_FLUSH_ERR,
	  ASYNC_QP_ACCESS_ERR },
	{ WR_WRITE_IMM, 3000, 0, 1, WC_REM_ACCESS_ERR, WC_WR_FLUSH_ERR,
	  ASYNC_QP_ACCESS_ERR },
	{ WR_READ, 3000, RIG_MEM_BYTES, 0, WC_REM_ACCESS_ERR, WC_WR_FLUSH_ERR,
	  ASYNC_QP_ACCESS_ERR },
	{ WR_FETCH_ADD, 8, 4, 0, WC_REM_INV_REQ_ERR, WC_WR_FLUSH_ERR,
	  ASYNC_QP_REQ_ERR }, /* B040 */
	{ WR_CMP_SWAP, 8, 0, 2, WC_REM_ACCESS_ERR, WC_WR_FLUSH_ERR,
	  ASYNC_QP_ACCESS_ERR },
	{ WR_SEND, 4096, 0, 0, WC_REM_INV_REQ_ERR, WC_LOC_LEN_ERR,
	  ASYNC_COMM_EST }, /* B041 */
	{ WR_SEND_IMM, 1025, 0, 0, WC_REM_INV_REQ_ERR, WC_LOC_LEN_ERR,
	  ASYNC_COMM_EST },
};

static void post_wrong(struct rig *r, const struct wrong *w, uint64_t wr_id)
{
	struct sge sge = rig_sge(r, 0, 0, w->len);
	struct send_wr wr = { .wr_id = wr_id,
			      .sge = &sge,
			      .num_sge = 1,
			      .opcode = w->op,
			      .remote_addr = RIG_IOVA + w->raddr,
			      .rkey = w->rkey ? w->rkey : mr_key(r->h[1].mr) };

	assert_int_equal(rig_post_wr(r, 0, &wr), 0);
}

static void wrong_requests(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(wrongs); i++) {
		const struct wrong *w = &wrongs[i];
		struct rig_conf c = { .retry_cnt = 0, .timeout = 14 };
		struct rig *r = rig_new(&c);

		assert_int_equal(rig_recv(r, 1, 0, 1024, 50), 0);
		assert_int_equal(rig_recv(r, 1, 0, 1024, 51), 0);
		assert_int_equal(
			rig_post(r, 0, WR_WRITE, 0, ROFF, 5000, WR_SIGNALED, 0),
			0);
		post_wrong(r, w, 1);
		assert_int_equal(rig_post(r, 0, WR_WRITE, 0, ROFF, 5000, 0, 2),
				 0);
		rig_settle(r);
		rig_expect(r, 0, true, 0, WC_SUCCESS);
		rig_expect(r, 0, true, 1, w->status);
		rig_expect(r, 0, true, 2, WC_WR_FLUSH_ERR);
		rig_expect(r, 1, false, 50, w->recv);
		rig_expect(r, 1, false, 51, WC_WR_FLUSH_ERR);
		assert_int_equal(qp_state(r->h[0].qp), QP_STATE_ERR);
		assert_int_equal(qp_state(r->h[1].qp), QP_STATE_ERR);
		if (w->event != ASYNC_COMM_EST)
			assert_true(rig_async(r, 1, w->event));
		else
			assert_int_equal(r->h[1].async_seen, 0);
		assert_int_equal(rig_counter(r, 0, req_timeouts), 0);
		rig_free(r);
	}
}

/* B028, B029: a QP in ERR takes work and flushes it, for ever. */
static void flush_for_ever(void **state)
{
	struct rig *r = rig_new(NULL);
	uint64_t i;

	(void)state;
	post_wrong(r, &wrongs[0], 0);
	rig_settle(r);
	rig_expect(r, 0, true, 0, WC_REM_ACCESS_ERR);
	for (i = 1; i < 100; i++) {
		post_wrong(r, &wrongs[i % ARRAY_SIZE(wrongs)], i);
		assert_int_equal(rig_recv(r, 0, 0, 64, i), 0);
		qp_ring(r->h[0].qp);
		rig_settle(r);
		rig_expect(r, 0, true, i, WC_WR_FLUSH_ERR);
		rig_expect(r, 0, false, i, WC_WR_FLUSH_ERR);
	}
	rig_expect_none(r, 0);
	rig_free(r);
}

static void post_bad_lkey(struct rig *r, enum wr_opcode op, uint64_t wr_id)
{
	struct sge sge = { .addr = RIG_IOVA, .len_bytes = 64, .lkey = 3 };
	struct send_wr wr = { .wr_id = wr_id,
			      .sge = &sge,
			      .num_sge = 1,
			      .opcode = op,
			      .remote_addr = RIG_IOVA + ROFF,
			      .rkey = mr_key(r->h[1].mr) };

	assert_int_equal(rig_post_wr(r, 0, &wr), 0);
}

/* A local error waits until everything before it is complete. */
static void local_error_in_order(void **state)
{
	struct rig *r = rig_new(NULL);
	uint32_t i;

	(void)state;
	for (i = 0; i < 3; i++)
		assert_int_equal(rig_post(r, 0, i ? WR_WRITE : WR_READ, 0, ROFF,
					  5000, WR_SIGNALED, i),
				 0);
	post_bad_lkey(r, WR_SEND, 3);
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, ROFF, 8, 0, 4), 0);
	rig_run(r, r->now_ns);
	rig_expect_none(r, 0); /* nothing was answered yet */
	rig_settle(r);
	for (i = 0; i < 3; i++)
		rig_expect(r, 0, true, i, WC_SUCCESS);
	rig_expect(r, 0, true, 3, WC_LOC_PROT_ERR);
	rig_expect(r, 0, true, 4, WC_WR_FLUSH_ERR);
	assert_int_equal(rig_count(r, 0, OP_SEND_ONLY), 0);
	assert_int_equal(rig_counter(r, 0, local_errors), 1);
	rig_free(r);
}

/* The same while an earlier request is lost and sent again. */
static struct rig_fate lose_first(struct rig *r, int from, const struct pkt *p,
				  void *arg)
{
	struct rig_fate f = { .copies = 1 };

	(void)r;
	(void)p;
	if (from == 0 && (*(int *)arg)++ == 0)
		f.copies = 0;
	return f;
}

static void local_error_behind_a_loss(void **state)
{
	struct rig_conf c = { .retry_cnt = 1, .timeout = 8 };
	struct rig *r = rig_new(&c);
	int seen = 0;

	(void)state;
	r->fate = lose_first;
	r->fate_arg = &seen;
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, ROFF, 8, WR_SIGNALED, 1),
			 0);
	post_bad_lkey(r, WR_WRITE, 2);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	rig_expect(r, 0, true, 2, WC_LOC_PROT_ERR);
	assert_int_equal(rig_counter(r, 0, req_timeouts), 1);
	rig_free(r);
}

/* Memory that goes away under a long message: the packets before it went. */
static void hole_in_the_source(void **state)
{
	struct rig *r = rig_new(NULL);

	(void)state;
	r->h[0].hole_lo = RIG_VA + 3 * MTU + 5;
	r->h[0].hole_hi = r->h[0].hole_lo + 1;
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, ROFF, 8 * MTU, 0, 1), 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_LOC_PROT_ERR);
	assert_int_equal(rig_count(r, 0, OP_WRITE_FIRST), 1);
	assert_int_equal(rig_count(r, 0, OP_WRITE_MIDDLE), 2);
	assert_int_equal(qp_state(r->h[0].qp), QP_STATE_ERR);
	rig_free(r);
}

/* READ data or an atomic's value that cannot be stored. */
static void nowhere_to_put_the_answer(void **state)
{
	static const enum wr_opcode ops[] = { WR_READ, WR_FETCH_ADD };
	uint32_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct rig *r = rig_new(NULL);

		r->h[0].hole_lo = RIG_VA;
		r->h[0].hole_hi = RIG_VA + 64;
		assert_int_equal(rig_post(r, 0, ops[i], 0, ROFF, 8, 0, 1), 0);
		assert_int_equal(rig_post(r, 0, WR_SEND, 0, 0, 0, 0, 2), 0);
		rig_settle(r);
		rig_expect(r, 0, true, 1, WC_LOC_PROT_ERR);
		rig_expect(r, 0, true, 2, WC_WR_FLUSH_ERR);
		rig_free(r);
	}
}

/* B011: the region goes away after 2 of 8 READ responses. */
static struct rig_fate dereg_at_third(struct rig *r, int from,
				      const struct pkt *p, void *arg)
{
	struct rig_fate f = { .copies = 1 };

	(void)arg;
	if (from == 1 && p->info->flags & OPCODE_READ && p->bth.psn.v == 1 &&
	    r->h[1].mr) {
		assert_int_equal(mr_dereg(r->h[1].mr), 0);
		r->h[1].mr = NULL;
	}
	return f;
}

static void region_gone_in_mid_read(void **state)
{
	struct rig_conf c = { .retry_cnt = 7 };
	struct rig *r = rig_new(&c);

	(void)state;
	r->fate = dereg_at_third;
	assert_int_equal(rig_post(r, 0, WR_READ, 0, ROFF, 8 * MTU, 0, 1), 0);
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, ROFF, 0, 0, 2), 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_REM_ACCESS_ERR);
	rig_expect(r, 0, true, 2, WC_WR_FLUSH_ERR);
	assert_int_equal(rig_count(r, 0, OP_READ_REQUEST), 1);
	assert_true(r->now_ns < INT64_C(1000000));
	assert_int_equal(qp_state(r->h[1].qp), QP_STATE_ERR);
	assert_true(rig_async(r, 1, ASYNC_QP_ACCESS_ERR));
	rig_free(r);
}

static void hole_in_mid_read(void **state)
{
	struct rig *r = rig_new(NULL);

	(void)state;
	r->h[1].hole_lo = RIG_VA + ROFF + 5 * MTU;
	r->h[1].hole_hi = r->h[1].hole_lo + 8;
	assert_int_equal(rig_post(r, 0, WR_READ, 0, ROFF, 8 * MTU, 0, 1), 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_REM_OP_ERR);
	rig_free(r);
}

/* A refused request behind a READ: the READ is answered first. */
static void nak_waits_for_read_responses(void **state)
{
	struct rig_conf c = { .retry_cnt = 0 };
	struct rig *r = rig_new(&c);

	(void)state;
	rig_fill(r, 1, ROFF, 30000, 2);
	assert_int_equal(
		rig_post(r, 0, WR_READ, 0, ROFF, 30000, WR_SIGNALED, 0), 0);
	post_wrong(r, &wrongs[0], 1);
	rig_settle(r);
	rig_expect(r, 0, true, 0, WC_SUCCESS);
	rig_expect(r, 0, true, 1, WC_REM_ACCESS_ERR);
	assert_true(rig_same(r, 0, 0, 30000, 2));
	rig_free(r);
}

/* A QP that leaves for ERR or RESET in the middle of everything leaves no
 * timer, no frame and no budget behind; RESET starts a new life. */
static void leave_in_the_middle(void **state)
{
	static const enum qp_state to[] = { QP_STATE_ERR, QP_STATE_RESET };
	uint32_t i, step;

	(void)state;
	for (i = 0; i < 2; i++) {
		for (step = 0; step < 12; step++) {
			struct rig_conf c = { .dest_budget = 9000,
					      .read_budget = 9000,
					      .retry_cnt = 7 };
			struct rig *r = rig_new(&c);
			struct qp_attr a = { .state = to[i] };

			assert_int_equal(
				rig_post(r, 0, WR_WRITE, 0, ROFF, 20000, 0, 1),
				0);
			assert_int_equal(
				rig_post(r, 0, WR_READ, 0, ROFF, 20000, 0, 2),
				0);
			rig_run(r, step * RIG_HOP_NS);
			assert_int_equal(qp_modify(r->h[0].qp, &a,
						   QP_ATTR_STATE, r->now_ns),
					 0);
			rig_settle(r);
			assert_int_equal(hca_deadline(r->h[0].hca), INT64_MAX);
			if (to[i] == QP_STATE_ERR) {
				rig_expect(r, 0, true, 1, WC_WR_FLUSH_ERR);
				rig_expect(r, 0, true, 2, WC_WR_FLUSH_ERR);
			}
			rig_expect_none(r, 0);
			rig_free(r);
		}
	}
}

/* SQD: what was begun completes, nothing is begun, the event comes once; RTS
 * goes on [IBA 10.3.1.5]. */
static void drain(void **state)
{
	struct rig *r = rig_new(NULL);
	struct qp_attr a = { .state = QP_STATE_SQD,
			     .en_sqd_async_notify = true };

	(void)state;
	assert_int_equal(
		rig_post(r, 0, WR_WRITE, 0, ROFF, 20000, WR_SIGNALED, 1), 0);
	rig_run(r, 10);
	assert_int_equal(qp_modify(r->h[0].qp, &a,
				   QP_ATTR_STATE | QP_ATTR_EN_SQD_ASYNC_NOTIFY,
				   r->now_ns),
			 0);
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, ROFF, 8, WR_SIGNALED, 2),
			 0);
	assert_false(rig_async(r, 0, ASYNC_SQ_DRAINED));
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	rig_expect_none(r, 0);
	assert_true(rig_async(r, 0, ASYNC_SQ_DRAINED));
	a.state = QP_STATE_RTS;
	assert_int_equal(qp_modify(r->h[0].qp, &a, QP_ATTR_STATE, r->now_ns),
			 0);
	rig_settle(r);
	rig_expect(r, 0, true, 2, WC_SUCCESS);
	rig_free(r);
}

/* Both ends die of each other at once. */
static void both_fail(void **state)
{
	struct rig *r = rig_new(NULL);
	struct sge sge[2] = { rig_sge(r, 0, 0, 8), rig_sge(r, 1, 0, 8) };
	int h;

	(void)state;
	for (h = 0; h < 2; h++) {
		struct send_wr wr = { .wr_id = 1,
				      .sge = &sge[h],
				      .num_sge = 1,
				      .opcode = WR_WRITE,
				      .remote_addr = RIG_IOVA,
				      .rkey = 9 };

		assert_int_equal(rig_post_wr(r, h, &wr), 0);
	}
	rig_settle(r);
	for (h = 0; h < 2; h++) {
		struct wc wc;

		assert_true(rig_wc(r, h, true, &wc));
		assert_true(wc.status == WC_WR_FLUSH_ERR ||
			    wc.status == WC_REM_ACCESS_ERR);
		assert_int_equal(qp_state(r->h[h].qp), QP_STATE_ERR);
	}
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_requests),
		cmocka_unit_test(flush_for_ever),
		cmocka_unit_test(local_error_in_order),
		cmocka_unit_test(local_error_behind_a_loss),
		cmocka_unit_test(hole_in_the_source),
		cmocka_unit_test(nowhere_to_put_the_answer),
		cmocka_unit_test(region_gone_in_mid_read),
		cmocka_unit_test(hole_in_mid_read),
		cmocka_unit_test(nak_waits_for_read_responses),
		cmocka_unit_test(leave_in_the_middle),
		cmocka_unit_test(drain),
		cmocka_unit_test(both_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
