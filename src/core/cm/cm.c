/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cm.c - the life of communications: pool and ids, listeners, events, and what
 * the driver asks.
 *
 * Nothing is allocated when a message comes. A listener reserves as many
 * communications as may wait at it, and cm_adopt() fills up again.
 *
 * A communication id is slot << 24 | generation << 16 | index: the slot leads
 * the answers to this process, the generation, random at first, makes an id
 * that is used again a different one.
 */
#include "core/cm/cm.h"

#include <errno.h>
#include <string.h>

#include "core/cm/cm_priv.h"
#include "core/obj/hca_priv.h"

void cm_init(struct hca *hca)
{
	struct cm *cm = &hca->cm;

	dlist_init(&cm->listeners);
	dlist_init(&cm->pool);
	for (unsigned i = 0; i < CM_BUCKETS; i++) {
		dlist_init(&cm->by_peer[i]);
		dlist_init(&cm->by_qpn[i]);
	}
	cm->rng = prng_split(&hca->rng, "cm");
}

void cm_fini(struct hca *hca)
{
	struct cm *cm = &hca->cm;
	struct dlist *n;

	while ((n = dlist_first(&cm->listeners))) {
		struct cm_listener *l =
			CONTAINER_OF(n, struct cm_listener, node);

		dlist_remove(n);
		hca_release(hca, l);
	}
	for (unsigned i = 1; i < cm->tab_n; i++) {
		struct cm_conn *c = cm->tab[i];

		timer_cancel(&c->timer);
		event_forget(&c->events);
		hca_release(hca, c);
	}
	hca_release(hca, cm->tab);
}

/* ---- pool ---- */

static bool tab_grow(struct hca *hca)
{
	struct cm *cm = &hca->cm;
	unsigned room = cm->tab_room ? 2 * cm->tab_room : 64;
	struct cm_conn **tab;

	if (cm->tab_n < cm->tab_room)
		return true;
	if (cm->tab_n > CM_CONNS_MAX)
		return false;
	tab = hca_alloc(hca, room * sizeof(struct cm_conn *));
	if (!tab)
		return false;
	if (cm->tab)
		memcpy(tab, cm->tab, cm->tab_n * sizeof(struct cm_conn *));
	hca_release(hca, cm->tab);
	cm->tab = tab;
	cm->tab_room = room;
	if (!cm->tab_n)
		cm->tab_n = 1; /* id 0 is nobody's */
	return true;
}

/* One more in the pool. Control verbs only. */
static bool pool_add(struct hca *hca)
{
	struct cm *cm = &hca->cm;
	struct cm_conn *c;

	if (!tab_grow(hca))
		return false;
	c = hca_alloc(hca, sizeof(*c));
	if (!c)
		return false;
	c->hca = hca;
	event_init(&c->events, EVENT_OWNER_CM);
	timer_init(&c->timer, cm_timer_fire);
	dlist_init(&c->node);
	dlist_init(&c->peer_node);
	dlist_init(&c->qpn_node);
	c->local_id = (hca->cfg.qpn_base & 0xff0000) << 8 |
		      (prng_u32(&cm->rng) & 0xff) << 16 | cm->tab_n;
	cm->tab[cm->tab_n++] = c;
	dlist_push_back(&cm->pool, &c->node);
	cm->pool_n++;
	return true;
}

static int pool_fill(struct hca *hca, unsigned n)
{
	while (hca->cm.pool_n < n)
		if (!pool_add(hca))
			return -ENOMEM;
	return 0;
}

static uint32_t next_generation(uint32_t id)
{
	return (id & 0xff00ffff) | ((id + 0x10000) & 0xff0000);
}

struct cm_conn *cm_conn_take(struct hca *hca, bool reserved)
{
	struct cm *cm = &hca->cm;
	struct cm_conn *c;

	if (!reserved && pool_fill(hca, cm->reserved + 1))
		return NULL;
	ASSERT(cm->pool_n > 0);
	c = CONTAINER_OF(dlist_first(&cm->pool), struct cm_conn, node);
	dlist_remove(&c->node);
	cm->pool_n--;
	c->local_id = next_generation(c->local_id);
	c->tid = (uint64_t)prng_u32(&cm->rng) << 32 | c->local_id;
	c->remote_id = 0;
	c->remote_guid = 0;
	c->sidr = c->passive = c->orphan = false;
	c->listener = NULL;
	c->user = NULL;
	c->local_qpn = c->remote_qpn = c->sq_psn = c->rq_psn = 0;
	c->reject_reason = 0;
	memset(&c->peer, 0, sizeof(c->peer));
	memset(c->raised, 0, sizeof(c->raised));
	memset(c->reject_priv, 0, sizeof(c->reject_priv));
	memset(c->driver, 0, sizeof(c->driver));
	return c;
}

void cm_conn_done(struct cm_conn *c)
{
	struct cm *cm = &c->hca->cm;

	timer_cancel(&c->timer);
	dlist_remove(&c->qpn_node);
	dlist_remove(&c->peer_node);
	c->state = CM_STATE_DONE;
	if (!c->orphan)
		return;
	event_forget(&c->events);
	c->state = CM_STATE_FREE;
	dlist_push_back(&cm->pool, &c->node);
	cm->pool_n++;
}

/* ---- finding ---- */

struct cm_conn *cm_find(struct hca *hca, uint32_t local_id)
{
	uint32_t i = local_id & 0xffff;
	struct cm_conn *c;

	if (!i || i >= hca->cm.tab_n)
		return NULL;
	c = hca->cm.tab[i];
	return c->local_id == local_id && c->state != CM_STATE_FREE ? c : NULL;
}

static unsigned bucket(uint64_t guid, uint32_t v)
{
	uint64_t h = (guid ^ v) * 0x9e3779b97f4a7c15ull;

	return (unsigned)(h >> 56);
}

struct cm_conn *cm_find_peer(struct hca *hca, uint64_t guid, uint32_t id,
			     bool sidr)
{
	struct dlist *head = &hca->cm.by_peer[bucket(guid, id)];

	for (struct dlist *n = head->next; n != head; n = n->next) {
		struct cm_conn *c = CONTAINER_OF(n, struct cm_conn, peer_node);

		if (c->remote_id == id && c->remote_guid == guid &&
		    c->sidr == sidr)
			return c;
	}
	return NULL;
}

struct cm_conn *cm_find_qpn(struct hca *hca, uint64_t guid, uint32_t qpn)
{
	struct dlist *head = &hca->cm.by_qpn[bucket(guid, qpn)];

	for (struct dlist *n = head->next; n != head; n = n->next) {
		struct cm_conn *c = CONTAINER_OF(n, struct cm_conn, qpn_node);

		if (c->remote_qpn == qpn && c->remote_guid == guid)
			return c;
	}
	return NULL;
}

void cm_hash_peer(struct cm_conn *c)
{
	dlist_push_back(
		&c->hca->cm.by_peer[bucket(c->remote_guid, c->remote_id)],
		&c->peer_node);
}

void cm_hash_qpn(struct cm_conn *c)
{
	dlist_push_back(
		&c->hca->cm.by_qpn[bucket(c->remote_guid, c->remote_qpn)],
		&c->qpn_node);
}

struct cm_listener *cm_find_listener(struct hca *hca, uint64_t service_id,
				     const struct gid *addr)
{
	struct dlist *head = &hca->cm.listeners;
	struct cm_listener *any = NULL;

	for (struct dlist *n = head->next; n != head; n = n->next) {
		struct cm_listener *l =
			CONTAINER_OF(n, struct cm_listener, node);

		if (l->service_id != service_id)
			continue;
		if (gid_eq(&l->addr, addr))
			return l;
		if (gid_is_zero(&l->addr))
			any = l;
	}
	return any;
}

/* ---- listeners ---- */

int cm_listen(struct hca *hca, uint64_t service_id, const struct gid *addr,
	      unsigned backlog, void *user, struct cm_listener **ret)
{
	static const struct gid any;
	struct cm *cm = &hca->cm;
	struct cm_listener *l;
	int rc;

	if (!addr)
		addr = &any;
	l = cm_find_listener(hca, service_id, addr);
	if (l && gid_eq(&l->addr, addr))
		return -EADDRINUSE;
	if (!backlog || backlog > CM_BACKLOG_MAX)
		return -EINVAL;
	l = hca_alloc(hca, sizeof(*l));
	if (!l)
		return -ENOMEM;
	rc = pool_fill(hca, cm->reserved + backlog);
	if (rc) {
		hca_release(hca, l);
		return rc;
	}
	cm->reserved += backlog;
	l->hca = hca;
	l->service_id = service_id;
	l->addr = *addr;
	l->backlog = backlog;
	l->user = user;
	dlist_init(&l->conns);
	dlist_push_back(&cm->listeners, &l->node);
	*ret = l;
	return 0;
}

void cm_unlisten(struct cm_listener *l)
{
	struct hca *hca = l->hca;
	struct dlist *n;

	while ((n = dlist_first(&l->conns)))
		cm_destroy(CONTAINER_OF(n, struct cm_conn, node));
	hca->cm.reserved -= l->backlog;
	dlist_remove(&l->node);
	hca_release(hca, l);
}

/* Not its listener's any more. */
static void leave_listener(struct cm_conn *c)
{
	if (!c->listener)
		return;
	dlist_remove(&c->node);
	c->listener->waiting--;
	c->hca->cm.reserved++;
	c->listener = NULL;
}

struct cm_conn *cm_born(struct cm_listener *l, const struct rx_frame *f,
			const struct cm_msg *m)
{
	struct hca *hca = l->hca;
	struct cm_conn *c;

	if (l->waiting == l->backlog) {
		HCA_COUNT(hca, cm_backlog_drops);
		return NULL;
	}
	c = cm_conn_take(hca, true);
	hca->cm.reserved--;
	l->waiting++;
	c->listener = l;
	dlist_push_back(&l->conns, &c->node);
	c->passive = true;
	gsi_reply_path(hca, f, &c->path);
	c->remote_id = m->local_id;
	c->peer = *m;
	return c;
}

int cm_adopt(struct cm_conn *c, void *user)
{
	struct hca *hca = c->hca;

	ASSERT(c->listener);
	if (pool_fill(hca, hca->cm.reserved + 1))
		return -ENOMEM;
	leave_listener(c);
	c->user = user;
	return 0;
}

void cm_destroy(struct cm_conn *c)
{
	ASSERT(!c->orphan);
	leave_listener(c);
	event_forget(&c->events);
	c->user = NULL;
	c->orphan = true;
	if (c->sidr)
		cm_sidr_abandon(c);
	else
		cm_abandon(c);
}

/* ---- events and questions ---- */

void cm_event(struct cm_conn *c, enum cm_event e)
{
	if (c->orphan || c->raised[e])
		return;
	c->raised[e] = true;
	event_raise(c->hca, &c->events, (uint32_t)e);
}

void cm_info_get(const struct cm_conn *c, struct cm_info *ret)
{
	*ret = (struct cm_info){
		.sidr = c->sidr,
		.passive = c->passive,
		.av = c->av,
		.local = c->path.sgid,
		.peer = c->peer,
		.reject_reason = c->reject_reason,
		.local_qpn = c->local_qpn,
		.remote_qpn = c->remote_qpn,
		.sq_psn = c->sq_psn,
		.rq_psn = c->rq_psn,
		.responder_resources = c->responder_resources,
		.initiator_depth = c->initiator_depth,
		.retry_count = c->retry_count,
		.rnr_retry = c->rnr_retry,
		.ack_timeout = c->ack_timeout,
		.mtu = c->mtu,
	};
	memcpy(ret->reject_priv, c->reject_priv, sizeof(ret->reject_priv));
}

void *cm_conn_user(const struct cm_conn *c)
{
	return c->user;
}

void *cm_conn_listener_user(const struct cm_conn *c)
{
	return c->listener ? c->listener->user : NULL;
}

uint8_t *cm_conn_driver(struct cm_conn *c)
{
	return c->driver;
}

bool cm_peer_next(const struct hca *hca, uint32_t *pos, struct cm_peer *ret)
{
	for (uint32_t i = *pos ? *pos : 1; i < hca->cm.tab_n; i++) {
		const struct cm_conn *c = hca->cm.tab[i];

		if (c->sidr || (c->state != CM_STATE_ESTABLISHED &&
				c->state != CM_STATE_REP_SENT &&
				c->state != CM_STATE_DREQ_SENT))
			continue;
		*ret = (struct cm_peer){
			.path = c->path,
			.tid = c->tid,
			.local_id = c->local_id,
			.remote_id = c->remote_id,
			.remote_qpn = c->remote_qpn,
		};
		*pos = i + 1;
		return true;
	}
	return false;
}
