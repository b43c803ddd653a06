/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * group_rendezvous.c - how members of a group find each other.
 *
 * Every member listens on an abstract SOCK_SEQPACKET name with its slot in it;
 * a name is claimed by bind and given back by the kernel at death. A name is
 * no proof of life, a connection is. All changes of a group happen under the
 * join lock, one more such name:
 *
 *   newcomer                           member
 *   lock, claim a slot
 *   GET 0  ------------------------->  (its queue: pushes of earlier
 *          <-------------------------   newcomers first) ITEM 0 of n + fds
 *   GET 1  ...                         ITEM 1 ...
 *   bind what is missing
 *   PUSH + fds  -------------------->  read now, or when it runs again
 *   unlock
 *
 * A push is complete in the member's queue before the lock is released, and
 * connections are served in the order in which they came; so a member that
 * answers has seen everything.
 */
#include "link/group_priv.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "link/fd_hide.h"

#define HEDGE_MS 20   /* then the next member is asked as well */
#define ANSWER_MS 500 /* a member that has begun to answer goes on */
#define TICK_MS 20
#define SLOT_FIRST (UDP_GROUP_SLOT_GSI + 1)

int64_t group_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* Milliseconds to the deadline, rounded up, at most max. */
static int ms_left(int64_t deadline_ns, int max)
{
	int64_t ms = (deadline_ns - group_now_ns() + 999999) / 1000000;

	if (ms < 0)
		return 0;
	return ms < max ? (int)ms : max;
}

static int connect_slot(const struct udp_group *g, unsigned slot, int *ret_fd)
{
	struct ucred cred;
	char leaf[16];

	snprintf(leaf, sizeof(leaf), "4791/%u", slot);
	return seqsock_connect(&g->user, leaf, &cred, ret_fd);
}

/* ---- the join lock ---- */

#define LOCK_NAME "4791/lock"

/* Sleeps until the holder lets go (true) or a tick; answers newcomers
 * meanwhile, since the holder may be asking us. */
static bool wait_holder(struct udp_group *g, int conn, int timeout_ms)
{
	struct pollfd p[2] = {
		{ .fd = conn, .events = POLLIN },
		{ .fd = g->epoll_fd, .events = POLLIN },
	};
	bool released = poll(p, 2, timeout_ms) > 0 && p[0].revents;

	group_serve_local();
	return released;
}

/* Waits a little for whoever has the lock. 1: it went on to somebody else; 0:
 * not yet; -EACCES. *cred: who has it, when that is known. */
static int wait_lock(struct udp_group *g, struct ucred *cred)
{
	int conn;
	int err = seqsock_connect(&g->user, LOCK_NAME, cred, &conn);

	if (err == -EACCES)
		return err;
	if (err) /* just coming or going, or too many wait with us */
		return wait_holder(g, -1, 1);
	err = wait_holder(g, conn, TICK_MS);
	close(conn);
	return err;
}

int group_lock(struct udp_group *g, int *ret_fd)
{
	int64_t end_ns = group_now_ns() + GROUP_QUEUE_NS;
	int64_t stuck_ns = group_now_ns() + GROUP_WAIT_NS;
	struct ucred cred = { 0 };
	int err;

	while ((err = seqsock_hold(&g->user, LOCK_NAME, ret_fd)) ==
	       -EADDRINUSE) {
		int64_t now_ns = group_now_ns();

		if (now_ns >= stuck_ns || now_ns >= end_ns)
			return group_fail(-EAGAIN,
					  "process %d holds the join lock of "
					  "port 4791 and does not go on; is it "
					  "stopped?",
					  (int)cred.pid);
		err = wait_lock(g, &cred);
		if (err < 0)
			return group_fail(-EAGAIN,
					  "user %u holds the name of our join "
					  "lock (pid %d)",
					  (unsigned)cred.uid, (int)cred.pid);
		if (err > 0)
			stuck_ns = group_now_ns() + GROUP_WAIT_NS;
	}
	if (err)
		return group_fail(err, "cannot take the join lock: %s",
				  strerror(-err));
	return 0;
}

int group_claim(struct udp_group *g)
{
	for (unsigned slot = SLOT_FIRST; slot < UDP_GROUP_SLOTS; slot++) {
		char leaf[16];
		int err;

		snprintf(leaf, sizeof(leaf), "4791/%u", slot);
		err = seqsock_hold(&g->user, leaf, &g->listen_fd);
		if (err == -EADDRINUSE)
			continue;
		if (err)
			return group_fail(err, "cannot claim slot %u: %s", slot,
					  strerror(-err));
		g->listen_fd = fd_hide(g->listen_fd);
		g->slot = slot;
		return 0;
	}
	return group_fail(-EUSERS, "all %d slots of port 4791 are taken",
			  UDP_GROUP_SLOTS - SLOT_FIRST);
}

/* ---- asking ---- */

static int send_get(int conn, uint32_t item)
{
	struct group_msg m = { .type = GROUP_GET, .item = item };

	return group_msg_send(conn, &m, NULL);
}

/* Reads the answer to GET `item`. */
static int take_item(struct udp_group *g, int conn, uint32_t item,
		     uint32_t *ret_nitems)
{
	int fds[GROUP_FDS_MAX];
	struct group_msg m;
	int err = group_msg_recv(conn, &m, fds);

	if (err)
		return err;
	if (m.type != GROUP_ITEM || m.item != item) {
		for (unsigned i = 0; i < m.nfds; i++)
			close(fds[i]);
		return -EBADMSG;
	}
	*ret_nitems = m.nitems;
	pthread_mutex_lock(&g->lock);
	group_insert(g, &m.gid, m.ifindex, m.first, fds, m.nfds);
	pthread_mutex_unlock(&g->lock);
	return 0;
}

static int wait_answer(int conn, int64_t deadline_ns)
{
	struct pollfd p = { .fd = conn, .events = POLLIN };

	while (group_now_ns() < deadline_ns) {
		if (poll(&p, 1, ms_left(deadline_ns, TICK_MS)) > 0)
			return 0;
		group_serve_local();
	}
	return -ETIMEDOUT;
}

/* Item 0 was asked for and is there: takes it and the rest. */
static int pull_all(struct udp_group *g, int conn, int64_t deadline_ns)
{
	int64_t patience = group_now_ns() + ANSWER_MS * 1000000LL;
	uint32_t nitems = 1;
	int err = 0;

	if (patience < deadline_ns)
		deadline_ns = patience;
	for (uint32_t item = 0; item < nitems && !err; item++) {
		if (item)
			err = send_get(conn, item);
		if (!err)
			err = wait_answer(conn, deadline_ns);
		if (!err)
			err = take_item(g, conn, item, &nitems);
	}
	return err;
}

struct ask {
	int conn[UDP_GROUP_SLOTS]; /* -1: gone */
	unsigned n, asked, gone;
};

static int ask_connect(const struct udp_group *g, struct ask *a)
{
	a->n = a->asked = a->gone = 0;
	for (unsigned slot = SLOT_FIRST; slot < UDP_GROUP_SLOTS; slot++) {
		int err = slot == g->slot
				  ? -ECONNREFUSED
				  : connect_slot(g, slot, &a->conn[a->n]);

		if (!err)
			a->n++;
		else if (err == -EACCES && g->user.vague)
			return group_fail(-EPERM,
					  "uid %u is not mapped in this user "
					  "namespace: processes on port 4791 "
					  "cannot know each other",
					  (unsigned)g->user.uid);
	}
	return 0;
}

static void ask_drop(struct ask *a, unsigned i)
{
	close(a->conn[i]);
	a->conn[i] = -1;
	a->gone++;
}

static void ask_next(struct ask *a)
{
	if (a->asked == a->n)
		return;
	if (send_get(a->conn[a->asked], 0))
		ask_drop(a, a->asked);
	a->asked++;
}

/* The first of those asked that has something to say, or -1. */
static int ask_wait(const struct ask *a, int timeout_ms)
{
	struct pollfd p[UDP_GROUP_SLOTS];

	for (unsigned i = 0; i < a->asked; i++)
		p[i] = (struct pollfd){ .fd = a->conn[i], .events = POLLIN };
	if (poll(p, a->asked, timeout_ms) <= 0)
		return -1;
	for (unsigned i = 0; i < a->asked; i++)
		if (p[i].revents)
			return (int)i;
	return -1;
}

/* 0: one told all it has (`all`: every one that could); or there is nobody any
 * more. */
static int ask_members(struct udp_group *g, struct ask *a, bool all,
		       int64_t deadline_ns)
{
	while (a->gone < a->n) {
		int i;

		if (group_now_ns() >= deadline_ns)
			return group_fail(-EAGAIN,
					  "%u processes share port 4791 and "
					  "none of them answers; are they "
					  "stopped?",
					  a->n - a->gone);
		ask_next(a);
		group_serve_local();
		i = ask_wait(a, ms_left(deadline_ns, HEDGE_MS));
		if (i < 0)
			continue;
		if (pull_all(g, a->conn[i], deadline_ns) == 0 && !all)
			return 0;
		ask_drop(a, (unsigned)i);
	}
	return 0;
}

int group_collect(struct udp_group *g, bool all, int64_t deadline_ns)
{
	struct ask a;
	int err = ask_connect(g, &a);

	if (!err)
		err = ask_members(g, &a, all, deadline_ns);
	for (unsigned i = 0; i < a.n; i++)
		if (a.conn[i] >= 0)
			close(a.conn[i]);
	return err;
}

/* ---- telling ---- */

/* The message that carries sockets first.. of an address, at most n. */
static struct group_msg sockets_msg(const struct group_addr *a, unsigned first,
				    unsigned n, int fds[GROUP_FDS_MAX])
{
	struct group_msg m = {
		.ifindex = a->ifindex,
		.gid = a->gid,
		.first = (uint8_t)first,
	};

	m.nfds = (uint8_t)(n < GROUP_FDS_MAX ? n : GROUP_FDS_MAX);
	for (unsigned i = 0; i < m.nfds; i++)
		fds[i] = a->fd[first + i];
	return m;
}

static void push_to(struct udp_group *g, int conn, const struct group_addr *a,
		    unsigned first, unsigned n)
{
	int fds[GROUP_FDS_MAX];

	while (n) {
		struct group_msg m = sockets_msg(a, first, n, fds);

		m.type = GROUP_PUSH;
		if (group_msg_send(conn, &m, fds)) {
			if (g->cfg.note)
				g->cfg.note("a member of port 4791 could not "
					    "be told of new sockets");
			return;
		}
		first += m.nfds;
		n -= m.nfds;
	}
}

void group_push(struct udp_group *g, const struct group_addr *a, unsigned first,
		unsigned n)
{
	for (unsigned slot = SLOT_FIRST; slot < UDP_GROUP_SLOTS; slot++) {
		int conn;

		if (slot == g->slot || connect_slot(g, slot, &conn))
			continue;
		push_to(g, conn, a, first, n);
		close(conn);
	}
}

/* ---- serving ---- */

static void conn_close(struct udp_group *g, unsigned i)
{
	close(g->conn[i]);
	g->nconns--;
	memmove(&g->conn[i], &g->conn[i + 1],
		(g->nconns - i) * sizeof(g->conn[0]));
}

/* Out of fds the listening socket would stay readable for ever. */
static void refuse_one(struct udp_group *g)
{
	int fd;

	if (g->spare_fd < 0)
		return;
	close(g->spare_fd);
	fd = accept4(g->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		close(fd);
	g->spare_fd = fd_hide(seqsock_new());
}

/* False: no one is waiting. */
static bool accept_one(struct udp_group *g)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct ucred cred;
	int fd = fd_hide(accept4(g->listen_fd, NULL, NULL,
				 SOCK_NONBLOCK | SOCK_CLOEXEC));

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			refuse_one(g);
		return false;
	}
	if (!seqsock_same_user(&g->user, fd, &cred) ||
	    epoll_ctl(g->epoll_fd, EPOLL_CTL_ADD, fd, &ev)) {
		close(fd);
		return true;
	}
	if (g->nconns == GROUP_CONNS_MAX)
		conn_close(g, 0);
	g->conn[g->nconns++] = fd;
	return true;
}

/* Item i: up to GROUP_FDS_MAX sockets of one address, counted through all. */
static struct group_msg item_msg(struct udp_group *g, uint32_t item,
				 int fds[GROUP_FDS_MAX])
{
	struct group_msg m = { 0 };
	uint32_t nitems = 0;

	for (unsigned i = 0; i < g->naddrs; i++) {
		const struct group_addr *a = g->addr[i];

		for (unsigned first = 0; first < a->n; first += GROUP_FDS_MAX)
			if (nitems++ == item)
				m = sockets_msg(a, first, a->n - first, fds);
	}
	m.type = GROUP_ITEM;
	m.item = item;
	m.nitems = nitems;
	return m;
}

/* One message of a connection. False: the connection is done with. */
static int conn_serve(struct udp_group *g, int conn)
{
	int fds[GROUP_FDS_MAX];
	struct group_msg m;
	int err = group_msg_recv(conn, &m, fds);

	if (err)
		return err;
	if (m.type == GROUP_PUSH) {
		group_insert(g, &m.gid, m.ifindex, m.first, fds, m.nfds);
		return 0;
	}
	for (unsigned i = 0; i < m.nfds; i++)
		close(fds[i]);
	if (m.type != GROUP_GET)
		return -EBADMSG;
	m = item_msg(g, m.item, fds);
	return group_msg_send(conn, &m, fds);
}

static void serve_conns(struct udp_group *g)
{
	for (unsigned i = 0; i < g->nconns;) {
		int err;

		do
			err = conn_serve(g, g->conn[i]);
		while (!err);
		if (err == -EAGAIN)
			i++;
		else
			conn_close(g, i);
	}
}

void udp_group_serve(struct udp_group *g)
{
	bool more;

	pthread_mutex_lock(&g->lock);
	do {
		more = accept_one(g);
		serve_conns(g);
	} while (more);
	group_gsi_serve(g);
	pthread_mutex_unlock(&g->lock);
}
