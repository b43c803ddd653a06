/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rt_loop_test - the real-time driver through loopback sockets, both ends in
 * this process: polling, sleeping on events, several threads, fork.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rt/engine.h"
#include "rt/rt.h"

#define BUF (1 << 20)
#define DEPTH 64
#define DEADLINE_NS 10000000000 /* a failure, not a wait */

struct end {
	struct rt_evq *channel;
	struct rt_cq *cq;
	struct rt_qp *qp;
	struct mr *mr;
	uint8_t *buf;
};

static struct rtdev *dev;
static struct pd *pd;
static struct rt_evq *async;

static int open_lo(void **state)
{
	struct rt_device *list;
	int n, i;

	(void)state;
	assert_int_equal(rt_devices(&list, &n), 0);
	for (i = 0; i < n && strcmp(list[i].ifname, "lo"); i++)
		;
	assert_true(i < n);
	assert_int_equal(rtdev_open(&list[i], &dev), 0);
	free(list);
	assert_int_equal(rt_pd_alloc(dev, &pd), 0);
	assert_int_equal(rt_evq_new(dev, true, &async), 0);
	return 0;
}

static int close_lo(void **state)
{
	(void)state;
	assert_int_equal(rt_pd_dealloc(dev, pd), 0);
	rt_evq_free(async);
	rtdev_close(dev);
	return 0;
}

static void end_new(struct end *e)
{
	struct mr_attr ma = { .len_bytes = BUF, .access = 0xf };
	struct rt_qp_init qi = {
		.type = QP_TYPE_RC,
		.cap = { DEPTH, DEPTH, 4, 4, 64 },
		.async = async,
	};
	struct qp_cap cap;

	e->buf = aligned_alloc(4096, BUF);
	memset(e->buf, 0, BUF);
	ma.va = ma.iova = (uintptr_t)e->buf;
	assert_int_equal(rt_mr_reg(dev, pd, &ma, &e->mr), 0);
	assert_int_equal(rt_evq_new(dev, false, &e->channel), 0);
	assert_int_equal(
		rt_cq_create(dev, 4 * DEPTH, e->channel, async, e, &e->cq), 0);
	qi.send_cq = qi.recv_cq = e->cq;
	qi.user = e;
	assert_int_equal(rt_qp_create(dev, pd, &qi, &cap, &e->qp), 0);
}

static void end_free(struct end *e)
{
	uint32_t a, b;

	assert_int_equal(rt_qp_destroy(e->qp, &a), 0);
	assert_int_equal(rt_cq_destroy(e->cq, &a, &b), 0);
	rt_evq_free(e->channel);
	assert_int_equal(rt_mr_dereg(dev, e->mr), 0);
	free(e->buf);
}

static void connect_to(struct end *e, struct end *peer)
{
	struct qp_attr a = {
		.state = QP_STATE_INIT,
		.port_num = 1,
		.access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
			  ACCESS_REMOTE_ATOMIC,
	};
	struct gid_entry g;

	assert_int_equal(rt_query_gid(dev, 0, &g), 0);
	assert_int_equal(rt_qp_modify(e->qp, &a,
				      QP_ATTR_STATE | QP_ATTR_PKEY_INDEX |
					      QP_ATTR_PORT |
					      QP_ATTR_ACCESS_FLAGS),
			 0);
	a.state = QP_STATE_RTR;
	a.path_mtu = MTU_4096;
	a.dest_qpn = rt_qp_num(peer->qp);
	a.rq_psn = 5;
	a.max_dest_rd_atomic = 4;
	a.min_rnr_timer = 1;
	a.ah = (struct ah_attr){
		.is_global = true, .dgid = g.gid, .port_num = 1, .hop_limit = 64
	};
	assert_int_equal(
		rt_qp_modify(e->qp, &a,
			     QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU |
				     QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
				     QP_ATTR_MAX_DEST_RD_ATOMIC |
				     QP_ATTR_MIN_RNR_TIMER),
		0);
	a.state = QP_STATE_RTS;
	a.sq_psn = 5;
	a.timeout = 14;
	a.retry_cnt = 7;
	a.rnr_retry = 7;
	a.max_rd_atomic = 4;
	assert_int_equal(
		rt_qp_modify(e->qp, &a,
			     QP_ATTR_STATE | QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT |
				     QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
				     QP_ATTR_MAX_QP_RD_ATOMIC),
		0);
}

static void pair_new(struct end *a, struct end *b)
{
	end_new(a);
	end_new(b);
	connect_to(a, b);
	connect_to(b, a);
}

static void post(struct end *e, struct end *peer, enum wr_opcode op,
		 uint64_t off, uint32_t len)
{
	struct sge s = { (uintptr_t)e->buf + off, len, mr_key(e->mr) };
	struct send_wr wr = {
		.wr_id = off,
		.sge = &s,
		.num_sge = 1,
		.opcode = op,
		.flags = WR_SIGNALED,
		.remote_addr = (uintptr_t)peer->buf + off,
		.rkey = mr_key(peer->mr),
		.compare_add = 3,
	};

	rt_send_begin(e->qp);
	assert_int_equal(rt_send_post(e->qp, &wr), 0);
	rt_send_end(e->qp);
}

static void post_recv(struct end *e, uint64_t off, uint32_t len)
{
	struct sge s = { (uintptr_t)e->buf + off, len, mr_key(e->mr) };
	struct recv_wr wr = { .wr_id = off, .sge = &s, .num_sge = 1 };

	rt_recv_begin(e->qp);
	assert_int_equal(rt_recv_post(e->qp, &wr), 0);
	rt_recv_end(e->qp);
}

static struct wc wait_wc(struct end *e)
{
	int64_t end = rt_now_ns() + DEADLINE_NS;
	struct wc wc;
	int n;

	while (!(n = rt_cq_poll(e->cq, 1, &wc)))
		assert_true(rt_now_ns() < end);
	assert_int_equal(n, 1);
	return wc;
}

static void fill(uint8_t *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(seed + i * 7 + (i >> 8));
}

static void polled_ops(void **state)
{
	static const uint32_t sizes[] = { 0,	1,     63,     4096, 4097,
					  8192, 65536, 100001, BUF };
	struct end a, b;

	(void)state;
	pair_new(&a, &b);
	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint32_t len = sizes[i];

		fill(a.buf, len, i);
		post_recv(&b, 0, BUF);
		post(&a, &b, WR_SEND, 0, len);
		assert_int_equal(wait_wc(&a).status, WC_SUCCESS);
		assert_int_equal(wait_wc(&b).byte_len, len);
		assert_memory_equal(a.buf, b.buf, len);

		fill(a.buf, len, i + 100);
		post(&a, &b, WR_WRITE, 0, len);
		assert_int_equal(wait_wc(&a).status, WC_SUCCESS);
		assert_memory_equal(a.buf, b.buf, len);

		fill(b.buf, len, i + 200);
		post(&a, &b, WR_READ, 0, len);
		assert_int_equal(wait_wc(&a).status, WC_SUCCESS);
		assert_memory_equal(a.buf, b.buf, len);
	}
	*(uint64_t *)(void *)b.buf = 39;
	post(&a, &b, WR_FETCH_ADD, 0, 8);
	assert_int_equal(wait_wc(&a).status, WC_SUCCESS);
	assert_int_equal(*(uint64_t *)(void *)a.buf, 39);
	assert_int_equal(*(uint64_t *)(void *)b.buf, 42);
	end_free(&a);
	end_free(&b);
}

static void wait_event(struct end *e)
{
	struct pollfd p = { .fd = rt_evq_fd(e->channel), .events = POLLIN };
	struct rt_event ev;

	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_int_equal(rt_evq_get(e->channel, &ev), 0);
	assert_int_equal(ev.kind, HCA_EVENT_COMP);
	assert_ptr_equal(ev.user, e);
}

/* Neither side ever polls an empty CQ: the NIC thread does all the work. */
static void sleeping(void **state)
{
	struct end a, b;

	(void)state;
	pair_new(&a, &b);
	for (int i = 0; i < 200; i++) {
		struct wc wc;

		assert_int_equal(rt_cq_arm(a.cq, false), 0);
		assert_int_equal(rt_cq_arm(b.cq, false), 0);
		fill(a.buf, 9000, (unsigned)i);
		post_recv(&b, 0, BUF);
		post(&a, &b, WR_SEND, 0, 9000);
		wait_event(&b);
		assert_int_equal(rt_cq_poll(b.cq, 1, &wc), 1);
		assert_int_equal(wc.byte_len, 9000);
		wait_event(&a);
		assert_int_equal(rt_cq_poll(a.cq, 1, &wc), 1);
		assert_memory_equal(a.buf, b.buf, 9000);
	}
	end_free(&a);
	end_free(&b);
}

struct flow {
	struct end a, b;
	int rounds;
};

static void *flow_main(void *arg)
{
	struct flow *f = arg;

	for (int i = 0; i < f->rounds; i++) {
		post_recv(&f->b, 0, 4096);
		post(&f->a, &f->b, WR_SEND, 0, 4096);
		if (wait_wc(&f->a).status || wait_wc(&f->b).status)
			return arg;
	}
	return NULL;
}

static void threads(void **state)
{
	enum { N = 4 };
	struct flow f[N];
	pthread_t t[N];

	(void)state;
	for (int i = 0; i < N; i++) {
		f[i].rounds = 500;
		pair_new(&f[i].a, &f[i].b);
	}
	for (int i = 0; i < N; i++)
		assert_int_equal(pthread_create(&t[i], NULL, flow_main, &f[i]),
				 0);
	for (int i = 0; i < N; i++) {
		void *failed;

		pthread_join(t[i], &failed);
		assert_null(failed);
	}
	for (int i = 0; i < N; i++) {
		end_free(&f[i].a);
		end_free(&f[i].b);
	}
}

/* Waiting tokens vanish with the CQ; the fd is quiet then. */
static void destroy_takes_events(void **state)
{
	struct pollfd p = { .events = POLLIN };
	struct rt_event ev;
	struct end a, b;

	(void)state;
	pair_new(&a, &b);
	assert_int_equal(rt_cq_arm(b.cq, false), 0);
	post_recv(&b, 0, 64);
	post(&a, &b, WR_SEND, 0, 64);
	assert_int_equal(wait_wc(&a).status, WC_SUCCESS);
	p.fd = rt_evq_fd(b.channel);
	assert_int_equal(poll(&p, 1, 10000), 1);
	end_free(&a);
	/* b's channel outlives its CQ here. */
	{
		uint32_t x, y;

		assert_int_equal(rt_qp_destroy(b.qp, &x), 0);
		assert_int_equal(rt_cq_destroy(b.cq, &x, &y), 0);
		assert_int_equal(x, 0);
		assert_int_equal(poll(&p, 1, 0), 0);
		fcntl(p.fd, F_SETFL, fcntl(p.fd, F_GETFL) | O_NONBLOCK);
		assert_int_equal(rt_evq_get(b.channel, &ev), -EAGAIN);
		rt_evq_free(b.channel);
		assert_int_equal(rt_mr_dereg(dev, b.mr), 0);
		free(b.buf);
	}
}

static int child_main(struct end *e)
{
	struct pd *p;
	struct wc wc;

	if (!rtdev_dead(dev) || rt_pd_alloc(dev, &p) != -EIO)
		return 1;
	return rt_cq_poll(e->cq, 1, &wc) == -EIO ? 0 : 2;
}

static void fork_child_is_dead(void **state)
{
	struct end a, b;
	int status;
	pid_t pid;

	(void)state;
	pair_new(&a, &b);
	pid = fork();
	if (!pid)
		_exit(child_main(&a));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* The parent goes on. */
	post_recv(&b, 0, 64);
	post(&a, &b, WR_SEND, 0, 64);
	assert_int_equal(wait_wc(&a).status, WC_SUCCESS);
	assert_int_equal(wait_wc(&b).status, WC_SUCCESS);
	end_free(&a);
	end_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(polled_ops, open_lo, close_lo),
		cmocka_unit_test_setup_teardown(sleeping, open_lo, close_lo),
		cmocka_unit_test_setup_teardown(threads, open_lo, close_lo),
		cmocka_unit_test_setup_teardown(destroy_takes_events, open_lo,
						close_lo),
		cmocka_unit_test_setup_teardown(fork_child_is_dead, open_lo,
						close_lo),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
