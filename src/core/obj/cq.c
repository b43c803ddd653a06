/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/cq.h"

#include <errno.h>
#include <string.h>

#include "base/mutant.h"
#include "core/obj/hca_priv.h"
#include "core/obj/idtab.h"
#include "core/obj/qp.h"

static void mod_timeout(struct timer *t, int64_t now_ns);

static struct wc *ring_new(struct hca *hca, uint32_t cqe, uint32_t *ret_mask)
{
	uint32_t slots = 1;
	struct wc *ring;

	while (slots < cqe)
		slots *= 2;
	ring = hca_alloc(hca, (size_t)slots * sizeof(*ring));
	if (ring)
		*ret_mask = slots - 1;
	return ring;
}

static int64_t *times_new(struct hca *hca, uint32_t mask)
{
	return hca_alloc(hca, ((size_t)mask + 1) * sizeof(int64_t));
}

int cq_create(struct hca *hca, uint32_t cqe, void *user, struct cq **ret_cq)
{
	struct cq *cq;
	int rc = -ENOMEM;

	if (cqe < 1 || cqe > hca->cfg.limits.max_cqe)
		return -EINVAL;
	cq = hca_alloc(hca, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	cq->ring = ring_new(hca, cqe, &cq->mask);
	if (!cq->ring)
		goto err_cq;
	cq->hca = hca;
	cq->user = user;
	cq->capacity = cqe;
	dlist_init(&cq->overrun_node);
	timer_init(&cq->mod_timer, mod_timeout);
	event_init(&cq->events, EVENT_OWNER_CQ);
	rc = idtab_add(hca->cqs, cq, &cq->id);
	if (rc)
		goto err_ring;
	*ret_cq = cq;
	return 0;
err_ring:
	hca_release(hca, cq->ring);
err_cq:
	hca_release(hca, cq);
	return rc;
}

int cq_destroy(struct cq *cq)
{
	struct hca *hca = cq->hca;

	if (cq->refs)
		return -EBUSY;
	timer_cancel(&cq->mod_timer);
	event_forget(&cq->events);
	dlist_remove(&cq->overrun_node);
	idtab_remove(hca->cqs, cq->id);
	hca_release(hca, cq->times);
	hca_release(hca, cq->ring);
	hca_release(hca, cq);
	return 0;
}

int cq_resize(struct cq *cq, uint32_t cqe)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_acquire);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	int64_t *times = NULL;
	uint32_t mask;
	struct wc *ring;

	if (cqe < 1 || cqe > cq->hca->cfg.limits.max_cqe || cqe < tail - head)
		return -EINVAL;
	ring = ring_new(cq->hca, cqe, &mask);
	if (!ring)
		return -ENOMEM;
	if (cq->times && !(times = times_new(cq->hca, mask))) {
		hca_release(cq->hca, ring);
		return -ENOMEM;
	}
	for (uint32_t i = head; i != tail; i++)
		ring[i & mask] = cq->ring[i & cq->mask];
	for (uint32_t i = head; times && i != tail; i++)
		times[i & mask] = cq->times[i & cq->mask];
	hca_release(cq->hca, cq->ring);
	hca_release(cq->hca, cq->times);
	cq->ring = ring;
	cq->times = times;
	cq->mask = mask;
	cq->capacity = cqe;
	return 0;
}

int cq_keep_times(struct cq *cq)
{
	cq->times = times_new(cq->hca, cq->mask);
	return cq->times ? 0 : -ENOMEM;
}

int64_t cq_polled_ns(const struct cq *cq)
{
	return cq->polled_ns;
}

void cq_ignore_overrun(struct cq *cq)
{
	cq->ignore_overrun = true;
}

uint32_t cq_cqe(const struct cq *cq)
{
	return cq->capacity;
}

void *cq_user(const struct cq *cq)
{
	return cq->user;
}

int cq_poll(struct cq *cq, int n, struct wc *ret_wc)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	uint32_t ready =
		atomic_load_explicit(&cq->tail, memory_order_seq_cst) - head;
	uint32_t take = n > 0 ? (uint32_t)n : 0;

	if (take > ready)
		take = ready;
	for (uint32_t i = 0; i < take; i++)
		ret_wc[i] = cq->ring[(head + i) & cq->mask];
	if (take && cq->times)
		cq->polled_ns = cq->times[(head + take - 1) & cq->mask];
	if (take)
		atomic_store_explicit(&cq->head, head + take,
				      memory_order_release);
	return (int)take;
}

void cq_arm(struct cq *cq, bool solicited_only)
{
	uint32_t want = solicited_only ? CQ_ARMED_SOLICITED : CQ_ARMED_ANY;
	uint32_t was = atomic_load_explicit(&cq->arm, memory_order_relaxed);

	/* A request for any completion is not weakened by a later one for
	 * solicited ones [IBA 11.4.2.2]. Always an RMW: see cq.h. */
	do {
		if (was > want)
			want = was;
	} while (!atomic_compare_exchange_weak_explicit(&cq->arm, &was, want,
							memory_order_seq_cst,
							memory_order_relaxed));
}

static void fire(struct cq *cq)
{
	/* Beside a cq_arm that asks again: one event then serves both. */
	atomic_exchange_explicit(&cq->arm, CQ_ARMED_NOT, memory_order_seq_cst);
	if (!MUTANT(event_lost) || cq->hca->counters.cqes % 16 != 7)
		event_raise(cq->hca, &cq->events, EVENT_BIT_COMP);
}

void cq_moderate(struct cq *cq, uint32_t count, int64_t period_ns)
{
	cq->mod_count = count;
	cq->mod_period_ns = count < 2 ? 0 : period_ns;
	if (timer_armed(&cq->mod_timer)) /* no longer than was promised */
		timer_arm(&cq->hca->wheel, &cq->mod_timer, cq->hca->now_ns);
}

/* One more that an armed CQ owes an event for. */
static bool hold_back(struct cq *cq)
{
	if (!cq->mod_period_ns)
		return false;
	if (++cq->held >= cq->mod_count) {
		cq->held = 0;
		timer_cancel(&cq->mod_timer);
		return false;
	}
	if (!timer_armed(&cq->mod_timer))
		timer_arm(&cq->hca->wheel, &cq->mod_timer,
			  cq->hca->now_ns + cq->mod_period_ns);
	return true;
}

static void mod_timeout(struct timer *t, int64_t now_ns)
{
	struct cq *cq = CONTAINER_OF(t, struct cq, mod_timer);

	(void)now_ns;
	cq->held = 0;
	if (atomic_load_explicit(&cq->arm, memory_order_seq_cst) !=
	    CQ_ARMED_NOT)
		fire(cq);
}

static void fire_if_armed(struct cq *cq, bool solicited)
{
	uint32_t armed = atomic_load_explicit(&cq->arm, memory_order_seq_cst);

	if (armed == CQ_ARMED_NOT ||
	    (armed == CQ_ARMED_SOLICITED && !solicited))
		return;
	if (!hold_back(cq))
		fire(cq);
}

static void overrun(struct cq *cq)
{
	struct hca *hca = cq->hca;

	HCA_COUNT(hca, cq_overflows);
	if (cq->ignore_overrun)
		return;
	if (!cq->overrun)
		event_raise(hca, &cq->events, ASYNC_CQ_ERR);
	cq->overrun = true;
	if (!dlist_linked(&cq->overrun_node))
		dlist_push_back(&hca->overruns, &cq->overrun_node);
}

void cq_push(struct cq *cq, const struct wc *wc, bool solicited)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_acquire);

	ASSERT(tail - head <= cq->capacity);
	if (cq->overrun || tail - head == cq->capacity) {
		overrun(cq);
		return;
	}
	cq->ring[tail & cq->mask] = *wc;
	if (cq->times)
		cq->times[tail & cq->mask] = cq->hca->now_ns;
	atomic_store_explicit(&cq->tail, tail + 1, memory_order_seq_cst);
	HCA_COUNT(cq->hca, cqes);
	fire_if_armed(cq, solicited);
}

void cq_forget_qp(struct cq *cq, uint32_t qpn)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_acquire);
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	uint32_t to = tail;

	/* From the newest down, so that head moves up and tail stays. */
	for (uint32_t i = tail; i != head; i--) {
		const struct wc *wc = &cq->ring[(i - 1) & cq->mask];

		if (wc->qpn == qpn)
			continue;
		cq->ring[--to & cq->mask] = *wc;
		if (cq->times)
			cq->times[to & cq->mask] =
				cq->times[(i - 1) & cq->mask];
	}
	atomic_store_explicit(&cq->head, to, memory_order_release);
}

static void fail_users(struct hca *hca, const struct cq *cq)
{
	uint32_t pos = 0;
	struct qp *qp;

	while ((qp = idtab_next(hca->qps, &pos))) {
		enum qp_state s = qp_state(qp);

		if ((qp->send_cq != cq && qp->recv_cq != cq) ||
		    s == QP_STATE_RESET || s == QP_STATE_ERR)
			continue;
		qp_event(qp, ASYNC_QP_FATAL);
		qp_error(qp, hca->now_ns);
	}
}

void cq_settle(struct hca *hca)
{
	struct dlist *n;

	/* Flushing may overrun others, or this one again: each QP fails once,
	 * so it ends. */
	while ((n = dlist_first(&hca->overruns))) {
		dlist_remove(n);
		fail_users(hca, CONTAINER_OF(n, struct cq, overrun_node));
	}
}
