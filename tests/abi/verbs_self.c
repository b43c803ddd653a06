/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "verbs_self.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int find_gid(struct self *s)
{
	struct ibv_gid_entry e;
	struct ibv_port_attr p;
	int i;

	if (ibv_query_port(s->ctx, SELF_PORT, &p))
		return -1;
	s->mtu = p.active_mtu;
	s->lid = p.lid;
	for (i = 0; i < p.gid_tbl_len; i++)
		if (!ibv_query_gid_ex(s->ctx, SELF_PORT, (uint32_t)i, &e, 0)) {
			s->gid = e.gid;
			s->gid_index = (uint8_t)i;
			return 0;
		}
	return -1;
}

int self_open(struct self *s)
{
	const char *name = getenv("SOFTHCA_TEST_DEVICE");
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	memset(s, 0, sizeof(*s));
	for (i = 0; list && list[i] && !s->ctx; i++)
		if (!name || !strcmp(name, ibv_get_device_name(list[i])))
			s->ctx = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	s->mem = calloc(1, SELF_BYTES);
	if (!s->ctx || !s->mem || find_gid(s))
		return -1;
	s->pd = ibv_alloc_pd(s->ctx);
	s->mr = ibv_reg_mr(s->pd, s->mem, SELF_BYTES,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC);
	return s->mr ? 0 : -1;
}

int self_close(struct self *s)
{
	int rc = ibv_dereg_mr(s->mr) || ibv_dealloc_pd(s->pd) ||
		 ibv_close_device(s->ctx);

	free(s->mem);
	return rc ? -1 : 0;
}

struct ibv_ah_attr self_ah(const struct self *s)
{
	struct ibv_ah_attr a = { .port_num = SELF_PORT, .dlid = s->lid };

	if (s->no_grh)
		return a;
	a.is_global = 1;
	a.grh.dgid = s->gid;
	a.grh.sgid_index = s->gid_index;
	a.grh.hop_limit = 64;
	return a;
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
	assert_int_equal(ibv_modify_qp(qp, a, mask), 0);
}

void self_init(const struct self *s, struct ibv_qp *qp)
{
	bool ud = qp->qp_type == IBV_QPT_UD;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = SELF_PORT,
				 .qkey = 0x1234,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						    IBV_ACCESS_REMOTE_READ |
						    IBV_ACCESS_REMOTE_ATOMIC };

	(void)s;
	modify(qp, &a,
	       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		       (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static bool is_reliable(const struct ibv_qp *qp)
{
	return qp->qp_type != IBV_QPT_UD && qp->qp_type != IBV_QPT_UC;
}

void self_rtr(const struct self *s, struct ibv_qp *qp, uint32_t dest_qpn)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR,
				 .path_mtu = s->mtu,
				 .dest_qp_num = dest_qpn,
				 .max_dest_rd_atomic = 4,
				 .min_rnr_timer = 1,
				 .ah_attr = self_ah(s) };
	int mask = IBV_QP_STATE;

	if (qp->qp_type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN;
	if (is_reliable(qp))
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	modify(qp, &a, mask);
}

void self_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .max_rd_atomic = 4 };
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (is_reliable(qp))
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	modify(qp, &a, mask);
}

void self_connect(const struct self *s, struct ibv_qp *qp, uint32_t dest_qpn)
{
	self_init(s, qp);
	self_rtr(s, qp, dest_qpn);
	self_rts(qp);
}

struct ibv_qp *self_qp(const struct self *s, enum ibv_qp_type type,
		       struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr i = { .send_cq = cq,
				      .recv_cq = cq,
				      .srq = srq,
				      .cap = { 16, 16, 2, 2, 64 },
				      .qp_type = type };
	struct ibv_qp *qp = ibv_create_qp(s->pd, &i);

	assert_non_null(qp);
	self_connect(s, qp, qp->qp_num);
	return qp;
}

struct ibv_sge self_sge(const struct self *s, size_t off, uint32_t len)
{
	struct ibv_sge g = { .addr = (uintptr_t)s->mem + off,
			     .length = len,
			     .lkey = s->mr->lkey };

	return g;
}

void self_recv(const struct self *s, struct ibv_qp *qp, uint64_t id, size_t off,
	       uint32_t len)
{
	struct ibv_sge g = self_sge(s, off, len);
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &g, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

void self_srq_recv(const struct self *s, struct ibv_srq *srq, uint64_t id,
		   size_t off, uint32_t len)
{
	struct ibv_sge g = self_sge(s, off, len);
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &g, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

void self_send(const struct self *s, struct ibv_qp *qp, uint64_t id, size_t off,
	       uint32_t len)
{
	struct ibv_sge g = self_sge(s, off, len);
	struct ibv_send_wr wr = { .wr_id = id,
				  .sg_list = &g,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

int64_t self_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct ibv_wc self_poll(struct ibv_cq *cq)
{
	int64_t end = self_now_ms() + SELF_WAIT_MS;
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(cq, 1, &wc);
	while (!n && self_now_ms() < end);
	assert_int_equal(n, 1);
	return wc;
}

void self_no_cqe(struct ibv_cq *cq)
{
	int64_t end = self_now_ms() + SELF_GRACE_MS;
	struct ibv_wc wc;

	do
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
	while (self_now_ms() < end);
}

bool self_readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

struct ibv_async_event self_event(const struct self *s,
				  enum ibv_event_type type)
{
	struct ibv_async_event e;

	assert_true(self_readable(s->ctx->async_fd, SELF_WAIT_MS));
	assert_int_equal(ibv_get_async_event(s->ctx, &e), 0);
	assert_int_equal(e.event_type, type);
	ibv_ack_async_event(&e);
	return e;
}

void self_no_event(const struct self *s)
{
	assert_false(self_readable(s->ctx->async_fd, SELF_GRACE_MS));
}
