/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * vb_post.c - posting lists of work requests. The first that fails ends the
 * walk: *bad is that one, all before it stay posted.
 */
#include "shim/verbs/vb.h"

static const struct sge *sge_of(const struct ibv_sge *s)
{
	return (const struct sge *)(const void *)s; /* layout: vb_attr.c */
}

/* Which member of the union counts depends on QP type and opcode. */
static int send_wr_from_ibv(struct send_wr *ret, const struct ibv_send_wr *wr,
			    enum ibv_qp_type type)
{
	*ret = (struct send_wr){
		.wr_id = wr->wr_id,
		.sge = sge_of(wr->sg_list),
		.num_sge = wr->num_sge,
		.opcode = wr->opcode,
		.flags = wr->send_flags,
		.imm_be_or_rkey = wr->imm_data,
	};
	if (type == IBV_QPT_UD) {
		if (!wr->wr.ud.ah)
			return -EINVAL;
		ret->ah = vb_ah(wr->wr.ud.ah)->rt;
		ret->remote_qpn = wr->wr.ud.remote_qpn;
		ret->remote_qkey = wr->wr.ud.remote_qkey;
		return 0;
	}
	if (type == IBV_QPT_XRC_SEND)
		ret->remote_srqn = wr->qp_type.xrc.remote_srqn;
	switch (wr->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ret->remote_addr = wr->wr.atomic.remote_addr;
		ret->rkey = wr->wr.atomic.rkey;
		ret->compare_add = wr->wr.atomic.compare_add;
		ret->swap = wr->wr.atomic.swap;
		break;
	case IBV_WR_BIND_MW:
		return vb_bind_wr(ret, wr->bind_mw.mw, IBV_MW_TYPE_2,
				  wr->bind_mw.rkey, &wr->bind_mw.bind_info);
	default:
		ret->remote_addr = wr->wr.rdma.remote_addr;
		ret->rkey = wr->wr.rdma.rkey;
		break;
	}
	return 0;
}

int vb_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr,
		 struct ibv_send_wr **bad)
{
	struct vb_qp *qp = vb_qp(ibv);
	struct send_wr w;
	int rc = 0;

	rt_send_begin(qp->rt);
	for (; wr; wr = wr->next) {
		rc = send_wr_from_ibv(&w, wr, ibv->qp_type);
		if (!rc)
			rc = rt_send_post(qp->rt, &w);
		if (UNLIKELY(rc)) {
			*bad = wr;
			break;
		}
	}
	rt_send_end(qp->rt);
	return ret_errno(rc);
}

static struct recv_wr recv_wr_from_ibv(const struct ibv_recv_wr *wr)
{
	return (struct recv_wr){
		.wr_id = wr->wr_id,
		.sge = sge_of(wr->sg_list),
		.num_sge = wr->num_sge,
	};
}

int vb_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr,
		 struct ibv_recv_wr **bad)
{
	struct vb_qp *qp = vb_qp(ibv);
	struct recv_wr w;
	int rc = 0;

	rt_recv_begin(qp->rt);
	for (; wr; wr = wr->next) {
		w = recv_wr_from_ibv(wr);
		rc = rt_recv_post(qp->rt, &w);
		if (UNLIKELY(rc)) {
			*bad = wr;
			break;
		}
	}
	rt_recv_end(qp->rt);
	return ret_errno(rc);
}

int vb_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad)
{
	struct vb_srq *srq = vb_srq(ibv);
	struct recv_wr w;
	int rc = 0;

	rt_srq_begin(srq->rt);
	for (; wr; wr = wr->next) {
		w = recv_wr_from_ibv(wr);
		rc = rt_srq_post(srq->rt, &w);
		if (UNLIKELY(rc)) {
			*bad = wr;
			break;
		}
	}
	rt_srq_end(srq->rt);
	return ret_errno(rc);
}
