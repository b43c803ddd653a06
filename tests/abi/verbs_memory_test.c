/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory as a program asks for it: regions and their flags, windows, device
 * memory, the null region; and what becomes of work in the error state. */
#include "verbs_self.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define RW (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define LW IBV_ACCESS_LOCAL_WRITE

static struct self s;
static struct ibv_cq *cq, *far_cq;
static struct ibv_qp *qp, *far; /* connected to each other */

static int set_up(void **state)
{
	(void)state;
	return self_open(&s);
}

static int tear_down(void **state)
{
	(void)state;
	return self_close(&s);
}

static struct ibv_qp *new_qp(struct ibv_cq *c, uint32_t sges)
{
	struct ibv_qp_init_attr i = { .send_cq = c,
				      .recv_cq = c,
				      .cap = { 16, 16, sges, 1, 0 },
				      .qp_type = IBV_QPT_RC };
	struct ibv_qp *ret = ibv_create_qp(s.pd, &i);

	assert_non_null(ret);
	return ret;
}

static int open_qp(void **state)
{
	(void)state;
	memset(s.mem, 0, SELF_BYTES);
	cq = ibv_create_cq(s.ctx, 256, NULL, NULL, 0);
	far_cq = ibv_create_cq(s.ctx, 256, NULL, NULL, 0);
	if (!cq || !far_cq)
		return -1;
	qp = new_qp(cq, 1);
	far = new_qp(far_cq, 1);
	self_connect(&s, qp, far->qp_num);
	self_connect(&s, far, qp->qp_num);
	return 0;
}

static int close_qp(void **state)
{
	(void)state;
	return ibv_destroy_qp(qp) || ibv_destroy_qp(far) ||
			       ibv_destroy_cq(cq) || ibv_destroy_cq(far_cq)
		       ? -1
		       : 0;
}

/* One signaled request; its status. */
static enum ibv_wc_status post_one(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->send_flags |= IBV_SEND_SIGNALED;
	assert_int_equal(ibv_post_send(qp, wr, &bad), 0);
	return self_poll(cq).status;
}

/* Writes or reads len bytes between offset 0 of the memory and addr. */
static enum ibv_wc_status rdma(enum ibv_wr_opcode op, uint32_t rkey,
			       uint64_t addr, uint32_t len)
{
	struct ibv_sge g = self_sge(&s, 0, len);
	struct ibv_send_wr wr = { .opcode = op, .sg_list = &g, .num_sge = 1 };

	wr.wr.rdma.rkey = rkey;
	wr.wr.rdma.remote_addr = addr;
	return post_one(&wr);
}

/* ---- regions ---- */

/* B091: in each way of registering. */
static void test_flags(void **state)
{
	static const struct {
		unsigned int access;
		bool good;
	} cases[] = {
		{ 0, true },
		{ LW, true },
		{ IBV_ACCESS_REMOTE_READ, true },
		{ IBV_ACCESS_REMOTE_WRITE, false },
		{ IBV_ACCESS_REMOTE_ATOMIC, false },
		{ IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_READ, false },
		{ LW | RW | IBV_ACCESS_REMOTE_ATOMIC, true },
		{ IBV_ACCESS_MW_BIND, true },
		{ LW | IBV_ACCESS_ZERO_BASED, true },
		{ LW | IBV_ACCESS_ON_DEMAND, true },
		{ LW | IBV_ACCESS_HUGETLB, true },
		{ LW | IBV_ACCESS_RELAXED_ORDERING, true },
		{ LW | 1u << 29, true },
		{ LW | 1u << 8, false },
		{ LW | 1u << 31, false },
	};
	struct ibv_mr *keep = ibv_reg_mr(s.pd, s.mem, 64, (int)LW);

	(void)state;
	assert_non_null(keep);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int access = (int)cases[i].access;
		struct ibv_mr *mr[] = {
			(ibv_reg_mr)(s.pd, s.mem, 64, access),
			(ibv_reg_mr_iova)(s.pd, s.mem, 64, 0x1000, access),
			ibv_reg_mr_iova2(s.pd, s.mem, 64, 0x1000,
					 cases[i].access),
		};

		for (size_t k = 0; k < 3; k++) {
			assert_int_equal(mr[k] != NULL, cases[i].good);
			if (mr[k])
				assert_int_equal(ibv_dereg_mr(mr[k]), 0);
		}
		assert_int_equal(ibv_rereg_mr(keep, IBV_REREG_MR_CHANGE_ACCESS,
					      NULL, NULL, 0, access),
				 cases[i].good ? 0 : IBV_REREG_MR_ERR_INPUT);
	}
	assert_int_equal(ibv_dereg_mr(keep), 0);
}

/* B086, B085: any iova, any length, the first and the last byte. */
static void test_iova(void **state)
{
	static const uint64_t iovas[] = { 0, 1, 0x1fff, 1ull << 63,
					  UINT64_MAX - 99 };

	(void)state;
	s.mem[0] = 0x42;
	for (size_t i = 0; i < 5; i++) {
		uint64_t io = iovas[i];
		struct ibv_mr *mr =
			ibv_reg_mr_iova2(s.pd, s.mem + 1000, 100, io, LW | RW);

		assert_non_null(mr);
		s.mem[1000] = s.mem[1099] = s.mem[1100] = 0;
		assert_int_equal(rdma(IBV_WR_RDMA_WRITE, mr->rkey, io, 1), 0);
		assert_int_equal(rdma(IBV_WR_RDMA_WRITE, mr->rkey, io + 99, 1),
				 0);
		assert_int_equal(s.mem[1000], 0x42);
		assert_int_equal(s.mem[1099], 0x42);
		assert_int_equal(s.mem[1100], 0);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
	assert_null_errno(
		ibv_reg_mr_iova2(s.pd, s.mem, 100, UINT64_MAX - 98, LW),
		EINVAL);
}

static void test_zero_length(void **state)
{
	struct ibv_mr *mr = ibv_reg_mr(s.pd, s.mem, 0, (int)(LW | RW));

	(void)state;
	assert_non_null(mr);
	assert_int_equal(rdma(IBV_WR_RDMA_WRITE, mr->rkey, (uintptr_t)s.mem, 0),
			 IBV_WC_SUCCESS);
	assert_int_equal(rdma(IBV_WR_RDMA_WRITE, mr->rkey, (uintptr_t)s.mem, 1),
			 IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* A byte count of all memory is all of it, on demand. */
static void test_implicit(void **state)
{
	struct ibv_mr *mr = ibv_reg_mr(s.pd, NULL, SIZE_MAX,
				       LW | RW | IBV_ACCESS_ON_DEMAND);

	(void)state;
	assert_non_null(mr);
	s.mem[0] = 0x33;
	assert_int_equal(
		rdma(IBV_WR_RDMA_WRITE, mr->rkey, (uintptr_t)s.mem + 5000, 1),
		IBV_WC_SUCCESS);
	assert_int_equal(s.mem[5000], 0x33);
	/* Where nothing is mapped the responder has no data to give. */
	assert_int_equal(rdma(IBV_WR_RDMA_READ, mr->rkey, 64, 1),
			 IBV_WC_REM_OP_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_null(ibv_reg_mr(s.pd, NULL, SIZE_MAX, (int)LW));
}

static void test_advise(void **state)
{
	struct ibv_mr *odp =
		ibv_reg_mr(s.pd, s.mem, 4096, LW | IBV_ACCESS_ON_DEMAND);
	struct ibv_mr *ro = ibv_reg_mr(s.pd, s.mem, 4096, IBV_ACCESS_ON_DEMAND);
	struct ibv_sge g = { (uintptr_t)s.mem, 4096, odp->lkey };
	enum ibv_advise_mr_advice a[] = {
		IBV_ADVISE_MR_ADVICE_PREFETCH,
		IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
		IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
	};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(ibv_advise_mr(s.pd, a[i], 0, &g, 1), 0);
		assert_int_equal(ibv_advise_mr(s.pd, a[i],
					       IBV_ADVISE_MR_FLAG_FLUSH, &g, 1),
				 0);
		assert_int_equal(ibv_advise_mr(s.pd, a[i], 1u << 5, &g, 1),
				 EINVAL);
		assert_int_equal(ibv_advise_mr(s.pd, a[i], 0, &g, 0), EINVAL);
	}
	assert_int_equal(ibv_advise_mr(s.pd, 77, 0, &g, 1), EOPNOTSUPP);
	g.length = 4097;
	assert_int_equal(ibv_advise_mr(s.pd, a[0], 0, &g, 1), EFAULT);
	g.length = 64;
	g.lkey = ro->lkey;
	assert_int_equal(ibv_advise_mr(s.pd, a[0], 0, &g, 1), 0);
	assert_int_equal(ibv_advise_mr(s.pd, a[1], 0, &g, 1), EPERM);
	g.lkey = s.mr->lkey;
	assert_int_equal(ibv_advise_mr(s.pd, a[0], 0, &g, 1), EINVAL);
	assert_int_equal(ibv_dereg_mr(ro), 0);
	assert_int_equal(ibv_dereg_mr(odp), 0);
}

/* B088: every combination of flags. */
static void test_rereg(void **state)
{
	struct ibv_pd *other = ibv_alloc_pd(s.ctx);

	(void)state;
	for (int flags = 0; flags < 16; flags++) {
		struct ibv_mr *mr = ibv_reg_mr(s.pd, s.mem, 4096, (int)LW);
		bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
		bool good = flags > 0 && flags < 8;
		uint32_t old = mr->rkey;
		int rc = ibv_rereg_mr(
			mr, flags, flags & 2 ? other : NULL,
			moves ? s.mem + 8192 : NULL, moves ? 100 : 0,
			flags & IBV_REREG_MR_CHANGE_ACCESS ? (int)(LW | RW)
							   : 0);

		assert_int_equal(rc, good ? 0 : IBV_REREG_MR_ERR_INPUT);
		assert_int_equal(mr->rkey != old, good && moves);
		assert_ptr_equal(mr->pd, good && flags & 2 ? other : s.pd);
		assert_ptr_equal(mr->addr, s.mem + (good && moves ? 8192 : 0));
		assert_int_equal(mr->length, good && moves ? 100 : 4096);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
	assert_int_equal(ibv_dealloc_pd(other), 0);
}

#define ROUNDS 3000

static void *change(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		int rc = ibv_rereg_mr(arg, IBV_REREG_MR_CHANGE_TRANSLATION,
				      NULL, s.mem, 64 + (size_t)i % 64, 0);

		if (rc)
			return arg;
	}
	return NULL;
}

/* B089 */
static void test_rereg_at_once(void **state)
{
	struct ibv_mr *mr = ibv_reg_mr(s.pd, s.mem, 64, (int)LW);
	pthread_t t[2];
	void *failed;

	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, change, mr), 0);
	for (int i = 0; i < 2; i++) {
		pthread_join(t[i], &failed);
		assert_null(failed);
	}
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL,
				      NULL, 0, (int)(LW | RW)),
			 0);
	assert_int_equal(rdma(IBV_WR_RDMA_WRITE, mr->rkey, (uintptr_t)s.mem, 8),
			 IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* ---- windows ---- */

static void test_window_type1(void **state)
{
	struct ibv_mr *mr =
		ibv_reg_mr(s.pd, s.mem + 4096, 4096, LW | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(s.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind b = { .wr_id = 5, .send_flags = IBV_SEND_SIGNALED };
	uint32_t first;
	struct ibv_wc wc;

	(void)state;
	assert_non_null(mw);
	first = mw->rkey;
	b.bind_info.mr = mr;
	b.bind_info.addr = (uintptr_t)s.mem + 4096;
	b.bind_info.length = 64;
	b.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
	assert_int_equal(ibv_bind_mw(qp, mw, &b), 0);
	assert_int_not_equal(mw->rkey, first);
	assert_int_equal(mw->rkey >> 8, first >> 8);
	wc = self_poll(cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
	assert_int_equal(wc.wr_id, 5);
	s.mem[0] = 0x21;
	assert_int_equal(
		rdma(IBV_WR_RDMA_WRITE, mw->rkey, (uintptr_t)s.mem + 4096, 64),
		IBV_WC_SUCCESS);
	assert_int_equal(s.mem[4096], 0x21);
	assert_int_equal(ibv_dereg_mr(mr), EBUSY);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL,
				      NULL, 0, (int)LW),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EBUSY);
	/* The first key is gone. */
	assert_int_equal(
		rdma(IBV_WR_RDMA_WRITE, first, (uintptr_t)s.mem + 4096, 1),
		IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* A window of the other type, by either way, is no window to them. */
static void test_window_types(void **state)
{
	struct ibv_mw *one = ibv_alloc_mw(s.pd, IBV_MW_TYPE_1);
	struct ibv_mw *two = ibv_alloc_mw(s.pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind b = { 0 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW }, *bad;

	(void)state;
	assert_int_equal(ibv_bind_mw(qp, two, &b), EINVAL);
	wr.bind_mw.mw = one;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	wr.bind_mw.mw = NULL;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
	assert_null_errno(ibv_alloc_mw(s.pd, (enum ibv_mw_type)3), EINVAL);
	assert_int_equal(ibv_dealloc_mw(one), 0);
	assert_int_equal(ibv_dealloc_mw(two), 0);
}

/* ---- device memory and the null region ---- */

static struct ibv_dm *dm_of(size_t len, uint32_t align)
{
	struct ibv_alloc_dm_attr a = { .length = len, .log_align_req = align };

	return ibv_alloc_dm(s.ctx, &a);
}

static void test_device_memory(void **state)
{
	const unsigned int access = LW | RW | IBV_ACCESS_ZERO_BASED;
	struct ibv_dm *dm = dm_of(4096, 6);
	struct ibv_mr *mr;
	uint8_t buf[64];

	(void)state;
	assert_non_null(dm);
	assert_null_errno(ibv_reg_dm_mr(s.pd, dm, 0, 64, LW), EINVAL);
	assert_null_errno(ibv_reg_dm_mr(s.pd, dm, 4096, 1, access), EINVAL);
	assert_null_errno(ibv_reg_dm_mr(s.pd, dm, 64, 4096, access), EINVAL);
	assert_null_errno(ibv_reg_dm_mr(s.pd, dm, UINT64_MAX, 2, access),
			  EINVAL);
	mr = ibv_reg_dm_mr(s.pd, dm, 64, 4032, access);
	assert_non_null(mr);
	assert_int_equal(ibv_free_dm(dm), EBUSY);
	assert_int_equal(ibv_memcpy_from_dm(buf, dm, 0, 64), 0);
	assert_int_equal(buf[63], 0);
	memset(s.mem, 0x6b, 64);
	assert_int_equal(rdma(IBV_WR_RDMA_WRITE, mr->rkey, 0, 64),
			 IBV_WC_SUCCESS);
	assert_int_equal(ibv_memcpy_from_dm(buf, dm, 64, 64), 0);
	assert_memory_equal(buf, s.mem, 64);
	memset(buf, 0x7c, 64);
	assert_int_equal(ibv_memcpy_to_dm(dm, 4032, buf, 64), 0);
	assert_int_equal(rdma(IBV_WR_RDMA_READ, mr->rkey, 4032 - 64, 64),
			 IBV_WC_SUCCESS);
	assert_memory_equal(buf, s.mem, 64);
	assert_int_equal(ibv_memcpy_to_dm(dm, 4036, buf, 64), EINVAL);
	assert_int_equal(ibv_memcpy_to_dm(dm, 2, buf, 4), EINVAL);
	assert_int_equal(ibv_memcpy_from_dm(buf, dm, 0, 3), EINVAL);
	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, s.pd, NULL, 0, 0),
		IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(rdma(IBV_WR_RDMA_WRITE, mr->rkey, 4032 - 64 + 1, 64),
			 IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

static void test_device_memory_room(void **state)
{
	struct ibv_device_attr_ex a;
	struct ibv_dm *all, *half[2];

	(void)state;
	assert_int_equal(ibv_query_device_ex(s.ctx, NULL, &a), 0);
	assert_null_errno(dm_of(0, 0), EINVAL);
	assert_null_errno(dm_of(64, 40), EINVAL);
	assert_null_errno(dm_of(a.max_dm_size + 1, 0), ENOMEM);
	all = dm_of(a.max_dm_size, 12);
	assert_non_null(all);
	assert_null_errno(dm_of(1, 0), ENOMEM);
	assert_int_equal(ibv_free_dm(all), 0);
	half[0] = dm_of(a.max_dm_size / 2, 0);
	half[1] = dm_of(a.max_dm_size / 2, 0);
	assert_non_null(half[1]);
	assert_int_equal(ibv_free_dm(half[0]), 0);
	assert_null_errno(dm_of(a.max_dm_size / 2 + 1, 0), ENOMEM);
	half[0] = dm_of(a.max_dm_size / 2, 0);
	assert_non_null(half[0]);
	assert_int_equal(ibv_free_dm(half[0]), 0);
	assert_int_equal(ibv_free_dm(half[1]), 0);
}

static void test_null_region(void **state)
{
	struct ibv_mr *null = ibv_alloc_null_mr(s.pd);
	struct ibv_sge g = { .addr = 0, .length = 5000 };
	struct ibv_send_wr wr = { .sg_list = &g, .num_sge = 1 };

	(void)state;
	assert_non_null(null);
	g.lkey = null->lkey;
	wr.wr.rdma.rkey = s.mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)s.mem;
	memset(s.mem, 0xff, 6000);
	wr.opcode = IBV_WR_RDMA_WRITE;
	assert_int_equal(post_one(&wr), IBV_WC_SUCCESS);
	assert_int_equal(s.mem[0], 0);
	assert_int_equal(s.mem[4999], 0);
	assert_int_equal(s.mem[5000], 0xff);
	wr.opcode = IBV_WR_RDMA_READ;
	assert_int_equal(post_one(&wr), IBV_WC_SUCCESS);
	assert_int_equal(rdma(IBV_WR_RDMA_READ, null->rkey, 0, 1),
			 IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(null), 0);
}

/* What the device says of itself is so. */
static void test_capabilities(void **state)
{
	struct ibv_device_attr_ex a;

	(void)state;
	assert_int_equal(ibv_query_device_ex(s.ctx, NULL, &a), 0);
	assert_true(a.orig_attr.max_mw > 0);
	assert_true(a.orig_attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	assert_true(a.orig_attr.device_cap_flags &
		    IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	assert_false(a.orig_attr.device_cap_flags &
		     IBV_DEVICE_MEM_WINDOW_TYPE_2A);
	assert_true(a.orig_attr.device_cap_flags &
		    IBV_DEVICE_MEM_MGT_EXTENSIONS);
	assert_true(a.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT);
	assert_true(a.max_dm_size >= 65536);
	assert_null_errno(ibv_reg_dmabuf_mr(s.pd, 0, 64, 0, 0, LW), EOPNOTSUPP);
	assert_null_errno(ibv_import_mr(s.pd, 1), EOPNOTSUPP);
	assert_null_errno(ibv_import_dm(s.ctx, 1), EOPNOTSUPP);
}

/* B118: a READ into as many pieces as the device says. */
static void test_read_sges(void **state)
{
	struct ibv_device_attr d;
	struct ibv_sge g[64];
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ, .sg_list = g };
	struct ibv_qp *own = qp;

	(void)state;
	assert_int_equal(ibv_query_device(s.ctx, &d), 0);
	assert_in_range(d.max_sge_rd, 1, 64);
	qp = new_qp(cq, (uint32_t)d.max_sge_rd);
	self_connect(&s, qp, qp->qp_num);
	for (int k = 0; k < d.max_sge_rd * 100; k++)
		s.mem[32768 + k] = (uint8_t)(k * 7);
	for (int k = 0; k < d.max_sge_rd; k++)
		g[k] = self_sge(&s, (size_t)k * 200, 100);
	wr.num_sge = d.max_sge_rd;
	wr.wr.rdma.rkey = s.mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)s.mem + 32768;
	assert_int_equal(post_one(&wr), IBV_WC_SUCCESS);
	for (int k = 0; k < d.max_sge_rd; k++) {
		assert_memory_equal(s.mem + k * 200, s.mem + 32768 + k * 100,
				    100);
		assert_int_equal(s.mem[k * 200 + 100], 0);
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
	qp = own;
}

/* ---- the error state ---- */

static void to_error(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };

	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
}

/* B043: what is posted by ibv_wr_* in ERR is flushed. */
static void test_builder_flushes(void **state)
{
	struct ibv_qp_init_attr_ex i = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 16, 16, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
		.pd = s.pd,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags =
			IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_LOCAL_INV,
	};
	struct ibv_qp *own = qp;
	struct ibv_qp_ex *x;

	(void)state;
	qp = ibv_create_qp_ex(s.ctx, &i);
	assert_non_null(qp);
	self_connect(&s, qp, qp->qp_num);
	to_error();
	x = ibv_qp_to_qp_ex(qp);
	for (uint64_t id = 0; id < 100; id += 2) {
		struct ibv_wc wc;

		ibv_wr_start(x);
		x->wr_id = id;
		ibv_wr_send(x);
		x->wr_id = id + 1;
		ibv_wr_local_inv(x, 1);
		assert_int_equal(ibv_wr_complete(x), 0);
		for (uint64_t k = 0; k < 2; k++) {
			wc = self_poll(cq);
			assert_int_equal(wc.wr_id, id + k);
			assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
		}
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
	qp = own;
}

/* B046: the peer does not exist; ERR and a sentinel end all at once. */
static void test_drain_without_peer(void **state)
{
	struct ibv_qp *own = qp;
	int64_t begin;

	(void)state;
	qp = new_qp(cq, 1);
	self_connect(&s, qp, qp->qp_num ^ 0x5555);
	for (uint64_t id = 0; id < 10; id++)
		self_send(&s, qp, id, 0, 4096);
	begin = self_now_ms();
	to_error();
	self_send(&s, qp, 10, 0, 8);
	for (uint64_t id = 0; id <= 10; id++) {
		struct ibv_wc wc = self_poll(cq);

		assert_int_equal(wc.wr_id, id);
		assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	}
	assert_true(self_now_ms() - begin < 100);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	qp = own;
}

#define QP(name) cmocka_unit_test_setup_teardown(name, open_qp, close_qp)

int main(void)
{
	const struct CMUnitTest tests[] = {
		QP(test_flags),
		QP(test_iova),
		QP(test_zero_length),
		QP(test_implicit),
		QP(test_advise),
		QP(test_rereg),
		QP(test_rereg_at_once),
		QP(test_window_type1),
		QP(test_window_types),
		QP(test_device_memory),
		QP(test_device_memory_room),
		QP(test_null_region),
		QP(test_capabilities),
		QP(test_read_sges),
		QP(test_builder_flushes),
		QP(test_drain_without_peer),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
