/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cancel.c - threads are cancelled inside verbs calls, -n of each kind: asleep
 * in ibv_get_cq_event, in a poll loop, in loops of control verbs. What a
 * cancelled thread had made may leak; everybody else goes on.
 *
 *   cancel -x US   posts and polls until a signal, after so many microseconds,
 *                  whose handler calls exit(): inside the engine, mostly
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#include "pairlib.h"

static struct pl_self s;

static void *get_event(void *arg)
{
	struct ibv_cq *cq;
	void *ctx;

	ibv_get_cq_event(s.channel, &cq, &ctx);
	pl_die("an event that nobody caused");
	return arg;
}

static void *poll_loop(void *arg)
{
	struct ibv_wc wc;

	for (;;) {
		PL_CHECK(ibv_poll_cq(s.cq, 1, &wc) == 0);
		pthread_testcancel();
	}
	return arg;
}

static void *control_loop(void *arg)
{
	for (;;) {
		struct ibv_mr *mr =
			ibv_reg_mr(s.pd, s.buf, sizeof(s.buf), PL_FLAG_ACCESS);
		struct ibv_cq *cq =
			ibv_create_cq(s.ctx, 16, NULL, s.channel, 0);

		PL_CHECK(mr && cq);
		PL_CHECK(ibv_destroy_cq(cq) == 0);
		PL_CHECK(ibv_dereg_mr(mr) == 0);
		pthread_testcancel();
	}
	return arg;
}

/* Opens, binds, closes: the verbs that talk to the system. */
static void *device_loop(void *arg)
{
	static struct pl_self own;

	for (;;) {
		pl_self_start(&own);
		pl_self_stop(&own);
		pthread_testcancel();
	}
	return arg;
}

static void cancel_one(void *(*loop)(void *), int delay_us)
{
	pthread_t t;
	void *ret;

	PL_CHECK(pthread_create(&t, NULL, loop, NULL) == 0);
	usleep((unsigned)delay_us);
	PL_CHECK(pthread_cancel(t) == 0);
	PL_CHECK(pthread_join(t, &ret) == 0);
	PL_CHECK(ret == PTHREAD_CANCELED);
}

/* ---- signals: the rules of a read() ---- */

static int woken_errno; /* of the sleeper; 0: an event */

static void *get_event_or_not(void *arg)
{
	struct ibv_cq *cq;
	void *ctx;

	woken_errno = 0;
	if (ibv_get_cq_event(s.channel, &cq, &ctx))
		woken_errno = errno;
	else
		ibv_ack_cq_events(cq, 1);
	return arg;
}

static void nothing(int sig)
{
	(void)sig;
}

/* A handler with SA_RESTART is not noticed, one without ends the wait. */
static void signalled(int flags, int want)
{
	struct sigaction sa = { .sa_handler = nothing, .sa_flags = flags };
	pthread_t t;

	PL_CHECK(sigaction(SIGUSR1, &sa, NULL) == 0);
	PL_CHECK(ibv_req_notify_cq(s.cq, 0) == 0);
	PL_CHECK(pthread_create(&t, NULL, get_event_or_not, NULL) == 0);
	usleep(50000);
	PL_CHECK(pthread_kill(t, SIGUSR1) == 0);
	usleep(50000);
	pl_self_write(&s, 1);
	PL_CHECK(pthread_join(t, NULL) == 0);
	PL_CHECK(woken_errno == want);
}

/* A sleeper that was cancelled takes no event away. */
static void event_after_cancel(void)
{
	struct ibv_cq *cq;
	void *ctx;

	PL_CHECK(ibv_req_notify_cq(s.cq, 0) == 0);
	pl_self_write(&s, 1);
	PL_CHECK(ibv_get_cq_event(s.channel, &cq, &ctx) == 0);
	PL_CHECK(cq == s.cq);
	ibv_ack_cq_events(cq, 1);
}

static void exit_now(int sig)
{
	(void)sig;
	exit(0);
}

static _Noreturn void exit_in_handler(int us)
{
	struct itimerval soon = { .it_value = { 0, us } };

	pl_self_start(&s);
	signal(SIGALRM, exit_now);
	setitimer(ITIMER_REAL, &soon, NULL);
	for (;;)
		pl_self_write(&s, 1);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 20;

	if (argc > 2)
		exit_in_handler(atoi(argv[2]));

	alarm(60); /* a hang is a failure */
	pl_self_start(&s);
	for (int i = 0; i < n; i++) {
		cancel_one(get_event, i * 100);
		event_after_cancel();
		cancel_one(poll_loop, i * 100);
		pl_self_write(&s, 10);
		cancel_one(control_loop, i * 100);
		pl_self_write(&s, 10);
	}
	for (int i = 0; i < n; i++) {
		cancel_one(device_loop, 200 + i * 431);
		pl_self_write(&s, 10);
	}
	signalled(SA_RESTART, 0);
	signalled(0, EINTR);
	printf("all cancelled, all goes on\n");
	return 0;
}
