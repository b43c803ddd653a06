/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/path.h"

#include <errno.h>

#include "core/obj/hca_priv.h"

#define HOP_LIMIT_DEFAULT 64

/* BTH and the most that goes with payload: XRCETH, RETH and ImmDt. */
#define TRANSPORT_OVERHEAD 36

enum mtu_code mtu_code_fitting(uint32_t payload_bytes)
{
	uint32_t c = MTU_4096;

	while (c > 0 && mtu_bytes((enum mtu_code)c) > payload_bytes)
		c--;
	return (enum mtu_code)c;
}

static bool fields_ok(const struct ah_attr *a)
{
	return a->port_num == 1 && a->sl < 16 && a->flow_label <= 0xfffff;
}

int path_resolve(const struct hca *hca, const struct ah_attr *attr,
		 struct path *ret_path)
{
	const struct gid_entry *e = hca_gid(hca, attr->sgid_index);
	struct gid dgid = attr->dgid;

	if (!fields_ok(attr))
		return -EINVAL;
	/* Forgetting is_global is the classic mistake (bug log B124). */
	if (!attr->is_global && hca->cfg.link_layer->needs_grh)
		return -EINVAL;
	/* By IPv4 a group goes by its IPv4 name. */
	if (e && gid_is_v4(&e->gid) && gid_is_multicast(&dgid))
		dgid = gid_group_v4(&dgid);
	if (!e || !e->valid || gid_is_zero(&dgid) ||
	    gid_is_v4(&dgid) != gid_is_v4(&e->gid))
		return -EINVAL;
	*ret_path = (struct path){
		.sgid = e->gid,
		.dgid = dgid,
		.netdev = e->netdev,
		.vlan = e->vlan,
		.sgid_index = attr->sgid_index,
		.sl = attr->sl,
		.tclass = attr->traffic_class,
		.hop_limit =
			attr->hop_limit ? attr->hop_limit : HOP_LIMIT_DEFAULT,
		.flow_label = attr->flow_label,
		.sport = path_sport(attr->flow_label, 0, 0),
	};
	return 0;
}

static enum mtu_code max_mtu(const struct hca *hca, uint32_t netdev_mtu,
			     const struct gid *dgid)
{
	uint32_t overhead =
		hca->cfg.link_layer->overhead_bytes(dgid) + TRANSPORT_OVERHEAD;

	return mtu_code_fitting(netdev_mtu > overhead ? netdev_mtu - overhead
						      : 0);
}

enum mtu_code path_max_mtu(const struct hca *hca, const struct path *path,
			   uint32_t sgid_index)
{
	const struct gid_entry *e = hca_gid(hca, sgid_index);

	ASSERT(e);
	return max_mtu(hca, e->mtu_bytes, &path->dgid);
}

enum mtu_code hca_active_mtu(const struct hca *hca)
{
	/* Of any destination: IPv6 has the longer headers. */
	static const struct gid v6 = { .raw = { 0xfe, 0x80 } };

	return max_mtu(hca, hca->netdev_mtu, &v6);
}

uint16_t path_sport(uint32_t flow_label, uint32_t qpn, uint32_t dest_qpn)
{
	uint64_t v = flow_label;

	if (!v) {
		v = (uint64_t)qpn * dest_qpn;
		v ^= v >> 20;
		v ^= v >> 40;
		v &= 0xfffff;
	}
	return (uint16_t)(0xc000 | ((v & 0x3fff) ^ (v >> 14)));
}
