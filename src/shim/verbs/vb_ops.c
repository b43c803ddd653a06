/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * vb_ops.c - the function pointers of a context, which the inline functions
 * of <infiniband/verbs.h> call. An empty slot means "not supported" where the
 * inline looks; where it calls without looking there is always a function.
 */
#include "shim/verbs/vb.h"

#undef ibv_query_port

void vb_ops_init(struct verbs_context *v)
{
	struct ibv_context_ops *ops = &v->context.ops;

	ops->_compat_query_device = ibv_query_device;
	ops->_compat_query_port = ibv_query_port;
	ops->alloc_mw = vb_alloc_mw;
	ops->bind_mw = vb_bind_mw;
	ops->dealloc_mw = vb_dealloc_mw;
	ops->poll_cq = vb_poll_cq;
	ops->req_notify_cq = vb_req_notify_cq;
	ops->post_send = vb_post_send;
	ops->post_recv = vb_post_recv;
	ops->post_srq_recv = vb_post_srq_recv;

	v->query_device_ex = vb_query_device_ex;
	v->query_port = vb_query_port;
	v->create_cq_ex = vb_create_cq_ex;
	v->modify_cq = vb_modify_cq;
	v->query_rt_values = vb_query_rt_values;
	v->create_qp_ex = vb_create_qp_ex;
	v->create_srq_ex = vb_create_srq_ex;
	v->get_srq_num = vb_get_srq_num;
	v->advise_mr = vb_advise_mr;
	v->alloc_null_mr = vb_alloc_null_mr;
	v->alloc_dm = vb_alloc_dm;
	v->free_dm = vb_free_dm;
	v->reg_dm_mr = vb_reg_dm_mr;
	v->alloc_parent_domain = vb_alloc_parent_domain;
	v->alloc_td = vb_alloc_td;
	v->dealloc_td = vb_dealloc_td;
	v->open_xrcd = vb_open_xrcd;
	v->close_xrcd = vb_close_xrcd;
	v->open_qp = vb_open_qp;
	v->sz = sizeof(*v);
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
}
