/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Verbs in any order, from a seed, on two adapters whose wire loses frames,
 * whose memory has holes and whose allocations fail. What must hold whatever
 * happens: each accepted WR completes once and in its queue's order, nothing
 * completes with success behind an error, everything can be destroyed and
 * nothing is left.
 */
#include "core_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/obj/qp.h"

#define PAIRS 3
#define STEPS 1500
#define SEEDS 24

struct side {
	struct rig_end *e;
	struct ah *ah;
	uint64_t sends, recvs;	 /* ids: accepted */
	uint64_t sent, received; /* completed */
	bool send_failed, recv_failed;
};

static struct rig rig;
static struct prng rnd;
static struct rig_pair_config config[PAIRS];
static struct rig_pair pair[PAIRS];
static struct side side[PAIRS][2];

static uint32_t below(uint32_t n)
{
	return (uint32_t)prng_below(&rnd, n);
}

static void open_random(int i)
{
	config[i] = (struct rig_pair_config){
		.type = (enum qp_type)(QP_TYPE_RC + below(3)),
		.mtu = (enum mtu_code)(MTU_256 + below(5)),
		.sq_psn = below(4) ? below(1 << 24) : 0xffffff - below(4),
		.srq_wr = below(3) ? 0 : 8,
		.sq_sig_all = true,
		.stop = below(2) ? QP_STATE_RTS : QP_STATE_INIT,
	};
	rig_pair_open(&pair[i], &rig, &config[i]);
	for (int k = 0; k < 2; k++) {
		side[i][k] = (struct side){ .e = &pair[i].e[k] };
		side[i][k].ah = rig_ah(&pair[i].e[k], &rig.h[!k]);
	}
}

static void check_send(struct side *s, const struct wc *wc)
{
	assert_int_equal(wc->wr_id, s->sent);
	s->sent++;
	if (s->send_failed)
		assert_int_equal(wc->status, WC_WR_FLUSH_ERR);
	s->send_failed |= wc->status != WC_SUCCESS;
}

static void check_recv(struct side *s, const struct wc *wc)
{
	if (!s->e->srq) /* an SRQ's may go to the QP's later life */
		assert_int_equal(wc->wr_id, s->received);
	s->received++;
	if (s->recv_failed)
		assert_int_equal(wc->status, WC_WR_FLUSH_ERR);
	s->recv_failed |= wc->status != WC_SUCCESS;
}

static void poll_side(struct side *s)
{
	struct wc wc;

	if (!s->e) /* closed */
		return;
	while (cq_poll(s->e->scq, 1, &wc) == 1)
		check_send(s, &wc);
	while (cq_poll(s->e->rcq, 1, &wc) == 1)
		check_recv(s, &wc);
}

static void poll_all(void)
{
	for (int i = 0; i < PAIRS; i++)
		for (int k = 0; k < 2; k++)
			poll_side(&side[i][k]);
}

/* Ends every QP in ERR: then all that was accepted has completed. */
static void close_pair(int i)
{
	rig.h[0].alloc_fails_after = rig.h[1].alloc_fails_after = -1;
	for (int k = 0; k < 2; k++) {
		struct side *s = &side[i][k];

		if (qp_state(s->e->qp) != QP_STATE_RESET) {
			assert_int_equal(rig_state(s->e, QP_STATE_ERR), 0);
			rig_pump(&rig);
			poll_all();
			assert_int_equal(s->sent, s->sends);
			if (!s->e->srq)
				assert_int_equal(s->received, s->recvs);
		}
		assert_int_equal(ah_destroy(s->ah), 0);
	}
	rig_pair_close(&pair[i]);
	side[i][0].e = side[i][1].e = NULL;
}

static void forget(struct side *s)
{
	s->sent = s->sends;
	s->received = s->recvs;
	s->send_failed = s->recv_failed = false;
}

static void random_modify(int i, int k)
{
	struct side *s = &side[i][k];
	struct qp_attr a;
	uint32_t mask, to = below(7);
	int rc;

	/* Mostly the way up. */
	if (below(4))
		to = qp_state(s->e->qp) < QP_STATE_RTS ? qp_state(s->e->qp) + 1u
						       : QP_STATE_RTS;
	mask = rig_attrs(config[i].type, (enum qp_state)to, &pair[i].e[!k],
			 &config[i], &a);
	if (qp_state(s->e->qp) >= QP_STATE_RTS)
		mask = QP_ATTR_STATE;
	poll_side(s);
	rc = qp_modify(s->e->qp, &a, mask, rig.now_ns);
	assert_true(rc == 0 || rc == -EINVAL || rc == -ENOMEM);
	if (rc)
		return;
	assert_int_equal(qp_state(s->e->qp), to);
	if (to == QP_STATE_RESET) /* forgotten without a completion */
		forget(s);
	if (to == QP_STATE_RTS) { /* from SQE perhaps */
		poll_side(s);
		s->send_failed = false;
	}
}

/* Both ends from RESET to RTS. */
static void revive(int i)
{
	rig.h[0].alloc_fails_after = rig.h[1].alloc_fails_after = -1;
	poll_all();
	for (int k = 0; k < 2; k++) {
		assert_int_equal(rig_state(&pair[i].e[k], QP_STATE_RESET), 0);
		forget(&side[i][k]);
	}
	for (int k = 0; k < 2; k++)
		rig_walk(&pair[i].e[k], QP_STATE_RTS, &pair[i].e[!k],
			 &config[i]);
}

static void random_send(int i, int k)
{
	static const uint32_t lens[] = { 0, 1, 255, 256, 1024, 4096, 20000 };
	struct side *s = &side[i][k];
	struct rig_end *peer = &pair[i].e[!k];
	struct send_wr wr = {
		.wr_id = s->sends,
		.opcode = below(30) ? below(7) : below(12),
		.flags = below(16) & ~(uint32_t)(below(4) ? WR_INLINE : 0),
		.remote_addr = RIG_VA + (1u << 20) + below(1 << 18) * 8,
		.rkey = mr_key(peer->mr) ^ (below(100) ? 0 : 1),
		.ah = s->ah,
		.remote_qpn = qp_num(peer->qp),
		.remote_qkey = RIG_QKEY,
	};
	uint32_t len = lens[below(ARRAY_SIZE(lens))];
	int rc;

	if (wr.opcode == WR_CMP_SWAP || wr.opcode == WR_FETCH_ADD)
		len = 8;
	rc = rig_post_send(s->e, wr, below(1 << 18), len);
	assert_true(rc == 0 || rc == -EINVAL || rc == -ENOMEM ||
		    rc == -EOPNOTSUPP || rc == -EFAULT);
	s->sends += rc == 0;
}

static void random_recv(int i, int k)
{
	struct side *s = &side[i][k];
	int rc = rig_post_recv(s->e, s->recvs, (3u << 20) + below(1 << 18),
			       below(6) ? 24000 : below(3000));

	assert_true(rc == 0 || rc == -EINVAL || rc == -ENOMEM);
	s->recvs += rc == 0;
}

static void random_holes(struct rig_host *h)
{
	if (below(4)) {
		h->fault_lo = h->fault_hi = 0;
		return;
	}
	h->fault_lo = RIG_VA + below(RIG_MEM_BYTES);
	h->fault_hi = h->fault_lo + 1 + below(4096);
}

static void random_rereg(int i, int k)
{
	struct mr_attr a = { .va = RIG_VA,
			     .iova = RIG_VA,
			     .len_bytes = RIG_MEM_BYTES };

	assert_int_equal(
		mr_rereg(pair[i].e[k].mr, MR_REREG_TRANSLATION, NULL, &a), 0);
}

static enum rig_fate lose_some(struct rig *r, int from, struct rx_frame *f,
			       uint8_t *pkt)
{
	(void)r;
	(void)from;
	(void)f;
	(void)pkt;
	return below(50) ? RIG_DELIVER : RIG_DROP;
}

static void step(void)
{
	int i = (int)below(PAIRS), k = (int)below(2);

	if (below(2) && (qp_state(pair[i].e[0].qp) != QP_STATE_RTS ||
			 qp_state(pair[i].e[1].qp) != QP_STATE_RTS)) {
		revive(i);
		return;
	}
	switch (below(16)) {
	case 0:
		if (!below(3))
			random_modify(i, k);
		break;
	case 1:
		if (!below(3))
			random_holes(&rig.h[k]);
		break;
	case 2:
		if (!below(8))
			random_rereg(i, k);
		break;
	case 3:
		rig.h[k].alloc_fails_after = below(4) ? -1 : (int)below(4);
		break;
	case 4:
		if (!below(6)) {
			close_pair(i);
			open_random(i);
		}
		break;
	case 5:
	case 6:
		rig_run(&rig, below(200) * 1000000);
		break;
	case 7:
	case 8:
	case 9:
		random_recv(i, k);
		break;
	case 10:
		rig_pump(&rig);
		break;
	default:
		random_send(i, k);
	}
	poll_all();
}

static void test_any_order(void **state)
{
	uint64_t traffic = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		prng_init(&rnd, seed);
		rig_open(&rig, NULL);
		rig.filter = lose_some;
		for (int i = 0; i < PAIRS; i++)
			open_random(i);
		for (int n = 0; n < STEPS; n++)
			step();
		for (int i = 0; i < PAIRS; i++)
			close_pair(i);
		traffic += rig_counter(&rig.h[0], rsp_msg_bytes);
		rig_close(&rig);
	}
	/* That it is not all errors. */
	assert_true(traffic > SEEDS * 100000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_order),
	};

	return cmocka_run_group_tests_name("core_api", tests, NULL, NULL);
}
