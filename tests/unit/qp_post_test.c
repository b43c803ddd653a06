/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <pthread.h>
#include <sched.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/obj/qp.h"

static struct rig rig;

static int open_rig(void **state)
{
	(void)state;
	rig_open(&rig, NULL);
	return 0;
}

static int close_rig(void **state)
{
	(void)state;
	rig_close(&rig);
	return 0;
}

/* B049: the given cap is what fits, exactly. */
static void test_capacity(void **state)
{
	static const uint32_t sizes[] = { 1, 2, 3, 7, 8, 15, 16, 100 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct rig_pair_config c = {
			.type = QP_TYPE_UC,
			.cap = { .max_send_wr = sizes[i],
				 .max_recv_wr = sizes[i] },
		};
		struct send_wr wr = { .opcode = WR_SEND };
		struct rig_pair p;

		rig_pair_open(&p, &rig, &c);
		assert_true(p.e[0].cap.max_send_wr >= sizes[i]);
		assert_true(p.e[0].cap.max_recv_wr >= sizes[i]);
		for (uint32_t k = 0; k < p.e[0].cap.max_send_wr; k++)
			assert_int_equal(rig_post_send(&p.e[0], wr, 0, 0), 0);
		assert_int_equal(rig_post_send(&p.e[0], wr, 0, 0), -ENOMEM);
		for (uint32_t k = 0; k < p.e[0].cap.max_recv_wr; k++)
			assert_int_equal(rig_post_recv(&p.e[0], k, 0, 8), 0);
		assert_int_equal(rig_post_recv(&p.e[0], 0, 0, 8), -ENOMEM);
		rig_pump(&rig);
		assert_int_equal(rig_post_send(&p.e[0], wr, 0, 0), 0);
		rig_pair_close(&p);
	}
}

static int create(struct rig_end *e, struct qp_cap cap, struct qp_cap *given)
{
	struct qp_init qi = { .type = QP_TYPE_RC,
			      .send_cq = e->scq,
			      .recv_cq = e->rcq,
			      .cap = cap };
	struct qp *qp;
	int rc = qp_create(e->pd, &qi, given, &qp);

	return rc ? rc : qp_destroy(qp);
}

/* B103, B104, B116: limits advertised are accepted, and no more. */
static void test_limits(void **state)
{
	const struct hca_limits *l = hca_limits(rig.h[0].hca);
	struct rig_pair_config c = { .type = QP_TYPE_UC };
	struct qp_cap max = { .max_send_wr = l->max_qp_wr,
			      .max_recv_wr = l->max_qp_wr,
			      .max_send_sge = l->max_sge,
			      .max_recv_sge = l->max_sge,
			      .max_inline_bytes = l->max_inline_bytes };
	struct qp_cap cap, got;
	struct rig_end e;

	(void)state;
	assert_true(l->max_sge >= 30);
	assert_true(l->max_qp_wr >= 16384);
	assert_true(l->max_inline_bytes >= 1024);
	assert_true(l->max_rd_atomic >= 16);
	assert_true(l->max_cqe >= 4000000);
	assert_int_equal(l->max_msg_bytes, 1u << 31);
	rig_end_open(&e, &rig.h[0], &c);
	assert_int_equal(create(&e, max, &got), 0);
	assert_memory_equal(&got, &max, sizeof(got));
#define ABOVE(field)                                                           \
	do {                                                                   \
		cap = max;                                                     \
		cap.field++;                                                   \
		assert_int_equal(create(&e, cap, &got), -EINVAL);              \
	} while (0)
	ABOVE(max_send_wr);
	ABOVE(max_recv_wr);
	ABOVE(max_send_sge);
	ABOVE(max_recv_sge);
	ABOVE(max_inline_bytes);
#undef ABOVE
	cap = (struct qp_cap){ 0 };
	assert_int_equal(create(&e, cap, &got), 0);
	assert_int_equal(got.max_send_wr, 0);
	for (uint32_t n = 1; n <= l->max_inline_bytes; n += 13) {
		cap = (struct qp_cap){ .max_send_wr = 1,
				       .max_inline_bytes = n };
		assert_int_equal(create(&e, cap, &got), 0);
		assert_true(got.max_inline_bytes >= n);
	}
	rig_end_close(&e);
}

static void test_create_errors(void **state)
{
	struct rig_pair_config c = { .type = QP_TYPE_UC };
	struct qp_init qi = { .type = QP_TYPE_UC, .cap = { 1, 1, 1, 1, 1 } };
	struct qp_cap got = { .max_send_wr = 77 };
	struct rig_end e;
	struct qp *qp = NULL;

	(void)state;
	rig_end_open(&e, &rig.h[0], &c);
	assert_int_equal(qp_create(e.pd, &qi, &got, &qp), -EINVAL);
	qi.send_cq = qi.recv_cq = e.scq;
	qi.type = 9;
	assert_int_equal(qp_create(e.pd, &qi, &got, &qp), -EINVAL);
	qi.type = QP_TYPE_UC;
	/* The struct, its two rings; nothing leaks (rig_close counts). */
	for (int n = 0; n < 3; n++) {
		rig.h[0].alloc_fails_after = n;
		assert_int_equal(qp_create(e.pd, &qi, &got, &qp), -ENOMEM);
	}
	rig.h[0].alloc_fails_after = -1;
	assert_int_equal(got.max_send_wr, 77);
	assert_null(qp);
	rig_end_close(&e);
}

/* Which states take what; a WR that is taken in ERR is flushed. */
static void test_states(void **state)
{
	static const struct {
		enum qp_state s;
		int send, recv;
	} cases[] = {
		{ QP_STATE_RESET, -EINVAL, -EINVAL },
		{ QP_STATE_INIT, -EINVAL, 0 },
		{ QP_STATE_RTR, -EINVAL, 0 },
		{ QP_STATE_RTS, 0, 0 },
		{ QP_STATE_SQD, 0, 0 },
		{ QP_STATE_ERR, 0, 0 },
	};
	static const enum qp_type types[] = { QP_TYPE_RC, QP_TYPE_UC,
					      QP_TYPE_UD };

	(void)state;
	for (size_t t = 0; t < ARRAY_SIZE(types); t++)
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			struct rig_pair_config c = { .type = types[t] };
			struct send_wr wr = { .opcode = WR_SEND };
			struct rig_end e;

			rig_end_open(&e, &rig.h[0], &c);
			rig_walk(&e, cases[i].s, &e, &c);
			wr.ah = rig_ah(&e, &rig.h[0]);
			assert_int_equal(rig_post_send(&e, wr, 0, 0),
					 cases[i].send);
			assert_int_equal(rig_post_recv(&e, 0, 0, 8),
					 cases[i].recv);
			assert_int_equal(ah_destroy(wr.ah), 0);
			rig_end_close(&e);
		}
}

static void test_opcodes(void **state)
{
	/* By opcode WR_WRITE .. WR_SEND_INV and one past it. */
	static const int expect[3][11] = {
		[0] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -EINVAL },
		[1] = { 0, 0, 0, 0, -EINVAL, -EINVAL, -EINVAL, 0, 0, -EINVAL,
			-EINVAL },
		[2] = { -EINVAL, -EINVAL, 0, 0, -EINVAL, -EINVAL, -EINVAL,
			-EINVAL, -EINVAL, -EINVAL, -EINVAL },
	};

	(void)state;
	for (int t = 0; t < 3; t++) {
		struct rig_pair_config c = { .type = (enum qp_type)(t + 2) };
		struct rig_pair p;
		struct send_wr wr = { 0 };

		rig_pair_open(&p, &rig, &c);
		wr.ah = rig_ah(&p.e[0], &rig.h[1]);
		for (uint32_t op = 0; op < 11; op++) {
			wr.opcode = op;
			assert_int_equal(rig_post_send(&p.e[0], wr, 0, 8),
					 expect[t][op]);
		}
		wr.opcode = WR_SEND;
		wr.flags = 1u << 4;
		assert_int_equal(rig_post_send(&p.e[0], wr, 0, 8), -EINVAL);
		wr.flags = WR_FENCE | WR_SIGNALED | WR_SOLICITED | WR_INLINE;
		assert_int_equal(rig_post_send(&p.e[0], wr, 0, 8), 0);
		assert_int_equal(ah_destroy(wr.ah), 0);
		rig_pair_close(&p);
	}
}

static int post_sges(struct rig_end *e, uint32_t opcode, uint32_t flags, int n,
		     uint32_t len)
{
	struct sge sge[40];
	struct send_wr wr = {
		.opcode = opcode, .flags = flags, .sge = sge, .num_sge = n
	};

	for (int i = 0; i < n; i++)
		sge[i] = (struct sge){ .addr = RIG_VA,
				       .len_bytes = len,
				       .lkey = mr_key(e->mr) };
	return qp_post_send(e->qp, &wr);
}

static void test_lengths(void **state)
{
	struct rig_pair_config c = { .type = QP_TYPE_RC,
				     .cap = { .max_inline_bytes = 100 } };
	struct rig_pair p;
	struct rig_end *e = &p.e[0];
	uint32_t max_inline;

	(void)state;
	rig_pair_open(&p, &rig, &c);
	max_inline = e->cap.max_inline_bytes;
	assert_int_equal(post_sges(e, WR_SEND, 0, 4, 1), 0);
	assert_int_equal(post_sges(e, WR_SEND, 0, 5, 1), -EINVAL);
	assert_int_equal(post_sges(e, WR_SEND, 0, -1, 1), -EINVAL);
	assert_int_equal(post_sges(e, WR_WRITE, 0, 1, 1u << 31), 0);
	assert_int_equal(post_sges(e, WR_WRITE, 0, 1, (1u << 31) + 1), -EINVAL);
	assert_int_equal(post_sges(e, WR_WRITE, 0, 4, 1u << 30), -EINVAL);
	assert_int_equal(post_sges(e, WR_READ, 0, 4, UINT32_MAX), -EINVAL);
	/* Inline: SEND and WRITE, exactly up to the given cap. */
	assert_int_equal(post_sges(e, WR_SEND, WR_INLINE, 1, max_inline), 0);
	assert_int_equal(post_sges(e, WR_SEND, WR_INLINE, 1, max_inline + 1),
			 -EINVAL);
	assert_int_equal(post_sges(e, WR_WRITE, WR_INLINE, 2, max_inline / 2),
			 0);
	assert_int_equal(post_sges(e, WR_WRITE, WR_INLINE, 4, max_inline / 2),
			 -EINVAL);
	assert_int_equal(post_sges(e, WR_READ, WR_INLINE, 1, 8), -EINVAL);
	assert_int_equal(post_sges(e, WR_CMP_SWAP, WR_INLINE, 1, 8), -EINVAL);
	/* B040 */
	assert_int_equal(post_sges(e, WR_CMP_SWAP, 0, 1, 8), 0);
	assert_int_equal(post_sges(e, WR_FETCH_ADD, 0, 2, 4), 0);
	assert_int_equal(post_sges(e, WR_FETCH_ADD, 0, 1, 4), -EINVAL);
	assert_int_equal(post_sges(e, WR_FETCH_ADD, 0, 1, 16), -EINVAL);
	assert_int_equal(post_sges(e, WR_CMP_SWAP, 0, 0, 0), -EINVAL);
	assert_int_equal(post_sges(e, WR_READ, 0, 0, 0), 0); /* B013 */
	rig_pair_close(&p);
}

static void test_ud_args(void **state)
{
	struct rig_pair_config c = { .type = QP_TYPE_UD };
	struct rig_pair p;
	struct send_wr wr = { .opcode = WR_SEND };
	struct rig_end stranger;

	(void)state;
	rig_pair_open(&p, &rig, &c);
	rig_end_open(&stranger, &rig.h[0], &c);
	assert_int_equal(rig_post_send(&p.e[0], wr, 0, 8), -EINVAL);
	wr.ah = rig_ah(&stranger, &rig.h[1]);
	assert_int_equal(rig_post_send(&p.e[0], wr, 0, 8), -EINVAL);
	assert_int_equal(ah_destroy(wr.ah), 0);
	wr.ah = rig_ah(&p.e[0], &rig.h[1]);
	wr.remote_qpn = 0x1000000;
	assert_int_equal(rig_post_send(&p.e[0], wr, 0, 8), -EINVAL);
	wr.remote_qpn = 0xffffff;
	assert_int_equal(rig_post_send(&p.e[0], wr, 0, 4096), 0);
	assert_int_equal(rig_post_send(&p.e[0], wr, 0, 4097), -EINVAL);
	hca_set_port(rig.h[0].hca, PORT_STATE_ACTIVE, 1500);
	assert_int_equal(rig_post_send(&p.e[0], wr, 0, 1024), 0);
	assert_int_equal(rig_post_send(&p.e[0], wr, 0, 1025), -EINVAL);
	/* The AH may go as soon as the post returned. */
	assert_int_equal(ah_destroy(wr.ah), 0);
	rig_pump(&rig);
	rig_end_close(&stranger);
	rig_pair_close(&p);
}

/* B106, B107: inline data is copied at post, from any number of SGEs, and
 * needs no key. */
static void test_inline(void **state)
{
	struct rig_pair_config c = { .type = QP_TYPE_RC,
				     .cap = { .max_inline_bytes = 1024 } };
	struct rig_pair p;
	uint8_t want[1024];

	(void)state;
	rig_pair_open(&p, &rig, &c);
	for (int n = 1; n <= 4; n++) {
		struct sge sge[4];
		struct send_wr wr = { .opcode = WR_WRITE,
				      .flags = WR_INLINE | WR_SIGNALED,
				      .remote_addr = RIG_VA + 65536,
				      .rkey = mr_key(p.e[1].mr),
				      .sge = sge,
				      .num_sge = n };
		uint32_t each = 1024 / (uint32_t)n;

		for (int i = 0; i < n; i++) {
			sge[i] = (struct sge){ .addr = RIG_VA +
						       4096 * (uint64_t)i,
					       .len_bytes = each };
			memset(rig_bytes(&rig.h[0], sge[i].addr), 'a' + i + n,
			       each);
			memset(want + each * (uint32_t)i, 'a' + i + n, each);
		}
		assert_int_equal(qp_post_send(p.e[0].qp, &wr), 0);
		qp_ring(p.e[0].qp);
		memset(rig_bytes(&rig.h[0], RIG_VA), 0, 4 * 4096);
		rig_pump(&rig);
		assert_int_equal(rig_poll(p.e[0].scq).status, WC_SUCCESS);
		assert_memory_equal(rig_bytes(&rig.h[1], RIG_VA + 65536), want,
				    each * (uint32_t)n);
	}
	/* Data that is not there: refused, and no slot is lost. */
	{
		struct sge sge = { .addr = 0x1000, .len_bytes = 8 };
		struct send_wr wr = { .opcode = WR_WRITE,
				      .flags = WR_INLINE,
				      .sge = &sge,
				      .num_sge = 1 };

		assert_int_equal(qp_post_send(p.e[0].qp, &wr), -EFAULT);
	}
	rig_pair_close(&p);
}

/* B026: a slot keeps nothing of its last use, over many turns of the ring. */
static void test_ring_wrap(void **state)
{
	struct rig_pair_config c = { .type = QP_TYPE_RC,
				     .cap = { .max_send_wr = 4,
					      .max_recv_wr = 4 } };
	struct rig_pair p;
	struct prng r;

	(void)state;
	prng_init(&r, 1);
	rig_pair_open(&p, &rig, &c);
	for (uint64_t i = 0; i < 5000; i++) {
		static const uint8_t wc_op[] = { WC_RDMA_WRITE, WC_RDMA_WRITE,
						 WC_SEND,	WC_SEND,
						 WC_RDMA_READ,	WC_COMP_SWAP,
						 WC_FETCH_ADD };
		uint32_t op = (uint32_t)prng_below(&r, 7);
		bool atomic = op >= WR_CMP_SWAP;
		uint32_t len = atomic ? 8 : (uint32_t)prng_below(&r, 60);
		bool in = !atomic && op != WR_READ && prng_below(&r, 2);
		struct send_wr wr = { .wr_id = i,
				      .opcode = op,
				      .flags = WR_SIGNALED |
					       (in ? WR_INLINE : 0),
				      .imm_be_or_rkey = (uint32_t)i,
				      .remote_addr = RIG_VA + 8192,
				      .rkey = mr_key(p.e[1].mr) };
		bool recv = op == WR_SEND || op == WR_SEND_IMM ||
			    op == WR_WRITE_IMM;
		struct wc wc;

		memset(rig_bytes(&rig.h[0], RIG_VA), (int)(i & 0xff), 64);
		if (recv)
			assert_int_equal(rig_post_recv(&p.e[1], i, 8192, 64),
					 0);
		assert_int_equal(rig_post_send(&p.e[0], wr, 0, len), 0);
		rig_pump(&rig);
		wc = rig_poll(p.e[0].scq);
		assert_int_equal(wc.status, WC_SUCCESS);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.opcode, wc_op[op]); /* B038 */
		if (recv) {
			wc = rig_poll(p.e[1].rcq);
			assert_int_equal(wc.byte_len, len);
			if (op != WR_SEND)
				assert_int_equal(wc.imm_be_or_rkey,
						 (uint32_t)i);
		}
		if (!atomic && op != WR_READ && len)
			assert_int_equal(*rig_bytes(&rig.h[1], RIG_VA + 8192),
					 i & 0xff);
	}
	rig_pair_close(&p);
}

/* B028, B029, B031, B032: whatever is posted to a QP in ERR comes back, in
 * order, on the queue's own CQ, for ever. */
static void test_flush(void **state)
{
	static const enum qp_type types[] = { QP_TYPE_RC, QP_TYPE_UC,
					      QP_TYPE_UD };

	(void)state;
	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		struct rig_pair_config c = { .type = types[t] };
		struct send_wr wr = { .opcode = WR_SEND };
		uint64_t id = 0;
		struct rig_pair p;

		rig_pair_open(&p, &rig, &c);
		wr.ah = rig_ah(&p.e[0], &rig.h[1]);
		for (; id < 3; id++) {
			wr.wr_id = id;
			assert_int_equal(rig_post_send(&p.e[0], wr, 0, 8), 0);
			assert_int_equal(rig_post_recv(&p.e[0], id, 0, 8), 0);
		}
		assert_int_equal(rig_state(&p.e[0], QP_STATE_ERR), 0);
		for (; id < 100; id++) {
			wr.wr_id = id;
			wr.opcode = id % 2 || types[t] == QP_TYPE_UD ? WR_SEND
								     : WR_WRITE;
			assert_int_equal(rig_post_send(&p.e[0], wr, 0, 8), 0);
			assert_int_equal(rig_post_recv(&p.e[0], id, 0, 8), 0);
			rig_pump(&rig);
		}
		for (id = 0; id < 100; id++) {
			struct wc s = rig_poll(p.e[0].scq);
			struct wc r = rig_poll(p.e[0].rcq);

			assert_int_equal(s.wr_id, id);
			assert_int_equal(r.wr_id, id);
			assert_int_equal(s.status, WC_WR_FLUSH_ERR);
			assert_int_equal(r.status, WC_WR_FLUSH_ERR);
			assert_int_equal(s.qpn, qp_num(p.e[0].qp));
			assert_int_equal(r.qpn, qp_num(p.e[0].qp));
		}
		assert_true(rig_empty(p.e[0].scq));
		assert_true(rig_empty(p.e[0].rcq));
		assert_int_equal(ah_destroy(wr.ah), 0);
		rig_pair_close(&p);
	}
}

static void test_destroy_rung(void **state)
{
	struct rig_pair_config c = { .type = QP_TYPE_UC, .sq_sig_all = true };
	struct send_wr wr = { .opcode = WR_WRITE };
	struct rig_pair p[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		rig_pair_open(&p[i], &rig, &c);
		assert_int_equal(rig_post_send(&p[i].e[0], wr, 0, 0), 0);
		assert_false(qp_ring(p[i].e[0].qp)); /* marked already */
	}
	rig_pair_close(&p[1]);
	rig_pump(&rig);
	assert_int_equal(rig_poll(p[0].e[0].scq).status, WC_SUCCESS);
	assert_int_equal(rig_poll(p[2].e[0].scq).status, WC_SUCCESS);
	/* And one that is scheduled. */
	assert_int_equal(rig_post_send(&p[0].e[0], wr, 0, 0), 0);
	hca_doorbells(rig.h[0].hca, 0);
	assert_true(hca_tx_pending(rig.h[0].hca));
	rig_pair_close(&p[0]);
	assert_false(hca_tx_pending(rig.h[0].hca));
	rig_pair_close(&p[2]);
}

/* B044: threads post in a loop while the engine moves the QPs to ERR; in the
 * end everything that was posted has been completed. */
#define RACE_QPS 4
#define RACE_POSTS 20000u

struct racer {
	struct rig_end *e;
	_Atomic uint32_t polled; /* the program keeps to its queue's depth */
	_Atomic bool over;
};

static void *post_loop(void *arg)
{
	struct racer *r = arg;
	struct send_wr wr = { .opcode = WR_WRITE, .flags = WR_SIGNALED };

	for (uint32_t n = 0; n < RACE_POSTS;) {
		wr.wr_id = n;
		if (n - atomic_load(&r->polled) >= 16 ||
		    qp_post_send(r->e->qp, &wr)) {
			sched_yield();
			continue;
		}
		n++;
		qp_ring(r->e->qp);
	}
	atomic_store(&r->over, true);
	return NULL;
}

static void test_post_race(void **state)
{
	struct rig_pair_config c = { .type = QP_TYPE_UC };
	struct racer r[RACE_QPS] = { 0 };
	uint32_t done[RACE_QPS] = { 0 };
	struct rig_pair p[RACE_QPS];
	pthread_t t[RACE_QPS];
	unsigned idle = 0;

	(void)state;
	for (int i = 0; i < RACE_QPS; i++) {
		rig_pair_open(&p[i], &rig, &c);
		r[i].e = &p[i].e[0];
		assert_int_equal(pthread_create(&t[i], NULL, post_loop, &r[i]),
				 0);
	}
	while (idle < 3) {
		bool quiet = true;

		for (int i = 0; i < RACE_QPS; i++) {
			struct wc wc;

			quiet &= atomic_load(&r[i].over);
			while (cq_poll(p[i].e[0].scq, 1, &wc) == 1) {
				assert_int_equal(wc.wr_id, done[i]++);
				atomic_store(&r[i].polled, done[i]);
				quiet = false;
			}
			if (done[i] > RACE_POSTS / 3 &&
			    qp_state(p[i].e[0].qp) == QP_STATE_RTS)
				assert_int_equal(
					rig_state(&p[i].e[0], QP_STATE_ERR), 0);
		}
		hca_doorbells(rig.h[0].hca, 0);
		for (int k = 0; k < 64; k++) {
			uint8_t buf[PKT_MAX + ICRC_BYTES];
			struct tx_frame f = { .pkt = buf };

			if (!hca_tx(rig.h[0].hca, 0xffff, &f, 0))
				break;
			hca_tx_done(rig.h[0].hca, &f);
		}
		idle = quiet ? idle + 1 : 0;
		sched_yield();
	}
	for (int i = 0; i < RACE_QPS; i++) {
		pthread_join(t[i], NULL);
		assert_int_equal(done[i], RACE_POSTS);
		rig_pair_close(&p[i]);
	}
}

/* A program that keeps its queue full posts when it has polled a completion:
 * by then the slot is free. The engine runs beside it. */
#define FULL_POSTS 200000u

static void *keep_full(void *arg)
{
	struct racer *r = arg;
	struct send_wr wr = { .opcode = WR_WRITE, .flags = WR_SIGNALED };
	uint32_t posted = 0, refused = 0, empty = 0;

	while (posted < FULL_POSTS && !refused) {
		struct wc wc;

		if (posted - r->polled < r->e->cap.max_send_wr) {
			refused = qp_post_send(r->e->qp, &wr) != 0;
			posted++;
			qp_ring(r->e->qp);
		} else if (cq_poll(r->e->scq, 1, &wc) == 1) {
			r->polled++;
		} else if (++empty % 256 == 0) {
			sched_yield(); /* there may be one CPU only */
		}
	}
	atomic_store(&r->over, true);
	return refused ? r : NULL;
}

static void test_completed_is_free(void **state)
{
	struct rig_pair_config c = { .type = QP_TYPE_UC,
				     .cap = { .max_send_wr = 1 } };
	struct rig_pair p;
	struct racer r = { .e = &p.e[0] };
	unsigned rounds = 0;
	pthread_t t;
	void *refused;

	(void)state;
	rig_pair_open(&p, &rig, &c);
	assert_int_equal(pthread_create(&t, NULL, keep_full, &r), 0);
	while (!atomic_load(&r.over)) {
		uint8_t buf[PKT_MAX + ICRC_BYTES];
		struct tx_frame f = { .pkt = buf };

		hca_doorbells(rig.h[0].hca, 0);
		while (hca_tx(rig.h[0].hca, 0xffff, &f, 0))
			hca_tx_done(rig.h[0].hca, &f);
		if (++rounds % 256 == 0)
			sched_yield();
	}
	assert_int_equal(pthread_join(t, &refused), 0);
	assert_null(refused);
	rig_pair_close(&p);
}

#define RIGGED(t) cmocka_unit_test_setup_teardown(t, open_rig, close_rig)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIGGED(test_capacity),		RIGGED(test_limits),
		RIGGED(test_create_errors),	RIGGED(test_states),
		RIGGED(test_opcodes),		RIGGED(test_lengths),
		RIGGED(test_ud_args),		RIGGED(test_inline),
		RIGGED(test_ring_wrap),		RIGGED(test_flush),
		RIGGED(test_destroy_rung),	RIGGED(test_post_race),
		RIGGED(test_completed_is_free),
	};

	return cmocka_run_group_tests_name("qp_post", tests, NULL, NULL);
}
