/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "fabric/netswitch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"

#define KB 1000
#define US 1000

static long live;

static void *take(void *ctx, size_t bytes, size_t align)
{
	void *p = aligned_alloc(align, (bytes + align - 1) / align * align);

	(void)ctx;
	assert_non_null(p);
	live++;
	return memset(p, 0, bytes);
}

static void give(void *ctx, void *p)
{
	(void)ctx;
	live--;
	free(p);
}

static struct netswitch_config config(uint32_t ports)
{
	return (struct netswitch_config){
		.ports = ports,
		.buffer_bytes = 1000 * KB,
		.headroom_bytes = 10 * KB,
		.xoff_bytes = 20 * KB,
		.xon_bytes = 2 * KB,
		.lossy_num = 1,
		.lossy_den = 1,
		.strict_from = 6,
		.pause_ns = 800 * US,
		.seed = 1,
		.prio = { [3] = { .lossless = true } },
	};
}

static struct netswitch *open_switch(const struct netswitch_config *c)
{
	struct netswitch *s = netswitch_new(c, take, give, NULL);

	assert_non_null(s);
	for (uint16_t i = 0; i < c->ports; i++)
		assert_int_equal(netswitch_route(s, i, &i, 1), 0);
	return s;
}

static void close_switch(struct netswitch *s)
{
	netswitch_free(s);
	assert_int_equal(live, 0);
}

static struct netswitch_frame frame(uint32_t dst, uint8_t prio, uint32_t bytes)
{
	return (struct netswitch_frame){ .dst = dst,
					 .prio = prio,
					 .bytes = bytes };
}

static void test_forward(void **state)
{
	struct netswitch_config c = config(4);
	struct netswitch *s = open_switch(&c);
	struct netswitch_frame a = frame(2, 0, 1000), b = frame(2, 0, 500);
	struct netswitch_frame lost = frame(9, 0, 100);

	(void)state;
	assert_int_equal(netswitch_rx(s, 0, &a, 0), NETSWITCH_QUEUED);
	assert_int_equal(netswitch_rx(s, 1, &b, 0), NETSWITCH_QUEUED);
	assert_int_equal(netswitch_rx(s, 1, &lost, 0), NETSWITCH_DROP_NO_ROUTE);
	assert_int_equal(netswitch_queue_bytes(s, 2, 0), 1500);
	assert_null(netswitch_tx(s, 0, 0));
	assert_ptr_equal(netswitch_tx(s, 2, 0), &a);
	/* It is in the buffer until its last bit has left. */
	assert_int_equal(netswitch_queue_bytes(s, 2, 0), 500);
	assert_int_equal(netswitch_used_bytes(s), 1500);
	netswitch_done(s, &a, 100);
	assert_int_equal(netswitch_used_bytes(s), 500);
	assert_ptr_equal(netswitch_tx(s, 2, 100), &b);
	netswitch_done(s, &b, 200);
	assert_int_equal(netswitch_used_bytes(s), 0);
	assert_null(netswitch_tx(s, 2, 200));
	assert_int_equal(netswitch_counters(s)->dropped[0], 1);
	assert_true(netswitch_deadline(s) == INT64_MAX);
	close_switch(s);
}

/* Priorities 6 and 7 first, then the others in turn. */
static void test_turns(void **state)
{
	static const uint8_t in[] = { 0, 0, 3, 1, 7, 6 };
	static const uint8_t out[] = { 7, 6, 0, 1, 3, 0 };
	struct netswitch_config c = config(2);
	struct netswitch *s = open_switch(&c);
	struct netswitch_frame f[ARRAY_SIZE(in)];

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(in); i++) {
		f[i] = frame(1, in[i], 100);
		assert_int_equal(netswitch_rx(s, 0, &f[i], 0),
				 NETSWITCH_QUEUED);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(out); i++) {
		struct netswitch_frame *g = netswitch_tx(s, 1, 0);

		assert_non_null(g);
		assert_int_equal(g->prio, out[i]);
		netswitch_done(s, g, 0);
	}
	close_switch(s);
}

/* A flow stays on its port; flows spread over all of them. */
static void test_ecmp(void **state)
{
	static const uint16_t up[] = { 1, 2, 3 };
	struct netswitch_config c = config(4);
	struct netswitch *s = open_switch(&c);
	unsigned seen[4] = { 0 };

	(void)state;
	assert_int_equal(netswitch_route(s, 77, up, 3), 0);
	for (uint32_t hash = 0; hash < 30; hash++) {
		struct netswitch_frame f = frame(77, 0, 100);

		f.hash = hash;
		for (int again = 0; again < 2; again++) {
			assert_int_equal(netswitch_rx(s, 0, &f, 0),
					 NETSWITCH_QUEUED);
			assert_int_equal(f.out_port, up[hash % 3]);
			assert_ptr_equal(netswitch_tx(s, f.out_port, 0), &f);
			netswitch_done(s, &f, 0);
		}
		seen[f.out_port]++;
	}
	for (unsigned i = 1; i < 4; i++)
		assert_int_equal(seen[i], 10);
	assert_int_equal(netswitch_route(s, 1, (uint16_t[]){ 4 }, 1), -22);
	close_switch(s);
}

/* Past the threshold the neighbour is paused; what is under way has the
 * headroom, and one frame more is lost; when both are empty enough it goes on.
 */
static void test_pfc(void **state)
{
	struct netswitch_config c = config(2);
	struct netswitch *s = open_switch(&c);
	struct netswitch_frame f[31], *g;
	struct netswitch_pause p;
	unsigned n = 0;

	(void)state;
	for (; n < 20; n++) {
		f[n] = frame(1, 3, 1 * KB);
		assert_int_equal(netswitch_rx(s, 0, &f[n], 0),
				 NETSWITCH_QUEUED);
		assert_false(netswitch_pausing(s, 0, 3));
	}
	assert_false(netswitch_pause_tx(s, &p));
	for (; n < 30; n++) {
		f[n] = frame(1, 3, 1 * KB);
		assert_int_equal(netswitch_rx(s, 0, &f[n], 0),
				 NETSWITCH_QUEUED);
		assert_true(netswitch_pausing(s, 0, 3));
	}
	assert_true(netswitch_pause_tx(s, &p));
	assert_int_equal(p.port, 0);
	assert_int_equal(p.mask, 1 << 3);
	assert_true(p.pause_ns == 800 * US);
	assert_false(netswitch_pause_tx(s, &p)); /* once */
	f[n] = frame(1, 3, 1 * KB);
	assert_int_equal(netswitch_rx(s, 0, &f[n], 0),
			 NETSWITCH_DROP_NO_HEADROOM);
	/* Renewed while it lasts. */
	assert_true(netswitch_deadline(s) == 400 * US);
	netswitch_advance(s, 400 * US);
	assert_true(netswitch_pause_tx(s, &p));
	assert_true(p.pause_ns == 800 * US);
	for (n = 0; n < 30; n++) {
		g = netswitch_tx(s, 1, 0);
		assert_ptr_equal(g, &f[n]);
		netswitch_done(s, g, 500 * US);
		/* The ten of the headroom came last; 18 KB is the mark. */
		assert_int_equal(netswitch_pausing(s, 0, 3), n < 29);
	}
	assert_true(netswitch_pause_tx(s, &p));
	assert_int_equal(p.mask, 1 << 3);
	assert_true(p.pause_ns == 0);
	assert_int_equal(netswitch_counters(s)->xoff_sent, 1);
	assert_int_equal(netswitch_counters(s)->xon_sent, 1);
	assert_int_equal(
		netswitch_counters(s)->dropped[NETSWITCH_DROP_NO_HEADROOM], 1);
	close_switch(s);
}

/* A paused priority holds nobody else up, and goes on when the time is over or
 * the neighbour says so. */
static void test_paused(void **state)
{
	struct netswitch_config c = config(2);
	struct netswitch *s = open_switch(&c);
	struct netswitch_frame a = frame(1, 3, 100), b = frame(1, 2, 100);

	(void)state;
	netswitch_pause_rx(s, 1, 1 << 3, 10 * US, 0);
	assert_int_equal(netswitch_rx(s, 0, &a, 0), NETSWITCH_QUEUED);
	assert_int_equal(netswitch_rx(s, 0, &b, 0), NETSWITCH_QUEUED);
	assert_ptr_equal(netswitch_tx(s, 1, 0), &b);
	assert_null(netswitch_tx(s, 1, 0));
	assert_true(netswitch_paused(s, 1, 3, 9999));
	assert_true(netswitch_deadline(s) == 10 * US);
	netswitch_advance(s, 10 * US);
	assert_false(netswitch_paused(s, 1, 3, 10 * US));
	assert_ptr_equal(netswitch_tx(s, 1, 10 * US), &a);
	netswitch_pause_rx(s, 1, 0xff, 10 * US, 20 * US);
	assert_true(netswitch_paused(s, 1, 0, 25 * US));
	netswitch_pause_rx(s, 1, 0xff, 0, 26 * US);
	assert_false(netswitch_paused(s, 1, 0, 26 * US));
	netswitch_done(s, &a, 0);
	netswitch_done(s, &b, 0);
	close_switch(s);
}

/* A neighbour that never stops pausing: after watchdog_ns what waits is thrown
 * away and its pauses are ignored, until they have been quiet for restore_ns.
 */
static void test_watchdog(void **state)
{
	struct netswitch_config c = config(2);
	struct netswitch_frame f[3];
	struct netswitch *s;
	int64_t now = 0;

	(void)state;
	c.watchdog_ns = 1000 * US;
	c.restore_ns = 2000 * US;
	s = open_switch(&c);
	for (unsigned i = 0; i < 3; i++)
		f[i] = frame(1, 3, 100);
	netswitch_pause_rx(s, 1, 1 << 3, 300 * US, now);
	assert_int_equal(netswitch_rx(s, 0, &f[0], now), NETSWITCH_QUEUED);
	assert_int_equal(netswitch_rx(s, 0, &f[1], now), NETSWITCH_QUEUED);
	for (; now < 1000 * US; now += 100 * US) {
		netswitch_pause_rx(s, 1, 1 << 3, 300 * US, now);
		netswitch_advance(s, now);
		assert_null(netswitch_thrown(s));
	}
	netswitch_advance(s, now);
	assert_non_null(netswitch_thrown(s));
	assert_non_null(netswitch_thrown(s));
	assert_null(netswitch_thrown(s));
	assert_int_equal(netswitch_counters(s)->storms, 1);
	assert_int_equal(netswitch_used_bytes(s), 0);
	netswitch_pause_rx(s, 1, 1 << 3, 300 * US, now);
	assert_int_equal(netswitch_rx(s, 0, &f[2], now), NETSWITCH_QUEUED);
	assert_ptr_equal(netswitch_tx(s, 1, now), &f[2]);
	netswitch_done(s, &f[2], now);
	netswitch_advance(s, now + 2000 * US);
	netswitch_pause_rx(s, 1, 1 << 3, 300 * US, now + 2000 * US);
	assert_true(netswitch_paused(s, 1, 3, now + 2000 * US));
	close_switch(s);
}

/* Pauses that come and go are no storm, however long. */
static void test_no_storm(void **state)
{
	struct netswitch_config c = config(2);
	struct netswitch_frame f = frame(1, 3, 100);
	struct netswitch *s;

	(void)state;
	c.watchdog_ns = 1000 * US;
	c.restore_ns = 2000 * US;
	s = open_switch(&c);
	assert_int_equal(netswitch_rx(s, 0, &f, 0), NETSWITCH_QUEUED);
	for (int64_t now = 0; now < 20000 * US; now += 900 * US) {
		netswitch_pause_rx(s, 1, 1 << 3, 890 * US, now);
		netswitch_advance(s, now + 889 * US);
		netswitch_advance(s, now + 891 * US);
	}
	assert_int_equal(netswitch_counters(s)->storms, 0);
	close_switch(s);
}

static void test_lossy(void **state)
{
	struct netswitch_config c = config(4);
	struct netswitch_frame f[1000];
	struct netswitch *s;
	unsigned n = 0;

	(void)state;
	c.lossy_num = 1;
	c.lossy_den = 2;
	s = open_switch(&c);
	/* Shared: 1000 - 4 * 10 = 960 KB. A queue that takes half of what is
	 * free ends where q = (960 - q) / 2. */
	for (; n < 1000; n++) {
		f[n] = frame(1, 0, 1 * KB);
		if (netswitch_rx(s, 0, &f[n], 0) != NETSWITCH_QUEUED)
			break;
	}
	assert_int_equal(n, 320);
	assert_int_equal(netswitch_counters(s)->dropped[NETSWITCH_DROP_QUEUE],
			 1);
	/* Another queue has a share of the rest: q = (640 - q) / 2. */
	for (; n < 1000; n++) {
		f[n] = frame(2, 0, 1 * KB);
		if (netswitch_rx(s, 3, &f[n], 0) != NETSWITCH_QUEUED)
			break;
	}
	assert_int_equal(n - 320, 213);
	close_switch(s);
}

/* 10,000 frames leave in front of queues of each length; the part that is
 * marked is the line from kmin to kmax, to four standard deviations. */
static void test_marks(void **state)
{
	struct netswitch_config c = config(2);
	struct netswitch *s;

	(void)state;
	c.prio[0] = (struct netswitch_prio){ .ecn = true,
					     .kmin_bytes = 5 * KB,
					     .kmax_bytes = 25 * KB,
					     .pmax_ppm = 500000 };
	s = open_switch(&c);
	for (int depth = 0; depth <= 30; depth += 5) {
		int n = 10000, marked = 0, want, slack;

		for (int i = 0; i <= n; i++) {
			struct netswitch_frame behind =
				frame(1, 0, (uint32_t)depth * KB);
			struct netswitch_frame probe = frame(1, 0, 1);

			probe.ect = i < n;
			(void)netswitch_rx(s, 0, &probe, 0);
			(void)netswitch_rx(s, 0, &behind, 0);
			assert_ptr_equal(netswitch_tx(s, 1, 0), &probe);
			assert_ptr_equal(netswitch_tx(s, 1, 0), &behind);
			netswitch_done(s, &probe, 0);
			netswitch_done(s, &behind, 0);
			marked += probe.ce;
			if (i == n) /* not ECN capable */
				assert_false(probe.ce);
		}
		want = depth <= 5    ? 0
		       : depth >= 25 ? n
				     : n * (depth - 5) / 20 / 2;
		slack = want == 0 || want == n ? 0 : 200;
		assert_in_range(marked, want - slack, want + slack);
	}
	close_switch(s);
}

/* The published figures for 32 ports of 40 Gb/s, 12 MB, 8 priorities. */
static void test_plan(void **state)
{
	uint64_t b = 12000000;

	(void)state;
	/* 22.4 KB of headroom: for example 300 m of fibre (1,429 ns), frames
	 * of 1,500 bytes, and a neighbour that obeys within 1.01 us. */
	assert_int_equal(
		netswitch_headroom(40000000000, 1429, 1500, 1010) / 100, 224);
	assert_int_equal(netswitch_static_xoff(b, 32, 22400), 24475);
	assert_true(netswitch_static_ecn_bound(b, 32, 22400) < 1500);
	assert_int_equal(netswitch_static_ecn_bound(b, 32, 22400), 764);
	assert_int_equal(netswitch_dynamic_ecn_bound(b, 32, 22400, 8, 1),
			 21755);
}

struct load {
	struct netswitch_frame f[2000];
	struct netswitch_frame *idle[2000];
	unsigned n;
	struct netswitch_frame *out[8]; /* on a wire, by port */
	uint64_t inside;
};

static void load_tx(struct netswitch *s, struct load *l, unsigned port,
		    int64_t now)
{
	if (l->out[port]) {
		l->inside -= l->out[port]->bytes;
		netswitch_done(s, l->out[port], now);
		l->idle[l->n++] = l->out[port];
	}
	l->out[port] = netswitch_tx(s, port, now);
}

static void load_rx(struct netswitch *s, struct load *l, unsigned port,
		    struct prng *rng, int64_t now)
{
	struct netswitch_frame *f;

	if (!l->n)
		return;
	f = l->idle[--l->n];
	*f = frame((uint32_t)prng_below(rng, 3), (uint8_t)prng_below(rng, 8),
		   64 + (uint32_t)prng_below(rng, 4200));
	f->ect = true;
	if (netswitch_rx(s, port, f, now) == NETSWITCH_QUEUED)
		l->inside += f->bytes;
	else
		l->idle[l->n++] = f;
}

static void load_thrown(struct netswitch *s, struct load *l)
{
	struct netswitch_frame *f;

	while ((f = netswitch_thrown(s))) {
		l->inside -= f->bytes;
		l->idle[l->n++] = f;
	}
}

static struct netswitch_config random_config(uint64_t seed)
{
	struct netswitch_config c = config(8);

	c.xoff_bytes = seed % 2 ? 0 : 20 * KB;
	c.beta_num = 1;
	c.beta_den = 8;
	c.watchdog_ns = seed % 3 ? 200 * US : 0;
	c.restore_ns = 300 * US;
	c.prio[4].lossless = true;
	c.prio[3].ecn = true;
	c.prio[3].kmax_bytes = 40 * KB;
	return c;
}

static void random_step(struct netswitch *s, struct load *l, struct prng *rng,
			int64_t now)
{
	unsigned port = (unsigned)prng_below(rng, 8);
	unsigned what = (unsigned)prng_below(rng, 8);
	struct netswitch_pause p;

	netswitch_advance(s, now);
	if (what == 0)
		netswitch_pause_rx(s, port, (uint8_t)prng_u32(rng),
				   (int64_t)prng_below(rng, 100 * US), now);
	else if (what < 4)
		load_tx(s, l, port, now);
	else
		load_rx(s, l, port, rng, now);
	load_thrown(s, l);
	while (netswitch_pause_tx(s, &p))
		assert_int_not_equal(p.mask, 0);
}

/* Any mix of frames, pauses and time: what is charged is what is inside, what
 * is inside fits, and everything comes out. */
static void test_random(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		struct netswitch_config c = random_config(seed);
		struct load *l = calloc(1, sizeof(*l));
		struct netswitch *s = open_switch(&c);
		struct prng rng;
		int64_t now = 0;

		assert_non_null(l);
		prng_init(&rng, seed);
		for (; l->n < ARRAY_SIZE(l->f); l->n++)
			l->idle[l->n] = &l->f[l->n];
		for (unsigned i = 0; i < 30000; i++) {
			now += (int64_t)prng_below(&rng, 2 * US);
			random_step(s, l, &rng, now);
			assert_int_equal(netswitch_used_bytes(s), l->inside);
			assert_true(l->inside <= c.buffer_bytes);
		}
		now += 1000000 * US;
		netswitch_advance(s, now);
		for (unsigned i = 0; i < 8 * 2000; i++)
			load_tx(s, l, i % 8, now);
		load_thrown(s, l);
		assert_int_equal(netswitch_used_bytes(s), 0);
		assert_int_equal(l->n, ARRAY_SIZE(l->f));
		assert_int_equal(netswitch_counters(s)->xoff_sent,
				 netswitch_counters(s)->xon_sent);
		close_switch(s);
		free(l);
	}
}

static void test_check(void **state)
{
	struct netswitch_config c = config(2);

	(void)state;
	assert_null(netswitch_config_check(&c));
	c.headroom_bytes = 500 * KB;
	assert_non_null(netswitch_config_check(&c));
	assert_null(netswitch_new(&c, take, give, NULL));
	c = config(0);
	assert_non_null(netswitch_config_check(&c));
	c = config(2);
	c.prio[0] = (struct netswitch_prio){ .ecn = true, .kmin_bytes = 1 };
	assert_non_null(netswitch_config_check(&c));
	assert_string_equal(netswitch_drop_name(NETSWITCH_DROP_STORM), "STORM");
	assert_string_equal(netswitch_drop_name(NETSWITCH_QUEUED), "QUEUED");
	assert_int_equal(live, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forward),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_ecmp),
		cmocka_unit_test(test_pfc),
		cmocka_unit_test(test_paused),
		cmocka_unit_test(test_watchdog),
		cmocka_unit_test(test_no_storm),
		cmocka_unit_test(test_lossy),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_plan),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
