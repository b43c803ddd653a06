/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * evq.h - event queues: a completion channel or a context's async events. An
 * eventfd in semaphore mode counts the events, so a program may poll, dup or
 * make it non-blocking; what they are waits in a list of the objects that have
 * some. Nothing is allocated per event.
 *
 * The engine pushes; program threads pop. The queue's own lock is a leaf; under
 * it the eventfd counts what the list holds. We use a hidden number of the
 * eventfd, never the program's: that one may be closed and another file's.
 * Who waits in rt_evq_get() does so on a semaphore: unlike a read() it can be
 * ended when the descriptors are gone.
 */
#ifndef SOFTHCA_RT_EVQ_H
#define SOFTHCA_RT_EVQ_H

#include <semaphore.h>

#include "base/dlist.h"
#include "rt/lock.h"
#include "rt/rt.h"

/* One in every object that has events. */
struct evq_item {
	struct dlist node;
	struct rt_evq *q; /* NULL: events go nowhere */
	void *user;
	uint32_t comp;	/* completion events waiting */
	uint32_t async; /* bits of enum async_type waiting */
	uint32_t given; /* handed out so far */
	uint8_t port_num;
};

struct rt_evq {
	int fd;	     /* the program's */
	int own_fd;  /* the same eventfd, ours */
	sem_t ready; /* at least as often up as events wait */
	struct rt_lock lock;
	struct dlist items;
	struct dlist dev_node; /* all queues of one device */
	bool async;
	struct evq_item port; /* port and device events; async queues only */
	struct rtdev *dev;
};

void evq_item_init(struct evq_item *it, struct rt_evq *q, void *user);

/* [E] Adds an event. One async type waits at most once per object. */
void evq_push_comp(struct evq_item *it);
void evq_push_async(struct evq_item *it, enum async_type type);

/* The device failed: whoever waits in rt_evq_get() looks up. */
void evq_wake_all(struct rt_evq *q);

/* Takes the item's waiting events back; returns what was given out. */
uint32_t evq_item_fini(struct evq_item *it);

#endif
