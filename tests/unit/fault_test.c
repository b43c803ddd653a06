/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fault_test.c - the language of fault plans, and what a plan decides.
 */
#include "fabric/fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/bth.h"
#include "wire/exth.h"
#include "wire/opcode.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define RC(op) OPCODE(TRANSPORT_RC, OP_##op)
#define DID(a) (1u << FAULT_##a)

static struct fault_plan plan;

static void start(const char *text)
{
	struct fault_error err = { 0 };

	if (fault_parse(&plan, text, &err))
		fail_msg("\"%s\": at %u: %s", text, err.at, err.why);
	fault_start(&plan, 1, 0);
}

/* A packet of 64 bytes on the wire, ECT(0), with this AETH if it has one. */
static struct fault_verdict judge_at(enum fault_dir dir, uint8_t opcode,
				     uint32_t qpn, uint8_t syndrome,
				     int64_t now_ns)
{
	uint8_t bytes[60] = { opcode };
	struct fault_pkt pkt = { bytes, sizeof(bytes), 64, 2 };

	put_be24(bytes + 5, qpn);
	bytes[BTH_BYTES] = syndrome;
	return fault_judge(&plan, dir, &pkt, now_ns);
}

static struct fault_verdict judge(uint8_t opcode)
{
	return judge_at(FAULT_TX, opcode, 1, 0, 0);
}

/* ---- the parser ---- */

static const struct effect_case {
	const char *text;
	enum fault_action action;
	uint32_t ppm;
	int64_t min_ns, max_ns;
	uint32_t flips;
} effect_cases[] = {
	{ "drop", FAULT_DROP, 1000000, 0, 0, 0 },
	{ "drop=1%", FAULT_DROP, 10000, 0, 0, 0 },
	{ "drop=0.5%", FAULT_DROP, 5000, 0, 0, 0 },
	{ "drop=0.0001%", FAULT_DROP, 1, 0, 0, 0 },
	{ "drop=0%", FAULT_DROP, 0, 0, 0, 0 },
	{ "drop=100%", FAULT_DROP, 1000000, 0, 0, 0 },
	{ "drop=100.000000%", FAULT_DROP, 1000000, 0, 0, 0 },
	{ "drop=250ppm", FAULT_DROP, 250, 0, 0, 0 },
	{ "drop=7.0ppm", FAULT_DROP, 7, 0, 0, 0 },
	{ "DROP=1PPM", FAULT_DROP, 1, 0, 0, 0 },
	{ "  drop = 1% , dir = rx ", FAULT_DROP, 10000, 0, 0, 0 },
	{ "dup", FAULT_DUP, 1000000, 0, 0, 0 },
	{ "dup=2%", FAULT_DUP, 20000, 0, 0, 0 },
	{ "dup=5us", FAULT_DUP, 1000000, 5 * US, 5 * US, 0 },
	{ "dup=2%:0-5us", FAULT_DUP, 20000, 0, 5 * US, 0 },
	{ "reorder", FAULT_REORDER, 1000000, 0, 100 * US, 0 },
	{ "reorder=2%", FAULT_REORDER, 20000, 0, 100 * US, 0 },
	{ "reorder=2%:200us", FAULT_REORDER, 20000, 0, 200 * US, 0 },
	{ "reorder=2%:1us-2us", FAULT_REORDER, 20000, US, 2 * US, 0 },
	{ "delay=1ms", FAULT_DELAY, 1000000, MS, MS, 0 },
	{ "delay=1.5us", FAULT_DELAY, 1000000, 1500, 1500, 0 },
	{ "delay=1ns", FAULT_DELAY, 1000000, 1, 1, 0 },
	{ "delay=60s", FAULT_DELAY, 1000000, 60000 * MS, 60000 * MS, 0 },
	{ "delay=1ms-2ms", FAULT_DELAY, 1000000, MS, 2 * MS, 0 },
	{ "delay=5%:1ms-2ms", FAULT_DELAY, 50000, MS, 2 * MS, 0 },
	{ "corrupt", FAULT_CORRUPT, 1000000, 0, 0, 0 },
	{ "corrupt=0.1%", FAULT_CORRUPT, 1000, 0, 0, 0 },
	{ "corrupt=0.1%:3", FAULT_CORRUPT, 1000, 0, 0, 3 },
	{ "ce=5%", FAULT_CE, 50000, 0, 0, 0 },
	{ "blackhole", FAULT_BLACKHOLE, 1000000, 0, 0, 0 },
};

static void test_parse_effects(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(effect_cases); i++) {
		const struct effect_case *c = &effect_cases[i];
		const struct fault_effect *e = &plan.rule[0].effect[c->action];

		start(c->text);
		assert_int_equal(plan.num_rules, 1);
		for (int a = 0; a < FAULT_ACTIONS; a++)
			assert_int_equal(plan.rule[0].effect[a].on,
					 a == (int)c->action);
		assert_int_equal(e->ppm, c->ppm);
		assert_int_equal(e->min_ns, c->min_ns);
		assert_int_equal(e->max_ns, c->max_ns);
		assert_int_equal(e->flips, c->flips);
	}
}

static const struct bad_case {
	const char *text;
	uint32_t at, len;
	const char *why; /* a part of the message */
} bad_cases[] = {
	{ "", 0, 0, "an action" },
	{ ";", 0, 0, "an action" },
	{ "drop;", 5, 0, "an action" },
	{ "drop,", 5, 0, "an action" },
	{ "drop=1%,drap=1%", 8, 4, "an action" },
	{ "drop=", 5, 0, "a rate" },
	{ "drop=1", 5, 1, "a rate" },
	{ "drop=0.01", 5, 4, "a rate" },
	{ "drop=101%", 5, 4, "a rate" },
	{ "drop=-1%", 5, 3, "a rate" },
	{ "drop=1%%", 5, 3, "a rate" },
	{ "drop=.5%", 5, 3, "a rate" },
	{ "drop=1.%", 5, 3, "a rate" },
	{ "drop=0.00001%", 5, 8, "a rate" },
	{ "drop=0.5ppm", 5, 6, "a rate" },
	{ "drop=1000001ppm", 5, 10, "a rate" },
	{ "drop=99999999999999999999999%", 5, 24, "a rate" },
	{ "drop=1%:1ms", 5, 6, "a rate" },
	{ "drop,drop", 5, 4, "once" },
	{ "delay", 5, 0, "a value" },
	{ "delay=1%", 8, 0, "needs a time" },
	{ "delay=1", 6, 1, "TIME" },
	{ "delay=1ms:1%", 6, 3, "a rate" },
	{ "delay=1%:1", 9, 1, "a time" },
	{ "delay=1%:1ms:2ms", 9, 7, "a time" },
	{ "delay=61s", 6, 3, "TIME" },
	{ "delay=0.1ns", 6, 5, "TIME" },
	{ "delay=2ms-1ms", 6, 7, "TIME" },
	{ "corrupt=1%:4", 11, 1, "bits" },
	{ "corrupt=1%:0", 11, 1, "bits" },
	{ "blackhole=1%", 10, 2, "no value" },
	{ "drop,dir=up", 9, 2, "tx, rx or both" },
	{ "drop,dir", 8, 0, "a value" },
	{ "drop,op=RC_SEND", 8, 7, "an opcode" },
	{ "drop,op=send+", 13, 0, "an opcode" },
	{ "drop,op=ack+sendd", 12, 5, "an opcode" },
	{ "drop,qpn=0x1000000", 9, 9, "a QP number" },
	{ "drop,qpn=0x", 9, 2, "a QP number" },
	{ "drop,nth=0", 9, 1, "from 1" },
	{ "drop,count=-1", 11, 2, "from 1" },
	{ "drop,after=5", 11, 1, "a time" },
	{ "drop,seed=x", 10, 1, "a seed" },
	{ "drop,seed=0x10000000000000000", 10, 19, "a seed" },
	{ "seed=1;drop,seed=2", 17, 1, "a seed already" },
	{ "seed=1", 0, 6, "needs an action" },
	{ "drop;dir=rx", 5, 6, "needs an action" },
	{ "drop;dir=rx,seed=1", 5, 13, "needs an action" },
	{ "drop;;drop", 5, 0, "an action" },
	{ "drop;drop;drop;drop;drop;drop;drop;drop;drop;drop;drop;drop;drop;"
	  "drop;drop;drop;ce=1%",
	  80, 5, "16 rules" },
};

static void test_parse_errors(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad_cases); i++) {
		const struct bad_case *c = &bad_cases[i];
		struct fault_error err = { 0 };

		if (fault_parse(&plan, c->text, &err) != -EINVAL)
			fail_msg("\"%s\" was accepted", c->text);
		if (err.at != c->at || err.len != c->len ||
		    !strstr(err.why, c->why))
			fail_msg("\"%s\": %u+%u: %s", c->text, err.at, err.len,
				 err.why);
	}
}

static void test_parse_many_rules(void **state)
{
	(void)state;
	start("drop=1%,dup=0.5%,reorder=2%:200us,delay=1ms,corrupt=0.1%,ce=5%,"
	      "dir=rx;drop,op=RC_READ_RESP_MIDDLE,nth=3;seed=0x7");
	assert_int_equal(plan.num_rules, 2);
	assert_true(plan.has_seed);
	assert_int_equal(plan.seed, 7);
	assert_false(plan.rule[0].dir[FAULT_TX]);
	assert_true(plan.rule[0].dir[FAULT_RX]);
	assert_int_equal(plan.rule[1].nth, 3);
	assert_int_equal(plan.rule[1].count, 1);
}

/* ---- selection ---- */

static const struct op_case {
	const char *names;
	uint8_t yes[4], no[4];
} op_cases[] = {
	{ "RC_READ_RESP_MIDDLE",
	  { RC(READ_RESP_MIDDLE) },
	  { RC(READ_RESP_FIRST), RC(READ_REQUEST), RC(SEND_MIDDLE) } },
	{ "read_resp_middle",
	  { RC(READ_RESP_MIDDLE), OPCODE(TRANSPORT_XRC, OP_READ_RESP_MIDDLE) },
	  { RC(READ_RESP_FIRST), RC(SEND_MIDDLE) } },
	{ "send",
	  { RC(SEND_FIRST), RC(SEND_LAST_INV),
	    OPCODE(TRANSPORT_UC, OP_SEND_ONLY),
	    OPCODE(TRANSPORT_UD, OP_SEND_ONLY_IMM) },
	  { RC(WRITE_FIRST), RC(ACK), RC(READ_RESP_ONLY) } },
	{ "write",
	  { RC(WRITE_FIRST), RC(WRITE_LAST_IMM), RC(WRITE_ONLY) },
	  { RC(SEND_FIRST), RC(ATOMIC_ACK), RC(READ_REQUEST) } },
	{ "read",
	  { RC(READ_REQUEST) },
	  { RC(READ_RESP_FIRST), RC(READ_RESP_ONLY) } },
	{ "read_resp",
	  { RC(READ_RESP_FIRST), RC(READ_RESP_LAST), RC(READ_RESP_ONLY) },
	  { RC(READ_REQUEST), RC(ACK) } },
	{ "atomic",
	  { RC(CMP_SWAP), RC(FETCH_ADD) },
	  { RC(ATOMIC_ACK), RC(ACK) } },
	{ "response",
	  { RC(ACK), RC(ATOMIC_ACK), RC(READ_RESP_MIDDLE) },
	  { RC(READ_REQUEST), RC(SEND_ONLY), OPCODE_CNP } },
	{ "request+cnp",
	  { RC(READ_REQUEST), RC(SEND_ONLY), OPCODE_CNP },
	  { RC(ACK), RC(READ_RESP_MIDDLE) } },
	{ "ack + atomic_ack",
	  { RC(ACK), RC(ATOMIC_ACK) },
	  { RC(READ_RESP_MIDDLE), RC(SEND_ONLY) } },
	{ "middle",
	  { RC(SEND_MIDDLE), RC(WRITE_MIDDLE), RC(READ_RESP_MIDDLE) },
	  { RC(SEND_FIRST), RC(SEND_ONLY), OPCODE_CNP } },
	{ "only+last",
	  { RC(SEND_ONLY), RC(SEND_LAST), RC(READ_REQUEST) },
	  { RC(SEND_FIRST), RC(SEND_MIDDLE), RC(WRITE_MIDDLE) } },
};

static void test_opcodes(void **state)
{
	char text[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(op_cases); i++) {
		const struct op_case *c = &op_cases[i];

		strcpy(text, "drop,op=");
		strcat(text, c->names);
		start(text);
		/* 0, RC_SEND_FIRST, ends a list that is not full. */
		for (int k = 0; k < 4 && (k == 0 || c->yes[k]); k++)
			if (!judge(c->yes[k]).drop)
				fail_msg("%s leaves 0x%02x", text, c->yes[k]);
		for (int k = 0; k < 4 && (k == 0 || c->no[k]); k++)
			if (judge(c->no[k]).drop)
				fail_msg("%s drops 0x%02x", text, c->no[k]);
	}
}

static bool drops_ack(const char *text, enum aeth_kind kind)
{
	start(text);
	return judge_at(FAULT_TX, RC(ACK), 1, aeth_syndrome(kind, 3), 0).drop;
}

static void test_syndromes(void **state)
{
	(void)state;
	assert_true(drops_ack("drop,op=nak", AETH_NAK));
	assert_false(drops_ack("drop,op=nak", AETH_ACK));
	assert_false(drops_ack("drop,op=nak", AETH_RNR_NAK));
	assert_true(drops_ack("drop,op=rnr", AETH_RNR_NAK));
	assert_false(drops_ack("drop,op=rnr", AETH_NAK));
	assert_true(drops_ack("drop,op=rnr+nak", AETH_NAK));
	assert_true(drops_ack("drop,op=ack", AETH_NAK));
	assert_true(drops_ack("drop,op=ack", AETH_ACK));
	assert_true(drops_ack("drop", AETH_RNR_NAK));
}

/* Which of 20 packets are dropped, as bits from the first = bit 0. */
static uint32_t dropped(const char *text)
{
	uint32_t bits = 0;

	start(text);
	for (int i = 0; i < 20; i++) {
		/* Does not match and must not count. */
		assert_false(judge(RC(ACK)).drop);
		if (judge(RC(SEND_ONLY)).drop)
			bits |= 1u << i;
	}
	return bits;
}

static void test_nth(void **state)
{
	(void)state;
	assert_int_equal(dropped("drop,op=send,nth=1"), 1 << 0);
	assert_int_equal(dropped("drop,op=send,nth=3"), 1 << 2);
	assert_int_equal(dropped("drop,op=send,nth=3,count=2"), 3 << 2);
	assert_int_equal(dropped("drop,op=send,every=8"), 1 | 1 << 8 | 1 << 16);
	assert_int_equal(dropped("drop,op=send,every=8,nth=4"),
			 1 << 3 | 1 << 11 | 1 << 19);
	assert_int_equal(dropped("drop,op=send,every=8,nth=4,count=2"),
			 1 << 3 | 1 << 11);
	assert_int_equal(dropped("drop,op=send,count=2"), 3);
	assert_int_equal(dropped("drop,op=send"), 0xfffff);
	assert_int_equal(dropped("drop,op=send,nth=2;drop,op=send,nth=5"),
			 1 << 1 | 1 << 4);
}

static void test_directions_count_apart(void **state)
{
	(void)state;
	start("drop,nth=2");
	assert_false(judge_at(FAULT_TX, RC(SEND_ONLY), 1, 0, 0).drop);
	assert_false(judge_at(FAULT_RX, RC(SEND_ONLY), 1, 0, 0).drop);
	assert_true(judge_at(FAULT_RX, RC(SEND_ONLY), 1, 0, 0).drop);
	assert_true(judge_at(FAULT_TX, RC(SEND_ONLY), 1, 0, 0).drop);
	start("blackhole,dir=rx");
	assert_false(judge_at(FAULT_TX, RC(SEND_ONLY), 1, 0, 0).drop);
	assert_true(judge_at(FAULT_RX, RC(SEND_ONLY), 1, 0, 0).drop);
	start("blackhole,dir=tx");
	assert_true(judge_at(FAULT_TX, RC(SEND_ONLY), 1, 0, 0).drop);
	assert_false(judge_at(FAULT_RX, RC(SEND_ONLY), 1, 0, 0).drop);
}

static void test_qpn(void **state)
{
	(void)state;
	start("drop,qpn=0x123456");
	assert_true(judge_at(FAULT_RX, RC(ACK), 0x123456, 0, 0).drop);
	assert_false(judge_at(FAULT_RX, RC(ACK), 0x123457, 0, 0).drop);
	start("drop,qpn=0");
	assert_true(judge_at(FAULT_RX, RC(ACK), 0, 0, 0).drop);
	assert_false(judge_at(FAULT_RX, RC(ACK), 1, 0, 0).drop);
}

static bool dropped_at(int64_t now_ns)
{
	return judge_at(FAULT_TX, RC(SEND_ONLY), 1, 0, now_ns).drop;
}

static void test_time_span(void **state)
{
	const int64_t t0 = 77 * MS;

	(void)state;
	start("blackhole,after=1ms,for=2ms");
	fault_start(&plan, 0, t0);
	assert_false(dropped_at(t0));
	assert_false(dropped_at(t0 + MS - 1));
	assert_true(dropped_at(t0 + MS));
	assert_true(dropped_at(t0 + 3 * MS - 1));
	assert_false(dropped_at(t0 + 3 * MS));
	start("blackhole,after=1ms");
	assert_true(dropped_at(INT64_MAX));
}

/* ---- what happens ---- */

static void test_verdicts(void **state)
{
	struct fault_verdict v;

	(void)state;
	start("dup=5us,delay=1ms;delay=2ms,op=send");
	v = judge(RC(ACK));
	assert_false(v.drop);
	assert_true(v.copy);
	assert_int_equal(v.copy_ns, 5 * US);
	assert_int_equal(v.delay_ns, MS);
	assert_int_equal(v.did, DID(DUP) | DID(DELAY));
	v = judge(RC(SEND_ONLY));
	assert_int_equal(v.delay_ns, 3 * MS);
	/* A dropped packet meets nothing else. */
	start("dup,delay=1ms,drop,corrupt,ce;blackhole");
	v = judge(RC(ACK));
	assert_int_equal(v.did, DID(DROP) | DID(BLACKHOLE));
	assert_true(v.drop);
	assert_false(v.copy || v.mark_ce || v.flips || v.delay_ns);
	start("drop,op=write");
	v = judge(RC(SEND_ONLY));
	assert_int_equal(v.did, 0);
}

static void test_ce_only_of_capable(void **state)
{
	static const bool marks[4] = { false, true, true, false };
	uint8_t bytes[BTH_BYTES] = { RC(SEND_ONLY) };

	(void)state;
	start("ce");
	for (uint8_t ecn = 0; ecn < 4; ecn++) {
		struct fault_pkt pkt = { bytes, BTH_BYTES, 16,
					 (uint8_t)(0xb8 | ecn) };
		struct fault_verdict v = fault_judge(&plan, FAULT_RX, &pkt, 0);

		assert_int_equal(v.mark_ce, marks[ecn]);
		assert_int_equal(v.did, marks[ecn] ? DID(CE) : 0);
	}
}

/* Distinct bits inside the packet, each number of them, never in the byte that
 * no ICRC covers, every other byte hit. */
static void test_flips(void **state)
{
	bool hit[64] = { false };
	unsigned of[FAULT_FLIPS + 1] = { 0 };

	(void)state;
	start("corrupt");
	for (int i = 0; i < 5000; i++) {
		struct fault_verdict v = judge(RC(SEND_ONLY));

		assert_in_range(v.flips, 1, FAULT_FLIPS);
		of[v.flips]++;
		for (unsigned k = 0; k < v.flips; k++) {
			assert_in_range(v.bit[k], 0, 64 * 8 - 1);
			hit[v.bit[k] / 8] = true;
			for (unsigned j = 0; j < k; j++)
				assert_int_not_equal(v.bit[j], v.bit[k]);
		}
	}
	for (unsigned i = 0; i < sizeof(hit); i++)
		assert_int_equal(hit[i], i != 4);
	for (unsigned i = 1; i <= FAULT_FLIPS; i++)
		assert_in_range(of[i], 1200, 2200);
	start("corrupt=100%:2");
	assert_in_range(judge(RC(SEND_ONLY)).flips, 1, 2);
}

/* 100,000 packets: each rate within 5 sigma. */
static void test_rates(void **state)
{
	unsigned n[FAULT_ACTIONS] = { 0 }, copies = 0;
	int64_t sum_ns = 0;

	(void)state;
	start("drop=1%;dup=10%:0-5us,reorder=5%:200us,corrupt=0.1%,ce=50%");
	for (int i = 0; i < 100000; i++) {
		struct fault_verdict v = judge(RC(SEND_ONLY));

		for (int a = 0; a < FAULT_ACTIONS; a++)
			n[a] += v.did >> a & 1;
		copies += v.copy;
		assert_in_range(v.delay_ns, 0, 200 * US);
		assert_in_range(v.copy_ns, 0, 5 * US);
		sum_ns += v.delay_ns;
	}
	assert_in_range(n[FAULT_DROP], 1000 - 158, 1000 + 158);
	/* Of what is not dropped. */
	assert_in_range(n[FAULT_DUP], 9900 - 475, 9900 + 475);
	assert_int_equal(n[FAULT_DUP], copies);
	assert_in_range(n[FAULT_REORDER], 4950 - 345, 4950 + 345);
	assert_in_range(n[FAULT_CORRUPT], 99 - 50, 99 + 50);
	assert_in_range(n[FAULT_CE], 49500 - 791, 49500 + 791);
	assert_int_equal(n[FAULT_DELAY] + n[FAULT_BLACKHOLE], 0);
	/* Uniform: the mean is 100 us, within 5 sigma of 57.7 us / sqrt(n). */
	assert_in_range(sum_ns / n[FAULT_REORDER], 95 * US, 105 * US);
}

static void test_what_a_plan_can_do(void **state)
{
	(void)state;
	start("drop=1%;reorder=5%:200us,dup=0-5us;delay=1ms,op=ack,nth=1");
	assert_true(fault_does(&plan, FAULT_DROP));
	assert_true(fault_does(&plan, FAULT_DELAY));
	assert_false(fault_does(&plan, FAULT_CE));
	/* The delay hits once: not the plan's weather. */
	assert_int_equal(fault_late_ns(&plan), 205 * US);
}

/* ---- determinism ---- */

/* The first 64 drops in one direction. */
static uint64_t pattern(const char *text, uint64_t seed, bool both)
{
	struct fault_error err;
	uint64_t bits = 0;

	assert_int_equal(fault_parse(&plan, text, &err), 0);
	fault_start(&plan, seed, 0);
	for (int i = 0; i < 64; i++) {
		if (both)
			judge_at(FAULT_RX, RC(SEND_ONLY), 1, 0, 0);
		if (judge_at(FAULT_TX, RC(SEND_ONLY), 1, 0, 0).drop)
			bits |= UINT64_C(1) << i;
	}
	return bits;
}

static void test_seeds(void **state)
{
	uint64_t a = pattern("drop=50%", 7, false);

	(void)state;
	assert_true(a == pattern("drop=50%", 7, false));
	assert_true(a == pattern("drop=50%,seed=7", 8, false));
	assert_true(a != pattern("drop=50%", 8, false));
	/* Neither the other direction nor other rules and actions, nor
	 * packets that a rule does not select, change it. */
	assert_true(a == pattern("drop=50%", 7, true));
	assert_true(a == pattern("drop=50%,dup=20%,delay=10%:1us-5us;ce=3%", 7,
				 true));
	assert_true(a == pattern("drop=50%;drop=90%,op=write", 7, true));
	assert_true(a != pattern("ce=1%;drop=50%", 7, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse_effects),
		cmocka_unit_test(test_parse_errors),
		cmocka_unit_test(test_parse_many_rules),
		cmocka_unit_test(test_opcodes),
		cmocka_unit_test(test_syndromes),
		cmocka_unit_test(test_nth),
		cmocka_unit_test(test_directions_count_apart),
		cmocka_unit_test(test_qpn),
		cmocka_unit_test(test_time_span),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_ce_only_of_capable),
		cmocka_unit_test(test_flips),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_what_a_plan_can_do),
		cmocka_unit_test(test_seeds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
