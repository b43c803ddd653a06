/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * nic.h - the NIC thread: serves programs that do not poll.
 *
 *            req_notify, or a tick without a poll
 *      +----------------------------------------------+
 *      v                                              |
 *   ARMED: the sockets wake the thread;            POLLED: sockets disarmed;
 *   a timer only for the core's deadline,          a tick every millisecond
 *   so idle means no wake-up at all                   ^
 *      |                                              |
 *      +----------------------------------------------+
 *        the program spends at least half of its time in empty polls
 *
 * In POLLED, frames that wait while the last poll is old mean a program that
 * spins on memory (ib_write_lat): back to ARMED.
 */
#ifndef SOFTHCA_RT_NIC_H
#define SOFTHCA_RT_NIC_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"

struct rtdev;

#define NIC_MAX_SOCKETS 256

struct nic {
	pthread_t thread;
	bool running;
	_Atomic bool stop;
	int epoll_fd, timer_fd, kick_fd, netdev_fd;
	/* A pipe that nothing is ever written to. The thread sleeps on its read
	 * end too: poll() keeps that open while the thread sleeps, so when both
	 * numbers are closed under us the write end hangs up, and it wakes. */
	int trip_fd[2];
	/* The rings' sleep is over or has not begun: say anew that we sleep. */
	_Atomic bool ring_woke;
	/* The thread's: why it is about to visit. */
	bool woke_socket, woke_timer;
	/* [E] from here. */
	bool armed;	       /* sockets wake the thread */
	int64_t timer_at_ns;   /* what timer_fd is set to; INT64_MAX: off */
	int64_t tick_poll_ns;  /* last_poll_ns at the previous tick */
	int64_t window_ns;     /* ARMED: where the window of judgement began */
	uint64_t window_polls; /* visits_poll then */
	int64_t armed_until_ns, hold_ns; /* after a misjudgement */
	int sockets[NIC_MAX_SOCKETS];
	unsigned num_sockets;
};

/* No thread, no fds. */
void nic_init(struct rtdev *d);
/* -errno. Starts the thread with signals blocked (but the synchronous ones),
 * the affinity that the process had at load, no real-time policy. */
MUST_USE int nic_start(struct rtdev *d);
/* Stops and joins it; after limit_ns (0: none) it is left to itself. The fds
 * stay, so that visits of program threads go on. Not inside the engine. */
void nic_stop(struct rtdev *d, int64_t limit_ns);
/* Closes the fds, forgets the thread: after nic_stop, or in a fork's child. */
void nic_abandon(struct rtdev *d);
/* [E] Our fds are gone: forgets them without closing. */
void nic_disown(struct rtdev *d);

/* [E] Watches one more receive socket. */
MUST_USE int nic_add_socket(struct rtdev *d, int fd);

/* [E] Called at the end of every visit: arms on want_arm, moves the timer to
 * the core's deadline when that is sooner; for the thread's own visits also
 * decides between ARMED and POLLED. */
void nic_after_visit(struct rtdev *d, bool own, int64_t now_ns);

/* Wakes the thread. Any thread, inside or outside. */
void nic_kick(struct rtdev *d);

#endif
