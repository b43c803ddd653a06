/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rt/evq.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "link/fd_hide.h"
#include "rt/rawsys.h"
#include "rt/rtdev.h"

void evq_item_init(struct evq_item *it, struct rt_evq *q, void *user)
{
	*it = (struct evq_item){ .q = q, .user = user };
	dlist_init(&it->node);
}

/* Both with the queue's lock held. The counter cannot overflow: 2^64 - 2 events
 * would have to wait. */
static void token_add(struct rt_evq *q)
{
	uint64_t one = 1;

	if (!rtdev_failed(q->dev))
		(void)RAWSYS3(SYS_write, q->own_fd, &one, sizeof(one));
}

/* There is one, so this does not block, whatever the fd's flags are. */
static void token_take_back(struct rt_evq *q)
{
	uint64_t v;

	if (!rtdev_failed(q->dev))
		(void)RAWSYS3(SYS_read, q->own_fd, &v, sizeof(v));
}

static void line_up(struct evq_item *it)
{
	if (!dlist_linked(&it->node))
		dlist_push_back(&it->q->items, &it->node);
}

void evq_push_comp(struct evq_item *it)
{
	if (!it->q)
		return;
	rt_lock_acquire(&it->q->lock);
	it->comp++;
	line_up(it);
	token_add(it->q);
	rt_lock_release(&it->q->lock);
	sem_post(&it->q->ready);
}

void evq_push_async(struct evq_item *it, enum async_type type)
{
	bool fresh;

	if (!it->q)
		return;
	rt_lock_acquire(&it->q->lock);
	fresh = !(it->async & 1u << type);
	it->async |= 1u << type;
	line_up(it);
	if (fresh)
		token_add(it->q);
	rt_lock_release(&it->q->lock);
	if (fresh)
		sem_post(&it->q->ready);
}

void evq_wake_all(struct rt_evq *q)
{
	sem_post(&q->ready); /* the one that wakes wakes the next */
}

uint32_t evq_item_fini(struct evq_item *it)
{
	uint32_t waiting, given;

	if (!it->q)
		return 0;
	rt_lock_acquire(&it->q->lock);
	waiting = it->comp + (uint32_t)__builtin_popcount(it->async);
	it->comp = it->async = 0;
	dlist_remove(&it->node);
	given = it->given;
	while (waiting--)
		token_take_back(it->q);
	rt_lock_release(&it->q->lock);
	return given;
}

static int make_fds(struct rt_evq *q)
{
	q->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (q->fd < 0)
		return -errno;
	q->own_fd = fd_hidden_dup(q->fd);
	if (q->own_fd >= 0)
		return 0;
	(void)RAWSYS1(SYS_close, q->fd);
	return q->own_fd;
}

int rt_evq_new(struct rtdev *d, bool async, struct rt_evq **ret_q)
{
	struct rt_evq *q;
	int err;

	if (rtdev_failed(d))
		return -EIO;
	q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	err = make_fds(q);
	if (err) {
		free(q);
		return err;
	}
	sem_init(&q->ready, 0, 0);
	rt_lock_init(&q->lock);
	dlist_init(&q->items);
	dlist_init(&q->dev_node);
	q->dev = d;
	q->async = async;
	evq_item_init(&q->port, q, NULL);
	q->port.port_num = 1;
	rtdev_add_evq(d, q);
	*ret_q = q;
	return 0;
}

void rt_evq_free(struct rt_evq *q)
{
	rtdev_remove_evq(q->dev, q);
	if (!rtdev_lost(q->dev)) {
		(void)RAWSYS1(SYS_close, q->fd);
		(void)RAWSYS1(SYS_close, q->own_fd);
	}
	sem_destroy(&q->ready);
	free(q);
}

int rt_evq_fd(const struct rt_evq *q)
{
	return q->fd;
}

/* The oldest event; false: there is none. */
static bool pop(struct rt_evq *q, struct rt_event *ret)
{
	struct dlist *n;
	struct evq_item *it;

	rt_lock_acquire(&q->lock);
	n = dlist_first(&q->items);
	if (!n) {
		rt_lock_release(&q->lock);
		return false;
	}
	it = CONTAINER_OF(n, struct evq_item, node);
	ret->user = it->user;
	ret->port_num = it->port_num;
	if (it->comp) {
		ret->kind = HCA_EVENT_COMP;
		it->comp--;
	} else {
		ret->kind = HCA_EVENT_ASYNC;
		ret->type = (enum async_type)__builtin_ctz(it->async);
		it->async &= it->async - 1;
	}
	it->given++;
	/* To the end of the line, so that no object starves another. */
	dlist_remove(&it->node);
	if (it->comp || it->async)
		dlist_push_back(&q->items, &it->node);
	token_take_back(q);
	rt_lock_release(&q->lock);
	return true;
}

/* Waits as a read() of the fd would: as its flags say, a cancellation point,
 * restarted after signal handlers with SA_RESTART. 0: look again. */
static int wait_event(struct rt_evq *q)
{
	int flags = fcntl(q->own_fd, F_GETFL);

	if (flags < 0)
		return -EIO; /* closed under us, noticed a moment later */
	if (flags & O_NONBLOCK)
		return -EAGAIN;
	return sem_wait(&q->ready) ? -errno : 0;
}

int rt_evq_get(struct rt_evq *q, struct rt_event *ret)
{
	bool waited = false;
	int err;

	for (;; waited = true) {
		if (rtdev_dead(q->dev))
			return -EIO;
		if (pop(q, ret)) {
			/* Who did not wait leaves no more ups than events. */
			if (!waited)
				(void)sem_trywait(&q->ready);
			return 0;
		}
		if (rtdev_lost(q->dev)) {
			evq_wake_all(q);
			return -EIO;
		}
		err = wait_event(q);
		if (err)
			return err;
	}
}
