/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * group_gsi.c - who reads QP1's sockets, index 0 of each address: the member
 * that has the name 4791/gsi. The others keep a connection to that name; it
 * breaks when the reader dies, and then the first of them takes the name.
 */
#include "link/group_priv.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "link/fd_hide.h"

#define GSI_NAME "4791/gsi"
#define TRIES 8 /* names come and go while processes end */

/* Watches the reader. -ECONNREFUSED: it has just gone. */
static int follow(struct udp_group *g)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct ucred cred;
	int fd;
	int err = seqsock_connect(&g->user, GSI_NAME, &cred, &fd);

	if (err)
		return err;
	fd = fd_hide(fd);
	if (epoll_ctl(g->epoll_fd, EPOLL_CTL_ADD, fd, &ev)) {
		err = -errno;
		close(fd);
		return err;
	}
	g->gsi_fd = fd;
	return 0;
}

void group_gsi_seek(struct udp_group *g)
{
	for (int i = 0; i < TRIES && g->gsi_fd < 0; i++) {
		int err = seqsock_hold(&g->user, GSI_NAME, &g->gsi_fd);

		if (!err) {
			g->gsi_fd = fd_hide(g->gsi_fd);
			atomic_store_explicit(&g->gsi_mine, true,
					      memory_order_release);
			return;
		}
		g->gsi_fd = -1;
		if (err != -EADDRINUSE || follow(g) != -ECONNREFUSED)
			return; /* looked at again at the next serve */
	}
}

void group_gsi_serve(struct udp_group *g)
{
	struct pollfd p = { .fd = g->gsi_fd, .events = POLLIN };

	if (atomic_load_explicit(&g->gsi_mine, memory_order_relaxed))
		return;
	if (g->gsi_fd >= 0 && poll(&p, 1, 0) > 0) {
		close(g->gsi_fd);
		g->gsi_fd = -1;
	}
	group_gsi_seek(g);
}

bool udp_group_gsi_socket(struct udp_group *g, unsigned i, struct gid *ret_addr,
			  int *ret_fd)
{
	struct group_addr *a;

	if (!atomic_load_explicit(&g->gsi_mine, memory_order_acquire) ||
	    i >= atomic_load_explicit(&g->naddrs, memory_order_acquire))
		return false;
	a = g->addr[i];
	*ret_addr = a->gid;
	*ret_fd = atomic_load_explicit(&a->fd[0], memory_order_relaxed);
	/* Unsteered, it is its one owner's, who reads it anyway. */
	if (*ret_fd >= 0 && group_sock_lone(*ret_fd))
		*ret_fd = -1;
	if (*ret_fd >= 0)
		group_sock_setup(g, *ret_fd, &a->gid);
	return true;
}
