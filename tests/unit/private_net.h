/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * private_net.h - a network namespace of one's own for tests with sockets:
 * whatever else runs on the host is not there. Works as root, and for others
 * where user namespaces are allowed; else the test runs in the namespace that
 * it is in and leaves out what needs more.
 */
#ifndef SOFTHCA_TESTS_PRIVATE_NET_H
#define SOFTHCA_TESTS_PRIVATE_NET_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static inline bool private_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) > 0;

	if (fd >= 0)
		close(fd);
	return ok;
}

static inline bool private_unshare(void)
{
	unsigned uid = geteuid(), gid = getegid();
	char map[64];

	if (unshare(CLONE_NEWNET) == 0)
		return true;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	snprintf(map, sizeof(map), "0 %u 1", uid);
	if (!private_write("/proc/self/uid_map", map))
		return false;
	snprintf(map, sizeof(map), "0 %u 1", gid);
	return private_write("/proc/self/setgroups", "deny") &&
	       private_write("/proc/self/gid_map", map);
}

/* Link-local addresses need an interface that has one: lo gets fe80::1. */
static inline bool private_add_v6(unsigned last_byte)
{
	struct in6_ifreq r = { .ifr6_prefixlen = 64,
			       .ifr6_ifindex = (int)if_nametoindex("lo") };
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ok;

	r.ifr6_addr.s6_addr[0] = 0xfe;
	r.ifr6_addr.s6_addr[1] = 0x80;
	r.ifr6_addr.s6_addr[15] = (uint8_t)last_byte;
	ok = fd >= 0 && ioctl(fd, SIOCSIFADDR, &r) == 0;
	if (fd >= 0)
		close(fd);
	return ok;
}

static inline bool private_lo_mtu(int mtu)
{
	struct ifreq r = { .ifr_name = "lo", .ifr_mtu = mtu };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ok = ioctl(fd, SIOCSIFMTU, &r) == 0;

	close(fd);
	return ok;
}

/* True: this process is in a namespace of its own, with lo up (127.0.0.1, ::1
 * and fe80::1). */
static inline bool private_net(void)
{
	struct ifreq r = { .ifr_name = "lo",
			   .ifr_flags = IFF_UP | IFF_RUNNING };
	bool ok;
	int fd;

	if (!private_unshare())
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ok = ioctl(fd, SIOCSIFFLAGS, &r) == 0;
	close(fd);
	private_add_v6(1);
	return ok;
}

#endif
