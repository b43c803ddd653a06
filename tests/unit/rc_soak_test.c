/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rc_soak_test.c - a million messages both ways, of every kind, through the
 * wrap of the PSN, over a wire that loses, doubles and reorders from a seed.
 * Each completes once, in order, with the right bytes; atomics count right.
 */
#include "rc_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/prng.h"

#define SLOTS 32u
#define SLOT_BYTES 4096u
#define SEND_AT 0x000000u  /* gathered from */
#define RECV_AT 0x100000u  /* receives land here */
#define WRITE_AT 0x200000u /* WRITEs of the peer land here */
#define READ_AT 0x300000u  /* the peer READs this; never changes */
#define COUNT_AT 0x3ff000u /* the peer's atomics */

struct sent {
	uint8_t op;
	uint32_t len;
	uint64_t counted; /* atomics before this one */
};

struct side {
	uint64_t posted, done; /* messages */
	uint64_t sends, atomics;
	uint64_t received;
	struct sent ring[SLOTS];
	/* SENDs in order, for the receiver: no more than SLOTS under way */
	uint32_t send_len[SLOTS];
	uint64_t send_seed[SLOTS];
};

struct soak {
	struct rig *r;
	struct prng rng, wire;
	uint32_t lose_ppm, twice_ppm, delay_ppm;
	uint32_t max_len;
	struct side s[2];
};

static struct rig_fate mangle(struct rig *r, int from, const struct pkt *p,
			      void *arg)
{
	struct soak *k = arg;
	struct rig_fate f = { .copies = 1 };

	(void)r;
	(void)from;
	(void)p;
	if (prng_chance(&k->wire, k->lose_ppm))
		f.copies = 0;
	else if (prng_chance(&k->wire, k->twice_ppm))
		f.copies = 2;
	if (prng_chance(&k->wire, k->delay_ppm))
		f.delay_ns = (int64_t)prng_below(&k->wire, 20000);
	return f;
}

static uint8_t byte_of(uint64_t seed, uint32_t i)
{
	return (uint8_t)(seed * 131 + i * 7 + (seed >> 8));
}

static void fill(struct soak *k, int h, uint32_t off, uint32_t len,
		 uint64_t seed)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		k->r->h[h].mem[off + i] = byte_of(seed, i);
}

static void check(struct soak *k, int h, uint32_t off, uint32_t len,
		  uint64_t seed)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		assert_int_equal(k->r->h[h].mem[off + i], byte_of(seed, i));
}

static uint32_t slot(uint64_t n)
{
	return (uint32_t)(n % SLOTS) * SLOT_BYTES;
}

static enum wr_opcode any_op(struct soak *k)
{
	static const enum wr_opcode ops[] = { WR_SEND,	   WR_SEND,
					      WR_SEND_IMM, WR_WRITE,
					      WR_WRITE,	   WR_READ,
					      WR_READ,	   WR_FETCH_ADD };

	return ops[prng_below(&k->rng, ARRAY_SIZE(ops))];
}

static void post_one(struct soak *k, int h)
{
	struct side *s = &k->s[h];
	enum wr_opcode op = any_op(k);
	uint32_t len = (uint32_t)prng_below(&k->rng, k->max_len + 1);
	uint64_t n = s->posted++;
	struct sent *t = &s->ring[n % SLOTS];
	struct sge sge;
	struct send_wr wr = { .wr_id = n,
			      .sge = &sge,
			      .num_sge = 1,
			      .opcode = op,
			      .flags = WR_SIGNALED,
			      .rkey = mr_key(k->r->h[!h].mr),
			      .compare_add = 1 };

	if (op == WR_FETCH_ADD)
		len = 8;
	*t = (struct sent){ .op = (uint8_t)op, .len = len };
	sge = rig_sge(k->r, h, SEND_AT + slot(n), len);
	wr.num_sge = len ? 1 : 0;
	if (op == WR_FETCH_ADD) {
		t->counted = s->atomics++;
		wr.remote_addr = RIG_IOVA + COUNT_AT;
	} else if (op == WR_READ) {
		wr.remote_addr = RIG_IOVA + READ_AT;
		memset(k->r->h[h].mem + SEND_AT + slot(n), 0xa5, len);
	} else {
		wr.remote_addr = RIG_IOVA + WRITE_AT + slot(n);
		fill(k, h, SEND_AT + slot(n), len, n);
	}
	if (op == WR_SEND || op == WR_SEND_IMM) {
		s->send_len[s->sends % SLOTS] = len;
		s->send_seed[s->sends++ % SLOTS] = n;
	}
	assert_int_equal(rig_post_wr(k->r, h, &wr), 0);
}

static void one_done(struct soak *k, int h, const struct wc *wc)
{
	struct side *s = &k->s[h];
	uint64_t n = s->done++, old;
	const struct sent *t = &s->ring[n % SLOTS];

	assert_int_equal(wc->status, WC_SUCCESS);
	assert_int_equal(wc->wr_id, n);
	switch (t->op) {
	case WR_WRITE:
		check(k, !h, WRITE_AT + slot(n), t->len, n);
		break;
	case WR_READ:
		check(k, h, SEND_AT + slot(n), t->len, 1);
		break;
	case WR_FETCH_ADD:
		memcpy(&old, k->r->h[h].mem + SEND_AT + slot(n), 8);
		assert_int_equal(old, t->counted);
		break;
	default:
		break;
	}
}

static void one_received(struct soak *k, int h, const struct wc *wc)
{
	uint64_t n = k->s[h].received++;
	struct side *from = &k->s[!h];

	assert_int_equal(wc->status, WC_SUCCESS);
	assert_int_equal(wc->wr_id, n);
	assert_true(n < from->sends);
	assert_int_equal(wc->byte_len, from->send_len[n % SLOTS]);
	check(k, h, RECV_AT + slot(n), wc->byte_len,
	      from->send_seed[n % SLOTS]);
}

static void reap(struct soak *k, int h)
{
	struct wc wc;

	while (rig_wc(k->r, h, false, &wc)) {
		uint64_t n = k->s[h].received + SLOTS;

		one_received(k, h, &wc);
		assert_int_equal(
			rig_recv(k->r, h, RECV_AT + slot(n), SLOT_BYTES, n), 0);
	}
	while (rig_wc(k->r, h, true, &wc))
		one_done(k, h, &wc);
}

static void start(struct soak *k, const struct rig_conf *c, uint64_t seed)
{
	uint64_t i;
	int h;

	k->r = rig_new(c);
	prng_init(&k->rng, seed);
	k->wire = prng_split(&k->rng, "wire");
	k->r->fate = mangle;
	k->r->fate_arg = k;
	for (h = 0; h < 2; h++) {
		fill(k, h, READ_AT, SLOT_BYTES, 1);
		for (i = 0; i < SLOTS; i++)
			assert_int_equal(rig_recv(k->r, h, RECV_AT + slot(i),
						  SLOT_BYTES, i),
					 0);
	}
}

static void soak(struct soak *k, uint64_t messages)
{
	uint64_t last = 0;
	int64_t stuck_at = 0;
	int h;

	while (k->s[0].done < messages || k->s[1].done < messages) {
		uint64_t done = k->s[0].done + k->s[1].done;

		for (h = 0; h < 2; h++) {
			uint64_t burst = prng_below(&k->rng, 8);

			/* a SEND's slot is free when its receive was seen */
			while (burst-- && k->s[h].posted < messages &&
			       k->s[h].posted - k->s[h].done < SLOTS &&
			       k->s[h].sends - k->s[!h].received < SLOTS)
				post_one(k, h);
		}
		rig_run(k->r, k->r->now_ns + 3000);
		for (h = 0; h < 2; h++)
			reap(k, h);
		if (done != last)
			stuck_at = k->r->now_ns;
		last = done;
		assert_true(k->r->now_ns - stuck_at < INT64_C(1000000000));
	}
}

static void finish(struct soak *k)
{
	uint64_t counted;
	int h;

	rig_settle(k->r);
	for (h = 0; h < 2; h++) {
		rig_expect_none(k->r, h);
		memcpy(&counted, k->r->h[!h].mem + COUNT_AT, 8);
		assert_int_equal(counted, k->s[h].atomics);
		assert_int_equal(k->s[!h].received, k->s[h].sends);
		assert_int_equal(hca_deadline(k->r->h[h].hca), INT64_MAX);
	}
	rig_free(k->r);
}

/* A million small ones, the wrap about in the middle, light weather. */
static void million(void **state)
{
	struct rig_conf c = { .mtu = MTU_256,
			      .retry_cnt = 7,
			      .timeout = 5,
			      .rnr_retry = 7,
			      .min_rnr_timer = 1,
			      .sq_psn = { PSN_MASK - 250000, PSN_MASK } };
	struct soak k = { .lose_ppm = 2000,
			  .twice_ppm = 2000,
			  .delay_ppm = 2000,
			  .max_len = 40 };

	(void)state;
	start(&k, &c, 1);
	soak(&k, 500000);
	assert_true(rig_counter(k.r, 0, req_retransmits) > 1000);
	finish(&k);
}

/* Bad weather at every MTU, with budgets of a few packets and of many. */
static void storm(void **state)
{
	static const uint32_t budgets[] = { 0, 4500, 20000, 100000 };
	uint32_t m, b;

	(void)state;
	for (m = MTU_256; m <= MTU_4096; m++) {
		for (b = 0; b < ARRAY_SIZE(budgets); b++) {
			struct rig_conf c = {
				.mtu = (enum mtu_code)m,
				.retry_cnt = 7,
				.timeout = 6,
				.rnr_retry = 7,
				.min_rnr_timer = 1,
				.max_rd_atomic = (uint8_t)(1 + b),
				.max_dest_rd_atomic = (uint8_t)(1 + b),
				.use_srq = b & 1,
				.tx_gap_ns = b & 2 ? 700 : 0,
				.dest_budget = budgets[b],
				.read_budget = budgets[b],
				.sq_psn = { PSN_MASK - 500 * m, 7 }
			};
			struct soak k = { .lose_ppm = 20000,
					  .twice_ppm = 20000,
					  .delay_ppm = 30000,
					  .max_len = SLOT_BYTES };

			start(&k, &c, m * 10 + b);
			soak(&k, 1500);
			finish(&k);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(million),
		cmocka_unit_test(storm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
