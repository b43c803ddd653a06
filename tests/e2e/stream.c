/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * stream.c - the client keeps WRITEs, READs and SENDs under way for -t seconds
 * and prints how many are done; the server's process ends, or not, as -m says:
 *
 *   kill segv exit _exit   after -n messages, in the middle of it all
 *   exit_threads           exit() while threads are inside verbs calls
 *   exit_signal            exit() in a signal handler that interrupts the poll
 *   handler                its SIGSEGV handler ends it
 *   pin fifo               both processes: one CPU, SCHED_FIFO, set by itself
 *   poll                   it lives until the client is done, and polls
 *   (nothing)              it lives until the client is done, asleep
 *
 * With pin, poll and nothing there are no SENDs, so no RNR NAKs either.
 *
 * The client checks what a dead or stopped server looks like: RETRY_EXC_ERR,
 * the rest flushed, and a WR that was posted when the server was gone for long
 * fails after one to four times its nominal time (timeout, retry_cnt).
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "pairlib.h"

#define DEPTH 8
#define RECVS 4 /* two SENDs at most are under way */
#define PRINT_NS 50000000

static uint8_t *mem;
static struct ibv_mr *mr;
static struct pl p;

static bool mode(const char *what)
{
	return strcmp(p.mode, what) == 0;
}

/* ---- client ---- */

static int64_t gone_ns; /* when the server's TCP connection broke; 0: not yet */

static void look_for_end(void)
{
	char c;

	if (!gone_ns && recv(p.sock, &c, 1, MSG_PEEK | MSG_DONTWAIT) != -1)
		gone_ns = pl_now_ns();
	else if (!gone_ns && errno != EAGAIN)
		gone_ns = pl_now_ns();
}

static void post_next(unsigned serial)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ,
		IBV_WR_RDMA_WRITE,
		IBV_WR_SEND,
	};

	unsigned n = mode("") || mode("poll") || mode("pin") ? 3 : 4;

	pl_post(&p, 0, ops[serial % n], mr, mem, p.size, p.raddr + p.size);
}

static int64_t nominal_ns(void)
{
	return (4096LL << p.timeout) * (p.retry_cnt + 1);
}

/* Everything else under way on QP 0 is flushed. */
static void expect_flush(int n)
{
	while (n-- > 0) {
		struct ibv_wc wc = pl_poll(&p);

		PL_CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
	}
}

static void time_second_qp(void)
{
	int64_t begin_ns = pl_now_ns(), took_ns;
	struct ibv_wc wc;

	pl_post(&p, 1, IBV_WR_SEND, mr, mem, p.size, 0);
	wc = pl_poll(&p);
	took_ns = pl_now_ns() - begin_ns;
	printf("fresh WR: %s after %.2f of the nominal time\n",
	       ibv_wc_status_str(wc.status),
	       (double)took_ns / (double)nominal_ns());
	PL_CHECK(wc.status == IBV_WC_RETRY_EXC_ERR);
	PL_CHECK(took_ns >= nominal_ns());
	PL_CHECK(took_ns <= 4 * nominal_ns());
}

static void server_is_gone(const struct ibv_wc *wc, int rest)
{
	int64_t now_ns = pl_now_ns();

	printf("stream: %s\n", ibv_wc_status_str(wc->status));
	PL_CHECK(wc->status == IBV_WC_RETRY_EXC_ERR);
	if (gone_ns) {
		printf("%.2f of the nominal time after the end\n",
		       (double)(now_ns - gone_ns) / (double)nominal_ns());
		PL_CHECK(now_ns - gone_ns <= 4 * nominal_ns());
	}
	expect_flush(rest);
	time_second_qp();
	printf("server is gone\n");
}

static void print_count(unsigned done)
{
	static int64_t next_ns;
	int64_t now_ns = pl_now_ns();

	if (now_ns < next_ns)
		return;
	next_ns = now_ns + PRINT_NS;
	printf("at %.3f done %u\n", (double)now_ns / 1e9, done);
}

/* False: the server did not live. */
static bool client(void)
{
	int64_t end_ns = pl_now_ns() + p.seconds * 1000000000LL;
	unsigned posted = 0, done = 0;

	while (posted < DEPTH)
		post_next(posted++);
	while (done < posted) {
		struct ibv_wc wc = pl_poll(&p);

		if (wc.status != IBV_WC_SUCCESS) {
			server_is_gone(&wc, (int)(posted - done - 1));
			return false;
		}
		done++;
		print_count(done);
		look_for_end();
		if (pl_now_ns() < end_ns)
			post_next(posted++);
	}
	printf("streamed %u\n", done);
	return true;
}

/* ---- server ---- */

static void receive(void)
{
	pl_recv(&p, 0, mr, mem, p.size);
}

static void post_receives(struct pl *unused)
{
	(void)unused;
	for (int i = 0; !p.client && i < RECVS; i++)
		receive();
}

static void end_by_signal(int sig)
{
	(void)sig;
	if (mode("exit_signal"))
		exit(0);
	_exit(7);
}

static void *poll_for_ever(void *arg)
{
	struct ibv_wc wc;

	for (;;)
		if (ibv_poll_cq(p.cq, 1, &wc) < 0)
			pl_die("poll in a thread");
	return arg;
}

static void *register_for_ever(void *arg)
{
	for (;;)
		PL_CHECK(ibv_dereg_mr(pl_reg(&p, mem, p.size)) == 0);
	return arg;
}

static void *post_for_ever(void *arg)
{
	struct ibv_sge sge = { (uintptr_t)mem, 64, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { p.raddr, p.rkey } };
	struct ibv_send_wr *bad;
	int rc;

	for (;;) {
		rc = ibv_post_send(p.qp[1], &wr, &bad);
		if (rc && rc != ENOMEM)
			pl_die("post in a thread: %d", rc);
		if (rc)
			sched_yield();
	}
	return arg;
}

static void *wait_for_ever(void *arg)
{
	struct ibv_cq *cq;
	void *ctx;

	PL_CHECK(ibv_get_cq_event(p.channel, &cq, &ctx) == 0);
	return arg;
}

static void *exit_now(void *arg)
{
	usleep(100000);
	exit(0);
	return arg;
}

static _Noreturn void exit_with_threads(void)
{
	pthread_t t;

	PL_CHECK(pthread_create(&t, NULL, poll_for_ever, NULL) == 0);
	PL_CHECK(pthread_create(&t, NULL, register_for_ever, NULL) == 0);
	PL_CHECK(pthread_create(&t, NULL, post_for_ever, NULL) == 0);
	PL_CHECK(pthread_create(&t, NULL, wait_for_ever, NULL) == 0);
	PL_CHECK(pthread_create(&t, NULL, exit_now, NULL) == 0);
	poll_for_ever(NULL);
	_exit(9);
}

static void end_now(void)
{
	volatile int *volatile nowhere = NULL;

	if (mode("kill"))
		kill(getpid(), SIGKILL);
	if (mode("segv") || mode("handler"))
		*nowhere = 0;
	if (mode("exit"))
		exit(0);
	if (mode("_exit"))
		_exit(0);
	if (mode("exit_threads"))
		exit_with_threads();
}

static void set_up_end(void)
{
	struct itimerval soon = { .it_value = { 0, 300000 } };

	if (mode("handler"))
		signal(SIGSEGV, end_by_signal);
	if (!mode("exit_signal"))
		return;
	signal(SIGALRM, end_by_signal);
	setitimer(ITIMER_REAL, &soon, NULL);
}

static bool client_is_done(void)
{
	char c;

	return recv(p.sock, &c, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

static void server(void)
{
	struct ibv_wc wc;
	int received = 0;
	char c;

	if (mode("")) {
		PL_CHECK(recv(p.sock, &c, 1, MSG_PEEK) >= 0);
		return;
	}
	set_up_end();
	for (unsigned spins = 0; spins % 1024 || !client_is_done(); spins++) {
		if (ibv_poll_cq(p.cq, 1, &wc) == 0)
			continue;
		if (wc.status == IBV_WC_SUCCESS)
			receive();
		if (++received == p.n)
			end_now();
	}
}

/* ---- both ---- */

static void place(void)
{
	struct sched_param prio = { .sched_priority = 1 };
	cpu_set_t one;
	int cpu = 0;

	if (mode("pin")) {
		PL_CHECK(sched_getaffinity(0, sizeof(one), &one) == 0);
		while (!CPU_ISSET(cpu, &one))
			cpu++;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		PL_CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
	}
	if (mode("fifo"))
		PL_CHECK(sched_setscheduler(0, SCHED_FIFO, &prio) == 0);
}

/* Before the options are known. */
static void early(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "-m") == 0)
			p.mode = argv[i + 1];
	if (p.mode)
		place();
}

int main(int argc, char **argv)
{
	early(argc, argv);
	pl_start(&p, argc, argv, 256);
	p.qps = 2;
	mem = calloc(2, p.size);
	PL_CHECK(mem);
	mr = pl_share(&p, mem, 2 * p.size);
	pl_connect(&p, post_receives);
	printf("pid %d\n", getpid());
	if (!p.client)
		server();
	else if (!client())
		return 0; /* as it is: exit is all that is needed */
	PL_CHECK(ibv_dereg_mr(mr) == 0);
	pl_stop(&p);
	return 0;
}
