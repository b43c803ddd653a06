/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Trajectories of a scripted train of CNPs against values that were worked out
 * by hand from the published rules, in exact fractions; what integers may
 * differ by is stated beside.
 */
#include "core/cc/dcqcn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/prng.h"

#define US 1000

/* One rounding of half a bit a step, and of one in 2^20 of alpha, which at
 * 100 Gb/s is 50 kb/s. */
#define RATE_SLACK_BPS 200000
#define ALPHA_SLACK 8

static void near_to(uint64_t got, uint64_t want, uint64_t slack)
{
	assert_in_range(got, want > slack ? want - slack : 0, want + slack);
}

static void rates(const struct dcqcn *d, uint64_t rate, uint64_t target)
{
	near_to(d->rate_bps, rate, RATE_SLACK_BPS);
	near_to(d->target_bps, target, RATE_SLACK_BPS);
}

/* g = 1/256: three CNPs 50 us apart, each halves, since alpha stays 1; then the
 * timer alone: four stages of fast recovery, additive increase from the fifth;
 * then one more CNP: alpha has decayed for eight periods of 55 us. */
static void test_paper(void **state)
{
	static const uint64_t rate[] = { 7500000000,  8750000000, 9375000000,
					 9687500000,  9863750000, 9971875000,
					 10045937500, 10102968750 };
	static const uint64_t target[] = { 10000000000, 10000000000,
					   10000000000, 10000000000,
					   10040000000, 10080000000,
					   10120000000, 10160000000 };
	const struct dcqcn_params *p = &dcqcn_paper;
	int64_t now = 0;
	struct dcqcn d;

	(void)state;
	dcqcn_init(&d);
	assert_int_equal(dcqcn_rate(&d, p), 40000000000);
	assert_true(dcqcn_deadline(&d) == INT64_MAX);
	for (uint64_t r = 20000000000; r >= 5000000000; r /= 2) {
		assert_true(dcqcn_cnp(&d, p, now));
		rates(&d, r, 2 * r);
		assert_int_equal(d.alpha, DCQCN_ALPHA_ONE);
		now += 50 * US;
	}
	now -= 50 * US;
	for (unsigned i = 0; i < ARRAY_SIZE(rate); i++) {
		assert_true(dcqcn_deadline(&d) == now + 55 * US);
		now += 55 * US;
		dcqcn_advance(&d, p, now - 1);
		if (i > 0)
			rates(&d, rate[i - 1], target[i - 1]);
		dcqcn_advance(&d, p, now);
		rates(&d, rate[i], target[i]);
	}
	assert_true(dcqcn_cnp(&d, p, now + 1 * US));
	rates(&d, 5207201814, 10102968750);
	near_to(d.alpha, 1016379, ALPHA_SLACK);
}

/* The byte counter beside the timer: both past the threshold is hyper
 * increase. */
static void test_paper_hyper(void **state)
{
	const struct dcqcn_params *p = &dcqcn_paper;
	struct dcqcn d;
	uint64_t target;

	(void)state;
	dcqcn_init(&d);
	assert_true(dcqcn_cnp(&d, p, 0));
	assert_true(dcqcn_cnp(&d, p, 50 * US));
	for (int i = 0; i < 5; i++)
		dcqcn_sent(&d, p, 10000000);
	assert_int_equal(d.byte_stage, 5);
	rates(&d, 19707500000, 20040000000); /* 4 x fast, 1 x additive */
	dcqcn_sent(&d, p, 9999999);
	assert_int_equal(d.byte_stage, 5);
	dcqcn_sent(&d, p, 1);
	assert_int_equal(d.byte_stage, 6);
	target = d.target_bps;
	for (int i = 1; i <= 5; i++)
		dcqcn_advance(&d, p, (50 + 55 * i) * US);
	assert_int_equal(d.target_bps, target + 5 * 40000000);
	target = d.target_bps;
	dcqcn_advance(&d, p, (50 + 55 * 6) * US);
	assert_int_equal(d.target_bps, target + 400000000);
}

/* dce_tcp_g 1019, alpha by periods of 1 us, at most a cut in 4 us, at least
 * half is left, threshold 1, no clamping until the rate has grown. */
static void test_connectx(void **state)
{
	const struct dcqcn_params *p = &dcqcn_connectx;
	struct dcqcn d;

	(void)state;
	dcqcn_init(&d);
	assert_true(dcqcn_cnp(&d, p, 0));
	rates(&d, 50048828125, 100000000000);
	assert_false(dcqcn_cnp(&d, p, 2 * US)); /* too soon */
	rates(&d, 50048828125, 100000000000);
	near_to(d.alpha, 1042442, ALPHA_SLACK);
	assert_true(dcqcn_cnp(&d, p, 5 * US));
	rates(&d, 25412451913, 100000000000);
	near_to(d.alpha, 1032316, ALPHA_SLACK);
	dcqcn_advance(&d, p, 305 * US); /* stage 1 of time: additive */
	rates(&d, 62706225957, 100000000000);
	dcqcn_sent(&d, p, 32767);
	rates(&d, 81353112978, 100000000000);
	dcqcn_sent(&d, p, 32767);
	rates(&d, 90676556489, 100000000000);
	dcqcn_advance(&d, p, 605 * US); /* both at 2: hyper */
	rates(&d, 95338278245, 100000000000);
	/* The rate has grown: this cut makes it the target. Alpha has decayed
	 * for 600 periods, to 1032316 * (1019/1024)^600 = 54,4xx. */
	assert_true(dcqcn_cnp(&d, p, 605 * US + 1));
	assert_int_equal(d.target_bps / 100000000, 953);
	near_to(d.alpha, 54700, 1500);
}

/* min_dec_percent bounds a cut, the minimum the rate. */
static void test_floors(void **state)
{
	struct dcqcn_params p = dcqcn_paper;
	struct dcqcn d;
	int64_t now = 0;

	(void)state;
	p.min_dec_percent = 80;
	dcqcn_init(&d);
	assert_true(dcqcn_cnp(&d, &p, now));
	assert_int_equal(d.rate_bps, 32000000000);
	p.min_dec_percent = 0;
	for (int i = 0; i < 100; i++)
		assert_true(dcqcn_cnp(&d, &p, ++now));
	assert_int_equal(d.rate_bps, p.min_rate_bps);
}

static void test_first_rate(void **state)
{
	struct dcqcn_params p = dcqcn_paper;
	struct dcqcn d;

	(void)state;
	p.first_rate_bps = 10000000000;
	dcqcn_init(&d);
	assert_true(dcqcn_cnp(&d, &p, 0));
	rates(&d, 10000000000, 10000000000);
	assert_true(dcqcn_cnp(&d, &p, 1));
	rates(&d, 5000000000, 10000000000);
}

/* Left alone a flow gets back to line rate, exactly, and is unlimited; what it
 * then knows is forgotten. */
static void test_recovers(void **state)
{
	static const struct dcqcn_params *const presets[] = { &dcqcn_paper,
							      &dcqcn_connectx };

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(presets); i++) {
		const struct dcqcn_params *p = presets[i];
		struct dcqcn d;
		int64_t now = 0;
		unsigned steps = 0;

		dcqcn_init(&d);
		for (int n = 0; n < 20; n++, now += 50 * US)
			dcqcn_cnp(&d, p, now);
		for (; d.limited && steps < 1000000; steps++) {
			now = dcqcn_deadline(&d);
			dcqcn_advance(&d, p, now);
			assert_true(d.rate_bps <= p->line_rate_bps);
		}
		assert_false(d.limited);
		assert_int_equal(dcqcn_rate(&d, p), p->line_rate_bps);
		assert_true(dcqcn_cnp(&d, p, now + 1));
		near_to(d.rate_bps, p->line_rate_bps / 2,
			p->line_rate_bps / 1000);
	}
}

/* Whatever comes, the rate stays between minimum and line, the target at or
 * above the rate, and alpha at most 1. A late look at the clock gives what
 * looks at every deadline would have given. */
static void test_random(void **state)
{
	struct prng rng;

	(void)state;
	prng_init(&rng, 7);
	for (unsigned round = 0; round < 400; round++) {
		const struct dcqcn_params *p =
			round % 2 ? &dcqcn_paper : &dcqcn_connectx;
		struct dcqcn d, late;
		int64_t now = 0;

		dcqcn_init(&d);
		dcqcn_init(&late);
		for (unsigned i = 0; i < 200; i++) {
			int64_t to = now + (int64_t)prng_below(&rng, 400 * US);

			while (dcqcn_deadline(&d) <= to)
				dcqcn_advance(&d, p, dcqcn_deadline(&d));
			now = to;
			dcqcn_advance(&late, p, now);
			if (prng_chance(&rng, 300000)) {
				assert_int_equal(dcqcn_cnp(&d, p, now),
						 dcqcn_cnp(&late, p, now));
			} else {
				uint32_t n = (uint32_t)prng_below(&rng, 60000);

				dcqcn_sent(&d, p, n);
				dcqcn_sent(&late, p, n);
			}
			assert_int_equal(dcqcn_rate(&d, p),
					 dcqcn_rate(&late, p));
			if (!d.limited)
				continue;
			assert_in_range(d.rate_bps, p->min_rate_bps,
					p->line_rate_bps);
			assert_true(d.target_bps >= d.rate_bps);
			assert_true(d.alpha <= DCQCN_ALPHA_ONE);
		}
	}
}

static void count_param(void *ctx, const char *name, uint64_t value)
{
	(void)name;
	(void)value;
	++*(unsigned *)ctx;
}

static void test_parse(void **state)
{
	static const struct {
		const char *text;
		size_t at;
	} bad[] = {
		{ "", 0 },
		{ "tcp", 0 },
		{ "papers", 0 },
		{ "paper,", 6 },
		{ "paper,threshold", 6 },
		{ "paper,threshold=", 6 },
		{ "paper,threshold=-1", 6 },
		{ "paper,threshold=1x", 6 },
		{ "paper,threshold=4294967296", 6 },
		{ "paper,threshold=1,treshold=1", 18 },
		{ "paper,min_rate_bps=0", 0 },
	};
	struct dcqcn_params p;
	unsigned n = 0;
	size_t at;

	(void)state;
	assert_null(dcqcn_parse("paper", &p, &at));
	assert_memory_equal(&p, &dcqcn_paper, sizeof(p));
	assert_null(dcqcn_parse(
		"connectx,line_rate_bps=25000000000,threshold=3", &p, &at));
	assert_int_equal(p.line_rate_bps, 25000000000);
	assert_int_equal(p.threshold, 3);
	assert_int_equal(p.ai_rate_bps, dcqcn_connectx.ai_rate_bps);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_non_null(dcqcn_parse(bad[i].text, &p, &at));
		assert_int_equal(at, bad[i].at);
	}
	dcqcn_params_each(&p, count_param, &n);
	assert_int_equal(n, 17);
}

static void test_check(void **state)
{
	struct dcqcn_params p = dcqcn_paper;

	(void)state;
	assert_null(dcqcn_params_check(&dcqcn_paper));
	assert_null(dcqcn_params_check(&dcqcn_connectx));
	p.alpha_keep = 1024;
	assert_non_null(dcqcn_params_check(&p));
	p = dcqcn_paper;
	p.min_rate_bps = p.line_rate_bps + 1;
	assert_non_null(dcqcn_params_check(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paper),
		cmocka_unit_test(test_paper_hyper),
		cmocka_unit_test(test_connectx),
		cmocka_unit_test(test_floors),
		cmocka_unit_test(test_first_rate),
		cmocka_unit_test(test_recovers),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
