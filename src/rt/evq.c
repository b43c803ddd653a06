/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rt/evq.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rt/rtdev.h"

void evq_item_init(struct evq_item *it, struct rt_evq *q, void *user)
{
	*it = (struct evq_item){ .q = q, .user = user };
	dlist_init(&it->node);
}

/* The counter cannot overflow: 2^64 - 2 events would have to wait. */
static void token_add(struct rt_evq *q)
{
	uint64_t one = 1;
	int saved = errno;

	(void)!syscall(SYS_write, q->fd, &one, sizeof(one));
	errno = saved;
}

/* Takes one token if one is there, without blocking and whatever the fd's
 * flags are. A reader that took it first finds the list empty and waits on. */
static void token_take_back(struct rt_evq *q)
{
	uint64_t v;
	struct iovec iov = { &v, sizeof(v) };
	struct pollfd p = { .fd = q->fd, .events = POLLIN };
	int saved = errno;

	if (syscall(SYS_preadv2, q->fd, &iov, 1, -1L, -1L, RWF_NOWAIT) < 0 &&
	    errno == EOPNOTSUPP && poll(&p, 1, 0) == 1)
		(void)!syscall(SYS_read, q->fd, &v, sizeof(v));
	errno = saved;
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
	rt_lock_release(&it->q->lock);
	token_add(it->q);
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
	rt_lock_release(&it->q->lock);
	if (fresh)
		token_add(it->q);
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
	rt_lock_release(&it->q->lock);
	while (waiting--)
		token_take_back(it->q);
	return given;
}

int rt_evq_new(struct rtdev *d, bool async, struct rt_evq **ret_q)
{
	struct rt_evq *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (q->fd < 0) {
		free(q);
		return -errno;
	}
	rt_lock_init(&q->lock);
	dlist_init(&q->items);
	dlist_init(&q->dev_node);
	q->dev = d;
	evq_item_init(&q->port, q, NULL);
	q->port.port_num = 1;
	if (async)
		rtdev_add_async(d, q);
	*ret_q = q;
	return 0;
}

void rt_evq_free(struct rt_evq *q)
{
	rtdev_remove_async(q->dev, q);
	close(q->fd);
	free(q);
}

int rt_evq_fd(const struct rt_evq *q)
{
	return q->fd;
}

/* The oldest event; false when a destroyed object took it back. */
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
	rt_lock_release(&q->lock);
	return true;
}

int rt_evq_get(struct rt_evq *q, struct rt_event *ret)
{
	uint64_t token;

	do {
		/* libc's read: a cancellation point, as the real one is. */
		ssize_t n = read(q->fd, &token, sizeof(token));

		if (n < 0)
			return -errno;
		if (n != sizeof(token))
			return -EIO;
	} while (!pop(q, ret));
	return 0;
}
