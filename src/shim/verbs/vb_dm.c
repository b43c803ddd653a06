/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * vb_dm.c - device memory: allocated of the device's arena, copied in and out
 * by the program, named by zero-based regions.
 */
#include "shim/verbs/vb.h"

#include <stdlib.h>

static int dm_write(struct ibv_dm *ibv, uint64_t off, const void *src,
		    size_t len)
{
	struct vb_dm *dm = vb_dm(ibv);

	return ret_errno(
		dm->rt ? rt_dm_write(dm->obj.ctx->dev, dm->rt, off, src, len)
		       : -EIO);
}

static int dm_read(void *dst, struct ibv_dm *ibv, uint64_t off, size_t len)
{
	struct vb_dm *dm = vb_dm(ibv);

	return ret_errno(
		dm->rt ? rt_dm_read(dm->obj.ctx->dev, dm->rt, off, dst, len)
		       : -EIO);
}

struct ibv_dm *vb_alloc_dm(struct ibv_context *c,
			   struct ibv_alloc_dm_attr *attr)
{
	struct vb_context *ctx = vb_context(c);
	struct vb_dm *dm;
	int rc;

	if (attr->comp_mask)
		return ret_null(-EINVAL);
	dm = vb_alloc(sizeof(*dm));
	if (!dm)
		return ret_null(-ENOMEM);
	rc = rt_dm_alloc(ctx->dev, attr->length, attr->log_align_req, &dm->rt);
	if (rc) {
		free(dm);
		return ret_null(rc);
	}
	dm->len_bytes = attr->length;
	dm->ibv.context = c;
	dm->ibv.memcpy_to_dm = dm_write;
	dm->ibv.memcpy_from_dm = dm_read;
	vb_obj_add(&dm->obj, ctx, VB_DM);
	return &dm->ibv;
}

void vb_dm_orphan(struct vb_obj *o)
{
	struct vb_dm *dm = CONTAINER_OF(o, struct vb_dm, obj);

	rt_dm_free(o->ctx->dev, dm->rt);
	dm->rt = NULL;
}

int vb_free_dm(struct ibv_dm *ibv)
{
	struct vb_dm *dm = vb_dm(ibv);
	uint32_t mrs;

	vb_lists_acquire();
	mrs = dm->mrs;
	vb_lists_release();
	if (mrs)
		return ret_errno(-EBUSY);
	if (dm->rt)
		rt_dm_free(dm->obj.ctx->dev, dm->rt);
	vb_obj_del(&dm->obj);
	free(dm);
	return ret_errno(0);
}

/* Device memory has no address in the program, so its regions begin at 0. */
struct ibv_mr *vb_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibv,
			    uint64_t dm_offset, size_t length,
			    unsigned int access)
{
	const unsigned int known =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
		IBV_ACCESS_ZERO_BASED | IBV_ACCESS_OPTIONAL_RANGE;
	struct vb_dm *dm = vb_dm(ibv);
	struct mr_attr attr = { .len_bytes = length, .access = access };

	if (!(access & IBV_ACCESS_ZERO_BASED) || access & ~known)
		return ret_null(-EINVAL);
	if (!dm->rt || ibv->context != pd->context ||
	    dm_offset > dm->len_bytes || length > dm->len_bytes - dm_offset)
		return ret_null(-EINVAL);
	attr.va = rt_dm_va(dm->rt) + dm_offset;
	return vb_mr_new(pd, &attr, dm);
}
