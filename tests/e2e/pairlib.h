/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * pairlib.h - what the test programs here share: two processes of one program,
 * a server and a client, with RC QPs between them. Plain libibverbs.
 *
 *   PROG [-d DEV] [-g GID] -p PORT [-q QPS] [-s SIZE] [-n N] [-t S] [-m MODE]
 *        [-T TIMEOUT] [-R RETRY_CNT] [-l] [HOST]
 *
 * With HOST it is the client. Whatever fails ends the process with status 1
 * and a line on stderr: pl_die().
 */
#ifndef SOFTHCA_TESTS_E2E_PAIRLIB_H
#define SOFTHCA_TESTS_E2E_PAIRLIB_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PL_FLAG_ACCESS                                                         \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |                    \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

struct pl {
	/* options */
	bool client, late;
	const char *host, *port, *device, *mode;
	int gid_index, qps, n, seconds;
	int timeout, retry_cnt; /* of the QPs; 18 and 7 */
	size_t size;

	int sock; /* TCP to the other process */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	union ibv_gid gid;
	struct ibv_port_attr port_attr;
	struct ibv_qp **qp;

	/* the other side's memory, after pl_share() */
	uint64_t raddr;
	uint32_t rkey;
};

_Noreturn void pl_die(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));
#define PL_CHECK(cond)                                                         \
	do {                                                                   \
		if (!(cond))                                                   \
			pl_die("%s:%d: %s", __FILE__, __LINE__, #cond);        \
	} while (0)

/* Options, TCP connection, device, PD, channel, CQ of cqe entries. */
void pl_start(struct pl *p, int argc, char **argv, int cqe);
/* p->qps RC QPs, connected to the other side's, in RTS. Call it on both sides
 * at the same point; before it returns, post(p) is called with the QPs in
 * INIT (may be NULL), for receives that must be there from the start. */
void pl_connect(struct pl *p, void (*post)(struct pl *p));
void pl_stop(struct pl *p); /* takes everything down, checks each step */

/* Waits until the other side is here too. */
void pl_sync(struct pl *p);
/* Tells the other side one number; reads its number. */
void pl_tell(struct pl *p, uint64_t v);
uint64_t pl_hear(struct pl *p);
/* Registers memory and swaps address and rkey with the other side. */
struct ibv_mr *pl_share(struct pl *p, void *buf, size_t len);
struct ibv_mr *pl_reg(struct pl *p, void *buf, size_t len);

/* A signaled WR on QP number i; wr_id is i. READ and WRITE go to raddr. */
void pl_post(struct pl *p, int i, enum ibv_wr_opcode op, struct ibv_mr *mr,
	     void *buf, size_t len, uint64_t raddr);
void pl_recv(struct pl *p, int i, struct ibv_mr *mr, void *buf, size_t len);
/* Polls for one completion of any status, with a limit of 30 s. */
struct ibv_wc pl_poll(struct pl *p);
/* Polls for n completions, all of success. */
void pl_poll_n(struct pl *p, int n);

int64_t pl_now_ns(void);

/* One process alone: a device and an RC QP that is connected to itself. */
struct pl_self {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t buf[8192]; /* one half is written to the other */
};
void pl_self_start(struct pl_self *s);
/* n WRITEs, one after another, polled for and compared. */
void pl_self_write(struct pl_self *s, int n);
void pl_self_stop(struct pl_self *s);

#endif
