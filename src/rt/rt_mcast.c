/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rt_mcast.c - attaching QPs to multicast groups: the core's lists, and the
 * sockets by which the interface is a member. A device has at most one socket
 * a group and address family, for all its QPs. A group with an IPv6 name is
 * joined by IPv4 too (gid_group_v4()); one of the two must succeed.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "rt/nic.h"
#include "rt/rt_obj.h"
#include "rt/rtdev.h"

struct rt_group { /* under control */
	struct dlist node;
	struct gid mgid;
	uint32_t refs; /* attachments */
	int fd[2];     /* IPv4, IPv6; -1: none */
};

static struct rt_group *find(struct rtdev *d, const struct gid *mgid)
{
	for (struct dlist *n = d->groups.next; n != &d->groups; n = n->next) {
		struct rt_group *g = CONTAINER_OF(n, struct rt_group, node);

		if (gid_eq(&g->mgid, mgid))
			return g;
	}
	return NULL;
}

static void leave_one(struct rtdev *d, int fd)
{
	if (fd < 0 || rtdev_lost(d))
		return;
	engine_lock(d);
	udp_link_remove_rx(d->link, fd);
	engine_unlock(d);
	close(fd);
}

static int join_one(struct rtdev *d, const struct gid *group, int *ret_fd)
{
	int fd, err;

	err = udp_group_join_mcast(d->group, group, d->id.ifindex, &fd);
	if (err)
		return err;
	engine_lock(d);
	err = rtdev_receive_from(d, fd, group);
	engine_unlock(d);
	if (err)
		close(fd);
	else
		*ret_fd = fd;
	return err;
}

static int join(struct rtdev *d, struct rt_group *g)
{
	struct gid v4 = gid_group_v4(&g->mgid);
	int err, err6 = -EADDRNOTAVAIL;

	g->fd[0] = g->fd[1] = -1;
	err = join_one(d, &v4, &g->fd[0]);
	if (!gid_is_v4(&g->mgid))
		err6 = join_one(d, &g->mgid, &g->fd[1]);
	return err6 ? err : 0;
}

static void unref(struct rtdev *d, struct rt_group *g)
{
	if (--g->refs)
		return;
	leave_one(d, g->fd[0]);
	leave_one(d, g->fd[1]);
	dlist_remove(&g->node);
	free(g);
}

/* One more reference to the group's sockets. */
static int ref(struct rtdev *d, const struct gid *mgid, struct rt_group **ret)
{
	struct rt_group *g = find(d, mgid);
	int err;

	if (!g) {
		g = calloc(1, sizeof(*g));
		if (!g)
			return -ENOMEM;
		g->mgid = *mgid;
		err = join(d, g);
		if (err) {
			free(g);
			return err;
		}
		dlist_init(&g->node);
		dlist_push_back(&d->groups, &g->node);
	}
	g->refs++;
	*ret = g;
	return 0;
}

static int attach_locked(struct rt_qp *q, const struct gid *mgid)
{
	struct rtdev *d = q->dev;
	struct rt_group *g;
	int err;

	engine_lock(d);
	err = qp_attach_mcast(q->qp, mgid);
	engine_unlock(d);
	if (err)
		return err == -EEXIST ? 0 : err;
	err = ref(d, mgid, &g);
	if (!err)
		return 0;
	engine_lock(d);
	(void)!qp_detach_mcast(q->qp, mgid);
	engine_unlock(d);
	return err;
}

int rt_qp_attach_mcast(struct rt_qp *q, const struct gid *mgid)
{
	int err;

	if (rtdev_failed(q->dev))
		return -EIO;
	pthread_mutex_lock(&q->dev->control);
	err = attach_locked(q, mgid);
	pthread_mutex_unlock(&q->dev->control);
	return err;
}

static int detach_locked(struct rt_qp *q, const struct gid *mgid)
{
	struct rt_group *g;
	int err;

	engine_lock(q->dev);
	err = qp_detach_mcast(q->qp, mgid);
	engine_unlock(q->dev);
	if (err)
		return err;
	g = find(q->dev, mgid);
	ASSERT(g);
	unref(q->dev, g);
	return 0;
}

int rt_qp_detach_mcast(struct rt_qp *q, const struct gid *mgid)
{
	int err;

	if (rtdev_dead(q->dev))
		return -EIO;
	pthread_mutex_lock(&q->dev->control);
	err = detach_locked(q, mgid);
	pthread_mutex_unlock(&q->dev->control);
	return err;
}

void rt_qp_detach_all(struct rt_qp *q)
{
	struct gid mgid;

	while (qp_mcast_group(q->qp, &mgid))
		(void)!rt_qp_detach_mcast(q, &mgid);
}

void rtdev_close_groups(struct rtdev *d)
{
	struct dlist *n;

	while ((n = dlist_first(&d->groups))) {
		struct rt_group *g = CONTAINER_OF(n, struct rt_group, node);

		for (int i = 0; i < 2; i++)
			if (g->fd[i] >= 0)
				close(g->fd[i]);
		dlist_remove(n);
		free(g);
	}
}
