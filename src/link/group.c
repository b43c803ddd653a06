/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * group.c - the life of a member of the group on port 4791: join, bind, leave
 * (docs/port-sharing.md).
 */
#include "link/group.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "link/fd_hide.h"
#include "link/group_priv.h"

#define SETTLE_NS                                                              \
	100000000 /* a process that dies has closed its fds by then            \
		   */

/* initial-exec: a dynamic TLS block would need the loader's library. */
static _Thread_local char error_words[256]
	__attribute__((tls_model("initial-exec")));

const char *udp_group_error(void)
{
	return error_words;
}

int group_fail(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error_words, sizeof(error_words), fmt, ap);
	va_end(ap);
	return err;
}

/* ---- the groups of this process ---- */

/* The child of a fork has none of them: what it inherited it may only close.
 */
static pthread_mutex_t local_lock = PTHREAD_MUTEX_INITIALIZER;
static struct udp_group *local_groups;
static pthread_once_t local_once = PTHREAD_ONCE_INIT;

static void local_forget(void)
{
	pthread_mutex_init(&local_lock, NULL);
	local_groups = NULL;
}

static void local_watch_fork(void)
{
	pthread_atfork(NULL, NULL, local_forget);
}

static void local_add(struct udp_group *g)
{
	pthread_once(&local_once, local_watch_fork);
	pthread_mutex_lock(&local_lock);
	g->next = local_groups;
	local_groups = g;
	pthread_mutex_unlock(&local_lock);
}

static void local_remove(struct udp_group *g)
{
	struct udp_group **p;

	pthread_mutex_lock(&local_lock);
	for (p = &local_groups; *p; p = &(*p)->next)
		if (*p == g) {
			*p = g->next;
			break;
		}
	pthread_mutex_unlock(&local_lock);
}

void group_serve_local(void)
{
	pthread_mutex_lock(&local_lock);
	for (struct udp_group *g = local_groups; g; g = g->next)
		udp_group_serve(g);
	pthread_mutex_unlock(&local_lock);
}

/* ---- the table of addresses ---- */

struct group_addr *group_find(struct udp_group *g, const struct gid *gid,
			      uint32_t ifindex)
{
	unsigned n = atomic_load_explicit(&g->naddrs, memory_order_acquire);

	for (unsigned i = 0; i < n; i++) {
		struct group_addr *a = g->addr[i];

		if (gid_eq(&a->gid, gid) && a->ifindex == ifindex)
			return a;
	}
	return NULL;
}

/* Finds or adds; NULL: no room or no memory. Caller holds g->lock. */
static struct group_addr *addr_get(struct udp_group *g, const struct gid *gid,
				   uint32_t ifindex)
{
	struct group_addr *a = group_find(g, gid, ifindex);
	unsigned n = g->naddrs;

	if (a || n == GROUP_ADDRS_MAX)
		return a;
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->gid = *gid;
	a->ifindex = ifindex;
	for (unsigned i = 0; i < UDP_GROUP_SLOTS; i++)
		atomic_init(&a->fd[i], -1);
	g->addr[n] = a;
	atomic_store_explicit(&g->naddrs, n + 1, memory_order_release);
	return a;
}

static void addr_put(struct group_addr *a, unsigned i, int fd)
{
	unsigned n = a->n;

	atomic_store_explicit(&a->fd[i], fd, memory_order_relaxed);
	while (n < UDP_GROUP_SLOTS && a->fd[n] >= 0)
		n++;
	atomic_store_explicit(&a->n, n, memory_order_release);
}

void group_insert(struct udp_group *g, const struct gid *gid, uint32_t ifindex,
		  unsigned first, const int *fds, unsigned n)
{
	bool ok = n && (ifindex == 0 || group_scoped(gid));
	struct group_addr *a = ok ? addr_get(g, gid, ifindex) : NULL;

	for (unsigned i = 0; i < n; i++) {
		if (a && a->fd[first + i] < 0 &&
		    group_sock_ok(fds[i], gid, ifindex))
			addr_put(a, first + i, fd_hide(fds[i]));
		else
			close(fds[i]);
	}
}

/* ---- join and leave ---- */

static int watch(struct udp_group *g)
{
	struct epoll_event ev = { .events = EPOLLIN };

	if (epoll_ctl(g->epoll_fd, EPOLL_CTL_ADD, g->listen_fd, &ev))
		return group_fail(-errno, "epoll: %s", strerror(errno));
	return 0;
}

static int join_locked(struct udp_group *g, int64_t deadline_ns)
{
	int err = group_claim(g);

	if (!err)
		err = watch(g);
	if (!err)
		err = group_collect(g, false, deadline_ns);
	if (!err)
		group_gsi_seek(g);
	return err;
}

static int open_fds(struct udp_group *g)
{
	int err = seqsock_user(&g->user);

	if (err)
		return group_fail(err, "SO_PEERCRED: %s", strerror(-err));
	g->epoll_fd = fd_hide(epoll_create1(EPOLL_CLOEXEC));
	g->spare_fd = fd_hide(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	if (g->epoll_fd < 0 || g->spare_fd < 0)
		return group_fail(-errno, "no file descriptor: %s",
				  strerror(errno));
	return 0;
}

static struct udp_group *group_alloc(const struct udp_group_config *cfg)
{
	struct udp_group *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->cfg = *cfg;
	g->pid = getpid();
	g->listen_fd = g->epoll_fd = g->spare_fd = g->gsi_fd = -1;
	pthread_mutex_init(&g->bind_lock, NULL);
	pthread_mutex_init(&g->lock, NULL);
	return g;
}

static void group_free(struct udp_group *g)
{
	int fds[] = { g->listen_fd, g->epoll_fd, g->spare_fd, g->gsi_fd };

	for (unsigned i = 0; i < g->naddrs; i++) {
		for (unsigned s = 0; s < UDP_GROUP_SLOTS; s++)
			if (g->addr[i]->fd[s] >= 0)
				close(g->addr[i]->fd[s]);
		free(g->addr[i]);
	}
	for (unsigned i = 0; i < g->nconns; i++)
		close(g->conn[i]);
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(g);
}

int udp_group_join(const struct udp_group_config *cfg,
		   struct udp_group **ret_group)
{
	struct udp_group *g = group_alloc(cfg);
	int lock_fd, err;

	if (!g)
		return group_fail(-ENOMEM, "out of memory");
	err = open_fds(g);
	if (!err)
		err = group_lock(g, &lock_fd);
	if (err)
		goto err_free;
	err = join_locked(g, group_now_ns() + GROUP_WAIT_NS);
	close(lock_fd);
	if (err)
		goto err_free;
	local_add(g);
	*ret_group = g;
	return 0;
err_free:
	group_free(g);
	return err;
}

void udp_group_disown(struct udp_group *g)
{
	pthread_mutex_lock(&g->lock);
	for (unsigned i = 0; i < g->naddrs; i++)
		for (unsigned s = 0; s < UDP_GROUP_SLOTS; s++)
			atomic_store_explicit(&g->addr[i]->fd[s], -1,
					      memory_order_relaxed);
	g->nconns = 0;
	g->listen_fd = g->epoll_fd = g->spare_fd = g->gsi_fd = -1;
	atomic_store_explicit(&g->gsi_mine, false, memory_order_release);
	pthread_mutex_unlock(&g->lock);
}

void udp_group_leave(struct udp_group *g)
{
	if (g->pid == getpid())
		local_remove(g);
	group_free(g);
}

unsigned udp_group_slot(const struct udp_group *g)
{
	return g->slot;
}

int udp_group_fd(const struct udp_group *g)
{
	return g->epoll_fd;
}

/* ---- bind ---- */

static const char *gid_text(const struct gid *gid, char buf[48])
{
	const uint8_t *r = gid->raw;
	size_t n = 0;

	if (gid_is_v4(gid)) {
		snprintf(buf, 48, "%u.%u.%u.%u", r[12], r[13], r[14], r[15]);
		return buf;
	}
	for (int i = 0; i < 16; i += 2)
		n += (size_t)snprintf(buf + n, 48 - n, i ? ":%x" : "%x",
				      r[i] << 8 | r[i + 1]);
	return buf;
}

static int explain_in_use(struct udp_group *g, const struct group_addr *a,
			  const char *addr)
{
	struct group_diag d;

	group_diagnose(&a->gid, a->ifindex, g->user.uid, &d);
	if (!d.known)
		return group_fail(-EADDRINUSE, "UDP port 4791 of %s is in use",
				  addr);
	if (d.nforeign)
		return group_fail(-EADDRINUSE,
				  "UDP port 4791 of %s belongs to user %u; one "
				  "user per address (and network namespace)",
				  addr, (unsigned)d.uid);
	if (d.nours || d.nwild)
		return group_fail(-EADDRINUSE,
				  "UDP port 4791 of %s is held by another "
				  "program of this user that does not share it",
				  addr);
	return group_fail(-EADDRINUSE,
			  "UDP port 4791 of %s is held by the kernel, as "
			  "rdma_rxe does for all addresses: unload it (rmmod "
			  "rdma_rxe) or use another network namespace",
			  addr);
}

static int explain(struct udp_group *g, const struct group_addr *a, int err)
{
	char addr[48];

	gid_text(&a->gid, addr);
	if (err == -EADDRINUSE)
		return explain_in_use(g, a, addr);
	if (err == -EADDRNOTAVAIL)
		return group_fail(err, "%s is no address of this host", addr);
	return group_fail(err, "UDP port 4791 of %s: %s", addr, strerror(-err));
}

/* True when the kernel's group holds just the sockets that we know (or does not
 * tell). A socket of ours too many would shift the places of new ones. */
static bool is_complete(struct udp_group *g, const struct group_addr *a)
{
	struct group_diag d;

	group_diagnose(&a->gid, a->ifindex, g->user.uid, &d);
	return !d.known || d.nours <= a->n;
}

/* Waits until the address's sockets are all known. There are more for a moment
 * while a process dies, and for good when one was killed while it told the
 * others of a new socket: then some member may know what others do not.
 * *ret_heal: the others have to be told everything. */
static int settle(struct udp_group *g, const struct group_addr *a,
		  int64_t deadline_ns, bool *ret_heal)
{
	int64_t ask_ns = group_now_ns() + SETTLE_NS;
	struct timespec tick = { .tv_nsec = 1000000 };
	char addr[48];

	while (!is_complete(g, a)) {
		if (group_now_ns() >= deadline_ns)
			return group_fail(-EADDRINUSE,
					  "UDP port 4791 of %s has sockets of "
					  "this user that no member knows",
					  gid_text(&a->gid, addr));
		if (group_now_ns() >= ask_ns && !*ret_heal) {
			*ret_heal = true;
			if (group_collect(g, true, deadline_ns))
				return -EAGAIN;
		}
		nanosleep(&tick, NULL);
	}
	return 0;
}

/* The socket of index i. Without steering there must be one in the kernel's
 * group: it has all indices up to its owner's. */
static int fill_one(struct udp_group *g, const struct group_addr *a, unsigned i,
		    int *ret_fd)
{
	if (i == 0 || !group_sock_lone(a->fd[0]))
		return group_sock_open(g, &a->gid, a->ifindex, i == 0, ret_fd);
	*ret_fd = fcntl(a->fd[0], F_DUPFD_CLOEXEC, 0);
	return *ret_fd < 0 ? -errno : 0;
}

/* Binds what is missing up to our own slot. */
static int fill(struct udp_group *g, struct group_addr *a)
{
	int err = 0;

	pthread_mutex_lock(&g->lock);
	while (a->n <= g->slot && !err) {
		unsigned i = a->n;
		int fd;

		err = fill_one(g, a, i, &fd);
		if (!err)
			addr_put(a, i, fd);
	}
	pthread_mutex_unlock(&g->lock);
	return err;
}

/* The socket of our slot exists afterwards, at its place in the kernel's
 * group, and every member has it. */
static int extend(struct udp_group *g, struct group_addr *a,
		  int64_t deadline_ns)
{
	bool heal = false;
	int err = settle(g, a, deadline_ns, &heal);
	unsigned from = heal ? 0 : a->n;

	if (err)
		return err;
	err = fill(g, a);
	/* What was bound before an error stays bound: others may use it. */
	if (a->n > from)
		group_push(g, a, from, a->n - from);
	return err ? explain(g, a, err) : 0;
}

/* An address without steering is its first user's, who has the highest index;
 * whoever takes that slot later adopts it. */
static int refuse_second(const struct udp_group *g, const struct group_addr *a)
{
	char addr[48];

	if (a->n == 0 || a->n == g->slot + 1 || !group_sock_lone(a->fd[0]))
		return 0;
	return group_fail(-EADDRINUSE,
			  "UDP port 4791 of %s belongs to another process; "
			  "sharing it needs SO_ATTACH_REUSEPORT_CBPF, which "
			  "was refused to that one: use another address or "
			  "network namespace",
			  gid_text(&a->gid, addr));
}

/* Under the join lock, and with all earlier pushes taken in. */
static int bind_locked(struct udp_group *g, const struct gid *gid,
		       uint32_t ifindex, int64_t deadline_ns,
		       struct group_addr **ret_addr)
{
	struct group_addr *a;
	int err = 0;

	pthread_mutex_lock(&g->lock);
	a = addr_get(g, gid, ifindex);
	pthread_mutex_unlock(&g->lock);
	if (!a)
		return group_fail(-ENOMEM, "no room for one more address");
	err = refuse_second(g, a);
	if (!err && a->n <= g->slot)
		err = extend(g, a, deadline_ns);
	if (err)
		return err;
	group_sock_setup(g, a->fd[g->slot], gid);
	a->ready = true;
	*ret_addr = a;
	return 0;
}

static int bind_addr(struct udp_group *g, const struct gid *gid,
		     uint32_t ifindex, struct group_addr **ret_addr)
{
	int lock_fd;
	int err = group_lock(g, &lock_fd);

	if (err)
		return err;
	udp_group_serve(g);
	err = bind_locked(g, gid, ifindex, group_now_ns() + GROUP_WAIT_NS,
			  ret_addr);
	close(lock_fd);
	return err;
}

int udp_group_bind(struct udp_group *g, const struct gid *addr,
		   uint32_t ifindex, int *ret_fd)
{
	struct group_addr *a;
	int err = 0;

	if (gid_is_zero(addr))
		return group_fail(-EINVAL, "no address to bind to");
	if (!group_scoped(addr))
		ifindex = 0;
	pthread_mutex_lock(&g->bind_lock);
	a = group_find(g, addr, ifindex);
	if (!a || !a->ready)
		err = bind_addr(g, addr, ifindex, &a);
	if (!err)
		*ret_fd = a->fd[g->slot];
	pthread_mutex_unlock(&g->bind_lock);
	return err;
}

int udp_group_peer_fd(struct udp_group *g, const struct gid *addr,
		      uint32_t dest_qpn)
{
	unsigned n = atomic_load_explicit(&g->naddrs, memory_order_acquire);
	unsigned slot = dest_qpn >> UDP_GROUP_QPN_BITS;

	if (slot >= UDP_GROUP_SLOTS)
		return -1;
	for (unsigned i = 0; i < n; i++) {
		struct group_addr *a = g->addr[i];

		if (gid_eq(&a->gid, addr))
			return a->fd[slot];
	}
	return -1;
}
