/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rc_fuzz_test.c - a peer that sends anything, at a QP with work of its own
 * under way: no invariant breaks, every WR completes once and in order, memory
 * that is not registered for the peer is not touched.
 */
#include "rc_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/prng.h"

#define LIVES 1000
#define PACKETS 200
#define OPEN_AT 0x10000u /* what the peer may touch */
#define OPEN_BYTES 0x4000u

struct fuzz {
	struct rig *r;
	struct prng rng;
	struct mr *open;
	uint64_t posted, done, rposted, rdone;
	uint32_t req_psn; /* about where the peer's requests are */
	uint32_t rsp_psn; /* about where our requests are */
	uint8_t junk[4200];
};

static uint32_t below(struct fuzz *z, uint32_t n)
{
	return (uint32_t)prng_below(&z->rng, n);
}

static bool often(struct fuzz *z)
{
	return below(z, 8) != 0;
}

static uint32_t any_len(struct fuzz *z)
{
	uint32_t mtu = mtu_bytes(z->r->conf.mtu);
	const uint32_t lens[] = { 0,	   mtu,	    mtu, below(z, mtu + 1),
				  mtu - 4, mtu + 4, 8,	 below(z, 4097) };

	return lens[below(z, ARRAY_SIZE(lens))];
}

static void post_some(struct fuzz *z)
{
	while (z->posted - z->done < 8) {
		static const enum wr_opcode ops[] = { WR_SEND, WR_WRITE,
						      WR_READ, WR_FETCH_ADD,
						      WR_READ, WR_WRITE_IMM };
		enum wr_opcode op = ops[below(z, ARRAY_SIZE(ops))];
		uint32_t len = op == WR_FETCH_ADD ? 8 : below(z, 5000);

		/* answers land in the open part, so that the rest stays zero */
		assert_int_equal(
			rig_post(z->r, 0, op, OPEN_AT, 0, len,
				 WR_SIGNALED |
					 (below(z, 4) == 0 ? WR_FENCE : 0),
				 z->posted++),
			0);
	}
	while (z->rposted - z->rdone < 4)
		assert_int_equal(rig_recv(z->r, 0, OPEN_AT, below(z, 4096),
					  z->rposted++),
				 0);
}

static void reap(struct fuzz *z)
{
	struct wc wc;

	while (rig_wc(z->r, 0, true, &wc))
		assert_int_equal(wc.wr_id, z->done++);
	while (rig_wc(z->r, 0, false, &wc))
		assert_int_equal(wc.wr_id, z->rdone++);
	assert_true(z->done <= z->posted && z->rdone <= z->rposted);
}

/* Mostly plausible, so that it gets past the first checks. */
static void any_packet(struct fuzz *z, struct pkt *p)
{
	uint32_t key = often(z) ? mr_key(z->open) : (uint32_t)prng_u64(&z->rng);
	uint64_t va = RIG_IOVA + OPEN_AT + below(z, OPEN_BYTES);

	if (below(z, 16) == 0)
		va = prng_u64(&z->rng);
	do {
		p->bth.opcode = (uint8_t)below(z, 32);
	} while (!opcode_lookup(p->bth.opcode)->name);
	p->bth.ackreq = below(z, 2);
	p->bth.solicited = below(z, 2);
	p->ext.reth = (struct reth){
		.va = va,
		.rkey = key,
		.len_bytes = below(z, 8) ? any_len(z) : below(z, UINT32_MAX)
	};
	p->ext.atomiceth = (struct atomiceth){ .va = often(z) ? va & ~7ull : va,
					       .rkey = key,
					       .swap_or_add = 3 };
	p->ext.aeth = (struct aeth){
		.syndrome = (uint8_t)(often(z) ? below(z, 64) : below(z, 256)),
		.msn = below(z, 1u << 24)
	};
	p->ext.atomicacketh = prng_u64(&z->rng);
}

/* A request as a peer in its senses makes it, of one packet. */
static void good_request(struct fuzz *z, struct pkt *p, uint32_t *ret_len)
{
	static const enum op ops[] = { OP_SEND_ONLY,	OP_WRITE_ONLY,
				       OP_READ_REQUEST, OP_FETCH_ADD,
				       OP_CMP_SWAP,	OP_WRITE_ONLY_IMM };
	uint32_t mtu = mtu_bytes(z->r->conf.mtu);
	uint32_t len = below(z, (mtu < 1024 ? mtu : 1024) + 1);

	p->bth.opcode = (uint8_t)ops[below(z, ARRAY_SIZE(ops))];
	p->ext.reth.va = RIG_IOVA + OPEN_AT + below(z, 4096);
	p->ext.reth.rkey = p->ext.atomiceth.rkey = mr_key(z->open);
	p->ext.atomiceth.va = RIG_IOVA + OPEN_AT + 8 * below(z, 100);
	p->ext.reth.len_bytes = len;
	if (p->bth.opcode == OP_READ_REQUEST)
		p->ext.reth.len_bytes = below(z, 9000);
	*ret_len =
		opcode_lookup(p->bth.opcode)->flags & OPCODE_PAYLOAD ? len : 0;
}

/* PSNs that the request takes. */
static uint32_t takes(struct fuzz *z, const struct pkt *p)
{
	uint32_t mtu = mtu_bytes(z->r->conf.mtu), n = p->ext.reth.len_bytes;

	if (!(p->info->flags & OPCODE_READ) || n == 0)
		return 1;
	return (n + mtu - 1) / mtu;
}

static void good_packet(struct fuzz *z)
{
	struct pkt p = { 0 };
	uint32_t len, back = below(z, 6) ? 0 : below(z, 6);

	p.bth.ackreq = below(z, 2);
	good_request(z, &p, &len);
	p.bth.psn = psn_of(z->req_psn - back);
	p.info = opcode_lookup(p.bth.opcode);
	if (back == 0)
		z->req_psn += takes(z, &p);
	if (below(z, 4))
		rig_inject(z->r, 0, &p, z->junk, len);
	else
		rig_inject_held(z->r, 0, &p, z->junk, len);
}

/* READ data as asked for, some of it lost. */
static void answer_read(struct fuzz *z, const struct pkt *q)
{
	uint32_t mtu = mtu_bytes(z->r->conf.mtu), n = takes(z, q), i;
	uint32_t left = q->ext.reth.len_bytes;

	for (i = 0; i < n; i++) {
		struct pkt p = { .bth.psn = psn_add(q->bth.psn, (int32_t)i),
				 .ext.aeth.syndrome = 0x1f };
		uint32_t len = left < mtu ? left : mtu;

		p.bth.opcode = n == 1	    ? OP_READ_RESP_ONLY
			       : i == 0	    ? OP_READ_RESP_FIRST
			       : i + 1 == n ? OP_READ_RESP_LAST
					    : OP_READ_RESP_MIDDLE;
		if (below(z, 20))
			rig_inject_held(z->r, 0, &p, z->junk, len);
		left -= len;
	}
}

/* What a peer would answer, but for what is lost and for NAKs out of a whim. */
static void answer(struct fuzz *z, const struct pkt *q)
{
	static const uint8_t whims[] = { 0x1f, 0x1f, 0x1f, 0x02, 0x60, 0x21 };
	struct pkt p = { .bth = { .opcode = OP_ACK, .psn = q->bth.psn },
			 .ext.aeth.syndrome = 0x1f };

	if (!often(z))
		return;
	if (q->info->flags & OPCODE_READ) {
		answer_read(z, q);
		return;
	}
	if (q->info->flags & OPCODE_ATOMIC)
		p.bth.opcode = OP_ATOMIC_ACK;
	else
		p.ext.aeth.syndrome = whims[below(z, ARRAY_SIZE(whims))];
	if (q->bth.ackreq)
		rig_inject_held(z->r, 0, &p, NULL, 0);
}

static void answer_requests(struct fuzz *z)
{
	uint32_t n = z->r->logged < RIG_LOG_MAX ? z->r->logged : RIG_LOG_MAX;
	uint32_t i;

	for (i = 0; i < n; i++) {
		const struct pkt *q = &z->r->log[i].pkt;

		if (!(q->info->flags & OPCODE_REQUEST))
			continue;
		z->rsp_psn = q->bth.psn.v;
		answer(z, q);
	}
	rig_forget(z->r);
}

static void send_packet(struct fuzz *z)
{
	struct pkt p = { 0 };
	const struct opcode_info *i;
	uint32_t *psn, len;

	any_packet(z, &p);
	i = opcode_lookup(p.bth.opcode);
	psn = i->flags & OPCODE_RESPONSE ? &z->rsp_psn : &z->req_psn;
	if (below(z, 32) == 0)
		*psn = (uint32_t)prng_u64(&z->rng);
	p.bth.psn = psn_of(*psn + (often(z) ? 0 : below(z, 9) - 4));
	*psn += often(z);
	len = i->flags & OPCODE_PAYLOAD ? any_len(z) : 0;
	if (below(z, 4))
		rig_inject(z->r, 0, &p, z->junk, len);
	else
		rig_inject_held(z->r, 0, &p, z->junk, len);
}

static void nothing_else_was_touched(struct fuzz *z)
{
	const uint8_t *m = z->r->h[0].mem;
	uint32_t i;

	for (i = 0; i < OPEN_AT; i++)
		assert_int_equal(m[i], 0);
	for (i = OPEN_AT + OPEN_BYTES; i < 2 * OPEN_AT + OPEN_BYTES; i++)
		assert_int_equal(m[i], 0);
}

static void life(uint64_t seed, uint64_t *lived)
{
	struct fuzz z = { 0 };
	struct rig_conf c = { .no_peer = true };
	struct qp_attr err = { .state = QP_STATE_ERR };
	struct mr_attr ma = { .va = RIG_VA + OPEN_AT,
			      .iova = RIG_IOVA + OPEN_AT,
			      .len_bytes = OPEN_BYTES,
			      .access = ACCESS_LOCAL_WRITE |
					ACCESS_REMOTE_WRITE |
					ACCESS_REMOTE_READ |
					ACCESS_REMOTE_ATOMIC };
	uint32_t i;

	prng_init(&z.rng, seed);
	c.mtu = (enum mtu_code)(1 + below(&z, 5));
	c.retry_cnt = c.rnr_retry = 7;
	c.timeout = 6;
	c.max_rd_atomic = c.max_dest_rd_atomic = (uint8_t)(1 + below(&z, 6));
	c.dest_budget = c.read_budget = below(&z, 2) * (1 + below(&z, 60000));
	c.use_srq = below(&z, 2);
	c.sq_psn[0] = z.rsp_psn = PSN_MASK - below(&z, 60);
	c.sq_psn[1] = z.req_psn = PSN_MASK - below(&z, 60);
	z.r = rig_new(&c);
	memset(z.junk, 0x5a, sizeof(z.junk));
	assert_int_equal(mr_reg(z.r->h[0].pd, &ma, &z.open), 0);
	for (i = 0; i < PACKETS && qp_state(z.r->h[0].qp) == QP_STATE_RTS;
	     i++) {
		post_some(&z);
		if (below(&z, 60))
			good_packet(&z);
		else
			send_packet(&z);
		answer_requests(&z);
		rig_run(z.r, z.r->now_ns + below(&z, 30000));
		reap(&z);
	}
	*lived += i;
	assert_int_equal(
		qp_modify(z.r->h[0].qp, &err, QP_ATTR_STATE, z.r->now_ns), 0);
	rig_settle(z.r);
	reap(&z);
	assert_int_equal(z.done, z.posted);
	if (!c.use_srq)
		assert_int_equal(z.rdone, z.rposted);
	assert_int_equal(hca_deadline(z.r->h[0].hca), INT64_MAX);
	nothing_else_was_touched(&z);
	assert_int_equal(mr_dereg(z.open), 0);
	rig_free(z.r);
}

static void anything(void **state)
{
	uint64_t seed, lived = 0;

	(void)state;
	for (seed = 1; seed <= LIVES; seed++)
		life(seed, &lived);
	/* far enough into each life to be worth it */
	assert_true(lived > 30 * LIVES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
