/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * gates.c - a device's gates and its peers'.
 *
 * Peers come and go with link/shm_peer.h's connections. One that we connected
 * to (out) is one whose memory we copy; the engine uses it. One that connected
 * to us (in) may copy into ours: whoever closes a gate looks at what it
 * announces, for as long as it lives, even when the connection is gone.
 */
#include "rt/gates.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "link/fd_hide.h"
#include "link/shm_peer.h"
#include "rt/config.h"
#include "rt/rtdev.h"

#define SEEK_NS 200000000
#define OUTS UDP_GROUP_SLOTS

struct out {
	bool used;
	bool refused; /* the system forbids it */
	struct gate_peer peer;
};

/* Counted: the list has one reference, each gates_wait() that uses it another.
 */
struct watcher {
	struct dlist node; /* of gates.watchers */
	unsigned refs;
	unsigned slot;
	bool parted; /* the connection is gone */
	struct gate_watch watch;
};

struct gates {
	struct shm_peers *peers;
	struct gate_area *area;
	struct gate_table *table;
	_Atomic bool lost;
	pthread_mutex_t lock; /* of the list and the counts of its members */
	struct dlist watchers;
	unsigned num_watchers;
	struct out out[OUTS]; /* [E] */
};

/* ---- those who may copy into our memory ---- */

/* The descriptors of a lost device are not ours any more. */
static bool is_gone(const struct gate_watch *w)
{
	const struct gates *g = w->ctx;
	struct pollfd p = { .fd = w->pidfd, .events = POLLIN };

	if (atomic_load_explicit(&g->lost, memory_order_relaxed))
		return false;
	if (w->pidfd < 0)
		return CONTAINER_OF(w, const struct watcher, watch)->parted;
	return poll(&p, 1, 0) == 1;
}

static void watcher_put(struct gates *g, struct watcher *w)
{
	bool last;

	pthread_mutex_lock(&g->lock);
	last = --w->refs == 0;
	pthread_mutex_unlock(&g->lock);
	if (!last)
		return;
	gate_forget(g->table, w->watch.area);
	gate_unmap(w->watch.area);
	if (w->watch.pidfd >= 0 && !atomic_load(&g->lost))
		close(w->watch.pidfd);
	free(w);
}

/* Takes those off the list who are dead, one at a time. */
static struct watcher *next_dead(struct gates *g)
{
	struct watcher *found = NULL;

	pthread_mutex_lock(&g->lock);
	for (struct dlist *n = g->watchers.next; n != &g->watchers && !found;
	     n = n->next) {
		struct watcher *w = CONTAINER_OF(n, struct watcher, node);

		if (w->parted && is_gone(&w->watch))
			found = w;
	}
	if (found) {
		dlist_remove(&found->node);
		g->num_watchers--;
	}
	pthread_mutex_unlock(&g->lock);
	return found;
}

static void bury(struct gates *g)
{
	struct watcher *w;

	while ((w = next_dead(g)))
		watcher_put(g, w);
}

static struct watcher *watcher_new(struct gates *g, const struct shm_peer *p)
{
	struct watcher *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->refs = 1;
	w->slot = p->slot;
	w->watch = (struct gate_watch){
		.area = gate_map(p->page_fd, SHM_AREA_OFFSET),
		.pid = p->pid,
		.gone = is_gone,
		.pidfd = p->pidfd < 0 ? -1 : fd_hide(dup(p->pidfd)),
		.ctx = g,
	};
	if (w->watch.area)
		return w;
	if (w->watch.pidfd >= 0)
		close(w->watch.pidfd);
	free(w);
	return NULL;
}

static void watch(struct gates *g, const struct shm_peer *p)
{
	struct watcher *w;

	bury(g);
	w = watcher_new(g, p);
	if (!w) { /* nobody may copy unseen */
		gate_table_shut(g->table);
		return;
	}
	pthread_mutex_lock(&g->lock);
	dlist_push_back(&g->watchers, &w->node);
	g->num_watchers++;
	pthread_mutex_unlock(&g->lock);
}

static void part(struct gates *g, unsigned slot)
{
	pthread_mutex_lock(&g->lock);
	for (struct dlist *n = g->watchers.next; n != &g->watchers;
	     n = n->next) {
		struct watcher *w = CONTAINER_OF(n, struct watcher, node);

		if (w->slot == slot)
			w->parted = true;
	}
	pthread_mutex_unlock(&g->lock);
	bury(g);
}

/* ---- those whose memory we copy ---- */

static void reach_out(struct rtdev *d, const struct shm_peer *p)
{
	const struct gate_area *area;
	struct out o = { .used = true };

	area = gate_map(p->page_fd, SHM_AREA_OFFSET);
	if (!area)
		return;
	if (gate_peer_init(&o.peer, area, p->pid)) {
		gate_unmap(area);
		return;
	}
	engine_lock(d);
	d->gates->out[p->slot] = o;
	engine_unlock(d);
}

static void let_go(struct rtdev *d, unsigned slot)
{
	struct out *o = &d->gates->out[slot];
	const struct gate_area *area = NULL;

	engine_lock(d);
	if (o->used)
		area = o->peer.area;
	o->used = false;
	engine_unlock(d);
	gate_unmap(area);
}

static void install(void *ctx, struct shm_peer *p)
{
	struct rtdev *d = ctx;

	rings_install(d, p);
	if (p->area_bytes != GATE_AREA_BYTES || p->slot >= OUTS)
		return;
	if (!p->out)
		watch(d->gates, p);
	else if (p->reach)
		reach_out(d, p);
	else
		rt_say(true,
		       "%s: the memory of process %d on this host is out of "
		       "reach: no one-sided copies",
		       d->id.name, (int)p->pid);
}

static void removed(void *ctx, struct shm_peer *p)
{
	struct rtdev *d = ctx;

	rings_remove(d, p);
	if (p->out && p->slot < OUTS)
		let_go(d, p->slot);
	else
		part(d->gates, p->slot);
}

/* Is it an address of this host? A socket can be bound to those alone. */
static bool is_local(const struct gid *g, uint32_t ifindex)
{
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6,
				   .sin6_scope_id = gid_scope(g, ifindex) };
	struct sockaddr_in a4 = { .sin_family = AF_INET };
	bool v4 = gid_is_v4(g), ok;
	int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	memcpy(&a4.sin_addr, g->raw + 12, 4);
	memcpy(&a6.sin6_addr, g->raw, 16);
	ok = v4 ? bind(fd, (struct sockaddr *)&a4, sizeof(a4)) == 0
		: bind(fd, (struct sockaddr *)&a6, sizeof(a6)) == 0;
	close(fd);
	return ok;
}

/* ---- life ---- */

static int make(struct rtdev *d, struct gates *g)
{
	struct shm_config sc = {
		.slot = udp_group_slot(d->group),
		.ring_size = RING_BYTES_MIN,
		.area_bytes = GATE_AREA_BYTES,
		.install = install,
		.remove = removed,
		.ctx = d,
	};
	uint32_t tag;
	int err;

	if (getrandom(&tag, sizeof(tag), 0) != sizeof(tag))
		return -EIO;
	while (sc.ring_size & (sc.ring_size - 1)) /* up to a power of two */
		sc.ring_size += sc.ring_size & -sc.ring_size;
	err = shm_peers_new(&sc, &g->peers);
	if (err)
		return err;
	g->area = shm_peers_area(g->peers);
	g->table = gate_table_new(g->area, tag | 1);
	if (g->table) {
		rings_new(d, shm_peers_page(g->peers));
		return 0;
	}
	shm_peers_free(g->peers);
	return -ENOMEM;
}

void gates_new(struct rtdev *d)
{
	const struct rt_config *c = rt_config();
	struct gates *g;
	int err;

	if ((!c->one_sided && c->link == LINK_UDP) || c->capture_path[0] ||
	    c->fault[0])
		return;
	g = calloc(1, sizeof(*g));
	if (!g)
		return;
	pthread_mutex_init(&g->lock, NULL);
	dlist_init(&g->watchers);
	d->gates = g; /* callbacks look there */
	err = make(d, g);
	if (!err)
		return;
	rt_say(true, "%s: no one-sided copies on this host: %s", d->id.name,
	       strerror(-err));
	d->gates = NULL;
	free(g);
}

void gates_free(struct rtdev *d)
{
	struct gates *g = d->gates;
	struct dlist *n;

	if (!g)
		return;
	gate_table_shut(g->table);
	shm_peers_free(g->peers);
	rings_free(d);
	while ((n = dlist_first(&g->watchers))) {
		dlist_remove(n);
		watcher_put(g, CONTAINER_OF(n, struct watcher, node));
	}
	gate_table_free(g->table);
	pthread_mutex_destroy(&g->lock);
	free(g);
	d->gates = NULL;
}

/* Areas and locks stay as they are, they are copies of the parent's. */
void gates_abandon(struct rtdev *d)
{
	if (d->gates)
		shm_peers_abandon(d->gates->peers);
	rings_free(d);
	d->gates = NULL;
}

void gates_disown(struct rtdev *d)
{
	if (!d->gates)
		return;
	atomic_store(&d->gates->lost, true);
	shm_peers_disown(d->gates->peers);
}

void gates_vouch(struct rtdev *d)
{
	if (d->gates && gate_vouch(d->gates->table))
		rt_say(true, "%s: peers on this host will not copy",
		       d->id.name);
}

int gates_fd(const struct rtdev *d)
{
	return d->gates ? shm_peers_fd(d->gates->peers) : -1;
}

void gates_serve(struct rtdev *d)
{
	if (d->gates && !rtdev_lost(d))
		shm_peers_serve(d->gates->peers);
}

int gates_wake_fd(const struct rtdev *d)
{
	return d->rings ? shm_peers_wake_fd(d->gates->peers) : -1;
}

void gates_ask(struct rtdev *d)
{
	const char *why = "";
	int slot;

	while ((slot = rings_wanted(d)) >= 0) {
		int err = shm_peers_want(d->gates->peers, (unsigned)slot, &why);

		if (err && err != -EINPROGRESS)
			rt_say(true, "%s: no ring to slot %d: %s", d->id.name,
			       slot, why);
	}
}

void gates_local(struct rtdev *d, const struct gid *g)
{
	if (d->rings && is_local(g, d->id.ifindex))
		rings_local(d, g);
}

void gates_counters(const struct rtdev *d, struct gate_counters *ret)
{
	if (d->gates)
		gate_counters(d->gates->table, ret);
}

/* ---- copying, [E] ---- */

static unsigned locals(const struct direct_req *r, struct iovec *v)
{
	if (r->inline_bytes) {
		v[0] = (struct iovec){ (void *)(uintptr_t)r->inline_bytes,
				       r->n };
		return 1;
	}
	for (uint32_t i = 0; i < r->num_local; i++)
		v[i] = (struct iovec){ (void *)(uintptr_t)r->local[i].va,
				       r->local[i].len_bytes };
	return r->num_local;
}

static enum direct_verdict copy(struct gates *g, struct out *o,
				const struct direct_req *r)
{
	struct iovec v[DIRECT_MEM_MAX];
	struct gate_request q = {
		.access = r->read ? GATE_READ : GATE_WRITE,
		.qpn = r->qpn,
		.peer_qpn = r->dest_qpn,
		.pkey = r->pkey,
		.own = r->path->sgid,
		.peer = r->path->dgid,
		.rkey = r->rkey,
		.remote_addr = r->remote_addr,
		.len_bytes = r->len_bytes,
		.off = r->off,
		.n = r->n,
		.local = v,
		.num_local = locals(r, v),
	};

	switch (gate_copy(g->area, 0, &o->peer, &q)) {
	case GATE_DONE:
		return DIRECT_DONE;
	case GATE_REFUSED:
		o->refused = true;
		return DIRECT_NEVER;
	default:
		return DIRECT_NOT_NOW;
	}
}

enum direct_verdict gates_direct(void *ctx, const struct direct_req *r)
{
	struct rtdev *d = ctx;
	uint32_t slot = r->dest_qpn >> UDP_GROUP_QPN_BITS;

	if (!d->gates || slot >= OUTS || d->gates->out[slot].refused)
		return DIRECT_NEVER;
	if (!d->gates->out[slot].used)
		return DIRECT_NOT_NOW;
	return copy(d->gates, &d->gates->out[slot], r);
}

/* ---- what peers may do ---- */

static uint32_t gate_access(uint32_t access)
{
	return (access & ACCESS_REMOTE_WRITE ? GATE_WRITE : 0) |
	       (access & ACCESS_REMOTE_READ ? GATE_READ : 0);
}

void gates_grant(void *ctx, const struct qp *qp)
{
	struct rtdev *d = ctx;
	struct qp_grant q;

	if (!d->gates)
		return;
	qp_query_grant(qp, &q);
	if (q.access) {
		struct gate_qp_attr a = { .qpn = q.qpn,
					  .pd = q.pd,
					  .access = gate_access(q.access),
					  .peer_qpn = q.peer_qpn,
					  .pkey = q.pkey,
					  .own = q.path->sgid,
					  .peer = q.path->dgid };

		gate_qp_open(d->gates->table, &a);
	} else {
		(void)gate_qp_close(d->gates->table, q.qpn);
	}
}

void gates_settle(struct rtdev *d)
{
	if (d->gates)
		gate_settle(d->gates->table);
}

void gates_mr_open(struct rtdev *d, const struct mr *mr)
{
	struct gate_mr_attr a = { .key = mr_key(mr) };
	struct mr_attr m;

	if (!d->gates || !rt_config()->one_sided)
		return;
	mr_query(mr, &m, &a.pd);
	a.access = gate_access(m.access);
	a.va = m.va;
	a.iova = m.iova;
	a.len_bytes = m.len_bytes;
	/* Without a place in the table it is reached by packets. */
	if (a.access && a.len_bytes && gate_mr_open(d->gates->table, &a))
		ENGINE_COUNT(&d->engine, gate_no_place);
}

struct gate_closed gates_mr_close(struct rtdev *d, const struct mr *mr)
{
	if (!d->gates)
		return (struct gate_closed){ .kind = GATE_NONE };
	return gate_mr_close(d->gates->table, mr_key(mr));
}

struct gate_closed gates_qp_close(struct rtdev *d, uint32_t qpn)
{
	if (!d->gates)
		return (struct gate_closed){ .kind = GATE_NONE };
	return gate_qp_close(d->gates->table, qpn);
}

/* ---- waiting ---- */

/* A copy of the list; NULL: no memory. */
static struct gate_watch *snapshot(struct gates *g, struct watcher ***ret_who,
				   unsigned *ret_n)
{
	struct gate_watch *v;
	unsigned n = 0;

	pthread_mutex_lock(&g->lock);
	v = calloc(g->num_watchers + 1, sizeof(*v) + sizeof(**ret_who));
	*ret_who = (struct watcher **)(void *)(v + g->num_watchers + 1);
	for (struct dlist *e = g->watchers.next; v && e != &g->watchers;
	     e = e->next) {
		struct watcher *w = CONTAINER_OF(e, struct watcher, node);

		w->refs++;
		(*ret_who)[n] = w;
		v[n++] = w->watch;
	}
	pthread_mutex_unlock(&g->lock);
	*ret_n = n;
	return v;
}

void gates_wait(struct rtdev *d, struct gate_closed c)
{
	static const struct timespec nap = { .tv_nsec = 1000000 };
	struct gates *g = d->gates;
	struct watcher **who;
	struct gate_watch *v;
	unsigned n;

	if (!g || c.kind == GATE_NONE)
		return;
	while (!(v = snapshot(g, &who, &n))) /* a wait may not be left out */
		nanosleep(&nap, NULL);
	gate_wait(g->table, c, v, n);
	for (unsigned i = 0; i < n; i++)
		watcher_put(g, who[i]);
	free(v);
}

/* ---- finding the peer ---- */

bool gates_seek(struct rtdev *d, const struct qp_attr *attr)
{
	uint32_t slot = attr->dest_qpn >> UDP_GROUP_QPN_BITS;
	const char *why = "";
	int cancel, err;

	if (!d->gates || slot >= OUTS ||
	    !is_local(&attr->ah.dgid, d->id.ifindex))
		return false;
	rings_local(d, &attr->ah.dgid);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	err = shm_peers_connect(d->gates->peers, slot, SEEK_NS, &why);
	pthread_setcancelstate(cancel, NULL);
	if (err)
		rt_say(true, "%s: no shared memory to QP 0x%x: %s", d->id.name,
		       attr->dest_qpn, why);
	/* It may come later. */
	return rt_config()->one_sided && (!err || err == -EINPROGRESS);
}
