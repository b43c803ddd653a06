/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/uc/unack.h"

#include <string.h>

#include "base/mutant.h"
#include "core/obj/apm.h"
#include "core/obj/direct.h"
#include "core/obj/hca_priv.h"
#include "core/obj/mw.h"

void unack_start(struct qp *qp, struct unack *u, enum qp_state from)
{
	u->next = spsc_head(&qp->sq.idx);
	u->off = 0;
	u->failed = false;
	u->copied = 0;
	if (from == QP_STATE_RTR) {
		u->next_psn = u->done_psn = psn_of(qp->attr.sq_psn);
		u->packets = false;
	}
}

struct wqe *unack_wqe(struct qp *qp, struct unack *u)
{
	uint32_t head = spsc_head(&qp->sq.idx);
	enum qp_state state = qp_state(qp);
	struct wqe *w;

	if (u->failed || (state != QP_STATE_RTS && state != QP_STATE_SQD))
		return NULL;
	ASSERT(u->next - head <= spsc_ready(&qp->sq.idx));
	if (u->next - head == spsc_ready(&qp->sq.idx))
		return NULL;
	w = qp_wqe(qp, u->next);
	if (state == QP_STATE_SQD && !w->started)
		return NULL;
	return w;
}

bool unack_direct(struct qp *qp, struct unack *u)
{
	enum direct_step step = DIRECT_EXECUTED;
	struct wqe *w;

	while (step == DIRECT_EXECUTED) {
		w = unack_wqe(qp, u);
		if (!w || (u->packets && !MUTANT(uc_copy_overtakes)) ||
		    !direct_fits(qp, w))
			return true;
		w->started = true;
		step = direct_run(qp, w, &u->copied);
		if (step != DIRECT_EXECUTED)
			break;
		u->next++;
		qp_complete_send(qp, WC_SUCCESS);
	}
	if (step == DIRECT_LATER)
		qp_sched(qp);
	return step == DIRECT_PACKETS;
}

enum wc_status unack_fill(struct qp *qp, const struct unack *u, struct wqe *w,
			  struct pkt *pkt, uint32_t bytes, struct tx_frame *f)
{
	uint32_t pad = pkt_pad(bytes);
	enum wc_status status;
	size_t hdr;

	pkt->bth.psn = u->next_psn;
	pkt->bth.pad = (uint8_t)pad;
	pkt->bth.pkey = qp->pkey;
	pkt->bth.migreq = apm_migreq(qp);
	pkt->bth.dest_qpn = f->dest_qpn;
	hdr = pkt_encode_headers(pkt, f->pkt);
	status = wqe_gather(qp->hca, qp->pd, w, u->off, bytes, f->pkt + hdr);
	if (status != WC_SUCCESS)
		return status;
	memset(f->pkt + hdr + bytes, 0, pad);
	f->len_bytes = (uint32_t)hdr + bytes + pad;
	return WC_SUCCESS;
}

void unack_built(struct unack *u, struct wqe *w, uint32_t bytes, bool last)
{
	u->packets = true;
	w->started = true;
	w->last_psn = u->next_psn;
	u->next_psn = psn_add(u->next_psn, 1);
	u->off += bytes;
	if (!last)
		return;
	ASSERT(u->off == w->len_bytes);
	u->next++;
	u->off = 0;
}

/* Completes built WQEs whose last frame is done, oldest first. */
static void reap(struct qp *qp, struct unack *u)
{
	while (spsc_head(&qp->sq.idx) != u->next) {
		const struct wqe *w = qp_wqe(qp, spsc_head(&qp->sq.idx));
		enum wc_status status = (enum wc_status)w->status;

		if (psn_diff(u->done_psn, w->last_psn) <= 0)
			return;
		qp_complete_send(qp, status);
		if (status != WC_SUCCESS) {
			ASSERT(spsc_head(&qp->sq.idx) == u->next);
			qp_sq_error(qp);
			return;
		}
	}
}

void unack_fail(struct qp *qp, struct unack *u, struct wqe *w,
		enum wc_status status)
{
	ASSERT(status != WC_SUCCESS);
	w->status = (uint8_t)status;
	w->started = true;
	w->last_psn = psn_add(u->next_psn, -1);
	u->next++;
	u->off = 0;
	u->failed = true;
	reap(qp, u);
}

bool unack_local(struct qp *qp, struct unack *u, struct wqe *w)
{
	enum wc_status status;

	if (!wqe_is_local(w) || spsc_head(&qp->sq.idx) != u->next)
		return false;
	status = mw_execute(qp, w);
	if (status != WC_SUCCESS) {
		unack_fail(qp, u, w, status);
		return false;
	}
	u->next++;
	qp_complete_send(qp, WC_SUCCESS);
	return true;
}

void unack_done(struct qp *qp, struct unack *u)
{
	ASSERT(psn_before(u->done_psn, u->next_psn));
	u->done_psn = psn_add(u->done_psn, 1);
	reap(qp, u);
	/* A local WQE may have waited for that. */
	if (spsc_head(&qp->sq.idx) == u->next && spsc_ready(&qp->sq.idx))
		qp_sched(qp);
}
