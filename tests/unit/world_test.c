/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* world_test.c - the event queue of virtual time. */
#include "sim/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define EVENTS 200

static struct world world;
static int64_t fired_at[EVENTS];
static unsigned fired_order[EVENTS], num_fired;

struct mark {
	struct world_event ev;
	unsigned id;
};
static struct mark marks[EVENTS];

static void *heap_alloc(void *ctx, size_t bytes, size_t align)
{
	(void)ctx;
	(void)align;
	return calloc(1, bytes);
}

static void heap_free(void *ctx, void *p)
{
	(void)ctx;
	free(p);
}

static const struct sim_alloc heap = { heap_alloc, heap_free, NULL };

static void on_mark(struct world_event *e, int64_t now_ns)
{
	struct mark *m = CONTAINER_OF(e, struct mark, ev);

	fired_order[num_fired] = m->id;
	fired_at[num_fired++] = now_ns;
}

static int set_up(void **state)
{
	(void)state;
	num_fired = 0;
	for (unsigned i = 0; i < EVENTS; i++) {
		world_event_init(&marks[i].ev, on_mark);
		marks[i].id = i;
	}
	return world_init(&world, &heap, 7, EVENTS);
}

static int tear_down(void **state)
{
	(void)state;
	world_fini(&world);
	return 0;
}

static void equal_times_fire_in_order(void **state)
{
	(void)state;
	for (unsigned i = 0; i < EVENTS; i++)
		world_at(&world, &marks[i].ev, 100 - (int64_t)(i / 50));
	while (world_step(&world, 1000))
		;
	assert_int_equal(num_fired, EVENTS);
	for (unsigned i = 1; i < EVENTS; i++) {
		assert_true(fired_at[i - 1] <= fired_at[i]);
		if (fired_at[i - 1] == fired_at[i])
			assert_true(fired_order[i - 1] < fired_order[i]);
	}
	assert_int_equal(world.now_ns, 1000);
}

static void cancel_and_move(void **state)
{
	struct prng r;
	unsigned left = 0;

	(void)state;
	prng_init(&r, 3);
	for (unsigned i = 0; i < EVENTS; i++)
		world_at(&world, &marks[i].ev, (int64_t)prng_below(&r, 1000));
	for (unsigned i = 0; i < EVENTS; i += 3)
		world_cancel(&world, &marks[i].ev);
	for (unsigned i = 1; i < EVENTS; i += 3)
		world_at(&world, &marks[i].ev, (int64_t)prng_below(&r, 1000));
	for (unsigned i = 0; i < EVENTS; i++)
		left += world_scheduled(&marks[i].ev);
	while (world_step(&world, 999))
		;
	assert_int_equal(num_fired, left);
	for (unsigned i = 0; i < num_fired; i++) {
		assert_int_not_equal(fired_order[i] % 3, 0);
		if (i)
			assert_true(fired_at[i - 1] <= fired_at[i]);
	}
}

static void the_past_is_now(void **state)
{
	(void)state;
	assert_false(world_step(&world, 500));
	world_at(&world, &marks[0].ev, 10);
	assert_true(world_step(&world, 500));
	assert_int_equal(fired_at[0], 500);
}

static void labels_split_streams(void **state)
{
	struct prng a = world_rng(&world, "a"), b = world_rng(&world, "b");
	struct prng again = world_rng(&world, "a");
	uint64_t x = prng_u64(&a);

	(void)state;
	assert_true(x == prng_u64(&again));
	assert_true(x != prng_u64(&b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(equal_times_fire_in_order,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(cancel_and_move, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_past_is_now, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(labels_split_streams, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
