/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rt/nic.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "link/fd_hide.h"
#include "rt/netdev.h"
#include "rt/rtdev.h"

#define TICK_NS 1000000 /* of POLLED */
/* POLLED when, over a millisecond, at least half of the time went into polls
 * that visited the engine, at about this much each. */
#define POLL_COST_NS 1000
/* A poll older than this while frames wait: the program is not polling but
 * spins on memory. ARMED then stays for a while, each time twice as long. */
#define POLL_FRESH_NS 50000
#define HOLD_MIN_NS 20000000
#define HOLD_MAX_NS 1000000000
#define HELD_RETRY_NS 50000 /* frames that the link holds are tried again */

enum {
	TAG_TIMER = 1,
	TAG_KICK,
	TAG_GROUP,
	TAG_NETDEV,
	TAG_GATES,
	TAG_RING,
	TAG_SOCKET
};

/* The affinity that the process was started with: before the program pinned
 * its threads. */
static cpu_set_t start_cpus;

__attribute__((constructor)) static void remember_cpus(void)
{
	if (sched_getaffinity(0, sizeof(start_cpus), &start_cpus))
		CPU_ZERO(&start_cpus);
}

/* ---- arming and the timer, [E] ---- */

static void set_timer(struct nic *n, int64_t at_ns)
{
	struct itimerspec its = { .it_value = { 0, 0 } };

	if (at_ns == n->timer_at_ns)
		return;
	n->timer_at_ns = at_ns;
	if (at_ns != INT64_MAX) {
		if (at_ns <= 0)
			at_ns = 1;
		its.it_value.tv_sec = at_ns / 1000000000;
		its.it_value.tv_nsec = at_ns % 1000000000;
	}
	(void)syscall(SYS_timerfd_settime, n->timer_fd, TFD_TIMER_ABSTIME, &its,
		      NULL);
}

static void set_sockets(struct nic *n, bool armed)
{
	for (unsigned i = 0; i < n->num_sockets; i++) {
		struct epoll_event ev = { .events = armed ? EPOLLIN : 0,
					  .data.u64 = TAG_SOCKET };

		(void)syscall(SYS_epoll_ctl, n->epoll_fd, EPOLL_CTL_MOD,
			      n->sockets[i], &ev);
	}
	n->armed = armed;
}

static uint64_t polls(struct rtdev *d)
{
	return atomic_load_explicit(&d->engine.counters.visits_poll,
				    memory_order_relaxed);
}

/* Polls from before do not count: the program has changed its ways. */
static void window_start(struct rtdev *d, int64_t now_ns)
{
	d->nic.window_ns = now_ns;
	d->nic.window_polls = polls(d);
}

static void arm(struct rtdev *d)
{
	ENGINE_COUNT_IN(&d->engine, nic_arms);
	window_start(d, rt_now_ns());
	set_sockets(&d->nic, true);
	atomic_store_explicit(&d->nic.ring_woke, true, memory_order_relaxed);
}

static void disarm(struct rtdev *d, int64_t now_ns)
{
	struct nic *n = &d->nic;

	ENGINE_COUNT_IN(&d->engine, nic_disarms);
	n->tick_poll_ns = atomic_load_explicit(&d->engine.last_poll_ns,
					       memory_order_relaxed);
	set_sockets(n, false);
	rings_awake(d);
	set_timer(n, now_ns + TICK_NS);
}

int nic_add_socket(struct rtdev *d, int fd)
{
	struct nic *n = &d->nic;
	struct epoll_event ev = { .events = n->armed ? EPOLLIN : 0,
				  .data.u64 = TAG_SOCKET };

	if (n->num_sockets == NIC_MAX_SOCKETS)
		return -ENOSPC;
	if (epoll_ctl(n->epoll_fd, EPOLL_CTL_ADD, fd, &ev))
		return -errno;
	n->sockets[n->num_sockets++] = fd;
	return 0;
}

void nic_kick(struct rtdev *d)
{
	uint64_t one = 1;
	int saved = errno;

	ENGINE_COUNT(&d->engine, nic_kicks);
	if (!rtdev_lost(d))
		(void)!syscall(SYS_write, d->nic.kick_fd, &one, sizeof(one));
	errno = saved;
}

/* ---- ARMED or POLLED, [E] ---- */

/* A socket woke us: does the program poll by itself? */
static void judge_wake(struct rtdev *d, int64_t now_ns)
{
	struct nic *n = &d->nic;
	int64_t span_ns = now_ns - n->window_ns;
	uint64_t count = polls(d) - n->window_polls;

	if (span_ns < TICK_NS)
		return;
	n->window_ns = now_ns;
	n->window_polls += count;
	if ((int64_t)count * POLL_COST_NS * 2 >= span_ns &&
	    now_ns >= n->armed_until_ns)
		disarm(d, now_ns);
}

/* A tick of POLLED. */
static void judge_tick(struct rtdev *d, int64_t now_ns)
{
	struct nic *n = &d->nic;
	int64_t last = atomic_load_explicit(&d->engine.last_poll_ns,
					    memory_order_relaxed);
	bool polled = last != n->tick_poll_ns;
	bool stale = d->engine.rx_frames && now_ns - last > POLL_FRESH_NS;

	ENGINE_COUNT_IN(&d->engine, nic_ticks);
	n->tick_poll_ns = last;
	if (polled && !stale) {
		set_timer(n, now_ns + TICK_NS);
		return;
	}
	if (polled) {
		n->hold_ns = n->hold_ns ? 2 * n->hold_ns : HOLD_MIN_NS;
		if (n->hold_ns > HOLD_MAX_NS)
			n->hold_ns = HOLD_MAX_NS;
		n->armed_until_ns = now_ns + n->hold_ns;
	}
	arm(d);
}

static void judge(struct rtdev *d, int64_t now_ns)
{
	struct nic *n = &d->nic;

	if (n->woke_timer) {
		n->timer_at_ns = INT64_MAX;
		if (!n->armed)
			judge_tick(d, now_ns);
	} else if (n->woke_socket && n->armed) {
		judge_wake(d, now_ns);
	}
	n->woke_timer = n->woke_socket = false;
}

void nic_after_visit(struct rtdev *d, bool own, int64_t now_ns)
{
	struct engine *e = &d->engine;
	struct nic *n = &d->nic;
	int64_t at = hca_deadline(d->hca);

	if (rtdev_lost(d))
		return;
	if (d->faults && faults_deadline(d->faults) < at)
		at = faults_deadline(d->faults);

	if (own)
		judge(d, now_ns);
	if (atomic_load_explicit(&e->want_arm, memory_order_relaxed)) {
		atomic_store_explicit(&e->want_arm, false,
				      memory_order_relaxed);
		if (!n->armed)
			arm(d);
		window_start(d, now_ns);
	}
	if (rings_deadline(d) < at)
		at = rings_deadline(d);
	/* Woken, or just armed: the next frame shall wake us (again). */
	if (n->armed &&
	    atomic_exchange_explicit(&n->ring_woke, false,
				     memory_order_acquire) &&
	    rings_sleep(d)) {
		atomic_store_explicit(&n->ring_woke, true,
				      memory_order_relaxed);
		nic_kick(d);
	}
	if (e->held_frames && at > now_ns + HELD_RETRY_NS)
		at = now_ns + HELD_RETRY_NS;
	/* Only ever sooner here: a timer that fires too soon sets itself
	 * anew, so progress costs no system call. */
	if (n->armed && at < n->timer_at_ns)
		set_timer(n, at);
}

/* ---- the thread ---- */

static void drain(int fd)
{
	uint64_t v;

	(void)!syscall(SYS_read, fd, &v, sizeof(v));
}

static bool told_to_stop(const struct nic *n)
{
	return atomic_load_explicit(&n->stop, memory_order_acquire);
}

/* Whoever is inside when we come does the work for us. A socket that is still
 * readable wakes us again; a timer does not, so that visit must be made. */
static void serve(struct rtdev *d)
{
	struct nic *n = &d->nic;

	while (!engine_visit(d, VISIT_NIC)) {
		(void)syscall(SYS_sched_yield);
		if (!n->woke_timer || told_to_stop(n))
			break;
	}
}

/* Sleeps until something happens: a set of 1 << tag, or -1 when our fds are not
 * ours any more. */
static int wait_tags(struct nic *n)
{
	struct pollfd p[2] = { { .fd = n->trip_fd[0] },
			       { .fd = n->epoll_fd, .events = POLLIN } };
	struct epoll_event ev[8];
	int tags = 0;
	long k = syscall(SYS_ppoll, p, 2, NULL, NULL, 8);

	if (k < 0)
		return errno == EINTR ? 0 : -1;
	if (p[0].revents || p[1].revents & POLLNVAL)
		return -1;
	k = syscall(SYS_epoll_pwait, n->epoll_fd, ev, 8, 0, NULL, 8);
	if (k < 0)
		return errno == EINTR ? 0 : -1;
	for (long i = 0; i < k; i++) {
		if (ev[i].data.u64 > TAG_SOCKET)
			return -1; /* an epoll set of somebody else */
		tags |= 1 << ev[i].data.u64;
	}
	return tags;
}

static void lose(struct rtdev *d)
{
	engine_lock(d);
	rtdev_lose(d);
	engine_unlock(d);
	rt_say(false,
	       "%s: the program closed our file descriptors: the device "
	       "is lost to it",
	       d->id.name);
}

/* Everything but the visit itself. */
static void take_tags(struct rtdev *d, int tags)
{
	struct nic *n = &d->nic;

	if (tags & 1 << TAG_KICK)
		drain(n->kick_fd);
	if (tags & 1 << TAG_GROUP) {
		udp_group_serve(d->group);
		rtdev_read_gsi(d);
	}
	if (tags & 1 << TAG_GATES)
		gates_serve(d);
	if (tags & 1 << TAG_RING) {
		drain(gates_wake_fd(d));
		atomic_store_explicit(&n->ring_woke, true,
				      memory_order_release);
	}
	gates_ask(d);
	if ((tags & 1 << TAG_NETDEV) && netdev_watch_drain(n->netdev_fd))
		rtdev_port_refresh(d);
	if (tags & 1 << TAG_TIMER) {
		drain(n->timer_fd);
		n->woke_timer = true;
	}
	n->woke_socket = tags & (1 << TAG_SOCKET | 1 << TAG_RING);
}

static void *nic_main(void *arg)
{
	struct rtdev *d = arg;
	struct nic *n = &d->nic;

	gates_vouch(d);
	while (!told_to_stop(n)) {
		int tags = wait_tags(n);

		ENGINE_COUNT(&d->engine, nic_wakes);
		if (told_to_stop(n))
			break;
		if (tags < 0) {
			lose(d);
			break;
		}
		take_tags(d, tags);
		if (told_to_stop(n))
			break;
		serve(d);
		if (rtdev_lost(d)) /* a program thread saw it first */
			break;
		rtdev_explain_losses(d);
	}
	return NULL;
}

static int watch(struct nic *n, int fd, uint64_t tag)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = tag };

	return epoll_ctl(n->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* Every signal is the program's, but faults in our copies must reach the
 * handler that repairs them. */
static void block_signals(sigset_t *ret_old)
{
	sigset_t set;

	sigfillset(&set);
	sigdelset(&set, SIGSEGV);
	sigdelset(&set, SIGBUS);
	sigdelset(&set, SIGILL);
	sigdelset(&set, SIGFPE);
	sigdelset(&set, SIGTRAP);
	pthread_sigmask(SIG_SETMASK, &set, ret_old);
}

/* What a thread of ours should not take over from the one that makes it. */
static void set_attr(pthread_attr_t *attr)
{
	struct sched_param prio = { 0 };

	pthread_attr_setinheritsched(attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(attr, SCHED_OTHER);
	pthread_attr_setschedparam(attr, &prio);
	if (CPU_COUNT(&start_cpus))
		pthread_attr_setaffinity_np(attr, sizeof(start_cpus),
					    &start_cpus);
}

static int create(struct rtdev *d, bool plain)
{
	pthread_attr_t attr;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	pthread_attr_setstacksize(&attr, 256 * 1024);
	if (!plain)
		set_attr(&attr);
	err = pthread_create(&d->nic.thread, &attr, nic_main, d);
	pthread_attr_destroy(&attr);
	return -err;
}

static int start_thread(struct rtdev *d)
{
	sigset_t old;
	int err;

	block_signals(&old);
	err = create(d, false);
	/* CPUs that were taken from us since, SCHED_IDLE that may not be left:
	 * then like its maker. */
	if (err == -EINVAL || err == -EPERM)
		err = create(d, true);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return err;
	pthread_setname_np(d->nic.thread, "softhca-nic");
	d->nic.running = true;
	return 0;
}

void nic_init(struct rtdev *d)
{
	d->nic = (struct nic){ .armed = true,
			       .ring_woke = true,
			       .timer_at_ns = INT64_MAX,
			       .epoll_fd = -1,
			       .timer_fd = -1,
			       .kick_fd = -1,
			       .netdev_fd = -1,
			       .trip_fd = { -1, -1 } };
}

static int open_fds(struct nic *n)
{
	int trip[2];
	int err = netdev_watch_fd(&n->netdev_fd);

	if (err)
		return err;
	n->netdev_fd = fd_hide(n->netdev_fd);
	n->epoll_fd = fd_hide(epoll_create1(EPOLL_CLOEXEC));
	n->timer_fd = fd_hide(
		timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	n->kick_fd = fd_hide(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (n->epoll_fd < 0 || n->timer_fd < 0 || n->kick_fd < 0 ||
	    pipe2(trip, O_CLOEXEC))
		return -errno;
	n->trip_fd[0] = fd_hide(trip[0]);
	n->trip_fd[1] = fd_hide(trip[1]);
	return 0;
}

int nic_start(struct rtdev *d)
{
	struct nic *n = &d->nic;
	int err = open_fds(n);

	if (!err)
		err = watch(n, n->timer_fd, TAG_TIMER);
	if (!err)
		err = watch(n, n->kick_fd, TAG_KICK);
	if (!err)
		err = watch(n, udp_group_fd(d->group), TAG_GROUP);
	if (!err)
		err = watch(n, n->netdev_fd, TAG_NETDEV);
	if (!err && gates_wake_fd(d) >= 0)
		err = watch(n, gates_wake_fd(d), TAG_RING);
	if (!err && gates_fd(d) >= 0)
		err = watch(n, gates_fd(d), TAG_GATES);
	if (!err)
		err = start_thread(d);
	if (err)
		nic_abandon(d);
	return err;
}

static void join(struct nic *n, int64_t limit_ns)
{
	struct timespec until;

	if (!limit_ns) {
		pthread_join(n->thread, NULL);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += limit_ns / 1000000000;
	until.tv_nsec += limit_ns % 1000000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	(void)pthread_timedjoin_np(n->thread, NULL, &until);
}

void nic_stop(struct rtdev *d, int64_t limit_ns)
{
	struct nic *n = &d->nic;

	if (!n->running)
		return;
	n->running = false;
	atomic_store_explicit(&n->stop, true, memory_order_release);
	nic_kick(d);
	join(n, limit_ns);
}

void nic_disown(struct rtdev *d)
{
	struct nic *n = &d->nic;

	n->num_sockets = 0;
	n->epoll_fd = n->timer_fd = n->kick_fd = n->netdev_fd = -1;
	n->trip_fd[0] = n->trip_fd[1] = -1;
}

void nic_abandon(struct rtdev *d)
{
	struct nic *n = &d->nic;
	const int fds[] = { n->epoll_fd,  n->timer_fd,	 n->kick_fd,
			    n->netdev_fd, n->trip_fd[0], n->trip_fd[1] };

	n->running = false;
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	nic_disown(d);
}
