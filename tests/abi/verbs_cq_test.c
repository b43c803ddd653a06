/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * verbs_cq_test.c - completion queues as a program meets them: every read_*,
 * clocks, resizing, moderation, many CQs on one channel, and no wake-up that is
 * lost. E2E_LONG: a million rounds of the last.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verbs_self.h"

static struct self me;

static int64_t clock_of(clockid_t c)
{
	struct timespec t;

	clock_gettime(c, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static struct ibv_cq *cq_new(struct ibv_comp_channel *ch)
{
	struct ibv_cq *cq = ibv_create_cq(me.ctx, 32, NULL, ch, 0);

	assert_non_null(cq);
	return cq;
}

static struct ibv_cq_ex *cq_ex_new(uint64_t wc_flags, uint32_t flags)
{
	struct ibv_cq_init_attr_ex a = {
		.cqe = 32,
		.wc_flags = wc_flags,
		.comp_mask = flags ? IBV_CQ_INIT_ATTR_MASK_FLAGS : 0,
		.flags = flags,
	};
	struct ibv_cq_ex *ex = ibv_create_cq_ex(me.ctx, &a);

	assert_non_null(ex);
	return ex;
}

/* A SEND with immediate of a QP to itself: two completions. */
static void ping(struct ibv_qp *qp, uint32_t len)
{
	struct ibv_sge g = self_sge(&me, 0, len);
	struct ibv_send_wr wr = { .wr_id = 2,
				  .sg_list = &g,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND_WITH_IMM,
				  .send_flags = IBV_SEND_SIGNALED,
				  .imm_data = 0x01020304 };
	struct ibv_send_wr *bad;

	self_recv(&me, qp, 1, 4096, 4096);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

static void start_poll(struct ibv_cq_ex *ex)
{
	int64_t end = self_now_ms() + SELF_WAIT_MS;
	struct ibv_poll_cq_attr attr = { 0 };
	int rc;

	do
		rc = ibv_start_poll(ex, &attr);
	while (rc == ENOENT && self_now_ms() < end);
	assert_int_equal(rc, 0);
}

static void check_received(struct ibv_cq_ex *ex, const struct ibv_qp *qp)
{
	assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_RECV);
	assert_int_equal(ibv_wc_read_byte_len(ex), 100);
	assert_int_equal(ibv_wc_read_imm_data(ex), 0x01020304);
	assert_int_equal(ibv_wc_read_wc_flags(ex), IBV_WC_WITH_IMM);
	assert_int_equal(ibv_wc_read_src_qp(ex), qp->qp_num);
	assert_int_equal(ibv_wc_read_sl(ex), 0);
	assert_int_equal(ibv_wc_read_slid(ex), 0);
	assert_int_equal(ibv_wc_read_dlid_path_bits(ex), 0);
	assert_int_equal(ibv_wc_read_vendor_err(ex), 0);
}

/* Every field, and times that lie between a look at the clock before the post
 * and one after the poll, on the clock that the device says it has. */
static void test_reads_and_clocks(void **state)
{
	struct ibv_cq_ex *ex = cq_ex_new(
		IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
		0);
	struct ibv_qp *qp = self_qp(&me, IBV_QPT_RC, ibv_cq_ex_to_cq(ex), NULL);
	struct ibv_values_ex rt = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct ibv_device_attr_ex dev;
	int64_t wall, raw, ts;
	bool sent = false;

	(void)state;
	assert_int_equal(ibv_query_device_ex(me.ctx, NULL, &dev), 0);
	assert_int_equal(dev.hca_core_clock, 1000000); /* kHz */
	assert_true(dev.completion_timestamp_mask != 0);
	wall = clock_of(CLOCK_REALTIME);
	assert_int_equal(ibv_query_rt_values_ex(me.ctx, &rt), 0);
	raw = rt.raw_clock.tv_nsec;
	ping(qp, 100);
	for (int i = 0; i < 2; i++) {
		if (i == 0)
			start_poll(ex);
		else
			while (ibv_next_poll(ex) == ENOENT)
				;
		assert_int_equal(ex->status, IBV_WC_SUCCESS);
		assert_int_equal(ibv_wc_read_qp_num(ex), qp->qp_num);
		ts = (int64_t)ibv_wc_read_completion_ts(ex);
		assert_true(ts >= raw);
		raw = ts;
		assert_int_equal(ibv_query_rt_values_ex(me.ctx, &rt), 0);
		assert_true(ts <= rt.raw_clock.tv_nsec);
		ts = (int64_t)ibv_wc_read_completion_wallclock_ns(ex);
		assert_true(ts >= wall - 1000000 &&
			    ts <= clock_of(CLOCK_REALTIME) + 1000000);
		if (ex->wr_id == 2) {
			sent = true;
			assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_SEND);
		} else {
			check_received(ex, qp);
		}
	}
	ibv_end_poll(ex);
	assert_true(sent);
	rt.comp_mask = 1u << 5;
	assert_int_equal(ibv_query_rt_values_ex(me.ctx, &rt), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
}

/* [B059] and the completions of a destroyed QP. An acknowledged SEND has its
 * receive's completion written. */
static void test_resize_and_destroyed(void **state)
{
	struct ibv_cq *scq = cq_new(NULL), *cq = cq_new(NULL);
	struct ibv_qp_init_attr i = { .send_cq = scq,
				      .recv_cq = cq,
				      .cap = { 16, 16, 1, 1, 0 },
				      .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp[2];
	uint64_t id;

	(void)state;
	for (int k = 0; k < 2; k++) {
		qp[k] = ibv_create_qp(me.pd, &i);
		assert_non_null(qp[k]);
		self_connect(&me, qp[k], qp[k]->qp_num);
		for (id = 0; id < 5; id++) {
			self_recv(&me, qp[k], 100 * (uint64_t)k + id, 4096, 64);
			self_send(&me, qp[k], id, 0, 64);
			assert_int_equal(self_poll(scq).wr_id, id);
		}
	}
	assert_int_equal(ibv_resize_cq(cq, 9), EINVAL);
	assert_int_equal(ibv_resize_cq(cq, 100), 0);
	assert_int_equal(self_poll(cq).wr_id, 0);
	assert_int_equal(self_poll(cq).wr_id, 1);
	assert_int_equal(ibv_resize_cq(cq, 8), 0);
	assert_int_equal(self_poll(cq).wr_id, 2);
	assert_int_equal(ibv_destroy_qp(qp[0]), 0);
	for (id = 0; id < 5; id++)
		assert_int_equal(self_poll(cq).wr_id, 100 + id);
	self_no_cqe(cq);
	assert_int_equal(ibv_destroy_qp(qp[1]), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_cq(scq), 0);
}

static void test_moderation(void **state)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(me.ctx);
	struct ibv_cq *cq = cq_new(ch), *got;
	struct ibv_qp *qp = self_qp(&me, IBV_QPT_RC, cq, NULL);
	struct ibv_modify_cq_attr a = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					.moderate = { .cq_count = 4,
						      .cq_period = 60000 } };
	struct ibv_modify_cq_attr bad = { .attr_mask = 1u << 7 };
	int64_t began;
	void *user;

	(void)state;
	assert_int_equal(ibv_modify_cq(cq, &bad), EINVAL);
	assert_int_equal(ibv_modify_cq(cq, &a), 0);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	ping(qp, 8);
	ping(qp, 8); /* four completions */
	assert_true(self_readable(ch->fd, SELF_WAIT_MS));
	assert_int_equal(ibv_get_cq_event(ch, &got, &user), 0);
	for (int i = 0; i < 4; i++)
		(void)self_poll(cq);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	began = self_now_ms();
	ping(qp, 8); /* two: the period ends it */
	assert_true(self_readable(ch->fd, SELF_WAIT_MS));
	assert_true(self_now_ms() - began >= 59);
	assert_int_equal(ibv_get_cq_event(ch, &got, &user), 0);
	ibv_ack_cq_events(cq, 2);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

static void test_ignore_overrun(void **state)
{
	struct ibv_cq_init_attr_ex a = {
		.cqe = 1,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
	};
	struct ibv_cq_ex *ex = ibv_create_cq_ex(me.ctx, &a);
	struct ibv_cq *cq = ibv_cq_ex_to_cq(ex);
	struct ibv_qp *qp = self_qp(&me, IBV_QPT_RC, cq, NULL);

	(void)state;
	for (int i = 0; i < 4; i++)
		ping(qp, 8);
	self_no_event(&me);
	assert_int_equal(self_poll(cq).status, IBV_WC_SUCCESS);
	ping(qp, 8); /* the QP lives */
	assert_int_equal(self_poll(cq).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

#define CQS 16

/* One channel for many CQs on all vectors: each event names its CQ. */
static void test_many_on_one_channel(void **state)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(me.ctx);
	struct ibv_cq *cq[CQS], *got;
	struct ibv_qp *qp[CQS];
	void *user;
	int i, seen[CQS] = { 0 };

	(void)state;
	assert_true(me.ctx->num_comp_vectors >= 1);
	for (i = 0; i < CQS; i++) {
		cq[i] = ibv_create_cq(me.ctx, 8, &cq[i], ch,
				      i % me.ctx->num_comp_vectors);
		assert_non_null(cq[i]);
		qp[i] = self_qp(&me, IBV_QPT_RC, cq[i], NULL);
		assert_int_equal(ibv_req_notify_cq(cq[i], 0), 0);
	}
	assert_int_equal(ibv_destroy_comp_channel(ch), EBUSY);
	for (i = 0; i < CQS; i++)
		ping(qp[i], 8);
	for (i = 0; i < CQS; i++) {
		assert_int_equal(ibv_get_cq_event(ch, &got, &user), 0);
		assert_ptr_equal(*(struct ibv_cq **)user, got);
		seen[(struct ibv_cq **)user - cq]++;
		ibv_ack_cq_events(got, 1);
	}
	assert_false(self_readable(ch->fd, SELF_GRACE_MS));
	for (i = 0; i < CQS; i++) {
		assert_int_equal(seen[i], 1);
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
		assert_int_equal(ibv_destroy_cq(cq[i]), 0);
	}
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

/* ---- an event against its CQ's end [B068] ---- */

static void *read_events(void *arg)
{
	struct ibv_comp_channel *ch = arg;
	struct ibv_cq *cq;
	void *stop;

	do {
		if (ibv_get_cq_event(ch, &cq, &stop))
			abort();
		ibv_ack_cq_events(cq, 1);
	} while (!stop);
	return NULL;
}

/* The event is given out before the destruction, during it, or never; whoever
 * has it can acknowledge it, and none is left behind. */
static void test_event_against_destroy(void **state)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(me.ctx);
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, read_events, ch), 0);
	for (int i = 0; i <= 200; i++) {
		cq = ibv_create_cq(me.ctx, 8, i == 200 ? ch : NULL, ch, 0);
		assert_non_null(cq);
		qp = self_qp(&me, IBV_QPT_RC, cq, NULL);
		assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		ping(qp, 8);
		if (i == 200)
			pthread_join(thread, NULL);
		else if (i & 1)
			(void)self_poll(cq);
		assert_int_equal(ibv_destroy_qp(qp), 0);
		assert_int_equal(ibv_destroy_cq(cq), 0);
	}
	assert_false(self_readable(ch->fd, SELF_GRACE_MS));
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

/* ---- no wake-up is lost [B050] ---- */

struct producer {
	struct ibv_qp *qp;
	long rounds;
	atomic_long done; /* completions that the consumer has seen */
};

/* At most four ahead of the consumer, at no fixed distance. */
static void *produce(void *arg)
{
	struct producer *p = arg;
	struct ibv_sge g = self_sge(&me, 0, 1);
	struct ibv_send_wr wr = { .sg_list = &g,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)me.mem + 8192;
	wr.wr.rdma.rkey = me.mr->rkey;
	for (long i = 0; i < p->rounds; i++) {
		while (i - atomic_load(&p->done) >= 1 + (i & 3))
			sched_yield();
		if (ibv_post_send(p->qp, &wr, &bad))
			abort();
	}
	return NULL;
}

/* get_event, ack, arm, poll until empty, sleep. */
static void consume(struct ibv_comp_channel *ch, struct producer *p)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *user;

	while (atomic_load(&p->done) < p->rounds) {
		assert_true(self_readable(ch->fd, SELF_WAIT_MS));
		assert_int_equal(ibv_get_cq_event(ch, &cq, &user), 0);
		ibv_ack_cq_events(cq, 1);
		assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		while (ibv_poll_cq(cq, 1, &wc) == 1) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			atomic_fetch_add(&p->done, 1);
		}
	}
}

static void test_no_lost_wake_up(void **state)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(me.ctx);
	struct ibv_cq *cq = cq_new(ch);
	struct producer p = { .rounds = getenv("E2E_LONG") ? 1000000 : 20000 };
	pthread_t thread;

	(void)state;
	p.qp = self_qp(&me, IBV_QPT_RC, cq, NULL);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, produce, &p), 0);
	consume(ch, &p);
	pthread_join(thread, NULL);
	assert_int_equal(ibv_destroy_qp(p.qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

static int group_setup(void **state)
{
	(void)state;
	return self_open(&me);
}

static int group_teardown(void **state)
{
	(void)state;
	return self_close(&me);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_and_clocks),
		cmocka_unit_test(test_resize_and_destroyed),
		cmocka_unit_test(test_moderation),
		cmocka_unit_test(test_ignore_overrun),
		cmocka_unit_test(test_many_on_one_channel),
		cmocka_unit_test(test_event_against_destroy),
		cmocka_unit_test(test_no_lost_wake_up),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
