/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/twheel.h"

#include "base/assert.h"

_Static_assert(TWHEEL_SLOTS == 64, "a level's slots are the bits of a word");

static int64_t tick_below(int64_t ns)
{
	return ns / TWHEEL_TICK_NS;
}

static int64_t tick_above(int64_t ns)
{
	return ns / TWHEEL_TICK_NS + (ns % TWHEEL_TICK_NS > 0);
}

static unsigned slot_of(int64_t tick, int level)
{
	return (unsigned)(tick >> (level * TWHEEL_BITS)) & (TWHEEL_SLOTS - 1);
}

static int level_of(const struct twheel *w, int64_t tick)
{
	uint64_t diff = (uint64_t)(tick ^ w->now_tick);

	return diff ? (63 - __builtin_clzll(diff)) / TWHEEL_BITS : 0;
}

/* The first tick of a slot that is not before now_tick's own. */
static int64_t slot_start(const struct twheel *w, int level, unsigned slot)
{
	int shift = level * TWHEEL_BITS;
	int64_t ahead = (int64_t)slot - slot_of(w->now_tick, level);

	return ((w->now_tick >> shift) + ahead) << shift;
}

static void place(struct twheel *w, struct timer *t)
{
	int64_t tick = tick_above(t->expiry_ns);
	int level;
	unsigned slot;

	if (tick < w->now_tick)
		tick = w->now_tick;
	level = level_of(w, tick);
	slot = slot_of(tick, level);
	w->used[level] |= UINT64_C(1) << slot;
	dlist_push_back(&w->slot[level][slot], &t->node);
}

/* Moves all of a slot to the empty list `to`. */
static void take_slot(struct twheel *w, int level, unsigned slot,
		      struct dlist *to)
{
	struct dlist *from = &w->slot[level][slot];

	dlist_init(to);
	w->used[level] &= ~(UINT64_C(1) << slot);
	if (dlist_empty(from))
		return;
	dlist_push_front(from, to);
	dlist_remove(from); /* which leaves `to` as the head of the rest */
}

void twheel_init(struct twheel *w, int64_t now_ns)
{
	ASSERT(now_ns >= 0);
	w->now_tick = tick_below(now_ns);
	for (int level = 0; level < TWHEEL_LEVELS; level++) {
		w->used[level] = 0;
		for (int slot = 0; slot < TWHEEL_SLOTS; slot++)
			dlist_init(&w->slot[level][slot]);
	}
}

void timer_init(struct timer *t, void (*fire)(struct timer *, int64_t now_ns))
{
	dlist_init(&t->node);
	t->expiry_ns = TWHEEL_NEVER;
	t->fire = fire;
}

void timer_arm(struct twheel *w, struct timer *t, int64_t expiry_ns)
{
	dlist_remove(&t->node);
	t->expiry_ns = expiry_ns;
	place(w, t);
}

void timer_cancel(struct timer *t)
{
	dlist_remove(&t->node);
}

/* The start of the first slot that holds timers, INT64_MAX when none does.
 * Bits of slots that were found empty are added to stale[level]. */
static int64_t first_slot(const struct twheel *w, uint64_t stale[TWHEEL_LEVELS])
{
	for (int level = 0; level < TWHEEL_LEVELS; level++) {
		uint64_t left = w->used[level];

		for (; left; left &= left - 1) {
			unsigned slot = (unsigned)__builtin_ctzll(left);

			if (!dlist_empty(&w->slot[level][slot]))
				return slot_start(w, level, slot);
			stale[level] |= UINT64_C(1) << slot;
		}
	}
	return INT64_MAX;
}

/* first_slot for the wheel's owner: timer_cancel cannot clear bits, this does.
 */
static int64_t next_tick(struct twheel *w)
{
	uint64_t stale[TWHEEL_LEVELS] = { 0 };
	int64_t tick = first_slot(w, stale);

	for (int level = 0; level < TWHEEL_LEVELS; level++)
		w->used[level] &= ~stale[level];
	return tick;
}

/* Moves now_tick on, no further than next_tick(), and empties the slots above
 * level 0 that now contain it into lower levels. */
static void enter(struct twheel *w, int64_t tick)
{
	int top = level_of(w, tick);

	ASSERT(tick >= w->now_tick);
	w->now_tick = tick;
	for (int level = top; level > 0; level--) {
		struct dlist moved, *n;

		take_slot(w, level, slot_of(tick, level), &moved);
		while ((n = dlist_first(&moved))) {
			dlist_remove(n);
			place(w, CONTAINER_OF(n, struct timer, node));
		}
	}
}

/* Fires now_tick's slot. Before the callbacks run the wheel enters the next
 * tick, if time has come so far: what they arm is then placed there. */
static void fire_slot(struct twheel *w, int64_t target, int64_t now_ns)
{
	struct dlist due, *n;

	take_slot(w, 0, slot_of(w->now_tick, 0), &due);
	if (w->now_tick < target)
		enter(w, w->now_tick + 1);
	while ((n = dlist_first(&due))) {
		struct timer *t = CONTAINER_OF(n, struct timer, node);

		dlist_remove(n);
		t->fire(t, now_ns);
	}
}

void twheel_advance(struct twheel *w, int64_t now_ns)
{
	int64_t target = tick_below(now_ns);
	int64_t tick;

	if (target < w->now_tick)
		return;
	do {
		tick = next_tick(w);
		if (tick > target)
			tick = target;
		enter(w, tick);
		fire_slot(w, target, now_ns);
	} while (tick < target);
}

int64_t twheel_deadline(const struct twheel *w)
{
	uint64_t stale[TWHEEL_LEVELS] = { 0 };
	int64_t tick = first_slot(w, stale);

	if (tick > TWHEEL_NEVER / TWHEEL_TICK_NS)
		return TWHEEL_NEVER;
	return tick * TWHEEL_TICK_NS;
}
