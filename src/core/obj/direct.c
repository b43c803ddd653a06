/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * direct.c - requests executed as copies, and what peers may do that way.
 *
 * A copy never decides an error: whatever fails a check here or at the driver
 * goes as packets, and the responder judges.
 */
#include "core/obj/direct.h"

#include "core/obj/idtab.h"
#include "core/obj/mkey.h"
#include "core/obj/pd.h"

/* Against the budget a copy costs its bytes, and at least this: a call has its
 * own price. */
#define COST_MIN_BYTES 4096u

/* Bytes off .. off + n of the WQE as addresses; false: too many of them, or
 * some key does not hold. */
static bool find_local(struct qp *qp, struct wqe *w, uint32_t off, uint32_t n,
		       struct direct_req *r)
{
	uint32_t access = r->read ? ACCESS_LOCAL_WRITE : 0;
	const struct sge *s = wqe_sge(w);
	const struct mkey *k;

	r->num_local = 0;
	for (uint32_t i = 0; n; i++) {
		struct direct_mem *m = &r->local[r->num_local];

		if (i == w->num_sge || r->num_local == DIRECT_MEM_MAX)
			return false;
		if (off >= s[i].len_bytes) {
			off -= s[i].len_bytes;
			continue;
		}
		m->len_bytes = s[i].len_bytes - off;
		if (m->len_bytes > n)
			m->len_bytes = n;
		k = mkey_local(qp->hca, qp->pd, s[i].lkey, s[i].addr + off,
			       m->len_bytes, access, &m->va);
		if (!k || k->null)
			return false;
		n -= m->len_bytes;
		off = 0;
		r->num_local++;
	}
	return true;
}

static void describe(const struct qp *qp, const struct wqe *w,
		     struct direct_req *r)
{
	r->path = &qp->path;
	r->qpn = qp->qpn;
	r->dest_qpn = qp->attr.dest_qpn;
	r->pkey = qp->pkey;
	r->read = w->opcode == WR_READ;
	r->rkey = w->rkey;
	r->remote_addr = w->remote_addr;
	r->len_bytes = w->len_bytes;
	r->inline_bytes = NULL;
}

static bool copy_piece(struct qp *qp, struct wqe *w, struct direct_req *r)
{
	struct hca *hca = qp->hca;
	uint32_t cost = r->n < COST_MIN_BYTES ? COST_MIN_BYTES : r->n;

	if (w->flags & WR_INLINE)
		r->inline_bytes = w->tail + r->off;
	else if (!find_local(qp, w, r->off, r->n, r))
		return false;
	hca->direct_left -= cost < hca->direct_left ? cost : hca->direct_left;
	switch (hca->ops->direct(hca->ops_ctx, r)) {
	case DIRECT_DONE:
		return true;
	case DIRECT_NOT_NOW:
		return false;
	case DIRECT_NEVER:
		qp->direct = false;
		return false;
	}
	return false;
}

static void count(struct hca *hca, const struct wqe *w)
{
	if (w->opcode == WR_READ)
		HCA_COUNT(hca, direct_reads);
	else
		HCA_COUNT(hca, direct_writes);
	HCA_ADD(hca, direct_bytes, w->len_bytes);
}

enum direct_step direct_run(struct qp *qp, struct wqe *w, uint32_t *off)
{
	struct direct_req r;

	describe(qp, w, &r);
	do {
		if (qp->hca->direct_left == 0)
			return DIRECT_LATER;
		r.off = *off;
		r.n = w->len_bytes - r.off;
		if (r.n > DIRECT_PIECE_BYTES)
			r.n = DIRECT_PIECE_BYTES;
		if (!copy_piece(qp, w, &r)) {
			HCA_COUNT(qp->hca, direct_refused);
			*off = 0;
			return DIRECT_PACKETS;
		}
		*off += r.n;
	} while (*off < w->len_bytes);
	*off = 0;
	count(qp->hca, w);
	return DIRECT_EXECUTED;
}

/* ---- the other side ---- */

/* XRC's target has no domain of its own that a peer could be told. */
static bool one_sided(const struct qp *qp)
{
	return qp->type == QP_TYPE_RC || qp->type == QP_TYPE_UC;
}

void qp_set_direct(struct qp *qp, bool on)
{
	qp->direct = on && qp->hca->ops->direct && one_sided(qp);
}

static bool answers(const struct qp *qp)
{
	switch (qp_state(qp)) {
	case QP_STATE_RTR:
	case QP_STATE_RTS:
	case QP_STATE_SQD:
	case QP_STATE_SQE:
		return one_sided(qp);
	default:
		return false;
	}
}

void qp_query_grant(const struct qp *qp, struct qp_grant *ret)
{
	uint32_t access =
		qp->attr.access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ);

	/* UC has no READ; without resources an RC responder refuses them. */
	if (qp->type != QP_TYPE_RC || qp->attr.max_dest_rd_atomic == 0)
		access &= ~(uint32_t)ACCESS_REMOTE_READ;
	*ret = (struct qp_grant){ .access = answers(qp) ? access : 0,
				  .qpn = qp->qpn,
				  .pd = qp->pd ? pd_num(qp->pd) : 0,
				  .peer_qpn = qp->attr.dest_qpn,
				  .pkey = qp->pkey,
				  .path = &qp->path };
}

bool hca_direct_check(struct hca *hca, const struct direct_req *r,
		      uint64_t *ret_va)
{
	uint32_t access = r->read ? ACCESS_REMOTE_READ : ACCESS_REMOTE_WRITE;
	const struct qp *qp =
		idtab_get(hca->qps, r->dest_qpn & ~hca->cfg.qpn_base);
	struct qp_grant g;

	if (!qp || qp->qpn != r->dest_qpn)
		return false;
	qp_query_grant(qp, &g);
	if (!(g.access & access) || g.peer_qpn != r->qpn || g.pkey != r->pkey ||
	    !gid_eq(&g.path->sgid, &r->path->dgid) ||
	    !gid_eq(&g.path->dgid, &r->path->sgid))
		return false;
	if (r->len_bytes == 0)
		return true;
	return mkey_remote(qp, qp->pd, r->rkey, r->remote_addr, r->len_bytes,
			   access, ret_va);
}
