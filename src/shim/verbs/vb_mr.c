/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * vb_mr.c - memory regions.
 */
#include "shim/verbs/vb.h"

#include <stdlib.h>

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static void mr_publish(struct vb_mr *mr)
{
	/* Device memory is nowhere that the program knows. */
	mr->ibv.addr = mr->dm ? NULL : (void *)(uintptr_t)mr->attr.va;
	mr->ibv.length = (size_t)mr->attr.len_bytes;
	mr->ibv.lkey = mr_key(mr->rt);
	mr->ibv.rkey = mr->ibv.lkey;
	mr->ibv.handle = mr->ibv.lkey;
}

static void dm_ref(struct vb_dm *dm, uint32_t by)
{
	if (!dm)
		return;
	vb_lists_acquire();
	dm->mrs += by;
	vb_lists_release();
}

static int mr_rt_reg(struct vb_pd *pd, struct vb_mr *mr)
{
	struct rtdev *dev = pd->obj.ctx->dev;

	if (!pd->rt)
		return -EIO;
	return mr->null ? rt_mr_reg_null(dev, pd->rt, &mr->rt)
			: rt_mr_reg(dev, pd->rt, &mr->attr, &mr->rt);
}

/* mr has its attributes; frees it when that fails. */
static struct ibv_mr *mr_publish_new(struct ibv_pd *ibv, struct vb_mr *mr)
{
	struct vb_pd *pd = vb_pd(ibv);
	int rc = mr_rt_reg(pd, mr);

	if (rc) {
		free(mr);
		return ret_null(rc);
	}
	mr->ibv.context = ibv->context;
	mr->ibv.pd = ibv;
	mr_publish(mr);
	dm_ref(mr->dm, 1);
	vb_obj_add(&mr->obj, pd->obj.ctx, VB_MR);
	return &mr->ibv;
}

struct ibv_mr *vb_mr_new(struct ibv_pd *pd, const struct mr_attr *attr,
			 struct vb_dm *dm)
{
	struct vb_mr *mr = vb_alloc(sizeof(*mr));

	if (!mr)
		return ret_null(-ENOMEM);
	mr->attr = *attr;
	mr->dm = dm;
	return mr_publish_new(pd, mr);
}

struct ibv_mr *vb_alloc_null_mr(struct ibv_pd *pd)
{
	struct vb_mr *mr = vb_alloc(sizeof(*mr));

	if (!mr)
		return ret_null(-ENOMEM);
	mr->null = true;
	mr->attr = (struct mr_attr){ .len_bytes = UINT64_MAX,
				     .access = ACCESS_LOCAL_WRITE };
	return mr_publish_new(pd, mr);
}

static struct ibv_mr *mr_reg_at(struct ibv_pd *pd, void *addr, size_t length,
				uint64_t iova, unsigned int access)
{
	struct mr_attr attr = {
		.va = (uintptr_t)addr,
		.iova = iova,
		.len_bytes = length,
		.access = access,
	};

	return vb_mr_new(pd, &attr, NULL);
}

ABI_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr,
				     size_t length, int access)
{
	uint64_t iova = access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;

	return mr_reg_at(pd, addr, length, iova, (unsigned int)access);
}

ABI_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr,
					  size_t length, uint64_t iova,
					  int access)
{
	return mr_reg_at(pd, addr, length, iova, (unsigned int)access);
}

ABI_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr,
					   size_t length, uint64_t iova,
					   unsigned int access)
{
	return mr_reg_at(pd, addr, length, iova, access);
}

void vb_mr_orphan(struct vb_obj *o)
{
	struct vb_mr *mr = CONTAINER_OF(o, struct vb_mr, obj);
	int rc = rt_mr_dereg(o->ctx->dev, mr->rt);

	ASSERT(!rc);
	mr->rt = NULL;
}

ABI_EXPORT int ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct vb_mr *mr = vb_mr(ibv);
	int rc = mr->rt ? rt_mr_dereg(mr->obj.ctx->dev, mr->rt) : 0;

	if (rc)
		return ret_errno(rc);
	dm_ref(mr->dm, -1u);
	vb_obj_del(&mr->obj);
	free(mr);
	return ret_errno(0);
}

static int rereg_attr(const struct vb_mr *mr, int flags, struct ibv_pd *pd,
		      void *addr, size_t length, int access,
		      struct mr_attr *ret)
{
	if (mr->dm || mr->null)
		return -EOPNOTSUPP;
	if (!flags || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED)
		return -EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_PD &&
	    (!pd || pd->context != mr->ibv.context))
		return -EINVAL;
	if (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS))
		return -EINVAL;
	*ret = mr->attr;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		if (!addr || !length)
			return -EINVAL;
		ret->va = (uintptr_t)addr;
		ret->iova = (uintptr_t)addr;
		ret->len_bytes = length;
	}
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		ret->access = (uint32_t)access;
	return 0;
}

/* Failing changes nothing, whatever the reason: always "the input". */
static int rereg_failed(int rc)
{
	ret_errno(rc);
	return IBV_REREG_MR_ERR_INPUT;
}

ABI_EXPORT int ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd,
			    void *addr, size_t length, int access)
{
	struct vb_mr *mr = vb_mr(ibv);
	struct mr_attr attr;
	int rc;

	if (!mr->rt)
		return rereg_failed(-EIO);
	rc = rereg_attr(mr, flags, pd, addr, length, access, &attr);
	if (rc)
		return rereg_failed(rc);
	rc = rt_mr_rereg(mr->obj.ctx->dev, mr->rt, (uint32_t)flags,
			 flags & IBV_REREG_MR_CHANGE_PD ? vb_pd(pd)->rt : NULL,
			 &attr);
	if (rc)
		return rereg_failed(rc);
	mr->attr = attr;
	if (flags & IBV_REREG_MR_CHANGE_PD)
		ibv->pd = pd;
	mr_publish(mr);
	return ret_errno(0);
}

/* ---- advice ---- */

static int advise_one(const struct vb_mr *mr, const struct ibv_sge *s,
		      bool write)
{
	if (!(mr->attr.access & ACCESS_ON_DEMAND))
		return -EINVAL;
	if (write && !(mr->attr.access & ACCESS_LOCAL_WRITE))
		return -EPERM;
	if (s->addr < mr->attr.iova || s->length > mr->attr.len_bytes ||
	    s->addr - mr->attr.iova > mr->attr.len_bytes - s->length)
		return -EFAULT;
	return 0;
}

/* Caller holds the lists' lock. */
static const struct vb_mr *mr_by_key(struct vb_context *ctx, uint32_t lkey)
{
	struct dlist *head = &ctx->objs[VB_MR];
	const struct vb_mr *mr;
	struct dlist *l;

	for (l = head->next; l != head; l = l->next) {
		mr = CONTAINER_OF(l, struct vb_mr, obj.link);
		if (mr->ibv.lkey == lkey)
			return mr;
	}
	return NULL;
}

/* Checks like a NIC, then has nothing to do: an access brings its page in. */
int vb_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
		 uint32_t flags, struct ibv_sge *sg_list, uint32_t num_sge)
{
	struct vb_context *ctx = vb_context(pd->context);
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	const struct vb_mr *mr;
	uint32_t i;
	int rc = 0;

	if (advice != IBV_ADVISE_MR_ADVICE_PREFETCH && !write &&
	    advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return ret_errno(-EOPNOTSUPP);
	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH || !num_sge)
		return ret_errno(-EINVAL);
	vb_lists_acquire();
	for (i = 0; i < num_sge && !rc; i++) {
		mr = mr_by_key(ctx, sg_list[i].lkey);
		if (!mr || vb_pd(mr->ibv.pd)->rt != vb_pd(pd)->rt)
			rc = -ENOENT;
		else
			rc = advise_one(mr, &sg_list[i], write);
	}
	vb_lists_release();
	return ret_errno(rc);
}

/* ---- fork: no page of a registration is pinned, so none can be lost to a
 * child's copy-on-write [B193] ---- */

ABI_EXPORT int ibv_fork_init(void)
{
	return 0;
}

ABI_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}
