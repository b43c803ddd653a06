/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * verbs_events_test.c - completion channels, asynchronous events and their
 * acknowledgement; the ibv_wr_* and extended CQ ways; on QPs that are
 * connected to themselves [B154]. A plain verbs program: LD_LIBRARY_PATH
 * decides whose library it meets.
 */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include <infiniband/verbs.h>

#define PORT 1
#define LEN 256
#define WAIT_MS 10000 /* for what must come */
#define GRACE_MS 100  /* for what must not */

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static _Alignas(8) char mem[4 * LEN];
static union ibv_gid gid;
static uint8_t gid_index;
static enum ibv_mtu mtu;

/* ---- helpers ---- */

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
	assert_int_equal(ibv_modify_qp(qp, a, mask), 0);
}

static void connect_to_self(struct ibv_qp *qp)
{
	struct ibv_qp_attr a;

	memset(&a, 0, sizeof(a));
	a.qp_state = IBV_QPS_INIT;
	a.port_num = PORT;
	a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			    IBV_ACCESS_REMOTE_ATOMIC;
	modify(qp, &a,
	       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		       IBV_QP_ACCESS_FLAGS);
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = mtu;
	a.dest_qp_num = qp->qp_num;
	a.max_dest_rd_atomic = 1;
	a.min_rnr_timer = 1;
	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = PORT;
	a.ah_attr.grh.dgid = gid;
	a.ah_attr.grh.sgid_index = gid_index;
	a.ah_attr.grh.hop_limit = 64;
	modify(qp, &a,
	       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		       IBV_QP_MIN_RNR_TIMER);
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 14;
	a.retry_cnt = 7;
	a.rnr_retry = 7;
	a.max_rd_atomic = 1;
	modify(qp, &a,
	       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		       IBV_QP_MAX_QP_RD_ATOMIC);
}

static struct ibv_qp *qp_new(struct ibv_cq *scq, struct ibv_cq *rcq)
{
	struct ibv_qp_init_attr i = {
		.send_cq = scq,
		.recv_cq = rcq,
		.cap = { 8, 8, 2, 2, 64 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &i);

	assert_non_null(qp);
	connect_to_self(qp);
	return qp;
}

static struct ibv_cq *cq_new(struct ibv_comp_channel *ch, void *user)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 32, user, ch, 0);

	assert_non_null(cq);
	return cq;
}

static struct ibv_sge sge_at(size_t off, uint32_t len)
{
	struct ibv_sge s = { .addr = (uintptr_t)mem + off,
			     .length = len,
			     .lkey = mr->lkey };

	return s;
}

static void post_recv(struct ibv_qp *qp)
{
	struct ibv_sge s = sge_at(LEN, LEN);
	struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = &s, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

static void post_send(struct ibv_qp *qp, unsigned int flags)
{
	struct ibv_sge s = sge_at(0, 16);
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &s,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED | flags };
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void poll_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int64_t end = now_ms() + WAIT_MS;
	int n;

	do
		n = ibv_poll_cq(cq, 1, wc);
	while (!n && now_ms() < end);
	assert_int_equal(n, 1);
}

static bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* ---- destroy waits for the acknowledgement ---- */

struct destroyer {
	pthread_t thread;
	int (*destroy)(void *object);
	void *object;
	atomic_bool done;
};

static void *destroyer_run(void *arg)
{
	struct destroyer *d = arg;

	if (d->destroy(d->object))
		abort();
	atomic_store(&d->done, true);
	return NULL;
}

static void destroyer_start(struct destroyer *d, int (*destroy)(void *),
			    void *object)
{
	struct timespec grace = { .tv_nsec = GRACE_MS * 1000000L };

	d->destroy = destroy;
	d->object = object;
	atomic_init(&d->done, false);
	assert_int_equal(pthread_create(&d->thread, NULL, destroyer_run, d), 0);
	nanosleep(&grace, NULL);
}

static int destroy_cq(void *cq)
{
	return ibv_destroy_cq(cq);
}

static int destroy_qp(void *qp)
{
	return ibv_destroy_qp(qp);
}

/* Two CQs on one channel, an event of each; only the acknowledged goes [B052]
 * [B053]. */
static void test_destroy_cq_waits_for_ack(void **state)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct ibv_cq *a = cq_new(ch, &a), *b = cq_new(ch, &b), *got;
	struct ibv_qp *qp = qp_new(a, b);
	struct destroyer d;
	struct ibv_wc wc;
	void *user;
	int i;

	(void)state;
	assert_int_equal(ibv_req_notify_cq(a, 0), 0);
	assert_int_equal(ibv_req_notify_cq(b, 0), 0);
	post_recv(qp);
	post_send(qp, 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(ibv_get_cq_event(ch, &got, &user), 0);
		assert_ptr_equal(user, got == a ? (void *)&a : (void *)&b);
	}
	poll_one(a, &wc);
	assert_int_equal(wc.opcode, IBV_WC_SEND);
	poll_one(b, &wc);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 16);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	ibv_ack_cq_events(a, 1);
	assert_int_equal(ibv_destroy_cq(a), 0);
	destroyer_start(&d, destroy_cq, b);
	assert_false(atomic_load(&d.done));
	ibv_ack_cq_events(b, 1);
	pthread_join(d.thread, NULL);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

/* One arming, one event, however many completions; an event that nobody read
 * goes with its CQ. */
static void test_one_event_an_arming(void **state)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct ibv_cq *cq = cq_new(ch, NULL), *got;
	struct ibv_qp *qp = qp_new(cq, cq);
	struct ibv_wc wc;
	void *user;
	int i;

	(void)state;
	post_recv(qp);
	post_send(qp, 0); /* not armed */
	for (i = 0; i < 2; i++)
		poll_one(cq, &wc);
	assert_false(readable(ch->fd, 0));
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	post_recv(qp);
	post_send(qp, 0);
	assert_true(readable(ch->fd, WAIT_MS));
	assert_int_equal(ibv_get_cq_event(ch, &got, &user), 0);
	ibv_ack_cq_events(cq, 1);
	for (i = 0; i < 2; i++)
		poll_one(cq, &wc);
	assert_false(readable(ch->fd, GRACE_MS));
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	post_recv(qp);
	post_send(qp, 0);
	assert_true(readable(ch->fd, WAIT_MS)); /* left unread */
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_false(readable(ch->fd, 0));
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

static void test_solicited_only(void **state)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct ibv_cq *s = cq_new(NULL, NULL), *r = cq_new(ch, NULL), *got;
	struct ibv_qp *qp = qp_new(s, r);
	struct ibv_wc wc;
	void *user;

	(void)state;
	assert_int_equal(ibv_req_notify_cq(r, 1), 0);
	post_recv(qp);
	post_send(qp, 0);
	poll_one(r, &wc);
	assert_false(readable(ch->fd, GRACE_MS));
	post_recv(qp);
	post_send(qp, IBV_SEND_SOLICITED);
	assert_true(readable(ch->fd, WAIT_MS));
	assert_int_equal(ibv_get_cq_event(ch, &got, &user), 0);
	assert_ptr_equal(got, r);
	ibv_ack_cq_events(r, 1);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(s), 0);
	assert_int_equal(ibv_destroy_cq(r), 0);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

/* A QP on an SRQ goes to ERR: one LAST_WQE_REACHED with the right element;
 * destroy waits for its ack [B064] [B065] [B070]. */
static void test_async_event(void **state)
{
	struct ibv_srq_init_attr si = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_cq *cq = cq_new(NULL, NULL);
	struct ibv_srq *srq = ibv_create_srq(pd, &si);
	struct ibv_qp_init_attr i = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr err = { .qp_state = IBV_QPS_ERR };
	struct ibv_async_event e;
	struct destroyer d;
	struct ibv_qp *qp;

	(void)state;
	assert_non_null(srq);
	qp = ibv_create_qp(pd, &i);
	assert_non_null(qp);
	connect_to_self(qp);
	modify(qp, &err, IBV_QP_STATE);
	assert_int_equal(qp->state, IBV_QPS_ERR);
	assert_true(readable(ctx->async_fd, WAIT_MS));
	assert_int_equal(ibv_get_async_event(ctx, &e), 0);
	assert_int_equal(e.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(e.element.qp, qp);
	destroyer_start(&d, destroy_qp, qp);
	assert_false(atomic_load(&d.done));
	ibv_ack_async_event(&e);
	pthread_join(d.thread, NULL);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* ---- ibv_wr_* and the extended CQ ---- */

static struct ibv_qp *qp_ex_new(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr_ex i = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 4, 4, 2, 2, 64 },
		.qp_type = IBV_QPT_RC,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags =
			IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
			IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
			IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(ctx, &i);

	assert_non_null(qp);
	connect_to_self(qp);
	return qp;
}

/* A batch of different requests with SGEs, a list and inline data. */
static void test_wr_batch(void **state)
{
	struct ibv_cq *cq = cq_new(NULL, NULL);
	struct ibv_qp *qp = qp_ex_new(cq);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	struct ibv_sge two[2] = { sge_at(0, 4), sge_at(8, 4) };
	char text[] = "inline";
	struct ibv_wc wc;
	uint64_t i;

	(void)state;
	memset(mem, 0, sizeof(mem));
	memcpy(mem, "aaaabbbbcccc", 12);
	*(uint64_t *)(void *)(mem + 2 * LEN) = 40;
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ex->wr_id = 0;
	ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)mem + LEN);
	ibv_wr_set_sge_list(ex, 2, two);
	ex->wr_id = 1;
	ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)mem + LEN + 100);
	ibv_wr_set_inline_data(ex, text, sizeof(text));
	memset(text, 'x', sizeof(text)); /* it was copied */
	ex->wr_id = 2;
	ibv_wr_atomic_fetch_add(ex, mr->rkey, (uintptr_t)mem + 2 * LEN, 2);
	ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)mem + 3 * LEN, 8);
	assert_int_equal(ibv_wr_complete(ex), 0);
	for (i = 0; i < 3; i++) {
		poll_one(cq, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, i);
	}
	assert_string_equal(mem + LEN, "aaaacccc");
	assert_string_equal(mem + LEN + 100, "inline");
	assert_int_equal(*(uint64_t *)(void *)(mem + 2 * LEN), 42);
	assert_int_equal(*(uint64_t *)(void *)(mem + 3 * LEN), 40);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* A batch that fails or is aborted posts nothing; the next one works. */
static void test_wr_batch_fails_whole(void **state)
{
	struct ibv_cq *cq = cq_new(NULL, NULL);
	struct ibv_qp *qp = qp_ex_new(cq);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	struct ibv_wc wc;
	int i;

	(void)state;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)mem);
	ibv_wr_set_inline_data(ex, mem, 65536);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)mem);
	ibv_wr_local_inv(ex, 1);
	assert_int_equal(ibv_wr_complete(ex), EOPNOTSUPP);
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)mem);
	ibv_wr_abort(ex);
	ibv_wr_start(ex);
	for (i = 0; i < 100; i++)
		ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)mem);
	assert_int_equal(ibv_wr_complete(ex), ENOMEM);
	/* Seen only when it is posted: an atomic of 4 bytes. */
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)mem);
	ibv_wr_atomic_fetch_add(ex, mr->rkey, (uintptr_t)mem, 1);
	ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)mem, 4);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ex->wr_id = 77;
	ibv_wr_rdma_write(ex, mr->rkey, (uintptr_t)mem);
	assert_int_equal(ibv_wr_complete(ex), 0);
	poll_one(cq, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 77); /* and none before it */
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* Three of four places are taken by sends that wait for a receive: a batch of
 * two is refused whole, one fits. */
static void test_wr_batch_needs_room(void **state)
{
	struct ibv_cq *cq = cq_new(NULL, NULL);
	struct ibv_qp *qp = qp_ex_new(cq);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	int i;

	(void)state;
	for (i = 0; i < 3; i++)
		post_send(qp, 0);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_send(ex);
	assert_int_equal(ibv_wr_complete(ex), ENOMEM);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void ex_take(struct ibv_cq_ex *ex, bool *ret_sent, bool *ret_received)
{
	if (ibv_wc_read_opcode(ex) == IBV_WC_SEND) {
		assert_int_equal(ex->wr_id, 1);
		*ret_sent = true;
		return;
	}
	assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_RECV);
	assert_int_equal(ex->wr_id, 2);
	assert_int_equal(ibv_wc_read_byte_len(ex), 16);
	assert_int_equal(ibv_wc_read_wc_flags(ex), 0);
	*ret_received = true;
}

static void test_cq_ex(void **state)
{
	struct ibv_cq_init_attr_ex a = { .cqe = 8,
					 .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_poll_cq_attr poll = { 0 };
	struct ibv_cq_ex *ex = ibv_create_cq_ex(ctx, &a);
	int64_t end = now_ms() + WAIT_MS;
	bool sent = false, received = false;
	struct ibv_qp *qp;

	(void)state;
	assert_non_null(ex);
	qp = qp_new(ibv_cq_ex_to_cq(ex), ibv_cq_ex_to_cq(ex));
	post_recv(qp);
	post_send(qp, 0);
	while (!(sent && received) && now_ms() < end) {
		if (ibv_start_poll(ex, &poll))
			continue;
		do {
			assert_int_equal(ex->status, IBV_WC_SUCCESS);
			assert_int_equal(ibv_wc_read_qp_num(ex), qp->qp_num);
			ex_take(ex, &sent, &received);
		} while (!ibv_next_poll(ex));
		ibv_end_poll(ex);
	}
	assert_true(sent && received);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
}

/* ---- datagrams: the way back to the sender ---- */

static struct ibv_qp *ud_new(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr i = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 4, 4, 1, 1, 0 },
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = PORT,
				 .qkey = 0x1234 };
	struct ibv_qp *qp = ibv_create_qp(pd, &i);

	assert_non_null(qp);
	modify(qp, &a,
	       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	a.qp_state = IBV_QPS_RTR;
	modify(qp, &a, IBV_QP_STATE);
	a.qp_state = IBV_QPS_RTS;
	modify(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return qp;
}

static void send_datagram(struct ibv_qp *qp, struct ibv_ah *ah)
{
	struct ibv_sge s = sge_at(0, 16);
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = &s,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qp->qp_num;
	wr.wr.ud.remote_qkey = 0x1234;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

/* Polls the send's and the receive's completion; returns the latter. */
static struct ibv_wc datagram_received(struct ibv_cq *cq)
{
	struct ibv_wc wc[2];
	int i;

	for (i = 0; i < 2; i++) {
		poll_one(cq, &wc[i]);
		assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
	}
	return wc[0].opcode == IBV_WC_RECV ? wc[0] : wc[1];
}

static void test_ah_from_wc(void **state)
{
	struct ibv_ah_attr a = { .is_global = 1, .port_num = PORT };
	struct ibv_cq *cq = cq_new(NULL, NULL);
	struct ibv_qp *qp = ud_new(cq);
	struct ibv_grh *grh = (struct ibv_grh *)(void *)(mem + LEN);
	struct ibv_ah *ah;
	struct ibv_wc wc;

	(void)state;
	a.grh.dgid = gid;
	a.grh.sgid_index = gid_index;
	a.grh.hop_limit = 3;
	a.grh.traffic_class = 0x20;
	ah = ibv_create_ah(pd, &a);
	assert_non_null(ah);
	post_recv(qp);
	send_datagram(qp, ah);
	wc = datagram_received(cq);
	assert_int_equal(wc.src_qp, qp->qp_num);
	assert_true(wc.wc_flags & IBV_WC_GRH);
	assert_int_equal(wc.byte_len, 40 + 16);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	memset(&a, 0xaa, sizeof(a));
	assert_int_equal(ibv_init_ah_from_wc(ctx, PORT, &wc, grh, &a), 0);
	assert_int_equal(a.is_global, 1);
	assert_memory_equal(&a.grh.dgid, &gid, sizeof(gid));
	assert_int_equal(a.grh.sgid_index, gid_index);
	assert_int_equal(a.grh.traffic_class & 0xfc, 0x20);
	assert_int_equal(a.sl, 0);
	assert_int_equal(a.port_num, PORT);
	ah = ibv_create_ah_from_wc(pd, &wc, grh, PORT);
	assert_non_null(ah);
	post_recv(qp);
	send_datagram(qp, ah); /* it works */
	datagram_received(cq);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_init_ah_from_wc(ctx, 2, &wc, grh, &a), -1);
	memset(grh, 0, 40);
	assert_int_equal(ibv_init_ah_from_wc(ctx, PORT, &wc, grh, &a), -1);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* ---- the device: the first, or SOFTHCA_TEST_DEVICE ---- */

static int find_gid(void)
{
	struct ibv_gid_entry e;
	struct ibv_port_attr p;
	int i;

	if (ibv_query_port(ctx, PORT, &p))
		return -1;
	mtu = p.active_mtu;
	for (i = 0; i < p.gid_tbl_len; i++)
		if (!ibv_query_gid_ex(ctx, PORT, (uint32_t)i, &e, 0)) {
			gid = e.gid;
			gid_index = (uint8_t)i;
			return 0;
		}
	return -1;
}

static int group_setup(void **state)
{
	const char *name = getenv("SOFTHCA_TEST_DEVICE");
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	(void)state;
	for (i = 0; list && list[i] && !ctx; i++)
		if (!name || !strcmp(name, ibv_get_device_name(list[i])))
			ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	if (!ctx || find_gid())
		return -1;
	pd = ibv_alloc_pd(ctx);
	mr = ibv_reg_mr(pd, mem, sizeof(mem),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC);
	return mr ? 0 : -1;
}

static int group_teardown(void **state)
{
	(void)state;
	if (ibv_dereg_mr(mr) || ibv_dealloc_pd(pd))
		return -1;
	return ibv_close_device(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_event_an_arming),
		cmocka_unit_test(test_solicited_only),
		cmocka_unit_test(test_destroy_cq_waits_for_ack),
		cmocka_unit_test(test_async_event),
		cmocka_unit_test(test_wr_batch),
		cmocka_unit_test(test_wr_batch_fails_whole),
		cmocka_unit_test(test_wr_batch_needs_room),
		cmocka_unit_test(test_cq_ex),
		cmocka_unit_test(test_ah_from_wc),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
