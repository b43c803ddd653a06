/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cc.c - marks, CNPs and the pacer. */
#include "core/cc/cc.h"

#include "core/obj/hca_priv.h"
#include "core/obj/qp.h"
#include "wire/net.h"

/* A late timer may be made up for by this much, no more: what the wheel's tick
 * costs, without a burst after a long silence. */
#define CATCH_UP_NS (2 * TWHEEL_TICK_NS)
#define NS_PER_S 1000000000ull

static void dcqcn_flow_init(struct cc_flow *f)
{
	dcqcn_init(&f->dcqcn);
}

static bool dcqcn_flow_cnp(struct cc_flow *f, const struct dcqcn_params *p,
			   int64_t now_ns)
{
	return dcqcn_cnp(&f->dcqcn, p, now_ns);
}

static void dcqcn_flow_sent(struct cc_flow *f, const struct dcqcn_params *p,
			    uint32_t bytes)
{
	dcqcn_sent(&f->dcqcn, p, bytes);
}

static void dcqcn_flow_advance(struct cc_flow *f, const struct dcqcn_params *p,
			       int64_t now_ns)
{
	dcqcn_advance(&f->dcqcn, p, now_ns);
}

static int64_t dcqcn_flow_deadline(const struct cc_flow *f)
{
	return dcqcn_deadline(&f->dcqcn);
}

static uint64_t dcqcn_flow_rate(const struct cc_flow *f)
{
	return f->dcqcn.limited ? f->dcqcn.rate_bps : 0;
}

const struct cc_ops cc_dcqcn = {
	.name = "dcqcn",
	.init = dcqcn_flow_init,
	.cnp = dcqcn_flow_cnp,
	.sent = dcqcn_flow_sent,
	.advance = dcqcn_flow_advance,
	.deadline = dcqcn_flow_deadline,
	.rate_bps = dcqcn_flow_rate,
};

static const struct cc_ops *ops_of(const struct qp *qp)
{
	return qp->hca->cfg.cc;
}

static const struct dcqcn_params *params_of(const struct qp *qp)
{
	return &qp->hca->cfg.cc_params;
}

static void set_timer(struct qp *qp)
{
	int64_t at = ops_of(qp)->deadline(&qp->cc);

	if (at == INT64_MAX)
		timer_cancel(&qp->cc.rate);
	else
		timer_arm(&qp->hca->wheel, &qp->cc.rate, at);
}

static void rate_due(struct timer *t, int64_t now_ns)
{
	struct qp *qp = CONTAINER_OF(t, struct qp, cc.rate);

	ops_of(qp)->advance(&qp->cc, params_of(qp), now_ns);
	set_timer(qp);
}

static void pace_due(struct timer *t, int64_t now_ns)
{
	(void)now_ns;
	qp_sched(CONTAINER_OF(t, struct qp, cc.pace));
}

uint64_t qp_rate_bps(const struct qp *qp)
{
	return ops_of(qp) ? ops_of(qp)->rate_bps(&qp->cc) : 0;
}

void cc_init(struct qp *qp)
{
	struct cc_flow *f = &qp->cc;

	*f = (struct cc_flow){ .next_ns = INT64_MIN, .cnp_at_ns = INT64_MIN };
	timer_init(&f->rate, rate_due);
	timer_init(&f->pace, pace_due);
	dlist_init(&f->cnp_due);
	if (ops_of(qp))
		ops_of(qp)->init(f);
}

void cc_stop(struct qp *qp)
{
	timer_cancel(&qp->cc.rate);
	timer_cancel(&qp->cc.pace);
	if (dlist_linked(&qp->cc.cnp_due))
		dlist_remove(&qp->cc.cnp_due);
}

bool cc_may_send(struct qp *qp, int64_t now_ns)
{
	struct cc_flow *f = &qp->cc;

	if (f->next_ns <= now_ns)
		return true;
	if (!ops_of(qp)->rate_bps(f))
		return true;
	timer_arm(&qp->hca->wheel, &f->pace, f->next_ns);
	HCA_COUNT(qp->hca, req_paced);
	return false;
}

/* n bytes at this rate, rounded up. */
static int64_t time_of(uint64_t n, uint64_t bps)
{
	return (int64_t)((n * 8 * NS_PER_S + bps - 1) / bps);
}

void cc_sent(struct qp *qp, const struct tx_frame *f, int64_t now_ns)
{
	const struct cc_ops *ops = ops_of(qp);
	struct cc_flow *flow = &qp->cc;
	uint64_t rate;
	uint32_t n;

	if (!ops)
		return;
	rate = ops->rate_bps(flow);
	if (!rate)
		return;
	n = f->len_bytes +
	    qp->hca->cfg.link_layer->overhead_bytes(&f->path->dgid);
	if (flow->next_ns < now_ns - CATCH_UP_NS)
		flow->next_ns = now_ns - CATCH_UP_NS;
	flow->next_ns += time_of(n, rate);
	ops->sent(flow, params_of(qp), n);
	if (ops->deadline(flow) == INT64_MAX)
		timer_cancel(&flow->rate);
}

void cc_received(struct qp *qp, const struct rx_frame *f, int64_t now_ns)
{
	struct cc_flow *flow = &qp->cc;

	if (!rx_marked(f))
		return;
	HCA_COUNT(qp->hca, np_ecn_marked);
	if (!ops_of(qp) || qp->type == QP_TYPE_UD || now_ns < flow->cnp_at_ns)
		return;
	flow->cnp_at_ns = now_ns + params_of(qp)->cnp_interval_ns;
	if (!dlist_linked(&flow->cnp_due))
		dlist_push_back(&qp->hca->cnps, &flow->cnp_due);
}

void cc_cnp(struct qp *qp, int64_t now_ns)
{
	const struct cc_ops *ops = ops_of(qp);

	if (!ops) {
		HCA_COUNT(qp->hca, rp_cnp_ignored);
		return;
	}
	HCA_COUNT(qp->hca, rp_cnp_handled);
	if (ops->cnp(&qp->cc, params_of(qp), now_ns))
		HCA_COUNT(qp->hca, rp_rate_cuts);
	if (qp_dest_budget(qp))
		HCA_ADD(qp->hca, req_budget_cuts,
			budget_cut(qp_dest_budget(qp)));
	set_timer(qp);
}

/* [IBA annex A17.9.3]: BECN set, addresses and partition of the flow, sixteen
 * reserved bytes, nothing else. */
static void build(struct qp *qp, struct tx_frame *f)
{
	const struct pkt p = { .bth = { .opcode = OPCODE_CNP,
					.becn = true,
					.pkey = qp->pkey,
					.dest_qpn = qp->attr.dest_qpn } };

	*f = (struct tx_frame){
		.pkt = f->pkt,
		.path = &qp->path,
		.sl = qp->hca->cfg.cnp_sl,
		.cnp = true,
		.tos = (uint8_t)(qp->hca->cfg.cnp_dscp << 2 | ECN_NOT_ECT),
		.dest_qpn = qp->attr.dest_qpn,
		.owner = qp,
	};
	f->len_bytes = (uint32_t)pkt_encode_headers(&p, f->pkt);
}

bool cc_tx(struct hca *hca, uint32_t class_mask, struct tx_frame *f,
	   int64_t now_ns)
{
	struct dlist *n = dlist_first(&hca->cnps);

	(void)now_ns;
	if (!n || !(class_mask >> hca->cfg.cnp_sl & 1))
		return false;
	dlist_remove(n);
	build(CONTAINER_OF(n, struct qp, cc.cnp_due), f);
	HCA_COUNT(hca, np_cnp_sent);
	return true;
}

bool cc_tx_pending(const struct hca *hca)
{
	return !dlist_empty(&hca->cnps);
}
