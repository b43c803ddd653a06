/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * hca_tx.c - whose turn it is to send. Classes (service levels) take turns,
 * within a class the QPs do, each for a burst; a class that may not send now
 * is passed over and blocks nobody.
 */
#include "core/hca.h"

#include "core/obj/cq.h"
#include "core/obj/hca_priv.h"
#include "core/obj/idtab.h"
#include "core/obj/qp.h"

static void link_ready(struct qp *qp, bool first)
{
	struct dlist *line = &qp->hca->ready[qp->sl];

	ASSERT(qp->sl < ARRAY_SIZE(qp->hca->ready));
	if (first)
		dlist_push_front(line, &qp->sched_node);
	else
		dlist_push_back(line, &qp->sched_node);
	qp->hca->ready_mask |= 1u << qp->sl;
}

void qp_sched(struct qp *qp)
{
	if (!dlist_linked(&qp->sched_node))
		link_ready(qp, false);
}

void qp_unsched(struct qp *qp)
{
	if (!dlist_linked(&qp->sched_node))
		return;
	dlist_remove(&qp->sched_node);
	if (dlist_empty(&qp->hca->ready[qp->sl]))
		qp->hca->ready_mask &= ~(1u << qp->sl);
}

bool qp_park_if_blocked(struct qp *qp, uint16_t out)
{
	ASSERT(out < HCA_OUTS);
	if (LIKELY(!qp->hca->out_blocked[out]))
		return false;
	qp_unsched(qp);
	qp->parked_out = out;
	dlist_push_back(&qp->hca->parked, &qp->sched_node);
	return true;
}

void hca_out_block(struct hca *hca, unsigned out)
{
	ASSERT(out > 0 && out < HCA_OUTS);
	hca->out_blocked[out] = true;
}

void hca_out_unblock(struct hca *hca, unsigned out)
{
	struct dlist *n, *next;

	ASSERT(out > 0 && out < HCA_OUTS);
	hca->out_blocked[out] = false;
	for (n = hca->parked.next; n != &hca->parked; n = next) {
		struct qp *qp = CONTAINER_OF(n, struct qp, sched_node);

		next = n->next;
		if (qp->parked_out != out)
			continue;
		dlist_remove(n);
		link_ready(qp, false);
	}
}

void qp_set_sl(struct qp *qp, uint8_t sl)
{
	bool linked = dlist_linked(&qp->sched_node);

	qp_unsched(qp);
	qp->sl = sl;
	if (linked)
		link_ready(qp, false);
}

/* The QP whose turn it is among the classes in the mask, off its list. */
static struct qp *take_ready(struct hca *hca, uint32_t class_mask)
{
	uint32_t m = hca->ready_mask & class_mask;
	uint32_t from_turn = m & ~((1u << hca->turn_sl) - 1);
	struct dlist *n;
	struct qp *qp;
	uint32_t sl;

	if (!m)
		return NULL;
	sl = (uint32_t)__builtin_ctz(from_turn ? from_turn : m);
	hca->turn_sl = sl;
	n = dlist_first(&hca->ready[sl]);
	ASSERT(n);
	qp = CONTAINER_OF(n, struct qp, sched_node);
	ASSERT(qp->sl == sl);
	qp_unsched(qp);
	return qp;
}

static void end_burst(struct qp *qp, uint32_t sl)
{
	qp->burst_left = 0;
	qp->hca->turn_sl = (sl + 1) % ARRAY_SIZE(qp->hca->ready);
}

/* Back on the list after a frame: in front while its burst lasts. */
static void requeue(struct qp *qp, uint32_t sl, uint32_t pkts)
{
	bool more;

	qp_unsched(qp);
	if (qp->burst_left == 0)
		qp->burst_left = qp->hca->cfg.burst_pkts;
	qp->burst_left -= pkts < qp->burst_left ? pkts : qp->burst_left;
	more = qp->burst_left > 0 && qp->sl == sl;
	if (!more)
		end_burst(qp, sl);
	link_ready(qp, more);
}

static void preset(struct qp *qp, struct tx_frame *f)
{
	f->path = &qp->path;
	f->tos = (uint8_t)((qp->path.tclass & ~3) | ECN_ECT0);
	f->dest_qpn = qp->attr.dest_qpn;
	f->qpn = qp->qpn;
	f->sl = qp->sl;
	f->cnp = false;
	f->owner = qp;
	f->len_bytes = 0;
	f->pkts = 1;
	f->nrefs = 0;
	f->payload_bytes = 0;
}

static void count(struct hca *hca, const struct tx_frame *f, int64_t now_ns)
{
	uint32_t around = opcode_lookup(f->pkt[0])->hdr_bytes +
			  (f->pkt[1] >> 4 & 3u); /* pad */

	ASSERT(f->len_bytes >= around && f->len_bytes <= PKT_MAX);
	HCA_ADD(hca, tx_pkts, f->pkts);
	HCA_ADD(hca, tx_payload_bytes,
		f->len_bytes - around + f->payload_bytes);
	if (f->len_bytes > around && !f->path->out)
		cc_sent(f->owner, f, now_ns);
}

bool hca_tx(struct hca *hca, uint32_t class_mask, struct tx_frame *frame,
	    int64_t now_ns)
{
	bool sent = false;
	struct qp *qp;

	hca->now_ns = now_ns;
	hca->direct_left = hca->cfg.direct_bytes;
	if (cc_tx(hca, class_mask, frame, now_ns)) {
		((struct qp *)frame->owner)->tx_unfinished++;
		HCA_COUNT(hca, tx_pkts);
		return true;
	}
	if ((class_mask & 1) && gsi_tx(hca, frame)) {
		HCA_COUNT(hca, tx_pkts);
		return true;
	}
	while (!sent && hca->direct_left &&
	       (qp = take_ready(hca, class_mask))) {
		uint32_t sl = qp->sl;

		if (qp_park_if_blocked(qp, qp->path.out)) {
			end_burst(qp, sl);
			continue;
		}
		preset(qp, frame);
		sent = qp->ops->tx(qp, frame, now_ns);
		if (!sent) {
			end_burst(qp, sl);
			continue;
		}
		qp->tx_unfinished++;
		requeue(qp, sl, frame->pkts);
		count(hca, frame, now_ns);
	}
	cq_settle(hca);
	return sent;
}

/* A frame is out of the way. */
static void finished(struct hca *hca, const struct tx_frame *frame)
{
	struct qp *qp = frame->owner;

	if (!qp) { /* QP1's */
		gsi_tx_done(hca);
		return;
	}
	ASSERT(qp->tx_unfinished > 0);
	qp->tx_unfinished--;
	if (qp->ops->tx_done && !frame->cnp)
		qp->ops->tx_done(qp);
	/* A flush may have waited for this frame. */
	if (!qp->tx_unfinished) {
		if (qp_state(qp) == QP_STATE_ERR)
			qp_error(qp, hca->now_ns);
		else if (qp_state(qp) == QP_STATE_SQE)
			qp_sq_error(qp);
	}
	cq_settle(hca);
}

bool hca_tx_paused(const struct hca *hca)
{
	return hca->direct_left == 0 && hca->ready_mask != 0;
}

void hca_tx_done(struct hca *hca, const struct tx_frame *frame)
{
	finished(hca, frame);
}

void hca_tx_refused(struct hca *hca, const struct tx_frame *frame)
{
	struct qp *qp = frame->owner;

	ASSERT(frame->nrefs);
	qp->ops->tx_refused(qp);
	finished(hca, frame);
}

/* What was sent that way is lost, or was lost with its reader. */
static void leave_out(struct qp *qp, unsigned out)
{
	if (qp->path.out != out)
		return;
	qp->path.out = 0;
	qp->path.frame_bytes = 0;
}

void hca_out_gone(struct hca *hca, unsigned out)
{
	uint32_t pos = 0;
	struct qp *qp;

	while ((qp = idtab_next(hca->qps, &pos)))
		leave_out(qp, out);
	hca_out_unblock(hca, out);
}

bool hca_tx_pending(const struct hca *hca)
{
	return hca->ready_mask != 0 || cc_tx_pending(hca) ||
	       gsi_pending(&hca->gsi);
}
