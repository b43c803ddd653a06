/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_rsp_test.c - the responder of host 0 against requests that the test makes
 * [IBA 9.7.4, 9.7.5.2]. */
#include "rc_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Requests are written by position; what is left out is zero. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define PSN0 200u
#define MTU 1024u

static uint8_t data[4096];

static struct rig *victim(const struct rig_conf *conf)
{
	struct rig_conf c = conf ? *conf : (struct rig_conf){ .retry_cnt = 1 };

	c.no_peer = true;
	c.sq_psn[1] = PSN0;
	return rig_new(&c);
}

struct req { /* one request packet */
	enum op op;
	uint32_t psn; /* from PSN0 */
	uint32_t len; /* payload */
	uint32_t reth_len;
	uint64_t va;  /* from RIG_IOVA */
	uint32_t key; /* 0: the right one */
	bool ackreq;
};

static void put(struct rig *r, const struct req *q)
{
	struct pkt p = { .bth = { .opcode = q->op,
				  .psn = psn_of(PSN0 + q->psn),
				  .ackreq = q->ackreq } };
	uint32_t key = q->key ? q->key : mr_key(r->h[0].mr);

	p.ext.reth = (struct reth){ .va = RIG_IOVA + q->va,
				    .rkey = key,
				    .len_bytes = q->reth_len };
	p.ext.atomiceth = (struct atomiceth){ .va = RIG_IOVA + q->va,
					      .rkey = key,
					      .swap_or_add = 1 };
	rig_inject(r, 0, &p, data, q->len);
}

#define PUT(r, ...) put(r, &(struct req){ __VA_ARGS__ })

/* The last frame of host 0 is this AETH. */
static void last_is(struct rig *r, enum op op, uint32_t psn, uint8_t syndrome)
{
	const struct rig_log *l = &r->log[r->logged - 1];

	assert_true(r->logged > 0);
	assert_int_equal(opcode_op(l->pkt.bth.opcode), op);
	assert_int_equal(l->pkt.bth.psn.v, PSN0 + psn);
	assert_int_equal(l->pkt.ext.aeth.syndrome, syndrome);
}

static uint8_t nak(enum nak_code code)
{
	return aeth_syndrome(AETH_NAK, (uint8_t)code);
}

#define NO_CREDITS 0x1f

static const struct {
	struct req first; /* op 0 with len 0: none */
	struct req bad;
} invalid[] = {
	{ .bad = { OP_SEND_MIDDLE, 0, MTU } },
	{ .bad = { OP_SEND_LAST, 0, 4 } },
	{ .bad = { OP_SEND_LAST_IMM, 0, 4 } },
	{ .bad = { OP_WRITE_MIDDLE, 0, MTU } },
	{ .bad = { OP_WRITE_LAST, 0, 4 } },
	{ .bad = { OP_WRITE_LAST_IMM, 0, 4 } },
	{ { OP_SEND_FIRST, 0, MTU }, { OP_SEND_FIRST, 1, MTU } },
	{ { OP_SEND_FIRST, 0, MTU }, { OP_SEND_ONLY, 1, 4 } },
	{ { OP_SEND_FIRST, 0, MTU }, { OP_WRITE_MIDDLE, 1, MTU } },
	{ { OP_SEND_FIRST, 0, MTU }, { OP_WRITE_LAST, 1, 4 } },
	{ { OP_SEND_FIRST, 0, MTU }, { OP_WRITE_ONLY, 1, 4, 4 } },
	{ { OP_SEND_FIRST, 0, MTU }, { OP_READ_REQUEST, 1, 0, 4 } },
	{ { OP_SEND_FIRST, 0, MTU }, { OP_FETCH_ADD, 1 } },
	{ { OP_WRITE_FIRST, 0, MTU, 4000 }, { OP_SEND_LAST, 1, 4 } },
	{ { OP_WRITE_FIRST, 0, MTU, 4000 }, { OP_WRITE_FIRST, 1, MTU, 4000 } },
	{ { OP_WRITE_FIRST, 0, MTU, 4000 }, { OP_READ_REQUEST, 1, 0, 4 } },
	/* lengths */
	{ .bad = { OP_SEND_FIRST, 0, MTU - 4 } },
	{ .bad = { OP_SEND_FIRST, 0, MTU + 4 } },
	{ .bad = { OP_SEND_ONLY, 0, MTU + 4 } },
	{ { OP_SEND_FIRST, 0, MTU }, { OP_SEND_MIDDLE, 1, MTU - 4 } },
	{ { OP_SEND_FIRST, 0, MTU }, { OP_SEND_LAST, 1, 0 } },
	{ { OP_SEND_FIRST, 0, MTU }, { OP_SEND_LAST, 1, MTU + 1 } },
	{ .bad = { OP_WRITE_ONLY, 0, 4, 8 } },
	{ .bad = { OP_WRITE_ONLY, 0, 8, 4 } },
	{ .bad = { OP_WRITE_ONLY, 0, 0, 4 } },
	{ .bad = { OP_WRITE_FIRST, 0, MTU, MTU } },
	{ .bad = { OP_WRITE_FIRST, 0, MTU - 4, 4000 } },
	{ { OP_WRITE_FIRST, 0, MTU, 2 * MTU }, { OP_WRITE_MIDDLE, 1, MTU } },
	{ { OP_WRITE_FIRST, 0, MTU, 2 * MTU }, { OP_WRITE_LAST, 1, MTU - 4 } },
	{ { OP_WRITE_FIRST, 0, MTU, MTU + 4 }, { OP_WRITE_LAST, 1, 8 } },
	{ .bad = { OP_READ_REQUEST, 0, 0, 0x80000001u } },
	{ .bad = { OP_WRITE_FIRST, 0, MTU, 0x80000001u } },
	/* atomics */
	{ .bad = { OP_FETCH_ADD, 0, 0, 0, 4 } },
	{ .bad = { OP_CMP_SWAP, 0, 0, 0, 1 } },
	/* not built */
	{ .bad = { OP_ATOMIC_WRITE, 0, 8, 8 } },
	{ .bad = { OP_ATOMIC_WRITE, 0, 0, 0 } },
	{ .bad = { OP_FLUSH, 0, 0, 0 } },
};

/* Opcodes out of their place, lengths that are not right (B020), what is not
 * built (B023): NAK invalid request, error state, QP_REQ_ERR. */
static void invalid_requests(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(invalid); i++) {
		struct rig *r = victim(NULL);

		assert_int_equal(rig_recv(r, 0, 0, 65536, 1), 0);
		if (invalid[i].first.len)
			put(r, &invalid[i].first);
		assert_int_equal(r->logged, 0);
		put(r, &invalid[i].bad);
		last_is(r, OP_ACK, invalid[i].bad.psn,
			nak(NAK_INVALID_REQUEST));
		assert_int_equal(r->logged, 1);
		assert_int_equal(qp_state(r->h[0].qp), QP_STATE_ERR);
		assert_true(rig_async(r, 0, ASYNC_QP_REQ_ERR));
		rig_expect(r, 0, false, 1, WC_WR_FLUSH_ERR);
		assert_int_equal(rig_counter(r, 0, rsp_inv_req_naks), 1);
		/* No more from a dead QP. */
		put(r, &invalid[i].bad);
		assert_int_equal(r->logged, 1);
		rig_free(r);
	}
}

/* Keys, bounds, permissions [IBA 9.7.4.1.5]; B025. */
static void access_violations(void **state)
{
	static const struct {
		struct req q;
		uint32_t access; /* of the region; 0: all */
	} cases[] = {
		{ { OP_WRITE_ONLY, 0, 4, 4, .key = 0xdeadbeef }, 0 },
		{ { OP_WRITE_ONLY, 0, 4, 4, .va = RIG_MEM_BYTES - 3 }, 0 },
		{ { OP_WRITE_ONLY, 0, 4, 4, .va = ~UINT64_C(0) }, 0 },
		{ { OP_WRITE_FIRST, 0, MTU, 2048, .va = RIG_MEM_BYTES - 2047 },
		  0 },
		{ { OP_WRITE_ONLY, 0, MTU, MTU,
		    .va = UINT64_MAX - 1023 - RIG_IOVA },
		  0 },
		{ { OP_READ_REQUEST, 0, 0, 4, .key = 1 }, 0 },
		{ { OP_READ_REQUEST, 0, 0, 4, .va = RIG_MEM_BYTES - 3 }, 0 },
		{ { OP_FETCH_ADD, 0, .va = RIG_MEM_BYTES }, 0 },
		{ { OP_CMP_SWAP, 0, .key = 77 }, 0 },
		{ { OP_WRITE_ONLY, 0, 4, 4 }, ACCESS_REMOTE_READ },
		{ { OP_READ_REQUEST, 0, 0, 4 }, ACCESS_LOCAL_WRITE },
		{ { OP_FETCH_ADD, 0 },
		  ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE },
	};
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig *r = victim(NULL);
		struct mr_attr ma = { .va = RIG_VA,
				      .iova = RIG_IOVA,
				      .len_bytes = RIG_MEM_BYTES,
				      .access = cases[i].access };
		struct req q = cases[i].q;
		struct mr *mr = NULL;

		if (cases[i].access) {
			assert_int_equal(mr_reg(r->h[0].pd, &ma, &mr), 0);
			q.key = mr_key(mr);
		}
		put(r, &q);
		last_is(r, OP_ACK, 0, nak(NAK_REMOTE_ACCESS));
		assert_int_equal(qp_state(r->h[0].qp), QP_STATE_ERR);
		assert_true(rig_async(r, 0, ASYNC_QP_ACCESS_ERR));
		assert_int_equal(rig_counter(r, 0, rsp_access_naks), 1);
		if (mr)
			assert_int_equal(mr_dereg(mr), 0);
		rig_free(r);
	}
}

/* A kind of request that the QP does not take is an invalid request. */
static void qp_access_flags(void **state)
{
	static const struct req reqs[] = { { OP_WRITE_ONLY, 0, 4, 4 },
					   { OP_WRITE_ONLY, 0, 0, 0 },
					   { OP_READ_REQUEST, 0, 0, 4 },
					   { OP_FETCH_ADD, 0 } };
	struct rig_conf c = { .access = 1u << 31, .retry_cnt = 1 };
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(reqs); i++) {
		struct rig *r = victim(&c);

		put(r, &reqs[i]);
		last_is(r, OP_ACK, 0, nak(NAK_INVALID_REQUEST));
		assert_true(rig_async(r, 0, ASYNC_QP_REQ_ERR));
		rig_free(r);
	}
}

/* One NAK a gap; the rest is silence until the missing packet comes. */
static void gap(void **state)
{
	struct rig_conf c = { .use_srq = true };
	struct rig *r = victim(&c);
	uint32_t i;

	(void)state;
	for (i = 1; i < 5; i++)
		PUT(r, OP_WRITE_ONLY, i, 4, 4);
	last_is(r, OP_ACK, 0, nak(NAK_PSN_SEQUENCE));
	assert_int_equal(r->logged, 1);
	assert_int_equal(rig_counter(r, 0, rx_drop_out_of_seq), 3);
	PUT(r, OP_WRITE_ONLY, 0, 4, 4, .ackreq = true);
	last_is(r, OP_ACK, 0, NO_CREDITS);
	PUT(r, OP_WRITE_ONLY, 7, 4, 4); /* the next gap */
	last_is(r, OP_ACK, 1, nak(NAK_PSN_SEQUENCE));
	assert_int_equal(rig_counter(r, 0, rsp_seq_naks), 2);
	rig_free(r);
}

/* While an RNR NAK stands, later packets are dropped; the same one again is
 * looked at anew. MSN counts messages. */
static void rnr(void **state)
{
	struct rig_conf c = { .use_srq = true, .min_rnr_timer = 9 };
	struct rig *r = victim(&c);

	(void)state;
	PUT(r, OP_SEND_ONLY, 0, 4, .ackreq = true);
	last_is(r, OP_ACK, 0, aeth_syndrome(AETH_RNR_NAK, 9));
	PUT(r, OP_SEND_ONLY, 1, 4, .ackreq = true);
	assert_int_equal(r->logged, 1);
	assert_int_equal(rig_counter(r, 0, rx_drop_rnr_wait), 1);
	PUT(r, OP_SEND_ONLY, 0, 4, .ackreq = true);
	assert_int_equal(r->logged, 2);
	assert_int_equal(rig_recv(r, 0, 0, 64, 1), 0);
	PUT(r, OP_SEND_ONLY, 0, 4, .ackreq = true);
	last_is(r, OP_ACK, 0, NO_CREDITS);
	assert_int_equal(r->log[2].pkt.ext.aeth.msn, 1);
	rig_expect(r, 0, false, 1, WC_SUCCESS);
	assert_int_equal(rig_counter(r, 0, rsp_rnr_naks), 2);
	rig_free(r);
}

/* A SEND that does not fit: LOC_LEN_ERR here, invalid request there (B041). */
static void too_long_for_the_receive(void **state)
{
	struct rig *r = victim(NULL);

	(void)state;
	assert_int_equal(rig_recv(r, 0, 0, 1500, 1), 0);
	assert_int_equal(rig_recv(r, 0, 0, 1500, 2), 0);
	PUT(r, OP_SEND_FIRST, 0, MTU);
	PUT(r, OP_SEND_LAST, 1, 600);
	last_is(r, OP_ACK, 1, nak(NAK_INVALID_REQUEST));
	rig_expect(r, 0, false, 1, WC_LOC_LEN_ERR);
	rig_expect(r, 0, false, 2, WC_WR_FLUSH_ERR);
	assert_int_equal(qp_state(r->h[0].qp), QP_STATE_ERR);
	rig_free(r);
}

/* The receive's own key is wrong: LOC_PROT_ERR, remote operational error. */
static void receive_with_a_bad_key(void **state)
{
	struct rig *r = victim(NULL);
	struct sge sge = { .addr = RIG_IOVA, .len_bytes = 64, .lkey = 5 };
	struct recv_wr wr = { .wr_id = 1, .sge = &sge, .num_sge = 1 };

	(void)state;
	assert_int_equal(qp_post_recv(r->h[0].qp, &wr), 0);
	PUT(r, OP_SEND_ONLY, 0, 8);
	last_is(r, OP_ACK, 0, nak(NAK_REMOTE_OPERATIONAL));
	rig_expect(r, 0, false, 1, WC_LOC_PROT_ERR);
	rig_free(r);
}

/* Unmapped memory under a good key: remote operational error. */
static void memory_fails(void **state)
{
	static const struct req reqs[] = { { OP_WRITE_ONLY, 0, 8, 8 },
					   { OP_READ_REQUEST, 0, 0, 8 },
					   { OP_FETCH_ADD, 0 } };
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(reqs); i++) {
		struct rig *r = victim(NULL);

		r->h[0].hole_lo = RIG_VA;
		r->h[0].hole_hi = RIG_VA + 4096;
		put(r, &reqs[i]);
		last_is(r, OP_ACK, 0, nak(NAK_REMOTE_OPERATIONAL));
		assert_int_equal(qp_state(r->h[0].qp), QP_STATE_ERR);
		assert_int_equal(rig_counter(r, 0, rsp_op_naks), 1);
		rig_free(r);
	}
}

/* The region goes away in the middle of a WRITE (B011). */
static void region_gone_in_mid_write(void **state)
{
	struct rig *r = victim(NULL);
	uint32_t key = mr_key(r->h[0].mr);

	(void)state;
	PUT(r, OP_WRITE_FIRST, 0, MTU, 3 * MTU);
	assert_int_equal(mr_dereg(r->h[0].mr), 0);
	r->h[0].mr = NULL;
	PUT(r, OP_WRITE_MIDDLE, 1, MTU, .key = key);
	last_is(r, OP_ACK, 1, nak(NAK_REMOTE_ACCESS));
	rig_free(r);
}

/* Duplicates of SEND and WRITE: acknowledged, not carried out. */
static void duplicates(void **state)
{
	struct rig_conf c = { .use_srq = true };
	struct rig *r = victim(&c);

	(void)state;
	assert_int_equal(rig_recv(r, 0, 4096, 64, 1), 0);
	memset(data, 1, sizeof(data));
	PUT(r, OP_SEND_ONLY, 0, 8, .ackreq = true);
	PUT(r, OP_WRITE_ONLY, 1, 8, 8, .ackreq = true);
	memset(data, 2, sizeof(data));
	PUT(r, OP_SEND_ONLY, 0, 8, .ackreq = true);
	last_is(r, OP_ACK, 0, NO_CREDITS);
	PUT(r, OP_WRITE_ONLY, 1, 8, 8, .ackreq = true);
	last_is(r, OP_ACK, 1, NO_CREDITS);
	assert_int_equal(r->h[0].mem[0], 1);
	assert_int_equal(r->h[0].mem[4096], 1);
	rig_expect(r, 0, false, 1, WC_SUCCESS);
	rig_expect_none(r, 0);
	assert_int_equal(rig_counter(r, 0, rsp_duplicates), 2);
	rig_free(r);
}

/* B005: the original value, again and again; memory changes once. A PSN that
 * was no atomic is no atomic. */
static void duplicate_atomic(void **state)
{
	struct rig *r = victim(NULL);
	uint32_t i;

	(void)state;
	r->h[0].mem[0] = 5;
	PUT(r, OP_FETCH_ADD, 0, .ackreq = true);
	PUT(r, OP_FETCH_ADD, 1, .ackreq = true);
	PUT(r, OP_WRITE_ONLY, 2, 8, 8, .va = 64);
	for (i = 0; i < 4; i++)
		PUT(r, OP_FETCH_ADD, i & 1, .ackreq = true);
	for (i = 0; i < 6; i++) {
		const struct rig_log *l = rig_nth_op(r, 0, OP_ATOMIC_ACK, i);

		assert_int_equal(l->pkt.bth.psn.v, PSN0 + (i & 1));
		assert_int_equal(l->pkt.ext.atomicacketh, 5 + (i & 1));
	}
	assert_int_equal(r->h[0].mem[0], 7);
	assert_int_equal(rig_counter(r, 0, rsp_atomic_replays), 4);
	i = r->logged;
	PUT(r, OP_FETCH_ADD, 2);
	assert_int_equal(r->logged, i);
	assert_int_equal(rig_counter(r, 0, rx_drop_duplicate), 1);
	rig_free(r);
}

/* A READ again from a later packet on: FIRST at that PSN, data from memory. */
static void duplicate_read(void **state)
{
	struct rig *r = victim(NULL);
	uint32_t i;

	(void)state;
	PUT(r, OP_READ_REQUEST, 0, 0, 5 * MTU);
	assert_int_equal(r->logged, 5);
	PUT(r, OP_WRITE_ONLY, 5, 4, 4, .ackreq = true);
	rig_forget(r);
	PUT(r, OP_READ_REQUEST, 2, 0, 3 * MTU, .va = 2 * MTU);
	assert_int_equal(r->logged, 3);
	for (i = 0; i < 3; i++)
		assert_int_equal(r->log[i].pkt.bth.psn.v, PSN0 + 2 + i);
	assert_int_equal(opcode_op(r->log[0].pkt.bth.opcode),
			 OP_READ_RESP_FIRST);
	assert_int_equal(opcode_op(r->log[2].pkt.bth.opcode),
			 OP_READ_RESP_LAST);
	/* past what was asked for: not a duplicate of anything */
	PUT(r, OP_READ_REQUEST, 2, 0, 10 * MTU);
	assert_int_equal(r->logged, 3);
	assert_int_equal(rig_counter(r, 0, rx_drop_duplicate), 1);
	/* the next new request is still the one after the WRITE */
	PUT(r, OP_WRITE_ONLY, 6, 4, 4, .ackreq = true);
	assert_int_equal(r->log[3].pkt.bth.psn.v, PSN0 + 6);
	rig_free(r);
}

/* A ghost of a READ whose region is gone is refused, but nobody dies. */
static void ghost_read(void **state)
{
	struct rig *r = victim(NULL);
	uint32_t key = mr_key(r->h[0].mr);

	(void)state;
	PUT(r, OP_READ_REQUEST, 0, 0, 8);
	assert_int_equal(mr_dereg(r->h[0].mr), 0);
	r->h[0].mr = NULL;
	PUT(r, OP_READ_REQUEST, 0, 0, 8, .key = key);
	last_is(r, OP_ACK, 0, nak(NAK_REMOTE_ACCESS));
	assert_int_equal(qp_state(r->h[0].qp), QP_STATE_RTS);
	rig_free(r);
}

/* Requests beyond max_dest_rd_atomic: invalid. All arrive in one go, before a
 * response could leave. */
static void more_than_the_resources(void **state)
{
	uint32_t allowed, i;

	(void)state;
	for (allowed = 0; allowed < 4; allowed++) {
		struct rig_conf c = {
			.max_dest_rd_atomic = (uint8_t)(allowed ? allowed : 255)
		};
		struct rig *r = victim(&c);
		uint8_t buf[64];
		struct rx_frame f = { .pkt = buf,
				      .src = gid_from_v4(0x0a000002),
				      .dst = gid_from_v4(0x0a000001) };

		for (i = 0; i <= allowed; i++) {
			struct pkt p = {
				.bth = { .opcode = OP_READ_REQUEST,
					 .pkey = BTH_PKEY_DEFAULT,
					 .psn = psn_of(PSN0 + i),
					 .dest_qpn = qp_num(r->h[0].qp) },
				.ext.reth = { .va = RIG_IOVA,
					      .rkey = mr_key(r->h[0].mr),
					      .len_bytes = 8 }
			};

			f.len_bytes = (uint32_t)pkt_encode_headers(&p, buf);
			hca_rx(r->h[0].hca, &f, 0);
		}
		assert_int_equal(qp_state(r->h[0].qp), QP_STATE_ERR);
		rig_settle(r);
		/* what was promised before is still answered, in order */
		assert_int_equal(rig_count(r, 0, OP_READ_RESP_ONLY), allowed);
		last_is(r, OP_ACK, allowed, nak(NAK_INVALID_REQUEST));
		rig_free(r);
	}
}

static void set_resources(struct rig *r, enum qp_state state, uint8_t n)
{
	struct qp_attr a = { .state = state, .max_dest_rd_atomic = n };

	assert_int_equal(qp_modify(r->h[0].qp, &a,
				   QP_ATTR_STATE | QP_ATTR_MAX_DEST_RD_ATOMIC,
				   r->now_ns),
			 0);
}

/* B110: the limit may change while the responder works. */
static void resources_change(void **state)
{
	struct rig_conf c = { .max_dest_rd_atomic = 255 };
	struct rig *r = victim(&c);
	struct qp_attr sqd = { .state = QP_STATE_SQD };

	(void)state;
	assert_int_equal(qp_modify(r->h[0].qp, &sqd, QP_ATTR_STATE, 0), 0);
	set_resources(r, QP_STATE_SQD, 4);
	PUT(r, OP_READ_REQUEST, 0, 0, 8);
	last_is(r, OP_READ_RESP_ONLY, 0, r->log[0].pkt.ext.aeth.syndrome);
	set_resources(r, QP_STATE_SQD, 0);
	PUT(r, OP_READ_REQUEST, 1, 0, 8);
	last_is(r, OP_ACK, 1, nak(NAK_INVALID_REQUEST));
	rig_free(r);
}

/* A larger limit needs more room: results that were kept and answers that wait
 * move there. */
static void resources_grow(void **state)
{
	struct rig_conf c = { .max_dest_rd_atomic = 1 };
	struct rig *r = victim(&c);
	struct qp_attr sqd = { .state = QP_STATE_SQD };
	struct pkt again = { .bth = { .opcode = OP_FETCH_ADD,
				      .psn = psn_of(PSN0 + 1) },
			     .ext.atomiceth = { .va = RIG_IOVA,
						.rkey = mr_key(r->h[0].mr),
						.swap_or_add = 1 } };

	(void)state;
	r->h[0].mem[0] = 40;
	assert_int_equal(qp_modify(r->h[0].qp, &sqd, QP_ATTR_STATE, 0), 0);
	PUT(r, OP_FETCH_ADD, 0);
	PUT(r, OP_FETCH_ADD, 1);
	rig_inject_held(r, 0, &again, NULL, 0); /* its answer waits */
	set_resources(r, QP_STATE_SQD, 3);
	set_resources(r, QP_STATE_SQD, 2); /* never shrinks */
	set_resources(r, QP_STATE_SQD, 128);
	rig_settle(r);
	last_is(r, OP_ATOMIC_ACK, 1, r->log[0].pkt.ext.aeth.syndrome);
	PUT(r, OP_FETCH_ADD, 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(rig_nth_op(r, 0, OP_ATOMIC_ACK, i)
					 ->pkt.ext.atomicacketh,
				 i == 0 || i == 3 ? 40 : 41);
	assert_int_equal(r->h[0].mem[0], 42);
	rig_free(r);
}

/* An ACK never overtakes the answers of a READ that came before it, and a
 * READ's answers spare the ACK in front of them. */
static void responses_in_order(void **state)
{
	struct rig *r = victim(NULL);
	struct rx_frame f = { .src = gid_from_v4(0x0a000002),
			      .dst = gid_from_v4(0x0a000001) };
	static const struct {
		uint8_t op;
		uint32_t psn;
	} in[] = { { OP_WRITE_ONLY, 0 },
		   { OP_READ_REQUEST, 1 },
		   { OP_WRITE_ONLY, 3 },
		   { OP_WRITE_ONLY, 4 } };
	static const uint32_t out[] = { 1, 2, 4 };
	uint8_t buf[64];
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(in); i++) {
		bool read = in[i].op == OP_READ_REQUEST;
		struct pkt p = { .bth = { .opcode = in[i].op,
					  .pkey = BTH_PKEY_DEFAULT,
					  .psn = psn_of(PSN0 + in[i].psn),
					  .ackreq = true,
					  .dest_qpn = qp_num(r->h[0].qp) },
				 .ext.reth = { .va = RIG_IOVA,
					       .rkey = mr_key(r->h[0].mr),
					       .len_bytes =
						       read ? 2 * MTU : 0 } };

		f.pkt = buf;
		f.len_bytes = (uint32_t)pkt_encode_headers(&p, buf);
		hca_rx(r->h[0].hca, &f, 0);
	}
	rig_settle(r);
	assert_int_equal(r->logged, ARRAY_SIZE(out));
	for (i = 0; i < ARRAY_SIZE(out); i++)
		assert_int_equal(r->log[i].pkt.bth.psn.v, PSN0 + out[i]);
	last_is(r, OP_ACK, 4, r->log[2].pkt.ext.aeth.syndrome);
	assert_int_equal(r->log[0].pkt.ext.aeth.msn, 2);
	assert_int_equal(r->log[2].pkt.ext.aeth.msn, 4);
	rig_free(r);
}

/* Credits are what the receive queue holds; none stated with an SRQ. */
static void credits_stated(void **state)
{
	struct rig *r = victim(NULL);
	uint32_t i;

	(void)state;
	for (i = 0; i < 6; i++)
		assert_int_equal(rig_recv(r, 0, 0, 4096, i), 0);
	PUT(r, OP_WRITE_ONLY, 0, 4, 4, .ackreq = true);
	assert_int_equal(aeth_credits(r->log[0].pkt.ext.aeth.syndrome), 6);
	PUT(r, OP_SEND_FIRST, 1, MTU, .ackreq = true);
	/* in the middle of message MSN + 1, which has its WQE */
	assert_int_equal(aeth_credits(r->log[1].pkt.ext.aeth.syndrome), 6);
	PUT(r, OP_SEND_LAST, 2, 4, .ackreq = true);
	assert_int_equal(aeth_credits(r->log[2].pkt.ext.aeth.syndrome),
			 aeth_credits(aeth_credit_code(5)));
	rig_free(r);
}

/* The first good packet on a QP in RTR raises COMM_EST. */
static void comm_est(void **state)
{
	struct rig_conf c = { .rtr_only = true, .retry_cnt = 1 };
	struct rig *r = rig_new(&c);

	(void)state;
	assert_int_equal(rig_post(r, 0, WR_WRITE, 0, 0, 8, WR_SIGNALED, 1), 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	assert_true(rig_async(r, 1, ASYNC_COMM_EST));
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(invalid_requests),
		cmocka_unit_test(access_violations),
		cmocka_unit_test(qp_access_flags),
		cmocka_unit_test(gap),
		cmocka_unit_test(rnr),
		cmocka_unit_test(too_long_for_the_receive),
		cmocka_unit_test(receive_with_a_bad_key),
		cmocka_unit_test(memory_fails),
		cmocka_unit_test(region_gone_in_mid_write),
		cmocka_unit_test(duplicates),
		cmocka_unit_test(duplicate_atomic),
		cmocka_unit_test(duplicate_read),
		cmocka_unit_test(ghost_read),
		cmocka_unit_test(more_than_the_resources),
		cmocka_unit_test(resources_change),
		cmocka_unit_test(resources_grow),
		cmocka_unit_test(responses_in_order),
		cmocka_unit_test(credits_stated),
		cmocka_unit_test(comm_est),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
