/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * instructions.c - the core's hot paths, each in a function measured_* of its
 * own that callgrind counts: bench_instructions.py. Two adapters, frames by
 * hand, no clock, so that every run executes the same instructions. Prints how
 * many operations each function did.
 *
 * Payloads are small: how many instructions memcpy takes depends on the CPU.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../unit/core_rig.h"

enum {
	BATCH = 16,
	ROUNDS = 64,
	OPS = BATCH * ROUNDS,
	WRITE_BYTES = 64,
};

#define MEASURED __attribute__((noipa)) static void

static struct rig rig;
static struct rig_pair pair;

/* Frames on their way. */
struct wire {
	uint8_t bytes[BATCH][PKT_MAX + ICRC_BYTES];
	struct rx_frame f[BATCH];
	unsigned n;
};
static struct wire there, back;
static uint64_t sink; /* so that nothing is left out */

/* ---- what is measured, BATCH operations each ---- */

MEASURED measured_post_send_inline(struct qp *qp, const struct send_wr *wr)
{
	for (int i = 0; i < BATCH; i++) {
		if (qp_post_send(qp, wr))
			fail();
		qp_ring(qp);
	}
}

MEASURED measured_post_recv(struct qp *qp, const struct recv_wr *wr)
{
	for (int i = 0; i < BATCH; i++)
		if (qp_post_recv(qp, wr))
			fail();
}

static void take_frames(struct rig_host *h, struct wire *w)
{
	hca_doorbells(h->hca, 0);
	for (w->n = 0; w->n < BATCH; w->n++) {
		struct tx_frame t = { .pkt = w->bytes[w->n] };

		if (!hca_tx(h->hca, 0xffff, &t, 0))
			break;
		w->f[w->n] = (struct rx_frame){ .pkt = t.pkt,
						.len_bytes = t.len_bytes,
						.src = t.path->sgid,
						.dst = t.path->dgid,
						.tos = t.tos,
						.ttl = 64,
						.sport = t.path->sport };
		hca_tx_done(h->hca, &t);
	}
}

MEASURED measured_tx_send(struct rig_host *h, struct wire *w)
{
	take_frames(h, w);
}

static void give_frames(struct rig_host *h, const struct wire *w)
{
	for (unsigned i = 0; i < w->n; i++)
		hca_rx(h->hca, &w->f[i], 0);
}

MEASURED measured_rx_send(struct rig_host *h, const struct wire *w)
{
	give_frames(h, w);
}

MEASURED measured_rx_write(struct rig_host *h, const struct wire *w)
{
	give_frames(h, w);
}

/* The ACKs of a batch of SENDs, and their completions. */
MEASURED measured_rx_ack(struct rig_host *h, const struct wire *w)
{
	give_frames(h, w);
}

MEASURED measured_poll_one(struct cq *cq)
{
	struct wc wc;

	for (int i = 0; i < BATCH; i++) {
		if (cq_poll(cq, 1, &wc) != 1 || wc.status != WC_SUCCESS)
			fail();
	}
}

MEASURED measured_poll_batch(struct cq *cq)
{
	struct wc wc[BATCH];

	if (cq_poll(cq, BATCH, wc) != BATCH)
		fail();
}

MEASURED measured_poll_empty(struct cq *cq)
{
	struct wc wc;

	for (int i = 0; i < BATCH; i++)
		if (cq_poll(cq, 1, &wc) != 0)
			fail();
}

MEASURED measured_pkt_parse(const struct wire *w)
{
	struct pkt p;

	for (int i = 0; i < BATCH; i++) {
		if (pkt_decode(&p, w->f[i].pkt, w->f[i].len_bytes) != PKT_OK)
			fail();
		sink += p.bth.dest_qpn;
	}
}

MEASURED measured_pkt_build(const struct pkt *p, uint8_t *to)
{
	for (int i = 0; i < BATCH; i++)
		sink += pkt_encode_headers(p, to);
}

/* ---- rounds ---- */

static void sends(void)
{
	struct rig_end *a = &pair.e[0], *b = &pair.e[1];
	struct sge from = { RIG_VA, 8, 0 };
	struct sge to = { RIG_VA + 4096, 64, mr_key(b->mr) };
	struct send_wr wr = { .sge = &from,
			      .num_sge = 1,
			      .opcode = WR_SEND,
			      .flags = WR_SIGNALED | WR_INLINE };
	struct recv_wr rwr = { .sge = &to, .num_sge = 1 };

	measured_post_recv(b->qp, &rwr);
	measured_post_send_inline(a->qp, &wr);
	measured_tx_send(a->host, &there);
	assert_int_equal(there.n, BATCH);
	measured_rx_send(b->host, &there);
	take_frames(b->host, &back);
	assert_true(back.n > 0);
	measured_rx_ack(a->host, &back);
	measured_poll_one(a->scq);
	measured_poll_empty(a->scq);
	measured_poll_batch(b->rcq);
}

static void writes(void)
{
	struct rig_end *a = &pair.e[0], *b = &pair.e[1];
	struct send_wr wr = { .opcode = WR_WRITE,
			      .flags = WR_SIGNALED,
			      .remote_addr = RIG_VA + 8192,
			      .rkey = mr_key(b->mr) };
	struct pkt p;
	uint8_t hdr[PKT_HDR_MAX];
	struct wc wc[BATCH];

	for (int i = 0; i < BATCH; i++)
		assert_int_equal(rig_post_send(a, wr, 0, WRITE_BYTES), 0);
	take_frames(a->host, &there);
	assert_int_equal(there.n, BATCH);
	measured_pkt_parse(&there);
	assert_int_equal(pkt_decode(&p, there.f[0].pkt, there.f[0].len_bytes),
			 PKT_OK);
	measured_pkt_build(&p, hdr);
	measured_rx_write(b->host, &there);
	take_frames(b->host, &back);
	give_frames(a->host, &back);
	assert_int_equal(cq_poll(a->scq, BATCH, wc), BATCH);
}

/* Receives to spare, and a first ACK that tells the peer of them. */
static void warm_up(void)
{
	struct rig_end *a = &pair.e[0], *b = &pair.e[1];
	struct send_wr wr = { .opcode = WR_SEND };

	for (uint32_t i = 0; i < 2 * BATCH; i++)
		assert_int_equal(rig_post_recv(b, i, 4096, 64), 0);
	for (int i = 0; i < BATCH; i++) {
		wr.flags = i == BATCH - 1 ? WR_SIGNALED : 0;
		assert_int_equal(rig_post_send(a, wr, 0, 8), 0);
	}
	rig_pump(&rig);
	rig_poll(a->scq);
	for (int i = 0; i < BATCH; i++)
		rig_poll(b->rcq);
}

static void everything(void **state)
{
	struct rig_pair_config c = { .type = QP_TYPE_RC,
				     .cap = { .max_send_wr = 2 * BATCH,
					      .max_recv_wr = 4 * BATCH } };

	(void)state;
	rig_open(&rig, NULL);
	rig_pair_open(&pair, &rig, &c);
	warm_up();
	for (int i = 0; i < ROUNDS; i++) {
		sends();
		writes();
	}
	rig_pair_close(&pair);
	rig_close(&rig);
	printf("operations %d\n", OPS);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(everything) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
