/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * netdev.c - interfaces, addresses and default routes by rtnetlink dumps, and
 * the device list made of them.
 *
 * The netlink messages are read by hand: this code is linked into programs
 * that may bring any library of their own, or none, so it needs libc alone.
 */
#include "rt/netdev.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/if_vlan.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#include "rt/config.h"
#include "rt/rawsys.h"
#include "rt/rt.h"

#define DUMP_BUF_BYTES 32768
/* linux/if.h and net/if.h exclude each other. */
#define OPER_UNKNOWN 0
#define OPER_UP 6

/* ---- a growing list ---- */

struct scan_dev {
	struct netdev d;
	bool slave; /* of a bond, bridge or team: its master is the device */
};

struct scan_addr {
	uint32_t ifindex;
	struct netdev_addr a;
};

struct scan {
	struct scan_dev *devs;
	size_t n_devs;
	struct scan_addr *addrs;
	size_t n_addrs;
	bool no_memory;
};

/* Appends a zeroed element to a malloc'ed array (grown by powers of two).
 * NULL: out of memory. */
static void *array_add(void *array_p, size_t *n, size_t size)
{
	void **array = array_p;
	char *p = *array;

	if ((*n & (*n - 1)) == 0) { /* 0 or a power of two: full */
		p = realloc(*array, (*n ? *n * 2 : 1) * size);
		if (!p)
			return NULL;
		*array = p;
	}
	p += (*n)++ * size;
	return memset(p, 0, size);
}

static struct scan_dev *scan_find(struct scan *s, uint32_t ifindex)
{
	for (size_t i = 0; i < s->n_devs; i++)
		if (s->devs[i].d.ifindex == ifindex)
			return &s->devs[i];
	return NULL;
}

static void scan_fini(struct scan *s)
{
	free(s->devs);
	free(s->addrs);
}

/* ---- rtnetlink ---- */

static int nl_socket(uint32_t groups, int flags)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK,
				    .nl_groups = groups };
	long r, fd = RAWSYS3(SYS_socket, AF_NETLINK,
			     SOCK_RAW | SOCK_CLOEXEC | flags, NETLINK_ROUTE);

	if (fd < 0)
		return (int)fd;
	r = RAWSYS3(SYS_bind, fd, &addr, sizeof(addr));
	if (r < 0) {
		(void)RAWSYS1(SYS_close, fd);
		return (int)r;
	}
	return (int)fd;
}

typedef void (*nl_msg_fn)(struct scan *s, const struct nlmsghdr *h);

static bool nl_ok(const struct nlmsghdr *h, int left)
{
	return left >= (int)sizeof(*h) && h->nlmsg_len >= sizeof(*h) &&
	       h->nlmsg_len <= (unsigned)left;
}

/* Hands the messages of one datagram to fn. 1: the dump goes on; 0: done;
 * -errno (-EINTR: the tables changed meanwhile, dump again). */
static int nl_parse(struct scan *s, const void *buf, size_t len, nl_msg_fn fn)
{
	const struct nlmsghdr *h = buf;
	int left = (int)len;
	int r = 1;

	for (; nl_ok(h, left); h = NLMSG_NEXT(h, left)) {
		if (h->nlmsg_flags & NLM_F_DUMP_INTR)
			return -EINTR;
		if (h->nlmsg_type == NLMSG_DONE)
			return 0;
		if (h->nlmsg_type == NLMSG_ERROR) {
			const struct nlmsgerr *e = NLMSG_DATA(h);

			return e->error;
		}
		fn(s, h);
		if (!(h->nlmsg_flags & NLM_F_MULTI))
			r = 0;
	}
	return r;
}

static int nl_dump_once(int fd, int type, int family, struct scan *s,
			nl_msg_fn fn, char *buf)
{
	struct {
		struct nlmsghdr h;
		struct rtmsg body; /* family is the first byte of all three */
	} req = {
		.h = { .nlmsg_len = sizeof(req),
		       .nlmsg_type = (uint16_t)type,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.body = { .rtm_family = (unsigned char)family },
	};
	long n;
	int r = 1;

	if (type == RTM_GETLINK) /* struct ifinfomsg is longer than rtmsg */
		req.h.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtgenmsg));
	n = RAWSYS6(SYS_sendto, fd, &req, req.h.nlmsg_len, 0, NULL, 0);
	if (n < 0)
		return (int)n;
	while (r == 1) {
		do
			n = RAWSYS6(SYS_recvfrom, fd, buf, DUMP_BUF_BYTES, 0,
				    NULL, NULL);
		while (n == -EINTR);
		if (n < 0)
			return (int)n;
		r = nl_parse(s, buf, (size_t)n, fn);
	}
	return r;
}

/* A socket of its own for each dump: after an interrupted one the rest of its
 * answer is not mistaken for the next. */
static int nl_dump(int type, int family, struct scan *s, nl_msg_fn fn)
{
	char *buf = malloc(DUMP_BUF_BYTES);
	int fd = buf ? nl_socket(0, 0) : -ENOMEM;
	int r = fd;

	if (fd >= 0) {
		r = nl_dump_once(fd, type, family, s, fn, buf);
		(void)RAWSYS1(SYS_close, fd);
	}
	free(buf);
	return r;
}

/* ---- links ---- */

/* A bond, bridge or team is the device, not its parts; members of a VRF are
 * devices of their own. */
static bool is_part_kind(const char *kind)
{
	return strcmp(kind, "bond") == 0 || strcmp(kind, "bridge") == 0 ||
	       strcmp(kind, "team") == 0 || strcmp(kind, "openvswitch") == 0;
}

static void link_vlan(struct netdev *d, const struct rtattr *data)
{
	const struct rtattr *a = RTA_DATA(data);
	int left = (int)RTA_PAYLOAD(data);

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == IFLA_VLAN_ID)
			memcpy(&d->vlan, RTA_DATA(a), sizeof(d->vlan));
}

static void link_info(struct scan_dev *sd, const struct rtattr *info)
{
	const struct rtattr *a = RTA_DATA(info);
	int left = (int)RTA_PAYLOAD(info);
	const char *kind = "";

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == IFLA_INFO_KIND)
			kind = RTA_DATA(a);
		else if (a->rta_type == IFLA_INFO_DATA &&
			 strcmp(kind, "vlan") == 0)
			link_vlan(&sd->d, a);
		else if (a->rta_type == IFLA_INFO_SLAVE_KIND)
			sd->slave = is_part_kind(RTA_DATA(a));
	}
}

static void link_mac(struct netdev *d, const struct rtattr *a, bool ether)
{
	static const uint8_t zero[6];

	if (!ether || RTA_PAYLOAD(a) != sizeof(d->mac))
		return;
	memcpy(d->mac, RTA_DATA(a), sizeof(d->mac));
	d->has_mac = memcmp(d->mac, zero, sizeof(zero)) != 0;
}

static void link_attr(struct scan_dev *sd, const struct rtattr *a, bool ether)
{
	struct netdev *d = &sd->d;

	switch (a->rta_type) {
	case IFLA_IFNAME:
		snprintf(d->name, sizeof(d->name), "%s",
			 (const char *)RTA_DATA(a));
		break;
	case IFLA_MTU:
		memcpy(&d->mtu_bytes, RTA_DATA(a), sizeof(d->mtu_bytes));
		break;
	case IFLA_OPERSTATE:
		d->operstate = *(const uint8_t *)RTA_DATA(a);
		break;
	case IFLA_ADDRESS:
		link_mac(d, a, ether);
		break;
	case IFLA_LINKINFO:
		link_info(sd, a);
		break;
	default:
		break;
	}
}

static void on_link(struct scan *s, const struct nlmsghdr *h)
{
	const struct ifinfomsg *m = NLMSG_DATA(h);
	const struct rtattr *a = IFLA_RTA(m);
	int left = (int)IFLA_PAYLOAD(h);
	struct scan_dev *sd;

	if (h->nlmsg_type != RTM_NEWLINK)
		return;
	sd = array_add(&s->devs, &s->n_devs, sizeof(*sd));
	if (!sd) {
		s->no_memory = true;
		return;
	}
	sd->d.ifindex = (uint32_t)m->ifi_index;
	sd->d.flags = m->ifi_flags;
	sd->d.vlan = NETDEV_NO_VLAN;
	sd->d.loopback = m->ifi_flags & IFF_LOOPBACK;
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		link_attr(sd, a, m->ifi_type == ARPHRD_ETHER);
	/* Loopback and tunnels never say more than "unknown". */
	sd->d.running =
		(m->ifi_flags & IFF_UP) && (m->ifi_flags & IFF_RUNNING) &&
		(sd->d.operstate == OPER_UP || sd->d.operstate == OPER_UNKNOWN);
}

/* ---- addresses ---- */

struct addr_parse {
	const struct rtattr *address, *local;
	uint32_t flags;
};

static struct addr_parse addr_attrs(const struct nlmsghdr *h,
				    const struct ifaddrmsg *m)
{
	struct addr_parse p = { .flags = m->ifa_flags };
	const struct rtattr *a = IFA_RTA(m);
	int left = (int)IFA_PAYLOAD(h);

	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == IFA_ADDRESS)
			p.address = a;
		else if (a->rta_type == IFA_LOCAL)
			p.local = a;
		else if (a->rta_type == IFA_FLAGS)
			memcpy(&p.flags, RTA_DATA(a), sizeof(p.flags));
	}
	/* On point-to-point links IFA_ADDRESS is the peer's. */
	if (!p.local)
		p.local = p.address;
	return p;
}

static bool addr_gid(const struct rtattr *a, int family, struct gid *ret)
{
	uint32_t v4;

	if (family == AF_INET && RTA_PAYLOAD(a) == 4) {
		memcpy(&v4, RTA_DATA(a), sizeof(v4));
		*ret = (struct gid){ .raw = { [10] = 0xff, [11] = 0xff } };
		memcpy(ret->raw + 12, &v4, sizeof(v4));
		return true;
	}
	if (family == AF_INET6 && RTA_PAYLOAD(a) == 16) {
		memcpy(ret->raw, RTA_DATA(a), 16);
		return true;
	}
	return false;
}

static bool is_link_local(const struct gid *g)
{
	return g->raw[0] == 0xfe && (g->raw[1] & 0xc0) == 0x80;
}

static void on_addr(struct scan *s, const struct nlmsghdr *h)
{
	const struct ifaddrmsg *m = NLMSG_DATA(h);
	struct scan_addr *sa;
	struct addr_parse p;
	struct gid gid;

	if (h->nlmsg_type != RTM_NEWADDR)
		return;
	p = addr_attrs(h, m);
	if (p.flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED) &&
	    !(p.flags & IFA_F_OPTIMISTIC))
		return;
	if (!p.local || !addr_gid(p.local, m->ifa_family, &gid))
		return;
	sa = array_add(&s->addrs, &s->n_addrs, sizeof(*sa));
	if (!sa) {
		s->no_memory = true;
		return;
	}
	sa->ifindex = m->ifa_index;
	sa->a.gid = gid;
	sa->a.prefix_len = m->ifa_prefixlen;
	sa->a.link_local = is_link_local(&gid);
}

/* ---- default routes ---- */

static void mark_default(struct scan *s, uint32_t ifindex, uint32_t metric)
{
	struct scan_dev *sd = scan_find(s, ifindex);

	if (!sd)
		return;
	if (!sd->d.default_route || metric < sd->d.route_metric)
		sd->d.route_metric = metric;
	sd->d.default_route = true;
}

static void mark_multipath(struct scan *s, const struct rtattr *a,
			   uint32_t metric)
{
	const struct rtnexthop *nh = RTA_DATA(a);
	int left = (int)RTA_PAYLOAD(a);

	for (; RTNH_OK(nh, left); nh = RTNH_NEXT(nh)) {
		mark_default(s, (uint32_t)nh->rtnh_ifindex, metric);
		left -= (int)RTNH_ALIGN(nh->rtnh_len);
	}
}

static void on_route(struct scan *s, const struct nlmsghdr *h)
{
	const struct rtmsg *m = NLMSG_DATA(h);
	const struct rtattr *a = RTM_RTA(m), *multipath = NULL;
	int left = (int)RTM_PAYLOAD(h);
	uint32_t oif = 0, metric = 0;

	if (h->nlmsg_type != RTM_NEWROUTE || m->rtm_dst_len != 0 ||
	    m->rtm_type != RTN_UNICAST)
		return;
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == RTA_OIF)
			memcpy(&oif, RTA_DATA(a), sizeof(oif));
		else if (a->rta_type == RTA_PRIORITY)
			memcpy(&metric, RTA_DATA(a), sizeof(metric));
		else if (a->rta_type == RTA_MULTIPATH)
			multipath = a;
	}
	if (oif)
		mark_default(s, oif, metric);
	if (multipath)
		mark_multipath(s, multipath, metric);
}

/* ---- all of it ---- */

static int scan_once(struct scan *s)
{
	int r = nl_dump(RTM_GETLINK, AF_UNSPEC, s, on_link);

	if (r == 0)
		r = nl_dump(RTM_GETADDR, AF_UNSPEC, s, on_addr);
	if (r == 0)
		r = nl_dump(RTM_GETROUTE, AF_INET, s, on_route);
	/* A kernel without IPv6 has no such routes. */
	if (r == 0)
		(void)nl_dump(RTM_GETROUTE, AF_INET6, s, on_route);
	return r == 0 && s->no_memory ? -ENOMEM : r;
}

static int scan_run(struct scan *s)
{
	int r = -EINTR;

	for (int tries = 0; r == -EINTR && tries < 16; tries++) {
		*s = (struct scan){ 0 };
		r = scan_once(s);
		if (r != 0)
			scan_fini(s);
	}
	return r;
}

/* The speed by the ethtool ioctl, which unlike sysfs sees this thread's
 * network namespace. */
static uint32_t speed_of(int fd, const char *name)
{
	union { /* three masks of at most 127 words follow the struct */
		struct ethtool_link_settings s;
		uint32_t words[sizeof(struct ethtool_link_settings) / 4 +
			       3 * 127];
	} e = { .s.cmd = ETHTOOL_GLINKSETTINGS };
	struct ifreq ifr = { .ifr_data = (void *)&e };

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", name);
	/* The first answer is how many words the masks have, negated. */
	if (RAWSYS3(SYS_ioctl, fd, SIOCETHTOOL, &ifr) != 0 ||
	    e.s.link_mode_masks_nwords >= 0)
		return 0;
	e.s.link_mode_masks_nwords = (int8_t)-e.s.link_mode_masks_nwords;
	e.s.cmd = ETHTOOL_GLINKSETTINGS;
	if (RAWSYS3(SYS_ioctl, fd, SIOCETHTOOL, &ifr) != 0 ||
	    e.s.speed == (uint32_t)SPEED_UNKNOWN)
		return 0;
	return e.s.speed;
}

static int addr_rank(const struct netdev_addr *a)
{
	return gid_is_v4(&a->gid) ? 0 : a->link_local ? 2 : 1;
}

/* Copies the addresses of d to `at`, by rank; returns the place after. */
static struct netdev_addr *place_addrs(struct netdev *d, const struct scan *s,
				       struct netdev_addr *at)
{
	d->addrs = at;
	d->n_addrs = 0;
	for (int rank = 0; rank < 3; rank++) {
		for (size_t i = 0; i < s->n_addrs; i++) {
			if (s->addrs[i].ifindex != d->ifindex ||
			    addr_rank(&s->addrs[i].a) != rank)
				continue;
			*at++ = s->addrs[i].a;
			d->n_addrs++;
		}
	}
	return at;
}

static bool usable(const struct scan_dev *sd, const struct scan *s)
{
	if (!(sd->d.flags & IFF_UP) || sd->slave || (sd->d.flags & IFF_SLAVE))
		return false;
	for (size_t i = 0; i < s->n_addrs; i++)
		if (s->addrs[i].ifindex == sd->d.ifindex)
			return true;
	return false;
}

static int by_usefulness(const void *pa, const void *pb)
{
	const struct netdev *a = pa, *b = pb;

	if (a->loopback != b->loopback)
		return a->loopback ? 1 : -1;
	if (a->default_route != b->default_route)
		return a->default_route ? -1 : 1;
	if (a->default_route && a->route_metric != b->route_metric)
		return a->route_metric < b->route_metric ? -1 : 1;
	return a->ifindex < b->ifindex ? -1 : a->ifindex > b->ifindex;
}

/* One block: the devices for which want(), sorted, then all addresses. */
static int collect(struct scan *s, uint32_t only_ifindex,
		   struct netdev **ret_list, int *ret_n)
{
	struct netdev *list =
		calloc(1, s->n_devs * sizeof(*list) +
				  s->n_addrs * sizeof(*list->addrs) + 1);
	struct netdev_addr *at = (struct netdev_addr *)(list + s->n_devs);
	long fd;
	int n = 0;

	if (!list)
		return -ENOMEM;
	fd = RAWSYS3(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	for (size_t i = 0; i < s->n_devs; i++) {
		const struct scan_dev *sd = &s->devs[i];

		if (only_ifindex ? sd->d.ifindex != only_ifindex
				 : !usable(sd, s))
			continue;
		list[n] = sd->d;
		at = place_addrs(&list[n], s, at);
		if (fd >= 0)
			list[n].speed_mbps = speed_of((int)fd, sd->d.name);
		n++;
	}
	if (fd >= 0)
		(void)RAWSYS1(SYS_close, fd);
	qsort(list, (size_t)n, sizeof(*list), by_usefulness);
	*ret_list = list;
	*ret_n = n;
	return 0;
}

static int list_some(uint32_t only_ifindex, struct netdev **ret_list,
		     int *ret_n)
{
	struct scan s;
	int r = scan_run(&s);

	if (r != 0)
		return r;
	r = collect(&s, only_ifindex, ret_list, ret_n);
	scan_fini(&s);
	return r;
}

int netdev_list(struct netdev **ret_list, int *ret_n)
{
	return list_some(0, ret_list, ret_n);
}

int netdev_get(uint32_t ifindex, struct netdev **ret_dev)
{
	struct netdev *dev;
	int n, r;

	if (ifindex == 0)
		return -ENODEV;
	r = list_some(ifindex, &dev, &n);
	if (r != 0)
		return r;
	if (n == 0) {
		free(dev);
		return -ENODEV;
	}
	*ret_dev = dev;
	return 0;
}

/* ---- changes ---- */

int netdev_watch_fd(int *ret_fd)
{
	int fd =
		nl_socket(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
			  SOCK_NONBLOCK);

	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

bool netdev_watch_drain(int fd)
{
	char buf[64]; /* what it says does not matter */
	bool changed = false;
	long n;

	do {
		n = RAWSYS6(SYS_recvfrom, fd, buf, sizeof(buf), MSG_DONTWAIT,
			    NULL, NULL);
		/* Notices were lost: something changed, and more waits. */
		if (n >= 0 || n == -ENOBUFS)
			changed = true;
	} while (n >= 0 || n == -EINTR || n == -ENOBUFS);
	return changed;
}

/* ---- names and GUIDs ---- */

static uint64_t hash_add(uint64_t h, const void *p, size_t len)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < len; i++) /* FNV-1a */
		h = (h ^ b[i]) * 0x100000001b3ull;
	return h;
}

static uint64_t host_hash(const char *ifname)
{
	uint64_t h = 0xcbf29ce484222325ull;
	struct utsname u;
	char boot_id[64];
	long n = -1;
	long fd =
		RAWSYS4(SYS_openat, AT_FDCWD, "/proc/sys/kernel/random/boot_id",
			O_RDONLY | O_CLOEXEC, 0);

	if (fd >= 0) {
		n = RAWSYS3(SYS_read, fd, boot_id, sizeof(boot_id));
		(void)RAWSYS1(SYS_close, fd);
	}
	if (n > 0)
		h = hash_add(h, boot_id, (size_t)n);
	if (RAWSYS1(SYS_uname, &u) == 0)
		h = hash_add(h, u.nodename, strlen(u.nodename));
	return hash_add(h, ifname, strlen(ifname));
}

uint64_t netdev_node_guid(const struct netdev *dev)
{
	const uint8_t *m = dev->mac;
	uint64_t h;

	/* A VLAN's MAC is its parent's, so its id takes the place of fffe.
	 * The universal/local bit is inverted [RFC 4291]. */
	h = dev->vlan == NETDEV_NO_VLAN ? 0xfffe : dev->vlan;
	if (dev->has_mac)
		return (uint64_t)(m[0] ^ 2) << 56 | (uint64_t)m[1] << 48 |
		       (uint64_t)m[2] << 40 | h << 24 | (uint64_t)m[3] << 16 |
		       (uint64_t)m[4] << 8 | m[5];
	h = host_hash(dev->name);
	/* A locally administered EUI-64: that bit set makes it nonzero too. */
	return (h & ~(3ull << 56)) | 2ull << 56;
}

/* Other netdevs can share a MAC (ipvlan, bonds with VLANs by hand): all but the
 * first then get a GUID as if they had none. */
static uint64_t unique_guid(const struct netdev *dev,
			    const struct rt_device *before, int n)
{
	struct netdev no_mac = *dev;
	uint64_t guid = netdev_node_guid(dev);

	no_mac.has_mac = false;
	for (int i = 0; i < n; i++)
		if (before[i].node_guid == guid)
			return netdev_node_guid(&no_mac);
	return guid;
}

int rt_devices(struct rt_device **ret_list, int *ret_n)
{
	struct netdev *devs;
	struct rt_device *list;
	int n, used = 0;
	int r = netdev_list(&devs, &n);

	if (r != 0)
		return r;
	list = calloc((size_t)n + 1, sizeof(*list));
	for (int i = 0; list && i < n; i++) {
		struct rt_device *d = &list[used];

		if (!config_allows(rt_config(), devs[i].name))
			continue;
		snprintf(d->name, sizeof(d->name), "shca%d", used);
		memcpy(d->ifname, devs[i].name, sizeof(d->ifname));
		d->ifindex = devs[i].ifindex;
		d->node_guid = unique_guid(&devs[i], list, used);
		used++;
	}
	free(devs);
	if (!list)
		return -ENOMEM;
	*ret_list = list;
	*ret_n = used;
	return 0;
}
