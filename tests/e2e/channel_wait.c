/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * channel_wait.c - exchanges one message, driven by completion events, and then
 * waits for another that never comes. The test looks at what the waiting costs
 * and ends both processes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pairlib.h"

static uint8_t buf[2][64];
static struct ibv_mr *mr;

static void post_receive(struct pl *p)
{
	pl_recv(p, 0, mr, buf[0], sizeof(buf[0]));
}

static void take_event(struct pl *p)
{
	struct ibv_cq *cq;
	void *context;

	PL_CHECK(ibv_get_cq_event(p->channel, &cq, &context) == 0);
	ibv_ack_cq_events(cq, 1);
	PL_CHECK(ibv_req_notify_cq(p->cq, 0) == 0);
}

/* Takes completions as events announce them: n of them. */
static void wait_completions(struct pl *p, int n)
{
	while (n > 0) {
		struct ibv_wc wc;

		take_event(p);
		while (ibv_poll_cq(p->cq, 1, &wc) == 1) {
			PL_CHECK(wc.status == IBV_WC_SUCCESS);
			n--;
		}
	}
}

int main(int argc, char **argv)
{
	struct ibv_wc wc;
	struct pl p;

	pl_start(&p, argc, argv, 16);
	mr = pl_reg(&p, buf, sizeof(buf));
	PL_CHECK(ibv_req_notify_cq(p.cq, 0) == 0);
	pl_connect(&p, post_receive);
	pl_post(&p, 0, IBV_WR_SEND, mr, buf[1], sizeof(buf[1]), 0);
	wait_completions(&p, 2);
	post_receive(&p);
	pl_sync(&p);
	printf("pid %d\nwaiting\n", getpid());
	/* One event may be left, of a completion that was polled between
	 * asking for the event and looking. */
	for (;;) {
		take_event(&p);
		if (ibv_poll_cq(p.cq, 1, &wc) != 0)
			pl_die("a completion that nobody caused");
	}
}
