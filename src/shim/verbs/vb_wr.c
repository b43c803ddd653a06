/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * vb_wr.c - the ibv_wr_* way of posting: wr_start, then for each request one
 * builder (wr_send...) and its setters (wr_set_sge...), then wr_complete posts
 * all or wr_abort none.
 *
 * Requests are collected in a struct vb_batch, which grows to the largest
 * batch seen and is then reused. Until wr_complete send_wr.sge is unset: SGEs
 * lie in batch order, num_sge of each request in a row. Inline data is copied
 * when it is set, as its SGE's addr stands an offset into bytes[].
 */
#include "shim/verbs/vb.h"

#include <stdlib.h>
#include <string.h>

#define OPS_UD (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define OPS_UC                                                                 \
	(OPS_UD | IBV_QP_EX_WITH_RDMA_WRITE |                                  \
	 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_BIND_MW |         \
	 IBV_QP_EX_WITH_LOCAL_INV)
#define OPS_RC                                                                 \
	(OPS_UC | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_READ |    \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |                                   \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

static struct vb_qp *qp_ex(struct ibv_qp_ex *ex)
{
	return CONTAINER_OF(ex, struct vb_qp, ex);
}

/* ---- the batch ---- */

static void batch_fail(struct vb_batch *b, int rc)
{
	if (!b->error)
		b->error = rc;
}

/* Room for `more` elements after n; *p may move. False: the batch failed. */
static bool batch_grow(struct vb_batch *b, void *pp, size_t elem, uint32_t n,
		       uint32_t more, uint32_t *room)
{
	void **p = pp;
	uint32_t want;
	void *q;

	if (more <= *room - n)
		return true;
	if (more > UINT32_MAX / 4 - n) {
		batch_fail(b, -ENOMEM);
		return false;
	}
	want = (n + more) * 2;
	q = realloc(*p, elem * want);
	if (!q) {
		batch_fail(b, -ENOMEM);
		return false;
	}
	*p = q;
	*room = want;
	return true;
}

/* The request that setters work on, or NULL: none, or the batch failed. */
static struct send_wr *batch_last(struct vb_batch *b)
{
	if (b->error)
		return NULL;
	if (!b->wr_n) {
		batch_fail(b, -EINVAL);
		return NULL;
	}
	return &b->wr[b->wr_n - 1];
}

/* Begins a request: op is one bit of send_ops_flags. A zeroed dummy when it
 * cannot be had, so that builders need not look. */
static struct send_wr *wr_begin(struct ibv_qp_ex *ex, uint32_t opcode,
				uint64_t op)
{
	struct vb_qp *qp = qp_ex(ex);
	struct vb_batch *b = &qp->batch;
	struct send_wr *wr = &b->dummy;

	if (!(qp->send_ops & op))
		batch_fail(b, -EOPNOTSUPP);
	else if (b->wr_n >= qp->cap.max_send_wr)
		batch_fail(b, -ENOMEM);
	else if (!b->error &&
		 batch_grow(b, &b->wr, sizeof(*b->wr), b->wr_n, 1, &b->wr_room))
		wr = &b->wr[b->wr_n++];
	memset(wr, 0, sizeof(*wr));
	wr->wr_id = ex->wr_id;
	wr->flags = ex->wr_flags & ~(uint32_t)IBV_SEND_INLINE;
	wr->opcode = opcode;
	return wr;
}

static void batch_reset(struct vb_batch *b)
{
	b->error = 0;
	b->wr_n = 0;
	b->sge_n = 0;
	b->bytes_n = 0;
}

void vb_batch_fini(struct vb_batch *b)
{
	free(b->wr);
	free(b->sge);
	free(b->bytes);
	pthread_mutex_destroy(&b->lock);
}

/* ---- start, complete, abort ---- */

static void wr_start(struct ibv_qp_ex *ex)
{
	struct vb_batch *b = &qp_ex(ex)->batch;

	pthread_mutex_lock(&b->lock);
	batch_reset(b);
}

/* Pointers in place of order and offsets: nothing moves any more. */
static void batch_resolve(struct vb_batch *b)
{
	struct sge *s = b->sge;
	uint32_t i;
	int k;

	for (i = 0; i < b->wr_n; i++) {
		b->wr[i].sge = s;
		for (k = 0; k < b->wr[i].num_sge; k++, s++)
			if (b->wr[i].flags & WR_INLINE)
				s->addr += (uintptr_t)b->bytes;
	}
}

/* All or none: whatever is wrong is found before the first one is posted. */
static int batch_check(struct vb_qp *qp)
{
	struct vb_batch *b = &qp->batch;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < b->wr_n && !rc; i++)
		rc = rt_send_check(qp->rt, &b->wr[i]);
	if (!rc && rt_send_room(qp->rt) < b->wr_n)
		rc = -ENOMEM;
	return rc;
}

static int batch_post(struct vb_qp *qp)
{
	struct vb_batch *b = &qp->batch;
	uint32_t i;
	int rc;

	rt_send_begin(qp->rt);
	rc = batch_check(qp);
	for (i = 0; i < b->wr_n && !rc; i++)
		rc = rt_send_post(qp->rt, &b->wr[i]);
	rt_send_end(qp->rt);
	return rc;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct vb_qp *qp = qp_ex(ex);
	int rc = qp->batch.error;

	if (!rc) {
		batch_resolve(&qp->batch);
		rc = batch_post(qp);
	}
	pthread_mutex_unlock(&qp->batch.lock);
	return ret_errno(rc);
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	pthread_mutex_unlock(&qp_ex(ex)->batch.lock);
}

/* ---- builders ---- */

static void wr_send(struct ibv_qp_ex *ex)
{
	wr_begin(ex, WR_SEND, IBV_QP_EX_WITH_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	wr_begin(ex, WR_SEND_IMM, IBV_QP_EX_WITH_SEND_WITH_IMM)
		->imm_be_or_rkey = imm;
}

static void set_remote(struct send_wr *wr, uint32_t rkey, uint64_t addr)
{
	wr->rkey = rkey;
	wr->remote_addr = addr;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	set_remote(wr_begin(ex, WR_WRITE, IBV_QP_EX_WITH_RDMA_WRITE), rkey,
		   addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t addr, __be32 imm)
{
	struct send_wr *wr =
		wr_begin(ex, WR_WRITE_IMM, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM);

	set_remote(wr, rkey, addr);
	wr->imm_be_or_rkey = imm;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr)
{
	set_remote(wr_begin(ex, WR_READ, IBV_QP_EX_WITH_RDMA_READ), rkey, addr);
}

static void wr_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr,
		       uint64_t compare, uint64_t swap)
{
	struct send_wr *wr =
		wr_begin(ex, WR_CMP_SWAP, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP);

	set_remote(wr, rkey, addr);
	wr->compare_add = compare;
	wr->swap = swap;
}

static void wr_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr,
			 uint64_t add)
{
	struct send_wr *wr =
		wr_begin(ex, WR_FETCH_ADD, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD);

	set_remote(wr, rkey, addr);
	wr->compare_add = add;
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct send_wr *wr = wr_begin(ex, WR_BIND_MW, IBV_QP_EX_WITH_BIND_MW);
	int rc = vb_bind_wr(wr, mw, IBV_MW_TYPE_2, rkey, info);

	if (rc)
		batch_fail(&qp_ex(ex)->batch, rc);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	wr_begin(ex, WR_LOCAL_INV, IBV_QP_EX_WITH_LOCAL_INV)->imm_be_or_rkey =
		rkey;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	wr_begin(ex, WR_SEND_INV, IBV_QP_EX_WITH_SEND_WITH_INV)
		->imm_be_or_rkey = rkey;
}

/* ---- builders of what is not built: the batch fails ---- */

static void unsupported(struct ibv_qp_ex *ex)
{
	batch_fail(&qp_ex(ex)->batch, -EOPNOTSUPP);
}

static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz,
			uint16_t mss)
{
	(void)hdr;
	(void)hdr_sz;
	(void)mss;
	unsupported(ex);
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr,
			    const void *value)
{
	(void)rkey;
	(void)addr;
	(void)value;
	unsupported(ex);
}

static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t addr,
		     size_t len, uint8_t type, uint8_t level)
{
	(void)rkey;
	(void)addr;
	(void)len;
	(void)type;
	(void)level;
	unsupported(ex);
}

/* ---- setters ---- */

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t srqn)
{
	struct vb_qp *qp = qp_ex(ex);
	struct send_wr *wr = batch_last(&qp->batch);

	if (!wr)
		return;
	if (qp->ibv.qp_type == IBV_QPT_XRC_SEND)
		wr->remote_srqn = srqn;
	else
		batch_fail(&qp->batch, -EINVAL);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah,
			   uint32_t qpn, uint32_t qkey)
{
	struct vb_qp *qp = qp_ex(ex);
	struct send_wr *wr = batch_last(&qp->batch);

	if (!wr)
		return;
	if (!ah || qp->ibv.qp_type != IBV_QPT_UD) {
		batch_fail(&qp->batch, -EINVAL);
		return;
	}
	wr->ah = vb_ah(ah)->rt;
	wr->remote_qpn = qpn;
	wr->remote_qkey = qkey;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n,
			    const struct ibv_sge *list)
{
	struct vb_qp *qp = qp_ex(ex);
	struct vb_batch *b = &qp->batch;
	struct send_wr *wr = batch_last(b);

	if (!wr)
		return;
	if (wr->num_sge || n > qp->cap.max_send_sge) {
		batch_fail(b, -EINVAL);
		return;
	}
	if (!n || !batch_grow(b, &b->sge, sizeof(*b->sge), b->sge_n,
			      (uint32_t)n, &b->sge_room))
		return;
	memcpy(&b->sge[b->sge_n], list, n * sizeof(*list));
	b->sge_n += (uint32_t)n;
	wr->num_sge = (int)n;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	struct ibv_sge s = { .addr = addr, .length = length, .lkey = lkey };

	wr_set_sge_list(ex, 1, &s);
}

/* Appends bytes; they become part of the one SGE of an inline request. */
static bool inline_append(struct vb_qp *qp, struct sge *s, const void *addr,
			  size_t len)
{
	struct vb_batch *b = &qp->batch;

	if (len > qp->cap.max_inline_bytes - s->len_bytes) {
		batch_fail(b, -EINVAL);
		return false;
	}
	if (!len)
		return true;
	if (!batch_grow(b, &b->bytes, 1, b->bytes_n, (uint32_t)len,
			&b->bytes_room))
		return false;
	memcpy(b->bytes + b->bytes_n, addr, len);
	b->bytes_n += (uint32_t)len;
	s->len_bytes += (uint32_t)len;
	return true;
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n,
				    const struct ibv_data_buf *buf)
{
	struct vb_qp *qp = qp_ex(ex);
	struct vb_batch *b = &qp->batch;
	struct send_wr *wr = batch_last(b);
	struct sge s = { .addr = b->bytes_n };
	size_t i;

	if (!wr)
		return;
	if (wr->num_sge) {
		batch_fail(b, -EINVAL);
		return;
	}
	for (i = 0; i < n; i++)
		if (!inline_append(qp, &s, buf[i].addr, buf[i].length))
			return;
	if (!batch_grow(b, &b->sge, sizeof(*b->sge), b->sge_n, 1, &b->sge_room))
		return;
	b->sge[b->sge_n++] = s;
	wr->num_sge = 1;
	wr->flags |= WR_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(ex, 1, &buf);
}

/* ---- */

static uint64_t ops_of_type(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
	case IBV_QPT_XRC_SEND:
		return OPS_RC;
	case IBV_QPT_UC:
		return OPS_UC;
	case IBV_QPT_UD:
		return OPS_UD;
	default:
		return 0;
	}
}

int vb_wr_init(struct vb_qp *qp, uint64_t send_ops)
{
	struct ibv_qp_ex *ex = &qp->ex;

	if (send_ops & ~ops_of_type(qp->ibv.qp_type))
		return -EOPNOTSUPP;
	qp->has_ex = true;
	qp->send_ops = send_ops;
	qp->wr_flush = wr_flush;
	ex->wr_atomic_cmp_swp = wr_cmp_swp;
	ex->wr_atomic_fetch_add = wr_fetch_add;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_send_tso = wr_send_tso;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_atomic_write = wr_atomic_write;
	return 0;
}
