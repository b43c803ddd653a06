/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The data path's verbs: post and poll. They take one queue's lock, never the
 * engine's; then they visit the engine. In the child of a fork a lock may be
 * held by a thread of the parent: none is taken there.
 */
#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rt/config.h"
#include "rt/rt_obj.h"
#include "rt/rtdev.h"

void rt_send_begin(struct rt_qp *q)
{
	if (LIKELY(!rtdev_dead(q->dev)))
		rt_lock_acquire(&q->send_lock);
}

int rt_send_post(struct rt_qp *q, const struct send_wr *wr)
{
	return UNLIKELY(rtdev_dead(q->dev)) ? -EIO : qp_post_send(q->qp, wr);
}

int rt_send_check(struct rt_qp *q, const struct send_wr *wr)
{
	return UNLIKELY(rtdev_dead(q->dev)) ? -EIO : qp_check_send(q->qp, wr);
}

uint32_t rt_send_room(struct rt_qp *q)
{
	return UNLIKELY(rtdev_dead(q->dev)) ? 0 : qp_send_room(q->qp);
}

void rt_send_end(struct rt_qp *q)
{
	bool rang;

	if (UNLIKELY(rtdev_dead(q->dev)))
		return;
	rang = qp_ring(q->qp);
	rt_lock_release(&q->send_lock);
	if (rang)
		engine_visit(q->dev, VISIT_POST);
}

void rt_recv_begin(struct rt_qp *q)
{
	if (LIKELY(!rtdev_dead(q->dev)))
		rt_lock_acquire(&q->recv_lock);
}

int rt_recv_post(struct rt_qp *q, const struct recv_wr *wr)
{
	return UNLIKELY(rtdev_dead(q->dev)) ? -EIO : qp_post_recv(q->qp, wr);
}

/* A receive gives the NIC nothing to do, except where it must be flushed. */
void rt_recv_end(struct rt_qp *q)
{
	bool flush;

	if (UNLIKELY(rtdev_dead(q->dev)))
		return;
	flush = qp_state(q->qp) == QP_STATE_ERR && qp_ring(q->qp);
	rt_lock_release(&q->recv_lock);
	if (flush)
		engine_visit(q->dev, VISIT_POST);
}

void rt_srq_begin(struct rt_srq *s)
{
	if (LIKELY(!rtdev_dead(s->dev)))
		rt_lock_acquire(&s->lock);
}

int rt_srq_post(struct rt_srq *s, const struct recv_wr *wr)
{
	return UNLIKELY(rtdev_dead(s->dev)) ? -EIO : srq_post_recv(s->srq, wr);
}

void rt_srq_end(struct rt_srq *s)
{
	if (LIKELY(!rtdev_dead(s->dev)))
		rt_lock_release(&s->lock);
}

static int poll_once(struct rt_cq *c, int n, struct wc *ret_wc)
{
	int got;

	rt_lock_acquire(&c->lock);
	got = cq_poll(c->cq, n, ret_wc);
	c->empty_polls = got ? 0 : c->empty_polls + 1;
	rt_lock_release(&c->lock);
	return got;
}

/* sched_yield() passes over whoever has less than our real-time priority; our
 * NIC thread and perhaps the peer are such. */
static void give_way(void)
{
	struct timespec ts = { .tv_nsec = 50000 };
	long policy = syscall(SYS_sched_getscheduler, 0);

	if (policy >= 0)
		policy &= ~SCHED_RESET_ON_FORK;
	if (policy == SCHED_FIFO || policy == SCHED_RR)
		(void)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts,
			      NULL);
	else
		(void)syscall(SYS_sched_yield);
}

/* Nothing came for a while: let somebody else have the CPU, who may be the one
 * that we wait for. */
static void yield_if_idle(struct rt_cq *c)
{
	unsigned limit = rt_config()->empty_polls;
	int saved = errno;

	if (!limit || c->empty_polls < limit)
		return;
	c->empty_polls = 0;
	ENGINE_COUNT(&c->dev->engine, yields);
	give_way();
	errno = saved;
}

int rt_cq_poll(struct rt_cq *c, int n, struct wc *ret_wc)
{
	int got;

	if (UNLIKELY(rtdev_dead(c->dev)))
		return -EIO;
	got = poll_once(c, n, ret_wc);
	if (got || n <= 0)
		return got;
	engine_visit(c->dev, VISIT_POLL);
	got = poll_once(c, n, ret_wc);
	if (!got) {
		ENGINE_COUNT(&c->dev->engine, empty_polls);
		yield_if_idle(c);
	}
	return got;
}
