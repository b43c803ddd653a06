/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rc_timer.c - timers of the requester.
 *
 * Progress moves a deadline instead of the timer: a stream of ACKs costs one
 * store each. When the timer fires ahead of the deadline it is armed again.
 */
#include "core/rc/rc_timer.h"

#include "base/mutant.h"
#include "core/rc/rc_cmp.h"
#include "core/rc/rc_req.h"

#define RNR_RETRY_INFINITE 7
/* Called this late, and the host stood still meanwhile (a virtual machine that
 * was not run, a thread that got no CPU). */
#define STALL_NS 4000000

/* The host stood still when the answer should have come, and on one host so did
 * the peer: it gets the same time again, once. What the clause allows, up to
 * four times the nominal time, is kept but for the stall itself
 * [IBA 9.7.6.1.3]. */
static bool excused(struct rc_timer *t, int64_t now_ns)
{
	bool stalled = now_ns - t->deadline_ns > STALL_NS;

	if (!stalled || t->excused) {
		t->excused = false;
		return false;
	}
	t->excused = true;
	return true;
}

static void transport_fired(struct timer *timer, int64_t now_ns)
{
	struct rc_qp *rc = CONTAINER_OF(timer, struct rc_qp, timer.transport);
	struct qp *qp = rc_owner(rc);
	struct rc_timer *t = &rc->timer;

	if (now_ns >= t->deadline_ns) {
		if (!excused(t, now_ns)) {
			rc_cmp_timeout(qp, now_ns);
			return;
		}
		HCA_COUNT(qp->hca, req_stalls);
		t->deadline_ns = now_ns + rc_timer_timeout_ns(qp);
	}
	timer_arm(&qp->hca->wheel, timer, t->deadline_ns);
}

static void rnr_fired(struct timer *t, int64_t now_ns)
{
	struct rc_qp *rc = CONTAINER_OF(t, struct rc_qp, timer.rnr);

	(void)now_ns;
	rc_req_rnr_over(rc_owner(rc));
}

void rc_timer_init(struct qp *qp)
{
	struct rc_timer *t = &rc_of(qp)->timer;

	timer_init(&t->transport, transport_fired);
	timer_init(&t->rnr, rnr_fired);
}

static void counters_refill(struct qp *qp)
{
	struct rc_timer *t = &rc_of(qp)->timer;

	t->retries_left = qp->attr.retry_cnt;
	t->rnr_left = qp->attr.rnr_retry;
}

void rc_timer_reset(struct qp *qp)
{
	rc_timer_stop(qp);
	rc_timer_rnr_stop(qp);
	counters_refill(qp);
}

int64_t rc_timer_timeout_ns(const struct qp *qp)
{
	uint8_t code = qp->attr.timeout & 31;

	return code ? INT64_C(4096) << code : INT64_MAX;
}

static void transport_start(struct qp *qp, int64_t now_ns)
{
	struct rc_timer *t = &rc_of(qp)->timer;
	int64_t timeout_ns = rc_timer_timeout_ns(qp);

	if (timeout_ns == INT64_MAX || MUTANT(no_timeout))
		return;
	t->deadline_ns = now_ns + timeout_ns;
	t->excused = false;
	if (!timer_armed(&t->transport))
		timer_arm(&qp->hca->wheel, &t->transport, t->deadline_ns);
}

void rc_timer_sent(struct qp *qp, int64_t now_ns)
{
	transport_start(qp, now_ns);
}

void rc_timer_progress(struct qp *qp, bool in_flight, int64_t now_ns)
{
	counters_refill(qp);
	if (in_flight)
		transport_start(qp, now_ns);
	else
		rc_timer_stop(qp);
}

void rc_timer_changed(struct qp *qp, bool in_flight, int64_t now_ns)
{
	if (rc_timer_timeout_ns(qp) == INT64_MAX)
		rc_timer_stop(qp);
	else if (in_flight)
		rc_timer_sent(qp, now_ns);
}

void rc_timer_stop(struct qp *qp)
{
	timer_cancel(&rc_of(qp)->timer.transport);
}

void rc_timer_rnr_start(struct qp *qp, int64_t ns, int64_t now_ns)
{
	rc_timer_stop(qp);
	timer_arm(&qp->hca->wheel, &rc_of(qp)->timer.rnr, now_ns + ns);
}

void rc_timer_rnr_stop(struct qp *qp)
{
	timer_cancel(&rc_of(qp)->timer.rnr);
}

bool rc_timer_take_retry(struct qp *qp)
{
	struct rc_timer *t = &rc_of(qp)->timer;

	if (t->retries_left == 0)
		return false;
	t->retries_left -= !MUTANT(retries_not_counted);
	return true;
}

void rc_timer_refill(struct qp *qp)
{
	rc_of(qp)->timer.retries_left = qp->attr.retry_cnt;
}

bool rc_timer_take_rnr_retry(struct qp *qp)
{
	struct rc_timer *t = &rc_of(qp)->timer;

	if (t->rnr_left == 0)
		return false;
	if (t->rnr_left != RNR_RETRY_INFINITE)
		t->rnr_left--;
	t->retries_left = qp->attr.retry_cnt;
	return true;
}
