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
	assert_true(budget_take(&b, 60, &u.w));
	assert_true(budget_take(&b, 40, &u.w));
	assert_false(budget_take(&b, 1, &u.w));
	assert_false(budget_take(&b, 1, &u.w)); /* in line once */
	budget_give(&b, 40);
	assert_int_equal(u.woken, 1);
	assert_true(dlist_empty(&b.waiters));
	assert_true(budget_take(&b, 40, &u.w));
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
	assert_true(budget_take(&b, 1000, &u.w));
	assert_false(budget_take(&b, 1, &u.w));
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
		assert_true(budget_take(&b, UINT32_MAX, &u.w));
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
	assert_true(budget_take(&b, 100, &u[0].w));
	for (int i = 1; i < 4; i++)
		assert_false(budget_take(&b, 40, &u[i].w));
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
	assert_true(budget_take(&b, 60, &a.w));
	assert_false(budget_take(&b, 80, &big.w));
	assert_false(budget_take(&b, 10, &small.w));
	assert_false(budget_take(&b, 10, &a.w));
	budget_give(&b, 40);
	assert_int_equal(big.woken, 1);
	assert_int_equal(small.woken, 0);
	assert_true(budget_take(&b, 80, &big.w));
	assert_false(budget_take(&b, 10, &small.w));
	budget_give(&b, 20);
	assert_int_equal(small.woken, 1);
	assert_int_equal(a.woken, 1);
	assert_true(budget_take(&b, 20, &big.w)); /* quicker */
	assert_false(budget_take(&b, 10, &small.w));
	assert_false(budget_take(&b, 10, &a.w));
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
	assert_true(budget_take(&b, 10, &a.w));
	assert_false(budget_take(&b, 5, &a.w));
	assert_false(budget_take(&b, 5, &c.w));
	budget_leave(&a.w);
	budget_leave(&a.w);
	budget_give(&b, 10);
	assert_int_equal(a.woken, 0);
	assert_int_equal(c.woken, 1);
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
			   budget_take(&b, n, &u[i].w)) {
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
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests_name("budget", tests, NULL, NULL);
}
