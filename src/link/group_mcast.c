/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * group_mcast.c - receive sockets of multicast groups. The kernel gives a copy
 * of each datagram to every socket of a group, so each process has one of its
 * own and no steering is needed.
 */
#include "link/group_priv.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/fd_hide.h"

static int bind_v4(int fd, const struct gid *group, uint32_t ifindex)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(ROCEV2_UDP_PORT),
				 .sin_addr.s_addr = htonl(gid_v4(group)) };
	struct ip_mreqn join = { .imr_multiaddr = a.sin_addr,
				 .imr_ifindex = (int)ifindex };
	int off = 0;

	/* Nothing that other sockets of the host joined elsewhere. */
	if (setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof(off)) ||
	    bind(fd, (struct sockaddr *)&a, sizeof(a)) ||
	    setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &join, sizeof(join)))
		return -errno;
	return 0;
}

static int bind_v6(int fd, const struct gid *group, uint32_t ifindex)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6,
				  .sin6_port = htons(ROCEV2_UDP_PORT),
				  .sin6_scope_id = ifindex };
	struct ipv6_mreq join = { .ipv6mr_interface = ifindex };
	int on = 1;

	memcpy(&a.sin6_addr, group->raw, 16);
	memcpy(&join.ipv6mr_multiaddr, group->raw, 16);
	if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&a, sizeof(a)) ||
	    setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &join, sizeof(join)))
		return -errno;
	return 0;
}

int udp_group_join_mcast(struct udp_group *g, const struct gid *group,
			 uint32_t ifindex, int *ret_fd)
{
	bool v4 = gid_is_v4(group);
	int on = 1, err, fd;

	fd = socket(v4 ? AF_INET : AF_INET6,
		    SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on))) {
		err = -errno;
		goto err_close;
	}
	err = v4 ? bind_v4(fd, group, ifindex) : bind_v6(fd, group, ifindex);
	if (err)
		goto err_close;
	group_sock_setup(g, fd, group);
	*ret_fd = fd_hide(fd);
	return 0;
err_close:
	close(fd);
	return err;
}
