/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/srq.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "core_rig.h"

static struct rig rig;
static struct pd *pd;

static int open_rig(void **state)
{
	(void)state;
	rig_open(&rig, NULL);
	return pd_create(rig.h[1].hca, &pd);
}

static int close_rig(void **state)
{
	(void)state;
	assert_int_equal(pd_destroy(pd), 0);
	rig_close(&rig);
	return 0;
}

static struct srq *new_srq(uint32_t wr, uint32_t sge)
{
	struct srq_attr a = { .max_wr = wr, .max_sge = sge };
	struct srq *srq;

	assert_int_equal(srq_create(pd, &a, &rig, &srq), 0);
	assert_ptr_equal(srq_user(srq), &rig);
	assert_int_not_equal(srq_num(srq), 0);
	return srq;
}

static int post(struct srq *srq, uint64_t id, int num_sge)
{
	struct sge sge[8] = { { .addr = id, .len_bytes = 10 },
			      { .addr = id + 1, .len_bytes = 20 } };
	struct recv_wr wr = { .wr_id = id, .sge = sge, .num_sge = num_sge };

	return srq_post_recv(srq, &wr);
}

static uint64_t take(struct srq *srq)
{
	static union {
		struct rwqe w;
		uint8_t room[1024];
	} u;

	assert_true(srq_take(srq, &u.w));
	assert_int_equal(u.w.num_sge, 2);
	assert_int_equal(u.w.len_bytes, 30);
	assert_int_equal(u.w.sge[1].addr, u.w.wr_id + 1);
	return u.w.wr_id;
}

static void test_fifo(void **state)
{
	struct srq *srq = new_srq(5, 2);
	uint64_t in = 0, out = 0;

	(void)state;
	for (int round = 0; round < 50; round++) {
		while (in - out < 5)
			assert_int_equal(post(srq, in++, 2), 0);
		assert_int_equal(post(srq, 99, 2), -ENOMEM);
		for (int k = 0; k < 3; k++)
			assert_int_equal(take(srq), out++);
	}
	assert_int_equal(post(srq, 99, 3), -EINVAL);
	assert_int_equal(post(srq, 99, -1), -EINVAL);
	assert_int_equal(pd_destroy(pd), -EBUSY);
	assert_int_equal(srq_destroy(srq), 0);
}

static void test_bad_attrs(void **state)
{
	const struct hca_limits *l = hca_limits(rig.h[1].hca);
	struct srq_attr a = { .max_wr = 0, .max_sge = 1 };
	struct srq *srq;

	(void)state;
	assert_int_equal(srq_create(pd, &a, NULL, &srq), -EINVAL);
	a.max_wr = l->max_srq_wr + 1;
	assert_int_equal(srq_create(pd, &a, NULL, &srq), -EINVAL);
	a.max_wr = 1;
	a.max_sge = l->max_sge + 1;
	assert_int_equal(srq_create(pd, &a, NULL, &srq), -EINVAL);
	a.max_wr = l->max_srq_wr;
	a.max_sge = l->max_sge; /* B116 */
	assert_int_equal(srq_create(pd, &a, NULL, &srq), 0);
	assert_int_equal(srq_destroy(srq), 0);
}

/* The event comes when fewer than the limit are left, once an arming. */
static void test_limit(void **state)
{
	struct srq *srq = new_srq(8, 2);
	struct srq_attr a = { .limit = 3 };
	struct hca_event ev;

	(void)state;
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(post(srq, i, 2), 0);
	assert_int_equal(srq_modify(srq, &a, SRQ_ATTR_LIMIT), 0);
	(void)take(srq);
	(void)take(srq);
	assert_true(rig_no_event(&rig.h[1]));
	(void)take(srq); /* 2 left */
	ev = rig_event(&rig.h[1]);
	assert_int_equal(ev.kind, HCA_EVENT_ASYNC);
	assert_int_equal(ev.type, ASYNC_SRQ_LIMIT_REACHED);
	assert_ptr_equal(ev.srq, srq);
	srq_query(srq, &a);
	assert_int_equal(a.limit, 0);
	(void)take(srq);
	assert_true(rig_no_event(&rig.h[1]));
	a.limit = 9;
	assert_int_equal(srq_modify(srq, &a, SRQ_ATTR_LIMIT), -EINVAL);
	/* Pending events go with the SRQ. */
	a.limit = 1;
	assert_int_equal(srq_modify(srq, &a, SRQ_ATTR_LIMIT), 0);
	(void)take(srq);
	assert_int_equal(srq_destroy(srq), 0);
	assert_true(rig_no_event(&rig.h[1]));
}

/* B074: what was given comes back and query agrees; order survives. */
static void test_resize(void **state)
{
	struct srq *srq = new_srq(4, 2);
	struct srq_attr a = { .max_wr = 10 };

	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(post(srq, 50, 2), 0);
		(void)take(srq);
	}
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(post(srq, i, 2), 0);
	assert_int_equal(srq_modify(srq, &a, SRQ_ATTR_MAX_WR), 0);
	assert_int_equal(a.max_wr, 10);
	assert_int_equal(a.max_sge, 2);
	for (uint64_t i = 4; i < 10; i++)
		assert_int_equal(post(srq, i, 2), 0);
	assert_int_equal(post(srq, 99, 2), -ENOMEM);
	a.max_wr = 9;
	assert_int_equal(srq_modify(srq, &a, SRQ_ATTR_MAX_WR), -EINVAL);
	a.max_wr = 0;
	assert_int_equal(srq_modify(srq, &a, SRQ_ATTR_MAX_WR), -EINVAL);
	assert_int_equal(srq_modify(srq, &a, 4), -EINVAL);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(take(srq), i);
	a.max_wr = 2;
	assert_int_equal(srq_modify(srq, &a, SRQ_ATTR_MAX_WR), 0);
	assert_int_equal(take(srq), 8);
	assert_int_equal(take(srq), 9);
	assert_int_equal(srq_destroy(srq), 0);
}

static void send_one(struct rig_pair *p, uint32_t len)
{
	struct send_wr wr = { .opcode = WR_SEND };

	assert_int_equal(rig_post_send(&p->e[0], wr, 0, len), 0);
	rig_pump(&rig);
}

/* B070: an SRQ's WQEs are not flushed with one of its QPs; only the one that
 * a message had begun to fill. */
static void test_last_wqe(void **state)
{
	struct rig_pair_config c = { .type = QP_TYPE_UC, .srq_wr = 8 };
	struct rig_pair p;
	struct hca_event ev;
	struct wc wc;

	(void)state;
	rig_pair_open(&p, &rig, &c);
	assert_int_equal(p.e[1].cap.max_recv_wr, 0);
	assert_int_equal(srq_destroy(p.e[1].srq), -EBUSY);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(rig_post_recv(&p.e[1], i, 0, 4096), 0);
	send_one(&p, 100);
	assert_int_equal(rig_poll(p.e[1].rcq).wr_id, 0);
	/* Half a message. */
	{
		static const uint8_t data[1024];
		struct pkt k = { .bth = { .opcode = OPCODE(TRANSPORT_UC,
							   OP_SEND_FIRST),
					  .pkey = 0xffff,
					  .dest_qpn = qp_num(p.e[1].qp),
					  .psn = psn_of(1) },
				 .payload = data,
				 .payload_bytes = 1024 };

		rig_inject(&rig.h[1], &k);
	}
	assert_int_equal(rig_state(&p.e[1], QP_STATE_ERR), 0);
	wc = rig_poll(p.e[1].rcq);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.status, WC_WR_FLUSH_ERR);
	assert_true(rig_empty(p.e[1].rcq));
	ev = rig_event(&rig.h[1]);
	assert_int_equal(ev.type, ASYNC_QP_LAST_WQE_REACHED);
	assert_ptr_equal(ev.qp, p.e[1].qp);
	assert_int_equal(rig_state(&p.e[1], QP_STATE_ERR), 0);
	assert_true(rig_no_event(&rig.h[1])); /* once */
	/* The others serve on. */
	assert_int_equal(rig_state(&p.e[1], QP_STATE_RESET), 0);
	rig_walk(&p.e[1], QP_STATE_RTS, &p.e[0], &c);
	send_one(&p, 64);
	send_one(&p, 65);
	assert_int_equal(rig_poll(p.e[1].rcq).wr_id, 2);
	wc = rig_poll(p.e[1].rcq);
	assert_int_equal(wc.wr_id, 3);
	assert_int_equal(wc.byte_len, 65);
	send_one(&p, 64);
	assert_int_equal(rig_counter(&rig.h[1], rx_drop_no_wqe), 1);
	rig_pair_close(&p);
}

/* With an SRQ receives are posted there alone, and its domain's keys count. */
static void test_own_domain(void **state)
{
	struct mr_attr ma = { .va = RIG_VA,
			      .iova = 0,
			      .len_bytes = 64,
			      .access = ACCESS_LOCAL_WRITE };
	struct rig_pair_config c = { .type = QP_TYPE_UC };
	struct qp_init qi = { .type = QP_TYPE_UC, .cap = { .max_send_wr = 1 } };
	struct sge sge = { .addr = 0, .len_bytes = 64 };
	struct recv_wr wr = { .wr_id = 5, .sge = &sge, .num_sge = 1 };
	struct srq *srq = new_srq(4, 1);
	struct rig_pair p;
	struct qp *old;
	struct mr *mr;

	(void)state;
	rig_pair_open(&p, &rig, &c);
	old = p.e[1].qp;
	qi.send_cq = qi.recv_cq = p.e[1].rcq;
	qi.srq = srq;
	assert_int_equal(mr_reg(pd, &ma, &mr), 0);
	assert_int_equal(qp_create(p.e[1].pd, &qi, &p.e[1].cap, &p.e[1].qp), 0);
	rig_walk(&p.e[1], QP_STATE_RTS, &p.e[0], &c);
	assert_int_equal(rig_state(&p.e[0], QP_STATE_RESET), 0);
	rig_walk(&p.e[0], QP_STATE_RTS, &p.e[1], &c);
	assert_int_equal(qp_post_recv(p.e[1].qp, &wr), -EINVAL);
	sge.lkey = mr_key(mr);
	assert_int_equal(srq_post_recv(srq, &wr), 0);
	*rig_bytes(&rig.h[0], RIG_VA) = 0x5a;
	send_one(&p, 1);
	assert_int_equal(rig_poll(p.e[1].rcq).status, WC_SUCCESS);
	assert_int_equal(*rig_bytes(&rig.h[1], RIG_VA), 0x5a);
	assert_int_equal(qp_destroy(p.e[1].qp), 0);
	p.e[1].qp = old;
	assert_int_equal(mr_dereg(mr), 0);
	assert_int_equal(srq_destroy(srq), 0);
	rig_pair_close(&p);
}

#define RIGGED(t) cmocka_unit_test_setup_teardown(t, open_rig, close_rig)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIGGED(test_fifo),     RIGGED(test_bad_attrs),
		RIGGED(test_limit),    RIGGED(test_resize),
		RIGGED(test_last_wqe), RIGGED(test_own_domain),
	};

	return cmocka_run_group_tests_name("srq", tests, NULL, NULL);
}
