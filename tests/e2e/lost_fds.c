/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * lost_fds.c - the client closes all descriptors, also those that it does not
 * know, and opens others at once, which get the lowest free numbers. Verbs may
 * fail, but they do not wait for ever, use no CPU time and leave the new
 * descriptors alone. -m is a list of words:
 *
 *   poll    WRs are under way, the client polls for them
 *   sleep   WRs are under way, a thread waits in ibv_get_cq_event
 *   idle    nothing is under way; the client goes on later
 *   later   in the end also the numbers that were ours get new files
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "pairlib.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define SIZE 65536
#define NEW_FDS 400
#define FD_MAX 4096
#define LIMIT_NS 5000000000LL

static struct pl p;
static uint8_t *mem;
static struct ibv_mr *mr;

static bool mode(const char *word)
{
	return strstr(p.mode, word) != NULL;
}

/* ---- descriptors that are the program's ---- */

enum kind { FILE_FD, SOCKET_FD, EVENT_FD };
static struct {
	enum kind kind;
	int fd, other; /* other: the socket's peer */
} mine[NEW_FDS + FD_MAX];
static int n_mine;

static int new_file(void)
{
	return (int)syscall(SYS_memfd_create, "mine", 0u);
}

static void open_some(void)
{
	while (n_mine < NEW_FDS) {
		int sv[2];

		mine[n_mine].fd = new_file();
		PL_CHECK(mine[n_mine++].fd >= 0);
		PL_CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, sv) == 0);
		mine[n_mine].kind = SOCKET_FD;
		mine[n_mine].fd = sv[0];
		mine[n_mine++].other = sv[1];
		mine[n_mine].kind = EVENT_FD;
		mine[n_mine].fd = eventfd(0, 0);
		PL_CHECK(mine[n_mine++].fd >= 0);
	}
}

static bool readable(int fd)
{
	struct pollfd f = { .fd = fd, .events = POLLIN };

	return poll(&f, 1, 0) != 0;
}

/* Nothing was written to them, none was closed. */
static void check_mine(const char *when)
{
	for (int i = 0; i < n_mine; i++) {
		struct stat st;

		if (fstat(mine[i].fd, &st))
			pl_die("%s: fd %d was closed", when, mine[i].fd);
		if (mine[i].kind == FILE_FD && st.st_size)
			pl_die("%s: file %d was written to", when, mine[i].fd);
		if (mine[i].kind == SOCKET_FD &&
		    (readable(mine[i].fd) || readable(mine[i].other)))
			pl_die("%s: socket %d was written to", when,
			       mine[i].fd);
		if (mine[i].kind == EVENT_FD && readable(mine[i].fd))
			pl_die("%s: eventfd %d was written to", when,
			       mine[i].fd);
	}
}

static bool was_open[FD_MAX];

static void remember_fds(void)
{
	for (int fd = 3; fd < FD_MAX; fd++)
		was_open[fd] = fcntl(fd, F_GETFD) >= 0;
}

/* A file at every number that was in use before. */
static void take_all_numbers(void)
{
	for (int fd = 3; fd < FD_MAX; fd++) {
		if (!was_open[fd] || fcntl(fd, F_GETFD) >= 0)
			continue;
		PL_CHECK(dup2(mine[0].fd, fd) == fd);
		mine[n_mine].kind = FILE_FD;
		mine[n_mine++].fd = fd;
	}
}

/* ---- */

static bool try_post(enum ibv_wr_opcode op)
{
	struct ibv_sge sge = { (uintptr_t)mem, SIZE, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { p.raddr, p.rkey } };
	struct ibv_send_wr *bad;

	return ibv_post_send(p.qp[0], &wr, &bad) == 0;
}

static void *sleeper(void *arg)
{
	struct ibv_cq *cq;
	void *ctx;

	while (ibv_get_cq_event(p.channel, &cq, &ctx) == 0) {
		ibv_ack_cq_events(cq, 1);
		if (ibv_req_notify_cq(cq, 0))
			break;
	}
	printf("sleeper: %s\n", strerror(errno));
	return arg;
}

/* WRs go on until one fails or cannot be posted. */
static void post_until_failed(void)
{
	int64_t end_ns = pl_now_ns() + LIMIT_NS;
	struct ibv_wc wc;
	int n = 0;

	for (;;) {
		while (n < 8 && try_post(IBV_WR_RDMA_WRITE))
			n++;
		if (!n)
			break;
		if (pl_now_ns() > end_ns)
			pl_die("no WR failed");
		if (ibv_poll_cq(p.cq, 1, &wc) <= 0)
			continue;
		n--;
		if (wc.status != IBV_WC_SUCCESS)
			break;
	}
	printf("failed: %s\n", n ? ibv_wc_status_str(wc.status) : "post");
}

static int64_t cpu_ns(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000000LL +
	       (r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000LL;
}

static void check_quiet(void)
{
	int64_t before_ns = cpu_ns();

	usleep(500000);
	if (cpu_ns() - before_ns > 50000000)
		pl_die("%d ms of CPU time while nothing goes on",
		       (int)((cpu_ns() - before_ns) / 1000000));
}

/* New objects are refused, old ones can be destroyed, and who reads events is
 * told (B056). */
static void check_verbs(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_async_event ev;

	PL_CHECK(!ibv_alloc_pd(p.ctx) && errno == EIO);
	PL_CHECK(!ibv_create_cq(p.ctx, 16, NULL, NULL, 0) && errno == EIO);
	PL_CHECK(!ibv_reg_mr(p.pd, mem, SIZE, 0) && errno == EIO);
	PL_CHECK(ibv_modify_qp(p.qp[0], &attr, IBV_QP_STATE) == EIO);
	PL_CHECK(ibv_get_async_event(p.ctx, &ev) == 0);
	PL_CHECK(ev.event_type == IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&ev);
	PL_CHECK(ibv_get_async_event(p.ctx, &ev) == -1 && errno == EIO);
}

static void take_down(void)
{
	PL_CHECK(ibv_destroy_qp(p.qp[0]) == 0);
	PL_CHECK(ibv_dereg_mr(mr) == 0);
	PL_CHECK(ibv_destroy_cq(p.cq) == 0);
	PL_CHECK(ibv_destroy_comp_channel(p.channel) == 0);
	PL_CHECK(ibv_dealloc_pd(p.pd) == 0);
	PL_CHECK(ibv_close_device(p.ctx) == 0);
}

static void client(void)
{
	static struct pl_self again;
	pthread_t t;

	if (mode("sleep")) {
		PL_CHECK(ibv_req_notify_cq(p.cq, 0) == 0);
		PL_CHECK(pthread_create(&t, NULL, sleeper, NULL) == 0);
	}
	usleep(20000);
	for (int i = 0; !mode("idle") && i < 8; i++)
		PL_CHECK(try_post(IBV_WR_RDMA_READ));
	remember_fds();
	PL_CHECK(syscall(SYS_close_range, 3u, ~0u, 0u) == 0);
	open_some();
	if (mode("sleep"))
		PL_CHECK(pthread_join(t, NULL) == 0);
	if (mode("idle"))
		usleep(100000);
	if (!mode("sleep"))
		post_until_failed();
	check_mine("after the failure");
	check_quiet();
	if (mode("later"))
		take_all_numbers();
	check_verbs();
	take_down();
	check_mine("after the device was closed");
	pl_self_start(&again);
	pl_self_write(&again, 100);
	pl_self_stop(&again);
	check_mine("after another device");
	printf("lost it, and was not harmed\n");
}

int main(int argc, char **argv)
{
	char c;

	pl_start(&p, argc, argv, 256);
	mem = calloc(1, SIZE);
	PL_CHECK(mem);
	mr = pl_share(&p, mem, SIZE);
	pl_connect(&p, NULL);
	if (p.client)
		client();
	else
		PL_CHECK(recv(p.sock, &c, 1, 0) <= 0);
	return 0;
}
