/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/prng.h"

struct user {
	struct budget_wait w;
	unsigned woken;
	uint32_t held;
};

static void woke(struct budget_wait *w)
{
	CONTAINER_OF(w, struct user, w)->woken++;
}

static void user_init(struct user *u)
{
	budget_wait_init(&u->w, woke);
	u->woken = 0;
	u->held = 0;
}

static void test_bound(void **state)
{
	struct budget b;
	struct user u;

	(void)state;
	budget_init(&b, 100);
	user_init(&u);
	assert_true(budget_take(&b, 60, &u.w, 0));
	assert_true(budget_take(&b, 40, &u.w, 0));
	assert_false(budget_take(&b, 1, &u.w, 0));
	assert_false(budget_take(&b, 1, &u.w, 0)); /* in line once */
	budget_give(&b, 40);
	assert_int_equal(u.woken, 1);
	assert_true(dlist_empty(&b.waiters));
	assert_true(budget_take(&b, 40, &u.w, 0));
	budget_give(&b, 100);
	assert_int_equal(b.used, 0);
}

/* One charge always passes when nothing is in flight. */
static void test_larger_than_limit(void **state)
{
	struct budget b;
	struct user u;

	(void)state;
	budget_init(&b, 100);
	user_init(&u);
	assert_true(budget_take(&b, 1000, &u.w, 0));
	assert_false(budget_take(&b, 1, &u.w, 0));
	budget_give(&b, 1000);
	assert_int_equal(u.woken, 1);
}

static void test_unbounded(void **state)
{
	struct budget b;
	struct user u;

	(void)state;
	budget_init(&b, 0);
	user_init(&u);
	for (int i = 0; i < 4; i++)
		assert_true(budget_take(&b, UINT32_MAX, &u.w, 0));
	for (int i = 0; i < 4; i++)
		budget_give(&b, UINT32_MAX);
}

/* Oldest first, and no more than there is room for. */
static void test_order(void **state)
{
	struct user u[4];
	struct budget b;

	(void)state;
	budget_init(&b, 100);
	for (int i = 0; i < 4; i++)
		user_init(&u[i]);
	assert_true(budget_take(&b, 100, &u[0].w, 0));
	for (int i = 1; i < 4; i++)
		assert_false(budget_take(&b, 40, &u[i].w, 0));
	budget_give(&b, 50);
	assert_int_equal(u[1].woken, 1);
	assert_int_equal(u[2].woken, 0);
	budget_give(&b, 5);
	assert_int_equal(u[2].woken, 1);
	assert_int_equal(u[3].woken, 0);
	/* Nothing in flight: nobody is left asleep, whoever was woken in vain.
	 */
	budget_give(&b, 45);
	assert_int_equal(u[3].woken, 1);
}

/* Who wants little does not pass who wants much, and who was woken keeps its
 * place when another was quicker. */
static void test_no_passing(void **state)
{
	struct user a, big, small;
	struct budget b;

	(void)state;
	budget_init(&b, 100);
	user_init(&a);
	user_init(&big);
	user_init(&small);
	assert_true(budget_take(&b, 60, &a.w, 0));
	assert_false(budget_take(&b, 80, &big.w, 0));
	assert_false(budget_take(&b, 10, &small.w, 0));
	assert_false(budget_take(&b, 10, &a.w, 0));
	budget_give(&b, 40);
	assert_int_equal(big.woken, 1);
	assert_int_equal(small.woken, 0);
	assert_true(budget_take(&b, 80, &big.w, 0));
	assert_false(budget_take(&b, 10, &small.w, 0));
	budget_give(&b, 20);
	assert_int_equal(small.woken, 1);
	assert_int_equal(a.woken, 1);
	assert_true(budget_take(&b, 20, &big.w, 0)); /* quicker */
	assert_false(budget_take(&b, 10, &small.w, 0));
	assert_false(budget_take(&b, 10, &a.w, 0));
	budget_give(&b, 10);
	assert_int_equal(a.woken + small.woken, 3);
	budget_give(&b, 90);
	assert_int_equal(a.woken + small.woken, 4);
}

static void test_leave(void **state)
{
	struct user a, c;
	struct budget b;

	(void)state;
	budget_init(&b, 10);
	user_init(&a);
	user_init(&c);
	assert_true(budget_take(&b, 10, &a.w, 0));
	assert_false(budget_take(&b, 5, &a.w, 0));
	assert_false(budget_take(&b, 5, &c.w, 0));
	budget_leave(&a.w);
	budget_leave(&a.w);
	budget_give(&b, 10);
	assert_int_equal(a.woken, 0);
	assert_int_equal(c.woken, 1);
}

/* Congestion halves the bound, once for a bound's worth of acknowledgements; 32
 * times that bring a 16th of the limit back. */
static void test_learns(void **state)
{
	struct budget b;

	(void)state;
	budget_init(&b, 1600);
	assert_int_equal(budget_bound(&b), 1600);
	assert_true(budget_cut(&b));
	assert_int_equal(budget_bound(&b), 800);
	assert_false(budget_cut(&b));
	budget_acked(&b, 799);
	assert_false(budget_cut(&b));
	assert_int_equal(budget_bound(&b), 800);
	budget_acked(&b, 800 * 31);
	assert_int_equal(budget_bound(&b), 800);
	budget_acked(&b, 1);
	assert_int_equal(budget_bound(&b), 900);
	assert_true(budget_cut(&b));
	assert_int_equal(budget_bound(&b), 450);
	for (int i = 0; i < 4; i++) { /* the least */
		budget_acked(&b, 450);
		assert_true(budget_cut(&b));
	}
	assert_int_equal(budget_bound(&b), 200);
	for (uint32_t bound = 300; bound < 2000; bound += 100) {
		budget_acked(&b, 32 * budget_bound(&b));
		assert_int_equal(budget_bound(&b), bound < 1600 ? bound : 1600);
	}
}

/* Unbounded accounts learn nothing. */
static void test_learns_unbounded(void **state)
{
	struct budget b;
	struct user u;

	(void)state;
	user_init(&u);
	budget_init(&b, 0);
	assert_false(budget_cut(&b));
	budget_share(&b, 5);
	budget_acked(&b, 100);
	assert_int_equal(budget_bound(&b), 0);
	assert_true(budget_take(&b, UINT32_MAX, &u.w, 6));
}

/* Half of it while the buffer has other traffic, and for a second. */
static void test_share(void **state)
{
	struct budget b;
	struct user u;

	(void)state;
	budget_init(&b, 100);
	user_init(&u);
	budget_share(&b, 0);
	assert_true(budget_take(&b, 50, &u.w, 10));
	assert_false(budget_take(&b, 50, &u.w, 999999999));
	budget_share(&b, 10);
	assert_false(budget_take(&b, 50, &u.w, 1000000000));
	assert_true(budget_take(&b, 50, &u.w, 1000000010));
	/* What congestion taught may be less than half. */
	budget_share(&b, 1000000010);
	assert_true(budget_cut(&b));
	assert_int_equal(budget_bound(&b), 50);
	b.fresh_cut = false;
	assert_true(budget_cut(&b));
	assert_int_equal(budget_bound(&b), 25);
}

/* The bound shrinks below what is in flight: all are woken, and who has to may
 * take more. */
static void test_overdrawn(void **state)
{
	struct user a, c, d;
	struct budget b;

	(void)state;
	budget_init(&b, 100);
	user_init(&a);
	user_init(&c);
	user_init(&d);
	assert_true(budget_take(&b, 90, &a.w, 0));
	assert_false(budget_take(&b, 20, &c.w, 0));
	assert_false(budget_take_over(&b, 20, &c.w));
	assert_false(budget_take(&b, 20, &d.w, 0));
	assert_true(budget_cut(&b));
	assert_int_equal(c.woken, 1);
	assert_int_equal(d.woken, 1);
	assert_false(budget_take(&b, 20, &c.w, 0));
	assert_true(budget_take_over(&b, 20, &c.w));
	assert_int_equal(b.used, 110);
	assert_true(dlist_empty(&b.waiters));
	assert_false(budget_take(&b, 20, &d.w, 0));
	budget_give(&b, 50); /* still too much: d may want to go over */
	assert_int_equal(d.woken, 2);
	assert_false(budget_take(&b, 20, &d.w, 0));
	budget_give(&b, 10); /* 50 of 50 */
	assert_int_equal(d.woken, 2);
	assert_false(budget_take_over(&b, 20, &d.w));
	budget_give(&b, 20);
	assert_int_equal(d.woken, 3);
	assert_true(budget_take(&b, 20, &d.w, 0));
	/* The same when somebody else is found to use the buffer. */
	b.bound = 100;
	budget_give(&b, 50);
	assert_true(budget_take(&b, 80, &a.w, 0));
	assert_false(budget_take(&b, 30, &c.w, 0));
	budget_share(&b, 0);
	assert_int_equal(c.woken, 2);
	assert_true(budget_take_over(&b, 30, &c.w));
}

/* Many users at random: the bound holds, and all get through. */
static void test_random(void **state)
{
	struct user u[16];
	unsigned taken[16] = { 0 };
	struct budget b;
	struct prng r;

	(void)state;
	prng_init(&r, 7);
	budget_init(&b, 1000);
	for (int i = 0; i < 16; i++)
		user_init(&u[i]);
	for (int step = 0; step < 200000; step++) {
		uint32_t i = (uint32_t)prng_below(&r, 16);
		uint32_t n = 1 + (uint32_t)prng_below(&r, 1200);
		bool idle = b.used == 0;

		if (u[i].held) {
			budget_give(&b, u[i].held);
			u[i].held = 0;
		} else if (!dlist_linked(&u[i].w.node) &&
			   budget_take(&b, n, &u[i].w, 0)) {
			assert_true(idle || b.used <= 1000);
			u[i].held = n;
			taken[i]++;
		}
		if (b.used == 0)
			assert_true(dlist_empty(&b.waiters));
	}
	for (int i = 0; i < 16; i++)
		assert_true(taken[i] > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_larger_than_limit),
		cmocka_unit_test(test_unbounded),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_no_passing),
		cmocka_unit_test(test_leave),
		cmocka_unit_test(test_learns),
		cmocka_unit_test(test_learns_unbounded),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_overdrawn),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests_name("budget", tests, NULL, NULL);
}
