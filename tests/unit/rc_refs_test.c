/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rc_refs_test.c - frames that stand for several packets, their payload by
 * reference: as many PSNs as packets, and a reference that cannot be followed
 * costs neither data nor a retry.
 */
#include "rc_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define ROFF 0x100000u
#define FRAME 16384u /* 16 packets */

static struct rig *rig_refs(uint8_t retry_cnt)
{
	const struct rig_conf c = { .retry_cnt = retry_cnt,
				    .rnr_retry = 7,
				    .frame_bytes = FRAME };

	return rig_new(&c);
}

static void send_one(struct rig *r, uint32_t len, unsigned seed)
{
	rig_fill(r, 0, 0, len, seed);
	memset(r->h[1].mem + ROFF, 0, len);
	assert_int_equal(rig_recv(r, 1, ROFF, len, seed), 0);
	assert_int_equal(rig_post(r, 0, WR_SEND, 0, 0, len, WR_SIGNALED, seed),
			 0);
	rig_settle(r);
	rig_expect(r, 0, true, seed, WC_SUCCESS);
	rig_expect(r, 1, false, seed, WC_SUCCESS);
	assert_true(rig_same(r, 1, ROFF, len, seed));
}

/* Lengths around packets and frames; PSNs are what they would be anyway. */
static void lengths(void **state)
{
	static const uint32_t lens[] = { 1,	1024,	1025,	2048,
					 16384, 16385,	17408,	17409,
					 32768, 100000, 1000000 };
	struct rig *r = rig_refs(7);
	uint32_t frames = 0, pkts = 0;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(lens); i++) {
		uint32_t last = lens[i] % FRAME;

		send_one(r, lens[i], i);
		frames += lens[i] / FRAME + (last > 1024);
		pkts += (lens[i] + 1023) / 1024;
	}
	assert_int_equal(r->refs_out, frames);
	assert_int_equal(rig_counter(r, 0, req_retransmits), 0);
	assert_int_equal(rig_counter(r, 1, rsp_seq_naks), 0);
	/* And the ACKs of the other side. */
	assert_int_equal(rig_counter(r, 0, tx_pkts), pkts);
	rig_free(r);
}

static void writes(void **state)
{
	struct rig *r = rig_refs(7);

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		uint32_t len = 5000 + i * 31111;

		rig_fill(r, 0, 0, len, i);
		assert_int_equal(
			rig_post(r, 0, WR_WRITE, 0, ROFF, len, WR_SIGNALED, i),
			0);
		rig_settle(r);
		rig_expect(r, 0, true, i, WC_SUCCESS);
		assert_true(rig_same(r, 1, ROFF, len, i));
	}
	assert_true(r->refs_out > 4);
	rig_free(r);
}

/* What cannot be had comes again by value, and takes no retry: not even with
 * retry_cnt 0. */
static void lost_refs(void **state)
{
	struct rig *r = rig_refs(0);

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		r->lose_refs = 1;
		send_one(r, 40000 + i, i);
		assert_int_equal(r->lose_refs, 0);
	}
	assert_int_equal(rig_counter(r, 1, rsp_refs_lost), 8);
	assert_int_equal(rig_counter(r, 0, req_timeouts), 0);
	rig_free(r);
}

/* The sender's own memory is gone: its gather says it, by the book. */
static void gone_memory(void **state)
{
	struct rig *r = rig_refs(7);

	(void)state;
	r->h[0].hole_lo = RIG_VA + 8192;
	r->h[0].hole_hi = RIG_VA + 8200;
	assert_int_equal(rig_recv(r, 1, ROFF, 20000, 1), 0);
	assert_int_equal(rig_post(r, 0, WR_SEND, 0, 0, 20000, WR_SIGNALED, 1),
			 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_LOC_PROT_ERR);
	assert_true(r->voided > 0);
	rig_free(r);
}

/* A link that cannot read them gets single packets. */
static void refused_refs(void **state)
{
	struct rig *r = rig_refs(0);

	(void)state;
	r->refuse_refs = true;
	send_one(r, 50000, 1);
	send_one(r, 50000, 2);
	assert_int_equal(r->refs_out, 0);
	rig_free(r);
}

static rig_fate_fn lose_some;
static struct rig_fate lose_some(struct rig *r, int from, const struct pkt *p,
				 void *arg)
{
	unsigned *n = arg;

	(void)r;
	(void)from;
	(void)p;
	return (struct rig_fate){ .copies = ++*n % 5 == 0 ? 0
					    : *n % 7 == 0 ? 2
							  : 1 };
}

/* Frames lost and doubled, ACKs too: whole ones and parts are told apart. */
static void losses(void **state)
{
	struct rig *r = rig_refs(7);
	unsigned n = 0;

	(void)state;
	r->fate = lose_some;
	r->fate_arg = &n;
	for (unsigned i = 0; i < 30; i++)
		send_one(r, 3000 + i * 7001, i);
	assert_true(rig_counter(r, 0, req_retransmits) > 0);
	rig_free(r);
}

/* The receiver is not ready: the same frame's packets come again. */
static void not_ready(void **state)
{
	struct rig *r = rig_refs(7);

	(void)state;
	rig_fill(r, 0, 0, 30000, 5);
	assert_int_equal(rig_post(r, 0, WR_SEND, 0, 0, 30000, WR_SIGNALED, 5),
			 0);
	rig_run(r, r->now_ns + 20000);
	assert_int_equal(rig_recv(r, 1, ROFF, 30000, 5), 0);
	rig_settle(r);
	rig_expect(r, 0, true, 5, WC_SUCCESS);
	rig_expect(r, 1, false, 5, WC_SUCCESS);
	assert_true(rig_same(r, 1, ROFF, 30000, 5));
	rig_free(r);
}

/* A blocked way stops its QPs; they go on when it opens. */
static void blocked(void **state)
{
	struct rig *r = rig_refs(7);

	(void)state;
	hca_out_block(r->h[0].hca, 1);
	assert_int_equal(rig_recv(r, 1, ROFF, 100, 1), 0);
	assert_int_equal(rig_post(r, 0, WR_SEND, 0, 0, 100, WR_SIGNALED, 1), 0);
	rig_run(r, r->now_ns + 1000000);
	assert_int_equal(r->logged, 0);
	assert_false(hca_tx_pending(r->h[0].hca));
	hca_out_unblock(r->h[0].hca, 1);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths),	cmocka_unit_test(writes),
		cmocka_unit_test(lost_refs),	cmocka_unit_test(gone_memory),
		cmocka_unit_test(refused_refs), cmocka_unit_test(losses),
		cmocka_unit_test(not_ready),	cmocka_unit_test(blocked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
