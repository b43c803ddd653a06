/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * verbs_async_test.c - the asynchronous events that a program on its own can
 * bring about, each with the element that it is about [B065]; QPs that drain,
 * fail, start again and migrate. PORT_ and GID_ events and DEVICE_FATAL need an
 * interface or a descriptor that goes: e2e_port.py, lost_fds.c. PATH_MIG_ERR
 * needs a peer that errs: apm_wrong_path.pkt.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "verbs_self.h"

static struct self me;
static struct ibv_cq *cq;

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = { .qp_state = state };

	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
}

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	assert_int_equal(ibv_query_qp(qp, &a, IBV_QP_STATE, &init), 0);
	return a.qp_state;
}

/* A WRITE of len bytes to itself at an address of the peer's. */
static void write_to(struct ibv_qp *qp, uint64_t addr, uint32_t rkey)
{
	struct ibv_sge g = self_sge(&me, 0, 8);
	struct ibv_send_wr wr = { .wr_id = 3,
				  .sg_list = &g,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

static void test_comm_est(void **state)
{
	struct ibv_qp_init_attr i = { .send_cq = cq,
				      .recv_cq = cq,
				      .cap = { 4, 4, 1, 1, 0 },
				      .qp_type = IBV_QPT_RC };
	struct ibv_qp *a = ibv_create_qp(me.pd, &i);
	struct ibv_qp *b = ibv_create_qp(me.pd, &i);

	(void)state;
	self_init(&me, b);
	self_rtr(&me, b, a->qp_num);
	self_connect(&me, a, b->qp_num);
	self_recv(&me, b, 1, 4096, 64);
	self_send(&me, a, 2, 0, 8);
	(void)self_poll(cq);
	(void)self_poll(cq);
	assert_ptr_equal(self_event(&me, IBV_EVENT_COMM_EST).element.qp, b);
	self_rts(b);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_qp(b), 0);
}

/* The initiator gets the status, the responder the event. */
static void test_access_and_request_errors(void **state)
{
	struct ibv_qp *a = self_qp(&me, IBV_QPT_RC, cq, NULL);
	struct ibv_qp *b = self_qp(&me, IBV_QPT_RC, cq, NULL);
	struct ibv_qp_attr none = { .qp_access_flags = 0 };

	(void)state;
	for (int round = 0; round < 2; round++) {
		to_state(a, IBV_QPS_RESET); /* and again from the start */
		to_state(b, IBV_QPS_RESET);
		self_connect(&me, b, a->qp_num);
		self_connect(&me, a, b->qp_num);
		if (round == 0) {
			write_to(a, (uintptr_t)me.mem, me.mr->rkey ^ 0xff);
			assert_int_equal(self_poll(cq).status,
					 IBV_WC_REM_ACCESS_ERR);
			assert_ptr_equal(
				self_event(&me, IBV_EVENT_QP_ACCESS_ERR)
					.element.qp,
				b);
			continue;
		}
		assert_int_equal(ibv_modify_qp(b, &none, IBV_QP_ACCESS_FLAGS),
				 0);
		write_to(a, (uintptr_t)me.mem, me.mr->rkey);
		assert_int_equal(self_poll(cq).status, IBV_WC_REM_INV_REQ_ERR);
		assert_ptr_equal(
			self_event(&me, IBV_EVENT_QP_REQ_ERR).element.qp, b);
	}
	assert_int_equal(state_of(a), IBV_QPS_ERR);
	assert_int_equal(state_of(b), IBV_QPS_ERR);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_qp(b), 0);
}

static void test_cq_error(void **state)
{
	struct ibv_cq *small = ibv_create_cq(me.ctx, 1, NULL, NULL, 0);
	struct ibv_qp *qp = self_qp(&me, IBV_QPT_RC, small, NULL);
	bool cq_err = false, fatal = false;

	(void)state;
	self_recv(&me, qp, 1, 4096, 64);
	self_send(&me, qp, 2, 0, 8); /* two completions for one place */
	while (!cq_err || !fatal) {
		struct ibv_async_event e;

		assert_true(self_readable(me.ctx->async_fd, SELF_WAIT_MS));
		assert_int_equal(ibv_get_async_event(me.ctx, &e), 0);
		if (e.event_type == IBV_EVENT_CQ_ERR) {
			assert_ptr_equal(e.element.cq, small);
			cq_err = true;
		} else {
			assert_int_equal(e.event_type, IBV_EVENT_QP_FATAL);
			assert_ptr_equal(e.element.qp, qp);
			fatal = true;
		}
		ibv_ack_async_event(&e);
	}
	assert_int_equal(state_of(qp), IBV_QPS_ERR);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(small), 0);
}

static void test_srq(void **state)
{
	struct ibv_srq_init_attr i = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(me.pd, &i);
	struct ibv_srq_attr a = { .srq_limit = 2 };
	struct ibv_qp *qp = self_qp(&me, IBV_QPT_RC, cq, srq);

	(void)state;
	self_srq_recv(&me, srq, 1, 4096, 64);
	self_srq_recv(&me, srq, 2, 4096, 64);
	assert_int_equal(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT), 0);
	self_send(&me, qp, 3, 0, 8);
	(void)self_poll(cq);
	(void)self_poll(cq);
	assert_ptr_equal(
		self_event(&me, IBV_EVENT_SRQ_LIMIT_REACHED).element.srq, srq);
	assert_int_equal(ibv_query_srq(srq, &a), 0);
	assert_int_equal(a.srq_limit, 0); /* disarmed */
	a.max_wr = 64;
	assert_int_equal(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR), 0);
	to_state(qp, IBV_QPS_ERR);
	assert_ptr_equal(
		self_event(&me, IBV_EVENT_QP_LAST_WQE_REACHED).element.qp, qp);
	self_no_cqe(cq); /* the SRQ keeps what nobody took */
	assert_int_equal(ibv_destroy_qp(qp), 0);
	qp = self_qp(&me, IBV_QPT_RC, cq, srq);
	self_send(&me, qp, 4, 0, 8);
	assert_int_equal(self_poll(cq).status, IBV_WC_SUCCESS);
	assert_int_equal(self_poll(cq).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void test_drained(void **state)
{
	struct ibv_qp *qp = self_qp(&me, IBV_QPT_RC, cq, NULL);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_SQD,
				 .en_sqd_async_notify = 1 };

	(void)state;
	self_recv(&me, qp, 1, 4096, 64);
	self_recv(&me, qp, 2, 4096, 64);
	self_send(&me, qp, 3, 0, 8);
	assert_int_equal(
		ibv_modify_qp(qp, &a,
			      IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
		0);
	assert_ptr_equal(self_event(&me, IBV_EVENT_SQ_DRAINED).element.qp, qp);
	(void)self_poll(cq);
	(void)self_poll(cq);
	self_send(&me, qp, 4, 0, 8); /* waits */
	self_no_cqe(cq);
	to_state(qp, IBV_QPS_RTS);
	assert_int_equal(self_poll(cq).status, IBV_WC_SUCCESS);
	assert_int_equal(self_poll(cq).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* A send that fails here: UC and UD stop sending, and can start again. */
static void send_queue_error(enum ibv_qp_type type)
{
	struct ibv_qp *qp = self_qp(&me, type, cq, NULL);
	struct ibv_ah_attr a = self_ah(&me);
	struct ibv_ah *ah = ibv_create_ah(me.pd, &a);
	struct ibv_sge g = self_sge(&me, 0, 8);
	struct ibv_send_wr wr = { .wr_id = 5,
				  .sg_list = &g,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	if (type == IBV_QPT_UD) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = qp->qp_num;
		wr.wr.ud.remote_qkey = 0x1234;
	}
	g.lkey ^= 0xff00;
	self_recv(&me, qp, 1, 4096, 256);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(self_poll(cq).status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(state_of(qp), IBV_QPS_SQE);
	g.lkey = me.mr->lkey;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(self_poll(cq).status, IBV_WC_WR_FLUSH_ERR);
	to_state(qp, IBV_QPS_RTS);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(self_poll(cq).status, IBV_WC_SUCCESS);
	assert_int_equal(self_poll(cq).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void test_send_queue_error(void **state)
{
	(void)state;
	send_queue_error(IBV_QPT_UC);
	send_queue_error(IBV_QPT_UD);
}

/* A QP that is connected to itself hears that it is in REARM, and is ARMED. */
static void test_path_migration(void **state)
{
	struct ibv_qp *qp = self_qp(&me, IBV_QPT_RC, cq, NULL);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a = { .path_mig_state = IBV_MIG_REARM };

	(void)state;
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_PATH_MIG_STATE), EINVAL);
	a.alt_ah_attr = self_ah(&me);
	a.alt_ah_attr.sl = 3;
	a.alt_port_num = SELF_PORT;
	a.alt_timeout = 15;
	assert_int_equal(
		ibv_modify_qp(qp, &a, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE),
		0);
	self_recv(&me, qp, 1, 4096, 64);
	self_send(&me, qp, 2, 0, 8);
	(void)self_poll(cq);
	(void)self_poll(cq);
	assert_int_equal(ibv_query_qp(qp, &a, IBV_QP_PATH_MIG_STATE, &init), 0);
	assert_int_equal(a.path_mig_state, IBV_MIG_ARMED);
	a.path_mig_state = IBV_MIG_MIGRATED;
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_PATH_MIG_STATE), 0);
	assert_ptr_equal(self_event(&me, IBV_EVENT_PATH_MIG).element.qp, qp);
	assert_int_equal(ibv_query_qp(qp, &a, IBV_QP_AV, &init), 0);
	assert_int_equal(a.ah_attr.sl, 3);
	assert_int_equal(a.timeout, 15);
	self_recv(&me, qp, 1, 4096, 64);
	self_send(&me, qp, 2, 0, 8);
	assert_int_equal(self_poll(cq).status, IBV_WC_SUCCESS);
	assert_int_equal(self_poll(cq).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* Nothing there: a reader that does not want to wait is told so. */
static void test_nonblocking(void **state)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(me.ctx);
	struct ibv_async_event e;
	struct ibv_cq *got;
	void *user;
	int flags = fcntl(me.ctx->async_fd, F_GETFL);

	(void)state;
	assert_int_equal(fcntl(me.ctx->async_fd, F_SETFL, flags | O_NONBLOCK),
			 0);
	assert_int_equal(fcntl(ch->fd, F_SETFL, O_NONBLOCK), 0);
	errno = 0;
	assert_int_equal(ibv_get_async_event(me.ctx, &e), -1);
	assert_int_equal(errno, EAGAIN);
	errno = 0;
	assert_int_equal(ibv_get_cq_event(ch, &got, &user), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(fcntl(me.ctx->async_fd, F_SETFL, flags), 0);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

static int group_setup(void **state)
{
	(void)state;
	if (self_open(&me))
		return -1;
	cq = ibv_create_cq(me.ctx, 64, NULL, NULL, 0);
	return cq ? 0 : -1;
}

static int group_teardown(void **state)
{
	(void)state;
	if (ibv_destroy_cq(cq))
		return -1;
	return self_close(&me);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_comm_est),
		cmocka_unit_test(test_access_and_request_errors),
		cmocka_unit_test(test_cq_error),
		cmocka_unit_test(test_srq),
		cmocka_unit_test(test_drained),
		cmocka_unit_test(test_send_queue_error),
		cmocka_unit_test(test_path_migration),
		cmocka_unit_test(test_nonblocking),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
