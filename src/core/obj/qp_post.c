/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * qp_post.c - what posting threads do beside a running engine: check a work
 * request, write it into its ring, publish it with release, ring.
 *
 * The doorbell is a stack of QPs: producers push with compare-and-swap, the
 * engine takes the whole of it with one exchange. `rung` says that a QP is on
 * it (or being pushed), so it is pushed once; the engine clears `rung` before
 * it looks at the rings, so a WQE published before a ring that found the mark
 * set is seen by that look.
 */
#include <errno.h>
#include <string.h>

#include "core/obj/ah.h"
#include "core/obj/hca_priv.h"
#include "core/obj/qp.h"
#include "core/obj/path.h"
#include "core/obj/qp_bell.h"

#define BIND_ACCESS_KNOWN                                                      \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |       \
	 ACCESS_REMOTE_ATOMIC | ACCESS_ZERO_BASED)
#define WR_FLAGS_KNOWN (WR_FENCE | WR_SIGNALED | WR_SOLICITED | WR_INLINE)

static bool is_send(uint32_t opcode)
{
	return opcode == WR_SEND || opcode == WR_SEND_IMM ||
	       opcode == WR_SEND_INV;
}

static bool is_write(uint32_t opcode)
{
	return opcode == WR_WRITE || opcode == WR_WRITE_IMM;
}

static bool is_atomic(uint32_t opcode)
{
	return opcode == WR_CMP_SWAP || opcode == WR_FETCH_ADD;
}

static bool is_local(uint32_t opcode)
{
	return opcode == WR_LOCAL_INV || opcode == WR_BIND_MW;
}

static int check_opcode(const struct qp *qp, const struct send_wr *wr)
{
	enum qp_state state = qp_state(qp);

	if (wr->opcode > WR_SEND_INV || !qp->ops->can_post(wr->opcode))
		return -EINVAL;
	if (state == QP_STATE_RESET || state == QP_STATE_INIT ||
	    state == QP_STATE_RTR)
		return -EINVAL;
	if (wr->flags & ~(uint32_t)WR_FLAGS_KNOWN)
		return -EINVAL;
	if ((wr->flags & WR_INLINE) && !is_send(wr->opcode) &&
	    !is_write(wr->opcode))
		return -EINVAL;
	return 0;
}

static int check_ud(const struct qp *qp, const struct send_wr *wr, uint64_t len)
{
	/* The specification would drop a message above the MTU without a
	 * word [IBA C10-93.1.1]; an errno helps more. */
	if (len >
	    atomic_load_explicit(&qp->hca->ud_max_bytes, memory_order_relaxed))
		return -EINVAL;
	if (!wr->ah || wr->ah->pd != qp->pd || wr->remote_qpn > 0xffffff)
		return -EINVAL;
	return 0;
}

/* SGEs mean nothing to these. */
static int check_local(struct qp *qp, const struct send_wr *wr)
{
	if (wr->opcode == WR_BIND_MW &&
	    (wr->bind_access & ~(uint32_t)BIND_ACCESS_KNOWN ||
	     (wr->bind_len_bytes && !wr->bind_mr_key)))
		return -EINVAL;
	return spsc_filled(&qp->sq.idx) >= qp->sq.capacity ? -ENOMEM : 0;
}

static int check_send(struct qp *qp, const struct send_wr *wr,
		      uint64_t *ret_len)
{
	uint64_t len = 0;
	int rc = check_opcode(qp, wr);

	if (rc)
		return rc;
	if (is_local(wr->opcode)) {
		*ret_len = 0;
		return check_local(qp, wr);
	}
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->sq.max_sge)
		return -EINVAL;
	for (int i = 0; i < wr->num_sge; i++)
		len += wr->sge[i].len_bytes;
	if (len > qp->hca->cfg.limits.max_msg_bytes ||
	    ((wr->flags & WR_INLINE) && len > qp->sq.max_inline_bytes) ||
	    (is_atomic(wr->opcode) && len != 8))
		return -EINVAL;
	if (wr->opcode == WR_READ &&
	    (uint32_t)wr->num_sge > qp->hca->cfg.limits.max_sge_rd)
		return -EINVAL;
	if (wr->remote_srqn > 0xffffff)
		return -EINVAL;
	if (qp->type == QP_TYPE_UD) {
		rc = check_ud(qp, wr, len);
		if (rc)
			return rc;
	}
	*ret_len = len;
	return spsc_filled(&qp->sq.idx) >= qp->sq.capacity ? -ENOMEM : 0;
}

/* Inline data is the caller's own memory: no key, and free for reuse when the
 * post returns. */
static int copy_inline(const struct qp *qp, struct wqe *w,
		       const struct send_wr *wr)
{
	const struct hca *hca = qp->hca;
	uint8_t *p = w->tail;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct sge *s = &wr->sge[i];

		if (!s->len_bytes)
			continue;
		if (hca->ops->mem_read(hca->ops_ctx, p, s->addr, s->len_bytes))
			return -EFAULT;
		p += s->len_bytes;
	}
	w->num_sge = 0;
	return 0;
}

/* Every field, so that nothing of the slot's last user is left (B026). */
static void fill_head(const struct qp *qp, struct wqe *w,
		      const struct send_wr *wr, uint32_t len)
{
	const struct wqe blank = { 0 };

	memcpy(w, &blank, sizeof(blank));
	w->wr_id = wr->wr_id;
	w->opcode = (uint8_t)wr->opcode;
	w->flags = (uint8_t)(wr->flags | (qp->sq_sig_all ? WR_SIGNALED : 0));
	w->num_sge = is_local(wr->opcode) ? 0 : (uint16_t)wr->num_sge;
	w->len_bytes = len;
	w->imm_be_or_rkey = wr->imm_be_or_rkey;
	w->rkey = wr->rkey;
	w->remote_addr = wr->remote_addr;
	w->compare_add = wr->compare_add;
	w->swap = wr->swap;
	w->remote_srqn = wr->remote_srqn;
	if (qp->type != QP_TYPE_UD)
		return;
	w->remote_qpn = gid_is_multicast(&wr->ah->path.dgid)
				? BTH_QPN_MULTICAST /* (bug log B128) */
				: wr->remote_qpn;
	w->remote_qkey = wr->remote_qkey;
	w->path = wr->ah->path;
	w->path.sport = path_sport(w->path.flow_label, qp->qpn, wr->remote_qpn);
}

int qp_post_send(struct qp *qp, const struct send_wr *wr)
{
	uint64_t len;
	struct wqe *w;
	int rc;

	rc = check_send(qp, wr, &len);
	if (rc)
		return rc;
	w = wring_slot(&qp->sq, spsc_tail(&qp->sq.idx));
	fill_head(qp, w, wr, (uint32_t)len);
	if (wr->flags & WR_INLINE) {
		rc = copy_inline(qp, w, wr);
		if (rc)
			return rc;
	} else if (w->num_sge) {
		memcpy(w->tail, wr->sge, w->num_sge * sizeof(struct sge));
	}
	spsc_push(&qp->sq.idx, 1);
	return 0;
}

int qp_check_send(struct qp *qp, const struct send_wr *wr)
{
	uint64_t len;

	return check_send(qp, wr, &len);
}

uint32_t qp_send_room(struct qp *qp)
{
	return qp->sq.capacity - spsc_filled(&qp->sq.idx);
}

int qp_post_recv(struct qp *qp, const struct recv_wr *wr)
{
	if (!qp->own_rq || qp_state(qp) == QP_STATE_RESET)
		return -EINVAL;
	return wring_post_recv(&qp->rq, wr);
}

static void push(struct hca *hca, struct qp *qp)
{
	struct qp *top =
		atomic_load_explicit(&hca->bells, memory_order_relaxed);

	do {
		qp->bell_next = top;
	} while (!atomic_compare_exchange_weak_explicit(&hca->bells, &top, qp,
							memory_order_release,
							memory_order_relaxed));
}

bool qp_ring(struct qp *qp)
{
	if (atomic_exchange_explicit(&qp->rung, true, memory_order_acq_rel))
		return false;
	push(qp->hca, qp);
	return true;
}

struct qp *qp_bells_take(struct hca *hca)
{
	struct qp *stack, *line = NULL;

	if (!atomic_load_explicit(&hca->bells, memory_order_relaxed))
		return NULL;
	stack = atomic_exchange_explicit(&hca->bells, NULL,
					 memory_order_acquire);
	while (stack) {
		struct qp *next = stack->bell_next;

		stack->bell_next = line;
		line = stack;
		stack = next;
	}
	return line;
}

void qp_bell_clear(struct qp *qp)
{
	bool was = atomic_exchange_explicit(&qp->rung, false,
					    memory_order_acq_rel);

	ASSERT(was);
}

void qp_unring(struct qp *qp)
{
	struct qp *next, *q;

	if (!atomic_load_explicit(&qp->rung, memory_order_acquire))
		return;
	for (q = qp_bells_take(qp->hca); q; q = next) {
		next = q->bell_next;
		if (q != qp)
			push(qp->hca, q);
	}
}
