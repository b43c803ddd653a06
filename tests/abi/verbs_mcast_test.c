/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * verbs_mcast_test.c - UD multicast as a program meets it [B128] [B130]: each
 * attached QP gets a copy, once, with a GRH in front; the sender's too.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "verbs_self.h"

static struct self me;
static struct ibv_cq *scq, *rcq;

static struct ibv_qp *ud_new(void)
{
	struct ibv_qp_init_attr i = { .send_cq = scq,
				      .recv_cq = rcq,
				      .cap = { 8, 8, 1, 1, 0 },
				      .qp_type = IBV_QPT_UD };
	struct ibv_qp *qp = ibv_create_qp(me.pd, &i);

	assert_non_null(qp);
	self_connect(&me, qp, 0);
	return qp;
}

static void group_named(union ibv_gid *g, const char *text)
{
	unsigned int b[16];

	assert_int_equal(
		sscanf(text, "%2x%2x%2x%2x%2x%2x%2x%2x%2x%2x%2x%2x%2x%2x%2x%2x",
		       &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &b[6], &b[7],
		       &b[8], &b[9], &b[10], &b[11], &b[12], &b[13], &b[14],
		       &b[15]),
		16);
	for (int i = 0; i < 16; i++)
		g->raw[i] = (uint8_t)b[i];
}

static void send_to(struct ibv_qp *qp, const union ibv_gid *group, uint64_t id)
{
	struct ibv_ah_attr a = self_ah(&me);
	struct ibv_sge g = self_sge(&me, 0, 100);
	struct ibv_send_wr wr = { .wr_id = id,
				  .sg_list = &g,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	a.grh.dgid = *group;
	wr.wr.ud.ah = ibv_create_ah(me.pd, &a);
	assert_non_null(wr.wr.ud.ah);
	wr.wr.ud.remote_qpn = 0xffffff;
	wr.wr.ud.remote_qkey = 0x1234;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(self_poll(scq).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_ah(wr.wr.ud.ah), 0);
}

/* Two of three QPs are members; the sender is one of them. */
static void copies(const char *name)
{
	struct ibv_qp *qp[3];
	union ibv_gid group;
	bool seen[3] = { false };

	group_named(&group, name);
	for (uint64_t i = 0; i < 3; i++) {
		qp[i] = ud_new();
		self_recv(&me, qp[i], i, 4096 * (i + 1), 200);
		self_recv(&me, qp[i], i, 4096 * (i + 1) + 1024, 200);
	}
	assert_int_equal(ibv_attach_mcast(qp[0], &group, 0), 0);
	assert_int_equal(ibv_attach_mcast(qp[1], &group, 0), 0);
	assert_int_equal(ibv_attach_mcast(qp[1], &group, 0), 0); /* once */
	memset(me.mem, 0x77, 100);
	send_to(qp[0], &group, 5);
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc = self_poll(rcq);

		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.byte_len, 140);
		assert_int_equal(wc.src_qp, qp[0]->qp_num);
		assert_true(wc.wc_flags & IBV_WC_GRH);
		assert_true(wc.wr_id < 2 && !seen[wc.wr_id]);
		assert_int_equal(wc.qp_num, qp[wc.wr_id]->qp_num);
		seen[wc.wr_id] = true;
		assert_memory_equal(me.mem + 4096 * (wc.wr_id + 1) + 40, me.mem,
				    100);
	}
	self_no_cqe(rcq);
	assert_int_equal(ibv_destroy_qp(qp[1]), EBUSY);
	assert_int_equal(ibv_detach_mcast(qp[1], &group, 0), 0);
	assert_int_equal(ibv_detach_mcast(qp[1], &group, 0), EINVAL);
	send_to(qp[2], &group, 6);
	assert_int_equal(self_poll(rcq).qp_num, qp[0]->qp_num);
	self_no_cqe(rcq);
	assert_int_equal(ibv_detach_mcast(qp[0], &group, 0), 0);
	send_to(qp[2], &group, 7);
	self_no_cqe(rcq);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
}

static void test_mapped_v4(void **state)
{
	(void)state;
	copies("00000000000000000000ffffef010203"); /* 239.1.2.3 */
}

static void test_rdma_cm_name(void **state)
{
	(void)state;
	copies("ff0e00000000000000000000efff0304");
	copies("ff0e000000000000ffffffffef010204");
}

/* perftest's default: no IPv4 address in it. */
static void test_other_name(void **state)
{
	(void)state;
	copies("ff01000000000002c985000000000000");
}

static void test_bad_arguments(void **state)
{
	struct ibv_qp *ud = ud_new(), *rc = self_qp(&me, IBV_QPT_RC, scq, NULL);
	union ibv_gid group;

	(void)state;
	group_named(&group, "00000000000000000000ffffef010203");
	assert_int_equal(ibv_attach_mcast(ud, &me.gid, 0), EINVAL);
	assert_int_equal(ibv_attach_mcast(rc, &group, 0), EINVAL);
	assert_int_equal(ibv_detach_mcast(ud, &group, 0), EINVAL);
	assert_int_equal(ibv_destroy_qp(ud), 0);
	assert_int_equal(ibv_destroy_qp(rc), 0);
}

/* A device that is closed takes its memberships with it. */
static void test_close_attached(void **state)
{
	struct self other;
	struct ibv_qp_init_attr i = { .cap = { 1, 1, 1, 1, 0 },
				      .qp_type = IBV_QPT_UD };
	union ibv_gid group;
	struct ibv_qp *qp;

	(void)state;
	group_named(&group, "00000000000000000000ffffef010203");
	assert_int_equal(self_open(&other), 0);
	i.send_cq = i.recv_cq = ibv_create_cq(other.ctx, 8, NULL, NULL, 0);
	qp = ibv_create_qp(other.pd, &i);
	assert_non_null(qp);
	assert_int_equal(ibv_attach_mcast(qp, &group, 0), 0);
	assert_int_equal(ibv_close_device(other.ctx), 0);
}

static int group_setup(void **state)
{
	(void)state;
	if (self_open(&me))
		return -1;
	scq = ibv_create_cq(me.ctx, 64, NULL, NULL, 0);
	rcq = ibv_create_cq(me.ctx, 64, NULL, NULL, 0);
	return scq && rcq ? 0 : -1;
}

static int group_teardown(void **state)
{
	(void)state;
	if (ibv_destroy_cq(scq) || ibv_destroy_cq(rcq))
		return -1;
	return self_close(&me);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mapped_v4),
		cmocka_unit_test(test_rdma_cm_name),
		cmocka_unit_test(test_other_name),
		cmocka_unit_test(test_bad_arguments),
		cmocka_unit_test(test_close_attached),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
