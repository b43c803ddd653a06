/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Congestion control around a QP: marks make CNPs, CNPs lower the rate, the
 * pacer keeps to it.
 */
#include "core/cc/cc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/obj/qp.h"
#include "rc_rig.h"
#include "wire/net.h"

#define US 1000
#define MSG_BYTES 102400 /* 100 packets of the rig's MTU */
/* Of a full packet: IPv4, UDP, BTH, ICRC and Ethernet's share, as the link
 * layer says, and 1,024 bytes. */
#define PKT_BITS(r) ((1024 + 12 + overhead(r)) * 8ull)

static const struct dcqcn_params slow = {
	.line_rate_bps = 100000000000,
	.min_rate_bps = 1000000,
	.ai_rate_bps = 1000000,
	.hai_rate_bps = 1000000,
	.alpha_keep = 1020,
	.alpha_initial = DCQCN_ALPHA_ONE,
	.alpha_period_ns = 55000,
	.alpha_at_cnp = 1,
	.clamp_target = 1,
	.time_reset_ns = 1000000000, /* no recovery while a test looks */
	.threshold = 5,
	.cnp_interval_ns = 50000,
};

static uint32_t overhead(struct rig *r)
{
	return link_layer_rocev2.overhead_bytes(&qp_path(r->h[0].qp)->dgid);
}

static uint32_t count_cnps(const struct rig *r, int from,
			   const struct rig_log **ret_first)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->logged && i < RIG_LOG_MAX; i++) {
		const struct rig_log *l = &r->log[i];

		if (l->from != from || l->pkt.bth.opcode != OPCODE_CNP)
			continue;
		if (n++ == 0 && ret_first)
			*ret_first = l;
	}
	return n;
}

static struct rig_fate mark_data(struct rig *r, int from, const struct pkt *p,
				 void *arg)
{
	(void)r;
	(void)arg;
	return (struct rig_fate){ .copies = 1,
				  .ce = from == 0 && p->payload_bytes > 0 };
}

/* A rate set by hand, as if CNPs had done it. */
static void set_rate(struct rig *r, int h, uint64_t bps)
{
	struct qp *qp = r->h[h].qp;

	cc_cnp(qp, r->now_ns);
	assert_true(qp->cc.dcqcn.limited);
	qp->cc.dcqcn.rate_bps = bps;
	qp->cc.dcqcn.target_bps = bps;
}

static void test_cnp_format(void **state)
{
	struct rig_conf conf = { .dcqcn = &slow };
	struct rig *r = rig_new(&conf);
	const struct rig_log *l = NULL;

	(void)state;
	r->fate = mark_data;
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, 0, 64, WR_SIGNALED, 1), 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	assert_int_equal(count_cnps(r, 1, &l), 1);
	assert_non_null(l);
	assert_true(l->pkt.bth.becn);
	assert_false(l->pkt.bth.fecn);
	assert_int_equal(l->pkt.bth.dest_qpn, qp_num(r->h[0].qp));
	assert_int_equal(l->pkt.bth.psn.v, 0);
	assert_int_equal(l->pkt.payload_bytes, 0);
	assert_int_equal(l->tos, 48 << 2);
	assert_int_equal(rig_counter(r, 1, np_ecn_marked), 1);
	assert_int_equal(rig_counter(r, 1, np_cnp_sent), 1);
	assert_int_equal(rig_counter(r, 0, rp_cnp_handled), 1);
	assert_int_equal(rig_counter(r, 0, rp_rate_cuts), 1);
	rig_free(r);
}

/* Marks come faster than the interval: one CNP at once, then one for each
 * interval in which a mark comes. */
static void test_cnp_interval(void **state)
{
	struct rig_conf conf = { .dcqcn = &slow, .tx_gap_ns = 2 * US };
	struct rig *r = rig_new(&conf);
	int64_t last = INT64_MIN;
	uint32_t n;

	(void)state;
	r->fate = mark_data;
	set_rate(r, 0, 90000000000);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rig_post(r, 0, WR_WRITE, 0, 0, MSG_BYTES,
					  WR_SIGNALED, 1),
				 0);
	rig_settle(r);
	n = count_cnps(r, 1, NULL);
	assert_true(n >= 2);
	assert_int_equal(n, rig_counter(r, 0, rp_cnp_handled) - 1);
	for (uint32_t i = 0; i < r->logged; i++) {
		if (r->log[i].pkt.bth.opcode != OPCODE_CNP)
			continue;
		assert_true(last == INT64_MIN ||
			    r->log[i].at_ns - last >= 50 * US);
		last = r->log[i].at_ns;
	}
	assert_int_equal(rig_counter(r, 1, np_ecn_marked), 300);
	rig_free(r);
}

/* n packets take n - 1 packet times, to two ticks of the timer wheel. */
static void check_spacing(struct rig *r, int from, enum op first, uint64_t bps)
{
	int64_t begin = 0, end = 0;
	int64_t want;
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->logged; i++) {
		const struct rig_log *l = &r->log[i];

		if (l->from != from || l->pkt.payload_bytes == 0)
			continue;
		if (n++ == 0) {
			assert_int_equal(opcode_op(l->pkt.bth.opcode), first);
			begin = l->at_ns;
		}
		end = l->at_ns;
	}
	assert_int_equal(n, MSG_BYTES / 1024);
	want = (int64_t)((n - 1) * PKT_BITS(r) * 1000000000 / bps);
	assert_in_range(end - begin, want - 2 * TWHEEL_TICK_NS,
			want + want / 100 + 2 * TWHEEL_TICK_NS);
}

static void test_pace_write(void **state)
{
	static const uint64_t rates[] = { 100000000, 1000000000, 8000000000,
					  25000000000 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rates); i++) {
		struct rig_conf conf = { .dcqcn = &slow, .timeout = 20 };
		struct rig *r = rig_new(&conf);

		set_rate(r, 0, rates[i]);
		rig_fill(r, 0, 0, MSG_BYTES, 3);
		assert_int_equal(rig_post(r, 0, WR_WRITE, 0, 0, MSG_BYTES,
					  WR_SIGNALED, 1),
				 0);
		rig_settle(r);
		rig_expect(r, 0, true, 1, WC_SUCCESS);
		assert_true(rig_same(r, 1, 0, MSG_BYTES, 3));
		check_spacing(r, 0, OP_WRITE_FIRST, rates[i]);
		assert_int_equal(rig_counter(r, 0, req_retransmits), 0);
		assert_true(rig_counter(r, 0, req_paced) > 0);
		rig_free(r);
	}
}

/* The one who has the data is the one who is slowed. */
static void test_pace_read(void **state)
{
	struct rig_conf conf = { .dcqcn = &slow, .timeout = 20 };
	struct rig *r = rig_new(&conf);

	(void)state;
	set_rate(r, 1, 500000000);
	rig_fill(r, 1, 0, MSG_BYTES, 4);
	assert_int_equal(
		rig_post(r, 0, WR_READ, 0, 0, MSG_BYTES, WR_SIGNALED, 1), 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	assert_true(rig_same(r, 0, 0, MSG_BYTES, 4));
	check_spacing(r, 1, OP_READ_RESP_FIRST, 500000000);
	rig_free(r);
}

/* A QP whose own data waits for its rate answers its peer at once. */
static void test_acks_pass(void **state)
{
	struct rig_conf conf = { .dcqcn = &slow, .timeout = 20 };
	struct rig *r = rig_new(&conf);
	int64_t begin;

	(void)state;
	set_rate(r, 0, 1000000); /* 8 ms and more a packet */
	for (int i = 0; i < 4; i++)
		assert_int_equal(rig_post(r, 0, WR_WRITE, 0, 0, 1024,
					  WR_SIGNALED, (uint64_t)i),
				 0);
	rig_run(r, r->now_ns + 100 * US);
	begin = r->now_ns;
	assert_int_equal(rig_post(r, 1, WR_WRITE, 0, 0, 64, WR_SIGNALED, 9), 0);
	rig_run(r, begin + 10 * US);
	rig_expect(r, 1, true, 9, WC_SUCCESS);
	rig_settle(r);
	for (int i = 0; i < 4; i++)
		rig_expect(r, 0, true, (uint64_t)i, WC_SUCCESS);
	assert_true(r->now_ns - begin > 3 * 8000 * US);
	rig_free(r);
}

static void test_without(void **state)
{
	struct rig_conf conf = { 0 };
	struct rig *r = rig_new(&conf);

	(void)state;
	r->fate = mark_data;
	assert_int_equal(
		rig_post(r, 0, WR_WRITE, 0, 0, MSG_BYTES, WR_SIGNALED, 1), 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	assert_int_equal(rig_counter(r, 1, np_ecn_marked), 100);
	assert_int_equal(rig_counter(r, 1, np_cnp_sent), 0);
	cc_cnp(r->h[0].qp, r->now_ns);
	assert_int_equal(rig_counter(r, 0, rp_cnp_ignored), 1);
	assert_int_equal(rig_counter(r, 0, rp_cnp_handled), 0);
	rig_free(r);
}

static void inject_cnp(struct rig *r, bool from_peer)
{
	uint8_t buf[PKT_HDR_MAX];
	struct pkt p = { .bth = { .opcode = OPCODE_CNP,
				  .becn = true,
				  .pkey = BTH_PKEY_DEFAULT,
				  .dest_qpn = qp_num(r->h[0].qp) } };
	struct rx_frame f = { .pkt = buf,
			      .src = qp_path(r->h[0].qp)->dgid,
			      .dst = qp_path(r->h[0].qp)->sgid };

	f.len_bytes = (uint32_t)pkt_encode_headers(&p, buf);
	assert_int_equal(f.len_bytes, 28);
	f.src.raw[15] ^= !from_peer;
	hca_rx(r->h[0].hca, &f, r->now_ns);
}

/* Strangers cannot slow a flow. */
static void test_hostile(void **state)
{
	struct rig_conf conf = { .dcqcn = &slow };
	struct rig *r = rig_new(&conf);

	(void)state;
	inject_cnp(r, false);
	assert_int_equal(rig_counter(r, 0, rx_drop_src), 1);
	assert_int_equal(rig_counter(r, 0, rp_cnp_handled), 0);
	inject_cnp(r, true);
	assert_int_equal(rig_counter(r, 0, rp_cnp_handled), 1);
	for (int i = 0; i < 1000; i++)
		inject_cnp(r, true);
	assert_int_equal(r->h[0].qp->cc.dcqcn.rate_bps, slow.min_rate_bps);
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, 0, 64, WR_SIGNALED, 1), 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	rig_free(r);
}

/* To ERR while a frame waits for its time: flushed at once, and the timers are
 * gone; RESET forgets the rate. */
static void test_error_and_reset(void **state)
{
	struct rig_conf conf = { .dcqcn = &slow };
	struct rig *r = rig_new(&conf);
	struct qp_attr err = { .state = QP_STATE_ERR };
	struct qp_attr reset = { .state = QP_STATE_RESET };
	struct qp *qp = r->h[0].qp;

	(void)state;
	set_rate(r, 0, 1000000);
	for (int i = 0; i < 2; i++)
		assert_int_equal(rig_post(r, 0, WR_WRITE, 0, 0, 1024,
					  WR_SIGNALED, (uint64_t)i),
				 0);
	rig_run(r, r->now_ns + 100 * US);
	rig_expect(r, 0, true, 0, WC_SUCCESS);
	assert_true(timer_armed(&qp->cc.pace));
	assert_true(timer_armed(&qp->cc.rate));
	assert_int_equal(qp_modify(qp, &err, QP_ATTR_STATE, r->now_ns), 0);
	rig_expect(r, 0, true, 1, WC_WR_FLUSH_ERR);
	assert_false(timer_armed(&qp->cc.pace));
	assert_false(timer_armed(&qp->cc.rate));
	assert_int_equal(qp_modify(qp, &reset, QP_ATTR_STATE, r->now_ns), 0);
	assert_false(qp->cc.dcqcn.limited);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cnp_format),
		cmocka_unit_test(test_cnp_interval),
		cmocka_unit_test(test_pace_write),
		cmocka_unit_test(test_pace_read),
		cmocka_unit_test(test_acks_pass),
		cmocka_unit_test(test_without),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_error_and_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
