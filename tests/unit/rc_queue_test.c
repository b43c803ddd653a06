/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_queue_test.c - the responder's queue of answers: requests come in while
 * no answer leaves [IBA 9.7.5.1]. */
#include "rc_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PSN0 (PSN_MASK - 3) /* the wrap lies within every test */
#define MTU 1024u

static struct rig *victim(uint8_t resources)
{
	struct rig_conf c = { .no_peer = true,
			      .max_dest_rd_atomic = resources,
			      .sq_psn = { 0, PSN0 } };

	return rig_new(&c);
}

/* A request of n packets (READ) or one; nothing leaves in answer. */
static void put(struct rig *r, enum op op, uint32_t psn, uint32_t pkts,
		uint32_t key)
{
	struct pkt p = { .bth = { .opcode = op,
				  .psn = psn_of(PSN0 + psn),
				  .ackreq = op != OP_WRITE_LAST } };

	if (!key)
		key = mr_key(r->h[0].mr);
	p.ext.reth =
		(struct reth){ .va = RIG_IOVA + psn * MTU,
			       .rkey = key,
			       .len_bytes =
				       op == OP_READ_REQUEST ? pkts * MTU : 0 };
	p.ext.atomiceth = (struct atomiceth){ .va = RIG_IOVA,
					      .rkey = key,
					      .swap_or_add = 1 };
	rig_inject_held(r, 0, &p, NULL, 0);
}

struct answer {
	enum op op;
	uint32_t psn;
};

/* Lets everything out; it must be exactly this. */
static void answers(struct rig *r, const struct answer *want, uint32_t n)
{
	uint32_t i;

	rig_forget(r);
	rig_run(r, r->now_ns);
	for (i = 0; i < n && i < r->logged; i++) {
		const struct pkt *p = &r->log[i].pkt;

		assert_int_equal(opcode_op(p->bth.opcode), want[i].op);
		assert_int_equal(p->bth.psn.v, (PSN0 + want[i].psn) & PSN_MASK);
	}
	assert_int_equal(r->logged, n);
}

#define ANSWERS(r, ...)                                                        \
	answers(r, (const struct answer[]){ __VA_ARGS__ },                     \
		sizeof((const struct answer[]){ __VA_ARGS__ }) /               \
			sizeof(struct answer))

#define FIRST OP_READ_RESP_FIRST
#define MIDDLE OP_READ_RESP_MIDDLE
#define LAST OP_READ_RESP_LAST
#define ONLY OP_READ_RESP_ONLY

static void acks_coalesce(void **state)
{
	struct rig *r = victim(4);

	(void)state;
	put(r, OP_WRITE_ONLY, 0, 0, 0);
	put(r, OP_WRITE_ONLY, 1, 0, 0);
	put(r, OP_WRITE_ONLY, 2, 0, 0);
	put(r, OP_WRITE_ONLY, 0, 0, 0); /* a duplicate takes nothing back */
	ANSWERS(r, { OP_ACK, 2 });
	assert_int_equal(rig_counter(r, 0, rsp_acks), 1);
	rig_free(r);
}

/* A READ's answer acknowledges what came before it. */
static void read_spares_the_ack(void **state)
{
	struct rig *r = victim(4);

	(void)state;
	put(r, OP_WRITE_ONLY, 0, 0, 0);
	put(r, OP_READ_REQUEST, 1, 2, 0);
	put(r, OP_WRITE_ONLY, 0, 0, 0); /* duplicate */
	ANSWERS(r, { FIRST, 1 }, { LAST, 2 });
	rig_free(r);
}

static void ack_after_reads(void **state)
{
	struct rig *r = victim(4);

	(void)state;
	put(r, OP_READ_REQUEST, 0, 3, 0);
	put(r, OP_FETCH_ADD, 3, 0, 0);
	put(r, OP_WRITE_ONLY, 4, 0, 0);
	put(r, OP_READ_REQUEST, 5, 1, 0);
	put(r, OP_WRITE_ONLY, 6, 0, 0);
	put(r, OP_WRITE_ONLY, 7, 0, 0);
	ANSWERS(r, { FIRST, 0 }, { MIDDLE, 1 }, { LAST, 2 },
		{ OP_ATOMIC_ACK, 3 }, { ONLY, 5 }, { OP_ACK, 7 });
	rig_free(r);
}

/* A sequence NAK goes after the answers; the packet that fills the gap makes
 * it pointless if it did not leave yet. */
static void gap_behind_a_read(void **state)
{
	struct rig *r = victim(4);

	(void)state;
	put(r, OP_READ_REQUEST, 0, 2, 0);
	put(r, OP_WRITE_ONLY, 3, 0, 0);
	put(r, OP_READ_REQUEST, 0, 2, 0); /* duplicate */
	ANSWERS(r, { FIRST, 0 }, { LAST, 1 }, { OP_ACK, 2 });
	assert_int_equal(aeth_kind(r->log[2].pkt.ext.aeth.syndrome), AETH_NAK);
	put(r, OP_WRITE_ONLY, 2, 0, 0);
	put(r, OP_WRITE_ONLY, 4, 0, 0); /* the next gap */
	put(r, OP_WRITE_ONLY, 3, 0, 0);
	ANSWERS(r, { OP_ACK, 3 });
	assert_int_equal(aeth_kind(r->log[0].pkt.ext.aeth.syndrome), AETH_ACK);
	rig_free(r);
}

/* A READ that is asked for again while it waits is answered once. */
static void duplicates_replace(void **state)
{
	struct rig *r = victim(4);

	(void)state;
	put(r, OP_READ_REQUEST, 0, 2, 0);
	put(r, OP_READ_REQUEST, 2, 3, 0);
	put(r, OP_READ_REQUEST, 5, 1, 0);
	put(r, OP_READ_REQUEST, 2, 3, 0);
	put(r, OP_READ_REQUEST, 0, 2, 0);
	ANSWERS(r, { FIRST, 0 }, { LAST, 1 }, { FIRST, 2 }, { MIDDLE, 3 },
		{ LAST, 4 }, { ONLY, 5 });
	/* again, from the middle of the first; atomics slot in by PSN */
	put(r, OP_FETCH_ADD, 6, 0, 0);
	put(r, OP_WRITE_ONLY, 7, 0, 0);
	put(r, OP_READ_REQUEST, 3, 2, 0);
	put(r, OP_READ_REQUEST, 1, 1, 0);
	put(r, OP_FETCH_ADD, 6, 0, 0);
	ANSWERS(r, { ONLY, 1 }, { FIRST, 3 }, { LAST, 4 }, { OP_ATOMIC_ACK, 6 },
		{ OP_ACK, 7 });
	assert_int_equal(r->h[0].mem[0], 1);
	rig_free(r);
}

/* A retry while the first answer is half out: starts over where it asks. */
static void retry_overtakes(void **state)
{
	struct rig *r = victim(4);
	uint8_t buf[PKT_MAX + ICRC_BYTES];
	struct tx_frame t = { .pkt = buf };
	uint32_t i;

	(void)state;
	put(r, OP_READ_REQUEST, 0, 6, 0);
	for (i = 0; i < 3; i++) {
		assert_true(hca_tx(r->h[0].hca, 1, &t, 0));
		hca_tx_done(r->h[0].hca, &t);
	}
	put(r, OP_READ_REQUEST, 2, 4, 0);
	ANSWERS(r, { FIRST, 2 }, { MIDDLE, 3 }, { MIDDLE, 4 }, { LAST, 5 });
	rig_free(r);
}

/* Any number of duplicates: what does not fit is dropped, and there is always
 * room for new requests. */
static void flood_of_duplicates(void **state)
{
	struct rig *r = victim(2);
	uint32_t i;

	(void)state;
	for (i = 0; i < 600; i++) {
		put(r, OP_READ_REQUEST, i, 1, 0);
		rig_run(r, r->now_ns);
	}
	for (i = 0; i < 600; i++)
		put(r, OP_READ_REQUEST, i, 1, 0);
	assert_true(rig_counter(r, 0, rx_drop_duplicate) > 0);
	put(r, OP_READ_REQUEST, 600, 1, 0);
	put(r, OP_READ_REQUEST, 601, 1, 0);
	assert_int_equal(qp_state(r->h[0].qp), QP_STATE_RTS);
	rig_forget(r);
	rig_run(r, r->now_ns);
	assert_int_equal(r->log[r->logged - 1].pkt.bth.psn.v,
			 (PSN0 + 601) & PSN_MASK);
	for (i = 1; i < r->logged; i++)
		assert_true(psn_before(r->log[i - 1].pkt.bth.psn,
				       r->log[i].pkt.bth.psn));
	rig_free(r);
}

/* Atomics count as outstanding too. */
static void too_many_atomics(void **state)
{
	struct rig *r = victim(2);

	(void)state;
	put(r, OP_FETCH_ADD, 0, 0, 0);
	put(r, OP_FETCH_ADD, 1, 0, 0);
	put(r, OP_FETCH_ADD, 2, 0, 0);
	ANSWERS(r, { OP_ATOMIC_ACK, 0 }, { OP_ATOMIC_ACK, 1 }, { OP_ACK, 2 });
	assert_int_equal(r->h[0].mem[0], 2);
	assert_int_equal(qp_state(r->h[0].qp), QP_STATE_ERR);
	rig_free(r);
}

/* Refused, and then a READ promised before cannot be served either: one NAK,
 * where the requester is, and one event. */
static void read_fails_behind_a_refusal(void **state)
{
	struct rig *r = victim(4);

	(void)state;
	put(r, OP_READ_REQUEST, 0, 2, 0);
	put(r, OP_SEND_MIDDLE, 2, 0, 0);
	assert_int_equal(qp_state(r->h[0].qp), QP_STATE_ERR);
	assert_int_equal(mr_dereg(r->h[0].mr), 0);
	r->h[0].mr = NULL;
	ANSWERS(r, { OP_ACK, 0 });
	assert_int_equal(r->log[0].pkt.ext.aeth.syndrome,
			 aeth_syndrome(AETH_NAK, NAK_REMOTE_ACCESS));
	assert_true(rig_async(r, 0, ASYNC_QP_REQ_ERR));
	assert_false(rig_async(r, 0, ASYNC_QP_ACCESS_ERR));
	rig_free(r);
}

/* The consumer's own step into ERR ends all answers. */
static void error_state_is_silent(void **state)
{
	struct rig *r = victim(4);
	struct qp_attr a = { .state = QP_STATE_ERR };

	(void)state;
	put(r, OP_READ_REQUEST, 0, 2, 0);
	assert_int_equal(qp_modify(r->h[0].qp, &a, QP_ATTR_STATE, 0), 0);
	rig_run(r, 10);
	assert_int_equal(r->logged, 0);
	rig_free(r);
}

/* Answers leave before requests of our own. */
static void answers_first(void **state)
{
	struct rig *r = victim(4);

	(void)state;
	put(r, OP_READ_REQUEST, 0, 1, 0);
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, 0, 8, 0, 1), 0);
	rig_run(r, 0);
	assert_int_equal(r->logged, 2);
	assert_int_equal(opcode_op(r->log[0].pkt.bth.opcode), ONLY);
	rig_free(r);
}

/* A last packet again is acknowledged, asked or not. */
static void last_packet_again(void **state)
{
	struct rig *r = victim(4);
	struct pkt p = { .bth = { .opcode = OP_WRITE_FIRST,
				  .psn = psn_of(PSN0) } };
	static const uint8_t zeros[MTU];
	uint32_t i;

	(void)state;
	p.ext.reth = (struct reth){ .va = RIG_IOVA,
				    .rkey = mr_key(r->h[0].mr),
				    .len_bytes = MTU + 4 };
	rig_inject_held(r, 0, &p, zeros, MTU);
	for (i = 0; i < 2; i++) {
		p.bth.opcode = OP_WRITE_LAST;
		p.bth.psn = psn_of(PSN0 + 1);
		rig_inject_held(r, 0, &p, zeros, 4);
	}
	ANSWERS(r, { OP_ACK, 1 });
	rig_free(r);
}

/* Atomics must be aligned by their name and in memory. */
static void alignment(void **state)
{
	static const struct {
		uint32_t va_skew, iova_skew, at;
	} cases[] = { { 4, 0, 4 }, { 4, 0, 0 }, { 0, 4, 4 }, { 1, 1, 7 } };
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig *r = victim(4);
		struct mr_attr ma = { .va = RIG_VA + cases[i].va_skew,
				      .iova = RIG_IOVA + cases[i].iova_skew,
				      .len_bytes = 4096,
				      .access = ACCESS_LOCAL_WRITE |
						ACCESS_REMOTE_ATOMIC };
		struct pkt p = { .bth = { .opcode = OP_FETCH_ADD,
					  .psn = psn_of(PSN0) } };
		bool good = cases[i].va_skew == 1; /* iova + 7 and va + 7 */
		struct mr *mr;

		assert_int_equal(mr_reg(r->h[0].pd, &ma, &mr), 0);
		p.ext.atomiceth =
			(struct atomiceth){ .va = ma.iova + cases[i].at,
					    .rkey = mr_key(mr) };
		rig_inject_held(r, 0, &p, NULL, 0);
		ANSWERS(r, { good ? OP_ATOMIC_ACK : OP_ACK, 0 });
		if (!good)
			assert_int_equal(
				r->log[0].pkt.ext.aeth.syndrome,
				aeth_syndrome(AETH_NAK, NAK_INVALID_REQUEST));
		assert_int_equal(mr_dereg(mr), 0);
		rig_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(acks_coalesce),
		cmocka_unit_test(read_spares_the_ack),
		cmocka_unit_test(ack_after_reads),
		cmocka_unit_test(gap_behind_a_read),
		cmocka_unit_test(duplicates_replace),
		cmocka_unit_test(retry_overtakes),
		cmocka_unit_test(flood_of_duplicates),
		cmocka_unit_test(too_many_atomics),
		cmocka_unit_test(read_fails_behind_a_refusal),
		cmocka_unit_test(error_state_is_silent),
		cmocka_unit_test(answers_first),
		cmocka_unit_test(last_packet_again),
		cmocka_unit_test(alignment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
