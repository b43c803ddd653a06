/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/spsc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>

#define SLOTS 64u
#define ENTRIES 2000000u

struct ring {
	struct spsc idx;
	uint32_t slot[SLOTS];
};

static void test_counts(void **state)
{
	struct spsc r;

	(void)state;
	spsc_init(&r);
	assert_int_equal(spsc_filled(&r), 0);
	assert_int_equal(spsc_ready(&r), 0);
	spsc_push(&r, 3);
	assert_int_equal(spsc_filled(&r), 3);
	assert_int_equal(spsc_ready(&r), 3);
	assert_int_equal(spsc_tail(&r), 3);
	assert_int_equal(spsc_head(&r), 0);
	spsc_pop(&r, 2);
	assert_int_equal(spsc_filled(&r), 1);
	assert_int_equal(spsc_ready(&r), 1);
	assert_int_equal(spsc_head(&r), 2);
}

static void test_indices_wrap(void **state)
{
	struct spsc r;

	(void)state;
	atomic_init(&r.tail, UINT32_MAX - 1);
	atomic_init(&r.head, UINT32_MAX - 1);
	spsc_push(&r, 5);
	assert_int_equal(spsc_tail(&r), 3);
	assert_int_equal(spsc_filled(&r), 5);
	spsc_pop(&r, 4);
	assert_int_equal(spsc_ready(&r), 1);
	assert_int_equal(spsc_head(&r), 2);
}

static void test_sides_share_no_line(void **state)
{
	(void)state;
	assert_true(offsetof(struct spsc, head) - offsetof(struct spsc, tail) >=
		    64);
}

static void *produce(void *arg)
{
	struct ring *r = arg;
	uint32_t next = 0;

	while (next < ENTRIES) {
		uint32_t room = SLOTS - spsc_filled(&r->idx);
		uint32_t n = room < 7 ? room : 7;

		if (n > ENTRIES - next)
			n = ENTRIES - next;
		if (!n)
			sched_yield();
		for (uint32_t i = 0; i < n; i++)
			r->slot[(spsc_tail(&r->idx) + i) % SLOTS] = next++;
		spsc_push(&r->idx, n);
	}
	return NULL;
}

/* Every entry arrives once, in order, whole. */
/* B061, B062: an entry is whole when its index says that it is there. On arm64
 * too (scripts/test_arm64.sh). */
static void test_two_threads(void **state)
{
	static struct ring r;
	uint32_t next = 0, wrong = 0;
	pthread_t t;

	(void)state;
	spsc_init(&r.idx);
	assert_int_equal(pthread_create(&t, NULL, produce, &r), 0);
	while (next < ENTRIES) {
		uint32_t n = spsc_ready(&r.idx);

		if (!n)
			sched_yield();
		for (uint32_t i = 0; i < n; i++)
			wrong += r.slot[(spsc_head(&r.idx) + i) % SLOTS] !=
				 next++;
		spsc_pop(&r.idx, n);
	}
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(wrong, 0);
	assert_int_equal(spsc_ready(&r.idx), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_indices_wrap),
		cmocka_unit_test(test_sides_share_no_line),
		cmocka_unit_test(test_two_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
