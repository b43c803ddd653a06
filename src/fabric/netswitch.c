/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* netswitch.c - queues, the shared buffer, marks, pauses. */
#include "fabric/netswitch.h"

#include <errno.h>
#include <string.h>

#include "base/dlist.h"
#include "base/prng.h"

#define NEVER INT64_MAX

struct queue {
	struct netswitch_frame *head, **tail;
	uint64_t bytes;
	/* What the neighbour wants. */
	int64_t paused_until_ns; /* in the past: not paused */
	int64_t paused_since_ns; /* of a pause without a gap */
	int64_t last_pause_ns;
	bool storm; /* its pauses are ignored */
};

struct ingress {
	uint64_t shared, headroom; /* bytes */
	bool pausing;		   /* we paused the neighbour */
	int64_t renew_ns;
};

struct port {
	struct queue q[NETSWITCH_PRIOS];
	struct ingress in[NETSWITCH_PRIOS];
	uint8_t turn;	       /* priority after the one served last */
	uint8_t xoff, xon;     /* pauses due */
	struct dlist due_node; /* in netswitch.due */
};

struct route {
	uint16_t n;
	uint16_t port[NETSWITCH_ECMP_MAX];
};

struct netswitch {
	struct netswitch_config cfg;
	void *(*alloc)(void *ctx, size_t bytes, size_t align);
	void (*free)(void *ctx, void *p);
	void *ctx;
	struct prng rng;
	struct port *port;
	struct route *route; /* by dst */
	uint32_t routes;
	uint64_t shared_bytes; /* of the buffer, headroom apart */
	uint64_t shared_used, headroom_used;
	struct dlist due;
	struct netswitch_frame *thrown;
	int64_t deadline_ns; /* at or before the true one */
	struct netswitch_counters counters;
};

const char *netswitch_drop_name(enum netswitch_drop d)
{
	static const char *const names[] = {
#define NETSWITCH_DROP_NAME(name) [NETSWITCH_DROP_##name] = #name,
		NETSWITCH_DROPS(NETSWITCH_DROP_NAME)
#undef NETSWITCH_DROP_NAME
	};

	if (d == NETSWITCH_QUEUED)
		return "QUEUED";
	return (unsigned)d < ARRAY_SIZE(names) ? names[d] : "?";
}

static uint64_t all_headroom(const struct netswitch_config *c)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < NETSWITCH_PRIOS; i++)
		n += c->prio[i].lossless;
	return n * c->ports * c->headroom_bytes;
}

const char *netswitch_config_check(const struct netswitch_config *c)
{
	if (c->ports == 0 || c->ports > NETSWITCH_PORTS_MAX)
		return "a switch has 1 to 256 ports";
	if (all_headroom(c) >= c->buffer_bytes)
		return "the headroom of all ports takes the whole buffer";
	if (c->xoff_bytes == 0 && (c->beta_num == 0 || c->beta_den == 0))
		return "neither xoff_bytes nor beta is given";
	if (c->lossy_num == 0 || c->lossy_den == 0)
		return "the threshold of lossy queues is 0";
	if (c->strict_from > NETSWITCH_PRIOS)
		return "strict_from is 0 to 8";
	if (c->pause_ns <= 0 || c->watchdog_ns < 0 || c->restore_ns < 0)
		return "a time is negative, or pause_ns is 0";
	for (unsigned i = 0; i < NETSWITCH_PRIOS; i++) {
		const struct netswitch_prio *p = &c->prio[i];

		if (p->ecn && p->kmin_bytes > p->kmax_bytes)
			return "kmin is above kmax";
		if (p->pmax_ppm > 1000000)
			return "pmax is above 1";
	}
	return NULL;
}

struct netswitch *netswitch_new(const struct netswitch_config *cfg,
				void *(*alloc)(void *ctx, size_t bytes,
					       size_t align),
				void (*free)(void *ctx, void *p), void *ctx)
{
	struct netswitch *s;

	if (netswitch_config_check(cfg))
		return NULL;
	s = alloc(ctx, sizeof(*s), _Alignof(struct netswitch));
	if (!s)
		return NULL;
	s->cfg = *cfg;
	s->alloc = alloc;
	s->free = free;
	s->ctx = ctx;
	s->port = alloc(ctx, cfg->ports * sizeof(s->port[0]),
			_Alignof(struct port));
	if (!s->port) {
		free(ctx, s);
		return NULL;
	}
	prng_init(&s->rng, cfg->seed);
	s->shared_bytes = cfg->buffer_bytes - all_headroom(cfg);
	dlist_init(&s->due);
	s->deadline_ns = NEVER;
	for (uint32_t i = 0; i < cfg->ports; i++) {
		dlist_init(&s->port[i].due_node);
		for (unsigned p = 0; p < NETSWITCH_PRIOS; p++) {
			struct queue *q = &s->port[i].q[p];

			q->tail = &q->head;
			q->paused_until_ns = INT64_MIN;
			q->last_pause_ns = INT64_MIN;
		}
	}
	return s;
}

void netswitch_free(struct netswitch *s)
{
	if (s->route)
		s->free(s->ctx, s->route);
	s->free(s->ctx, s->port);
	s->free(s->ctx, s);
}

static int grow_routes(struct netswitch *s, uint32_t dst)
{
	uint32_t n = s->routes ? s->routes : 16;
	struct route *r;

	while (n <= dst)
		n *= 2;
	r = s->alloc(s->ctx, n * sizeof(r[0]), _Alignof(struct route));
	if (!r)
		return -ENOMEM;
	if (s->route) {
		memcpy(r, s->route, s->routes * sizeof(r[0]));
		s->free(s->ctx, s->route);
	}
	s->route = r;
	s->routes = n;
	return 0;
}

int netswitch_route(struct netswitch *s, uint32_t dst, const uint16_t *ports,
		    uint32_t n)
{
	if (n > NETSWITCH_ECMP_MAX || dst > 1u << 24)
		return -EINVAL;
	for (uint32_t i = 0; i < n; i++)
		if (ports[i] >= s->cfg.ports)
			return -EINVAL;
	if (dst >= s->routes && grow_routes(s, dst))
		return -ENOMEM;
	s->route[dst].n = (uint16_t)n;
	memcpy(s->route[dst].port, ports, n * sizeof(ports[0]));
	return 0;
}

/* ---- thresholds ---- */

static uint64_t shared_free(const struct netswitch *s)
{
	return s->shared_bytes - s->shared_used;
}

static uint64_t xoff_at(const struct netswitch *s)
{
	if (s->cfg.xoff_bytes)
		return s->cfg.xoff_bytes;
	return shared_free(s) * s->cfg.beta_num / s->cfg.beta_den;
}

static void wake_at(struct netswitch *s, int64_t at_ns)
{
	if (at_ns < s->deadline_ns)
		s->deadline_ns = at_ns;
}

static void pause_due(struct netswitch *s, struct port *p)
{
	if (!dlist_linked(&p->due_node))
		dlist_push_back(&s->due, &p->due_node);
}

static void xoff(struct netswitch *s, struct port *p, unsigned prio,
		 int64_t now_ns)
{
	struct ingress *in = &p->in[prio];

	if (!in->pausing)
		s->counters.xoff_sent++;
	in->pausing = true;
	in->renew_ns = now_ns + s->cfg.pause_ns / 2;
	wake_at(s, in->renew_ns);
	p->xoff |= (uint8_t)(1u << prio);
	p->xon &= (uint8_t) ~(1u << prio);
	pause_due(s, p);
}

static void maybe_xon(struct netswitch *s, struct port *p, unsigned prio)
{
	struct ingress *in = &p->in[prio];
	uint64_t at = xoff_at(s);

	if (!in->pausing || in->headroom)
		return;
	at = at > s->cfg.xon_bytes ? at - s->cfg.xon_bytes : 0;
	if (in->shared > at)
		return;
	in->pausing = false;
	s->counters.xon_sent++;
	p->xon |= (uint8_t)(1u << prio);
	p->xoff &= (uint8_t) ~(1u << prio);
	pause_due(s, p);
}

/* ---- the buffer ---- */

static enum netswitch_drop charge_lossless(struct netswitch *s, struct port *p,
					   struct netswitch_frame *f,
					   int64_t now_ns)
{
	struct ingress *in = &p->in[f->prio];

	f->in_headroom = in->pausing || f->bytes > shared_free(s) ||
			 in->shared + f->bytes > xoff_at(s);
	if (!f->in_headroom) {
		in->shared += f->bytes;
		s->shared_used += f->bytes;
		return NETSWITCH_QUEUED;
	}
	if (!in->pausing)
		xoff(s, p, f->prio, now_ns);
	if (in->headroom + f->bytes > s->cfg.headroom_bytes)
		return NETSWITCH_DROP_NO_HEADROOM;
	in->headroom += f->bytes;
	s->headroom_used += f->bytes;
	return NETSWITCH_QUEUED;
}

static enum netswitch_drop charge_lossy(struct netswitch *s, struct port *p,
					const struct queue *q,
					struct netswitch_frame *f)
{
	uint64_t most = shared_free(s) * s->cfg.lossy_num / s->cfg.lossy_den;

	if (f->bytes > shared_free(s))
		return NETSWITCH_DROP_NO_BUFFER;
	if (q->bytes + f->bytes > most)
		return NETSWITCH_DROP_QUEUE;
	f->in_headroom = false;
	p->in[f->prio].shared += f->bytes;
	s->shared_used += f->bytes;
	return NETSWITCH_QUEUED;
}

static void release(struct netswitch *s, const struct netswitch_frame *f)
{
	struct port *p = &s->port[f->in_port];
	struct ingress *in = &p->in[f->prio];

	if (f->in_headroom) {
		ASSERT(in->headroom >= f->bytes);
		in->headroom -= f->bytes;
		s->headroom_used -= f->bytes;
	} else {
		ASSERT(in->shared >= f->bytes);
		in->shared -= f->bytes;
		s->shared_used -= f->bytes;
	}
	maybe_xon(s, p, f->prio);
}

/* ---- frames ---- */

static bool marks(struct netswitch *s, const struct queue *q,
		  const struct netswitch_frame *f)
{
	const struct netswitch_prio *p = &s->cfg.prio[f->prio];

	if (!p->ecn || !f->ect || q->bytes <= p->kmin_bytes)
		return false;
	if (q->bytes >= p->kmax_bytes)
		return true;
	return prng_below(&s->rng, p->kmax_bytes - p->kmin_bytes) *
		       UINT64_C(1000000) <
	       (q->bytes - p->kmin_bytes) * p->pmax_ppm;
}

static void join(struct queue *q, struct netswitch_frame *f)
{
	f->next = NULL;
	*q->tail = f;
	q->tail = &f->next;
	q->bytes += f->bytes;
}

enum netswitch_drop netswitch_rx(struct netswitch *s, uint32_t port,
				 struct netswitch_frame *f, int64_t now_ns)
{
	struct port *p = &s->port[port];
	enum netswitch_drop d = NETSWITCH_DROP_NO_ROUTE;
	struct queue *q;

	ASSERT(port < s->cfg.ports && f->prio < NETSWITCH_PRIOS);
	s->counters.rx_frames++;
	f->in_port = (uint16_t)port;
	if (f->dst < s->routes && s->route[f->dst].n) {
		const struct route *r = &s->route[f->dst];

		f->out_port = r->port[f->hash % r->n];
		q = &s->port[f->out_port].q[f->prio];
		if (s->cfg.prio[f->prio].lossless)
			d = charge_lossless(s, p, f, now_ns);
		else
			d = charge_lossy(s, p, q, f);
		if (d == NETSWITCH_QUEUED) {
			join(q, f);
			if (q->paused_until_ns > now_ns && s->cfg.watchdog_ns)
				wake_at(s, q->paused_since_ns +
						   s->cfg.watchdog_ns);
			return d;
		}
	}
	s->counters.dropped[d]++;
	return d;
}

static bool may_send(const struct queue *q, int64_t now_ns)
{
	return q->head && (q->storm || q->paused_until_ns <= now_ns);
}

static struct queue *pick(struct netswitch *s, struct port *p, int64_t now_ns)
{
	unsigned strict = s->cfg.strict_from;

	for (unsigned i = NETSWITCH_PRIOS; i-- > strict;)
		if (may_send(&p->q[i], now_ns))
			return &p->q[i];
	for (unsigned n = 0; n < strict; n++) {
		unsigned i = (p->turn + n) % strict;

		if (!may_send(&p->q[i], now_ns))
			continue;
		p->turn = (uint8_t)((i + 1) % strict);
		return &p->q[i];
	}
	return NULL;
}

static struct netswitch_frame *leave(struct queue *q)
{
	struct netswitch_frame *f = q->head;

	q->head = f->next;
	if (!q->head)
		q->tail = &q->head;
	q->bytes -= f->bytes;
	f->next = NULL;
	return f;
}

struct netswitch_frame *netswitch_tx(struct netswitch *s, uint32_t port,
				     int64_t now_ns)
{
	struct queue *q = pick(s, &s->port[port], now_ns);
	struct netswitch_frame *f;

	if (!q)
		return NULL;
	f = leave(q);
	f->ce = marks(s, q, f);
	s->counters.marked += f->ce;
	s->counters.tx_frames++;
	return f;
}

void netswitch_done(struct netswitch *s, struct netswitch_frame *f,
		    int64_t now_ns)
{
	(void)now_ns;
	release(s, f);
}

struct netswitch_frame *netswitch_thrown(struct netswitch *s)
{
	struct netswitch_frame *f = s->thrown;

	if (f)
		s->thrown = f->next;
	return f;
}

/* ---- pauses ---- */

void netswitch_pause_rx(struct netswitch *s, uint32_t port, uint8_t mask,
			int64_t pause_ns, int64_t now_ns)
{
	ASSERT(port < s->cfg.ports);
	for (unsigned i = 0; i < NETSWITCH_PRIOS; i++) {
		struct queue *q = &s->port[port].q[i];

		if (!(mask >> i & 1))
			continue;
		if (pause_ns <= 0) {
			q->paused_until_ns = now_ns;
			continue;
		}
		s->counters.xoff_received++;
		if (q->paused_until_ns < now_ns)
			q->paused_since_ns = now_ns;
		q->paused_until_ns = now_ns + pause_ns;
		q->last_pause_ns = now_ns;
		wake_at(s, q->paused_until_ns);
		if (s->cfg.watchdog_ns)
			wake_at(s, q->paused_since_ns + s->cfg.watchdog_ns);
	}
}

bool netswitch_pause_tx(struct netswitch *s, struct netswitch_pause *ret)
{
	struct dlist *n = dlist_first(&s->due);
	struct port *p;

	if (!n)
		return false;
	p = CONTAINER_OF(n, struct port, due_node);
	*ret = (struct netswitch_pause){ .port = (uint32_t)(p - s->port),
					 .mask = p->xoff,
					 .pause_ns = s->cfg.pause_ns };
	if (p->xoff) {
		p->xoff = 0;
	} else {
		ret->mask = p->xon;
		ret->pause_ns = 0;
		p->xon = 0;
	}
	if (!p->xon)
		dlist_remove(n);
	return true;
}

/* The whole queue goes, and the pauses that hold it are ignored until they
 * have stopped for restore_ns. */
static void storm(struct netswitch *s, struct queue *q)
{
	s->counters.storms++;
	q->storm = true;
	while (q->head) {
		struct netswitch_frame *f = leave(q);

		release(s, f);
		s->counters.dropped[NETSWITCH_DROP_STORM]++;
		f->next = s->thrown;
		s->thrown = f;
	}
}

static void look_at_queue(struct netswitch *s, struct queue *q, int64_t now_ns)
{
	if (q->storm) {
		int64_t over = q->last_pause_ns + s->cfg.restore_ns;

		if (over <= now_ns) {
			q->storm = false;
			q->paused_until_ns = INT64_MIN;
		} else {
			wake_at(s, over);
		}
		return;
	}
	if (q->paused_until_ns <= now_ns)
		return;
	wake_at(s, q->paused_until_ns);
	if (!s->cfg.watchdog_ns || !q->head)
		return;
	if (q->paused_since_ns + s->cfg.watchdog_ns > now_ns) {
		wake_at(s, q->paused_since_ns + s->cfg.watchdog_ns);
		return;
	}
	storm(s, q);
	wake_at(s, q->last_pause_ns + s->cfg.restore_ns);
}

int64_t netswitch_deadline(const struct netswitch *s)
{
	return s->deadline_ns;
}

void netswitch_advance(struct netswitch *s, int64_t now_ns)
{
	if (now_ns < s->deadline_ns)
		return;
	s->deadline_ns = NEVER;
	for (uint32_t i = 0; i < s->cfg.ports; i++) {
		struct port *p = &s->port[i];

		for (unsigned prio = 0; prio < NETSWITCH_PRIOS; prio++) {
			struct ingress *in = &p->in[prio];

			look_at_queue(s, &p->q[prio], now_ns);
			/* Others' frames may have left meanwhile, and a dynamic
			 * threshold have risen. */
			maybe_xon(s, p, prio);
			if (in->pausing && in->renew_ns <= now_ns)
				xoff(s, p, prio, now_ns);
			else if (in->pausing)
				wake_at(s, in->renew_ns);
		}
	}
}

/* ---- to look at ---- */

uint64_t netswitch_queue_bytes(const struct netswitch *s, uint32_t port,
			       uint8_t prio)
{
	return s->port[port].q[prio].bytes;
}

uint64_t netswitch_used_bytes(const struct netswitch *s)
{
	return s->shared_used + s->headroom_used;
}

bool netswitch_pausing(const struct netswitch *s, uint32_t port, uint8_t prio)
{
	return s->port[port].in[prio].pausing;
}

bool netswitch_paused(const struct netswitch *s, uint32_t port, uint8_t prio,
		      int64_t now_ns)
{
	const struct queue *q = &s->port[port].q[prio];

	return !q->storm && q->paused_until_ns > now_ns;
}

const struct netswitch_counters *netswitch_counters(const struct netswitch *s)
{
	return &s->counters;
}
