/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_retry_test.c - loss, NAKs, RNR and timeouts seen from the requester
 * [IBA 9.7.5.1, 9.7.5.2.8, 9.7.6]. */
#include "rc_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define ROFF 0x100000u
#define US INT64_C(1000)
#define MS INT64_C(1000000)

/* Loses the frames of one direction that a table of (opcode, nth) names. */
struct loss {
	int from;
	enum op op;
	uint32_t nth; /* of that opcode, from 0 */
	uint32_t seen;
	int copies; /* what becomes of it */
};

struct losses {
	struct loss *l;
	uint32_t n;
};

static struct rig_fate lose(struct rig *r, int from, const struct pkt *p,
			    void *arg)
{
	struct losses *ls = arg;
	struct rig_fate f = { .copies = 1 };
	uint32_t i;

	(void)r;
	for (i = 0; i < ls->n; i++) {
		struct loss *l = &ls->l[i];

		if (l->from == from && l->op == opcode_op(p->bth.opcode) &&
		    l->seen++ == l->nth)
			f.copies = l->copies;
	}
	return f;
}

static struct rig_fate blackhole(struct rig *r, int from, const struct pkt *p,
				 void *arg)
{
	struct rig_fate f = { .copies = from == *(int *)arg ? 0 : 1 };

	(void)r;
	(void)p;
	return f;
}

#define LOSE(r, array)                                                         \
	struct losses array##_set = { array, ARRAY_SIZE(array) };              \
	(r)->fate = lose;                                                      \
	(r)->fate_arg = &array##_set

/* B017: the originals and retry_cnt more of the first, each after the nominal
 * timeout at least and four times that at most; then 12, and the rest is
 * flushed. */
static void retry_exhaustion(void **state)
{
	static const struct {
		uint8_t timeout, retry;
	} cases[] = { { 8, 2 }, { 1, 0 }, { 10, 7 }, { 14, 3 }, { 20, 1 } };
	uint32_t i, k;
	int dead = 0;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig_conf c = { .timeout = cases[i].timeout,
				      .retry_cnt = cases[i].retry };
		struct rig *r = rig_new(&c);
		int64_t nominal = INT64_C(4096) << cases[i].timeout;

		r->fate = blackhole;
		r->fate_arg = &dead;
		for (k = 0; k < 3; k++)
			assert_int_equal(
				rig_post(r, 0, WR_WRITE, 0, ROFF, 10, 0, k), 0);
		rig_settle(r);
		rig_expect(r, 0, true, 0, WC_RETRY_EXC_ERR);
		rig_expect(r, 0, true, 1, WC_WR_FLUSH_ERR);
		rig_expect(r, 0, true, 2, WC_WR_FLUSH_ERR);
		assert_int_equal(rig_count(r, 0, OP_WRITE_ONLY),
				 3 + cases[i].retry);
		assert_true(r->now_ns >= nominal * (cases[i].retry + 1));
		assert_true(r->now_ns <= 4 * nominal * (cases[i].retry + 1));
		for (k = 1; k <= cases[i].retry; k++)
			assert_true(rig_nth(r, 0, k + 2)->at_ns -
					    rig_nth(r, 0, k + 1)->at_ns >=
				    nominal);
		assert_int_equal(qp_state(r->h[0].qp), QP_STATE_ERR);
		rig_free(r);
	}
}

/* Progress fills the retry counter again. */
static void progress_resets_retries(void **state)
{
	struct rig_conf c = { .timeout = 8, .retry_cnt = 1 };
	struct rig *r = rig_new(&c);
	struct loss l[] = { { 0, OP_WRITE_ONLY, 0, 0, 0 },
			    { 0, OP_WRITE_ONLY, 2, 0, 0 },
			    { 0, OP_WRITE_ONLY, 4, 0, 0 } };
	uint64_t i;
	LOSE(r, l);

	(void)state;
	for (i = 0; i < 3; i++) {
		assert_int_equal(
			rig_post(r, 0, WR_WRITE, 0, ROFF, 10, WR_SIGNALED, i),
			0);
		rig_settle(r);
		rig_expect(r, 0, true, i, WC_SUCCESS);
	}
	assert_int_equal(rig_counter(r, 0, req_timeouts), 3);
	rig_free(r);
}

/* timeout 0: waits for ever, no timer. */
static void infinite_timeout(void **state)
{
	struct rig_conf c = { .timeout = 255, .retry_cnt = 1 };
	struct rig *r = rig_new(&c);
	int dead = 0;

	(void)state;
	r->fate = blackhole;
	r->fate_arg = &dead;
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, ROFF, 10, 0, 1), 0);
	rig_run(r, 3600 * 1000 * MS);
	rig_expect_none(r, 0);
	assert_int_equal(hca_deadline(r->h[0].hca), INT64_MAX);
	assert_int_equal(rig_count(r, 0, OP_WRITE_ONLY), 1);
	rig_free(r);
}

/* B001, B004: each of the 32 codes; the transport timer, shorter, does not cut
 * the wait; rnr_retry + 1 transmissions, then 13. */
static void rnr_wait_all_codes(void **state)
{
	uint32_t code, i;

	(void)state;
	for (code = 0; code < 32; code++) {
		struct rig_conf c = { .timeout = 1,
				      .retry_cnt = 0,
				      .rnr_retry = 3,
				      .min_rnr_timer = (uint8_t)code };
		struct rig *r = rig_new(&c);
		int64_t wait = rnr_timer_ns((uint8_t)code);

		assert_int_equal(rig_post(r, 0, WR_SEND, 0, 0, 10, 0, 1), 0);
		assert_int_equal(rig_post(r, 0, WR_SEND, 0, 0, 10, 0, 2), 0);
		rig_settle(r);
		rig_expect(r, 0, true, 1, WC_RNR_RETRY_EXC_ERR);
		rig_expect(r, 0, true, 2, WC_WR_FLUSH_ERR);
		/* the second SEND goes out with the first, and is dropped */
		assert_int_equal(rig_count(r, 0, OP_SEND_ONLY), 8);
		assert_int_equal(rig_counter(r, 1, rsp_rnr_naks), 4);
		assert_int_equal(rig_counter(r, 1, rx_drop_rnr_wait), 4);
		assert_int_equal(rig_counter(r, 0, req_timeouts), 0);
		for (i = 1; i < 4; i++) {
			int64_t d = rig_nth(r, 0, 2 * i)->at_ns -
				    (rig_nth(r, 0, 2 * i - 2)->at_ns +
				     2 * RIG_HOP_NS);
			assert_true(d >= wait);
			assert_true(d <= wait + wait / 4 + 10 * US);
		}
		rig_free(r);
	}
}

/* B002: a receive posted inside the wait makes the retry succeed, and not
 * before the wait is over. */
static void rnr_then_receive(void **state)
{
	struct rig_conf c = { .rnr_retry = 1,
			      .retry_cnt = 1,
			      .min_rnr_timer = 14 };
	struct rig *r = rig_new(&c);
	int64_t wait = rnr_timer_ns(14);

	(void)state;
	rig_fill(r, 0, 0, 3000, 2);
	assert_int_equal(rig_post(r, 0, WR_SEND, 0, 0, 3000, WR_SIGNALED, 1),
			 0);
	rig_run(r, 500 * US);
	assert_int_equal(rig_recv(r, 1, ROFF, 3000, 2), 0);
	rig_run(r, wait - 1);
	rig_expect_none(r, 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	rig_expect(r, 1, false, 2, WC_SUCCESS);
	assert_true(r->now_ns >= wait && r->now_ns < 2 * wait);
	assert_true(rig_same(r, 1, ROFF, 3000, 2));
	rig_free(r);
}

/* 7 is for ever; B019: a plain WRITE never gets one. */
static void rnr_infinite_and_write(void **state)
{
	struct rig_conf c = { .rnr_retry = 7,
			      .retry_cnt = 1,
			      .min_rnr_timer = 1 };
	struct rig *r = rig_new(&c);

	(void)state;
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, ROFF, 10, WR_SIGNALED, 1),
			 0);
	assert_int_equal(
		rig_post(r, 0, WR_WRITE_IMM, 0, ROFF, 3000, WR_SIGNALED, 2), 0);
	rig_run(r, 20 * MS);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	rig_expect_none(r, 0);
	assert_true(rig_counter(r, 0, req_rnr_naks) > 100);
	/* The message resumes at its last packet. */
	assert_int_equal(rig_count(r, 0, OP_WRITE_FIRST), 1);
	assert_int_equal(rig_recv(r, 1, 0, 0, 3), 0);
	rig_settle(r);
	rig_expect(r, 0, true, 2, WC_SUCCESS);
	rig_expect(r, 1, false, 3, WC_SUCCESS);
	/* and one of a single packet at that */
	assert_int_equal(
		rig_post(r, 0, WR_WRITE_IMM, 0, ROFF, 30, WR_SIGNALED, 4), 0);
	rig_run(r, r->now_ns + MS);
	rig_expect_none(r, 0);
	assert_int_equal(rig_recv(r, 1, 0, 0, 5), 0);
	rig_settle(r);
	rig_expect(r, 0, true, 4, WC_SUCCESS);
	rig_expect(r, 1, false, 5, WC_SUCCESS);
	rig_free(r);
}

/* A lost packet in the middle: one NAK, the message resumes with MIDDLE. */
static void sequence_nak(void **state)
{
	struct rig_conf c = { .retry_cnt = 1 };
	struct rig *r = rig_new(&c);
	struct loss l[] = { { 0, OP_WRITE_MIDDLE, 3, 0, 0 } };
	uint32_t i;
	LOSE(r, l);

	(void)state;
	rig_fill(r, 0, 0, 10 * 1024, 6);
	assert_int_equal(
		rig_post(r, 0, WR_WRITE, 0, ROFF, 10 * 1024, WR_SIGNALED, 1),
		0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	assert_true(rig_same(r, 1, ROFF, 10 * 1024, 6));
	assert_int_equal(rig_counter(r, 1, rsp_seq_naks), 1);
	assert_int_equal(rig_counter(r, 1, rx_drop_out_of_seq), 4);
	assert_int_equal(rig_counter(r, 0, req_seq_naks), 1);
	assert_int_equal(rig_counter(r, 0, req_timeouts), 0);
	assert_int_equal(rig_counter(r, 0, req_retransmits), 6);
	assert_int_equal(rig_count(r, 0, OP_WRITE_FIRST), 1);
	for (i = 0; i < 6; i++)
		assert_int_equal(rig_nth(r, 0, 10 + i)->pkt.bth.psn.v, 4 + i);
	rig_free(r);
}

static void last_packet_lost(void **state)
{
	struct rig_conf c = { .retry_cnt = 1, .timeout = 10 };
	struct rig *r = rig_new(&c);
	struct loss l[] = { { 0, OP_SEND_LAST, 0, 0, 0 } };
	LOSE(r, l);

	(void)state;
	assert_int_equal(rig_recv(r, 1, ROFF, 5000, 2), 0);
	assert_int_equal(rig_post(r, 0, WR_SEND, 0, 0, 5000, WR_SIGNALED, 1),
			 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	rig_expect(r, 1, false, 2, WC_SUCCESS);
	assert_int_equal(rig_counter(r, 0, req_timeouts), 1);
	rig_free(r);
}

/* Lost ACK: duplicates are acknowledged, not carried out; B014. */
static void ack_lost(void **state)
{
	struct rig_conf c = { .retry_cnt = 1, .timeout = 10 };
	uint32_t len;

	(void)state;
	for (len = 0; len < 3000; len += 2999) {
		struct rig *r = rig_new(&c);
		struct loss l[] = { { 1, OP_ACK, 0, 0, 0 } };
		LOSE(r, l);

		assert_int_equal(rig_recv(r, 1, ROFF, 5000, 2), 0);
		assert_int_equal(
			rig_post(r, 0, WR_SEND, 0, 0, len, WR_SIGNALED, 1), 0);
		rig_settle(r);
		rig_expect(r, 0, true, 1, WC_SUCCESS);
		rig_expect(r, 1, false, 2, WC_SUCCESS);
		rig_expect_none(r, 1);
		assert_int_equal(rig_counter(r, 1, rsp_duplicates),
				 len ? 3 : 1);
		assert_int_equal(rig_counter(r, 1, rsp_send_msgs), 1);
		rig_free(r);
	}
}

/* B005: the answer to an atomic is lost; the value is the original one and
 * memory changed once. */
static void atomic_answer_lost(void **state)
{
	struct rig_conf c = { .retry_cnt = 3, .timeout = 10 };
	struct rig *r = rig_new(&c);
	struct loss l[] = { { 1, OP_ATOMIC_ACK, 0, 0, 0 },
			    { 1, OP_ATOMIC_ACK, 1, 0, 0 } };
	uint64_t five = 5, v;
	struct sge sge = rig_sge(r, 0, 0, 8);
	struct send_wr wr = { .wr_id = 1,
			      .sge = &sge,
			      .num_sge = 1,
			      .opcode = WR_FETCH_ADD,
			      .flags = WR_SIGNALED,
			      .remote_addr = RIG_IOVA,
			      .rkey = mr_key(r->h[1].mr),
			      .compare_add = 1 };
	LOSE(r, l);

	(void)state;
	memcpy(r->h[1].mem, &five, 8);
	assert_int_equal(rig_post_wr(r, 0, &wr), 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	memcpy(&v, r->h[0].mem, 8);
	assert_int_equal(v, 5);
	memcpy(&v, r->h[1].mem, 8);
	assert_int_equal(v, 6);
	assert_int_equal(rig_counter(r, 1, rsp_atomic_replays), 2);
	rig_free(r);
}

/* B008: response 5 of 16 is lost, a WRITE on each side. The later WRITE's ACK
 * does not complete the READ; the retry starts at the missing packet, with
 * address and length moved on. */
static void read_response_lost(void **state)
{
	struct rig_conf c = { .retry_cnt = 2 };
	struct rig *r = rig_new(&c);
	struct loss l[] = { { 1, OP_READ_RESP_MIDDLE, 4, 0, 0 } };
	const struct pkt *p;
	uint64_t i;
	LOSE(r, l);

	(void)state;
	rig_fill(r, 1, ROFF, 16384, 3);
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, 0, 3, WR_SIGNALED, 0), 0);
	assert_int_equal(
		rig_post(r, 0, WR_READ, 4096, ROFF, 16384, WR_SIGNALED, 1), 0);
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, 0, 3, WR_SIGNALED, 2), 0);
	rig_settle(r);
	for (i = 0; i < 3; i++)
		rig_expect(r, 0, true, i, WC_SUCCESS);
	assert_true(rig_same(r, 0, 4096, 16384, 3));
	p = &rig_nth_op(r, 0, OP_READ_REQUEST, 1)->pkt;
	assert_int_equal(p->bth.psn.v, 1 + 5);
	assert_int_equal(p->ext.reth.va, RIG_IOVA + ROFF + 5 * 1024);
	assert_int_equal(p->ext.reth.len_bytes, 11 * 1024);
	assert_int_equal(rig_count(r, 0, OP_READ_REQUEST), 2);
	assert_int_equal(rig_counter(r, 0, req_timeouts), 0);
	assert_true(rig_counter(r, 0, req_implied_naks) >= 1);
	rig_free(r);
}

static void read_request_lost(void **state)
{
	struct rig_conf c = { .retry_cnt = 2, .timeout = 10 };
	struct rig *r = rig_new(&c);
	struct loss l[] = { { 0, OP_READ_REQUEST, 0, 0, 0 } };
	LOSE(r, l);

	(void)state;
	rig_fill(r, 1, ROFF, 5000, 3);
	assert_int_equal(rig_post(r, 0, WR_READ, 0, ROFF, 5000, WR_SIGNALED, 1),
			 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	assert_true(rig_same(r, 0, 0, 5000, 3));
	rig_free(r);
}

/* The tail of the responses is lost with nothing behind: the timer. */
static void read_last_response_lost(void **state)
{
	struct rig_conf c = { .retry_cnt = 1, .timeout = 10 };
	struct rig *r = rig_new(&c);
	struct loss l[] = { { 1, OP_READ_RESP_LAST, 0, 0, 0 } };
	const struct pkt *p;
	LOSE(r, l);

	(void)state;
	rig_fill(r, 1, ROFF, 5000, 3);
	assert_int_equal(rig_post(r, 0, WR_READ, 0, ROFF, 5000, WR_SIGNALED, 1),
			 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	assert_true(rig_same(r, 0, 0, 5000, 3));
	p = &rig_nth_op(r, 0, OP_READ_REQUEST, 1)->pkt;
	assert_int_equal(p->bth.psn.v, 4);
	assert_int_equal(p->ext.reth.len_bytes, 5000 - 4096);
	assert_int_equal(rig_count(r, 1, OP_READ_RESP_ONLY), 1);
	rig_free(r);
}

/* Every frame twice: counted, dropped, nothing done twice. */
static struct rig_fate twice(struct rig *r, int from, const struct pkt *p,
			     void *arg)
{
	struct rig_fate f = { .copies = 2 };

	(void)r;
	(void)from;
	(void)p;
	(void)arg;
	return f;
}

static void everything_twice(void **state)
{
	struct rig_conf c = { .retry_cnt = 1 };
	struct rig *r = rig_new(&c);
	struct sge sge = rig_sge(r, 0, 0, 8);
	struct send_wr wr = { .wr_id = 3,
			      .sge = &sge,
			      .num_sge = 1,
			      .opcode = WR_FETCH_ADD,
			      .flags = WR_SIGNALED,
			      .remote_addr = RIG_IOVA + ROFF,
			      .rkey = mr_key(r->h[1].mr),
			      .compare_add = 1 };
	uint64_t i;

	(void)state;
	r->fate = twice;
	assert_int_equal(rig_recv(r, 1, 0, 9000, 50), 0);
	assert_int_equal(rig_post(r, 0, WR_SEND, 0, 0, 9000, WR_SIGNALED, 0),
			 0);
	assert_int_equal(
		rig_post(r, 0, WR_READ, 0x200000, ROFF, 9000, WR_SIGNALED, 1),
		0);
	assert_int_equal(
		rig_post(r, 0, WR_WRITE, 0, 0x200000, 9000, WR_SIGNALED, 2), 0);
	assert_int_equal(rig_post_wr(r, 0, &wr), 0);
	rig_settle(r);
	for (i = 0; i < 4; i++)
		rig_expect(r, 0, true, i, WC_SUCCESS);
	rig_expect(r, 1, false, 50, WC_SUCCESS);
	rig_expect_none(r, 1);
	assert_int_equal(r->h[1].mem[ROFF], 1);
	assert_int_equal(rig_counter(r, 0, req_timeouts), 0);
	rig_free(r);
}

/* ---- the peer played by hand ---- */

/* B001: an RNR NAK that comes when a timeout has already taken the request
 * back, but before it went out again, makes it wait all the same. */
static void rnr_nak_before_the_resend(void **state)
{
	struct rig_conf c = {
		.no_peer = true, .retry_cnt = 3, .rnr_retry = 7, .timeout = 8
	};
	struct rig *r = rig_new(&c);

	(void)state;
	assert_int_equal(rig_post(r, 0, WR_SEND, 0, 0, 8, WR_SIGNALED, 1), 0);
	rig_run(r, 10);
	assert_int_equal(rig_count(r, 0, OP_SEND_ONLY), 1);
	r->now_ns += 2 * (INT64_C(4096) << 8);
	hca_advance(r->h[0].hca, r->now_ns);
	assert_int_equal(rig_counter(r, 0, req_timeouts), 1);
	rig_inject_aeth(r, 0, 0, aeth_syndrome(AETH_RNR_NAK, 14), 0);
	rig_run(r, r->now_ns + 1279 * US);
	assert_int_equal(rig_count(r, 0, OP_SEND_ONLY), 1);
	rig_run(r, r->now_ns + 10 * US);
	assert_int_equal(rig_count(r, 0, OP_SEND_ONLY), 2);
	rig_inject_aeth(r, 0, 0, aeth_syndrome(AETH_ACK, 31), 1);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	rig_free(r);
}

static struct rig *alone(uint8_t retry, uint8_t rnr)
{
	struct rig_conf c = { .no_peer = true,
			      .retry_cnt = retry,
			      .rnr_retry = rnr,
			      .timeout = 10,
			      .dest_budget = 100000,
			      .read_budget = 100000,
			      .sq_psn = { 100, 0 } };

	return rig_new(&c);
}

static uint8_t ack(void)
{
	return aeth_syndrome(AETH_ACK, AETH_CREDITS_INVALID);
}

/* One ACK completes all that came before; ghosts are counted and dropped. */
static void ack_coalescing_and_ghosts(void **state)
{
	struct rig *r = alone(3, 0);
	uint64_t i;

	(void)state;
	for (i = 0; i < 5; i++)
		assert_int_equal(
			rig_post(r, 0, WR_WRITE, 0, 0, 10, WR_SIGNALED, i), 0);
	rig_run(r, 10);
	rig_inject_aeth(r, 0, 103, ack(), 4);
	for (i = 0; i < 4; i++)
		rig_expect(r, 0, true, i, WC_SUCCESS);
	rig_expect_none(r, 0);
	rig_inject_aeth(r, 0, 103, ack(), 4); /* again */
	rig_inject_aeth(r, 0, 101, ack(), 2); /* older */
	rig_inject_aeth(r, 0, 105, ack(), 6); /* never sent */
	rig_inject_aeth(r, 0, 101, aeth_syndrome(AETH_NAK, 2), 2);
	rig_inject_aeth(r, 0, 104, aeth_syndrome(AETH_RESERVED, 0), 4);
	rig_expect_none(r, 0);
	assert_int_equal(rig_counter(r, 0, req_stale_acks), 4);
	assert_int_equal(rig_counter(r, 0, rx_drop_response), 4);
	rig_inject_aeth(r, 0, 104, ack(), 5);
	rig_expect(r, 0, true, 4, WC_SUCCESS);
	rig_free(r);
}

/* Each NAK code and what it makes of the WQE. */
static void nak_codes(void **state)
{
	static const struct {
		uint8_t code;
		enum wc_status status;
	} cases[] = { { NAK_INVALID_REQUEST, WC_REM_INV_REQ_ERR },
		      { NAK_REMOTE_ACCESS, WC_REM_ACCESS_ERR },
		      { NAK_REMOTE_OPERATIONAL, WC_REM_OP_ERR } };
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig *r = alone(3, 0);
		uint64_t k;

		for (k = 0; k < 4; k++) /* unsignaled: errors speak anyway */
			assert_int_equal(rig_post(r, 0, WR_WRITE, 0, 0, 3000,
						  k == 0 ? WR_SIGNALED : 0, k),
					 0);
		rig_run(r, 10);
		rig_inject_aeth(r, 0, 100 + 4,
				aeth_syndrome(AETH_NAK, cases[i].code), 1);
		rig_expect(r, 0, true, 0, WC_SUCCESS); /* implicitly */
		rig_expect(r, 0, true, 1, cases[i].status);
		rig_expect(r, 0, true, 2, WC_WR_FLUSH_ERR);
		rig_expect(r, 0, true, 3, WC_WR_FLUSH_ERR);
		assert_int_equal(qp_state(r->h[0].qp), QP_STATE_ERR);
		assert_int_equal(hca_deadline(r->h[0].hca), INT64_MAX);
		rig_free(r);
	}
}

/* A second NAK of the same gap, or one of the ghosts of the first round, does
 * not start another round. */
static void doubled_nak(void **state)
{
	struct rig *r = alone(1, 0);
	uint8_t nak = aeth_syndrome(AETH_NAK, NAK_PSN_SEQUENCE);

	(void)state;
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, 0, 5000, WR_SIGNALED, 1),
			 0);
	rig_run(r, 10);
	rig_inject_aeth(r, 0, 102, nak, 0);
	rig_inject_aeth(r, 0, 102, nak, 0);
	rig_inject_aeth(r, 0, 102, nak, 0);
	assert_int_equal(rig_counter(r, 0, req_retransmits), 3);
	rig_expect_none(r, 0);
	rig_inject_aeth(r, 0, 104, ack(), 1);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	rig_free(r);
}

/* An ACK that comes late, for what the cursor went back over, moves it on. */
static void late_ack_skips(void **state)
{
	struct rig *r = alone(3, 7);

	(void)state;
	assert_int_equal(rig_post(r, 0, WR_SEND, 0, 0, 5000, WR_SIGNALED, 1),
			 0);
	assert_int_equal(rig_post(r, 0, WR_SEND, 0, 0, 5000, WR_SIGNALED, 2),
			 0);
	rig_run(r, 10);
	rig_inject_aeth(r, 0, 100, aeth_syndrome(AETH_RNR_NAK, 14), 0);
	rig_forget(r);
	rig_inject_aeth(r, 0, 107, ack(), 1);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	rig_run(r, 100);
	assert_int_equal(rig_nth(r, 0, 0)->pkt.bth.psn.v, 108);
	rig_inject_aeth(r, 0, 109, ack(), 2);
	rig_expect(r, 0, true, 2, WC_SUCCESS);
	assert_int_equal(hca_deadline(r->h[0].hca), INT64_MAX);
	rig_free(r);
}

/* A READ's data is not an ACK's to give: the ACK behind it is a NAK of it, and
 * once only. */
static void ack_past_read(void **state)
{
	struct rig *r = alone(2, 0);

	(void)state;
	assert_int_equal(rig_post(r, 0, WR_READ, 0, 0, 2000, WR_SIGNALED, 1),
			 0);
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, 0, 10, WR_SIGNALED, 2), 0);
	rig_run(r, 10);
	rig_inject_aeth(r, 0, 102, ack(), 2);
	rig_inject_aeth(r, 0, 102, ack(), 2);
	rig_expect_none(r, 0);
	assert_int_equal(rig_count(r, 0, OP_READ_REQUEST), 2);
	assert_int_equal(rig_counter(r, 0, req_implied_naks), 2);
	rig_free(r);
}

/* A refusal behind a READ without an answer is not the READ's: it is asked for
 * again. */
static void fatal_nak_past_read(void **state)
{
	struct rig *r = alone(2, 0);

	(void)state;
	assert_int_equal(rig_post(r, 0, WR_READ, 0, 0, 2000, WR_SIGNALED, 1),
			 0);
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, 0, 10, WR_SIGNALED, 2), 0);
	rig_run(r, 10);
	rig_inject_aeth(r, 0, 102, aeth_syndrome(AETH_NAK, 2), 2);
	rig_expect_none(r, 0);
	assert_int_equal(rig_count(r, 0, OP_READ_REQUEST), 2);
	assert_int_equal(qp_state(r->h[0].qp), QP_STATE_RTS);
	rig_free(r);
}

/* In the RNR wait nothing is in flight: doubles of the NAK, or a late one of
 * another kind, cost no retry and do not end the wait. */
static void late_naks_in_the_rnr_wait(void **state)
{
	struct rig *r = alone(0, 1);
	uint32_t i;

	(void)state;
	assert_int_equal(rig_post(r, 0, WR_SEND, 0, 0, 10, WR_SIGNALED, 1), 0);
	rig_run(r, 10);
	for (i = 0; i < 3; i++) {
		rig_inject_aeth(r, 0, 100, aeth_syndrome(AETH_RNR_NAK, 14), 0);
		rig_inject_aeth(r, 0, 100, aeth_syndrome(AETH_NAK, 0), 0);
	}
	rig_run(r, rnr_timer_ns(14) - 1);
	assert_int_equal(r->logged, 1);
	rig_expect_none(r, 0);
	rig_run(r, rnr_timer_ns(14) + 5000);
	assert_int_equal(r->logged, 2);
	rig_inject_aeth(r, 0, 100, ack(), 1);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	rig_free(r);
}

/* Every gap has its NAK heard: after progress, and after a timeout. */
static void each_gap_counts(void **state)
{
	struct rig *r = alone(3, 0);
	uint8_t nak = aeth_syndrome(AETH_NAK, NAK_PSN_SEQUENCE);

	(void)state;
	assert_int_equal(
		rig_post(r, 0, WR_WRITE, 0, 0, 8 * 1024, WR_SIGNALED, 1), 0);
	rig_run(r, 10);
	rig_inject_aeth(r, 0, 102, nak, 0);
	assert_int_equal(r->logged, 8 + 6);
	rig_inject_aeth(r, 0, 104, nak, 0);
	assert_int_equal(r->logged, 8 + 6 + 4);
	rig_run(r, 6 * MS); /* one timeout of 4.2 ms */
	assert_int_equal(rig_counter(r, 0, req_timeouts), 1);
	assert_int_equal(r->logged, 8 + 6 + 4 + 1); /* one asks */
	rig_inject_aeth(r, 0, 104, nak, 0);
	assert_int_equal(r->logged, 8 + 6 + 4 + 1 + 4);
	rig_free(r);
}

/* The timeout counts from the last progress, and after a NAK from the packet
 * that went out again: never less than the nominal time. */
static void timeout_counts_from_progress(void **state)
{
	struct rig *r = alone(3, 0);
	int64_t t = INT64_C(4096) << 10, at = t - 1000;

	(void)state;
	assert_int_equal(
		rig_post(r, 0, WR_WRITE, 0, 0, 4 * 1024, WR_SIGNALED, 1), 0);
	rig_run(r, at);
	rig_inject_aeth(r, 0, 101, ack(), 0);
	rig_run(r, at + t - 1);
	assert_int_equal(r->logged, 4);
	at += t - 1;
	rig_inject_aeth(r, 0, 102, aeth_syndrome(AETH_NAK, 0), 0);
	assert_int_equal(r->logged, 6);
	rig_run(r, at + t - 1);
	assert_int_equal(r->logged, 6);
	rig_run(r, at + 2 * t);
	assert_int_equal(r->logged, 7);
	rig_free(r);
}

/* SQD lets the timeout change under packets in flight: from none to one, a
 * timer runs from then on; back to none, it stops. */
static void timeout_changes(void **state)
{
	struct rig_conf c = { .no_peer = true, .retry_cnt = 1, .timeout = 255 };
	struct rig *r = rig_new(&c);
	struct qp_attr a = { .state = QP_STATE_SQD, .timeout = 10 };
	uint32_t mask = QP_ATTR_STATE | QP_ATTR_TIMEOUT;
	struct qp *qp = r->h[0].qp;

	(void)state;
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, 0, 8, 0, 1), 0);
	rig_run(r, MS);
	assert_int_equal(qp_modify(qp, &a, QP_ATTR_STATE, MS), 0);
	assert_int_equal(qp_modify(qp, &a, mask, MS), 0);
	rig_run(r, 7 * MS);
	assert_int_equal(r->logged, 2);
	a.timeout = 0;
	assert_int_equal(qp_modify(qp, &a, mask, r->now_ns), 0);
	assert_int_equal(hca_deadline(r->h[0].hca), INT64_MAX);
	rig_inject_aeth(r, 0, 0, ack(), 1);
	assert_int_equal(rig_counter(r, 0, req_write_msgs), 1);
	rig_free(r);
}

/* READ answers one after the other; the last of each list is wrong. */
static void bad_read_sequences(void **state)
{
	static const struct {
		uint32_t len;
		enum op ops[3];
	} cases[] = {
		{ 1024, { OP_READ_RESP_LAST } },
		{ 3072, { OP_READ_RESP_FIRST, OP_READ_RESP_FIRST } },
		{ 3072, { OP_READ_RESP_FIRST, OP_READ_RESP_LAST } },
		{ 2048, { OP_READ_RESP_FIRST, OP_READ_RESP_ONLY } },
		{ 3072,
		  { OP_READ_RESP_FIRST, OP_READ_RESP_MIDDLE,
		    OP_READ_RESP_MIDDLE } },
	};
	static const uint8_t zeros[1024];
	uint32_t i, k;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig *r = alone(2, 0);

		assert_int_equal(
			rig_post(r, 0, WR_READ, 0, 0, cases[i].len, 0, 1), 0);
		rig_run(r, 10);
		for (k = 0; k < 3 && cases[i].ops[k]; k++) {
			struct pkt p = { .bth = { .opcode = cases[i].ops[k],
						  .psn = psn_of(100 + k) } };

			rig_expect_none(r, 0);
			rig_inject(r, 0, &p, zeros, sizeof(zeros));
		}
		rig_expect(r, 0, true, 1, WC_BAD_RESP_ERR);
		rig_free(r);
	}
}

/* Answers that cannot be right: bad response, 7. */
static void bad_responses(void **state)
{
	static const struct {
		enum wr_opcode posted;
		enum op op;
		uint32_t len;
		uint8_t syndrome;
	} cases[] = {
		{ WR_READ, OP_READ_RESP_FIRST, 1000, 0 },
		{ WR_READ, OP_READ_RESP_MIDDLE, 1024, 0 },
		{ WR_READ, OP_READ_RESP_LAST, 1024, 0 },
		{ WR_READ, OP_READ_RESP_ONLY, 1024, 0 },
		{ WR_READ, OP_ATOMIC_ACK, 0, 0 },
		{ WR_READ, OP_READ_RESP_FIRST, 1024, 0x60 },
		{ WR_WRITE, OP_READ_RESP_FIRST, 1024, 0 },
		{ WR_SEND, OP_ATOMIC_ACK, 0, 0 },
	};
	static const uint8_t zeros[1024];
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig *r = alone(2, 0);
		struct pkt p = {
			.bth = { .opcode = cases[i].op, .psn = psn_of(100) },
			.ext.aeth = { .syndrome = cases[i].syndrome, .msn = 1 }
		};

		assert_int_equal(
			rig_post(r, 0, cases[i].posted, 0, 0, 2048, 0, 1), 0);
		rig_run(r, 10);
		rig_inject(r, 0, &p, zeros, cases[i].len);
		rig_expect(r, 0, true, 1, WC_BAD_RESP_ERR);
		assert_int_equal(qp_state(r->h[0].qp), QP_STATE_ERR);
		rig_free(r);
	}
}

/* A message that leaves slowly, its only AckReq in the last packet: the peer
 * has nothing to answer before, so the timeout counts from the last packet
 * sent. With many QPs on one budget each one's packets lie far apart. */
static void timeout_counts_from_the_last_packet(void **state)
{
	struct rig_conf c = { .timeout = 8, .retry_cnt = 1 };
	int64_t nominal = INT64_C(4096) << c.timeout;
	struct rig *r;

	(void)state;
	c.tx_gap_ns = nominal * 3 / 4;
	r = rig_new(&c);
	assert_int_equal(
		rig_post(r, 0, WR_WRITE, 0, ROFF, 4096, WR_SIGNALED, 1), 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	assert_true(rig_nth_op(r, 0, OP_WRITE_LAST, 0)->at_ns > nominal);
	assert_int_equal(rig_counter(r, 0, req_timeouts), 0);
	assert_int_equal(rig_counter(r, 0, req_retransmits), 0);
	rig_free(r);
}

/* The host stands still past the deadline: the peer gets its time once more,
 * and only once; a dead one is found out all the same. */
static void stall_is_excused_once(void **state)
{
	struct rig_conf c = { .timeout = 14, .retry_cnt = 0 };
	int64_t nominal = INT64_C(4096) << c.timeout;
	struct rig *r = rig_new(&c);
	int dead = 0;

	(void)state;
	r->fate = blackhole;
	r->fate_arg = &dead;
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, ROFF, 10, WR_SIGNALED, 1),
			 0);
	rig_run(r, nominal / 2);
	r->now_ns = nominal + 30 * MS; /* nobody ran us */
	rig_run(r, r->now_ns + nominal / 2);
	rig_expect_none(r, 0);
	assert_int_equal(rig_counter(r, 0, req_stalls), 1);
	r->now_ns = 3 * nominal; /* and again */
	rig_settle(r);
	assert_int_equal(rig_counter(r, 0, req_stalls), 1);
	assert_int_equal(rig_counter(r, 0, req_timeouts), 1);
	rig_expect(r, 0, true, 1, WC_RETRY_EXC_ERR);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(retry_exhaustion),
		cmocka_unit_test(progress_resets_retries),
		cmocka_unit_test(infinite_timeout),
		cmocka_unit_test(rnr_wait_all_codes),
		cmocka_unit_test(rnr_then_receive),
		cmocka_unit_test(rnr_nak_before_the_resend),
		cmocka_unit_test(rnr_infinite_and_write),
		cmocka_unit_test(sequence_nak),
		cmocka_unit_test(last_packet_lost),
		cmocka_unit_test(ack_lost),
		cmocka_unit_test(atomic_answer_lost),
		cmocka_unit_test(read_response_lost),
		cmocka_unit_test(read_request_lost),
		cmocka_unit_test(read_last_response_lost),
		cmocka_unit_test(everything_twice),
		cmocka_unit_test(ack_coalescing_and_ghosts),
		cmocka_unit_test(nak_codes),
		cmocka_unit_test(doubled_nak),
		cmocka_unit_test(late_ack_skips),
		cmocka_unit_test(ack_past_read),
		cmocka_unit_test(fatal_nak_past_read),
		cmocka_unit_test(late_naks_in_the_rnr_wait),
		cmocka_unit_test(each_gap_counts),
		cmocka_unit_test(timeout_counts_from_progress),
		cmocka_unit_test(stall_is_excused_once),
		cmocka_unit_test(timeout_counts_from_the_last_packet),
		cmocka_unit_test(timeout_changes),
		cmocka_unit_test(bad_read_sequences),
		cmocka_unit_test(bad_responses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
