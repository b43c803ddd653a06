/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * vb.h - the objects that a program holds. Each begins with the public struct
 * of <infiniband/verbs.h>, whose layout is the ABI, and adds what rt knows it
 * by. The shim translates; what is right or wrong is decided below.
 */
#ifndef SOFTHCA_SHIM_VB_H
#define SOFTHCA_SHIM_VB_H

#include <pthread.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "base/dlist.h"
#include "rt/rt.h"
#include "shim/abi.h"
#include "shim/verbs/vb_err.h"

#define VB_PORT 1 /* devices have one port */
/* Programs deal their CQs to as many; there are no interrupts to be steered. */
#define VB_COMP_VECTORS 8

struct vb_device {
	struct ibv_device ibv;
	struct rt_device rt;
	struct dlist link; /* all that some list or context refers to */
	unsigned int refs;
};

/* In the order in which ibv_close_device destroys what is left. */
enum vb_kind {
	VB_QP,
	VB_SRQ,
	VB_CQ,
	VB_XRCD,
	VB_AH,
	VB_MW,
	VB_MR,
	VB_DM,
	VB_PD,
	VB_TD,
	VB_CHANNEL,
	VB_KINDS,
};

struct vb_context {
	struct rtdev *dev; /* NULL once closed */
	struct rt_evq *async;
	/* guarded by vb_lists_acquire() */
	struct dlist objs[VB_KINDS];
	unsigned int refs;	/* itself, and one an object */
	struct verbs_context v; /* last: v.context is what the program has */
};

/* In every object but the device. An object whose context was closed first is
 * an orphan: its rt part is gone, the program may still destroy it. */
struct vb_obj {
	struct vb_context *ctx;
	struct dlist link;
	enum vb_kind kind;
};

struct vb_td {
	struct ibv_td ibv;
	struct vb_obj obj;
	uint32_t children; /* parent domains */
};

struct vb_pd {
	struct ibv_pd ibv;
	struct vb_obj obj;
	struct pd *rt;
	uint32_t children; /* parent domains made of it */
	struct vb_pd
		*parent; /* of a parent domain: the PD that it stands for */
	struct vb_td *td;
};

struct vb_mr {
	struct ibv_mr ibv;
	struct vb_obj obj;
	struct mr *rt;
	struct mr_attr attr;
	struct vb_dm *dm; /* of device memory, or NULL */
	bool null;
};

struct vb_mw {
	struct ibv_mw ibv;
	struct vb_obj obj;
	struct mw *rt;
};

struct vb_dm {
	struct ibv_dm ibv;
	struct vb_obj obj;
	struct dmem_block *rt;
	size_t len_bytes;
	uint32_t mrs; /* guarded by vb_lists_acquire() */
};

struct vb_ah {
	struct ibv_ah ibv;
	struct vb_obj obj;
	struct ah *rt;
};

struct vb_channel {
	struct ibv_comp_channel ibv;
	struct vb_obj obj;
	struct rt_evq *rt;
};

struct vb_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	uint64_t spare[8]; /* members that later headers append */
	struct vb_obj obj;
	struct rt_cq *rt;
	pthread_mutex_t poll_lock; /* from start_poll to end_poll */
	struct wc wc;		   /* what read_* answer from */
};

struct vb_srq {
	struct ibv_srq ibv;
	struct vb_obj obj;
	struct rt_srq *rt;
};

struct vb_xrcd {
	struct ibv_xrcd ibv;
	struct vb_obj obj;
	struct rt_xrcd *rt;
};

/* The work requests between wr_start and wr_complete. */
struct vb_batch {
	pthread_mutex_t lock; /* from wr_start to wr_complete or wr_abort */
	int error;	      /* the first, -errno */
	struct send_wr dummy; /* what builders write to after an error */
	struct send_wr *wr;   /* sge: an index into sge[] until complete */
	uint32_t wr_n, wr_room;
	struct sge *sge;
	uint32_t sge_n, sge_room;
	uint8_t *bytes; /* inline data; its SGEs' addr is an offset */
	uint32_t bytes_n, bytes_room;
};

struct vb_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	};
	/* wr_flush of later headers, and room for more */
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr,
			 size_t len, uint8_t type, uint8_t level);
	uint64_t spare[8];
	struct vb_obj obj;
	struct rt_qp *rt;
	struct qp_cap cap;
	bool sq_sig_all;
	bool has_ex; /* created with send_ops_flags */
	uint64_t send_ops;
	struct vb_batch batch;
};

static inline struct vb_context *vb_context(struct ibv_context *c)
{
	return CONTAINER_OF(c, struct vb_context, v.context);
}

#define VB_CAST(type, name)                                                    \
	static inline struct vb_##name *vb_##name(const struct ibv_##type *p)  \
	{                                                                      \
		return (struct vb_##name *)(uintptr_t)p;                       \
	}
VB_CAST(device, device)
VB_CAST(pd, pd)
VB_CAST(mr, mr)
VB_CAST(mw, mw)
VB_CAST(dm, dm)
VB_CAST(ah, ah)
VB_CAST(comp_channel, channel)
VB_CAST(cq, cq)
VB_CAST(srq, srq)
VB_CAST(qp, qp)
#undef VB_CAST

/* ---- vb_device.c ---- */

/* Zeroed memory for an object, or NULL. */
void *vb_alloc(size_t size);
/* The lock of all lists and their references; a leaf. Data paths never take
 * it, and the child of a fork finds it free. */
void vb_lists_acquire(void);
void vb_lists_release(void);
/* Ties an object to its context; vb_obj_del() unties it. An open object keeps
 * the context's memory alive. */
void vb_obj_add(struct vb_obj *o, struct vb_context *ctx, enum vb_kind kind);
void vb_obj_del(struct vb_obj *o);

/* ---- the rt half of each destroy, for ibv_close_device: must succeed ---- */
void vb_qp_orphan(struct vb_obj *o);
void vb_srq_orphan(struct vb_obj *o);
void vb_cq_orphan(struct vb_obj *o);
void vb_xrcd_orphan(struct vb_obj *o);
void vb_ah_orphan(struct vb_obj *o);
void vb_mw_orphan(struct vb_obj *o);
void vb_mr_orphan(struct vb_obj *o);
void vb_dm_orphan(struct vb_obj *o);
void vb_pd_orphan(struct vb_obj *o);
void vb_td_orphan(struct vb_obj *o);
void vb_channel_orphan(struct vb_obj *o);

/* ---- vb_ops.c: the slots of the context ---- */
void vb_ops_init(struct verbs_context *v);

/* ---- vb_query.c ---- */
int vb_query_device_ex(struct ibv_context *c,
		       const struct ibv_query_device_ex_input *in,
		       struct ibv_device_attr_ex *attr, size_t size);
int vb_query_port(struct ibv_context *c, uint8_t port,
		  struct ibv_port_attr *attr, size_t len);
int vb_query_rt_values(struct ibv_context *c, struct ibv_values_ex *values);
/* One line on stderr, once a process: this program gave no global route, and
 * which GID index to name. */
void vb_say_gid_needed(struct vb_context *ctx);

/* ---- vb_event.c ---- */
/* Waits until `given` events of an object have been acknowledged. */
void vb_wait_acks(pthread_mutex_t *mutex, pthread_cond_t *cond,
		  const uint32_t *completed, uint32_t given);

/* ---- vb_attr.c: public attributes to the core's and back ---- */
void ah_attr_from_ibv(struct ah_attr *ret, const struct ibv_ah_attr *a);
void ah_attr_to_ibv(struct ibv_ah_attr *ret, const struct ah_attr *a);
void qp_attr_from_ibv(struct qp_attr *ret, const struct ibv_qp_attr *a);
void qp_attr_to_ibv(struct ibv_qp_attr *ret, const struct qp_attr *a);
void qp_cap_from_ibv(struct qp_cap *ret, const struct ibv_qp_cap *c);
void qp_cap_to_ibv(struct ibv_qp_cap *ret, const struct qp_cap *c);

/* ---- vb_pd.c ---- */
struct ibv_pd *vb_alloc_parent_domain(struct ibv_context *c,
				      struct ibv_parent_domain_init_attr *attr);
struct ibv_td *vb_alloc_td(struct ibv_context *c,
			   struct ibv_td_init_attr *attr);
int vb_dealloc_td(struct ibv_td *td);

/* ---- vb_mr.c ---- */
/* NULL with errno. len_bytes of it are at attr->va. */
struct ibv_mr *vb_mr_new(struct ibv_pd *pd, const struct mr_attr *attr,
			 struct vb_dm *dm);
struct ibv_mr *vb_alloc_null_mr(struct ibv_pd *pd);
int vb_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
		 uint32_t flags, struct ibv_sge *sg_list, uint32_t num_sge);

/* ---- vb_mw.c ---- */
struct ibv_mw *vb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int vb_dealloc_mw(struct ibv_mw *mw);
int vb_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
/* Fills what is of a bind; rkey: the new one. -EINVAL: no window of the type,
 * or a region of another context. */
MUST_USE int vb_bind_wr(struct send_wr *ret, const struct ibv_mw *mw,
			enum ibv_mw_type type, uint32_t rkey,
			const struct ibv_mw_bind_info *info);

/* ---- vb_dm.c ---- */
struct ibv_dm *vb_alloc_dm(struct ibv_context *c,
			   struct ibv_alloc_dm_attr *attr);
int vb_free_dm(struct ibv_dm *dm);
struct ibv_mr *vb_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
			    uint64_t dm_offset, size_t length,
			    unsigned int access);

/* ---- vb_cq.c, vb_cq_ex.c ---- */
/* comp_vector and channel as in ibv_create_cq; NULL with errno. */
struct vb_cq *vb_cq_create(struct ibv_context *c, uint32_t cqe, void *user,
			   struct ibv_comp_channel *channel, int comp_vector);
int vb_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int vb_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int vb_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *vb_create_cq_ex(struct ibv_context *c,
				  struct ibv_cq_init_attr_ex *attr);

/* ---- vb_srq.c ---- */
/* xrcd, cq: of an XRC SRQ, else NULL. */
struct ibv_srq *vb_srq_make(struct ibv_pd *pd, struct rt_xrcd *xrcd,
			    struct ibv_cq *cq, struct ibv_srq_init_attr *init);
int vb_get_srq_num(struct ibv_srq *srq, uint32_t *ret_num);

/* ---- vb_xrc.c ---- */
struct ibv_xrcd *vb_open_xrcd(struct ibv_context *c,
			      struct ibv_xrcd_init_attr *attr);
int vb_close_xrcd(struct ibv_xrcd *xrcd);
/* NULL: none, closed, or of another context. */
struct rt_xrcd *vb_xrcd_rt(struct ibv_xrcd *xrcd, struct ibv_context *c);
struct ibv_srq *vb_create_srq_ex(struct ibv_context *c,
				 struct ibv_srq_init_attr_ex *attr);
struct ibv_qp *vb_open_qp(struct ibv_context *c, struct ibv_qp_open_attr *attr);

/* ---- vb_qp.c, vb_wr.c ---- */
/* A QP without its rt part; NULL: no memory. pd: NULL for an XRC target. */
struct vb_qp *vb_qp_new(struct ibv_context *c, struct ibv_pd *pd,
			const struct ibv_qp_init_attr *init);
void vb_qp_free(struct vb_qp *qp);
/* It has its rt part: from now on it is the program's. */
struct ibv_qp *vb_qp_publish(struct vb_qp *qp);
struct ibv_qp *vb_create_qp_ex(struct ibv_context *c,
			       struct ibv_qp_init_attr_ex *attr);
/* -EOPNOTSUPP: an operation that this QP type has not. Fills the wr_*
 * pointers; vb_batch_fini() frees. */
MUST_USE int vb_wr_init(struct vb_qp *qp, uint64_t send_ops);
void vb_batch_fini(struct vb_batch *b);

/* ---- vb_post.c ---- */
int vb_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		 struct ibv_send_wr **bad);
int vb_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		 struct ibv_recv_wr **bad);
int vb_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad);

#endif
