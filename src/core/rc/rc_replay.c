/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rc_replay.c - the response queue.
 *
 * Entries are disjoint PSN ranges in ascending order. A duplicate request
 * means that the requester went back: what it asks for again takes the place
 * of every entry it overlaps, and slots in by its PSN, so that answers go out
 * in the order in which the requester wants them.
 */
#include "core/rc/rc_replay.h"

#include <errno.h>

#include "core/obj/mkey.h"
#include "core/rc/rc_frame.h"
#include "core/rc/rc_rsp.h"

static struct rc_replay *replay_of(struct qp *qp)
{
	return &rc_of(qp)->replay;
}

/* i-th of the queue. */
static struct rc_resp *entry(struct rc_replay *q, uint32_t i)
{
	return &q->resp[(q->head + i) & (q->resp_slots - 1)];
}

static struct psn entry_last(const struct rc_resp *e)
{
	return psn_add(e->psn, (int32_t)(e->pkts - 1));
}

void rc_replay_reset(struct qp *qp)
{
	struct rc_replay *q = replay_of(qp);

	q->head = q->count = q->fresh = q->results = 0;
	q->tail = RC_TAIL_NONE;
}

/* The i-th atomic that was executed. */
static struct rc_result *result_at(const struct rc_replay *q, uint32_t i)
{
	return &q->result[i & (q->result_slots - 1)];
}

static uint32_t results_kept(const struct rc_replay *q)
{
	return q->results < q->result_slots ? q->results : q->result_slots;
}

static uint32_t pow2_at_least(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p *= 2;
	return p;
}

/* Copies what is in q to the empty rings of a larger one. */
static void move_rings(struct rc_replay *q, struct rc_replay *to)
{
	uint32_t i;

	for (i = 0; i < q->count; i++)
		to->resp[i] = *entry(q, i);
	q->head = 0;
	for (i = q->results - results_kept(q); i != q->results; i++)
		*result_at(to, i) = *result_at(q, i);
}

int rc_replay_reserve(struct qp *qp, uint32_t n)
{
	struct rc_replay *q = replay_of(qp);
	struct rc_replay to = { .resp_slots = pow2_at_least(2 * n),
				/* One more than can be asked for again. */
				.result_slots = pow2_at_least(n + 1) };
	size_t resp_bytes = to.resp_slots * sizeof(to.resp[0]);
	uint8_t *room;

	ASSERT(n <= RC_RD_ATOMIC_MAX);
	if (n == 0 || (to.resp_slots <= q->resp_slots &&
		       to.result_slots <= q->result_slots))
		return 0;
	room = hca_alloc(qp->hca,
			 resp_bytes + to.result_slots * sizeof(to.result[0]));
	if (!room)
		return -ENOMEM;
	to.resp = (void *)room;
	to.result = (void *)(room + resp_bytes);
	move_rings(q, &to);
	hca_release(qp->hca, q->resp);
	q->resp_slots = to.resp_slots;
	q->result_slots = to.result_slots;
	q->resp = to.resp;
	q->result = to.result;
	return 0;
}

void rc_replay_release(struct qp *qp)
{
	struct rc_replay *q = replay_of(qp);

	rc_replay_reset(qp);
	hca_release(qp->hca, q->resp);
	q->resp_slots = q->result_slots = 0;
	q->resp = NULL;
	q->result = NULL;
}

uint32_t rc_replay_outstanding(const struct qp *qp)
{
	return rc_view(qp)->replay.fresh;
}

static void pop(struct rc_replay *q)
{
	q->fresh -= entry(q, 0)->fresh;
	q->count--;
	/* An empty queue starts over: few slots are ever touched. */
	q->head = q->count ? (q->head + 1) & (q->resp_slots - 1) : 0;
}

static void erase(struct rc_replay *q, uint32_t at, uint32_t n)
{
	uint32_t i;

	for (i = at; i < at + n; i++)
		q->fresh -= entry(q, i)->fresh;
	for (i = at; i + n < q->count; i++)
		*entry(q, i) = *entry(q, i + n);
	q->count -= n;
}

static void insert(struct rc_replay *q, uint32_t at, const struct rc_resp *e)
{
	uint32_t i;

	ASSERT(q->count < q->resp_slots);
	for (i = q->count; i > at; i--)
		*entry(q, i) = *entry(q, i - 1);
	*entry(q, at) = *e;
	q->count++;
	q->fresh += e->fresh;
}

/* A new request: it follows all others, and its answer acknowledges what an
 * ACK not yet sent would have. */
static void append(struct qp *qp, const struct rc_resp *e)
{
	struct rc_replay *q = replay_of(qp);

	insert(q, q->count, e);
	q->tail = RC_TAIL_NONE;
	qp_sched(qp);
}

/* A duplicate: replaces what it overlaps. */
static bool put_again(struct qp *qp, const struct rc_resp *e)
{
	struct rc_replay *q = replay_of(qp);
	uint32_t at = 0, n = 0;

	while (at < q->count && psn_before(entry_last(entry(q, at)), e->psn))
		at++;
	while (at + n < q->count &&
	       !psn_before(entry_last(e), entry(q, at + n)->psn))
		n++;
	erase(q, at, n);
	/* The other half is for new requests. */
	if (q->count - q->fresh >= q->resp_slots / 2)
		return false;
	insert(q, at, e);
	qp_sched(qp);
	return true;
}

static struct rc_resp read_resp(const struct qp *qp, const struct pkt *pkt,
				uint32_t msn)
{
	return (struct rc_resp){
		.kind = RC_RESP_READ,
		.psn = pkt->bth.psn,
		.pkts = rc_pkts(qp, pkt->ext.reth.len_bytes),
		.msn = msn,
		.left_bytes = pkt->ext.reth.len_bytes,
		.rkey = pkt->ext.reth.rkey,
		.xrceth = rc_xrceth(pkt),
		.value = pkt->ext.reth.va,
	};
}

void rc_replay_read(struct qp *qp, const struct pkt *pkt, uint32_t msn)
{
	struct rc_resp e = read_resp(qp, pkt, msn);

	e.fresh = true;
	append(qp, &e);
}

bool rc_replay_read_again(struct qp *qp, const struct pkt *pkt, uint32_t msn)
{
	struct rc_resp e = read_resp(qp, pkt, msn);

	return put_again(qp, &e);
}

static struct rc_resp atomic_resp(struct psn psn, uint64_t original,
				  uint32_t msn)
{
	return (struct rc_resp){ .kind = RC_RESP_ATOMIC,
				 .psn = psn,
				 .pkts = 1,
				 .msn = msn,
				 .value = original };
}

void rc_replay_atomic(struct qp *qp, struct psn psn, uint64_t original,
		      uint32_t msn)
{
	struct rc_replay *q = replay_of(qp);
	struct rc_resp e = atomic_resp(psn, original, msn);

	*result_at(q, q->results++) = (struct rc_result){
		.psn = psn, .msn = msn, .original = original
	};
	e.fresh = true;
	append(qp, &e);
}

/* The newest result with this PSN, or NULL. */
static const struct rc_result *find_result(const struct rc_replay *q,
					   struct psn psn)
{
	uint32_t i;

	for (i = 1; i <= results_kept(q); i++) {
		const struct rc_result *r = result_at(q, q->results - i);

		if (psn_eq(r->psn, psn))
			return r;
	}
	return NULL;
}

bool rc_replay_atomic_again(struct qp *qp, struct psn psn)
{
	const struct rc_result *r = find_result(replay_of(qp), psn);
	struct rc_resp e;

	if (!r)
		return false;
	e = atomic_resp(psn, r->original, r->msn);
	return put_again(qp, &e);
}

bool rc_replay_nak_again(struct qp *qp, struct psn psn, uint8_t syndrome,
			 uint32_t msn)
{
	struct rc_resp e = { .kind = RC_RESP_NAK,
			     .psn = psn,
			     .pkts = 1,
			     .msn = msn,
			     .syndrome = syndrome };

	return put_again(qp, &e);
}

void rc_replay_ack(struct qp *qp, struct psn psn)
{
	struct rc_replay *q = replay_of(qp);

	/* Answers and ACKs of later packets say it too, and a NAK that of all
	 * before it. */
	if (q->count && !psn_before(entry_last(entry(q, q->count - 1)), psn))
		return;
	if (q->tail != RC_TAIL_NONE && psn_before(psn, q->tail_psn))
		return;
	q->tail = RC_TAIL_ACK;
	q->tail_psn = psn;
	qp_sched(qp);
}

void rc_replay_nak(struct qp *qp, struct psn psn, uint8_t syndrome)
{
	struct rc_replay *q = replay_of(qp);

	q->tail = RC_TAIL_NAK;
	q->tail_psn = psn;
	q->tail_syndrome = syndrome;
	qp_sched(qp);
}

static void build_aeth_only(struct qp *qp, struct tx_frame *f, struct psn psn,
			    uint8_t syndrome, uint32_t msn)
{
	struct pkt p = { .bth = { .opcode = OP_ACK, .psn = psn },
			 .ext.aeth = { .syndrome = syndrome, .msn = msn } };

	rc_frame_finish(qp, f, &p);
}

static void build_atomic(struct qp *qp, struct tx_frame *f,
			 const struct rc_resp *e)
{
	struct pkt p = { .bth = { .opcode = OP_ATOMIC_ACK, .psn = e->psn },
			 .ext.aeth = { .syndrome = rc_rsp_ack_syndrome(qp),
				       .msn = e->msn },
			 .ext.atomicacketh = e->value };

	rc_frame_finish(qp, f, &p);
}

static uint8_t read_op(const struct rc_resp *e)
{
	if (e->pkts == 1)
		return e->begun ? OP_READ_RESP_LAST : OP_READ_RESP_ONLY;
	return e->begun ? OP_READ_RESP_MIDDLE : OP_READ_RESP_FIRST;
}

/* Memory is looked up anew for each packet: the region may be gone by now
 * (bug log B011). */
static enum rc_rsp_verdict fetch(struct qp *qp, const struct rc_resp *e,
				 uint32_t n, uint8_t *dst)
{
	struct hca *hca = qp->hca;
	uint64_t va;

	if (n == 0)
		return RC_RSP_OK; /* no key, no address (B013) */
	if (!mkey_remote(qp, qp->ops->request_pd(qp, e->xrceth), e->rkey,
			 e->value, n, ACCESS_REMOTE_READ, &va))
		return RC_RSP_ACCESS_ERR;
	if (hca->ops->mem_read(hca->ops_ctx, dst, va, n) != 0)
		return RC_RSP_OP_ERR;
	return RC_RSP_OK;
}

static enum rc_rsp_verdict build_read(struct qp *qp, struct tx_frame *f,
				      struct rc_resp *e)
{
	struct pkt p = { .bth = { .opcode = read_op(e), .psn = e->psn },
			 .ext.aeth = { .syndrome = rc_rsp_ack_syndrome(qp),
				       .msn = e->msn } };
	uint32_t n = e->left_bytes < qp->mtu ? e->left_bytes : qp->mtu;
	enum rc_rsp_verdict v;

	v = fetch(qp, e, n, rc_frame_payload(qp, f, p.bth.opcode));
	if (v != RC_RSP_OK)
		return v;
	p.payload_bytes = n;
	rc_frame_finish(qp, f, &p);
	e->begun = true;
	e->psn = psn_add(e->psn, 1);
	e->pkts--;
	e->left_bytes -= n;
	e->value += n;
	return RC_RSP_OK;
}

/* A READ could not go on: a NAK of its next PSN ends everything. */
static void read_failed(struct qp *qp, struct tx_frame *f,
			enum rc_rsp_verdict v, int64_t now_ns)
{
	struct rc_replay *q = replay_of(qp);
	struct rc_resp e = *entry(q, 0);

	rc_replay_reset(qp);
	build_aeth_only(qp, f, e.psn, rc_rsp_nak_syndrome(v), e.msn);
	rc_rsp_read_failed(qp, v, now_ns);
}

static bool tx_entry(struct qp *qp, struct tx_frame *f, int64_t now_ns)
{
	struct rc_replay *q = replay_of(qp);
	struct rc_resp *e = entry(q, 0);
	enum rc_rsp_verdict v;

	switch ((enum rc_resp_kind)e->kind) {
	case RC_RESP_READ:
		if (e->left_bytes && !cc_may_send(qp, now_ns))
			return false;
		v = build_read(qp, f, e);
		if (v != RC_RSP_OK)
			read_failed(qp, f, v, now_ns);
		else if (e->pkts == 0)
			pop(q);
		break;
	case RC_RESP_ATOMIC:
		build_atomic(qp, f, e);
		pop(q);
		break;
	case RC_RESP_NAK:
		build_aeth_only(qp, f, e->psn, e->syndrome, e->msn);
		pop(q);
		break;
	}
	return true;
}

static bool tx_tail(struct qp *qp, struct tx_frame *f)
{
	struct rc_replay *q = replay_of(qp);
	bool ack = q->tail == RC_TAIL_ACK;

	if (q->tail == RC_TAIL_NONE)
		return false;
	build_aeth_only(qp, f, q->tail_psn,
			ack ? rc_rsp_ack_syndrome(qp) : q->tail_syndrome,
			rc_of(qp)->rsp.msn);
	HCA_ADD(qp->hca, rsp_acks, ack);
	q->tail = RC_TAIL_NONE;
	return true;
}

bool rc_replay_tx(struct qp *qp, struct tx_frame *f, int64_t now_ns)
{
	return replay_of(qp)->count ? tx_entry(qp, f, now_ns) : tx_tail(qp, f);
}
