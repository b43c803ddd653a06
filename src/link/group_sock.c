/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * group_sock.c - the receive sockets of port 4791.
 */
#include "link/group_priv.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/fd_hide.h"
#include "wire/bth.h"
#include "wire/cm_msg.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11
#endif

#define DRAIN_MAX 4096 /* more than fits a default receive buffer */
/* These sockets never send: their priority is free to tell all who hold the
 * socket that it is not steered. */
#define LONE_PRIORITY 6

union sock_addr {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

bool group_scoped(const struct gid *g)
{
	return g->raw[0] == 0xfe && (g->raw[1] & 0xc0) == 0x80;
}

static socklen_t to_addr(union sock_addr *a, const struct gid *g,
			 uint32_t ifindex)
{
	memset(a, 0, sizeof(*a));
	if (gid_is_v4(g)) {
		a->v4.sin_family = AF_INET;
		a->v4.sin_port = htons(ROCEV2_UDP_PORT);
		a->v4.sin_addr.s_addr = htonl(gid_v4(g));
		return sizeof(a->v4);
	}
	a->v6.sin6_family = AF_INET6;
	a->v6.sin6_port = htons(ROCEV2_UDP_PORT);
	memcpy(&a->v6.sin6_addr, g->raw, 16);
	a->v6.sin6_scope_id = group_scoped(g) ? ifindex : 0;
	return sizeof(a->v6);
}

/* An option that is only welcome: older kernels and filters may refuse it. */
static void try_option(int fd, int level, int name, int value)
{
	(void)!setsockopt(fd, level, name, &value, sizeof(value));
}

static int int_option(int fd, int name)
{
	int v = -1;
	socklen_t len = sizeof(v);

	return getsockopt(fd, SOL_SOCKET, name, &v, &len) ? -1 : v;
}

static void note(const struct udp_group *g, const char *text)
{
	if (g->cfg.note)
		g->cfg.note(text);
}

/* Offsets from the BTH, for MADs in UD packets: 8 bytes of DETH between. */
#define MAD_AT 20
#define MAD_CLASS_AT (MAD_AT + 1)
#define MAD_ATTR_AT (MAD_AT + 16)
#define CM_LOCAL_ID_AT (MAD_AT + 24)
#define CM_REMOTE_ID_AT (MAD_AT + 28)

/* The kernel runs the program with the data pointer at the UDP payload, which
 * is the BTH: byte 5 is the upper byte of the destination QPN. For QP1 it is
 * 0, but a CM message that answers one of ours begins with an id of ours (SIDR
 * REP: the request's; others: the second one), whose upper byte is the slot.
 * REQ and SIDR REQ have none. A result that is no index (nobody there) is
 * looked up by hash, and a datagram that is too short lands at 0; the receiver
 * drops it. */
static void steer(const struct udp_group *g, int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffffff),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BTH_QPN_GSI, 2, 0),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 16),
		BPF_STMT(BPF_RET | BPF_A, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, MAD_CLASS_AT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MAD_CLASS_CM, 0, 4),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, MAD_ATTR_AT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CM_REQ, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CM_SIDR_REQ, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CM_SIDR_REP, 1, 3),
		BPF_STMT(BPF_RET | BPF_K, UDP_GROUP_SLOT_GSI),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, CM_LOCAL_ID_AT),
		BPF_STMT(BPF_RET | BPF_A, 0),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, CM_REMOTE_ID_AT),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_fprog prog;

	memset(&prog, 0, sizeof(prog)); /* padding too: valgrind looks */
	prog.len = ARRAY_SIZE(code);
	prog.filter = code;

	if (!setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &prog,
			sizeof(prog)))
		return;
	try_option(fd, SOL_SOCKET, SO_PRIORITY, LONE_PRIORITY);
	note(g, "no steering by QPN on port 4791 (SO_ATTACH_REUSEPORT_CBPF "
		"refused): one process per address");
}

bool group_sock_lone(int fd)
{
	return int_option(fd, SO_PRIORITY) == LONE_PRIORITY;
}

int group_sock_open(const struct udp_group *g, const struct gid *gid,
		    uint32_t ifindex, bool first, int *ret_fd)
{
	int on = 1;
	union sock_addr a;
	socklen_t len = to_addr(&a, gid, ifindex);
	int err, fd;

	fd = socket(a.sa.sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
		    0);
	if (fd < 0)
		return errno == EAFNOSUPPORT ? -EADDRNOTAVAIL : -errno;
	if (a.sa.sa_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)))
		goto err_close;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) ||
	    bind(fd, &a.sa, len))
		goto err_close;
	if (first)
		steer(g, fd);
	*ret_fd = fd_hide(fd);
	return 0;
err_close:
	err = -errno;
	close(fd);
	return err;
}

static void drain(int fd)
{
	char c;

	for (int i = 0; i < DRAIN_MAX; i++)
		if (recv(fd, &c, sizeof(c), MSG_DONTWAIT | MSG_TRUNC) < 0)
			break;
}

/* The one who had this slot before may have set another size; a fresh socket
 * shows the default. The kernel doubles what is set. */
static void set_rcvbuf(const struct udp_group *g, int fd)
{
	int bytes = g->cfg.rcvbuf_bytes;
	int normal = int_option(g->spare_fd, SO_RCVBUF);

	if (bytes <= 0 && int_option(fd, SO_RCVBUF) == normal)
		return;
	try_option(fd, SOL_SOCKET, SO_RCVBUF, bytes > 0 ? bytes : normal / 2);
}

void group_sock_setup(const struct udp_group *g, int fd, const struct gid *gid)
{
	int gro = g->cfg.gro;

	if (setsockopt(fd, IPPROTO_UDP, UDP_GRO, &gro, sizeof(gro)) && gro)
		note(g, "UDP_GRO was refused: frames come one by one");
	set_rcvbuf(g, fd);
	try_option(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
	if (gid_is_v4(gid)) {
		try_option(fd, IPPROTO_IP, IP_RECVTOS, 1);
		try_option(fd, IPPROTO_IP, IP_RECVTTL, 1);
	} else {
		try_option(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
		try_option(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
		try_option(fd, IPPROTO_IPV6, IPV6_FLOWINFO, 1);
		/* Kernel Soft-RoCE sends checksum 0 on IPv6 too. */
		try_option(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
	}
	drain(fd);
}

bool group_sock_ok(int fd, const struct gid *gid, uint32_t ifindex)
{
	union sock_addr want, got;
	socklen_t want_len = to_addr(&want, gid, ifindex);
	socklen_t len = sizeof(got);

	memset(&got, 0, sizeof(got));
	return int_option(fd, SO_DOMAIN) == want.sa.sa_family &&
	       int_option(fd, SO_TYPE) == SOCK_DGRAM &&
	       int_option(fd, SO_PROTOCOL) == IPPROTO_UDP &&
	       int_option(fd, SO_REUSEPORT) == 1 &&
	       getsockname(fd, &got.sa, &len) == 0 && len == want_len &&
	       memcmp(&got, &want, len) == 0;
}
