/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * shm_peer.c - connections between device instances: the handshake, what is
 * mapped for it, and their end. The memory itself is shm_mem.c's.
 */
#include "link/shm_peer.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/dlist.h"
#include "link/fd_hide.h"
#include "link/seqsock.h"
#include "link/shm_mem.h"

#define SHM_MAGIC 0x53485231u /* changes with any layout */
#define RING_SIZE_MAX (64u << 20)
#define HELLO_FDS 3 /* page, ring, eventfd */
#define WELCOME_FDS 2
#define TICK_MS 10

enum msg_type { MSG_HELLO = 1, MSG_WELCOME };
enum msg_flags { MSG_PLAIN = 1 };

struct msg { /* host order: it never leaves the host */
	uint32_t magic;
	uint8_t type, flags;
	uint16_t slot;
	uint32_t ring_size; /* HELLO */
	uint32_t area_bytes;
	uint64_t nonce_va;
};

struct conn {
	struct dlist node;
	int fd;
	bool ready; /* installed */
	int64_t asked_ns;
	struct shm_peer peer;
};

struct shm_peers {
	struct shm_config cfg;
	struct seqsock_user user;
	pthread_mutex_t lock; /* everything below; before the engine's */
	int listen_fd, epoll_fd, wake_fd, page_fd;
	struct shm_page *page;
	void *area;
	bool disowned;
	struct dlist conns; /* all */
	struct conn *out[SHM_SLOTS];
	struct conn *in[SHM_SLOTS];
};

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* ---- a connection's life ---- */

static struct conn *conn_new(struct shm_peers *s, int fd, pid_t pid, bool out)
{
	struct conn *c = calloc(1, sizeof(*c));
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = c };

	if (!c)
		return NULL;
	c->fd = fd_hide(fd);
	c->peer = (struct shm_peer){ .out = out,
				     .pid = pid,
				     .pidfd = -1,
				     .wake_fd = -1,
				     .page_fd = -1 };
	if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, c->fd, &ev)) {
		close(c->fd);
		free(c);
		return NULL;
	}
	dlist_push_back(&s->conns, &c->node);
	return c;
}

static void conn_free(struct shm_peers *s, struct conn *c)
{
	struct shm_peer *p = &c->peer;
	struct conn **table = p->out ? s->out : s->in;

	if (c->ready)
		s->cfg.remove(s->cfg.ctx, p);
	if (table[p->slot] == c)
		table[p->slot] = NULL;
	if (p->page)
		shm_mem_unmap(p->page, sizeof(*p->page));
	if (p->ring)
		shm_mem_unmap(p->ring, ring_shm_bytes(p->ring_size));
	if (!s->disowned) {
		int fds[] = { c->fd, p->pidfd, p->wake_fd, p->page_fd };

		for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
			if (fds[i] >= 0)
				close(fds[i]);
	}
	dlist_remove(&c->node);
	free(c);
}

/* ---- what the other end gave us ---- */

/* Maps its page and looks whether its memory is within reach. */
static int take_page(struct shm_peer *p, const struct msg *m)
{
	size_t bytes = SHM_AREA_OFFSET + (size_t)m->area_bytes;
	uint64_t nonce = 0;
	int err;

	p->plain = m->flags & MSG_PLAIN;
	p->area_bytes = m->area_bytes;
	if (m->area_bytes % SHM_AREA_OFFSET)
		return -EBADMSG;
	err = shm_mem_map_peer(p->page_fd, bytes, sizeof(*p->page),
			       (const void **)&p->page);
	if (err)
		return err;
	if (p->page->magic != SHM_MAGIC || p->page->slot != m->slot)
		return -EBADMSG;
	if (p->pid > 0)
		p->pidfd = fd_hide((int)syscall(SYS_pidfd_open, p->pid, 0));
	p->reach = p->pid > 0 &&
		   shm_peer_read(p, &nonce, m->nonce_va, sizeof(nonce)) == 0 &&
		   nonce == p->page->nonce;
	return 0;
}

static int take_ring(struct shm_peer *p, const struct msg *m, int ring_fd)
{
	uint32_t n = m->ring_size;

	if (n < RING_BYTES_MIN || n > RING_SIZE_MAX || (n & (n - 1)))
		return -EBADMSG;
	p->ring_size = n;
	return shm_mem_map_peer(ring_fd, ring_shm_bytes(n), ring_shm_bytes(n),
				(const void **)&p->ring);
}

static void install(struct shm_peers *s, struct conn *c)
{
	c->ready = true;
	s->cfg.install(s->cfg.ctx, &c->peer);
	close(c->peer.page_fd);
	c->peer.page_fd = -1;
}

static struct msg own_msg(const struct shm_peers *s, enum msg_type type)
{
	return (struct msg){
		.magic = SHM_MAGIC,
		.type = (uint8_t)type,
		.flags = s->cfg.plain ? MSG_PLAIN : 0,
		.slot = (uint16_t)s->cfg.slot,
		.ring_size = type == MSG_HELLO ? s->cfg.ring_size : 0,
		.area_bytes = s->cfg.area_bytes,
		.nonce_va = (uintptr_t)&s->page->nonce,
	};
}

static bool msg_ok(const struct msg *m, enum msg_type type, unsigned nfds)
{
	return m->magic == SHM_MAGIC && m->type == type &&
	       m->slot < SHM_SLOTS &&
	       nfds == (type == MSG_HELLO ? HELLO_FDS : WELCOME_FDS);
}

/* A sender has introduced itself. The one that had its slot before is dead, or
 * will be silence. */
static int take_hello(struct shm_peers *s, struct conn *c, const struct msg *m,
		      int fds[])
{
	struct msg answer = own_msg(s, MSG_WELCOME);
	int own[WELCOME_FDS] = { s->page_fd, s->wake_fd };
	struct shm_peer *p = &c->peer;
	int err;

	p->wake_fd = fd_hide(fds[2]);
	p->page_fd = fds[0];
	err = take_page(p, m);
	if (!err)
		err = take_ring(p, m, fds[1]);
	close(fds[1]);
	if (err)
		return err;
	p->slot = m->slot;
	if (s->in[p->slot])
		conn_free(s, s->in[p->slot]);
	s->in[p->slot] = c;
	install(s, c);
	return seqsock_send(c->fd, &answer, sizeof(answer), own, WELCOME_FDS);
}

static int take_welcome(struct shm_peers *s, struct conn *c,
			const struct msg *m, int fds[])
{
	struct shm_peer *p = &c->peer;
	int err;

	p->wake_fd = fd_hide(fds[1]);
	p->page_fd = fds[0];
	err = m->slot == p->slot ? take_page(p, m) : -EBADMSG;
	if (!err)
		install(s, c);
	return err;
}

/* One message. -EAGAIN: none there; other errors end the connection. */
static int conn_serve(struct shm_peers *s, struct conn *c)
{
	enum msg_type want = c->peer.out ? MSG_WELCOME : MSG_HELLO;
	int fds[HELLO_FDS];
	struct msg m;
	unsigned n;
	int err = seqsock_recv(c->fd, &m, sizeof(m), fds, HELLO_FDS, &n);

	if (err)
		return err;
	if (c->ready || !msg_ok(&m, want, n)) {
		for (unsigned i = 0; i < n; i++)
			close(fds[i]);
		return -EBADMSG;
	}
	return c->peer.out ? take_welcome(s, c, &m, fds)
			   : take_hello(s, c, &m, fds);
}

static void accept_all(struct shm_peers *s)
{
	struct ucred cred;
	int fd;

	while ((fd = accept4(s->listen_fd, NULL, NULL,
			     SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct conn *c = NULL;

		if (seqsock_same_user(&s->user, fd, &cred))
			c = conn_new(s, fd, cred.pid, false);
		if (!c)
			close(fd);
		else
			c->peer.slot = s->cfg.slot; /* until HELLO */
	}
}

static void serve_locked(struct shm_peers *s)
{
	struct epoll_event ev[16];
	int n = epoll_wait(s->epoll_fd, ev, ARRAY_SIZE(ev), 0);

	for (int i = 0; i < n; i++) {
		struct conn *c = ev[i].data.ptr;
		int err = 0;

		if (!c) {
			accept_all(s);
			continue;
		}
		while (!err)
			err = conn_serve(s, c);
		if (err != -EAGAIN) {
			conn_free(s, c);
			return; /* others of ev may be gone with it */
		}
	}
}

void shm_peers_serve(struct shm_peers *s)
{
	pthread_mutex_lock(&s->lock);
	if (!s->disowned)
		serve_locked(s);
	pthread_mutex_unlock(&s->lock);
}

/* ---- asking for a way out ---- */

static int say_hello(struct shm_peers *s, struct conn *c)
{
	struct msg m = own_msg(s, MSG_HELLO);
	struct shm_peer *p = &c->peer;
	int ring_fd, err;

	p->ring_size = s->cfg.ring_size;
	err = shm_mem_new("softhca-ring", ring_shm_bytes(p->ring_size),
			  ring_shm_bytes(p->ring_size), &ring_fd,
			  (void **)&p->ring);
	if (err)
		return err;
	err = seqsock_send(c->fd, &m, sizeof(m),
			   (int[]){ s->page_fd, ring_fd, s->wake_fd },
			   HELLO_FDS);
	close(ring_fd);
	return err;
}

static int ask(struct shm_peers *s, unsigned slot, const char **ret_why)
{
	struct ucred cred;
	struct conn *c;
	char leaf[16];
	int fd, err;

	snprintf(leaf, sizeof(leaf), "ring/%u", slot);
	err = seqsock_connect(&s->user, leaf, &cred, &fd);
	if (err) {
		*ret_why = err == -EACCES ? "another user has its name"
					  : "nobody is there, or --link udp";
		return err;
	}
	c = conn_new(s, fd, cred.pid, true);
	if (!c) {
		close(fd);
		*ret_why = "out of memory or descriptors";
		return -ENOMEM;
	}
	c->peer.slot = slot;
	c->asked_ns = now_ns();
	s->out[slot] = c;
	err = say_hello(s, c);
	if (err) {
		*ret_why = "no shared memory";
		conn_free(s, c);
		return err;
	}
	return -EINPROGRESS;
}

static int want_locked(struct shm_peers *s, unsigned slot, const char **ret_why)
{
	if (slot >= SHM_SLOTS || s->disowned) {
		*ret_why = "not a slot";
		return -EINVAL;
	}
	if (!s->out[slot])
		return ask(s, slot, ret_why);
	return s->out[slot]->ready ? 0 : -EINPROGRESS;
}

int shm_peers_want(struct shm_peers *s, unsigned slot, const char **ret_why)
{
	int err;

	pthread_mutex_lock(&s->lock);
	err = want_locked(s, slot, ret_why);
	pthread_mutex_unlock(&s->lock);
	return err;
}

/* Whoever was asked longer than limit_ns ago is not waited for again. */
static int64_t patience_ns(struct shm_peers *s, unsigned slot, int64_t limit_ns)
{
	int64_t left = 0;

	pthread_mutex_lock(&s->lock);
	if (s->out[slot])
		left = s->out[slot]->asked_ns + limit_ns - now_ns();
	pthread_mutex_unlock(&s->lock);
	return left;
}

int shm_peers_connect(struct shm_peers *s, unsigned slot, int64_t limit_ns,
		      const char **ret_why)
{
	int err = shm_peers_want(s, slot, ret_why);

	while (err == -EINPROGRESS && patience_ns(s, slot, limit_ns) > 0) {
		struct pollfd p = { .fd = s->epoll_fd, .events = POLLIN };

		(void)poll(&p, 1, TICK_MS);
		shm_peers_serve(s);
		pthread_mutex_lock(&s->lock);
		if (!s->out[slot]) {
			*ret_why = "it hung up";
			err = -EPIPE;
		} else if (s->out[slot]->ready) {
			err = 0;
		}
		pthread_mutex_unlock(&s->lock);
	}
	if (err == -EINPROGRESS)
		*ret_why = "it does not answer; is it stopped?";
	return err;
}

/* ---- the whole ---- */

static int watch_listener(struct shm_peers *s)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = NULL };

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->listen_fd, &ev) ? -errno
									: 0;
}

static int make_page(struct shm_peers *s)
{
	size_t bytes = SHM_AREA_OFFSET + (size_t)s->cfg.area_bytes;
	struct shm_page *p;
	int err = shm_mem_new("softhca-page", bytes, bytes, &s->page_fd,
			      (void **)&s->page);

	if (err)
		return err;
	s->page_fd = fd_hide(s->page_fd);
	p = s->page;
	s->area = (uint8_t *)p + SHM_AREA_OFFSET;
	p->bytes = (uint32_t)bytes;
	p->area_bytes = s->cfg.area_bytes;
	p->slot = s->cfg.slot;
	if (getrandom(&p->nonce, sizeof(p->nonce), 0) != sizeof(p->nonce))
		return -EIO;
	p->magic = SHM_MAGIC;
	return 0;
}

static int open_all(struct shm_peers *s)
{
	char leaf[16];
	int err = seqsock_user(&s->user);

	if (!err && s->user.vague)
		err = -EPERM;
	if (!err)
		err = make_page(s);
	if (err)
		return err;
	s->wake_fd = fd_hide(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	s->epoll_fd = fd_hide(epoll_create1(EPOLL_CLOEXEC));
	if (s->wake_fd < 0 || s->epoll_fd < 0)
		return -errno;
	snprintf(leaf, sizeof(leaf), "ring/%u", s->cfg.slot);
	err = seqsock_hold(&s->user, leaf, &s->listen_fd);
	if (err)
		return err;
	s->listen_fd = fd_hide(s->listen_fd);
	return watch_listener(s);
}

static void free_all(struct shm_peers *s)
{
	int fds[] = { s->listen_fd, s->epoll_fd, s->wake_fd, s->page_fd };

	if (s->page)
		shm_mem_unmap(s->page, s->page->bytes);
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int shm_peers_new(const struct shm_config *cfg, struct shm_peers **ret)
{
	struct shm_peers *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	ASSERT(cfg->slot < SHM_SLOTS && cfg->area_bytes % SHM_AREA_OFFSET == 0);
	s->cfg = *cfg;
	s->listen_fd = s->epoll_fd = s->wake_fd = s->page_fd = -1;
	pthread_mutex_init(&s->lock, NULL);
	dlist_init(&s->conns);
	err = open_all(s);
	if (err) {
		free_all(s);
		return err;
	}
	*ret = s;
	return 0;
}

static void drop_all(struct shm_peers *s)
{
	struct dlist *n;

	while ((n = dlist_first(&s->conns)))
		conn_free(s, CONTAINER_OF(n, struct conn, node));
}

void shm_peers_free(struct shm_peers *s)
{
	pthread_mutex_lock(&s->lock);
	drop_all(s);
	pthread_mutex_unlock(&s->lock);
	free_all(s);
}

void shm_peers_disown(struct shm_peers *s)
{
	s->disowned = true;
	s->listen_fd = s->epoll_fd = s->wake_fd = s->page_fd = -1;
}

/* The shared mappings did not come along (shm_mem_new), and the lock may be
 * held by a thread that did not either. */
void shm_peers_abandon(struct shm_peers *s)
{
	struct dlist *n;

	s->cfg.remove = NULL;
	while ((n = dlist_first(&s->conns))) {
		struct conn *c = CONTAINER_OF(n, struct conn, node);

		c->ready = false;
		c->peer.page = NULL;
		c->peer.ring = NULL;
		conn_free(s, c);
	}
	s->page = NULL;
	free_all(s);
}

struct shm_page *shm_peers_page(const struct shm_peers *s)
{
	return s->page;
}

void *shm_peers_area(const struct shm_peers *s)
{
	return s->area;
}

int shm_peers_fd(const struct shm_peers *s)
{
	return s->epoll_fd;
}

int shm_peers_wake_fd(const struct shm_peers *s)
{
	return s->wake_fd;
}

/* ---- a peer ---- */

void shm_peer_wake(const struct shm_peer *p)
{
	uint64_t one = 1;
	int saved = errno;

	(void)!syscall(SYS_write, p->wake_fd, &one, sizeof(one));
	errno = saved;
}

int shm_peer_readv(const struct shm_peer *p, const struct iovec *dst,
		   unsigned ndst, const struct iovec *src, unsigned nsrc,
		   size_t len)
{
	int saved = errno;
	long got =
		syscall(SYS_process_vm_readv, p->pid, dst, ndst, src, nsrc, 0);
	int err = got == (long)len ? 0 : got < 0 ? -errno : -EFAULT;

	errno = saved;
	return err;
}

int shm_peer_read(const struct shm_peer *p, void *dst, uint64_t va, size_t len)
{
	struct iovec to = { dst, len };
	struct iovec from = { (void *)(uintptr_t)va, len };

	return shm_peer_readv(p, &to, 1, &from, 1, len);
}
