/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * verbs_xrc_test.c - XRC domains, SRQs and both halves of the connection, as a
 * program meets them. LD_LIBRARY_PATH decides whose library.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs_self.h"

static struct self me;
static struct ibv_cq *scq, *rcq;

static struct ibv_xrcd *xrcd_open(struct ibv_context *c, int fd, int oflags)
{
	struct ibv_xrcd_init_attr a = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
						     IBV_XRCD_INIT_ATTR_OFLAGS,
					.fd = fd,
					.oflags = oflags };

	return ibv_open_xrcd(c, &a);
}

static struct ibv_srq *srq_new(struct ibv_xrcd *x, uint32_t *ret_num)
{
	struct ibv_srq_init_attr_ex a = {
		.attr = { .max_wr = 8, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = me.pd,
		.xrcd = x,
		.cq = rcq,
	};
	struct ibv_srq *srq = ibv_create_srq_ex(me.ctx, &a);

	assert_non_null(srq);
	assert_int_equal(ibv_get_srq_num(srq, ret_num), 0);
	return srq;
}

static struct ibv_qp *target_new(struct ibv_xrcd *x)
{
	struct ibv_qp_init_attr_ex a = { .qp_type = IBV_QPT_XRC_RECV,
					 .comp_mask = IBV_QP_INIT_ATTR_XRCD,
					 .xrcd = x };
	struct ibv_qp *qp = ibv_create_qp_ex(me.ctx, &a);

	assert_non_null(qp);
	return qp;
}

static struct ibv_qp *initiator_new(void)
{
	struct ibv_qp_init_attr_ex a = { .send_cq = scq, /* [B112] */
					 .cap = { 16, 0, 2, 0, 64 },
					 .qp_type = IBV_QPT_XRC_SEND,
					 .comp_mask = IBV_QP_INIT_ATTR_PD,
					 .pd = me.pd };
	struct ibv_qp *qp = ibv_create_qp_ex(me.ctx, &a);

	assert_non_null(qp);
	return qp;
}

/* Two processes would do it the same way. */
static void connect_pair(struct ibv_qp *ini, struct ibv_qp *tgt)
{
	self_init(&me, tgt);
	self_init(&me, ini);
	self_rtr(&me, tgt, ini->qp_num);
	self_rtr(&me, ini, tgt->qp_num);
	self_rts(tgt);
	self_rts(ini);
}

static void post(struct ibv_qp *ini, struct ibv_send_wr *wr, uint32_t srqn,
		 size_t off, uint32_t len)
{
	struct ibv_sge g = self_sge(&me, off, len);
	struct ibv_send_wr *bad;

	wr->sg_list = &g;
	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	wr->qp_type.xrc.remote_srqn = srqn;
	assert_int_equal(ibv_post_send(ini, wr, &bad), 0);
}

static void test_domains(void **state)
{
	char path[] = "/tmp/softhca-xrcd-XXXXXX";
	struct ibv_xrcd_init_attr none = { 0 };
	struct ibv_xrcd *a, *b;
	int fd = mkstemp(path), again = open(path, O_RDONLY);

	(void)state;
	assert_true(fd >= 0 && again >= 0);
	unlink(path);
	assert_null_errno(ibv_open_xrcd(me.ctx, &none), EINVAL);
	assert_null_errno(xrcd_open(me.ctx, fd, 0), EAGAIN);
	assert_null_errno(xrcd_open(me.ctx, 12345, O_CREAT), EBADF);
	a = xrcd_open(me.ctx, fd, O_CREAT);
	assert_non_null(a);
	assert_null_errno(xrcd_open(me.ctx, again, O_CREAT | O_EXCL), EINVAL);
	b = xrcd_open(me.ctx, again, 0); /* the same file: the same domain */
	assert_non_null(b);
	assert_int_equal(ibv_close_xrcd(a), 0);
	assert_int_equal(ibv_close_xrcd(b), 0);
	assert_null_errno(xrcd_open(me.ctx, again, 0), EAGAIN);
	a = xrcd_open(me.ctx, -1, O_CREAT);
	b = xrcd_open(me.ctx, -1, O_CREAT | O_EXCL); /* each its own */
	assert_non_null(a);
	assert_non_null(b);
	assert_int_equal(ibv_close_xrcd(a), 0);
	assert_int_equal(ibv_close_xrcd(b), 0);
	close(fd);
	close(again);
}

static void test_busy(void **state)
{
	struct ibv_xrcd *x = xrcd_open(me.ctx, -1, O_CREAT);
	struct ibv_srq *srq;
	struct ibv_qp *tgt;
	uint32_t num;

	(void)state;
	srq = srq_new(x, &num);
	assert_true(num > 0 && num <= 0xffffff);
	assert_int_equal(ibv_close_xrcd(x), EBUSY);
	assert_int_equal(ibv_destroy_cq(rcq), EBUSY);
	tgt = target_new(x);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(x), EBUSY);
	assert_int_equal(ibv_destroy_qp(tgt), 0);
	assert_int_equal(ibv_close_xrcd(x), 0);
}

static void test_bad_arguments(void **state)
{
	struct ibv_qp_init_attr_ex tgt = { .qp_type = IBV_QPT_XRC_RECV,
					   .comp_mask = IBV_QP_INIT_ATTR_PD,
					   .pd = me.pd };
	struct ibv_qp_init_attr_ex ini = { .qp_type = IBV_QPT_XRC_SEND,
					   .comp_mask = IBV_QP_INIT_ATTR_PD,
					   .cap = { 1, 0, 1, 0, 0 },
					   .pd = me.pd };
	struct ibv_srq_init_attr_ex srq = {
		.attr = { .max_wr = 8, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.pd = me.pd
	};

	(void)state;
	assert_null_errno(ibv_create_qp_ex(me.ctx, &tgt), EINVAL);
	assert_null_errno(ibv_create_qp_ex(me.ctx, &ini), EINVAL);
	assert_null_errno(ibv_create_srq_ex(me.ctx, &srq), EINVAL);
	srq.srq_type = IBV_SRQT_TM;
	assert_null_errno(ibv_create_srq_ex(me.ctx, &srq), EOPNOTSUPP);
}

static void check_operations(struct ibv_qp *ini, struct ibv_qp *tgt,
			     struct ibv_srq *srq, uint32_t num)
{
	struct ibv_send_wr wr = { .wr_id = 1, .opcode = IBV_WR_SEND };
	uint64_t word = 5;
	struct ibv_wc wc;

	memset(me.mem, 0x5a, 9000);
	self_srq_recv(&me, srq, 77, 16384, 9000);
	post(ini, &wr, num, 0, 9000);
	wc = self_poll(rcq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 77);
	assert_int_equal(wc.qp_num, tgt->qp_num);
	assert_int_equal(wc.src_qp, ini->qp_num);
	assert_int_equal(wc.byte_len, 9000);
	assert_memory_equal(me.mem, me.mem + 16384, 9000);
	assert_int_equal(self_poll(scq).status, IBV_WC_SUCCESS);
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = (uintptr_t)me.mem + 32768;
	wr.wr.rdma.rkey = me.mr->rkey;
	post(ini, &wr, num, 0, 5000);
	assert_int_equal(self_poll(scq).status, IBV_WC_SUCCESS);
	assert_memory_equal(me.mem, me.mem + 32768, 5000);
	wr.opcode = IBV_WR_RDMA_READ;
	post(ini, &wr, num, 40000, 5000);
	assert_int_equal(self_poll(scq).status, IBV_WC_SUCCESS);
	assert_memory_equal(me.mem + 40000, me.mem + 32768, 5000);
	memcpy(me.mem + 50000, &word, 8);
	memset(&wr.wr, 0, sizeof(wr.wr));
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = (uintptr_t)me.mem + 50000;
	wr.wr.atomic.rkey = me.mr->rkey;
	wr.wr.atomic.compare_add = 2;
	post(ini, &wr, num, 50008, 8);
	assert_int_equal(self_poll(scq).status, IBV_WC_SUCCESS);
	memcpy(&word, me.mem + 50008, 8);
	assert_int_equal(word, 5);
	memcpy(&word, me.mem + 50000, 8);
	assert_int_equal(word, 7);
}

static void test_operations(void **state)
{
	struct ibv_xrcd *x = xrcd_open(me.ctx, -1, O_CREAT);
	struct ibv_qp *tgt = target_new(x), *ini = initiator_new();
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_srq *srq, *second;
	uint32_t num, num2;
	struct ibv_send_wr wr = { .wr_id = 4, .opcode = IBV_WR_SEND };

	(void)state;
	srq = srq_new(x, &num);
	second = srq_new(x, &num2);
	assert_int_not_equal(num, num2);
	connect_pair(ini, tgt);
	check_operations(ini, tgt, srq, num);
	/* One connection reaches every SRQ of the domain. */
	check_operations(ini, tgt, second, num2);
	assert_int_equal(ibv_query_qp(tgt, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(init.qp_type, IBV_QPT_XRC_RECV);
	/* An SRQ that is gone: both halves fail, as the book says. */
	assert_int_equal(ibv_destroy_srq(second), 0);
	post(ini, &wr, num2, 0, 8);
	assert_int_equal(self_poll(scq).status, IBV_WC_REM_INV_REQ_ERR);
	assert_ptr_equal(self_event(&me, IBV_EVENT_QP_REQ_ERR).element.qp, tgt);
	self_event(&me, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_int_equal(ibv_destroy_qp(ini), 0);
	assert_int_equal(ibv_destroy_qp(tgt), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(x), 0);
}

static void test_builders(void **state)
{
	struct ibv_qp_init_attr_ex a = {
		.send_cq = scq,
		.cap = { 4, 0, 1, 0, 0 },
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = me.pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_xrcd *x = xrcd_open(me.ctx, -1, O_CREAT);
	struct ibv_qp *tgt = target_new(x);
	struct ibv_qp *ini = ibv_create_qp_ex(me.ctx, &a);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(ini);
	struct ibv_srq *srq;
	uint32_t num;

	(void)state;
	srq = srq_new(x, &num);
	connect_pair(ini, tgt);
	self_srq_recv(&me, srq, 5, 4096, 64);
	ibv_wr_start(ex);
	ex->wr_id = 6;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_xrc_srqn(ex, num);
	ibv_wr_set_sge(ex, me.mr->lkey, (uintptr_t)me.mem, 64);
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(self_poll(rcq).wr_id, 5);
	assert_int_equal(self_poll(scq).wr_id, 6);
	assert_int_equal(ibv_destroy_qp(ini), 0);
	assert_int_equal(ibv_destroy_qp(tgt), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(x), 0);
}

/* A second context of the process opens the target by domain and number, hears
 * its events, and keeps it alive. */
static void test_open_qp(void **state)
{
	char path[] = "/tmp/softhca-xrcd-XXXXXX";
	int fd = mkstemp(path);
	struct ibv_context *other = ibv_open_device(me.ctx->device);
	struct ibv_xrcd *x = xrcd_open(me.ctx, fd, O_CREAT);
	struct ibv_xrcd *y = xrcd_open(other, fd, 0);
	struct ibv_qp *tgt = target_new(x), *ini = initiator_new(), *held;
	struct ibv_qp_open_attr o = { .comp_mask = IBV_QP_OPEN_ATTR_NUM |
						   IBV_QP_OPEN_ATTR_XRCD |
						   IBV_QP_OPEN_ATTR_TYPE |
						   IBV_QP_OPEN_ATTR_CONTEXT,
				      .qp_num = tgt->qp_num,
				      .xrcd = y,
				      .qp_context = &o,
				      .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_async_event e;
	struct ibv_srq *srq;
	struct ibv_send_wr wr = { .wr_id = 4, .opcode = IBV_WR_SEND };
	uint32_t num;

	(void)state;
	unlink(path);
	srq = srq_new(x, &num);
	held = ibv_open_qp(other, &o);
	assert_non_null(held);
	assert_int_equal(held->qp_num, tgt->qp_num);
	assert_ptr_equal(held->qp_context, &o);
	o.qp_num = ini->qp_num; /* not a target, not of the domain */
	assert_null_errno(ibv_open_qp(other, &o), EINVAL);
	connect_pair(ini, tgt);
	assert_int_equal(ibv_destroy_qp(tgt), 0);
	self_srq_recv(&me, srq, 9, 4096, 64);
	post(ini, &wr, num, 0, 64);
	assert_int_equal(self_poll(rcq).wr_id, 9);
	assert_int_equal(self_poll(scq).wr_id, 4);
	post(ini, &wr, 0, 0, 64);
	assert_int_equal(self_poll(scq).status, IBV_WC_REM_INV_REQ_ERR);
	assert_true(self_readable(other->async_fd, SELF_WAIT_MS));
	assert_int_equal(ibv_get_async_event(other, &e), 0);
	assert_int_equal(e.event_type, IBV_EVENT_QP_REQ_ERR);
	assert_ptr_equal(e.element.qp, held);
	ibv_ack_async_event(&e);
	self_no_event(&me);
	assert_int_equal(ibv_destroy_qp(held), 0);
	assert_int_equal(ibv_destroy_qp(ini), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(y), 0);
	assert_int_equal(ibv_close_xrcd(x), 0);
	assert_int_equal(ibv_close_device(other), 0);
	close(fd);
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
		cmocka_unit_test(test_domains),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_bad_arguments),
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_builders),
		cmocka_unit_test(test_open_qp),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
