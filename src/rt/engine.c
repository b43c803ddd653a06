/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rt/engine.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rt/lock.h"
#include "rt/rt_obj.h"
#include "rt/rtdev.h"
#include "wire/pkt.h"

#define ENGINE_HELD 1u
#define ENGINE_MARK 2u
#define ENGINE_WAIT 4u /* a control verb sleeps on the word */

/* What one visit may do before it leaves the rest to the NIC thread. */
#define VISIT_ROUNDS 4
#define ROUND_RX_FRAMES 64
#define ROUND_TX_FRAMES 64
/* Of polls, when there are rings as well. */
#define SOCKETS_EVERY 8
/* How long an exit waits for frames that a full receiver on this host holds
 * back; longer than the link holds them. */
#define DRAIN_NS 1000000000

int64_t rt_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void engine_init(struct engine *e)
{
	*e = (struct engine){ .held_frames = false };
}

/* ---- the word ---- */

/* A program that is built with the thread sanitizer sees our copies (memcpy is
 * its own there) but not our atomics: it is told of the engine as of a lock. */
extern void __tsan_acquire(void *addr) __attribute__((weak));
extern void __tsan_release(void *addr) __attribute__((weak));

static void tell_entered(struct engine *e)
{
	if (__tsan_acquire)
		__tsan_acquire(&e->word);
}

static void tell_leaving(struct engine *e)
{
	if (__tsan_release)
		__tsan_release(&e->word);
}

/* True: inside. False: somebody is (or a control verb wants to be); the mark
 * is left. The mark is always written by a read-modify-write, also when it is
 * set already: it orders what we published before the holder's clearing. */
static bool enter(struct engine *e)
{
	uint32_t w = atomic_load_explicit(&e->word, memory_order_relaxed);

	for (;;) {
		bool busy = (w & ENGINE_HELD) ||
			    atomic_load_explicit(&e->control_waiters,
						 memory_order_relaxed);
		uint32_t next = busy ? w | ENGINE_MARK
				     : (w | ENGINE_HELD) & ~ENGINE_MARK;

		if (!atomic_compare_exchange_weak_explicit(
			    &e->word, &w, next, memory_order_acq_rel,
			    memory_order_relaxed))
			continue;
		if (!busy)
			tell_entered(e);
		return !busy;
	}
}

/* Leaves; false when a mark was left meanwhile: it is cleared and the caller
 * is still inside, with another round to do. */
static bool try_leave(struct engine *e)
{
	uint32_t w = atomic_load_explicit(&e->word, memory_order_relaxed);

	tell_leaving(e);
	for (;;) {
		bool marked = w & ENGINE_MARK;
		uint32_t next = marked ? w & ~ENGINE_MARK : 0;

		if (!atomic_compare_exchange_weak_explicit(
			    &e->word, &w, next, memory_order_acq_rel,
			    memory_order_relaxed))
			continue;
		if (!marked && (w & ENGINE_WAIT))
			futex_wake(&e->word, INT32_MAX);
		return !marked;
	}
}

/* Leaves whatever is marked; true: something was, somebody must do it. */
static bool leave_anyway(struct engine *e)
{
	uint32_t w;

	tell_leaving(e);
	w = atomic_exchange_explicit(&e->word, 0, memory_order_acq_rel);
	if (w & ENGINE_WAIT)
		futex_wake(&e->word, INT32_MAX);
	return w & ENGINE_MARK;
}

/* For a control verb that does not sleep on the word. */
static bool try_hold(struct engine *e)
{
	uint32_t w = atomic_load_explicit(&e->word, memory_order_relaxed);

	while (!(w & ENGINE_HELD))
		if (atomic_compare_exchange_weak_explicit(
			    &e->word, &w, w | ENGINE_HELD, memory_order_acquire,
			    memory_order_relaxed)) {
			tell_entered(e);
			return true;
		}
	return false;
}

static void sleep_a_little(void)
{
	struct timespec ts = { .tv_nsec = 1000000 };

	(void)syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, NULL);
}

/* ---- one round of the NIC's work ---- */

struct rx_ctx {
	struct rtdev *d;
	int64_t now_ns;
};

static void rx_frame(void *ctx, const struct rocev2_flow *flow,
		     const uint8_t *pkt, size_t len)
{
	struct rx_ctx *c = ctx;
	struct rx_frame f = {
		.pkt = pkt,
		.len_bytes = (uint32_t)len,
		.src = flow->src,
		.dst = flow->dst,
		.tos = flow->tos,
		.ttl = flow->ttl,
		.flow_label = flow->flow_label,
		.sport = flow->sport,
	};

	ENGINE_ADD_IN(&c->d->engine, rx_bytes, len);
	if (c->d->faults)
		faults_rx(c->d->faults, c->d->hca, &f, c->now_ns);
	else
		hca_rx(c->d->hca, &f, c->now_ns);
}

/* Hands the frame in the link's room to the link. */
static void link_add(struct rtdev *d, const struct fault_tx *t)
{
	struct udp_link_dest dest = {
		.ifindex = gid_scope(&t->flow.dst, t->netdev),
		.peer_fd =
			udp_group_peer_fd(d->group, &t->flow.dst, t->dest_qpn),
	};

	if (t->flips)
		udp_link_tx_add_spoilt(d->link, &t->flow, &dest, t->len_bytes,
				       t->bit, t->flips);
	else
		udp_link_tx_add(d->link, &t->flow, &dest, t->len_bytes);
	ENGINE_COUNT_IN(&d->engine, tx_frames);
	ENGINE_ADD_IN(&d->engine, tx_bytes, t->len_bytes);
}

/* A frame that the core has built goes to the link, or meets its fate. */
static void tx_frame(struct rtdev *d, const struct tx_frame *f, int64_t now_ns)
{
	const struct path *p = f->path;
	struct fault_tx t = {
		.flow = { .src = p->sgid,
			  .dst = p->dgid,
			  .sport = p->sport,
			  .tos = f->tos,
			  .ttl = p->hop_limit,
			  .flow_label = p->flow_label },
		.netdev = p->netdev,
		.dest_qpn = f->dest_qpn,
		.len_bytes = f->len_bytes,
	};

	if (p->out) {
		ENGINE_COUNT(&d->engine, tx_frames);
		ENGINE_ADD(&d->engine, tx_bytes,
			   f->len_bytes + f->payload_bytes);
		rings_tx(d, f, now_ns);
		return;
	}
	if (!d->faults || faults_tx(d->faults, &t, f->pkt, now_ns))
		link_add(d, &t);
	hca_tx_done(d->hca, f);
}

/* One frame, delayed or new, by way of the link's room. False: there is none,
 * or the pool of delayed ones must empty first. */
static bool tx_next(struct rtdev *d, uint8_t *room, int64_t now_ns)
{
	struct tx_frame f = { .pkt = room };
	struct fault_tx t;

	if (d->faults) {
		if (faults_tx_next(d->faults, &t, room, now_ns)) {
			link_add(d, &t);
			return true;
		}
		if (!faults_tx_room(d->faults))
			return false;
	}
	if (!hca_tx(d->hca, UINT32_MAX, &f, now_ns))
		return false;
	tx_frame(d, &f, now_ns);
	return true;
}

static bool tx_pending(const struct rtdev *d, int64_t now_ns)
{
	return hca_tx_pending(d->hca) ||
	       (d->faults && faults_tx_due(d->faults, now_ns));
}

/* Sends what the core has, up to the budget. */
static void round_tx(struct rtdev *d, int64_t now_ns)
{
	struct engine *e = &d->engine;
	unsigned n = 0;

	e->held_frames = false;
	(void)rings_unblock(d, now_ns);
	while (n < ROUND_TX_FRAMES && tx_pending(d, now_ns)) {
		uint8_t *room = udp_link_tx_room(d->link);

		if (!room) {
			if (udp_link_flush(d->link)) {
				e->held_frames = true;
				break;
			}
			continue;
		}
		if (!tx_next(d, room, now_ns))
			break;
		n++;
	}
	rings_flush(d);
	e->held_frames = udp_link_flush(d->link) != 0;
	if ((n == ROUND_TX_FRAMES && tx_pending(d, now_ns)) ||
	    hca_tx_paused(d->hca))
		e->more = true;
}

/* Delayed by a fault plan: they go now. */
static void drain_faults(struct rtdev *d)
{
	struct fault_tx t;
	uint8_t *room;

	while (d->faults && faults_tx_due(d->faults, INT64_MAX)) {
		room = udp_link_tx_room(d->link);
		if (!room && udp_link_flush(d->link))
			return;
		if (room && faults_tx_next(d->faults, &t, room, INT64_MAX))
			link_add(d, &t);
	}
}

void engine_drain(struct rtdev *d)
{
	static const struct timespec nap = { .tv_nsec = 100000 };
	int64_t now_ns = rt_now_ns(), end_ns = now_ns + DRAIN_NS;

	for (;;) {
		drain_faults(d);
		round_tx(d, now_ns);
		if (!d->engine.held_frames && !hca_tx_pending(d->hca) &&
		    !rings_unblock(d, now_ns))
			return;
		now_ns = rt_now_ns();
		if (now_ns >= end_ns)
			return;
		if (!hca_tx_pending(d->hca) || d->engine.held_frames)
			nanosleep(&nap, NULL);
	}
}

static void round_events(struct rtdev *d)
{
	struct hca_event ev;

	while (hca_event_next(d->hca, &ev)) {
		if (ev.kind == HCA_EVENT_COMP) {
			ENGINE_COUNT_IN(&d->engine, comp_events);
			evq_push_comp(rt_cq_comp_item(ev.cq));
			continue;
		}
		ENGINE_COUNT_IN(&d->engine, async_events);
		if (ev.qp)
			rt_qp_event(ev.qp, ev.type);
		else if (ev.cq)
			evq_push_async(rt_cq_async_item(ev.cq), ev.type);
		else if (ev.srq)
			evq_push_async(rt_srq_item(ev.srq), ev.type);
		else
			rtdev_port_event(d, ev.type);
	}
}

/* True when the sockets were found empty. */
static bool round_rx(struct rtdev *d, int64_t now_ns)
{
	struct rx_ctx ctx = { d, now_ns };
	struct engine *e = &d->engine;
	unsigned n, ring;

	if (d->faults)
		faults_rx_begin(d->faults, now_ns);
	ring = rings_rx(d, ROUND_RX_FRAMES, now_ns);
	e->rx_frames += ring;
	if (ring >= ROUND_RX_FRAMES)
		e->more = true;
	/* Asking sockets costs far more than asking rings. */
	if (e->poll_only && rings_active(d) && ++e->polls % SOCKETS_EVERY)
		return false;
	n = udp_link_rx(d->link, ROUND_RX_FRAMES, rx_frame, &ctx);
	e->rx_frames += n;
	ENGINE_ADD_IN(e, rx_frames, n);
	if (n >= ROUND_RX_FRAMES)
		e->more = true;
	return n < ROUND_RX_FRAMES && ring < ROUND_RX_FRAMES;
}

/* Without a network: everything that is posted is flushed. */
static void round_lost(struct rtdev *d, int64_t now_ns)
{
	hca_doorbells(d->hca, now_ns);
	if (hca_deadline(d->hca) <= now_ns)
		hca_advance(d->hca, now_ns);
	round_events(d);
}

static void one_round(struct rtdev *d, bool rx, int64_t now_ns)
{
	struct engine *e = &d->engine;

	ENGINE_COUNT_IN(e, rounds);
	e->more = false;
	if (UNLIKELY(rtdev_lost(d))) {
		round_lost(d, now_ns);
		return;
	}
	hca_doorbells(d->hca, now_ns);
	if (d->faults)
		faults_rx_run(d->faults, d->hca, now_ns);
	/* Timers only after everything that came was looked at: the answer
	 * that a timer waits for may lie in a socket while nobody ran us. */
	if (rx && round_rx(d, now_ns) && hca_deadline(d->hca) <= now_ns)
		hca_advance(d->hca, now_ns);
	round_tx(d, now_ns);
	if (UNLIKELY(udp_link_lost(d->link)))
		rtdev_lose(d);
	round_events(d);
}

/* ---- visits ---- */

static void count_visit(struct engine *e, enum visit why)
{
	if (why == VISIT_POLL)
		ENGINE_COUNT_IN(e, visits_poll);
	else if (why == VISIT_NIC)
		ENGINE_COUNT_IN(e, visits_nic);
	else
		ENGINE_COUNT_IN(e, visits_post);
}

/* Before leaving for good or for now. */
static void end_visit(struct rtdev *d, enum visit why, int64_t now_ns)
{
	gates_settle(d);
	nic_after_visit(d, why == VISIT_NIC, now_ns);
	capture_flush(d->capture);
}

/* Inside: rounds until nothing is left or the budget is spent, then leave. A
 * post only sends, at first: what came in is the next poll's. */
static void work_and_leave(struct rtdev *d, enum visit why, int64_t now_ns)
{
	struct engine *e = &d->engine;
	bool rx = why != VISIT_POST, more, armed;

	e->poll_only = why == VISIT_POLL;
	for (int round = 1; round < VISIT_ROUNDS; round++) {
		one_round(d, rx, now_ns);
		if (e->more) {
			now_ns = rt_now_ns();
			continue;
		}
		end_visit(d, why, now_ns);
		if (try_leave(e))
			return;
		rx = true;
		now_ns = rt_now_ns();
	}
	one_round(d, rx, now_ns);
	end_visit(d, why, now_ns);
	more = e->more;
	armed = d->nic.armed;
	/* A polling program comes back by itself, or a tick does. */
	if ((leave_anyway(e) || more) && armed) {
		ENGINE_COUNT(e, handed_over);
		nic_kick(d);
	}
}

bool engine_visit(struct rtdev *d, enum visit why)
{
	struct engine *e = &d->engine;
	int saved = errno;
	int64_t now_ns;

	if (why == VISIT_ARM)
		atomic_store_explicit(&e->want_arm, true, memory_order_relaxed);
	if (!enter(e)) {
		ENGINE_COUNT(e, visits_marked);
		return false;
	}
	count_visit(e, why);
	now_ns = rt_now_ns();
	if (why == VISIT_POLL)
		atomic_store_explicit(&e->last_poll_ns, now_ns,
				      memory_order_relaxed);
	e->rx_frames = 0;
	work_and_leave(d, why, now_ns);
	errno = saved;
	return true;
}

bool engine_lock_timed(struct rtdev *d, int64_t limit_ns)
{
	int64_t end_ns = rt_now_ns() + limit_ns;
	bool inside;

	atomic_fetch_add_explicit(&d->engine.control_waiters, 1,
				  memory_order_relaxed);
	while (!(inside = try_hold(&d->engine)) && rt_now_ns() < end_ns)
		sleep_a_little();
	atomic_fetch_sub_explicit(&d->engine.control_waiters, 1,
				  memory_order_relaxed);
	return inside;
}

void engine_lock(struct rtdev *d)
{
	struct engine *e = &d->engine;
	uint32_t w;

	atomic_fetch_add_explicit(&e->control_waiters, 1, memory_order_relaxed);
	w = atomic_load_explicit(&e->word, memory_order_relaxed);
	for (;;) {
		if (!(w & ENGINE_HELD)) {
			if (atomic_compare_exchange_weak_explicit(
				    &e->word, &w, w | ENGINE_HELD,
				    memory_order_acquire,
				    memory_order_relaxed)) {
				tell_entered(e);
				break;
			}
			continue;
		}
		if (!(w & ENGINE_WAIT)) {
			if (!atomic_compare_exchange_weak_explicit(
				    &e->word, &w, w | ENGINE_WAIT,
				    memory_order_relaxed, memory_order_relaxed))
				continue;
			w |= ENGINE_WAIT;
		}
		futex_wait(&e->word, w);
		w = atomic_load_explicit(&e->word, memory_order_relaxed);
	}
	atomic_fetch_sub_explicit(&e->control_waiters, 1, memory_order_relaxed);
}

void engine_settle(struct rtdev *d)
{
	engine_lock(d);
	engine_unlock(d);
}

void engine_unlock(struct rtdev *d)
{
	int saved = errno;

	/* A control verb may have made events, frames and timers. */
	d->engine.rx_frames = 0;
	work_and_leave(d, VISIT_ARM, rt_now_ns());
	errno = saved;
}
