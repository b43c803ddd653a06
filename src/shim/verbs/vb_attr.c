/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * vb_attr.c - public attributes to the core's and back, and the proof that
 * what is only cast has the same layout and numbers.
 */
#include "shim/verbs/vb.h"

#include <string.h>

void ah_attr_from_ibv(struct ah_attr *ret, const struct ibv_ah_attr *a)
{
	memset(ret, 0, sizeof(*ret));
	ret->is_global = a->is_global != 0;
	memcpy(ret->dgid.raw, a->grh.dgid.raw, sizeof(ret->dgid.raw));
	ret->sgid_index = a->grh.sgid_index;
	ret->traffic_class = a->grh.traffic_class;
	ret->hop_limit = a->grh.hop_limit;
	ret->flow_label = a->grh.flow_label & 0xfffff;
	ret->sl = a->sl;
	ret->static_rate = a->static_rate;
	ret->src_path_bits = a->src_path_bits;
	ret->port_num = a->port_num;
	ret->dlid = a->dlid;
}

void ah_attr_to_ibv(struct ibv_ah_attr *ret, const struct ah_attr *a)
{
	memset(ret, 0, sizeof(*ret));
	ret->is_global = a->is_global;
	memcpy(ret->grh.dgid.raw, a->dgid.raw, sizeof(a->dgid.raw));
	ret->grh.sgid_index = a->sgid_index;
	ret->grh.traffic_class = a->traffic_class;
	ret->grh.hop_limit = a->hop_limit;
	ret->grh.flow_label = a->flow_label;
	ret->sl = a->sl;
	ret->static_rate = a->static_rate;
	ret->src_path_bits = a->src_path_bits;
	ret->port_num = a->port_num;
	ret->dlid = a->dlid;
}

void qp_cap_from_ibv(struct qp_cap *ret, const struct ibv_qp_cap *c)
{
	ret->max_send_wr = c->max_send_wr;
	ret->max_recv_wr = c->max_recv_wr;
	ret->max_send_sge = c->max_send_sge;
	ret->max_recv_sge = c->max_recv_sge;
	ret->max_inline_bytes = c->max_inline_data;
}

void qp_cap_to_ibv(struct ibv_qp_cap *ret, const struct qp_cap *c)
{
	ret->max_send_wr = c->max_send_wr;
	ret->max_recv_wr = c->max_recv_wr;
	ret->max_send_sge = c->max_send_sge;
	ret->max_recv_sge = c->max_recv_sge;
	ret->max_inline_data = c->max_inline_bytes;
}

void qp_attr_from_ibv(struct qp_attr *ret, const struct ibv_qp_attr *a)
{
	memset(ret, 0, sizeof(*ret));
	ret->state = (enum qp_state)a->qp_state;
	ret->cur_state = (enum qp_state)a->cur_qp_state;
	ret->path_mtu = (enum mtu_code)a->path_mtu;
	ret->mig_state = (enum mig_state)a->path_mig_state;
	ret->qkey = a->qkey;
	ret->rq_psn = a->rq_psn;
	ret->sq_psn = a->sq_psn;
	ret->dest_qpn = a->dest_qp_num;
	ret->access = a->qp_access_flags;
	qp_cap_from_ibv(&ret->cap, &a->cap);
	ah_attr_from_ibv(&ret->ah, &a->ah_attr);
	ah_attr_from_ibv(&ret->alt_ah, &a->alt_ah_attr);
	ret->pkey_index = a->pkey_index;
	ret->alt_pkey_index = a->alt_pkey_index;
	ret->en_sqd_async_notify = a->en_sqd_async_notify != 0;
	ret->max_rd_atomic = a->max_rd_atomic;
	ret->max_dest_rd_atomic = a->max_dest_rd_atomic;
	ret->min_rnr_timer = a->min_rnr_timer;
	ret->port_num = a->port_num;
	ret->timeout = a->timeout;
	ret->retry_cnt = a->retry_cnt;
	ret->rnr_retry = a->rnr_retry;
	ret->alt_port_num = a->alt_port_num;
	ret->alt_timeout = a->alt_timeout;
	ret->rate_limit_kbps = a->rate_limit;
}

void qp_attr_to_ibv(struct ibv_qp_attr *ret, const struct qp_attr *a)
{
	memset(ret, 0, sizeof(*ret));
	ret->qp_state = (enum ibv_qp_state)a->state;
	ret->cur_qp_state = (enum ibv_qp_state)a->cur_state;
	ret->path_mtu = (enum ibv_mtu)a->path_mtu;
	ret->path_mig_state = (enum ibv_mig_state)a->mig_state;
	ret->qkey = a->qkey;
	ret->rq_psn = a->rq_psn;
	ret->sq_psn = a->sq_psn;
	ret->dest_qp_num = a->dest_qpn;
	ret->qp_access_flags = a->access;
	qp_cap_to_ibv(&ret->cap, &a->cap);
	ah_attr_to_ibv(&ret->ah_attr, &a->ah);
	ah_attr_to_ibv(&ret->alt_ah_attr, &a->alt_ah);
	ret->pkey_index = a->pkey_index;
	ret->alt_pkey_index = a->alt_pkey_index;
	ret->en_sqd_async_notify = a->en_sqd_async_notify;
	ret->sq_draining = a->sq_draining;
	ret->max_rd_atomic = a->max_rd_atomic;
	ret->max_dest_rd_atomic = a->max_dest_rd_atomic;
	ret->min_rnr_timer = a->min_rnr_timer;
	ret->port_num = a->port_num;
	ret->timeout = a->timeout;
	ret->retry_cnt = a->retry_cnt;
	ret->rnr_retry = a->rnr_retry;
	ret->alt_port_num = a->alt_port_num;
	ret->alt_timeout = a->alt_timeout;
	ret->rate_limit = a->rate_limit_kbps;
}

/* ---- same layout: struct wc and struct sge are cast ---- */

#define SAME_FIELD(a, fa, b, fb)                                               \
	_Static_assert(offsetof(struct a, fa) == offsetof(struct b, fb) &&     \
			       sizeof(((struct a *)0)->fa) ==                  \
				       sizeof(((struct b *)0)->fb),            \
		       #a "." #fa)

_Static_assert(sizeof(struct wc) == sizeof(struct ibv_wc), "wc");
SAME_FIELD(wc, wr_id, ibv_wc, wr_id);
SAME_FIELD(wc, status, ibv_wc, status);
SAME_FIELD(wc, opcode, ibv_wc, opcode);
SAME_FIELD(wc, vendor_err, ibv_wc, vendor_err);
SAME_FIELD(wc, byte_len, ibv_wc, byte_len);
SAME_FIELD(wc, imm_be_or_rkey, ibv_wc, imm_data);
SAME_FIELD(wc, qpn, ibv_wc, qp_num);
SAME_FIELD(wc, src_qpn, ibv_wc, src_qp);
SAME_FIELD(wc, wc_flags, ibv_wc, wc_flags);
SAME_FIELD(wc, pkey_index, ibv_wc, pkey_index);
SAME_FIELD(wc, slid, ibv_wc, slid);
SAME_FIELD(wc, sl, ibv_wc, sl);
SAME_FIELD(wc, dlid_path_bits, ibv_wc, dlid_path_bits);

_Static_assert(sizeof(struct sge) == sizeof(struct ibv_sge), "sge");
SAME_FIELD(sge, addr, ibv_sge, addr);
SAME_FIELD(sge, len_bytes, ibv_sge, length);
SAME_FIELD(sge, lkey, ibv_sge, lkey);

/* ---- same numbers: enums and masks are cast ---- */

#define SAME(a, b) _Static_assert((int)(a) == (int)(b), #a)

SAME(QP_TYPE_RC, IBV_QPT_RC);
SAME(QP_TYPE_UC, IBV_QPT_UC);
SAME(QP_TYPE_UD, IBV_QPT_UD);
SAME(QP_STATE_RESET, IBV_QPS_RESET);
SAME(QP_STATE_INIT, IBV_QPS_INIT);
SAME(QP_STATE_RTR, IBV_QPS_RTR);
SAME(QP_TYPE_XRC_INI, IBV_QPT_XRC_SEND);
SAME(QP_TYPE_XRC_TGT, IBV_QPT_XRC_RECV);
SAME(QP_STATE_RTS, IBV_QPS_RTS);
SAME(QP_STATE_SQD, IBV_QPS_SQD);
SAME(QP_STATE_SQE, IBV_QPS_SQE);
SAME(QP_STATE_ERR, IBV_QPS_ERR);
SAME(MIG_STATE_MIGRATED, IBV_MIG_MIGRATED);
SAME(MIG_STATE_REARM, IBV_MIG_REARM);
SAME(MIG_STATE_ARMED, IBV_MIG_ARMED);
SAME(MTU_256, IBV_MTU_256);
SAME(MTU_4096, IBV_MTU_4096);
SAME(ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE);
SAME(ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_WRITE);
SAME(ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_READ);
SAME(ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC);
SAME(ACCESS_MW_BIND, IBV_ACCESS_MW_BIND);
SAME(ACCESS_ZERO_BASED, IBV_ACCESS_ZERO_BASED);
SAME(ACCESS_ON_DEMAND, IBV_ACCESS_ON_DEMAND);
SAME(ACCESS_HUGETLB, IBV_ACCESS_HUGETLB);
SAME(ACCESS_OPTIONAL_RANGE, IBV_ACCESS_OPTIONAL_RANGE);
SAME(WR_WRITE, IBV_WR_RDMA_WRITE);
SAME(WR_WRITE_IMM, IBV_WR_RDMA_WRITE_WITH_IMM);
SAME(WR_SEND, IBV_WR_SEND);
SAME(WR_SEND_IMM, IBV_WR_SEND_WITH_IMM);
SAME(WR_READ, IBV_WR_RDMA_READ);
SAME(WR_CMP_SWAP, IBV_WR_ATOMIC_CMP_AND_SWP);
SAME(WR_FETCH_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD);
SAME(WR_LOCAL_INV, IBV_WR_LOCAL_INV);
SAME(WR_BIND_MW, IBV_WR_BIND_MW);
SAME(WR_SEND_INV, IBV_WR_SEND_WITH_INV);
SAME(WR_FENCE, IBV_SEND_FENCE);
SAME(WR_SIGNALED, IBV_SEND_SIGNALED);
SAME(WR_SOLICITED, IBV_SEND_SOLICITED);
SAME(WR_INLINE, IBV_SEND_INLINE);
SAME(WC_SUCCESS, IBV_WC_SUCCESS);
SAME(WC_LOC_LEN_ERR, IBV_WC_LOC_LEN_ERR);
SAME(WC_LOC_QP_OP_ERR, IBV_WC_LOC_QP_OP_ERR);
SAME(WC_LOC_EEC_OP_ERR, IBV_WC_LOC_EEC_OP_ERR);
SAME(WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR);
SAME(WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR);
SAME(WC_MW_BIND_ERR, IBV_WC_MW_BIND_ERR);
SAME(WC_BAD_RESP_ERR, IBV_WC_BAD_RESP_ERR);
SAME(WC_LOC_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR);
SAME(WC_REM_INV_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
SAME(WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR);
SAME(WC_REM_OP_ERR, IBV_WC_REM_OP_ERR);
SAME(WC_RETRY_EXC_ERR, IBV_WC_RETRY_EXC_ERR);
SAME(WC_RNR_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR);
SAME(WC_REM_ABORT_ERR, IBV_WC_REM_ABORT_ERR);
SAME(WC_FATAL_ERR, IBV_WC_FATAL_ERR);
SAME(WC_RESP_TIMEOUT_ERR, IBV_WC_RESP_TIMEOUT_ERR);
SAME(WC_GENERAL_ERR, IBV_WC_GENERAL_ERR);
SAME(WC_SEND, IBV_WC_SEND);
SAME(WC_RDMA_WRITE, IBV_WC_RDMA_WRITE);
SAME(WC_RDMA_READ, IBV_WC_RDMA_READ);
SAME(WC_COMP_SWAP, IBV_WC_COMP_SWAP);
SAME(WC_FETCH_ADD, IBV_WC_FETCH_ADD);
SAME(WC_BIND_MW, IBV_WC_BIND_MW);
SAME(WC_LOCAL_INV, IBV_WC_LOCAL_INV);
SAME(WC_RECV, IBV_WC_RECV);
SAME(WC_RECV_RDMA_WITH_IMM, IBV_WC_RECV_RDMA_WITH_IMM);
SAME(WC_GRH, IBV_WC_GRH);
SAME(WC_WITH_IMM, IBV_WC_WITH_IMM);
SAME(WC_WITH_INV, IBV_WC_WITH_INV);
SAME(QP_ATTR_STATE, IBV_QP_STATE);
SAME(QP_ATTR_CUR_STATE, IBV_QP_CUR_STATE);
SAME(QP_ATTR_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY);
SAME(QP_ATTR_ACCESS_FLAGS, IBV_QP_ACCESS_FLAGS);
SAME(QP_ATTR_PKEY_INDEX, IBV_QP_PKEY_INDEX);
SAME(QP_ATTR_PORT, IBV_QP_PORT);
SAME(QP_ATTR_QKEY, IBV_QP_QKEY);
SAME(QP_ATTR_AV, IBV_QP_AV);
SAME(QP_ATTR_PATH_MTU, IBV_QP_PATH_MTU);
SAME(QP_ATTR_TIMEOUT, IBV_QP_TIMEOUT);
SAME(QP_ATTR_RETRY_CNT, IBV_QP_RETRY_CNT);
SAME(QP_ATTR_RNR_RETRY, IBV_QP_RNR_RETRY);
SAME(QP_ATTR_RQ_PSN, IBV_QP_RQ_PSN);
SAME(QP_ATTR_MAX_QP_RD_ATOMIC, IBV_QP_MAX_QP_RD_ATOMIC);
SAME(QP_ATTR_ALT_PATH, IBV_QP_ALT_PATH);
SAME(QP_ATTR_MIN_RNR_TIMER, IBV_QP_MIN_RNR_TIMER);
SAME(QP_ATTR_SQ_PSN, IBV_QP_SQ_PSN);
SAME(QP_ATTR_MAX_DEST_RD_ATOMIC, IBV_QP_MAX_DEST_RD_ATOMIC);
SAME(QP_ATTR_PATH_MIG_STATE, IBV_QP_PATH_MIG_STATE);
SAME(QP_ATTR_CAP, IBV_QP_CAP);
SAME(QP_ATTR_DEST_QPN, IBV_QP_DEST_QPN);
SAME(QP_ATTR_RATE_LIMIT, IBV_QP_RATE_LIMIT);
SAME(SRQ_ATTR_MAX_WR, IBV_SRQ_MAX_WR);
SAME(SRQ_ATTR_LIMIT, IBV_SRQ_LIMIT);
SAME(MR_REREG_TRANSLATION, IBV_REREG_MR_CHANGE_TRANSLATION);
SAME(MR_REREG_PD, IBV_REREG_MR_CHANGE_PD);
SAME(MR_REREG_ACCESS, IBV_REREG_MR_CHANGE_ACCESS);
SAME(PORT_STATE_DOWN, IBV_PORT_DOWN);
SAME(PORT_STATE_INIT, IBV_PORT_INIT);
SAME(PORT_STATE_ARMED, IBV_PORT_ARMED);
SAME(PORT_STATE_ACTIVE, IBV_PORT_ACTIVE);
SAME(ASYNC_CQ_ERR, IBV_EVENT_CQ_ERR);
SAME(ASYNC_QP_FATAL, IBV_EVENT_QP_FATAL);
SAME(ASYNC_QP_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
SAME(ASYNC_QP_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
SAME(ASYNC_COMM_EST, IBV_EVENT_COMM_EST);
SAME(ASYNC_SQ_DRAINED, IBV_EVENT_SQ_DRAINED);
SAME(ASYNC_PATH_MIG, IBV_EVENT_PATH_MIG);
SAME(ASYNC_PATH_MIG_ERR, IBV_EVENT_PATH_MIG_ERR);
SAME(ASYNC_DEVICE_FATAL, IBV_EVENT_DEVICE_FATAL);
SAME(ASYNC_PORT_ACTIVE, IBV_EVENT_PORT_ACTIVE);
SAME(ASYNC_PORT_ERR, IBV_EVENT_PORT_ERR);
SAME(ASYNC_LID_CHANGE, IBV_EVENT_LID_CHANGE);
SAME(ASYNC_PKEY_CHANGE, IBV_EVENT_PKEY_CHANGE);
SAME(ASYNC_SM_CHANGE, IBV_EVENT_SM_CHANGE);
SAME(ASYNC_SRQ_ERR, IBV_EVENT_SRQ_ERR);
SAME(ASYNC_SRQ_LIMIT_REACHED, IBV_EVENT_SRQ_LIMIT_REACHED);
SAME(ASYNC_QP_LAST_WQE_REACHED, IBV_EVENT_QP_LAST_WQE_REACHED);
SAME(ASYNC_CLIENT_REREGISTER, IBV_EVENT_CLIENT_REREGISTER);
SAME(ASYNC_GID_CHANGE, IBV_EVENT_GID_CHANGE);
