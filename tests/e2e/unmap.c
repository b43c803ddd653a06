/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * unmap.c - the program unmaps registered memory while the NIC works on it. The
 * WR under way ends with an error completion, both processes live, and a
 * SIGSEGV handler of the program's own still gets the program's own faults.
 *
 * -m  read_remote, write_remote: the server unmaps what the client READs or
 *     WRITEs; read_local, write_local, send: the client unmaps what its WR
 *     scatters to or gathers from; recv: the server unmaps its receive buffer.
 * -l  set the handler after the device was opened, not before.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pairlib.h"

#define LEN (4u << 20)
/* Where no other mapping lands: an unmapped range must stay one. */
#define HINT ((void *)0x200000000000)

static sigjmp_buf on_fault;
static uint8_t *mem;
static struct ibv_mr *mr;

static void fault(int sig)
{
	(void)sig;
	siglongjmp(on_fault, 1);
}

static void set_handler(void)
{
	struct sigaction sa = { .sa_handler = fault };

	PL_CHECK(sigaction(SIGSEGV, &sa, NULL) == 0);
}

/* A fault of the program's own must get to the program's own handler. */
static void own_fault(void)
{
	volatile uint8_t *gone =
		mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (sigsetjmp(on_fault, 1) == 0) {
		*gone = 1;
		pl_die("no fault");
	}
	printf("own handler works\n");
}

static void *unmap_soon(void *arg)
{
	usleep(20000);
	PL_CHECK(munmap(mem, LEN) == 0);
	return arg;
}

static bool has(const struct pl *p, const char *what)
{
	return strstr(p->mode, what) != NULL;
}

/* Does this process unmap its memory? */
static bool unmaps(const struct pl *p)
{
	return p->client == (has(p, "local") || has(p, "send"));
}

/* The status that the client's WR must end with. */
static bool expected(const struct pl *p, enum ibv_wc_status s)
{
	if (unmaps(p))
		return s == IBV_WC_LOC_PROT_ERR || s == IBV_WC_LOC_ACCESS_ERR;
	return s == IBV_WC_REM_OP_ERR || s == IBV_WC_REM_ACCESS_ERR;
}

static void client(struct pl *p)
{
	enum ibv_wr_opcode op = has(p, "read")	  ? IBV_WR_RDMA_READ
				: has(p, "write") ? IBV_WR_RDMA_WRITE
						  : IBV_WR_SEND;
	struct ibv_wc wc;
	int good = -1;

	do {
		pl_post(p, 0, op, mr, mem, LEN, p->raddr);
		wc = pl_poll(p);
		good++;
	} while (wc.status == IBV_WC_SUCCESS);
	printf("%d before it was unmapped, then: %s\n", good,
	       ibv_wc_status_str(wc.status));
	if (!expected(p, wc.status))
		pl_die("not the status of this case");
}

/* The client's SEND fails before all of it is here: a receive stays open. */
static void receive_until_told(struct pl *p)
{
	struct ibv_wc wc;
	char c;

	while (recv(p->sock, &c, 1, MSG_PEEK | MSG_DONTWAIT) != 1)
		if (ibv_poll_cq(p->cq, 1, &wc) == 1 &&
		    wc.status == IBV_WC_SUCCESS)
			pl_recv(p, 0, mr, mem, LEN);
}

/* The server polls only where it receives. A receive into memory that is gone
 * ends with an error, too. */
static void server(struct pl *p)
{
	struct ibv_wc wc;

	if (has(p, "send"))
		receive_until_told(p);
	if (!has(p, "recv"))
		return;
	while ((wc = pl_poll(p)).status == IBV_WC_SUCCESS)
		pl_recv(p, 0, mr, mem, LEN);
	printf("receive: %s\n", ibv_wc_status_str(wc.status));
	PL_CHECK(wc.status == IBV_WC_LOC_PROT_ERR ||
		 wc.status == IBV_WC_LOC_ACCESS_ERR);
}

static void post_receive(struct pl *p)
{
	if (!p->client && (has(p, "recv") || has(p, "send")))
		pl_recv(p, 0, mr, mem, LEN);
}

int main(int argc, char **argv)
{
	pthread_t t;
	struct pl p;
	bool late = false;

	for (int i = 1; i < argc; i++)
		late |= strcmp(argv[i], "-l") == 0;
	if (!late)
		set_handler();
	pl_start(&p, argc, argv, 16);
	if (late)
		set_handler();
	mem = mmap(HINT, LEN, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	PL_CHECK(mem == HINT);
	memset(mem, 1, LEN);
	mr = pl_share(&p, mem, LEN);
	pl_connect(&p, post_receive);
	if (unmaps(&p))
		PL_CHECK(pthread_create(&t, NULL, unmap_soon, NULL) == 0);
	if (p.client)
		client(&p);
	else
		server(&p);
	if (unmaps(&p))
		pthread_join(t, NULL);
	own_fault();
	pl_sync(&p);
	PL_CHECK(ibv_dereg_mr(mr) == 0);
	pl_stop(&p);
	return 0;
}
