/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * faults_test.c - frames that wait: their order, their time, and a full pool.
 */
#include "rt/faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "wire/pkt.h"

#define LEN 32
#define T0 INT64_C(1000000000)

static struct engine engine;
static struct faults *faults;

static void start(const char *plan)
{
	struct fault_error err;

	engine_init(&engine);
	assert_int_equal(faults_new(plan, 1, T0, &engine, &faults, &err), 0);
}

static void stop(void)
{
	faults_free(faults);
	faults = NULL;
}

/* Offers a frame whose second byte is its number. */
static bool send_one(uint8_t number, int64_t now_ns, struct fault_tx *ret)
{
	uint8_t room[PKT_MAX] = { OPCODE(TRANSPORT_RC, OP_SEND_ONLY), number };

	*ret = (struct fault_tx){ .len_bytes = LEN, .flow.tos = 2 };
	return faults_tx(faults, ret, room, now_ns);
}

/* The number of the next delayed frame that is due, or -1. */
static int next_due(int64_t now_ns)
{
	uint8_t room[PKT_MAX] = { 0 };
	struct fault_tx t;

	if (!faults_tx_next(faults, &t, room, now_ns))
		return -1;
	assert_int_equal(t.len_bytes, LEN);
	assert_int_equal(t.flow.tos & ~1, 2);
	return room[1];
}

static void test_even_delay_keeps_order(void **state)
{
	struct fault_tx t;

	(void)state;
	start("delay=1ms");
	assert_true(faults_deadline(faults) == INT64_MAX);
	for (uint8_t i = 0; i < 10; i++)
		assert_false(send_one(i, T0 + i / 2, &t));
	assert_int_equal(faults_deadline(faults), T0 + 1000000);
	assert_false(faults_tx_due(faults, T0 + 999999));
	assert_int_equal(next_due(T0 + 999999), -1);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(next_due(T0 + 1000000 + i / 2 - 1), -1);
		assert_int_equal(next_due(T0 + 1000000 + i / 2), i);
	}
	assert_true(faults_deadline(faults) == INT64_MAX);
	assert_int_equal(engine.counters.fault_delay, 10);
	stop();
}

static void test_later_frames_overtake(void **state)
{
	struct fault_tx t;

	(void)state;
	start("delay=2ms,nth=1;delay=1ms,nth=2");
	assert_false(send_one(1, T0, &t));
	assert_false(send_one(2, T0, &t));
	assert_true(send_one(3, T0, &t));
	assert_int_equal(next_due(T0 + 2000000), 2);
	assert_int_equal(next_due(T0 + 2000000), 1);
	stop();
}

/* The original goes at once, or at its time, and the copy behind it: intact
 * even if the original is not. */
static void test_copies(void **state)
{
	struct fault_tx t;
	uint8_t room[PKT_MAX];

	(void)state;
	start("dup,corrupt=100%:1,ce");
	assert_true(send_one(1, T0, &t));
	assert_int_equal(t.flips, 1);
	assert_int_equal(t.flow.tos, 3);
	assert_true(faults_tx_next(faults, &t, room, T0));
	assert_int_equal(t.flips, 0);
	assert_int_equal(t.flow.tos, 3);
	assert_int_equal(room[1], 1);
	assert_int_equal(next_due(INT64_MAX), -1);
	stop();
	start("dup=5us,delay=1us,corrupt=100%:1");
	assert_false(send_one(1, T0, &t));
	assert_true(faults_tx_next(faults, &t, room, T0 + 1000));
	assert_int_equal(t.flips, 1);
	assert_false(faults_tx_next(faults, &t, room, T0 + 5999));
	assert_true(faults_tx_next(faults, &t, room, T0 + 6000));
	assert_int_equal(t.flips, 0);
	stop();
}

static void test_drop(void **state)
{
	struct fault_tx t;

	(void)state;
	start("drop,dup,nth=2");
	assert_true(send_one(1, T0, &t));
	assert_false(send_one(2, T0, &t));
	assert_int_equal(next_due(INT64_MAX), -1);
	assert_int_equal(engine.counters.fault_drop, 1);
	assert_int_equal(engine.counters.fault_dup, 0);
	stop();
}

/* Half the pool stops the core; the other half is what else may come; then
 * frames pass undelayed. Slots are used again. */
static void test_full_pool(void **state)
{
	struct fault_tx t;
	unsigned kept = 0, half = 0;

	(void)state;
	start("delay=1ms");
	for (int round = 0; round < 3; round++) {
		while (!send_one(7, T0, &t)) {
			kept++;
			half += faults_tx_room(faults);
		}
		assert_int_equal(kept, 2048);
		assert_int_equal(half, 1024);
		assert_int_equal(engine.counters.fault_overrun, round + 1);
		while (next_due(INT64_MAX) == 7)
			kept--;
		assert_int_equal(kept, 0);
		assert_true(faults_tx_room(faults));
		half = 0;
	}
	stop();
}

static void test_bad_plan(void **state)
{
	struct fault_error err;

	(void)state;
	assert_int_equal(faults_new("drop=1", 1, T0, &engine, &faults, &err),
			 -EINVAL);
	assert_int_equal(err.at, 5);
}

/* ---- receiving ---- */

/* The ICRC must not survive the hook; the byte that it does not cover must. */
static void test_spoil_breaks_the_icrc(void **state)
{
	struct rocev2_flow flow = { .src = gid_from_v4(0x0a000001),
				    .dst = gid_from_v4(0x0a000002),
				    .sport = 0xc000,
				    .df = true };
	uint8_t pkt[LEN + ICRC_BYTES] = { OPCODE(TRANSPORT_RC, OP_SEND_ONLY) };

	(void)state;
	start("corrupt,dir=rx");
	faults_rx_begin(faults, T0);
	for (int i = 0; i < 1000; i++) {
		rocev2_seal(&flow, pkt, LEN);
		assert_true(rocev2_icrc_ok(&flow, pkt, sizeof(pkt)));
		faults_spoil(faults, &flow, pkt, sizeof(pkt));
		assert_false(rocev2_icrc_ok(&flow, pkt, sizeof(pkt)));
		assert_int_equal(pkt[4], 0);
	}
	assert_int_equal(engine.counters.fault_corrupt, 1000);
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_even_delay_keeps_order),
		cmocka_unit_test(test_later_frames_overtake),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_drop),
		cmocka_unit_test(test_full_pool),
		cmocka_unit_test(test_bad_plan),
		cmocka_unit_test(test_spoil_breaks_the_icrc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
