/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * group_diag.c - who holds UDP port 4791: a dump of the kernel's UDP sockets
 * (NETLINK_SOCK_DIAG), filtered by port. Any user may ask; it tells uids.
 * Nothing in it marks a socket of the kernel itself: rdma_rxe's are user 0's,
 * on the wildcard addresses, and there while the module is loaded.
 */
#include "link/group_priv.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_MS 500

struct request {
	struct nlmsghdr nl;
	struct inet_diag_req_v2 diag;
};

static int ask_kernel(int fd, int family)
{
	struct request r = {
		.nl = { .nlmsg_len = sizeof(r),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.diag = { .sdiag_family = (uint8_t)family,
			  .sdiag_protocol = IPPROTO_UDP,
			  .idiag_states = 0xffffffff,
			  .id.idiag_sport = htons(ROCEV2_UDP_PORT) },
	};

	return send(fd, &r, sizeof(r), 0) < 0 ? -errno : 0;
}

static struct gid bound_addr(const struct inet_diag_msg *m)
{
	struct gid g;

	if (m->idiag_family == AF_INET)
		return gid_from_v4(ntohl(m->id.idiag_src[0]));
	memcpy(g.raw, m->id.idiag_src, 16);
	return g;
}

static bool is_wildcard(const struct gid *g)
{
	return gid_is_v4(g) ? gid_v4(g) == 0 : gid_is_zero(g);
}

/* rdma_rxe does not load where somebody has its port, so with the module there
 * such a socket is its own. */
static bool is_rxes(const struct inet_diag_msg *m, bool wild)
{
	return wild && m->idiag_uid == 0 &&
	       access("/sys/module/rdma_rxe", F_OK) == 0;
}

/* What is looked for. */
struct query {
	const struct gid *gid;
	uint32_t ifindex; /* 0: any */
	uid_t own;
	struct group_diag *d;
};

static void count(const struct inet_diag_msg *m, const struct query *q)
{
	struct group_diag *d = q->d;
	struct gid at = bound_addr(m);
	bool wild = is_wildcard(&at);

	if (m->id.idiag_sport != htons(ROCEV2_UDP_PORT) ||
	    (!wild && !gid_eq(&at, q->gid)) ||
	    (q->ifindex && m->id.idiag_if && m->id.idiag_if != q->ifindex))
		return;
	if (m->idiag_inode == 0 || is_rxes(m, wild)) {
		d->nkernel++;
	} else if (m->idiag_uid != q->own) {
		d->nforeign++;
		d->uid = m->idiag_uid;
	} else if (wild) {
		d->nwild++;
	} else {
		d->nours++;
	}
}

/* One datagram of answers: 1 more to come, 0 done, -errno. */
static int take_answers(int fd, const struct query *q)
{
	_Alignas(struct nlmsghdr) uint8_t buf[2048];
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;
	size_t left;

	if (poll(&p, 1, WAIT_MS) <= 0)
		return -ETIMEDOUT;
	n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	left = (size_t)n;
	for (const struct nlmsghdr *h = (void *)buf; NLMSG_OK(h, left);
	     h = NLMSG_NEXT(h, left)) {
		if (h->nlmsg_type == NLMSG_DONE)
			return 0;
		if (h->nlmsg_type == NLMSG_ERROR)
			return -EOPNOTSUPP;
		if (h->nlmsg_len >= NLMSG_LENGTH(sizeof(struct inet_diag_msg)))
			count(NLMSG_DATA(h), q);
	}
	return 1;
}

static int dump(int family, const struct query *q)
{
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC,
			NETLINK_SOCK_DIAG);
	int err;

	if (fd < 0)
		return -errno;
	err = ask_kernel(fd, family);
	if (!err)
		do
			err = take_answers(fd, q);
		while (err == 1);
	close(fd);
	return err;
}

void group_diagnose(const struct gid *gid, uint32_t ifindex, uid_t own,
		    struct group_diag *ret)
{
	struct query q = { gid, ifindex, own, ret };
	int err;

	*ret = (struct group_diag){ 0 };
	/* A wildcard IPv6 socket holds the port for IPv4 as well. */
	err = gid_is_v4(gid) ? dump(AF_INET, &q) : 0;
	if (!err)
		err = dump(AF_INET6, &q);
	ret->known = !err;
}
