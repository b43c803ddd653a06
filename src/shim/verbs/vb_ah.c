/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * vb_ah.c - address handles, also from a received datagram.
 */
#include "shim/verbs/vb.h"

#include <stdlib.h>
#include <string.h>

ABI_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *ibv,
					struct ibv_ah_attr *attr)
{
	struct vb_pd *pd = vb_pd(ibv);
	struct vb_ah *ah = vb_alloc(sizeof(*ah));
	struct ah_attr a;
	int rc;

	if (!ah)
		return ret_null(-ENOMEM);
	ah_attr_from_ibv(&a, attr);
	rc = pd->rt ? rt_ah_create(pd->obj.ctx->dev, pd->rt, &a, &ah->rt)
		    : -EIO;
	if (rc) {
		free(ah);
		if (rc == -EINVAL && !a.is_global)
			vb_say_gid_needed(pd->obj.ctx);
		return ret_null(rc);
	}
	ah->ibv.context = ibv->context;
	ah->ibv.pd = ibv;
	vb_obj_add(&ah->obj, pd->obj.ctx, VB_AH);
	return &ah->ibv;
}

void vb_ah_orphan(struct vb_obj *o)
{
	struct vb_ah *ah = CONTAINER_OF(o, struct vb_ah, obj);
	int rc = rt_ah_destroy(o->ctx->dev, ah->rt);

	ASSERT(!rc);
	ah->rt = NULL;
}

ABI_EXPORT int ibv_destroy_ah(struct ibv_ah *ibv)
{
	struct vb_ah *ah = vb_ah(ibv);
	int rc = ah->rt ? rt_ah_destroy(ah->obj.ctx->dev, ah->rt) : 0;

	if (rc)
		return ret_errno(rc);
	vb_obj_del(&ah->obj);
	free(ah);
	return ret_errno(0);
}

/* ---- the way back to a datagram's sender ---- */

/* The 40 bytes in front of a datagram: an IPv6 header (or a GRH), or 20 bytes
 * of nothing and an IPv4 header [IBA A17.4.5.2]. */
static bool grh_parse(const struct ibv_grh *grh, struct ipv6 *ret)
{
	const uint8_t *p = (const uint8_t *)grh;
	struct ipv4 v4;

	if (ipv4_decode(&v4, p + GRH_BYTES - IPV4_BYTES, IPV4_BYTES) &&
	    inet_sum(0, p + GRH_BYTES - IPV4_BYTES, IPV4_BYTES) == 0xffff) {
		memset(ret, 0, sizeof(*ret));
		ret->tclass = v4.tos;
		ret->hop_limit = v4.ttl;
		ret->src = gid_from_v4(v4.src);
		ret->dst = gid_from_v4(v4.dst);
		return true;
	}
	return ipv6_decode(ret, p, GRH_BYTES) != 0;
}

static int gid_index_of(struct vb_context *ctx, const struct gid *g)
{
	uint32_t len = rtdev_limits(ctx->dev)->gid_table_len;
	struct gid_entry e;
	uint32_t i;

	for (i = 0; i < len && i <= UINT8_MAX; i++)
		if (!rt_query_gid(ctx->dev, i, &e) && gid_eq(&e.gid, g))
			return (int)i;
	return -ENOENT;
}

static int ah_attr_from_grh(struct vb_context *ctx, const struct ibv_grh *grh,
			    struct ibv_ah_attr *ret)
{
	struct ipv6 h;
	int index;

	if (!grh_parse(grh, &h))
		return -EINVAL;
	index = gid_index_of(ctx, &h.dst);
	if (index < 0)
		return index;
	ret->is_global = 1;
	memcpy(ret->grh.dgid.raw, h.src.raw, sizeof(ret->grh.dgid.raw));
	ret->grh.sgid_index = (uint8_t)index;
	ret->grh.flow_label = h.flow;
	ret->grh.traffic_class = h.tclass;
	ret->grh.hop_limit = 0xff; /* a reply's [IBA 13.5.4.4] */
	return 0;
}

ABI_EXPORT int ibv_init_ah_from_wc(struct ibv_context *c, uint8_t port,
				   struct ibv_wc *wc, struct ibv_grh *grh,
				   struct ibv_ah_attr *ret)
{
	if (port != VB_PORT)
		return ret_minus1(-EINVAL);
	memset(ret, 0, sizeof(*ret));
	ret->dlid = wc->slid;
	ret->src_path_bits = wc->dlid_path_bits;
	ret->port_num = port;
	if (!(wc->wc_flags & IBV_WC_GRH)) {
		ret->sl = wc->sl;
		return ret_minus1(0);
	}
	/* With a GRH, on Ethernet, wc->sl is the kind of network header. */
	return ret_minus1(ah_attr_from_grh(vb_context(c), grh, ret));
}

ABI_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd,
						struct ibv_wc *wc,
						struct ibv_grh *grh,
						uint8_t port)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
		return NULL; /* errno is set */
	return ibv_create_ah(pd, &attr);
}
