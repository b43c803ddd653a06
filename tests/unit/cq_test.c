/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/cq.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <pthread.h>
#include <sched.h>

#include <cmocka.h>

#include "core_rig.h"

static struct rig rig;
static struct rig_host *host;

static int open_rig(void **state)
{
	(void)state;
	rig_open(&rig, NULL);
	host = &rig.h[0];
	return 0;
}

static int close_rig(void **state)
{
	(void)state;
	rig_close(&rig);
	return 0;
}

static struct cq *new_cq(uint32_t cqe)
{
	struct cq *cq;

	assert_int_equal(cq_create(host->hca, cqe, host, &cq), 0);
	assert_int_equal(cq_cqe(cq), cqe);
	assert_ptr_equal(cq_user(cq), host);
	return cq;
}

static void push(struct cq *cq, uint64_t id)
{
	struct wc wc = { .wr_id = id };

	cq_push(cq, &wc, false);
}

static void test_capacity(void **state)
{
	static const uint32_t sizes[] = { 1, 2, 3, 7, 8, 15, 16, 17, 1000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct cq *cq = new_cq(sizes[i]);
		struct wc wc[4];

		for (uint64_t k = 0; k < sizes[i]; k++)
			push(cq, k);
		assert_true(rig_no_event(host));
		push(cq, 999); /* one too many */
		assert_int_equal(rig_event(host).type, ASYNC_CQ_ERR);
		for (uint64_t k = 0; k < sizes[i]; k++)
			assert_int_equal(rig_poll(cq).wr_id, k);
		assert_int_equal(cq_poll(cq, 4, wc), 0);
		assert_int_equal(cq_destroy(cq), 0);
	}
}

static void test_bad_sizes(void **state)
{
	uint32_t max = hca_limits(host->hca)->max_cqe;
	struct cq *cq;

	(void)state;
	assert_int_equal(cq_create(host->hca, 0, NULL, &cq), -EINVAL);
	assert_int_equal(cq_create(host->hca, max + 1, NULL, &cq), -EINVAL);
	cq = new_cq(max); /* B116 */
	assert_int_equal(cq_destroy(cq), 0);
	for (int n = 0; n < 2; n++) {
		host->alloc_fails_after = n;
		assert_int_equal(cq_create(host->hca, 8, NULL, &cq), -ENOMEM);
	}
	host->alloc_fails_after = -1;
}

static void test_poll_many(void **state)
{
	struct cq *cq = new_cq(8);
	struct wc wc[8];
	uint64_t in = 0, out = 0;

	(void)state;
	for (int round = 0; round < 100; round++) {
		int n;

		for (int k = 0; k < 5; k++)
			push(cq, in++);
		n = cq_poll(cq, 3, wc);
		assert_int_equal(n, 3);
		n += cq_poll(cq, 8, wc + 3);
		assert_int_equal(n, 5);
		for (int k = 0; k < 5; k++)
			assert_int_equal(wc[k].wr_id, out++);
	}
	assert_int_equal(cq_poll(cq, 0, wc), 0);
	assert_int_equal(cq_poll(cq, -1, wc), 0);
	assert_int_equal(cq_destroy(cq), 0);
}

/* B059 */
static void test_resize(void **state)
{
	struct cq *cq = new_cq(7);
	uint32_t max = hca_limits(host->hca)->max_cqe;

	(void)state;
	for (uint64_t k = 0; k < 6; k++) /* turn the ring a little */
		push(cq, 100 + k);
	for (uint64_t k = 0; k < 6; k++)
		(void)rig_poll(cq);
	for (uint64_t k = 0; k < 5; k++)
		push(cq, k);
	assert_int_equal(cq_resize(cq, 100), 0);
	assert_int_equal(cq_cqe(cq), 100);
	assert_int_equal(rig_poll(cq).wr_id, 0);
	assert_int_equal(rig_poll(cq).wr_id, 1);
	assert_int_equal(cq_resize(cq, 2), -EINVAL);
	assert_int_equal(cq_resize(cq, 0), -EINVAL);
	assert_int_equal(cq_resize(cq, max + 1), -EINVAL);
	assert_int_equal(cq_resize(cq, 3), 0);
	for (uint64_t k = 2; k < 5; k++)
		assert_int_equal(rig_poll(cq).wr_id, k);
	for (uint64_t k = 5; k < 8; k++)
		push(cq, k);
	host->alloc_fails_after = 0;
	assert_int_equal(cq_resize(cq, 8), -ENOMEM);
	host->alloc_fails_after = -1;
	for (uint64_t k = 5; k < 8; k++)
		assert_int_equal(rig_poll(cq).wr_id, k);
	assert_true(rig_no_event(host));
	assert_int_equal(cq_destroy(cq), 0);
}

static void expect_comp(struct cq *cq)
{
	struct hca_event ev = rig_event(host);

	assert_int_equal(ev.kind, HCA_EVENT_COMP);
	assert_ptr_equal(ev.cq, cq);
	assert_true(rig_no_event(host));
}

static void test_arm(void **state)
{
	struct cq *cq = new_cq(64);

	(void)state;
	push(cq, 1);
	assert_true(rig_no_event(host)); /* not armed */
	cq_arm(cq, false);
	assert_true(rig_no_event(host)); /* what was there before is polled */
	push(cq, 2);
	expect_comp(cq);
	push(cq, 3);
	assert_true(rig_no_event(host)); /* one event an arm */
	cq_arm(cq, false);
	cq_arm(cq, false);
	push(cq, 4);
	push(cq, 5);
	expect_comp(cq);
	/* Armed again before the event is fetched: one event for both. */
	cq_arm(cq, false);
	push(cq, 6);
	cq_arm(cq, false);
	push(cq, 7);
	expect_comp(cq);
	/* Destroy takes pending events with it. */
	cq_arm(cq, false);
	push(cq, 8);
	assert_int_equal(cq_destroy(cq), 0);
	assert_true(rig_no_event(host));
}

static void test_arm_solicited(void **state)
{
	struct wc ok = { .status = WC_SUCCESS };
	struct cq *cq = new_cq(64);

	(void)state;
	cq_arm(cq, true);
	cq_push(cq, &ok, false);
	assert_true(rig_no_event(host));
	cq_push(cq, &ok, true);
	expect_comp(cq);
	/* Any completion outweighs solicited ones, in either order. */
	cq_arm(cq, true);
	cq_arm(cq, false);
	cq_push(cq, &ok, false);
	expect_comp(cq);
	cq_arm(cq, false);
	cq_arm(cq, true);
	cq_push(cq, &ok, false);
	expect_comp(cq);
	assert_int_equal(cq_destroy(cq), 0);
}

/* Solicited receives, and errors on either side, wake a solicited-only
 * waiter; other completions do not. */
static void test_solicited_by_transport(void **state)
{
	struct rig_pair_config c = { .type = QP_TYPE_UC };
	struct send_wr wr = { .opcode = WR_SEND, .flags = WR_SIGNALED };
	struct rig_pair p;

	(void)state;
	rig_pair_open(&p, &rig, &c);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rig_post_recv(&p.e[1], 1, 0, 64), 0);
	cq_arm(p.e[1].rcq, true);
	cq_arm(p.e[0].scq, true);
	assert_int_equal(rig_post_send(&p.e[0], wr, 0, 8), 0);
	rig_pump(&rig);
	assert_true(rig_no_event(&rig.h[1]));
	wr.flags |= WR_SOLICITED;
	assert_int_equal(rig_post_send(&p.e[0], wr, 0, 8), 0);
	rig_pump(&rig);
	assert_ptr_equal(rig_event(&rig.h[1]).cq, p.e[1].rcq);
	assert_true(rig_no_event(&rig.h[0])); /* sends are not solicited */
	cq_arm(p.e[1].rcq, true);
	assert_int_equal(rig_state(&p.e[1], QP_STATE_ERR), 0);
	assert_ptr_equal(rig_event(&rig.h[1]).cq, p.e[1].rcq);
	assert_int_equal(rig_state(&p.e[0], QP_STATE_ERR), 0);
	assert_int_equal(rig_post_send(&p.e[0], wr, 0, 8), 0);
	rig_pump(&rig);
	assert_ptr_equal(rig_event(&rig.h[0]).cq, p.e[0].scq);
	rig_pair_close(&p);
}

/* B050, with real threads: a consumer that arms, polls until empty and then
 * waits for an event always gets one. */
#define ITEMS 300000u

struct race {
	struct cq *cq;
	_Atomic uint32_t polled;
	_Atomic uint32_t events; /* given by the engine */
	_Atomic bool stuck;
};

static void *consume(void *arg)
{
	struct race *r = arg;
	uint32_t seen = 0, events = 0;

	while (seen < ITEMS) {
		struct wc wc[16];
		int n;

		cq_arm(r->cq, false);
		while ((n = cq_poll(r->cq, 16, wc)) > 0)
			for (int i = 0; i < n; i++)
				if (wc[i].wr_id != seen++)
					atomic_store(&r->stuck, true);
		atomic_store(&r->polled, seen);
		if (seen == ITEMS)
			break;
		while (atomic_load(&r->events) == events)
			sched_yield();
		events = atomic_load(&r->events);
	}
	return NULL;
}

static void test_arm_race(void **state)
{
	struct race r = { .cq = new_cq(64) };
	uint64_t idle_since = 0;
	uint32_t pushed = 0;
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, consume, &r), 0);
	while (atomic_load(&r.polled) < ITEMS && !atomic_load(&r.stuck)) {
		struct hca_event ev;
		uint32_t in = pushed - atomic_load(&r.polled);

		if (pushed < ITEMS && in < 64) {
			push(r.cq, pushed++);
			idle_since = 0;
		} else {
			sched_yield();
		}
		if (hca_event_next(host->hca, &ev))
			atomic_fetch_add(&r.events, 1);
		/* A lost event shows as no progress for ever. */
		if (++idle_since > 50000000)
			atomic_store(&r.stuck, true);
	}
	assert_false(atomic_load(&r.stuck));
	pthread_join(t, NULL);
	assert_int_equal(atomic_load(&r.polled), ITEMS);
	assert_int_equal(rig_counter(host, cq_overflows), 0);
	while (!rig_no_event(host))
		;
	assert_int_equal(cq_destroy(r.cq), 0);
}

static bool had_event(struct rig_host *h, enum async_type type, const void *obj)
{
	struct hca_event ev;
	bool had = false;

	while (hca_event_next(h->hca, &ev))
		had |= ev.kind == HCA_EVENT_ASYNC && ev.type == type &&
		       (ev.qp == obj || ev.cq == obj);
	return had;
}

/* B058: a full CQ raises CQ_ERR, keeps what it has, and all its QPs fail. */
static void test_overflow(void **state)
{
	struct rig_pair_config c = { .type = QP_TYPE_UC, .cqe = 4 };
	struct send_wr wr = { .opcode = WR_SEND, .flags = WR_SIGNALED };
	struct qp_init qi = { .type = QP_TYPE_UC };
	struct hca_event ev;
	struct qp_cap cap;
	struct rig_pair p;
	struct qp *second;

	(void)state;
	rig_pair_open(&p, &rig, &c);
	qi.send_cq = p.e[0].rcq;
	qi.recv_cq = p.e[0].scq; /* shares the CQ, as the receive one */
	assert_int_equal(qp_create(p.e[0].pd, &qi, &cap, &second), 0);
	for (uint64_t i = 0; i < 6; i++) {
		wr.wr_id = i;
		assert_int_equal(rig_post_send(&p.e[0], wr, 0, 8), 0);
	}
	rig_pump(&rig);
	assert_int_equal(qp_state(p.e[0].qp), QP_STATE_ERR);
	assert_int_equal(qp_state(second), QP_STATE_RESET);
	ev = rig_event(host);
	assert_int_equal(ev.type, ASYNC_CQ_ERR);
	assert_ptr_equal(ev.cq, p.e[0].scq);
	ev = rig_event(host);
	assert_int_equal(ev.type, ASYNC_QP_FATAL);
	assert_ptr_equal(ev.qp, p.e[0].qp);
	assert_true(rig_no_event(host));
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(rig_poll(p.e[0].scq).wr_id, i);
	assert_true(rig_empty(p.e[0].scq));
	assert_int_equal(rig_counter(host, cq_overflows), 2);
	/* It takes no more, and says so to the QPs that come. */
	assert_int_equal(rig_state(&p.e[0], QP_STATE_RESET), 0);
	rig_walk(&p.e[0], QP_STATE_RTS, &p.e[1], &c);
	assert_int_equal(rig_post_send(&p.e[0], wr, 0, 8), 0);
	rig_pump(&rig);
	assert_true(rig_empty(p.e[0].scq));
	assert_int_equal(qp_state(p.e[0].qp), QP_STATE_ERR);
	assert_true(had_event(host, ASYNC_QP_FATAL, p.e[0].qp));
	assert_int_equal(qp_destroy(second), 0);
	rig_pair_close(&p);
}

/* A QP that goes to RESET takes its completions along; the others' stay, in
 * order, across the ring's end. */
static void test_forget_qp(void **state)
{
	static const uint32_t qpns[] = { 1, 2, 1, 1, 3, 2, 1, 3 };
	static const uint64_t left[] = { 1, 4, 5, 7 };
	struct wc wc = { 0 };
	struct cq *cq;

	(void)state;
	for (uint32_t skew = 0; skew < 8; skew++) {
		assert_int_equal(cq_create(host->hca, 8, NULL, &cq), 0);
		for (uint32_t i = 0; i < skew; i++) {
			cq_push(cq, &wc, false);
			(void)rig_poll(cq);
		}
		for (uint32_t i = 0; i < ARRAY_SIZE(qpns); i++) {
			struct wc w = { .wr_id = i, .qpn = qpns[i] };

			cq_push(cq, &w, false);
		}
		cq_forget_qp(cq, 1);
		cq_forget_qp(cq, 77);
		for (uint32_t i = 0; i < ARRAY_SIZE(left); i++)
			assert_int_equal(rig_poll(cq).wr_id, left[i]);
		assert_true(rig_empty(cq));
		assert_int_equal(cq_destroy(cq), 0);
	}
}

static void test_busy(void **state)
{
	struct rig_pair_config c = { .type = QP_TYPE_UD };
	struct rig_end e;

	(void)state;
	rig_end_open(&e, host, &c);
	assert_int_equal(cq_destroy(e.scq), -EBUSY);
	assert_int_equal(cq_destroy(e.rcq), -EBUSY);
	rig_end_close(&e);
}

/* ---- times, moderation, overruns that nobody minds ---- */

static void push_at(struct cq *cq, uint64_t id, int64_t at_ns)
{
	hca_advance(host->hca, at_ns);
	push(cq, id);
}

/* Each completion has the time of its own write, over resizing and beside
 * those of another QP that are taken away. */
static void test_times(void **state)
{
	struct wc other = { .wr_id = 9, .qpn = 77 };
	struct cq *cq = new_cq(5);

	(void)state;
	assert_int_equal(cq_keep_times(cq), 0);
	push_at(cq, 1, 1000);
	push_at(cq, 2, 2000);
	cq_push(cq, &other, false);
	push_at(cq, 3, 3000);
	cq_forget_qp(cq, 77);
	assert_int_equal(rig_poll(cq).wr_id, 1);
	assert_int_equal(cq_polled_ns(cq), 1000);
	assert_int_equal(cq_resize(cq, 64), 0);
	assert_int_equal(rig_poll(cq).wr_id, 2);
	assert_int_equal(cq_polled_ns(cq), 2000);
	assert_int_equal(cq_resize(cq, 1), 0);
	assert_int_equal(rig_poll(cq).wr_id, 3);
	assert_int_equal(cq_polled_ns(cq), 3000);
	assert_int_equal(cq_destroy(cq), 0);
}

static void test_moderation(void **state)
{
	struct cq *cq = new_cq(64);

	(void)state;
	cq_moderate(cq, 3, 50000);
	cq_arm(cq, false);
	push_at(cq, 1, 10000);
	push_at(cq, 2, 20000);
	assert_true(rig_no_event(host));
	push_at(cq, 3, 30000); /* the count */
	expect_comp(cq);
	push_at(cq, 4, 40000); /* not armed: owes nothing */
	cq_arm(cq, false);
	push_at(cq, 5, 50000);
	hca_advance(host->hca, 99000);
	assert_true(rig_no_event(host));
	hca_advance(host->hca, 102000); /* the period */
	expect_comp(cq);
	hca_advance(host->hca, 1000000); /* once */
	assert_true(rig_no_event(host));
	/* Off again: what is held comes at once. */
	cq_arm(cq, false);
	push_at(cq, 6, 1100000);
	assert_true(rig_no_event(host));
	cq_moderate(cq, 0, 0);
	hca_advance(host->hca, 1102048);
	expect_comp(cq);
	cq_arm(cq, false);
	push_at(cq, 7, 1200000);
	expect_comp(cq);
	/* A CQ with a timer may go. */
	cq_moderate(cq, 9, 1000000);
	cq_arm(cq, false);
	push_at(cq, 8, 1300000);
	assert_int_equal(cq_destroy(cq), 0);
	hca_advance(host->hca, 9000000);
	assert_true(rig_no_event(host));
}

static void test_ignore_overrun(void **state)
{
	struct cq *cq = new_cq(2);

	(void)state;
	cq_ignore_overrun(cq);
	for (uint64_t id = 1; id <= 4; id++)
		push(cq, id);
	assert_true(rig_no_event(host));
	assert_int_equal(hca_counters(host->hca)->cq_overflows, 2);
	assert_int_equal(rig_poll(cq).wr_id, 1);
	push(cq, 5);
	assert_int_equal(rig_poll(cq).wr_id, 2);
	assert_int_equal(rig_poll(cq).wr_id, 5);
	assert_int_equal(cq_destroy(cq), 0);
}

/* Completions of a QP that was destroyed do not come any more. */
static void test_destroyed_qp(void **state)
{
	struct rig_pair_config c = { .type = QP_TYPE_UD };
	struct rig_end e;
	struct wc wc, mine = { .wr_id = 7 };

	(void)state;
	rig_end_open(&e, host, &c);
	mine.qpn = qp_num(e.qp);
	push(e.scq, 6);
	cq_push(e.scq, &mine, false);
	cq_push(e.rcq, &mine, false);
	assert_int_equal(qp_destroy(e.qp), 0);
	assert_int_equal(rig_poll(e.scq).wr_id, 6);
	assert_int_equal(cq_poll(e.scq, 1, &wc), 0);
	assert_int_equal(cq_poll(e.rcq, 1, &wc), 0);
	assert_int_equal(mr_dereg(e.mr), 0);
	assert_int_equal(cq_destroy(e.scq), 0);
	assert_int_equal(cq_destroy(e.rcq), 0);
	assert_int_equal(pd_destroy(e.pd), 0);
}

#define RIGGED(t) cmocka_unit_test_setup_teardown(t, open_rig, close_rig)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIGGED(test_capacity),	   RIGGED(test_bad_sizes),
		RIGGED(test_poll_many),	   RIGGED(test_resize),
		RIGGED(test_arm),	   RIGGED(test_arm_solicited),
		RIGGED(test_arm_race),	   RIGGED(test_overflow),
		RIGGED(test_busy),	   RIGGED(test_solicited_by_transport),
		RIGGED(test_forget_qp),	   RIGGED(test_times),
		RIGGED(test_moderation),   RIGGED(test_ignore_overrun),
		RIGGED(test_destroyed_qp),
	};

	return cmocka_run_group_tests_name("cq", tests, NULL, NULL);
}
