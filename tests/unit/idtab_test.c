/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/idtab.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "core_rig.h"

static struct rig rig;

static int open_rig(void **state)
{
	(void)state;
	rig_open(&rig, NULL);
	return 0;
}

static int close_rig(void **state)
{
	(void)state;
	rig_close(&rig);
	return 0;
}

static void *cookie(uint32_t id)
{
	return (void *)(uintptr_t)(id + 1);
}

/* Every id of a small range is had once, then nothing is. */
static void test_all_ids(void **state)
{
	struct idtab *t = idtab_new(rig.h[0].hca, 2, 254, 1000);
	bool seen[256] = { false };
	uint32_t id = 0, pos = 0, n = 0;

	(void)state;
	assert_non_null(t);
	assert_int_equal(t->max, 253);
	for (int i = 0; i < 253; i++) {
		assert_int_equal(idtab_add(t, cookie((uint32_t)i), &id), 0);
		assert_in_range(id, 2, 254);
		assert_false(seen[id]);
		seen[id] = true;
		assert_ptr_equal(idtab_get(t, id), cookie((uint32_t)i));
	}
	assert_int_equal(idtab_add(t, t, &id), -ENOMEM);
	while (idtab_next(t, &pos))
		n++;
	assert_int_equal(n, 253);
	for (id = 2; id <= 254; id++)
		idtab_remove(t, id);
	idtab_free(t);
}

static void test_get_unknown(void **state)
{
	struct idtab *t = idtab_new(rig.h[0].hca, 1, 0xffffff, 300);
	uint32_t id;

	(void)state;
	assert_null(idtab_get(t, 0));
	assert_null(idtab_get(t, 0xffffffff));
	assert_int_equal(idtab_add(t, t, &id), 0);
	assert_ptr_equal(idtab_get(t, id), t);
	/* The same slot by another name. */
	assert_null(idtab_get(t, id ^ 0x800000));
	assert_null(idtab_get(t, id ^ 0x200));
	assert_null(idtab_get(t, id + (1u << 24)));
	idtab_remove(t, id);
	assert_null(idtab_get(t, id));
	idtab_free(t);
}

/* A freed id comes back only after the whole cycle. */
static void test_late_reuse(void **state)
{
	struct idtab *t = idtab_new(rig.h[0].hca, 1, 0xffff, 16);
	uint32_t first, id = 0, kept;
	unsigned n = 0;

	(void)state;
	assert_int_equal(idtab_add(t, t, &kept), 0);
	assert_int_equal(idtab_add(t, t, &first), 0);
	idtab_remove(t, first);
	while (id != first) {
		assert_int_equal(idtab_add(t, t, &id), 0);
		assert_int_not_equal(id, kept);
		idtab_remove(t, id);
		n++;
	}
	/* All ids but those whose slot (of 256) the kept one takes. */
	assert_in_range(n, 0xffff - 256, 0xffff - 255);
	idtab_remove(t, kept);
	idtab_free(t);
}

static void test_starts_anywhere(void **state)
{
	uint32_t id[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct idtab *t = idtab_new(rig.h[0].hca, 1, 0xffffff, 16);

		assert_int_equal(idtab_add(t, t, &id[i]), 0);
		idtab_remove(t, id[i]);
		idtab_free(t);
	}
	assert_true(id[0] != id[1] && id[1] != id[2] && id[2] != id[3]);
}

static void test_no_memory(void **state)
{
	struct idtab *t = idtab_new(rig.h[0].hca, 1, 0xffffff, 16);
	uint32_t id = 77;

	(void)state;
	rig.h[0].alloc_fails_after = 0;
	assert_int_equal(idtab_add(t, t, &id), -ENOMEM);
	assert_int_equal(id, 77);
	assert_null(idtab_new(rig.h[0].hca, 1, 10, 10));
	rig.h[0].alloc_fails_after = -1;
	assert_int_equal(idtab_add(t, t, &id), 0);
	idtab_remove(t, id);
	idtab_free(t);
}

/* QPNs: the slot's upper bits, never 0, 1 or the multicast number. */
static void test_qpns(void **state)
{
	static const struct {
		uint32_t base, bits, lo, hi;
	} cases[] = {
		{ 0, 8, 2, 255 },
		{ 0x100, 8, 0x101, 0x1ff },
		{ 0xffff00, 8, 0xffff01, 0xfffffe },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig_config c = { .hca = { .qpn_base = cases[i].base,
						 .qpn_bits = cases[i].bits } };
		struct rig_pair_config pc = { .type = QP_TYPE_UD };
		struct qp_init qi = { .type = QP_TYPE_UD };
		uint32_t n = cases[i].hi - cases[i].lo + 1;
		struct qp_cap cap;
		struct rig_end e;
		struct qp *qp;
		struct rig r;

		rig_open(&r, &c);
		assert_int_equal(hca_limits(r.h[0].hca)->max_qp, n);
		rig_end_open(&e, &r.h[0], &pc);
		qi.send_cq = qi.recv_cq = e.scq;
		while (--n) {
			assert_int_equal(qp_create(e.pd, &qi, &cap, &qp), 0);
			assert_in_range(qp_num(qp), cases[i].lo, cases[i].hi);
		}
		assert_int_equal(qp_create(e.pd, &qi, &cap, &qp), -ENOMEM);
		rig_close_force(&r);
	}
}

#define RIGGED(t) cmocka_unit_test_setup_teardown(t, open_rig, close_rig)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIGGED(test_all_ids),	 RIGGED(test_get_unknown),
		RIGGED(test_late_reuse), RIGGED(test_starts_anywhere),
		RIGGED(test_no_memory),	 cmocka_unit_test(test_qpns),
	};

	return cmocka_run_group_tests_name("idtab", tests, NULL, NULL);
}
