/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * verbs_errors_test.c - bad arguments give the error that the manual page
 * names, in the convention of each verb; nothing crashes. A plain verbs
 * program: LD_LIBRARY_PATH decides whose library it meets.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <infiniband/verbs.h>

#define PORT 1

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_device_attr dev;
static struct ibv_port_attr port;
static int gid_index = -1;
static union ibv_gid gid;
static char buf[4096];

/* The call failed with NULL and this errno. */
#define assert_null_errno(call, want)                                          \
	do {                                                                   \
		errno = 0;                                                     \
		assert_null(call);                                             \
		assert_int_equal(errno, want);                                 \
	} while (0)

/* The call failed with -1 and this errno. */
#define assert_minus1_errno(call, want)                                        \
	do {                                                                   \
		errno = 0;                                                     \
		assert_int_equal(call, -1);                                    \
		assert_int_equal(errno, want);                                 \
	} while (0)

/* ---- devices and queries ---- */

static void test_device_list_is_stable(void **state)
{
	int n1, n2;
	struct ibv_device **a = ibv_get_device_list(&n1);
	struct ibv_device **b = ibv_get_device_list(&n2);

	(void)state;
	assert_non_null(a);
	assert_non_null(b);
	assert_int_equal(n1, n2);
	assert_ptr_equal(a[0], b[0]);
	assert_null(a[n1]);
	assert_true(ibv_get_device_guid(a[0]) != 0);
	assert_true(ibv_get_device_index(a[0]) > 0);
	ibv_free_device_list(a);
	ibv_free_device_list(b);
}

static void test_query_device_ex_sizes(void **state)
{
	struct verbs_context *v = verbs_get_ctx(ctx);
	struct ibv_query_device_ex_input in = { .comp_mask = 1 };
	unsigned char big[sizeof(struct ibv_device_attr_ex) + 8];
	struct ibv_device_attr_ex ex;

	(void)state;
	assert_int_equal(ibv_query_device_ex(ctx, &in, &ex), EINVAL);
	assert_int_equal(v->query_device_ex(ctx, NULL, &ex, 8), EINVAL);
	memset(big, 0xaa, sizeof(big));
	assert_int_equal(
		v->query_device_ex(ctx, NULL, (void *)big, sizeof(dev)), 0);
	assert_int_equal(big[sizeof(dev)], 0xaa);
	assert_int_equal(
		v->query_device_ex(ctx, NULL, (void *)big, sizeof(big)), 0);
	assert_int_equal(big[sizeof(big) - 1], 0);
}

static void test_query_port_writes_what_was_asked(void **state)
{
	struct verbs_context *v = verbs_get_ctx(ctx);
	unsigned char raw[80];

	(void)state;
	assert_int_equal(ibv_query_port(ctx, 0, &port), EINVAL);
	assert_int_equal(ibv_query_port(ctx, 2, &port), EINVAL);
	memset(raw, 0xaa, sizeof(raw));
	assert_int_equal(v->query_port(ctx, PORT, (void *)raw, 20), 0);
	assert_int_equal(raw[20], 0xaa);
	memset(raw, 0xaa, sizeof(raw));
	/* the exported function has the struct of 2006 */
	assert_int_equal((ibv_query_port)(ctx, PORT, (void *)raw), 0);
	assert_int_equal(raw[48], 0xaa);
	assert_memory_equal(raw, &port, 48);
}

static void test_query_gid(void **state)
{
	struct ibv_gid_entry e;
	union ibv_gid g, zero;
	int i, rc;

	(void)state;
	memset(&zero, 0, sizeof(zero));
	assert_minus1_errno(ibv_query_gid(ctx, PORT, -1, &g), EINVAL);
	assert_minus1_errno(ibv_query_gid(ctx, PORT, port.gid_tbl_len, &g),
			    EINVAL);
	assert_minus1_errno(ibv_query_gid(ctx, 2, 0, &g), EINVAL);
	assert_int_equal(ibv_query_gid_ex(ctx, PORT, 0, &e, 1), EINVAL);
	assert_int_equal(
		ibv_query_gid_ex(ctx, PORT, (uint32_t)port.gid_tbl_len, &e, 0),
		EINVAL);
	for (i = 0; i < port.gid_tbl_len; i++) { /* [B136] [B137] */
		rc = ibv_query_gid_ex(ctx, PORT, (uint32_t)i, &e, 0);
		assert_int_equal(ibv_query_gid(ctx, PORT, i, &g), 0);
		assert_true(rc == 0 || rc == ENODATA);
		assert_int_equal(!memcmp(&g, &zero, sizeof(g)), rc == ENODATA);
		if (!rc) {
			assert_memory_equal(&g, &e.gid, sizeof(g));
			assert_int_equal(e.gid_type, IBV_GID_TYPE_ROCE_V2);
			assert_int_equal(e.gid_index, i);
		}
	}
}

static void test_query_gid_table(void **state)
{
	struct wide {
		struct ibv_gid_entry e;
		uint64_t more;
	} * w;
	struct ibv_gid_entry *e;
	size_t len = (size_t)port.gid_tbl_len;
	ssize_t n, i;

	(void)state;
	e = calloc(len, sizeof(*e));
	w = calloc(len, sizeof(*w));
	assert_non_null(e);
	assert_non_null(w);
	n = ibv_query_gid_table(ctx, e, len, 0);
	assert_true(n > 0);
	assert_true(ibv_query_gid_table(ctx, e, (size_t)n - 1, 0) < 0);
	assert_true(ibv_query_gid_table(ctx, e, len, 1) < 0);
	assert_int_equal(_ibv_query_gid_table(ctx, &w->e, len, 0, sizeof(*w)),
			 n);
	for (i = 0; i < n; i++) {
		assert_memory_equal(&w[i].e, &e[i], sizeof(*e));
		assert_int_equal(w[i].more, 0);
	}
	free(e);
	free(w);
}

static void test_query_pkey(void **state)
{
	__be16 key;

	(void)state;
	assert_int_equal(ibv_query_pkey(ctx, PORT, 0, &key), 0);
	assert_int_equal(key, 0xffff);
	assert_int_equal(ibv_get_pkey_index(ctx, PORT, key), 0);
	assert_minus1_errno(ibv_query_pkey(ctx, PORT, -1, &key), EINVAL);
	assert_minus1_errno(ibv_query_pkey(ctx, PORT, port.pkey_tbl_len, &key),
			    EINVAL);
	assert_int_equal(ibv_get_pkey_index(ctx, PORT, 0x1234), -1);
}

static void test_port_is_up(void **state) /* [B067] */
{
	(void)state;
	assert_int_equal(port.state, IBV_PORT_ACTIVE);
	assert_int_equal(port.phys_state, 5);
	assert_int_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_true(port.active_mtu <= port.max_mtu);
}

/* ---- memory ---- */

static void test_reg_mr(void **state)
{
	static const unsigned int bad[] = {
		IBV_ACCESS_REMOTE_WRITE, /* [B091] */
		IBV_ACCESS_REMOTE_ATOMIC,
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		1u << 15,
	};
	struct ibv_mr *mr;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_null_errno(ibv_reg_mr(pd, buf, sizeof(buf), bad[i]),
				  EINVAL);
	mr = ibv_reg_mr(pd, buf, sizeof(buf),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
	assert_non_null(mr);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void test_rereg_mr(void **state) /* [B088] */
{
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, 64, 0);
	uint32_t key;

	(void)state;
	assert_non_null(mr);
	key = mr->rkey;
	assert_int_equal(ibv_rereg_mr(mr, 1 << 5, NULL, NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0),
		IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      NULL, 0, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL,
				      NULL, 0, IBV_ACCESS_REMOTE_WRITE),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(mr->rkey, key); /* the old one is still good */
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      buf + 64, 128, 0),
			 0);
	assert_ptr_equal(mr->addr, buf + 64);
	assert_int_equal(mr->length, 128);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void test_parent_domain(void **state)
{
	struct ibv_parent_domain_init_attr a = { .pd = pd };
	struct ibv_td_init_attr ta = { .comp_mask = 1 };
	struct ibv_pd *own = ibv_alloc_pd(ctx), *parent;
	struct ibv_mr *mr;

	(void)state;
	assert_null_errno(ibv_alloc_td(ctx, &ta), EOPNOTSUPP);
	ta.comp_mask = 0;
	a.td = ibv_alloc_td(ctx, &ta);
	assert_non_null(a.td);
	a.comp_mask = 1u << 20;
	assert_null_errno(ibv_alloc_parent_domain(ctx, &a), EOPNOTSUPP);
	a.comp_mask = 0;
	a.pd = NULL;
	assert_null_errno(ibv_alloc_parent_domain(ctx, &a), EINVAL);
	a.pd = own;
	parent = ibv_alloc_parent_domain(ctx, &a);
	assert_non_null(parent);
	mr = ibv_reg_mr(parent, buf, 64, 0);
	assert_non_null(mr);
	assert_int_equal(ibv_dealloc_pd(own), EBUSY);
	assert_int_equal(ibv_dealloc_td(a.td), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_td(a.td), 0);
	assert_int_equal(ibv_dealloc_pd(own), 0);
}

static void test_no_import(void **state)
{
	(void)state;
	assert_null_errno(ibv_import_pd(ctx, 0), EOPNOTSUPP);
	assert_null_errno(ibv_import_device(0), EOPNOTSUPP);
	assert_null_errno(ibv_reg_dmabuf_mr(pd, 0, 64, 0, 0, 0), EOPNOTSUPP);
}

/* ---- completion queues ---- */

static void test_create_cq(void **state)
{
	struct ibv_cq *c;

	(void)state;
	assert_null_errno(ibv_create_cq(ctx, 0, NULL, NULL, 0), EINVAL);
	assert_null_errno(ibv_create_cq(ctx, -1, NULL, NULL, 0), EINVAL);
	assert_null_errno(ibv_create_cq(ctx, dev.max_cqe + 1, NULL, NULL, 0),
			  EINVAL);
	assert_null_errno(ibv_create_cq(ctx, 1, NULL, NULL, -1), EINVAL);
	assert_null_errno(
		ibv_create_cq(ctx, 1, NULL, NULL, ctx->num_comp_vectors),
		EINVAL);
	c = ibv_create_cq(ctx, dev.max_cqe, NULL, NULL, 0); /* [B116] */
	assert_non_null(c);
	assert_true(c->cqe >= dev.max_cqe);
	assert_int_equal(ibv_resize_cq(c, dev.max_cqe + 1), EINVAL);
	assert_int_equal(ibv_resize_cq(c, 0), EINVAL);
	assert_int_equal(ibv_resize_cq(c, 10), 0);
	assert_true(c->cqe >= 10);
	assert_int_equal(ibv_req_notify_cq(c, 0), 0); /* [B055] */
	assert_int_equal(ibv_destroy_cq(c), 0);
}

static void test_create_cq_ex(void **state)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 4,
					    .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_poll_cq_attr poll_bad = { .comp_mask = 1 };
	struct ibv_poll_cq_attr poll = { 0 };
	struct ibv_cq_ex *ex;

	(void)state;
	ex = ibv_create_cq_ex(ctx, &attr);
	assert_non_null(ex);
	assert_int_equal(ibv_start_poll(ex, &poll_bad), EINVAL);
	assert_int_equal(ibv_start_poll(ex, &poll), ENOENT);
	assert_int_equal(ibv_start_poll(ex, &poll), ENOENT);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
	attr.wc_flags = 1u << 20;
	assert_null_errno(ibv_create_cq_ex(ctx, &attr), EOPNOTSUPP);
	attr.wc_flags = IBV_WC_EX_WITH_FLOW_TAG;
	assert_null_errno(ibv_create_cq_ex(ctx, &attr), EOPNOTSUPP);
	attr.wc_flags = 0;
	attr.comp_mask = 1u << 20;
	assert_null_errno(ibv_create_cq_ex(ctx, &attr), EOPNOTSUPP);
	attr.comp_mask = 0;
	attr.comp_vector = 1000;
	assert_null_errno(ibv_create_cq_ex(ctx, &attr), EINVAL);
}

static void test_channel(void **state)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct ibv_cq *c, *got;
	void *user;

	(void)state;
	assert_non_null(ch);
	assert_int_equal(fcntl(ch->fd, F_SETFL, O_NONBLOCK), 0);
	assert_true(fcntl(ch->fd, F_GETFD) & FD_CLOEXEC);
	assert_minus1_errno(ibv_get_cq_event(ch, &got, &user), EAGAIN);
	c = ibv_create_cq(ctx, 1, NULL, ch, 0);
	assert_non_null(c);
	assert_int_equal(ibv_destroy_comp_channel(ch), EBUSY);
	assert_int_equal(ibv_destroy_cq(c), 0);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

static void test_async_fd(void **state)
{
	struct ibv_async_event e;
	int flags = fcntl(ctx->async_fd, F_GETFL);

	(void)state;
	assert_true(fcntl(ctx->async_fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(ctx->cmd_fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fcntl(ctx->async_fd, F_SETFL, flags | O_NONBLOCK), 0);
	assert_minus1_errno(ibv_get_async_event(ctx, &e), EAGAIN);
	assert_int_equal(fcntl(ctx->async_fd, F_SETFL, flags), 0);
}

/* ---- SRQs ---- */

static void test_srq(void **state)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 10,
						    .max_sge = 2 } };
	struct ibv_srq_attr a;
	struct ibv_sge sge[3] = { { 0 } };
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 3 }, *bad;
	struct ibv_srq *srq;

	(void)state;
	srq = ibv_create_srq(pd, &init);
	assert_non_null(srq);
	assert_true(init.attr.max_wr >= 10);
	wr.num_sge = (int)init.attr.max_sge + 1;
	if (wr.num_sge <= 3) {
		bad = NULL;
		assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), EINVAL);
		assert_ptr_equal(bad, &wr);
	}
	a.max_wr = 20;
	assert_int_equal(ibv_modify_srq(srq, &a, 1 << 7), EINVAL);
	assert_int_equal(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR), 0);
	assert_true(a.max_wr >= 20); /* [B074] */
	assert_int_equal(ibv_query_srq(srq, &a), 0);
	assert_true(a.max_wr >= 20);
	a.max_wr = (uint32_t)dev.max_srq_wr + 1;
	assert_int_equal(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR), EINVAL);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	init.attr.max_wr = (uint32_t)dev.max_srq_wr + 1;
	assert_null_errno(ibv_create_srq(pd, &init), EINVAL);
}

/* ---- queue pairs ---- */

static struct ibv_qp_init_attr qp_init(void)
{
	struct ibv_qp_init_attr i = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 4, 4, 2, 2, 0 },
		.qp_type = IBV_QPT_RC,
	};

	return i;
}

static struct ibv_qp *qp_new(void)
{
	struct ibv_qp_init_attr i = qp_init();
	struct ibv_qp *qp = ibv_create_qp(pd, &i);

	assert_non_null(qp);
	return qp;
}

static void to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = PORT };

	assert_int_equal(ibv_modify_qp(qp, &a,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	assert_int_equal(qp->state, IBV_QPS_INIT);
}

/* To RTR, connected to itself [B154]. */
static int to_rtr(struct ibv_qp *qp, bool global, uint8_t sgid_index)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = port.active_mtu,
		.dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = global, .port_num = PORT },
	};

	a.ah_attr.grh.dgid = gid;
	a.ah_attr.grh.sgid_index = sgid_index;
	a.ah_attr.grh.hop_limit = 1;
	return ibv_modify_qp(qp, &a,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS,
				 .timeout = 14,
				 .retry_cnt = 5,
				 .rnr_retry = 6,
				 .max_rd_atomic = 1 };

	return ibv_modify_qp(qp, &a,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC);
}

static void expect_no_qp(struct ibv_qp_init_attr i, int want)
{
	assert_null_errno(ibv_create_qp(pd, &i), want);
}

static void test_create_qp_limits(void **state)
{
	struct ibv_qp_init_attr i;

	(void)state;
	i = qp_init();
	i.cap.max_send_wr = (uint32_t)dev.max_qp_wr + 1;
	expect_no_qp(i, EINVAL);
	i = qp_init();
	i.cap.max_recv_wr = (uint32_t)dev.max_qp_wr + 1;
	expect_no_qp(i, EINVAL);
	i = qp_init();
	i.cap.max_send_sge = (uint32_t)dev.max_sge + 1;
	expect_no_qp(i, EINVAL);
	i = qp_init();
	i.cap.max_recv_sge = (uint32_t)dev.max_sge + 1;
	expect_no_qp(i, EINVAL);
	i = qp_init();
	i.cap.max_inline_data = 1 << 20; /* [B104] */
	expect_no_qp(i, EINVAL);
	i = qp_init();
	i.send_cq = NULL;
	expect_no_qp(i, EINVAL);
	i = qp_init();
	i.qp_type = (enum ibv_qp_type)77;
	expect_no_qp(i, EINVAL);
	i.qp_type = IBV_QPT_RAW_PACKET;
	expect_no_qp(i, EOPNOTSUPP);
	i.qp_type = IBV_QPT_XRC_RECV; /* needs a domain */
	expect_no_qp(i, EINVAL);
}

static void test_create_qp_caps(void **state) /* [B103] [B104] [B116] */
{
	static const uint32_t inlines[] = { 0, 220, 912, 1024 };
	struct ibv_qp_init_attr i;
	struct ibv_qp *qp;
	size_t k;

	(void)state;
	for (k = 0; k < sizeof(inlines) / sizeof(inlines[0]); k++) {
		i = qp_init();
		i.cap.max_inline_data = inlines[k];
		qp = ibv_create_qp(pd, &i);
		assert_non_null(qp);
		assert_true(i.cap.max_inline_data >= inlines[k]);
		assert_true(i.cap.max_send_wr >= 4);
		assert_int_equal(ibv_destroy_qp(qp), 0);
	}
	i = qp_init();
	i.cap.max_send_wr = (uint32_t)dev.max_qp_wr;
	i.cap.max_send_sge = (uint32_t)dev.max_sge;
	qp = ibv_create_qp(pd, &i);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_cq(cq), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void test_create_qp_ex(void **state)
{
	struct ibv_qp_init_attr_ex i = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 4, 4, 2, 2, 0 },
		.qp_type = IBV_QPT_RC,
		.pd = pd,
	};
	struct ibv_qp *qp;

	(void)state;
	i.comp_mask = IBV_QP_INIT_ATTR_PD | 1u << 20;
	assert_null_errno(ibv_create_qp_ex(ctx, &i), EOPNOTSUPP);
	i.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	i.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	assert_null_errno(ibv_create_qp_ex(ctx, &i), EOPNOTSUPP);
	i.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	assert_null_errno(ibv_create_qp_ex(ctx, &i), EINVAL);
	i.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	i.send_ops_flags = IBV_QP_EX_WITH_TSO;
	assert_null_errno(ibv_create_qp_ex(ctx, &i), EOPNOTSUPP);
	i.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ;
	i.qp_type = IBV_QPT_UC;
	assert_null_errno(ibv_create_qp_ex(ctx, &i), EOPNOTSUPP);
	i.qp_type = IBV_QPT_RC;
	qp = ibv_create_qp_ex(ctx, &i);
	assert_non_null(qp);
	assert_non_null(ibv_qp_to_qp_ex(qp));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	i.comp_mask = IBV_QP_INIT_ATTR_PD;
	qp = ibv_create_qp_ex(ctx, &i);
	assert_non_null(qp);
	assert_null(ibv_qp_to_qp_ex(qp));
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void test_modify_qp(void **state)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS };
	struct ibv_qp *qp = qp_new();

	(void)state;
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE), EINVAL);
	a.qp_state = IBV_QPS_INIT;
	assert_int_equal(ibv_modify_qp(qp, &a, IBV_QP_STATE), EINVAL);
	assert_int_equal(ibv_modify_qp(qp, &a, 1 << 30), EINVAL);
	a.port_num = 2;
	assert_int_equal(ibv_modify_qp(qp, &a,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 EINVAL);
	assert_int_equal(qp->state, IBV_QPS_RESET);
	to_init(qp);
	/* [B124]: no global route on Ethernet, a GID that is not there */
	assert_int_equal(to_rtr(qp, false, (uint8_t)gid_index), EINVAL);
	assert_int_equal(to_rtr(qp, true, 255), EINVAL);
	assert_int_equal(qp->state, IBV_QPS_INIT);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void test_query_qp(void **state) /* [B095] [B098] */
{
	struct ibv_qp_init_attr i;
	struct ibv_qp_attr a;
	struct ibv_qp *qp = qp_new();

	(void)state;
	to_init(qp);
	assert_int_equal(to_rtr(qp, true, (uint8_t)gid_index), 0);
	assert_int_equal(to_rts(qp), 0);
	assert_int_equal(qp->state, IBV_QPS_RTS);
	assert_int_equal(ibv_query_qp(qp, &a, IBV_QP_STATE, &i), 0);
	assert_int_equal(a.qp_state, IBV_QPS_RTS);
	assert_int_equal(a.port_num, PORT);
	assert_int_equal(a.retry_cnt, 5);
	assert_int_equal(a.rnr_retry, 6);
	assert_int_equal(a.dest_qp_num, qp->qp_num);
	assert_int_equal(a.ah_attr.is_global, 1);
	assert_int_equal(a.ah_attr.grh.sgid_index, gid_index);
	assert_int_equal(a.ah_attr.grh.hop_limit, 1);
	assert_memory_equal(&a.ah_attr.grh.dgid, &gid, sizeof(gid));
	assert_int_equal(i.qp_type, IBV_QPT_RC);
	assert_ptr_equal(i.send_cq, cq);
	assert_true(i.cap.max_send_wr >= 4);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void test_post_in_wrong_state(void **state)
{
	struct ibv_send_wr s = { .opcode = IBV_WR_SEND }, *bad_s;
	struct ibv_recv_wr r = { 0 }, *bad_r = NULL;
	struct ibv_qp *qp = qp_new();

	(void)state;
	assert_int_equal(ibv_post_recv(qp, &r, &bad_r), EINVAL);
	assert_ptr_equal(bad_r, &r);
	bad_s = NULL;
	assert_int_equal(ibv_post_send(qp, &s, &bad_s), EINVAL);
	assert_ptr_equal(bad_s, &s);
	to_init(qp);
	assert_int_equal(ibv_post_recv(qp, &r, &bad_r), 0);
	assert_int_equal(ibv_post_send(qp, &s, &bad_s), EINVAL);
	assert_int_equal(to_rtr(qp, true, (uint8_t)gid_index), 0);
	assert_int_equal(ibv_post_send(qp, &s, &bad_s), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static struct ibv_qp *qp_rts(void)
{
	struct ibv_qp *qp = qp_new();

	to_init(qp);
	assert_int_equal(to_rtr(qp, true, (uint8_t)gid_index), 0);
	assert_int_equal(to_rts(qp), 0);
	return qp;
}

static void test_post_lists(void **state) /* [B034] */
{
	struct ibv_send_wr s[5], *bad = NULL;
	struct ibv_sge sge[64];
	struct ibv_qp *qp = qp_rts();
	int i;

	(void)state;
	memset(s, 0, sizeof(s));
	memset(sge, 0, sizeof(sge));
	for (i = 0; i < 5; i++) {
		s[i].opcode = IBV_WR_RDMA_WRITE;
		s[i].next = i < 4 ? &s[i + 1] : NULL;
		s[i].sg_list = sge;
	}
	s[2].num_sge = 64;
	assert_int_equal(ibv_post_send(qp, s, &bad), EINVAL);
	assert_ptr_equal(bad, &s[2]);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void test_ah(void **state)
{
	struct ibv_ah_attr a = { .port_num = PORT };
	struct ibv_ah *ah;

	(void)state;
	assert_null_errno(ibv_create_ah(pd, &a), EINVAL); /* [B124] */
	a.is_global = 1;
	a.grh.dgid = gid;
	a.grh.sgid_index = 255;
	assert_null_errno(ibv_create_ah(pd, &a), EINVAL);
	a.grh.sgid_index = (uint8_t)gid_index;
	a.port_num = 2;
	assert_null_errno(ibv_create_ah(pd, &a), EINVAL);
	a.port_num = PORT;
	ah = ibv_create_ah(pd, &a);
	assert_non_null(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

/* ---- closing ---- */

static void test_close_with_objects(void **state)
{
	struct ibv_context *c = ibv_open_device(ctx->device);
	struct ibv_comp_channel *ch;
	struct ibv_pd *p;
	struct ibv_cq *q;
	struct ibv_mr *mr;

	(void)state;
	assert_non_null(c);
	ch = ibv_create_comp_channel(c);
	p = ibv_alloc_pd(c);
	q = ibv_create_cq(c, 4, NULL, ch, 0);
	mr = ibv_reg_mr(p, buf, 64, 0);
	assert_non_null(ch);
	assert_non_null(q);
	assert_non_null(mr);
	assert_int_equal(ibv_close_device(c), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_cq(q), 0);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
	assert_int_equal(ibv_dealloc_pd(p), 0);
}

static void test_words(void **state)
{
	(void)state;
	assert_string_equal(ibv_wc_status_str((enum ibv_wc_status)99),
			    "unknown");
	assert_string_equal(ibv_event_type_str((enum ibv_event_type) - 1),
			    "unknown");
	assert_int_equal(ibv_rate_to_mult(IBV_RATE_5_GBPS), 2);
	assert_int_equal(ibv_rate_to_mult((enum ibv_rate)99), -1);
	assert_int_equal(mult_to_ibv_rate(4), IBV_RATE_10_GBPS);
	assert_int_equal(ibv_rate_to_mbps(IBV_RATE_100_GBPS), 103125);
	assert_int_equal(mbps_to_ibv_rate(1), IBV_RATE_MAX);
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

/* ---- the device: the first, or SOFTHCA_TEST_DEVICE ---- */

static int pick_gid(void)
{
	struct ibv_gid_entry e;
	int i;

	for (i = 0; i < port.gid_tbl_len; i++)
		if (!ibv_query_gid_ex(ctx, PORT, (uint32_t)i, &e, 0)) {
			gid_index = i;
			gid = e.gid;
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
	if (!ctx || ibv_query_device(ctx, &dev) ||
	    ibv_query_port(ctx, PORT, &port) || pick_gid())
		return -1;
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	return pd && cq ? 0 : -1;
}

/* All was freed: the last verbs say so. */
static int group_teardown(void **state)
{
	(void)state;
	if (ibv_destroy_cq(cq) || ibv_dealloc_pd(pd))
		return -1;
	return ibv_close_device(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_device_list_is_stable),
		cmocka_unit_test(test_query_device_ex_sizes),
		cmocka_unit_test(test_query_port_writes_what_was_asked),
		cmocka_unit_test(test_query_gid),
		cmocka_unit_test(test_query_gid_table),
		cmocka_unit_test(test_query_pkey),
		cmocka_unit_test(test_port_is_up),
		cmocka_unit_test(test_reg_mr),
		cmocka_unit_test(test_rereg_mr),
		cmocka_unit_test(test_parent_domain),
		cmocka_unit_test(test_no_import),
		cmocka_unit_test(test_create_cq),
		cmocka_unit_test(test_create_cq_ex),
		cmocka_unit_test(test_channel),
		cmocka_unit_test(test_async_fd),
		cmocka_unit_test(test_srq),
		cmocka_unit_test(test_create_qp_limits),
		cmocka_unit_test(test_create_qp_caps),
		cmocka_unit_test(test_create_qp_ex),
		cmocka_unit_test(test_modify_qp),
		cmocka_unit_test(test_query_qp),
		cmocka_unit_test(test_post_in_wrong_state),
		cmocka_unit_test(test_post_lists),
		cmocka_unit_test(test_ah),
		cmocka_unit_test(test_close_with_objects),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
