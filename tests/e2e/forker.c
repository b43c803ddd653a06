/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * forker.c - the client forks -n times while a thread of it keeps WRITEs under
 * way and another one makes and destroys objects. Each child finds every verb
 * of what it inherited dead, and ends in one of four ways: at once; after it
 * destroyed what it inherited; after it used a device of its own; by exec.
 *
 *   forker -e    what the last kind executes: a device of its own, alone
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pairlib.h"

#define SIZE 16384
#define CHILD_LIMIT_S 20

static struct pl p;
static uint8_t mem[SIZE];
static struct ibv_mr *mr;
static atomic_bool stop;
static atomic_int done;

static void alone(int n)
{
	static struct pl_self s;

	pl_self_start(&s);
	pl_self_write(&s, n);
	pl_self_stop(&s);
}

/* ---- threads of the parent ---- */

static void *write_on(void *arg)
{
	while (!atomic_load(&stop)) {
		for (int i = 0; i < 8; i++)
			pl_post(&p, 0, IBV_WR_RDMA_WRITE, mr, mem, SIZE,
				p.raddr);
		pl_poll_n(&p, 8);
		atomic_fetch_add(&done, 8);
	}
	return arg;
}

static void *make_on(void *arg)
{
	while (!atomic_load(&stop)) {
		struct ibv_cq *cq = ibv_create_cq(p.ctx, 16, NULL, NULL, 0);

		PL_CHECK(cq);
		PL_CHECK(ibv_destroy_cq(cq) == 0);
		PL_CHECK(ibv_dereg_mr(pl_reg(&p, mem, SIZE)) == 0);
	}
	return arg;
}

/* ---- the child ---- */

static void expect_dead(void)
{
	struct ibv_sge sge = { (uintptr_t)mem, 8, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND };
	struct ibv_recv_wr rwr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_recv_wr *rbad;
	struct ibv_send_wr *bad;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *ctx;

	PL_CHECK(ibv_post_send(p.qp[0], &wr, &bad) == EIO);
	PL_CHECK(ibv_post_recv(p.qp[0], &rwr, &rbad) == EIO);
	PL_CHECK(ibv_poll_cq(p.cq, 1, &wc) < 0);
	PL_CHECK(ibv_req_notify_cq(p.cq, 0) == EIO);
	PL_CHECK(ibv_get_cq_event(p.channel, &cq, &ctx) == -1 && errno == EIO);
	PL_CHECK(!ibv_alloc_pd(p.ctx) && errno == EIO);
	PL_CHECK(!ibv_reg_mr(p.pd, mem, SIZE, 0) && errno == EIO);
	PL_CHECK(!ibv_create_cq(p.ctx, 16, NULL, NULL, 0) && errno == EIO);
	PL_CHECK(!ibv_create_comp_channel(p.ctx) && errno == EIO);
	PL_CHECK(ibv_modify_qp(p.qp[0], &attr, IBV_QP_STATE) == EIO);
	PL_CHECK(ibv_query_qp(p.qp[0], &attr, IBV_QP_STATE, NULL) == EIO);
}

static void destroy_all(void)
{
	PL_CHECK(ibv_destroy_qp(p.qp[0]) == 0);
	PL_CHECK(ibv_dereg_mr(mr) == 0);
	PL_CHECK(ibv_destroy_cq(p.cq) == 0);
	PL_CHECK(ibv_destroy_comp_channel(p.channel) == 0);
	PL_CHECK(ibv_dealloc_pd(p.pd) == 0);
	PL_CHECK(ibv_close_device(p.ctx) == 0);
}

static _Noreturn void child(int i)
{
	alarm(CHILD_LIMIT_S); /* a hang is a failure */
	if (i % 4)
		expect_dead();
	if (i % 4 == 1)
		destroy_all();
	if (i % 4 == 2)
		alone(20);
	if (i % 4 == 3) {
		execl("/proc/self/exe", "forker", "-e", NULL);
		pl_die("exec");
	}
	exit(0);
}

static void fork_one(int i)
{
	int status = 0;
	pid_t pid = fork();

	PL_CHECK(pid >= 0);
	if (!pid)
		child(i);
	PL_CHECK(waitpid(pid, &status, 0) == pid);
	if (status)
		pl_die("child %d: status %#x", i, (unsigned)status);
}

static void client(void)
{
	pthread_t t[2];

	PL_CHECK(pthread_create(&t[0], NULL, write_on, NULL) == 0);
	PL_CHECK(pthread_create(&t[1], NULL, make_on, NULL) == 0);
	for (int i = 0; i < p.n; i++) {
		int before = atomic_load(&done);

		fork_one(i);
		while (atomic_load(&done) == before)
			usleep(1000);
	}
	atomic_store(&stop, true);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	printf("%d forks, %d WRITEs\n", p.n, atomic_load(&done));
}

/* An event that was given out and acknowledged before the forks. */
static void use_channel(void)
{
	struct ibv_cq *cq;
	void *ctx;

	PL_CHECK(ibv_req_notify_cq(p.cq, 0) == 0);
	pl_post(&p, 0, IBV_WR_RDMA_WRITE, mr, mem, SIZE, p.raddr);
	PL_CHECK(ibv_get_cq_event(p.channel, &cq, &ctx) == 0);
	ibv_ack_cq_events(cq, 1);
	pl_poll_n(&p, 1);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "-e") == 0) {
		alone(20);
		return 0;
	}
	pl_start(&p, argc, argv, 256);
	mr = pl_share(&p, mem, SIZE);
	pl_connect(&p, NULL);
	if (p.client) {
		use_channel();
		client();
	}
	pl_sync(&p);
	PL_CHECK(ibv_dereg_mr(mr) == 0);
	pl_stop(&p);
	return 0;
}
