/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Memory windows: every rule of binding, every way to lose the rights. */
#include "core/obj/mw.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "core/obj/mr.h"
#include "core/obj/qp.h"
#include "core_rig.h"

#define RW (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ)
#define AT (RIG_VA + 0x1000)
#define LEN 4096u

static struct rig rig;
static struct rig_pair pair;
static struct rig_end *me, *peer;
static struct mr *mr; /* AT, LEN; may be bound to */

static struct mr *region(struct pd *pd, uint32_t access)
{
	struct mr_attr a = {
		.va = AT, .iova = AT, .len_bytes = LEN, .access = access
	};
	struct mr *ret;

	assert_int_equal(mr_reg(pd, &a, &ret), 0);
	return ret;
}

static int open_type(enum qp_type type)
{
	struct rig_pair_config c = { .type = type, .sq_sig_all = true };

	rig_open(&rig, NULL);
	rig_pair_open(&pair, &rig, &c);
	me = &pair.e[0];
	peer = &pair.e[1];
	mr = region(me->pd, ACCESS_LOCAL_WRITE | ACCESS_MW_BIND);
	return 0;
}

static int open_rc(void **state)
{
	(void)state;
	return open_type(QP_TYPE_RC);
}

static int open_uc(void **state)
{
	(void)state;
	return open_type(QP_TYPE_UC);
}

static int close_rig(void **state)
{
	(void)state;
	rig_close_force(&rig);
	return 0;
}

static struct mw *window(struct pd *pd, enum mw_type type)
{
	struct mw *ret;

	assert_int_equal(mw_create(pd, type, &ret), 0);
	return ret;
}

static struct send_wr bind_wr(const struct mw *mw, const struct mr *to,
			      uint64_t addr, uint64_t len, uint32_t access)
{
	return (struct send_wr){
		.opcode = WR_BIND_MW,
		.bind_mw_index = mw_index(mw),
		.rkey = mw_key(mw),
		.remote_addr = addr,
		.bind_len_bytes = len,
		.bind_mr_key = to ? mr_key(to) : 0,
		.bind_access = access,
	};
}

/* What the oldest send completion says. */
static uint32_t next_status(struct rig_end *e)
{
	struct wc wc;

	rig_run(&rig, 1000000);
	assert_int_equal(cq_poll(e->scq, 1, &wc), 1);
	return wc.status;
}

static uint32_t post_status(struct rig_end *e, const struct send_wr *wr)
{
	assert_int_equal(qp_post_send(e->qp, wr), 0);
	qp_ring(e->qp);
	return next_status(e);
}

static uint32_t bind(struct mw *mw, uint32_t access)
{
	struct send_wr wr = bind_wr(mw, mr, AT, LEN, access);

	return post_status(me, &wr);
}

static uint32_t invalidate(uint32_t rkey)
{
	struct send_wr wr = { .opcode = WR_LOCAL_INV, .imm_be_or_rkey = rkey };

	return post_status(me, &wr);
}

/* The peer's access through a key. */
static uint32_t access_by(uint32_t opcode, uint32_t rkey, uint64_t addr,
			  uint32_t len)
{
	struct sge s = { .addr = RIG_VA,
			 .len_bytes = len,
			 .lkey = mr_key(peer->mr) };
	struct send_wr wr = { .opcode = opcode,
			      .sge = &s,
			      .num_sge = 1,
			      .remote_addr = addr,
			      .rkey = rkey };

	return post_status(peer, &wr);
}

/* B076: all 256 bytes, each also when it is the one the key has. */
static void test_key_bytes(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_2);
	struct send_wr wr;

	(void)state;
	for (uint32_t i = 0; i < 512; i++) {
		uint32_t key = mw_index(mw) << 8 | i / 2;

		wr = bind_wr(mw, mr, AT, LEN, RW);
		wr.rkey = key;
		assert_int_equal(post_status(me, &wr), WC_SUCCESS);
		assert_int_equal(mw_key(mw), key);
		assert_int_equal(access_by(WR_WRITE, key, AT, 16), WC_SUCCESS);
		assert_int_equal(invalidate(key), WC_SUCCESS);
	}
	/* Free: again is no fault. */
	assert_int_equal(invalidate(mw_key(mw)), WC_SUCCESS);
}

/* One refusal each; the QP is in error then. */
static void expect_bind_error(struct send_wr wr, struct mw *mw)
{
	uint32_t key = mw_key(mw);
	uint64_t va;

	assert_int_equal(post_status(me, &wr), WC_MW_BIND_ERR);
	assert_int_equal(qp_state(me->qp), QP_STATE_ERR);
	assert_int_equal(mw_key(mw), key);
	assert_false(mkey_remote(me->qp, me->qp->pd, key, AT, 1,
				 ACCESS_REMOTE_READ, &va));
}

/* B077 */
static void test_other_index(void **state)
{
	struct mw *a = window(me->pd, MW_TYPE_2);
	struct mw *b = window(me->pd, MW_TYPE_2);
	struct send_wr wr = bind_wr(a, mr, AT, LEN, RW);

	(void)state;
	wr.rkey = mw_key(b);
	expect_bind_error(wr, a);
}

static void test_region_index(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_2);
	struct send_wr wr = bind_wr(mw, mr, AT, LEN, RW);

	(void)state;
	wr.bind_mw_index = mr_key(mr) >> 8;
	wr.rkey = mr_key(mr);
	expect_bind_error(wr, mw);
}

static void test_window_as_region(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_2);
	struct send_wr wr = bind_wr(mw, mr, AT, LEN, RW);

	(void)state;
	wr.bind_mr_key = mw_key(mw);
	expect_bind_error(wr, mw);
}

/* B079: of QP, window and region one, another and the third is in another
 * domain. */
static void test_window_pd(void **state)
{
	struct pd *other;
	struct mw *mw;

	(void)state;
	assert_int_equal(pd_create(me->host->hca, &other), 0);
	mw = window(other, MW_TYPE_2);
	expect_bind_error(bind_wr(mw, mr, AT, LEN, RW), mw);
}

static void test_region_pd(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_2);
	struct pd *other;

	(void)state;
	assert_int_equal(pd_create(me->host->hca, &other), 0);
	expect_bind_error(
		bind_wr(mw, region(other, ACCESS_LOCAL_WRITE | ACCESS_MW_BIND),
			AT, LEN, RW),
		mw);
}

static void test_qp_pd(void **state)
{
	struct pd *other;
	struct mw *mw;

	(void)state;
	assert_int_equal(pd_create(me->host->hca, &other), 0);
	mw = window(other, MW_TYPE_2);
	expect_bind_error(
		bind_wr(mw, region(other, ACCESS_LOCAL_WRITE | ACCESS_MW_BIND),
			AT, LEN, RW),
		mw);
}

static void test_region_without_right(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_2);
	struct mr *no = region(me->pd, ACCESS_LOCAL_WRITE | RW);

	(void)state;
	expect_bind_error(bind_wr(mw, no, AT, LEN, ACCESS_REMOTE_READ), mw);
}

static void test_region_without_write(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_2);
	struct mr *ro = region(me->pd, ACCESS_MW_BIND);
	struct send_wr wr = bind_wr(mw, ro, AT, LEN, ACCESS_REMOTE_READ);

	(void)state;
	/* Reading needs no right of the region. */
	assert_int_equal(post_status(me, &wr), WC_SUCCESS);
	assert_int_equal(access_by(WR_READ, mw_key(mw), AT, 16), WC_SUCCESS);
	assert_int_equal(invalidate(mw_key(mw)), WC_SUCCESS);
	expect_bind_error(bind_wr(mw, ro, AT, LEN, ACCESS_REMOTE_WRITE), mw);
}

static void test_atomic_without_write(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_2);
	struct mr *ro = region(me->pd, ACCESS_MW_BIND);

	(void)state;
	expect_bind_error(bind_wr(mw, ro, AT, LEN, ACCESS_REMOTE_ATOMIC), mw);
}

static void test_zero_based_region(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_2);
	struct mr *z = region(me->pd, ACCESS_LOCAL_WRITE | ACCESS_MW_BIND |
					      ACCESS_ZERO_BASED);

	(void)state;
	expect_bind_error(bind_wr(mw, z, 0, LEN, RW), mw);
}

static void test_outside_region(void **state)
{
	static const struct {
		uint64_t addr, len;
	} ranges[] = { { AT - 1, 2 },	{ AT, LEN + 1 },
		       { AT + LEN, 1 }, { AT + 1, UINT64_MAX },
		       { 0, 16 },	{ UINT64_MAX, 2 } };

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		struct mw *mw = window(me->pd, MW_TYPE_2);

		expect_bind_error(
			bind_wr(mw, mr, ranges[i].addr, ranges[i].len, RW), mw);
		close_rig(state);
		open_rc(state);
	}
}

static void test_bound_twice(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_2);
	struct send_wr wr = bind_wr(mw, mr, AT, LEN, RW);
	uint64_t va;

	(void)state;
	assert_int_equal(bind(mw, RW), WC_SUCCESS);
	wr.rkey++;
	assert_int_equal(post_status(me, &wr), WC_MW_BIND_ERR);
	/* The first binding stands. */
	assert_true(mkey_remote(me->qp, me->qp->pd, mw_key(mw), AT, 1,
				ACCESS_REMOTE_READ, &va));
}

static void test_type2_of_no_bytes(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_2);

	(void)state;
	expect_bind_error(bind_wr(mw, mr, AT, 0, RW), mw);
}

static void test_type1_zero_based(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_1);

	(void)state;
	expect_bind_error(bind_wr(mw, mr, AT, 16, RW | ACCESS_ZERO_BASED), mw);
}

/* Type 1: bound again at will, and by nothing to nothing. */
static void test_type1(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_1);
	uint32_t first = mw_key(mw);
	struct send_wr wr;

	(void)state;
	assert_int_equal(bind(mw, RW), WC_SUCCESS);
	wr = bind_wr(mw, mr, AT + 64, 64, RW);
	wr.rkey = mw_index(mw) << 8 | ((first + 1) & 0xff);
	assert_int_equal(post_status(me, &wr), WC_SUCCESS);
	assert_int_equal(access_by(WR_WRITE, mw_key(mw), AT + 64, 64),
			 WC_SUCCESS);
	wr = bind_wr(mw, NULL, 0, 0, 0);
	assert_int_equal(post_status(me, &wr), WC_SUCCESS);
	assert_int_equal(mr_dereg(mr), 0);
	assert_int_equal(access_by(WR_WRITE, mw_key(mw), AT + 64, 1),
			 WC_REM_ACCESS_ERR);
}

static void test_type1_any_qp(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_1);
	uint64_t va;

	(void)state;
	assert_int_equal(bind(mw, RW), WC_SUCCESS);
	assert_true(
		mkey_remote(me->qp, me->qp->pd, mw_key(mw), AT, LEN, RW, &va));
	assert_int_equal(va, AT);
	/* No window is an lkey. */
	assert_null(
		mkey_local(me->host->hca, me->pd, mw_key(mw), AT, 1, 0, &va));
}

static void test_type1_cannot_be_invalidated(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_1);

	(void)state;
	assert_int_equal(bind(mw, RW), WC_SUCCESS);
	assert_int_equal(invalidate(mw_key(mw)), WC_LOC_QP_OP_ERR);
}

static void test_region_cannot_be_invalidated(void **state)
{
	(void)state;
	assert_int_equal(invalidate(mr_key(mr)), WC_LOC_QP_OP_ERR);
}

static void test_old_key_cannot_be_invalidated(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_2);

	(void)state;
	assert_int_equal(bind(mw, RW), WC_SUCCESS);
	assert_int_equal(invalidate(mw_key(mw) ^ 1), WC_LOC_QP_OP_ERR);
}

/* Type 2 is of the QP that bound it. */
static void test_other_qp(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_2);
	struct qp_init init = { .type = QP_TYPE_RC,
				.send_cq = me->scq,
				.recv_cq = me->rcq,
				.cap = { .max_send_wr = 1 } };
	struct qp_cap cap;
	struct qp *other;
	uint64_t va;

	(void)state;
	assert_int_equal(qp_create(me->pd, &init, &cap, &other), 0);
	assert_int_equal(bind(mw, RW), WC_SUCCESS);
	assert_true(
		mkey_remote(me->qp, me->qp->pd, mw_key(mw), AT, 1, RW, &va));
	assert_false(mkey_remote(other, other->pd, mw_key(mw), AT, 1, RW, &va));
	assert_false(mw_invalidate(other, mw_key(mw)));
	assert_true(mw_invalidate(me->qp, mw_key(mw)));
	assert_int_equal(qp_destroy(other), 0);
}

/* Destroying the QP frees its windows; the region can go then. */
static void test_qp_destroyed(void **state)
{
	struct mw *a = window(me->pd, MW_TYPE_2);
	struct mw *b = window(me->pd, MW_TYPE_2);

	(void)state;
	assert_int_equal(bind(a, RW), WC_SUCCESS);
	assert_int_equal(bind(b, RW), WC_SUCCESS);
	assert_int_equal(mr_dereg(mr), -EBUSY);
	assert_int_equal(qp_destroy(me->qp), 0);
	assert_int_equal(mr_dereg(mr), 0);
	assert_int_equal(mw_destroy(a), 0);
	assert_int_equal(mw_destroy(b), 0);
}

static void test_busy(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_2);
	struct mr_attr a = { .va = AT,
			     .iova = AT,
			     .len_bytes = LEN,
			     .access = ACCESS_LOCAL_WRITE };

	(void)state;
	assert_int_equal(bind(mw, RW), WC_SUCCESS);
	assert_int_equal(mr_dereg(mr), -EBUSY);
	assert_int_equal(mr_rereg(mr, MR_REREG_ACCESS, NULL, &a), -EBUSY);
	assert_int_equal(mr_rereg(mr, MR_REREG_TRANSLATION, NULL, &a), -EBUSY);
	assert_int_equal(mr_rereg(mr, MR_REREG_PD, me->pd, &a), -EBUSY);
	assert_int_equal(mw_destroy(mw), 0); /* bound */
	assert_int_equal(mr_rereg(mr, MR_REREG_ACCESS, NULL, &a), 0);
	assert_int_equal(mr_dereg(mr), 0);
}

/* The rights are those of the window, not those of the region. */
static void test_rights(void **state)
{
	static const struct {
		uint32_t access, opcode;
		uint32_t status;
	} cases[] = {
		{ ACCESS_REMOTE_WRITE, WR_WRITE, WC_SUCCESS },
		{ ACCESS_REMOTE_WRITE, WR_READ, WC_REM_ACCESS_ERR },
		{ ACCESS_REMOTE_WRITE, WR_FETCH_ADD, WC_REM_ACCESS_ERR },
		{ ACCESS_REMOTE_READ, WR_READ, WC_SUCCESS },
		{ ACCESS_REMOTE_READ, WR_WRITE, WC_REM_ACCESS_ERR },
		{ ACCESS_REMOTE_ATOMIC, WR_FETCH_ADD, WC_SUCCESS },
		{ ACCESS_REMOTE_ATOMIC, WR_CMP_SWAP, WC_SUCCESS },
		{ ACCESS_REMOTE_ATOMIC, WR_WRITE, WC_REM_ACCESS_ERR },
		{ 0, WR_READ, WC_REM_ACCESS_ERR },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct mw *mw = window(me->pd, MW_TYPE_2);

		assert_int_equal(bind(mw, cases[i].access), WC_SUCCESS);
		assert_int_equal(access_by(cases[i].opcode, mw_key(mw), AT, 8),
				 cases[i].status);
		close_rig(state);
		open_rc(state);
	}
}

static void test_bounds(void **state)
{
	static const struct {
		uint64_t addr;
		uint32_t len, status;
	} cases[] = {
		{ AT + 100, 50, WC_SUCCESS },
		{ AT + 149, 1, WC_SUCCESS },
		{ AT + 99, 1, WC_REM_ACCESS_ERR },
		{ AT + 150, 1, WC_REM_ACCESS_ERR },
		{ AT + 100, 51, WC_REM_ACCESS_ERR },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct mw *mw = window(me->pd, MW_TYPE_2);
		struct send_wr wr = bind_wr(mw, mr, AT + 100, 50, RW);

		assert_int_equal(post_status(me, &wr), WC_SUCCESS);
		assert_int_equal(access_by(WR_WRITE, mw_key(mw), cases[i].addr,
					   cases[i].len),
				 cases[i].status);
		close_rig(state);
		open_rc(state);
	}
}

static void test_zero_based(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_2);
	struct send_wr wr =
		bind_wr(mw, mr, AT + 100, 50, RW | ACCESS_ZERO_BASED);

	(void)state;
	memset(rig_bytes(peer->host, RIG_VA), 0x5a, 50);
	assert_int_equal(post_status(me, &wr), WC_SUCCESS);
	assert_int_equal(access_by(WR_WRITE, mw_key(mw), 0, 50), WC_SUCCESS);
	assert_int_equal(*rig_bytes(me->host, AT + 100), 0x5a);
	assert_int_equal(*rig_bytes(me->host, AT + 149), 0x5a);
	assert_int_equal(*rig_bytes(me->host, AT + 99), 0);
	assert_int_equal(access_by(WR_WRITE, mw_key(mw), AT + 100, 1),
			 WC_REM_ACCESS_ERR);
}

/* B080, B037: the receiver is told which key. */
static void test_send_inv(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_2);
	struct send_wr wr = { .opcode = WR_SEND_INV };
	struct wc wc;

	(void)state;
	assert_int_equal(bind(mw, RW), WC_SUCCESS);
	assert_int_equal(rig_post_recv(me, 7, 0, 64), 0);
	wr.imm_be_or_rkey = mw_key(mw);
	assert_int_equal(post_status(peer, &wr), WC_SUCCESS);
	assert_int_equal(cq_poll(me->rcq, 1, &wc), 1);
	assert_int_equal(wc.status, WC_SUCCESS);
	assert_int_equal(wc.wc_flags, WC_WITH_INV);
	assert_int_equal(wc.imm_be_or_rkey, mw_key(mw));
	assert_int_equal(mr_dereg(mr), 0);
	assert_int_equal(access_by(WR_WRITE, mw_key(mw), AT, 1),
			 WC_REM_ACCESS_ERR);
}

static void test_send_inv_of_nothing(void **state)
{
	struct send_wr wr = { .opcode = WR_SEND_INV };
	struct wc wc;

	(void)state;
	wr.imm_be_or_rkey = mr_key(mr);
	assert_int_equal(rig_post_recv(me, 7, 0, 64), 0);
	assert_int_equal(post_status(peer, &wr), WC_REM_ACCESS_ERR);
	assert_int_equal(cq_poll(me->rcq, 1, &wc), 1);
	assert_int_equal(wc.status, WC_REM_INV_REQ_ERR);
	assert_int_equal(qp_state(me->qp), QP_STATE_ERR);
}

/* B092: what was flushed was not done, and everything can be freed. */
static void test_flushed(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_2);

	(void)state;
	assert_int_equal(bind(mw, RW), WC_SUCCESS);
	assert_int_equal(rig_state(me, QP_STATE_ERR), 0);
	assert_int_equal(invalidate(mw_key(mw)), WC_WR_FLUSH_ERR);
	assert_int_equal(mr_dereg(mr), -EBUSY);
	assert_int_equal(mw_destroy(mw), 0);
	assert_int_equal(mr_dereg(mr), 0);
	mr = region(me->pd, ACCESS_LOCAL_WRITE);
}

/* A window whose bind is still queued goes away: the bind finds nothing. */
static void test_destroyed_before_bind(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_2);
	struct send_wr wr = bind_wr(mw, mr, AT, LEN, RW);

	(void)state;
	assert_int_equal(qp_post_send(me->qp, &wr), 0);
	assert_int_equal(mw_destroy(mw), 0);
	qp_ring(me->qp);
	assert_int_equal(next_status(me), WC_MW_BIND_ERR);
	assert_int_equal(mr_dereg(mr), 0);
}

/* Local work waits for what came before and holds up what comes after. */
static void test_order(void **state)
{
	static const uint32_t want[] = { WC_RDMA_READ, WC_BIND_MW,
					 WC_RDMA_WRITE, WC_LOCAL_INV, WC_SEND };
	struct mw *mw = window(me->pd, MW_TYPE_2);
	struct sge s = { .addr = RIG_VA,
			 .len_bytes = 8,
			 .lkey = mr_key(me->mr) };
	struct send_wr far = { .sge = &s,
			       .num_sge = 1,
			       .remote_addr = RIG_VA,
			       .rkey = mr_key(peer->mr) };
	struct send_wr wr = bind_wr(mw, mr, AT, LEN, RW);
	struct send_wr inv = { .opcode = WR_LOCAL_INV,
			       .imm_be_or_rkey = mw_key(mw) };
	struct wc wc;

	(void)state;
	assert_int_equal(rig_post_recv(peer, 1, 0, 64), 0);
	far.opcode = WR_READ;
	assert_int_equal(qp_post_send(me->qp, &far), 0);
	assert_int_equal(qp_post_send(me->qp, &wr), 0);
	far.opcode = WR_WRITE;
	assert_int_equal(qp_post_send(me->qp, &far), 0);
	assert_int_equal(qp_post_send(me->qp, &inv), 0);
	far.opcode = WR_SEND;
	assert_int_equal(qp_post_send(me->qp, &far), 0);
	qp_ring(me->qp);
	rig_run(&rig, 1000000);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_int_equal(cq_poll(me->scq, 1, &wc), 1);
		assert_int_equal(wc.status, WC_SUCCESS);
		assert_int_equal(wc.opcode, want[i]);
	}
	assert_int_equal(mr_dereg(mr), 0);
}

static void test_uc(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_2);

	(void)state;
	memset(rig_bytes(peer->host, RIG_VA), 0x77, 64);
	assert_int_equal(bind(mw, RW), WC_SUCCESS);
	assert_int_equal(access_by(WR_WRITE, mw_key(mw), AT, 64), WC_SUCCESS);
	assert_int_equal(*rig_bytes(me->host, AT + 63), 0x77);
	assert_int_equal(invalidate(mw_key(mw)), WC_SUCCESS);
	memset(rig_bytes(peer->host, RIG_VA), 0x78, 64);
	assert_int_equal(access_by(WR_WRITE, mw_key(mw), AT, 64), WC_SUCCESS);
	assert_int_equal(*rig_bytes(me->host, AT + 63), 0x77); /* dropped */
	/* A fault ends in SQE, what follows is flushed. */
	assert_int_equal(invalidate(mw_key(mw) ^ 1), WC_LOC_QP_OP_ERR);
	assert_int_equal(qp_state(me->qp), QP_STATE_SQE);
}

static void test_bad_posts(void **state)
{
	struct mw *mw = window(me->pd, MW_TYPE_2);
	struct send_wr wr = bind_wr(mw, NULL, AT, LEN, RW);

	(void)state;
	assert_int_equal(qp_post_send(me->qp, &wr), -EINVAL); /* no region */
	wr = bind_wr(mw, mr, AT, LEN, ACCESS_MW_BIND);
	assert_int_equal(qp_post_send(me->qp, &wr), -EINVAL);
	wr = bind_wr(mw, mr, AT, LEN, RW);
	wr.flags = WR_INLINE;
	assert_int_equal(qp_post_send(me->qp, &wr), -EINVAL);
	assert_int_equal(mw_create(me->pd, (enum mw_type)0, &mw), -EINVAL);
	assert_int_equal(mw_create(me->pd, (enum mw_type)3, &mw), -EINVAL);
}

/* Reads zeros, swallows writes, serves nobody else. */
static void test_null_region(void **state)
{
	uint32_t sizes[] = { 0, 1, 4096, 100000 };
	struct mr *null;
	struct sge s[2];
	struct send_wr wr = { .sge = s, .num_sge = 2, .remote_addr = RIG_VA };
	uint64_t va;

	(void)state;
	assert_int_equal(mr_reg_null(me->pd, &null), 0);
	wr.rkey = mr_key(peer->mr);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint8_t *dst = rig_bytes(peer->host, RIG_VA);

		memset(dst, 0xff, 200000);
		s[0] = (struct sge){ .addr = UINT64_MAX - 200000,
				     .len_bytes = sizes[i],
				     .lkey = mr_key(null) };
		s[1] = (struct sge){ .addr = RIG_VA,
				     .len_bytes = 4,
				     .lkey = mr_key(me->mr) };
		memset(rig_bytes(me->host, RIG_VA), 0x11, 4);
		wr.opcode = WR_WRITE;
		assert_int_equal(post_status(me, &wr), WC_SUCCESS);
		for (uint32_t k = 0; k < sizes[i]; k++)
			assert_int_equal(dst[k], 0);
		assert_int_equal(dst[sizes[i]], 0x11);
		assert_int_equal(dst[sizes[i] + 4], 0xff);
		wr.opcode = WR_READ;
		assert_int_equal(post_status(me, &wr), WC_SUCCESS);
	}
	assert_false(mkey_remote(me->qp, me->qp->pd, mr_key(null), 0, 1,
				 ACCESS_REMOTE_READ, &va));
	assert_int_equal(mr_rereg(null, MR_REREG_PD, me->pd, NULL), -EINVAL);
	assert_int_equal(mr_dereg(null), 0);
}

#define RC(name) cmocka_unit_test_setup_teardown(name, open_rc, close_rig)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RC(test_key_bytes),
		RC(test_other_index),
		RC(test_region_index),
		RC(test_window_as_region),
		RC(test_window_pd),
		RC(test_region_pd),
		RC(test_qp_pd),
		RC(test_region_without_right),
		RC(test_region_without_write),
		RC(test_atomic_without_write),
		RC(test_zero_based_region),
		RC(test_outside_region),
		RC(test_bound_twice),
		RC(test_type2_of_no_bytes),
		RC(test_type1_zero_based),
		RC(test_type1),
		RC(test_type1_any_qp),
		RC(test_type1_cannot_be_invalidated),
		RC(test_region_cannot_be_invalidated),
		RC(test_old_key_cannot_be_invalidated),
		RC(test_other_qp),
		RC(test_qp_destroyed),
		RC(test_busy),
		RC(test_rights),
		RC(test_bounds),
		RC(test_zero_based),
		RC(test_send_inv),
		RC(test_send_inv_of_nothing),
		RC(test_flushed),
		RC(test_destroyed_before_bind),
		RC(test_order),
		cmocka_unit_test_setup_teardown(test_uc, open_uc, close_rig),
		RC(test_bad_posts),
		RC(test_null_region),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
