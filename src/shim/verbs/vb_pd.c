/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * vb_pd.c - protection, parent and thread domains.
 *
 * A parent domain is another handle of a protection domain: it shares what rt
 * knows that by. The allocators and the thread domain that it may carry are
 * offers to the driver, which needs neither.
 */
#include "shim/verbs/vb.h"

#include <stdlib.h>

static struct vb_td *vb_td(struct ibv_td *td)
{
	return CONTAINER_OF(td, struct vb_td, ibv);
}

static struct ibv_pd *pd_publish(struct vb_pd *pd, struct vb_context *ctx)
{
	pd->ibv.context = &ctx->v.context;
	vb_obj_add(&pd->obj, ctx, VB_PD);
	return &pd->ibv;
}

ABI_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *c)
{
	struct vb_context *ctx = vb_context(c);
	struct vb_pd *pd = vb_alloc(sizeof(*pd));
	int rc;

	if (!pd)
		return ret_null(-ENOMEM);
	rc = rt_pd_alloc(ctx->dev, &pd->rt);
	if (rc) {
		free(pd);
		return ret_null(rc);
	}
	return pd_publish(pd, ctx);
}

/* The parents' counts, guarded by the lists' lock. */
static void parents_ref(struct vb_pd *pd, uint32_t by)
{
	vb_lists_acquire();
	pd->parent->children += by;
	if (pd->td)
		pd->td->children += by;
	vb_lists_release();
}

static bool has_children(const uint32_t *children)
{
	bool ret;

	vb_lists_acquire();
	ret = *children != 0;
	vb_lists_release();
	return ret;
}

/* Of a parent domain too, whose objects keep the shared rt part busy. */
void vb_pd_orphan(struct vb_obj *o)
{
	struct vb_pd *pd = CONTAINER_OF(o, struct vb_pd, obj);
	int rc = pd->parent ? 0 : rt_pd_dealloc(o->ctx->dev, pd->rt);

	ASSERT(!rc);
	pd->rt = NULL;
}

ABI_EXPORT int ibv_dealloc_pd(struct ibv_pd *ibv)
{
	struct vb_pd *pd = vb_pd(ibv);
	int rc = 0;

	if (has_children(&pd->children))
		return ret_errno(-EBUSY);
	if (pd->parent)
		parents_ref(pd, -1u);
	else if (pd->rt)
		rc = rt_pd_dealloc(pd->obj.ctx->dev, pd->rt);
	if (rc)
		return ret_errno(rc);
	vb_obj_del(&pd->obj);
	free(pd);
	return ret_errno(0);
}

struct ibv_pd *vb_alloc_parent_domain(struct ibv_context *c,
				      struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			       IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	struct vb_pd *pd;

	if (attr->comp_mask & ~known)
		return ret_null(-EOPNOTSUPP);
	if (!attr->pd || attr->pd->context != c ||
	    (attr->td && attr->td->context != c))
		return ret_null(-EINVAL);
	pd = vb_alloc(sizeof(*pd));
	if (!pd)
		return ret_null(-ENOMEM);
	pd->rt = vb_pd(attr->pd)->rt;
	pd->parent = vb_pd(attr->pd);
	pd->td = attr->td ? vb_td(attr->td) : NULL;
	pd_publish(pd, vb_context(c));
	parents_ref(pd, 1);
	return &pd->ibv;
}

/* ---- thread domains ---- */

struct ibv_td *vb_alloc_td(struct ibv_context *c, struct ibv_td_init_attr *attr)
{
	struct vb_td *td;

	if (attr->comp_mask)
		return ret_null(-EOPNOTSUPP);
	td = vb_alloc(sizeof(*td));
	if (!td)
		return ret_null(-ENOMEM);
	td->ibv.context = c;
	vb_obj_add(&td->obj, vb_context(c), VB_TD);
	return &td->ibv;
}

void vb_td_orphan(struct vb_obj *o)
{
	(void)o; /* nothing below */
}

int vb_dealloc_td(struct ibv_td *ibv)
{
	struct vb_td *td = vb_td(ibv);

	if (has_children(&td->children))
		return ret_errno(-EBUSY);
	vb_obj_del(&td->obj);
	free(td);
	return ret_errno(0);
}
