/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/wq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/obj/hca_priv.h"
#include "core_rig.h"

#define SGES 8

static struct rig rig;
static struct rig_end end;

/* A WQE with its tail, and a receive WQE with its SGEs. */
static union {
	struct wqe w;
	uint8_t room[sizeof(struct wqe) + SGES * sizeof(struct sge)];
} s;
static union {
	struct rwqe w;
	uint8_t room[sizeof(struct rwqe) + SGES * sizeof(struct sge)];
} r;

static int open_rig(void **state)
{
	struct rig_pair_config c = { .type = QP_TYPE_UC };

	(void)state;
	rig_open(&rig, NULL);
	rig_end_open(&end, &rig.h[0], &c);
	memset(&s, 0, sizeof(s));
	memset(&r, 0, sizeof(r));
	return 0;
}

static int close_rig(void **state)
{
	(void)state;
	rig_end_close(&end);
	rig_close(&rig);
	return 0;
}

/* The same SGE list in both; SGEs may be empty and are a page apart. */
static uint32_t lay_out(struct prng *p, int n)
{
	uint32_t total = 0;

	for (int i = 0; i < n; i++) {
		struct sge *g = &wqe_sge(&s.w)[i];

		g->addr = RIG_VA + 4096u * (uint32_t)(i * 7 % SGES);
		g->len_bytes = prng_chance(p, 200000)
				       ? 0
				       : (uint32_t)prng_below(p, 600);
		g->lkey = mr_key(end.mr);
		r.w.sge[i] = *g;
		total += g->len_bytes;
	}
	s.w.num_sge = (uint16_t)n;
	r.w.num_sge = (uint32_t)n;
	s.w.len_bytes = r.w.len_bytes = total;
	return total;
}

/* Byte `at` of the list, found the slow way. */
static uint8_t *byte_at(uint32_t at)
{
	const struct sge *g = wqe_sge(&s.w);

	while (at >= g->len_bytes)
		at -= g++->len_bytes;
	return rig_bytes(&rig.h[0], g->addr + at);
}

static void test_any_cut(void **state)
{
	struct prng p;

	(void)state;
	prng_init(&p, 3);
	for (int round = 0; round < 3000; round++) {
		uint32_t total = lay_out(&p, (int)prng_below(&p, SGES + 1));
		uint32_t off = (uint32_t)prng_below(&p, total + 1);
		uint32_t len = (uint32_t)prng_below(&p, total - off + 1);
		uint8_t in[SGES * 600], out[SGES * 600];

		for (uint32_t i = 0; i < len; i++)
			in[i] = (uint8_t)prng_u32(&p);
		memset(rig_bytes(&rig.h[0], RIG_VA), 0, SGES * 4096);
		if (round % 2)
			assert_int_equal(rwqe_scatter(rig.h[0].hca, end.pd,
						      &r.w, off, len, in),
					 WC_SUCCESS);
		else
			assert_int_equal(wqe_scatter(rig.h[0].hca, end.pd, &s.w,
						     off, len, in),
					 WC_SUCCESS);
		for (uint32_t i = 0; i < total; i++) {
			bool inside = i >= off && i < off + len;

			assert_int_equal(*byte_at(i), inside ? in[i - off] : 0);
		}
		assert_int_equal(
			wqe_gather(rig.h[0].hca, end.pd, &s.w, off, len, out),
			WC_SUCCESS);
		assert_memory_equal(in, out, len);
	}
}

static void test_too_long(void **state)
{
	uint8_t data[64] = { 0 };

	(void)state;
	r.w.num_sge = 1;
	r.w.len_bytes = 32;
	r.w.sge[0] = (struct sge){ RIG_VA, 32, mr_key(end.mr) };
	assert_int_equal(rwqe_scatter(rig.h[0].hca, end.pd, &r.w, 0, 33, data),
			 WC_LOC_LEN_ERR);
	assert_int_equal(rwqe_scatter(rig.h[0].hca, end.pd, &r.w, 32, 1, data),
			 WC_LOC_LEN_ERR);
	assert_int_equal(rwqe_scatter(rig.h[0].hca, end.pd, &r.w, 33, 0, data),
			 WC_LOC_LEN_ERR);
	assert_int_equal(rwqe_scatter(rig.h[0].hca, end.pd, &r.w, 32, 0, data),
			 WC_SUCCESS);
	assert_int_equal(
		rwqe_scatter(rig.h[0].hca, end.pd, &r.w, UINT32_MAX, 2, data),
		WC_LOC_LEN_ERR);
}

/* Key, domain, bounds, right to write, memory that is gone. */
static void test_protection(void **state)
{
	struct mr_attr ro = { .va = RIG_VA, .iova = RIG_VA, .len_bytes = 64 };
	struct hca *hca = rig.h[0].hca;
	struct mr *mr;
	struct pd *other;
	uint8_t data[64];

	(void)state;
	assert_int_equal(mr_reg(end.pd, &ro, &mr), 0);
	assert_int_equal(pd_create(hca, &other), 0);
	s.w.num_sge = 1;
	s.w.len_bytes = 64;
	r.w.num_sge = 1;
	r.w.len_bytes = 64;
#define EXPECT(domain, out, in)                                                \
	do {                                                                   \
		r.w.sge[0] = *wqe_sge(&s.w);                                   \
		assert_int_equal(wqe_gather(hca, domain, &s.w, 0, 64, data),   \
				 out);                                         \
		assert_int_equal(wqe_scatter(hca, domain, &s.w, 0, 64, data),  \
				 in);                                          \
		assert_int_equal(rwqe_scatter(hca, domain, &r.w, 0, 64, data), \
				 in);                                          \
	} while (0)
	*wqe_sge(&s.w) = (struct sge){ RIG_VA, 64, mr_key(mr) };
	EXPECT(end.pd, WC_SUCCESS, WC_LOC_PROT_ERR); /* read-only */
	EXPECT(other, WC_LOC_PROT_ERR, WC_LOC_PROT_ERR);
	wqe_sge(&s.w)->lkey ^= 1;
	EXPECT(end.pd, WC_LOC_PROT_ERR, WC_LOC_PROT_ERR);
	*wqe_sge(&s.w) = (struct sge){ RIG_VA + 1, 64, mr_key(mr) };
	EXPECT(end.pd, WC_LOC_PROT_ERR, WC_LOC_PROT_ERR);
	*wqe_sge(&s.w) = (struct sge){ RIG_VA, 64, mr_key(end.mr) };
	EXPECT(end.pd, WC_SUCCESS, WC_SUCCESS);
	rig.h[0].fault_lo = RIG_VA + 63;
	rig.h[0].fault_hi = RIG_VA + 64;
	EXPECT(end.pd, WC_LOC_PROT_ERR, WC_LOC_PROT_ERR);
#undef EXPECT
	assert_int_equal(pd_destroy(other), 0);
	assert_int_equal(mr_dereg(mr), 0);
}

/* A receive of more bytes than 32 bits count says so by its saturated sum. */
static void test_huge_receive(void **state)
{
	struct sge sge[4];
	struct recv_wr wr = { .sge = sge, .num_sge = 4 };
	struct wring ring;

	(void)state;
	for (int i = 0; i < 4; i++)
		sge[i] = (struct sge){ RIG_VA, UINT32_MAX, mr_key(end.mr) };
	assert_int_equal(wring_init_recv(&ring, rig.h[0].hca, 2, 4), 0);
	assert_int_equal(wring_post_recv(&ring, &wr), 0);
	assert_int_equal(((struct rwqe *)wring_slot(&ring, 0))->len_bytes,
			 UINT32_MAX);
	wring_fini(&ring, rig.h[0].hca);
}

#define RIGGED(t) cmocka_unit_test_setup_teardown(t, open_rig, close_rig)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIGGED(test_any_cut),
		RIGGED(test_too_long),
		RIGGED(test_protection),
		RIGGED(test_huge_receive),
	};

	return cmocka_run_group_tests_name("wq", tests, NULL, NULL);
}
