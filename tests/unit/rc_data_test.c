/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc_data_test.c - clean RC traffic: what goes onto the wire and what arrives
 * [IBA 9.7.3, 9.7.5.1]. */
#include "rc_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define ROFF 0x100000u
#define ONE_MS INT64_C(1000000)

static uint32_t pkts_of(uint32_t len, uint32_t mtu)
{
	return len ? (len + mtu - 1) / mtu : 1;
}

static enum op want_op(enum wr_opcode op, uint32_t i, uint32_t n)
{
	bool imm = op == WR_SEND_IMM || op == WR_WRITE_IMM;
	bool send = op == WR_SEND || op == WR_SEND_IMM;

	if (n == 1)
		return send ? (imm ? OP_SEND_ONLY_IMM : OP_SEND_ONLY)
			    : (imm ? OP_WRITE_ONLY_IMM : OP_WRITE_ONLY);
	if (i == 0)
		return send ? OP_SEND_FIRST : OP_WRITE_FIRST;
	if (i + 1 < n)
		return send ? OP_SEND_MIDDLE : OP_WRITE_MIDDLE;
	return send ? (imm ? OP_SEND_LAST_IMM : OP_SEND_LAST)
		    : (imm ? OP_WRITE_LAST_IMM : OP_WRITE_LAST);
}

static void check_wire(struct rig *r, enum wr_opcode op, uint32_t len,
		       uint32_t psn)
{
	uint32_t mtu = mtu_bytes(r->conf.mtu), n = pkts_of(len, mtu), i;

	for (i = 0; i < n; i++) {
		const struct rig_log *l = rig_nth(r, 0, i);
		bool last = i + 1 == n;

		assert_int_equal(opcode_op(l->pkt.bth.opcode),
				 want_op(op, i, n));
		assert_int_equal(l->pkt.bth.psn.v, (psn + i) & PSN_MASK);
		assert_int_equal(l->pkt.payload_bytes,
				 last ? len - i * mtu : mtu);
		assert_int_equal(l->pkt.bth.solicited, last && op != WR_WRITE);
		if (last)
			assert_true(l->pkt.bth.ackreq);
		assert_int_equal(l->tos & 3, ECN_ECT0);
		assert_int_equal(l->pkt.bth.dest_qpn, qp_num(r->h[1].qp));
		if (i == 0 && (op == WR_WRITE || op == WR_WRITE_IMM)) {
			assert_int_equal(l->pkt.ext.reth.len_bytes, len);
			assert_int_equal(l->pkt.ext.reth.va, RIG_IOVA + ROFF);
		}
	}
}

static void check_recv(struct rig *r, enum wr_opcode op, uint32_t len)
{
	struct wc wc;

	if (op == WR_WRITE) {
		rig_expect_none(r, 1);
		return;
	}
	assert_true(rig_wc(r, 1, false, &wc));
	assert_int_equal(wc.status, WC_SUCCESS);
	assert_int_equal(wc.wr_id, 77);
	assert_int_equal(wc.byte_len, len); /* B016, B035 */
	assert_int_equal(wc.src_qpn, qp_num(r->h[0].qp));
	assert_int_equal(wc.opcode,
			 op == WR_WRITE_IMM ? WC_RECV_RDMA_WITH_IMM : WC_RECV);
	if (op == WR_SEND) {
		assert_int_equal(wc.wc_flags & WC_WITH_IMM, 0);
	} else {
		assert_int_equal(wc.wc_flags & WC_WITH_IMM, WC_WITH_IMM);
		assert_memory_equal(&wc.imm_be_or_rkey, "\x01\x02\x03\x04", 4);
	}
}

static void one_message(struct rig *r, enum wr_opcode op, uint32_t len,
			uint32_t *psn)
{
	struct sge sge = rig_sge(r, 0, 3, len);
	struct send_wr wr = { .wr_id = 5,
			      .sge = &sge,
			      .num_sge = len ? 1 : 0,
			      .opcode = op,
			      .flags = WR_SIGNALED | WR_SOLICITED,
			      .remote_addr = RIG_IOVA + ROFF,
			      .rkey = mr_key(r->h[1].mr) };

	memcpy(&wr.imm_be_or_rkey, "\x01\x02\x03\x04", 4);
	rig_forget(r);
	rig_fill(r, 0, 3, len, len + op);
	memset(r->h[1].mem + ROFF, 0xee, len + 1);
	if (op != WR_WRITE)
		assert_int_equal(rig_recv(r, 1, ROFF, len, 77), 0);
	assert_int_equal(rig_post_wr(r, 0, &wr), 0);
	rig_settle(r);
	rig_expect(r, 0, true, 5, WC_SUCCESS);
	assert_true(rig_same(r, 1, ROFF, len, len + op));
	assert_int_equal(r->h[1].mem[ROFF + len], 0xee);
	check_wire(r, op, len, *psn);
	check_recv(r, op, len);
	*psn += pkts_of(len, mtu_bytes(r->conf.mtu));
}

/* Every MTU, sizes around its multiples, four opcodes; PSNs wrap on the way. */
static void segmentation(void **state)
{
	static const enum wr_opcode ops[] = { WR_SEND, WR_SEND_IMM, WR_WRITE,
					      WR_WRITE_IMM };
	uint32_t m, s, o;

	(void)state;
	for (m = MTU_256; m <= MTU_4096; m++) {
		struct rig_conf c = { .mtu = (enum mtu_code)m,
				      .sq_psn = { 0xfffff5, 0xfffffe },
				      .retry_cnt = 7 };
		struct rig *r = rig_new(&c);
		uint32_t mtu = mtu_bytes((enum mtu_code)m), psn = 0xfffff5;
		uint32_t sizes[] = { 0,		  1,	   2,	    3,
				     mtu - 1,	  mtu,	   mtu + 1, 2 * mtu,
				     3 * mtu + 5, 40 * mtu };

		for (s = 0; s < ARRAY_SIZE(sizes); s++) {
			for (o = 0; o < ARRAY_SIZE(ops); o++)
				one_message(r, ops[o], sizes[s], &psn);
		}
		assert_int_equal(rig_counter(r, 0, req_retransmits), 0);
		rig_free(r);
	}
}

static void check_responses(struct rig *r, uint32_t len, uint32_t psn)
{
	uint32_t mtu = mtu_bytes(r->conf.mtu), n = pkts_of(len, mtu), i;

	for (i = 0; i < n; i++) {
		const struct pkt *p = &rig_nth(r, 1, i)->pkt;
		enum op want = n == 1	    ? OP_READ_RESP_ONLY
			       : i == 0	    ? OP_READ_RESP_FIRST
			       : i + 1 == n ? OP_READ_RESP_LAST
					    : OP_READ_RESP_MIDDLE;

		assert_int_equal(opcode_op(p->bth.opcode), want);
		assert_int_equal(p->bth.psn.v, (psn + i) & PSN_MASK);
		assert_false(p->bth.ackreq);
	}
}

static void read_sizes(void **state)
{
	uint32_t m, s;

	(void)state;
	for (m = MTU_256; m <= MTU_4096; m++) {
		struct rig_conf c = { .mtu = (enum mtu_code)m,
				      .sq_psn = { 0xfffffa, 1 },
				      .retry_cnt = 7 };
		struct rig *r = rig_new(&c);
		uint32_t mtu = mtu_bytes((enum mtu_code)m), psn = 0xfffffa;
		uint32_t sizes[] = { 0, 1, mtu - 1, mtu, mtu + 1, 9 * mtu + 3 };

		for (s = 0; s < ARRAY_SIZE(sizes); s++) {
			uint32_t len = sizes[s];

			rig_forget(r);
			rig_fill(r, 1, ROFF, len, s);
			memset(r->h[0].mem, 0xee, len + 1);
			assert_int_equal(rig_post(r, 0, WR_READ, 0, ROFF, len,
						  WR_SIGNALED, s),
					 0);
			rig_settle(r);
			rig_expect(r, 0, true, s, WC_SUCCESS);
			assert_true(rig_same(r, 0, 0, len, s));
			assert_int_equal(r->h[0].mem[len], 0xee);
			check_responses(r, len, psn);
			psn += pkts_of(len, mtu);
		}
		rig_free(r);
	}
}

static void atomic(struct rig *r, enum wr_opcode op, uint64_t a, uint64_t swap,
		   uint64_t want_old, uint64_t want_new)
{
	struct sge sge = rig_sge(r, 0, 64, 8);
	struct send_wr wr = { .wr_id = 9,
			      .sge = &sge,
			      .num_sge = 1,
			      .opcode = op,
			      .flags = WR_SIGNALED,
			      .remote_addr = RIG_IOVA + ROFF,
			      .rkey = mr_key(r->h[1].mr),
			      .compare_add = a,
			      .swap = swap };
	uint64_t old, now;

	assert_int_equal(rig_post_wr(r, 0, &wr), 0);
	rig_settle(r);
	rig_expect(r, 0, true, 9, WC_SUCCESS);
	memcpy(&old, r->h[0].mem + 64, 8);
	memcpy(&now, r->h[1].mem + ROFF, 8);
	assert_int_equal(old, want_old);
	assert_int_equal(now, want_new);
}

static void atomics(void **state)
{
	struct rig *r = rig_new(NULL);

	(void)state;
	atomic(r, WR_FETCH_ADD, 5, 0, 0, 5);
	atomic(r, WR_FETCH_ADD, ~UINT64_C(0), 0, 5, 4);
	atomic(r, WR_CMP_SWAP, 3, 100, 4, 4);
	atomic(r, WR_CMP_SWAP, 4, UINT64_C(1) << 40, 4, UINT64_C(1) << 40);
	assert_int_equal(rig_counter(r, 1, rsp_atomic_msgs), 4);
	rig_free(r);
}

/* B013: no bytes, no key, no address. */
static void zero_length_ignores_the_key(void **state)
{
	struct rig *r = rig_new(NULL);
	struct send_wr wr = { .wr_id = 1,
			      .opcode = WR_WRITE,
			      .flags = WR_SIGNALED,
			      .remote_addr = UINT64_MAX,
			      .rkey = 0xdeadbeef };

	(void)state;
	assert_int_equal(rig_post_wr(r, 0, &wr), 0);
	wr.opcode = WR_READ;
	wr.wr_id = 2;
	assert_int_equal(rig_post_wr(r, 0, &wr), 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	rig_expect(r, 0, true, 2, WC_SUCCESS);
	rig_free(r);
}

static void gather_and_scatter(void **state)
{
	struct rig *r = rig_new(NULL);
	struct sge s[3] = { rig_sge(r, 0, 0, 700), rig_sge(r, 0, 700, 1),
			    rig_sge(r, 0, 701, 2000) };
	struct sge d[2] = { rig_sge(r, 1, 0, 1500), rig_sge(r, 1, 1500, 3000) };
	struct send_wr wr = { .wr_id = 1,
			      .sge = s,
			      .num_sge = 3,
			      .opcode = WR_SEND,
			      .flags = WR_SIGNALED };
	struct recv_wr rw = { .wr_id = 2, .sge = d, .num_sge = 2 };

	(void)state;
	rig_fill(r, 0, 0, 2701, 4);
	assert_int_equal(qp_post_recv(r->h[1].qp, &rw), 0);
	assert_int_equal(rig_post_wr(r, 0, &wr), 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	rig_expect(r, 1, false, 2, WC_SUCCESS);
	assert_true(rig_same(r, 1, 0, 2701, 4));
	rig_free(r);
}

/* Unsignaled requests are silent; the signaled one behind them speaks. */
static void unsignaled(void **state)
{
	struct rig *r = rig_new(NULL);
	uint32_t i;

	(void)state;
	for (i = 0; i < 50; i++)
		assert_int_equal(rig_post(r, 0, WR_WRITE, 0, ROFF, 8,
					  i == 49 ? WR_SIGNALED : 0, i),
				 0);
	rig_settle(r);
	rig_expect(r, 0, true, 49, WC_SUCCESS);
	rig_expect_none(r, 0);
	assert_int_equal(rig_counter(r, 0, req_write_msgs), 50);
	rig_free(r);
}

/* No timer is left when all is said: idle means no wake-ups. */
static void idle_has_no_deadline(void **state)
{
	struct rig *r = rig_new(NULL);

	(void)state;
	assert_int_equal(
		rig_post(r, 0, WR_WRITE, 0, ROFF, 5000, WR_SIGNALED, 1), 0);
	rig_settle(r);
	rig_expect(r, 0, true, 1, WC_SUCCESS);
	assert_int_equal(hca_deadline(r->h[0].hca), INT64_MAX);
	assert_true(r->now_ns < ONE_MS);
	rig_free(r);
}

/* Both directions at once, every kind of request, on an SRQ. */
static void both_ways_on_srq(void **state)
{
	struct rig_conf c = { .use_srq = true, .retry_cnt = 7 };
	struct rig *r = rig_new(&c);
	int h, i;

	(void)state;
	for (h = 0; h < 2; h++) {
		rig_fill(r, h, 0, 20000, 7 + (uint32_t)h);
		assert_int_equal(rig_recv(r, h, 0x200000, 20000, 100), 0);
	}
	for (i = 0; i < 2; i++) {
		for (h = 0; h < 2; h++)
			assert_int_equal(rig_post(r, h, i ? WR_SEND : WR_READ,
						  i ? 0 : 0x80000, 0, 20000,
						  WR_SIGNALED, (uint64_t)i),
					 0);
	}
	rig_settle(r);
	for (h = 0; h < 2; h++) {
		rig_expect(r, h, true, 0, WC_SUCCESS);
		rig_expect(r, h, true, 1, WC_SUCCESS);
		rig_expect(r, h, false, 100, WC_SUCCESS);
		assert_true(rig_same(r, h, 0x200000, 20000, 8 - (uint32_t)h));
		assert_true(rig_same(r, h, 0x80000, 20000, 8 - (uint32_t)h));
	}
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segmentation),
		cmocka_unit_test(read_sizes),
		cmocka_unit_test(atomics),
		cmocka_unit_test(zero_length_ignores_the_key),
		cmocka_unit_test(gather_and_scatter),
		cmocka_unit_test(unsignaled),
		cmocka_unit_test(idle_has_no_deadline),
		cmocka_unit_test(both_ways_on_srq),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
