/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_flow_test.c - what an RC requester may have in flight: READs and atomics,
 * fences, receive buffers of both ends, credits [IBA 9.7.7]. */
#include "rc_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define ROFF 0x100000u
#define MTU 1024u

/* Counts, at host 0's wire, data packets not acknowledged, READ and atomic
 * requests not answered, and READ response packets asked for. */
struct meter {
	uint32_t unacked, unacked_max;
	uint32_t rd, rd_max;
	uint32_t asked, asked_max;
	uint32_t end[64]; /* last PSNs of requests outstanding */
	uint32_t n_end;
	uint32_t sent_psn, acked_psn;
};

static void highest(uint32_t v, uint32_t *max)
{
	if (v > *max)
		*max = v;
}

static void meter_request(struct meter *m, const struct pkt *p)
{
	uint32_t n = 1;

	if (p->info->flags & (OPCODE_READ | OPCODE_ATOMIC)) {
		if (p->info->flags & OPCODE_READ)
			n = (p->ext.reth.len_bytes + MTU - 1) / MTU;
		m->asked += n;
		m->end[m->n_end++ % 64] = p->bth.psn.v + n - 1;
		m->rd++;
	}
	m->sent_psn = p->bth.psn.v + n;
	m->unacked = m->sent_psn - m->acked_psn;
	highest(m->unacked, &m->unacked_max);
	highest(m->asked, &m->asked_max);
	highest(m->rd, &m->rd_max);
}

static void meter_response(struct meter *m, const struct pkt *p)
{
	uint32_t i;

	m->acked_psn = p->bth.psn.v + 1;
	if (!(p->info->flags & (OPCODE_READ | OPCODE_ATOMIC)))
		return;
	m->asked--;
	for (i = 0; i < m->n_end && i < 64; i++)
		m->rd -= m->end[i] == p->bth.psn.v;
}

static struct rig_fate metered(struct rig *r, int from, const struct pkt *p,
			       void *arg)
{
	struct rig_fate f = { .copies = 1 };

	(void)r;
	if (from == 0)
		meter_request(arg, p);
	else
		meter_response(arg, p);
	return f;
}

static struct rig *measured(struct rig_conf *c, struct meter *m)
{
	struct rig *r;

	c->retry_cnt = 0; /* nothing may be lost, nothing may be late */
	r = rig_new(c);
	r->fate = metered;
	r->fate_arg = m;
	return r;
}

static uint32_t charge(uint32_t payload)
{
	return link_layer_rocev2.charge_bytes(
		link_layer_rocev2.overhead_bytes(&(struct gid){ { 0 } }) + 32 +
		payload);
}

/* A READ is split so that what is asked for fits the budget; requests lie on
 * packet boundaries and PSNs are those of one READ. */
static void read_split(void **state)
{
	uint32_t pkts;

	(void)state;
	for (pkts = 1; pkts <= 40; pkts += 3) {
		struct rig_conf c = { .read_budget = pkts * charge(MTU) };
		struct meter m = { 0 };
		struct rig *r = measured(&c, &m);
		uint32_t i, at = 0, n;

		rig_fill(r, 1, ROFF, 100 * MTU + 5, pkts);
		assert_int_equal(rig_post(r, 0, WR_READ, 0, ROFF, 100 * MTU + 5,
					  WR_SIGNALED, 1),
				 0);
		rig_settle(r);
		rig_expect(r, 0, true, 1, WC_SUCCESS);
		assert_true(rig_same(r, 0, 0, 100 * MTU + 5, pkts));
		assert_true(m.asked_max <= pkts);
		assert_true(m.asked_max * 2 > pkts || pkts < 4);
		n = rig_count(r, 0, OP_READ_REQUEST);
		assert_true(n >= 100 / pkts);
		for (i = 0; i < n; i++) {
			const struct pkt *p =
				&rig_nth_op(r, 0, OP_READ_REQUEST, i)->pkt;

			assert_int_equal(p->bth.psn.v, at / MTU);
			assert_int_equal(p->ext.reth.va, RIG_IOVA + ROFF + at);
			at += p->ext.reth.len_bytes;
		}
		assert_int_equal(at, 100 * MTU + 5);
		rig_free(r);
	}
}

/* SQD lets max_rd_atomic change while a READ is on its way; its units, which a
 * retry must keep to, stay. */
static void units_stay(void **state)
{
	struct rig_conf c = { .read_budget = 16 * charge(MTU),
			      .max_rd_atomic = 2 };
	struct meter m = { 0 };
	struct rig *r = measured(&c, &m);
	struct qp_attr a = { .state = QP_STATE_SQD, .max_rd_atomic = 4 };
	uint32_t i, n;

	(void)state;
	rig_fill(r, 1, ROFF, 40 * MTU, 1);
	assert_int_equal(
		rig_post(r, 0, WR_READ, 0, ROFF, 40 * MTU, WR_SIGNALED, 1), 0);
	rig_run(r, 10);
	assert_int_equal(qp_modify(r->h[0].qp, &a, QP_ATTR_STATE, 10), 0);
	assert_int_equal(qp_modify(r->h[0].qp, &a,
				   QP_ATTR_STATE | QP_ATTR_MAX_QP_RD_ATOMIC,
				   10),
			 0);
	a.state = QP_STATE_RTS;
	assert_int_equal(qp_modify(r->h[0].qp, &a, QP_ATTR_STATE, 10), 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	assert_true(rig_same(r, 0, 0, 40 * MTU, 1));
	n = rig_count(r, 0, OP_READ_REQUEST);
	assert_int_equal(n, 5);
	for (i = 0; i < n; i++)
		assert_int_equal(rig_nth_op(r, 0, OP_READ_REQUEST, i)
					 ->pkt.ext.reth.len_bytes,
				 8 * MTU);
	rig_free(r);
}

/* Never more READs and atomics outstanding than max_rd_atomic; parts of a
 * split READ count each. */
static void rd_atomic_limit(void **state)
{
	uint8_t limit;
	int split;

	(void)state;
	for (limit = 1; limit <= 5; limit++) {
		for (split = 0; split < 2; split++) {
			struct rig_conf c = {
				.max_rd_atomic = limit,
				.max_dest_rd_atomic = limit,
				.read_budget = split ? 20 * charge(MTU) : 0
			};
			struct meter m = { 0 };
			struct rig *r = measured(&c, &m);
			uint64_t i;

			for (i = 0; i < 20; i++)
				assert_int_equal(
					rig_post(r, 0,
						 i % 3 ? WR_READ : WR_FETCH_ADD,
						 0, ROFF, i % 3 ? 9000 : 8,
						 WR_SIGNALED, i),
					0);
			rig_settle(r);
			for (i = 0; i < 20; i++)
				rig_expect(r, 0, true, i, WC_SUCCESS);
			assert_int_equal(m.rd_max, limit);
			rig_free(r);
		}
	}
}

/* max_rd_atomic 0: a READ could never go out; it says so at once. */
static void no_rd_atomic(void **state)
{
	struct rig_conf c = { .max_rd_atomic = 255 };
	struct rig *r = rig_new(&c);

	(void)state;
	assert_int_equal(rig_post(r, 0, WR_READ, 0, ROFF, 8, 0, 1), 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_LOC_QP_OP_ERR);
	assert_int_equal(r->logged, 0);
	rig_free(r);
}

/* B082, B083: a fenced SEND gathers what the READ before it brought; it waits
 * for the READ's last byte. Without a READ before it, nothing waits. */
static void fence(void **state)
{
	struct rig_conf c = { .retry_cnt = 1 };
	struct rig *r = rig_new(&c);
	int64_t read_done;

	(void)state;
	rig_fill(r, 1, ROFF, 8000, 9);
	assert_int_equal(rig_recv(r, 1, 0, 8000, 7), 0);
	assert_int_equal(rig_post(r, 0, WR_READ, 0, ROFF, 8000, 0, 1), 0);
	assert_int_equal(
		rig_post(r, 0, WR_SEND, 0, 0, 8000, WR_FENCE | WR_SIGNALED, 2),
		0);
	rig_settle(r);
	rig_expect(r, 0, true, 2, WC_SUCCESS);
	rig_expect(r, 1, false, 7, WC_SUCCESS);
	assert_true(rig_same(r, 1, 0, 8000, 9));
	read_done = rig_nth_op(r, 1, OP_READ_RESP_LAST, 0)->at_ns + RIG_HOP_NS;
	assert_true(rig_nth_op(r, 0, OP_SEND_FIRST, 0)->at_ns >= read_done);

	rig_forget(r);
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, ROFF, 8000, 0, 3), 0);
	assert_int_equal(
		rig_post(r, 0, WR_WRITE, 0, ROFF, 8, WR_FENCE | WR_SIGNALED, 4),
		0);
	rig_run(r, r->now_ns); /* no answer has come yet */
	assert_int_equal(rig_count(r, 0, OP_WRITE_ONLY), 1);
	rig_settle(r);
	rig_expect(r, 0, true, 4, WC_SUCCESS);
	rig_free(r);
}

/* Unacknowledged packets fit the destination's budget, and the ACKs that keep
 * it moving are asked for in time: no timeout is needed. */
static void destination_budget(void **state)
{
	uint32_t pkts;

	(void)state;
	for (pkts = 1; pkts <= 80; pkts += 7) {
		struct rig_conf c = { .dest_budget = pkts * charge(MTU),
				      .timeout = 255 };
		struct meter m = { 0 };
		struct rig *r = measured(&c, &m);
		uint32_t i, gap = 0, gap_max = 0;

		rig_fill(r, 0, 0, 1000000, pkts);
		assert_int_equal(rig_post(r, 0, WR_WRITE, 0, ROFF, 1000000,
					  WR_SIGNALED, 1),
				 0);
		rig_settle(r);
		rig_expect(r, 0, true, 1, WC_SUCCESS);
		assert_true(rig_same(r, 1, ROFF, 1000000, pkts));
		assert_true(m.unacked_max <= pkts);
		assert_true(m.unacked_max * 2 >= pkts);
		for (i = 0; i < 977; i++) {
			gap++;
			highest(gap, &gap_max);
			if (rig_nth(r, 0, i)->pkt.bth.ackreq)
				gap = 0;
		}
		assert_true(gap_max <= 16 && gap_max <= (pkts + 3) / 4 + 1);
		rig_free(r);
	}
}

enum { QPS = 24 };

static void post_on(struct rig *r, struct qp *qp, enum wr_opcode op,
		    uint32_t len, uint64_t wr_id)
{
	struct sge sge = rig_sge(r, 0, 0, len);
	struct send_wr wr = { .wr_id = wr_id,
			      .sge = &sge,
			      .num_sge = 1,
			      .opcode = op,
			      .flags = WR_SIGNALED,
			      .remote_addr = RIG_IOVA + ROFF,
			      .rkey = mr_key(r->h[1].mr) };

	assert_int_equal(qp_post_send(qp, &wr), 0);
	qp_ring(qp);
}

static void share(const struct rig_conf *c)
{
	struct rig *r = rig_new(c);
	struct qp *qp[QPS][2];
	struct wc wc;
	uint32_t i, k, done = 0;

	for (i = 0; i < QPS; i++)
		rig_pair(r, qp[i]);
	for (k = 0; k < 5; k++) {
		for (i = 0; i < QPS; i++)
			post_on(r, qp[i][0], k & 1 ? WR_READ : WR_WRITE,
				9000 - k, i);
	}
	rig_settle(r);
	while (rig_wc(r, 0, true, &wc)) {
		assert_int_equal(wc.status, WC_SUCCESS);
		done++;
	}
	assert_int_equal(done, 5 * QPS);
	assert_int_equal(rig_counter(r, 0, req_retransmits), 0);
	assert_true(rig_counter(r, 0, req_blocked_budget) > 0);
	for (i = 0; i < QPS; i++) {
		assert_int_equal(qp_destroy(qp[i][0]), 0);
		assert_int_equal(qp_destroy(qp[i][1]), 0);
	}
	rig_free(r);
}

/* Many QPs share a budget, without timers: nobody is forgotten, although each
 * sends less than what makes it ask for an ACK by itself. */
static void many_share_a_budget(void **state)
{
	uint32_t pkts, burst;

	(void)state;
	for (pkts = 1; pkts < 30; pkts += 4) {
		for (burst = 1; burst < 10; burst += 4) {
			struct rig_conf c = { .dest_budget = pkts * charge(MTU),
					      .read_budget = 3 * charge(MTU),
					      .timeout = 255,
					      .burst_pkts = burst,
					      .max_wr = 32 };

			share(&c);
		}
	}
}

/* Marks the nth packet with payload from one of the hosts. */
struct marker {
	int from;
	uint32_t nth;
};

static struct rig_fate mark_one(struct rig *r, int from, const struct pkt *p,
				void *arg)
{
	struct marker *m = arg;
	struct rig_fate f = { .copies = 1 };

	(void)r;
	if (from == m->from && p->payload_bytes && --m->nth == 0)
		f.ce = true;
	return f;
}

static void congested(struct rig_conf *c, enum wr_opcode op, struct marker *m)
{
	struct rig *r = rig_new(c);
	struct qp *qp[6][2];
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(qp); i++)
		rig_pair(r, qp[i]);
	r->fate = mark_one;
	r->fate_arg = m;
	for (i = 0; i < ARRAY_SIZE(qp); i++)
		post_on(r, qp[i][0], op, 40 * MTU, i);
	rig_settle(r);
	assert_int_equal(rig_counter(r, 0, req_write_msgs) +
				 rig_counter(r, 0, req_read_msgs),
			 6);
	assert_int_equal(rig_counter(r, 0, req_budget_cuts), 1);
	assert_int_equal(rig_counter(r, 0, req_retransmits), 0);
	for (i = 0; i < ARRAY_SIZE(qp); i++) {
		assert_int_equal(qp_destroy(qp[i][0]), 0);
		assert_int_equal(qp_destroy(qp[i][1]), 0);
	}
	rig_free(r);
}

/* A CNP halves the destination's budget for all of its QPs, a mark on a READ
 * response the one for READs. Without timers nobody is left with packets that
 * nobody acknowledges, though more is in flight than may be. */
static void congestion_shrinks(void **state)
{
	uint32_t nth;

	(void)state;
	for (nth = 1; nth < 60; nth++) {
		struct rig_conf c = { .dest_budget = 32 * charge(MTU),
				      .read_budget = 32 * charge(MTU),
				      .timeout = 255,
				      .burst_pkts = 1 + nth % 7,
				      .dcqcn = &dcqcn_connectx,
				      .max_wr = 32 };

		congested(&c, WR_WRITE, &(struct marker){ 0, nth });
		congested(&c, WR_READ, &(struct marker){ 1, nth });
	}
}

/* WRITEs to a process and READs by it share its buffer: both bounds are half as
 * soon as each side knows of both. */
static void both_ways_share(void **state)
{
	struct rig_conf c = { .dest_budget = 32 * charge(MTU),
			      .read_budget = 32 * charge(MTU),
			      .timeout = 255,
			      .max_wr = 32 };
	struct rig *r = rig_new(&c);
	struct meter m = { .acked_psn = 1 };

	(void)state;
	rig_fill(r, 0, ROFF, 8, 1);
	rig_fill(r, 1, ROFF, 8, 1);
	post_on(r, r->h[0].qp, WR_WRITE, 8, 1);
	assert_int_equal(rig_post(r, 1, WR_READ, 0, ROFF, 8, WR_SIGNALED, 2),
			 0);
	rig_settle(r);
	r->fate = metered;
	r->fate_arg = &m;
	post_on(r, r->h[0].qp, WR_WRITE, 100 * MTU, 3);
	rig_settle(r);
	assert_in_range(m.unacked_max, 10, 16);
	/* Not for ever. */
	rig_run(r, r->now_ns + 2000000000);
	m = (struct meter){ .acked_psn = m.acked_psn };
	post_on(r, r->h[0].qp, WR_WRITE, 100 * MTU, 4);
	rig_settle(r);
	assert_in_range(m.unacked_max, 24, 32);
	rig_free(r);
}

/* PSNs in flight stay below half of the space: a READ of 2^23 packets is not
 * asked for at once. */
static void psn_window(void **state)
{
	struct rig_conf c = { .mtu = MTU_256,
			      .no_peer = true,
			      .timeout = 255,
			      .max_rd_atomic = 16 };
	struct rig *r = rig_new(&c);
	uint32_t i, asked = 0;

	(void)state;
	for (i = 0; i < 2; i++)
		post_on(r, r->h[0].qp, WR_READ, 1u << 31, i);
	rig_run(r, 10);
	assert_true(r->logged > 0);
	for (i = 0; i < r->logged; i++)
		asked += rig_nth(r, 0, i)->pkt.ext.reth.len_bytes / 256;
	assert_true(asked >= 1u << 22 && asked < 1u << 23);
	rig_free(r);
}

/* A QP that dies gives back what it held: the others go on. */
static void the_dead_hold_nothing(void **state)
{
	struct rig_conf c = { .dest_budget = 2 * charge(MTU), .timeout = 255 };
	struct rig *r = rig_new(&c);
	struct qp_attr err = { .state = QP_STATE_ERR };
	struct qp *qp[2], *gone[2];

	(void)state;
	rig_pair(r, qp);
	rig_pair(r, gone);
	post_on(r, r->h[0].qp, WR_WRITE, 9000, 1);
	rig_run(r, 10);
	post_on(r, gone[0], WR_WRITE, 9000, 2);
	rig_run(r, 15);
	post_on(r, qp[0], WR_WRITE, 9000, 3);
	rig_run(r, 20);
	/* one that waits in line goes away altogether */
	assert_int_equal(qp_destroy(gone[0]), 0);
	assert_int_equal(qp_destroy(gone[1]), 0);
	assert_int_equal(rig_count(r, 0, OP_WRITE_FIRST), 1); /* blocked */
	assert_int_equal(qp_modify(r->h[0].qp, &err, QP_ATTR_STATE, 20), 0);
	rig_settle(r);
	assert_int_equal(rig_count(r, 0, OP_WRITE_LAST), 1);
	rig_expect(r, 0, true, 1, WC_WR_FLUSH_ERR);
	assert_int_equal(qp_destroy(qp[0]), 0);
	assert_int_equal(qp_destroy(qp[1]), 0);
	rig_free(r);
}

/* Credits: SSNs up to MSN + credits go, one packet more probes once nothing is
 * in flight; WRITE needs none; 31 lifts the limit. */
static void credits(void **state)
{
	struct rig_conf c = { .no_peer = true, .timeout = 255 };
	struct rig *r = rig_new(&c);
	uint8_t two = aeth_syndrome(AETH_ACK, aeth_credit_code(2));
	uint8_t none = aeth_syndrome(AETH_ACK, aeth_credit_code(0));
	uint64_t i;

	(void)state;
	assert_int_equal(aeth_credits(aeth_credit_code(2)), 2);
	assert_int_equal(rig_post(r, 0, WR_SEND, 0, 0, 8, 0, 0), 0);
	rig_run(r, 1);
	rig_inject_aeth(r, 0, 0, two, 1);
	rig_forget(r);
	for (i = 1; i < 7; i++)
		assert_int_equal(rig_post(r, 0, WR_SEND, 0, 0, 2000, 0, i), 0);
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, 0, 8, 0, 9), 0);
	rig_run(r, 2);
	assert_int_equal(r->logged, 4); /* SSN 2 and 3, two packets each */
	assert_true(rig_counter(r, 0, req_blocked_credit) > 0);
	rig_inject_aeth(r, 0, 2, none, 2);
	assert_int_equal(r->logged, 4);
	rig_inject_aeth(r, 0, 4, none, 3); /* nothing in flight: probe */
	assert_int_equal(r->logged, 5);
	assert_true(rig_nth(r, 0, 4)->pkt.bth.ackreq);
	rig_inject_aeth(r, 0, 4, two, 3); /* unsolicited news of credits */
	assert_int_equal(r->logged, 8);	  /* SSN 4's rest, SSN 5 */
	rig_inject_aeth(r, 0, 8, aeth_syndrome(AETH_ACK, 0x1f), 5);
	assert_int_equal(r->logged, 13);
	rig_free(r);
}

/* Once credits are known, a receiver that is short of WQEs sees one probe at a
 * time: nothing is sent in vain but that. */
static void credits_save_the_rest(void **state)
{
	struct rig_conf c = {
		.rnr_retry = 7, .min_rnr_timer = 1, .timeout = 255, .max_wr = 64
	};
	struct rig *r = rig_new(&c);
	uint64_t i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_equal(rig_recv(r, 1, 0, 4096, i), 0);
	assert_int_equal(rig_post(r, 0, WR_SEND, 0, 0, 3000, 0, 0), 0);
	rig_settle(r);
	for (i = 1; i < 60; i++)
		assert_int_equal(rig_post(r, 0, WR_SEND, 0, 0, 3000, 0, i), 0);
	for (i = 0; i < 60; i++) {
		struct wc wc;

		while (!rig_wc(r, 1, false, &wc))
			rig_run(r, r->now_ns + 5000);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(rig_recv(r, 1, 0, 4096, i + 4), 0);
	}
	rig_settle(r);
	assert_int_equal(rig_counter(r, 0, req_send_msgs), 60);
	assert_int_equal(rig_counter(r, 1, rx_drop_rnr_wait), 0);
	rig_free(r);
}

/* A WRITE takes no receive WQE: a peer that states none asks for no ACK of each
 * packet. */
static void test_write_needs_no_credit(void **state)
{
	struct rig_conf conf = { 0 };
	struct rig *r = rig_new(&conf);
	uint32_t asked = 0;

	(void)state;
	for (uint64_t i = 0; i < 2; i++) { /* the first ACK states 0 credits */
		rig_forget(r);
		assert_int_equal(
			rig_post(r, 0, WR_WRITE, 0, 0, 65536, WR_SIGNALED, i),
			0);
		rig_settle(r);
		rig_expect(r, 0, true, i, WC_SUCCESS);
	}
	for (uint32_t i = 0; i < r->logged; i++)
		asked += r->log[i].from == 0 && r->log[i].pkt.bth.ackreq;
	assert_int_equal(asked, 64 / 16);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_split),
		cmocka_unit_test(units_stay),
		cmocka_unit_test(rd_atomic_limit),
		cmocka_unit_test(no_rd_atomic),
		cmocka_unit_test(fence),
		cmocka_unit_test(destination_budget),
		cmocka_unit_test(many_share_a_budget),
		cmocka_unit_test(congestion_shrinks),
		cmocka_unit_test(both_ways_share),
		cmocka_unit_test(psn_window),
		cmocka_unit_test(the_dead_hold_nothing),
		cmocka_unit_test(credits),
		cmocka_unit_test(credits_save_the_rest),
		cmocka_unit_test(test_write_needs_no_credit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
