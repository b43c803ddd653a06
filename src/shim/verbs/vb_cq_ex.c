/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * vb_cq_ex.c - extended CQs: one completion at a time, read through
 * functions. Between a start_poll that found one and end_poll the CQ belongs
 * to one thread.
 */
#include "shim/verbs/vb.h"

#include <time.h>

#define TIME_FLAGS                                                             \
	((uint64_t)IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |                       \
	 (uint64_t)IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define WC_FLAGS ((uint64_t)IBV_WC_STANDARD_FLAGS | TIME_FLAGS)
#define CREATE_FLAGS                                                           \
	((uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED |                        \
	 (uint32_t)IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)

static struct vb_cq *cq_ex(struct ibv_cq_ex *ex)
{
	return CONTAINER_OF(ex, struct vb_cq, ex);
}

/* ENOENT: empty. */
static int take_one(struct vb_cq *cq)
{
	int n = rt_cq_poll(cq->rt, 1, &cq->wc);

	if (n <= 0)
		return ret_errno(n ? n : -ENOENT);
	cq->ex.wr_id = cq->wc.wr_id;
	cq->ex.status = (enum ibv_wc_status)cq->wc.status;
	return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct vb_cq *cq = cq_ex(ex);
	int rc;

	if (attr && attr->comp_mask)
		return ret_errno(-EINVAL);
	pthread_mutex_lock(&cq->poll_lock);
	rc = take_one(cq);
	if (rc)
		pthread_mutex_unlock(&cq->poll_lock);
	return rc;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	return take_one(cq_ex(ex));
}

static void end_poll(struct ibv_cq_ex *ex)
{
	pthread_mutex_unlock(&cq_ex(ex)->poll_lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
	return (enum ibv_wc_opcode)cq_ex(ex)->wc.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
	return cq_ex(ex)->wc.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
	return cq_ex(ex)->wc.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
	return cq_ex(ex)->wc.imm_be_or_rkey;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
	return cq_ex(ex)->wc.qpn;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
	return cq_ex(ex)->wc.src_qpn;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
	return cq_ex(ex)->wc.wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
	return cq_ex(ex)->wc.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
	return cq_ex(ex)->wc.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
	return cq_ex(ex)->wc.dlid_path_bits;
}

/* Ticks of the clock that ibv_query_rt_values_ex() shows: nanoseconds of
 * CLOCK_MONOTONIC. */
static uint64_t read_time(struct ibv_cq_ex *ex)
{
	return (uint64_t)rt_cq_polled_ns(cq_ex(ex)->rt);
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static uint64_t read_wallclock(struct ibv_cq_ex *ex)
{
	return read_time(ex) +
	       (uint64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));
}

/* What wc_flags cannot ask for: never NULL, programs call without looking. */

static uint16_t read_no_cvlan(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

static uint32_t read_no_flow_tag(struct ibv_cq_ex *ex)
{
	(void)ex;
	return 0;
}

static void read_no_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *info)
{
	(void)ex;
	info->tag = 0;
	info->priv = 0;
}

static void ex_init(struct ibv_cq_ex *ex)
{
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_wc_flags = read_wc_flags;
	ex->read_slid = read_slid;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_dlid_path_bits;
	ex->read_completion_ts = read_time;
	ex->read_cvlan = read_no_cvlan;
	ex->read_flow_tag = read_no_flow_tag;
	ex->read_tm_info = read_no_tm_info;
	ex->read_completion_wallclock_ns = read_wallclock;
}

struct ibv_cq_ex *vb_create_cq_ex(struct ibv_context *c,
				  struct ibv_cq_init_attr_ex *attr)
{
	const uint32_t known =
		IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
	uint32_t flags = 0;
	struct vb_cq *cq;

	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS)
		flags = attr->flags;
	if (attr->wc_flags & ~WC_FLAGS || attr->comp_mask & ~known ||
	    flags & ~CREATE_FLAGS)
		return ret_null(-EOPNOTSUPP);
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
	    (!attr->parent_domain || !vb_pd(attr->parent_domain)->parent ||
	     attr->parent_domain->context != c))
		return ret_null(-EINVAL);
	if (attr->comp_vector > INT32_MAX)
		return ret_null(-EINVAL);
	cq = vb_cq_create(c, attr->cqe, attr->cq_context, attr->channel,
			  (int)attr->comp_vector);
	if (!cq)
		return NULL;
	if (flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)
		rt_cq_ignore_overrun(cq->rt);
	if (attr->wc_flags & TIME_FLAGS && rt_cq_keep_times(cq->rt)) {
		(void)ibv_destroy_cq(&cq->ibv);
		return ret_null(-ENOMEM);
	}
	ex_init(&cq->ex);
	return &cq->ex;
}
