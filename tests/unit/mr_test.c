/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/mr.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "core_rig.h"

static struct rig rig;
static struct hca *hca;
static struct pd *pd;

static int open_rig(void **state)
{
	(void)state;
	rig_open(&rig, NULL);
	hca = rig.h[0].hca;
	return pd_create(hca, &pd);
}

static int close_rig(void **state)
{
	(void)state;
	assert_int_equal(pd_destroy(pd), 0);
	rig_close(&rig);
	return 0;
}

/* B091 */
static void test_access_rules(void **state)
{
	static const struct {
		uint32_t access;
		int rc;
	} cases[] = {
		{ 0, 0 },
		{ ACCESS_LOCAL_WRITE, 0 },
		{ ACCESS_REMOTE_READ, 0 },
		{ ACCESS_REMOTE_WRITE, -EINVAL },
		{ ACCESS_REMOTE_ATOMIC, -EINVAL },
		{ ACCESS_REMOTE_ATOMIC | ACCESS_REMOTE_READ, -EINVAL },
		{ ACCESS_REMOTE_WRITE | ACCESS_LOCAL_WRITE, 0 },
		{ ACCESS_REMOTE_ATOMIC | ACCESS_LOCAL_WRITE, 0 },
		{ ACCESS_MW_BIND, 0 },
		{ ACCESS_ON_DEMAND | ACCESS_HUGETLB, 0 },
		{ 1u << 20, 0 },
		{ 1u << 29, 0 },
		{ 1u << 8, -EINVAL },
		{ 1u << 19, -EINVAL },
		{ 1u << 30, -EINVAL },
		{ 1u << 31, -EINVAL },
	};
	struct mr_attr a = { .va = RIG_VA, .iova = RIG_VA, .len_bytes = 64 };
	struct mr *mr, *keep;

	(void)state;
	assert_int_equal(mr_reg(pd, &a, &keep), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int rc;

		a.access = cases[i].access;
		rc = mr_reg(pd, &a, &mr);
		assert_int_equal(rc, cases[i].rc);
		if (!rc)
			assert_int_equal(mr_dereg(mr), 0);
		rc = mr_rereg(keep, MR_REREG_ACCESS, NULL, &a);
		assert_int_equal(rc, cases[i].rc);
	}
	assert_int_equal(mr_dereg(keep), 0);
}

/* The rights asked must all be there. */
static void test_rights(void **state)
{
	static const uint32_t rights[] = { ACCESS_LOCAL_WRITE,
					   ACCESS_REMOTE_WRITE,
					   ACCESS_REMOTE_READ,
					   ACCESS_REMOTE_ATOMIC };

	(void)state;
	for (uint32_t have = 0; have < 16; have++) {
		struct mr_attr a = { .va = RIG_VA,
				     .iova = RIG_VA,
				     .len_bytes = 64,
				     .access = have };
		struct mr *mr;

		if (mr_reg(pd, &a, &mr))
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(rights); i++) {
			uint64_t va;
			bool ok = mkey_local(hca, pd, mr_key(mr), RIG_VA, 1,
					     rights[i], &va);

			assert_int_equal(ok, (have & rights[i]) != 0);
		}
		assert_int_equal(mr_dereg(mr), 0);
	}
}

/* B025, B085, B086: bounds, with iova apart from va and at both ends of the
 * address space. */
static void test_bounds(void **state)
{
	static const uint64_t iovas[] = { 0,
					  RIG_VA,
					  0x1fff,
					  1ull << 63,
					  (1ull << 63) + 12345,
					  UINT64_MAX - 4095 };
	const uint64_t len = 4096;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(iovas); i++) {
		uint64_t io = iovas[i], va = 0;
		struct mr_attr a = { .va = RIG_VA + 64,
				     .iova = io,
				     .len_bytes = len };
		struct mr *mr;
		uint32_t key;

		assert_int_equal(mr_reg(pd, &a, &mr), 0);
		key = mr_key(mr);
		assert_non_null(mkey_local(hca, pd, key, io, len, 0, &va));
		assert_int_equal(va, RIG_VA + 64);
		assert_non_null(mkey_local(hca, pd, key, io + 4095, 1, 0, &va));
		assert_int_equal(va, RIG_VA + 64 + 4095);
		assert_non_null(mkey_local(hca, pd, key, io + 7, 4089, 0, &va));
		assert_null(mkey_local(hca, pd, key, io + 4095, 2, 0, &va));
		assert_null(mkey_local(hca, pd, key, io + 4096, 1, 0, &va));
		assert_null(mkey_local(hca, pd, key, io - 1, 1, 0, &va));
		assert_null(mkey_local(hca, pd, key, io - 1, 2, 0, &va));
		assert_null(mkey_local(hca, pd, key, io, len + 1, 0, &va));
		assert_null(mkey_local(hca, pd, key, io, UINT64_MAX, 0, &va));
		assert_null(mkey_local(hca, pd, key, io + 8, UINT64_MAX - 7, 0,
				       &va));
		assert_int_equal(mr_dereg(mr), 0);
	}
}

static void test_reg_ranges(void **state)
{
	static const struct {
		uint64_t va, iova, len;
		int rc;
	} cases[] = {
		{ RIG_VA, UINT64_MAX - 99, 100, 0 },
		{ RIG_VA, UINT64_MAX - 98, 100, -EINVAL },
		{ UINT64_MAX - 98, 0, 100, -EINVAL },
		{ UINT64_MAX - 99, 0, 100, 0 },
		{ UINT64_MAX, UINT64_MAX, 0, 0 },
		{ 0, 0, 1ull << 48, 0 },
		{ 0, 0, (1ull << 48) + 1, -ENOMEM },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct mr_attr a = { .va = cases[i].va,
				     .iova = cases[i].iova,
				     .len_bytes = cases[i].len };
		struct mr *mr;
		int rc = mr_reg(pd, &a, &mr);

		assert_int_equal(rc, cases[i].rc);
		if (!rc)
			assert_int_equal(mr_dereg(mr), 0);
	}
}

/* B085: a key over nothing grants nothing. */
static void test_length_zero(void **state)
{
	struct mr_attr a = { .va = RIG_VA, .iova = RIG_VA };
	struct mr *mr;
	uint64_t va;

	(void)state;
	assert_int_equal(mr_reg(pd, &a, &mr), 0);
	assert_null(mkey_local(hca, pd, mr_key(mr), RIG_VA, 1, 0, &va));
	assert_null(mkey_local(hca, pd, mr_key(mr), RIG_VA - 1, 1, 0, &va));
	assert_int_equal(mr_dereg(mr), 0);
}

static void test_keys(void **state)
{
	struct mr_attr a = { .va = RIG_VA, .iova = RIG_VA, .len_bytes = 64 };
	struct pd *other;
	struct mr *mr;
	uint32_t key;
	uint64_t va;

	(void)state;
	assert_int_equal(pd_create(hca, &other), 0);
	assert_int_equal(mr_reg(pd, &a, &mr), 0);
	key = mr_key(mr);
	assert_int_not_equal(key, 0);
	assert_int_not_equal(key >> 8, 0);
	assert_non_null(mkey_local(hca, pd, key, RIG_VA, 1, 0, &va));
	assert_null(mkey_local(hca, other, key, RIG_VA, 1, 0, &va));
	for (uint32_t bit = 0; bit < 32; bit++)
		assert_null(mkey_local(hca, pd, key ^ 1u << bit, RIG_VA, 1, 0,
				       &va));
	assert_null(mkey_local(hca, pd, 0, RIG_VA, 1, 0, &va));
	assert_int_equal(pd_destroy(pd), -EBUSY);
	assert_int_equal(mr_dereg(mr), 0);
	assert_null(mkey_local(hca, pd, key, RIG_VA, 1, 0, &va));
	/* A key does not come back soon. */
	for (int i = 0; i < 5000; i++) {
		assert_int_equal(mr_reg(pd, &a, &mr), 0);
		assert_int_not_equal(mr_key(mr), key);
		assert_int_equal(mr_dereg(mr), 0);
	}
	assert_int_equal(pd_destroy(other), 0);
}

/* B088: a new translation has a new key and the old one is dead, a change of
 * access or PD keeps it, refused calls change nothing. */
static void test_rereg(void **state)
{
	struct mr_attr a = { .va = RIG_VA, .iova = 0, .len_bytes = 64 };
	struct mr_attr b = { .va = RIG_VA + 100,
			     .iova = 0x5000,
			     .len_bytes = 10,
			     .access = ACCESS_LOCAL_WRITE };
	struct pd *other;
	struct mr *mr;
	uint32_t key;
	uint64_t va;

	(void)state;
	assert_int_equal(pd_create(hca, &other), 0);
	assert_int_equal(mr_reg(pd, &a, &mr), 0);
	for (int i = 0; i < 1000; i++) {
		key = mr_key(mr);
		assert_int_equal(mr_rereg(mr, MR_REREG_TRANSLATION, NULL, &a),
				 0);
		assert_int_not_equal(mr_key(mr), key);
		assert_null(mkey_local(hca, pd, key, 0, 1, 0, &va));
		assert_non_null(mkey_local(hca, pd, mr_key(mr), 0, 1, 0, &va));
	}
	key = mr_key(mr);
	a.access = ACCESS_LOCAL_WRITE;
	assert_int_equal(mr_rereg(mr, MR_REREG_ACCESS, NULL, &a), 0);
	assert_int_equal(mr_key(mr), key);
	assert_non_null(
		mkey_local(hca, pd, key, 0, 1, ACCESS_LOCAL_WRITE, &va));
	a.access = 0;
	assert_int_equal(mr_rereg(mr, MR_REREG_ACCESS, NULL, &a), 0);
	assert_null(mkey_local(hca, pd, key, 0, 1, ACCESS_LOCAL_WRITE, &va));
	assert_int_equal(mr_rereg(mr, 0, NULL, &a), -EINVAL);
	assert_int_equal(mr_rereg(mr, 8, NULL, &a), -EINVAL);
	assert_int_equal(mr_rereg(mr, MR_REREG_PD, NULL, &a), -EINVAL);
	a.iova = UINT64_MAX;
	assert_int_equal(mr_rereg(mr, MR_REREG_TRANSLATION, NULL, &a), -EINVAL);
	assert_int_equal(mr_key(mr), key);
	assert_non_null(mkey_local(hca, pd, key, 0, 64, 0, &va));

	assert_int_equal(
		mr_rereg(mr,
			 MR_REREG_TRANSLATION | MR_REREG_PD | MR_REREG_ACCESS,
			 other, &b),
		0);
	key = mr_key(mr);
	assert_null(mkey_local(hca, pd, key, 0x5000, 1, 0, &va));
	assert_non_null(mkey_local(hca, other, key, 0x5003, 7,
				   ACCESS_LOCAL_WRITE, &va));
	assert_int_equal(va, RIG_VA + 103);
	assert_int_equal(pd_destroy(other), -EBUSY);
	assert_int_equal(mr_dereg(mr), 0);
	assert_int_equal(pd_destroy(other), 0);
}

static void test_zero_based(void **state)
{
	struct mr_attr a = { .va = RIG_VA,
			     .iova = RIG_VA,
			     .len_bytes = 64,
			     .access = ACCESS_ZERO_BASED };
	struct mr *mr;
	uint64_t va;

	(void)state;
	assert_int_equal(mr_reg(pd, &a, &mr), 0);
	assert_non_null(mkey_local(hca, pd, mr_key(mr), 63, 1, 0, &va));
	assert_int_equal(va, RIG_VA + 63);
	assert_null(mkey_local(hca, pd, mr_key(mr), RIG_VA, 1, 0, &va));
	assert_int_equal(mr_dereg(mr), 0);
}

/* B116: as many as the limit says, then -ENOMEM; any failed allocation is
 * -ENOMEM too and leaks nothing (rig_close counts). */
static void test_limits(void **state)
{
	struct rig_config c = { .hca.limits = hca_limits_default };
	struct mr_attr a = { .va = RIG_VA, .iova = RIG_VA, .len_bytes = 64 };
	struct mr *mr;
	struct pd *p, *extra;
	struct rig r;

	(void)state;
	c.hca.limits.max_mr = 300;
	c.hca.limits.max_pd = 3;
	rig_open(&r, &c);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pd_create(r.h[0].hca, &p), 0);
	assert_int_equal(pd_create(r.h[0].hca, &extra), -ENOMEM);
	for (int i = 0; i < 300; i++)
		assert_int_equal(mr_reg(p, &a, &mr), 0);
	assert_int_equal(mr_reg(p, &a, &mr), -ENOMEM);
	rig_close_force(&r);
}

#define RIGGED(t) cmocka_unit_test_setup_teardown(t, open_rig, close_rig)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIGGED(test_access_rules),
		RIGGED(test_rights),
		RIGGED(test_bounds),
		RIGGED(test_reg_ranges),
		RIGGED(test_length_zero),
		RIGGED(test_keys),
		RIGGED(test_rereg),
		RIGGED(test_zero_based),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests_name("mr", tests, NULL, NULL);
}
