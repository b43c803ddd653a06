/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The wheel against a model: a flat array of timers and, for each, the tick in
 * which it is due. The model is asked at each callback whether this was the
 * one to fire, and after each advance whether one was forgotten.
 */
#include "base/twheel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/assert.h"
#include "base/prng.h"

#define TIMERS 48
#define NS(tick) ((tick)*TWHEEL_TICK_NS)

struct model_timer {
	struct timer t;
	bool armed;
	bool next_advance; /* armed in the last tick of the running one */
	int64_t due_tick;
};

static struct {
	struct twheel wheel;
	struct prng rng;
	struct model_timer timer[TIMERS];
	int64_t tick;	/* being fired, or time of the last advance */
	int64_t target; /* of the running advance; -1 outside */
	int64_t now_ns;
	unsigned fired;
	bool act; /* callbacks arm and cancel */
} m;

static int64_t ceil_tick(int64_t ns)
{
	int64_t t = ns >> 10;

	return t * 1024 == ns ? t : t + 1;
}

static void model_arm(struct model_timer *x, int64_t expiry_ns)
{
	int64_t earliest = m.tick + (m.target > m.tick);

	timer_arm(&m.wheel, &x->t, expiry_ns);
	assert_true(timer_armed(&x->t));
	x->armed = true;
	x->due_tick = ceil_tick(expiry_ns);
	if (x->due_tick < earliest)
		x->due_tick = earliest;
	x->next_advance = x->due_tick == m.target && m.target == m.tick;
}

static void model_cancel(struct model_timer *x)
{
	timer_cancel(&x->t);
	x->armed = false;
	assert_false(timer_armed(&x->t));
}

/* A wait of any magnitude, past ones and the end of time included. */
static int64_t random_expiry(void)
{
	unsigned bits = (unsigned)prng_below(&m.rng, 63);
	int64_t wait = (int64_t)(prng_u64(&m.rng) >> (63 - bits));
	int64_t base = NS(m.tick);

	if (prng_chance(&m.rng, 100000))
		return base - (wait < base ? wait : base);
	if (prng_chance(&m.rng, 10000))
		return INT64_MAX - (int64_t)prng_below(&m.rng, 4096);
	if (prng_chance(&m.rng, 700000))
		wait &= 0x3ffffff; /* mostly near ones */
	return wait > INT64_MAX - base ? INT64_MAX : base + wait;
}

static void random_act(struct model_timer *self)
{
	for (uint64_t n = prng_below(&m.rng, 3); n > 0; n--) {
		struct model_timer *x = &m.timer[prng_below(&m.rng, TIMERS)];

		if (self && prng_chance(&m.rng, 300000))
			x = self;
		if (prng_chance(&m.rng, 250000))
			model_cancel(x);
		else
			model_arm(x, random_expiry());
	}
}

static bool due(const struct model_timer *x)
{
	return x->armed && x->due_tick <= m.target && !x->next_advance;
}

static void on_fire(struct timer *t, int64_t now_ns)
{
	struct model_timer *x = CONTAINER_OF(t, struct model_timer, t);

	assert_false(timer_armed(t));
	assert_true(due(x));
	assert_int_equal(now_ns, m.now_ns);
	assert_true(now_ns >= t->expiry_ns);
	for (int i = 0; i < TIMERS; i++)
		assert_false(due(&m.timer[i]) &&
			     m.timer[i].due_tick < x->due_tick);
	x->armed = false;
	m.tick = x->due_tick;
	m.fired++;
	if (m.act)
		random_act(x);
}

static void model_init(uint64_t seed, int64_t now_ns)
{
	memset(&m, 0, sizeof(m));
	prng_init(&m.rng, seed);
	m.tick = now_ns >> 10;
	m.target = -1;
	twheel_init(&m.wheel, now_ns);
	for (int i = 0; i < TIMERS; i++) {
		timer_init(&m.timer[i].t, on_fire);
		assert_false(timer_armed(&m.timer[i].t));
	}
}

static void model_advance(int64_t now_ns)
{
	m.target = now_ns >> 10;
	m.now_ns = now_ns;
	twheel_advance(&m.wheel, now_ns);
	for (int i = 0; i < TIMERS; i++) {
		assert_false(due(&m.timer[i]));
		m.timer[i].next_advance = false;
	}
	m.tick = m.target;
	m.target = -1;
}

/* The tick of the earliest armed timer, -1 without any. */
static int64_t model_next(void)
{
	int64_t next = -1;

	for (int i = 0; i < TIMERS; i++)
		if (m.timer[i].armed &&
		    (next < 0 || m.timer[i].due_tick < next))
			next = m.timer[i].due_tick;
	return next;
}

static void check_deadline(void)
{
	int64_t d = twheel_deadline(&m.wheel), next = model_next();

	if (next < 0 || next > TWHEEL_NEVER >> 10)
		assert_true(next > 0 || d == TWHEEL_NEVER);
	else
		assert_true(d <= NS(next));
	assert_true(d >= NS(m.tick));
}

/* By a little, to the deadline, to around somebody's expiry, or by up to a
 * minute; not to the end of time, which must last for all steps. */
static int64_t random_now(void)
{
	int64_t now = NS(m.tick), d;
	struct model_timer *x = &m.timer[prng_below(&m.rng, TIMERS)];

	switch (prng_below(&m.rng, 4)) {
	case 0:
		d = twheel_deadline(&m.wheel);
		return d < now + (INT64_C(1) << 40) ? d : now;
	case 1:
		d = (int64_t)prng_below(&m.rng, 3) - 1;
		if (x->armed && x->due_tick > m.tick &&
		    x->due_tick < m.tick + (1 << 26))
			return NS(x->due_tick) + d;
		return now;
	case 2:
		return now + (int64_t)prng_below(&m.rng, 5000);
	default:
		return now + (int64_t)(prng_u64(&m.rng) >>
				       (28 + prng_below(&m.rng, 36)));
	}
}

static void run(uint64_t seed, int64_t start_ns, int steps)
{
	model_init(seed, start_ns);
	m.act = true;
	for (int i = 0; i < steps; i++) {
		random_act(NULL);
		check_deadline();
		model_advance(random_now());
		check_deadline();
	}
	m.act = false;
	assert_true(m.fired > (unsigned)steps / 8);
	model_advance(INT64_MAX);
	for (int i = 0; i < TIMERS; i++)
		if (m.timer[i].armed)
			assert_true(m.timer[i].due_tick > INT64_MAX >> 10);
}

static void test_against_model(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 60; seed++)
		run(seed, 0, 1500);
}

/* Starts where many levels are about to turn, and at a day of this century. */
static void test_against_model_late_start(void **state)
{
	(void)state;
	for (uint64_t seed = 100; seed < 130; seed++) {
		run(seed, (INT64_C(1) << (16 + seed % 46)) - 3000, 500);
		run(seed, INT64_C(1790000000) * 1000000000, 500);
	}
}

/* Sleeping until each deadline, a far timer costs a wake-up a level. */
static void test_few_wakeups(void **state)
{
	(void)state;
	for (int bits = 0; bits < 60; bits++) {
		int64_t expiry = (INT64_C(1) << bits) + 12345;
		int wakeups = 0;

		model_init(1, 777);
		model_arm(&m.timer[0], expiry);
		while (m.timer[0].armed) {
			model_advance(twheel_deadline(&m.wheel));
			wakeups++;
		}
		assert_int_equal(m.now_ns, NS(ceil_tick(expiry)));
		assert_in_range(wakeups, 1, TWHEEL_LEVELS);
		assert_int_equal(twheel_deadline(&m.wheel), TWHEEL_NEVER);
	}
}

static void test_past_expiry_fires_in_the_same_tick(void **state)
{
	(void)state;
	model_init(1, NS(1000) + 500);
	model_arm(&m.timer[0], 5);
	assert_int_equal(twheel_deadline(&m.wheel), NS(1000));
	model_advance(NS(1000) + 500);
	assert_int_equal(m.fired, 1);
	model_arm(&m.timer[0], -5);
	model_advance(NS(1000) + 501);
	assert_int_equal(m.fired, 2);
}

static void test_rearm_moves(void **state)
{
	(void)state;
	model_init(1, 0);
	model_arm(&m.timer[0], NS(10));
	model_arm(&m.timer[0], NS(5000));
	model_advance(NS(4999));
	assert_int_equal(m.fired, 0);
	model_arm(&m.timer[0], NS(5001));
	model_arm(&m.timer[0], NS(5000) + 1);
	model_advance(NS(5001) - 1);
	assert_int_equal(m.fired, 0);
	model_advance(NS(5001));
	assert_int_equal(m.fired, 1);
	model_advance(NS(100000));
	assert_int_equal(m.fired, 1);
}

static void test_time_going_back_is_ignored(void **state)
{
	(void)state;
	model_init(1, NS(100));
	twheel_advance(&m.wheel, NS(50));
	assert_int_equal(m.wheel.now_tick, 100);
	model_arm(&m.timer[0], NS(100));
	twheel_advance(&m.wheel, NS(99));
	assert_true(timer_armed(&m.timer[0].t));
	model_advance(NS(100));
	assert_int_equal(m.fired, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_model),
		cmocka_unit_test(test_against_model_late_start),
		cmocka_unit_test(test_few_wakeups),
		cmocka_unit_test(test_past_expiry_fires_in_the_same_tick),
		cmocka_unit_test(test_rearm_moves),
		cmocka_unit_test(test_time_going_back_is_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
