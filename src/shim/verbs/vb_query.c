/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * vb_query.c - what a device and its port say about themselves.
 */
#include "shim/verbs/vb.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"

/* sysfs' numbers of GID types, which ibv_query_gid_type() speaks. */
enum { GID_SYSFS_IB_ROCE_V1 = 0, GID_SYSFS_ROCE_V2 = 1 };

/* All transports, all operations: memory is never pinned here, a page comes
 * in when it is touched. */
#define ODP_CONNECTED                                                          \
	(IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE | \
	 IBV_ODP_SUPPORT_SRQ_RECV)

#define CLOCK_KHZ 1000000 /* a tick is a nanosecond */

static void device_ids(const struct vb_context *ctx, struct ibv_device_attr *a)
{
	snprintf(a->fw_ver, sizeof(a->fw_ver), "%s", SOFTHCA_VERSION);
	a->node_guid = ibv_get_device_guid(ctx->v.context.device);
	a->sys_image_guid = a->node_guid;
	a->vendor_id = 0xffffff; /* nobody's, as Soft-RoCE; part 0: programs
				  * have no special case for it */
	a->device_cap_flags =
		IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR |
		IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_PORT_ACTIVE_EVENT |
		IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
		IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW |
		IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS |
		IBV_DEVICE_XRC | IBV_DEVICE_AUTO_PATH_MIG;
	a->atomic_cap = IBV_ATOMIC_HCA;
	a->local_ca_ack_delay = 15; /* 134 ms: a process may be off the CPU */
	a->phys_port_cnt = 1;
}

static void device_limits(const struct hca_limits *l, struct ibv_device_attr *a)
{
	a->max_mr_size = l->max_mr_bytes;
	a->page_size_cap = 0xfffff000;
	a->max_qp = (int)l->max_qp;
	a->max_qp_wr = (int)l->max_qp_wr;
	a->max_sge = (int)l->max_sge;
	a->max_sge_rd = (int)l->max_sge_rd;
	a->max_cq = (int)l->max_cq;
	a->max_cqe = (int)l->max_cqe;
	a->max_mr = (int)l->max_mr;
	a->max_mw = (int)l->max_mw;
	a->max_pd = (int)l->max_pd;
	a->max_qp_rd_atom = (int)l->max_rd_atomic;
	a->max_res_rd_atom = (int)(l->max_rd_atomic * l->max_qp);
	a->max_qp_init_rd_atom = (int)l->max_rd_atomic;
	a->max_ah = (int)l->max_ah;
	a->max_srq = (int)l->max_srq;
	a->max_srq_wr = (int)l->max_srq_wr;
	a->max_srq_sge = (int)l->max_sge;
	a->max_mcast_grp = 64; /* what a kernel lets a socket join, and more */
	a->max_mcast_qp_attach = (int)l->max_qp;
	a->max_total_mcast_qp_attach = (int)l->max_qp;
	a->max_pkeys = (uint16_t)l->pkey_table_len;
}

static void device_attr(const struct vb_context *ctx, struct ibv_device_attr *a)
{
	memset(a, 0, sizeof(*a));
	device_ids(ctx, a);
	device_limits(rtdev_limits(ctx->dev), a);
}

ABI_EXPORT int ibv_query_device(struct ibv_context *c,
				struct ibv_device_attr *attr)
{
	device_attr(vb_context(c), attr);
	return ret_errno(0);
}

int vb_query_device_ex(struct ibv_context *c,
		       const struct ibv_query_device_ex_input *in,
		       struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr_ex a;

	if ((in && in->comp_mask) || size < sizeof(a.orig_attr))
		return ret_errno(-EINVAL);
	memset(&a, 0, sizeof(a));
	device_attr(vb_context(c), &a.orig_attr);
	a.device_cap_flags_ex = a.orig_attr.device_cap_flags;
	a.phys_port_cnt_ex = a.orig_attr.phys_port_cnt;
	a.completion_timestamp_mask = UINT64_MAX;
	a.hca_core_clock = CLOCK_KHZ;
	a.cq_mod_caps.max_cq_count = UINT16_MAX;
	a.cq_mod_caps.max_cq_period = UINT16_MAX;
	a.max_dm_size = rt_dm_max_bytes();
	a.odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	a.odp_caps.per_transport_caps.rc_odp_caps =
		ODP_CONNECTED | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;
	a.odp_caps.per_transport_caps.uc_odp_caps = ODP_CONNECTED;
	a.xrc_odp_caps = a.odp_caps.per_transport_caps.rc_odp_caps;
	a.odp_caps.per_transport_caps.ud_odp_caps = IBV_ODP_SUPPORT_SEND |
						    IBV_ODP_SUPPORT_RECV |
						    IBV_ODP_SUPPORT_SRQ_RECV;
	if (size > sizeof(a))
		memset((char *)attr + sizeof(a), 0, size - sizeof(a));
	memcpy(attr, &a, size < sizeof(a) ? size : sizeof(a));
	return ret_errno(0);
}

/* The device's clock is CLOCK_MONOTONIC in nanoseconds; as with NICs tv_nsec
 * has all of it. */
int vb_query_rt_values(struct ibv_context *c, struct ibv_values_ex *values)
{
	struct timespec now;

	(void)c;
	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return ret_errno(-EINVAL);
	if (!values->comp_mask)
		return ret_errno(0);
	clock_gettime(CLOCK_MONOTONIC, &now);
	values->raw_clock.tv_nsec = now.tv_sec * 1000000000L + now.tv_nsec;
	values->raw_clock.tv_sec = 0;
	return ret_errno(0);
}

/* ---- port ---- */

/* Width and speed codes [IBA 14.2.5.6] of the slowest link that is at least as
 * fast as the netdev; of one lane of SDR where the netdev does not say. */
static void port_speed(uint32_t mbps, struct ibv_port_attr *a)
{
	static const struct {
		uint32_t mbps;
		uint8_t width, speed;
	} links[] = {
		{ 2500, 1, 1 },	   { 5000, 1, 2 },     { 10000, 1, 8 },
		{ 14000, 1, 16 },  { 25000, 1, 32 },   { 40000, 2, 8 },
		{ 50000, 1, 64 },  { 56000, 2, 16 },   { 100000, 2, 32 },
		{ 200000, 2, 64 }, { 400000, 2, 128 },
	};
	size_t i = 0;

	while (i < ARRAY_SIZE(links) - 1 && links[i].mbps < mbps)
		i++;
	a->active_width = links[i].width;
	a->active_speed = links[i].speed;
}

static void port_attr(struct vb_context *ctx, struct ibv_port_attr *a)
{
	const struct hca_limits *l = rtdev_limits(ctx->dev);
	struct rt_port p;

	rt_query_port(ctx->dev, &p);
	memset(a, 0, sizeof(*a));
	a->state = (enum ibv_port_state)p.state;
	a->max_mtu = (enum ibv_mtu)p.max_mtu;
	a->active_mtu = (enum ibv_mtu)p.active_mtu;
	a->gid_tbl_len = (int)p.gid_table_len;
	a->port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
	a->max_msg_sz = l->max_msg_bytes;
	a->bad_pkey_cntr = (uint32_t)p.bad_pkey_counter;
	a->qkey_viol_cntr = (uint32_t)p.bad_qkey_counter;
	a->pkey_tbl_len = (uint16_t)p.pkey_table_len;
	a->max_vl_num = 1;
	a->phys_state = p.state == PORT_STATE_ACTIVE ? 5 : 3; /* up, disabled */
	a->link_layer = IBV_LINK_LAYER_ETHERNET;
	a->flags = IBV_QPF_GRH_REQUIRED;
	port_speed(p.speed_mbps, a);
}

int vb_query_port(struct ibv_context *c, uint8_t port,
		  struct ibv_port_attr *attr, size_t len)
{
	struct ibv_port_attr a;

	if (port != VB_PORT)
		return ret_errno(-EINVAL);
	port_attr(vb_context(c), &a);
	if (len > sizeof(a))
		memset((char *)attr + sizeof(a), 0, len - sizeof(a));
	memcpy(attr, &a, len < sizeof(a) ? len : sizeof(a));
	return ret_errno(0);
}

#undef ibv_query_port

/* The struct of 2006, as programs that look the name up themselves pass it:
 * it ends before port_cap_flags2. */
ABI_EXPORT int ibv_query_port(struct ibv_context *c, uint8_t port,
			      struct _compat_ibv_port_attr *attr)
{
	return vb_query_port(c, port, (struct ibv_port_attr *)(void *)attr,
			     offsetof(struct ibv_port_attr, port_cap_flags2));
}

ABI_EXPORT int ibv_query_port_speed(struct ibv_context *c, uint32_t port,
				    uint64_t *ret_speed);

/* In units of 100 Mb/s; for headers newer than 44. */
int ibv_query_port_speed(struct ibv_context *c, uint32_t port,
			 uint64_t *ret_speed)
{
	struct rt_port p;

	if (port != VB_PORT)
		return ret_errno(-EINVAL);
	rt_query_port(vb_context(c)->dev, &p);
	*ret_speed = p.speed_mbps / 100;
	return ret_errno(0);
}

/* ---- GIDs ---- */

static int gid_query(struct ibv_context *c, uint32_t port, uint32_t index,
		     struct ibv_gid_entry *ret)
{
	struct gid_entry e;
	int rc;

	if (port != VB_PORT)
		return -EINVAL;
	rc = rt_query_gid(vb_context(c)->dev, index, &e);
	if (rc)
		return rc;
	memcpy(ret->gid.raw, e.gid.raw, sizeof(ret->gid.raw));
	ret->gid_index = index;
	ret->port_num = port;
	ret->gid_type = IBV_GID_TYPE_ROCE_V2;
	ret->ndev_ifindex = e.netdev;
	return 0;
}

/* An entry as the caller's header has it: entry_size bytes. */
static void gid_entry_copy(void *dst, size_t entry_size,
			   const struct ibv_gid_entry *e)
{
	if (entry_size > sizeof(*e))
		memset((char *)dst + sizeof(*e), 0, entry_size - sizeof(*e));
	memcpy(dst, e, entry_size < sizeof(*e) ? entry_size : sizeof(*e));
}

/* An empty entry is a zero GID here, and an error in ibv_query_gid_ex. */
ABI_EXPORT int ibv_query_gid(struct ibv_context *c, uint8_t port, int index,
			     union ibv_gid *gid)
{
	struct ibv_gid_entry e;
	int rc;

	memset(&e, 0, sizeof(e));
	rc = index < 0 ? -EINVAL : gid_query(c, port, (uint32_t)index, &e);
	if (rc && rc != -ENODATA)
		return ret_minus1(rc);
	*gid = e.gid;
	return ret_minus1(0);
}

ABI_EXPORT int _ibv_query_gid_ex(struct ibv_context *c, uint32_t port,
				 uint32_t index, struct ibv_gid_entry *entry,
				 uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry e;
	int rc;

	if (flags)
		return ret_errno(-EINVAL);
	rc = gid_query(c, port, index, &e);
	if (rc)
		return ret_errno(rc);
	gid_entry_copy(entry, entry_size, &e);
	return ret_errno(0);
}

ABI_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *c,
					struct ibv_gid_entry *entries,
					size_t max, uint32_t flags,
					size_t entry_size)
{
	uint32_t len = rtdev_limits(vb_context(c)->dev)->gid_table_len;
	struct ibv_gid_entry e;
	size_t n = 0;
	uint32_t i;

	if (flags || !entries || !max || entry_size < sizeof(e.gid))
		return ret_negative(-EINVAL);
	for (i = 0; i < len; i++) {
		if (gid_query(c, VB_PORT, i, &e))
			continue;
		if (n == max)
			return ret_negative(-EINVAL);
		gid_entry_copy((char *)entries + n * entry_size, entry_size,
			       &e);
		n++;
	}
	return (ssize_t)n;
}

ABI_EXPORT int ibv_query_gid_type(struct ibv_context *c, uint8_t port,
				  unsigned int index, unsigned int *type);

/* Private in name; ibv_devinfo and pyverbs call it. */
int ibv_query_gid_type(struct ibv_context *c, uint8_t port, unsigned int index,
		       unsigned int *type)
{
	struct ibv_gid_entry e;
	int rc = gid_query(c, port, index, &e);

	if (rc && rc != -ENODATA)
		return ret_minus1(rc);
	*type = rc ? GID_SYSFS_IB_ROCE_V1 : GID_SYSFS_ROCE_V2;
	return ret_minus1(0);
}

ABI_ALSO(ibv_query_gid_type, query_gid_type_34, "IBVERBS_PRIVATE_34")
ABI_ALSO(ibv_query_gid_type, query_gid_type_57, "IBVERBS_PRIVATE_57")
ABI_ALSO(ibv_query_gid_type, query_gid_type_59, "IBVERBS_PRIVATE_59")
ABI_ALSO(ibv_query_gid_type, query_gid_type_64, "IBVERBS_PRIVATE_64")
ABI_DEFAULT(ibv_query_gid_type, query_gid_type_65, "IBVERBS_PRIVATE_65")

static bool gid_is_link_local(const struct gid *g)
{
	return g->raw[0] == 0xfe && (g->raw[1] & 0xc0) == 0x80;
}

void vb_say_gid_needed(struct vb_context *ctx)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	uint32_t len = rtdev_limits(ctx->dev)->gid_table_len;
	struct gid_entry e;
	int best = -1;
	uint32_t i;

	for (i = 0; i < len; i++) {
		if (rt_query_gid(ctx->dev, i, &e))
			continue;
		if (best < 0 || !gid_is_link_local(&e.gid))
			best = (int)i;
		if (!gid_is_link_local(&e.gid))
			break;
	}
	if (best < 0 || atomic_flag_test_and_set(&said))
		return;
	rt_say(false,
	       "%s is RoCE: the program has to name a GID index, try -g %d "
	       "(ibv_*_pingpong) or -x %d (perftest)",
	       ctx->v.context.device->name, best, best);
}

/* ---- P_Keys ---- */

ABI_EXPORT int ibv_query_pkey(struct ibv_context *c, uint8_t port, int index,
			      __be16 *pkey)
{
	uint8_t raw[2];
	uint16_t v;
	int rc;

	if (port != VB_PORT || index < 0)
		return ret_minus1(-EINVAL);
	rc = rt_query_pkey(vb_context(c)->dev, (uint32_t)index, &v);
	if (rc)
		return ret_minus1(rc);
	put_be16(raw, v);
	memcpy(pkey, raw, sizeof(raw));
	return ret_minus1(0);
}

ABI_EXPORT int ibv_get_pkey_index(struct ibv_context *c, uint8_t port,
				  __be16 pkey)
{
	__be16 k;
	int i;

	for (i = 0; !ibv_query_pkey(c, port, i, &k); i++)
		if (k == pkey)
			return i;
	return ret_minus1(port == VB_PORT ? -ENOENT : -EINVAL);
}

/* ---- addresses of L2 ---- */

/* Only an address that carries its MAC is answered; the data path needs none,
 * the kernel resolves. */
ABI_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *c,
					   struct ibv_ah_attr *attr,
					   uint8_t mac[ETHERNET_LL_SIZE],
					   uint16_t *vid)
{
	const uint8_t *g = attr->grh.dgid.raw;
	struct gid_entry e;
	int rc;

	if (attr->port_num != VB_PORT || !attr->is_global)
		return ret_minus1(-EINVAL);
	rc = rt_query_gid(vb_context(c)->dev, attr->grh.sgid_index, &e);
	if (rc)
		return ret_minus1(rc);
	if (g[0] != 0xfe || (g[1] & 0xc0) != 0x80 || g[11] != 0xff ||
	    g[12] != 0xfe)
		return ret_minus1(-EOPNOTSUPP);
	mac[0] = g[8] ^ 2;
	mac[1] = g[9];
	mac[2] = g[10];
	memcpy(mac + 3, g + 13, 3);
	if (vid)
		*vid = e.vlan;
	return ret_minus1(0);
}
