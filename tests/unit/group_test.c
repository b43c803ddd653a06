/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * group_test.c - port 4791 shared by real processes: who gets which slot, and
 * does every packet reach its process, whatever happens to the others.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "link/group.h"
#include "link/group_priv.h"
#include "private_net.h"

#define ADDRS 3
#define PKT_BYTES 16
#define ROUND 100 /* packets to each member before it is asked */
#define MEMBERS 10

static bool have_net;

static const struct gid lo6 = { .raw = { [15] = 1 } };
static const struct gid ll6 = { .raw = { 0xfe, 0x80, [15] = 1 } };

static struct gid lo4(unsigned last)
{
	return gid_from_v4(0x7f000000 + last);
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

/* ---- a member: a process that counts what it gets ---- */

struct stats {
	int err; /* of join or bind */
	unsigned slot;
	unsigned good[ADDRS]; /* packets for this slot */
	unsigned stray;	      /* for another */
	char words[200];
};

struct member {
	pid_t pid; /* 0: none */
	int cmd;
	unsigned slot;
	unsigned sent[ADDRS];
};

struct member_self {
	struct udp_group *g;
	int fd[ADDRS];
	unsigned naddrs;
	struct stats st;
};

static struct gid addr_of(unsigned i)
{
	return i == 0 ? lo4(1) : i == 1 ? lo6 : ll6;
}

static void member_count(struct member_self *m)
{
	uint8_t p[PKT_BYTES];

	for (unsigned i = 0; i < m->naddrs; i++)
		while (recv(m->fd[i], p, sizeof(p), MSG_DONTWAIT) > 0) {
			if (p[5] == m->st.slot)
				m->st.good[i]++;
			else
				m->st.stray++;
		}
}

static void member_loop(struct member_self *m, int cmd)
{
	struct pollfd p[2 + ADDRS] = {
		{ .fd = cmd, .events = POLLIN },
		{ .fd = udp_group_fd(m->g), .events = POLLIN },
	};
	char c;

	for (unsigned i = 0; i < m->naddrs; i++)
		p[2 + i] = (struct pollfd){ .fd = m->fd[i], .events = POLLIN };
	for (;;) {
		poll(p, 2 + m->naddrs, -1);
		member_count(m);
		if (p[1].revents)
			udp_group_serve(m->g);
		if (!p[0].revents)
			continue;
		if (recv(cmd, &c, 1, 0) <= 0)
			break;
		send(cmd, &m->st, sizeof(m->st), 0);
	}
}

static void member_main(int cmd, unsigned naddrs)
{
	struct udp_group_config cfg = { 0 };
	struct member_self m = { .naddrs = naddrs };

	m.st.err = udp_group_join(&cfg, &m.g);
	for (unsigned i = 0; i < naddrs && !m.st.err; i++) {
		struct gid a = addr_of(i);

		m.st.err = udp_group_bind(m.g, &a, 1, &m.fd[i]);
	}
	if (m.st.err)
		strncpy(m.st.words, udp_group_error(), sizeof(m.st.words) - 1);
	else
		m.st.slot = udp_group_slot(m.g);
	send(cmd, &m.st, sizeof(m.st), 0);
	if (!m.st.err)
		member_loop(&m, cmd);
	_exit(0);
}

/* Forks a member; its first report is read by member_up. */
static void member_fork(struct member *m, unsigned naddrs)
{
	int sv[2];

	memset(m, 0, sizeof(*m));
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv), 0);
	m->pid = fork();
	assert_true(m->pid >= 0);
	if (m->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(sv[0]);
		member_main(sv[1], naddrs);
	}
	close(sv[1]);
	m->cmd = sv[0];
}

static struct stats member_read(const struct member *m)
{
	struct pollfd p = { .fd = m->cmd, .events = POLLIN };
	struct stats st;

	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_int_equal(recv(m->cmd, &st, sizeof(st), 0), sizeof(st));
	return st;
}

static struct stats member_ask(const struct member *m)
{
	assert_int_equal(send(m->cmd, "q", 1, MSG_NOSIGNAL), 1);
	return member_read(m);
}

static void member_up(struct member *m)
{
	struct stats st = member_read(m);

	if (st.err)
		fail_msg("member: %s: %s", strerror(-st.err), st.words);
	m->slot = st.slot;
}

static void member_kill(struct member *m)
{
	kill(m->pid, SIGKILL);
	assert_int_equal(waitpid(m->pid, NULL, 0), m->pid);
	close(m->cmd);
	m->pid = 0;
}

/* ---- the sender: a plain socket ---- */

static void send_to(unsigned slot, unsigned addr, unsigned n)
{
	struct gid g = addr_of(addr);
	struct sockaddr_in a4 = { .sin_family = AF_INET,
				  .sin_port = htons(ROCEV2_UDP_PORT) };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6,
				   .sin6_port = htons(ROCEV2_UDP_PORT),
				   .sin6_scope_id = 1 };
	uint8_t p[PKT_BYTES] = { [5] = (uint8_t)slot };
	bool v4 = gid_is_v4(&g);
	int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	a4.sin_addr.s_addr = v4 ? htonl(gid_v4(&g)) : 0;
	memcpy(&a6.sin6_addr, g.raw, 16);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(sendto(fd, p, sizeof(p), 0,
					v4 ? (struct sockaddr *)&a4
					   : (struct sockaddr *)&a6,
					v4 ? sizeof(a4) : sizeof(a6)),
				 sizeof(p));
	close(fd);
}

static void member_send(struct member *m, unsigned addr, unsigned n)
{
	send_to(m->slot, addr, n);
	m->sent[addr] += n;
}

/* Every packet sent to this member has reached it, and none else. */
static void member_check(const struct member *m)
{
	int64_t end = now_ms() + 5000;
	struct stats st;

	do
		st = member_ask(m);
	while (memcmp(st.good, m->sent, sizeof(st.good)) && now_ms() < end);
	for (unsigned i = 0; i < ADDRS; i++)
		assert_int_equal(st.good[i], m->sent[i]);
	assert_int_equal(st.stray, 0);
}

/* rounds * ROUND packets to each, interleaved, and all of them arrive. */
static void all_exact(struct member *m, unsigned n, unsigned addr,
		      unsigned rounds)
{
	for (unsigned r = 0; r < rounds; r++) {
		for (unsigned k = 0; k < 4; k++)
			for (unsigned i = 0; i < n; i++)
				if (m[i].pid)
					member_send(&m[i], addr, ROUND / 4);
		for (unsigned i = 0; i < n; i++)
			if (m[i].pid)
				member_check(&m[i]);
	}
}

static void distinct_slots(const struct member *m, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < i; j++)
			assert_int_not_equal(m[i].slot, m[j].slot);
}

static void start_all(struct member *m, unsigned n, unsigned naddrs)
{
	for (unsigned i = 0; i < n; i++)
		member_fork(&m[i], naddrs);
	for (unsigned i = 0; i < n; i++)
		member_up(&m[i]);
	distinct_slots(m, n);
}

static void kill_all(struct member *m, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (m[i].pid)
			member_kill(&m[i]);
}

/* ---- tests ---- */

/* Ten at once; deaths, and newcomers in the places of the dead. */
static void test_steering(void **state)
{
	struct member m[MEMBERS + 1];
	const unsigned dead[] = { 2, 5, 7 };
	unsigned freed = 0, taken = 0;

	(void)state;
	start_all(m, MEMBERS, 1);
	all_exact(m, MEMBERS, 0, 10);
	for (unsigned i = 0; i < 3; i++) {
		freed |= 1u << m[dead[i]].slot;
		/* Some more in their queues: the next owner must not see
		 * them. */
		kill(m[dead[i]].pid, SIGSTOP);
		send_to(m[dead[i]].slot, 0, 20);
		member_kill(&m[dead[i]]);
		send_to(m[dead[i]].slot, 0, 20);
	}
	all_exact(m, MEMBERS, 0, 5);
	for (unsigned i = 0; i < 3; i++)
		member_fork(&m[dead[i]], 1);
	for (unsigned i = 0; i < 3; i++) {
		member_up(&m[dead[i]]);
		taken |= 1u << m[dead[i]].slot;
	}
	if (have_net)
		assert_int_equal(taken, freed);
	member_fork(&m[MEMBERS], 1);
	member_up(&m[MEMBERS]);
	distinct_slots(m, MEMBERS + 1);
	all_exact(m, MEMBERS + 1, 0, 5);
	kill_all(m, MEMBERS + 1);
}

/* A stopped member disturbs nobody, loses nothing, and learns of sockets that
 * were added meanwhile: in the end it alone keeps the group together. */
static void test_stopped(void **state)
{
	struct member m[5];

	(void)state;
	start_all(m, 3, 1);
	kill(m[1].pid, SIGSTOP);
	member_send(&m[1], 0, ROUND);
	for (unsigned i = 3; i < 5; i++) {
		member_fork(&m[i], 1);
		member_up(&m[i]);
	}
	distinct_slots(m, 5);
	for (unsigned i = 0; i < 5; i++)
		if (i != 1)
			all_exact(&m[i], 1, 0, 2);
	kill(m[1].pid, SIGCONT);
	member_check(&m[1]);
	for (unsigned i = 0; i < 5; i++)
		if (i != 1)
			member_kill(&m[i]);
	for (unsigned i = 2; i < 5; i++) {
		member_fork(&m[i], 1);
		member_up(&m[i]);
	}
	member_fork(&m[0], 1);
	member_up(&m[0]);
	all_exact(m, 5, 0, 4);
	kill_all(m, 5);
}

/* IPv6, link-local too; and slots below that have no socket of the address. */
static void test_ipv6(void **state)
{
	struct member m[4];

	(void)state;
	if (!have_net)
		skip();
	start_all(m, 2, 1); /* know nothing of the IPv6 addresses */
	for (unsigned i = 2; i < 4; i++)
		member_fork(&m[i], 3);
	for (unsigned i = 2; i < 4; i++)
		member_up(&m[i]);
	all_exact(m, 4, 0, 3);
	all_exact(m + 2, 2, 1, 5);
	all_exact(m + 2, 2, 2, 5);
	kill_all(m, 4);
}

/* Comings and goings: one joins, the oldest goes, forty times. */
static void test_turnover(void **state)
{
	struct member m[3];

	(void)state;
	start_all(m, 3, 1);
	for (unsigned i = 0; i < 40; i++) {
		member_kill(&m[i % 3]);
		member_fork(&m[i % 3], 1);
		member_up(&m[i % 3]);
		all_exact(m, 3, 0, 1);
	}
	kill_all(m, 3);
}

/* A MAD for QP1 of lo4(1), with the slot in the upper byte of both ids. */
static void send_mad(uint8_t attr, unsigned local_slot, unsigned remote_slot)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(ROCEV2_UDP_PORT),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	uint8_t p[280] = { [7] = 1, [21] = 7, [37] = attr };
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	p[44] = (uint8_t)local_slot;
	p[48] = (uint8_t)remote_slot;
	assert_int_equal(
		sendto(s, p, sizeof(p), 0, (struct sockaddr *)&to, sizeof(to)),
		sizeof(p));
	close(s);
}

static unsigned count_mads(int fd)
{
	uint8_t p[300];
	unsigned n = 0;

	while (recv(fd, p, sizeof(p), MSG_DONTWAIT) == 280)
		n++;
	return n;
}

/* QP1: what answers a communication goes to its slot, the rest to the one that
 * reads index 0; when it goes, another does. */
static void test_gsi(void **state)
{
	struct udp_group_config cfg = { 0 };
	struct udp_group *a, *b;
	struct gid addr = lo4(1), got;
	int fa, fb, fq;
	unsigned sb;

	(void)state;
	assert_int_equal(udp_group_join(&cfg, &a), 0);
	assert_int_equal(udp_group_join(&cfg, &b), 0);
	assert_int_equal(udp_group_bind(b, &addr, 0, &fb), 0);
	assert_int_equal(udp_group_bind(a, &addr, 0, &fa), 0);
	assert_true(udp_group_slot(a) > UDP_GROUP_SLOT_GSI);
	sb = udp_group_slot(b);
	assert_true(udp_group_gsi_socket(a, 0, &got, &fq));
	assert_true(gid_eq(&got, &addr) && fq >= 0 && fq != fa);
	assert_false(udp_group_gsi_socket(a, 1, &got, &fq));
	assert_false(udp_group_gsi_socket(b, 0, &got, &fq));
	assert_true(udp_group_gsi_socket(a, 0, &got, &fq));
	send_mad(0x10, sb, sb); /* REQ: no id of ours in it */
	send_mad(0x17, sb, sb);
	assert_int_equal(count_mads(fq), 2);
	for (uint8_t attr = 0x11; attr <= 0x1a; attr++)
		if (attr != 0x17)
			send_mad(attr, attr == 0x18 ? sb : 0,
				 attr == 0x18 ? 0 : sb);
	assert_int_equal(count_mads(fq), 0);
	assert_int_equal(count_mads(fa), 0);
	assert_int_equal(count_mads(fb), 9);
	udp_group_leave(a);
	udp_group_serve(b);
	assert_true(udp_group_gsi_socket(b, 0, &got, &fq));
	send_mad(0x10, 0, 0);
	assert_int_equal(count_mads(fq), 1);
	udp_group_leave(b);
}

/* One thread, two groups: it answers itself. */
static void test_two_in_one(void **state)
{
	struct udp_group_config cfg = { .rcvbuf_bytes = 100000 };
	struct udp_group *a, *b;
	struct gid addr = lo4(1), other = lo4(77);
	int fa, fb, fa2, fo, v;
	socklen_t len = sizeof(v);
	uint8_t p[PKT_BYTES];
	uint32_t qpn;

	(void)state;
	assert_int_equal(udp_group_join(&cfg, &a), 0);
	assert_int_equal(udp_group_bind(a, &addr, 0, &fa), 0);
	assert_int_equal(udp_group_join(&cfg, &b), 0);
	assert_int_equal(udp_group_bind(b, &addr, 0, &fb), 0);
	assert_int_not_equal(udp_group_slot(a), udp_group_slot(b));
	assert_int_equal(udp_group_bind(a, &addr, 0, &fa2), 0);
	assert_int_equal(fa, fa2);
	send_to(udp_group_slot(b), 0, 3);
	assert_int_equal(recv(fa, p, sizeof(p), MSG_DONTWAIT), -1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(recv(fb, p, sizeof(p), 0), sizeof(p));
	assert_int_equal(getsockopt(fa, SOL_SOCKET, SO_RCVBUF, &v, &len), 0);
	assert_int_equal(v, 200000);
	/* peer_fd: the receiver's own socket, or nothing */
	udp_group_serve(a);
	qpn = udp_group_slot(b) << UDP_GROUP_QPN_BITS | 0x17;
	assert_true(udp_group_peer_fd(a, &addr, qpn) >= 0);
	assert_int_equal(udp_group_peer_fd(b, &addr, qpn), fb);
	assert_int_equal(udp_group_peer_fd(a, &other, qpn), -1);
	assert_int_equal(udp_group_peer_fd(a, &addr, 0xffffff), -1);
	assert_int_equal(udp_group_bind(b, &other, 0, &fo), 0);
	udp_group_leave(b);
	udp_group_leave(a);
}

/* An adopted socket has the sizes and options of its new owner. */
static void test_adopt_options(void **state)
{
	struct udp_group_config big = { .gro = true, .rcvbuf_bytes = 100000 };
	struct udp_group_config plain = { 0 };
	struct udp_group *a, *b, *c;
	struct gid addr = lo4(1);
	int fd, v;
	socklen_t len = sizeof(v);
	unsigned slot;

	(void)state;
	assert_int_equal(udp_group_join(&plain, &a), 0);
	assert_int_equal(udp_group_join(&big, &b), 0);
	assert_int_equal(udp_group_bind(b, &addr, 0, &fd), 0);
	slot = udp_group_slot(b);
	udp_group_serve(a);
	udp_group_leave(b);
	assert_int_equal(udp_group_join(&plain, &c), 0);
	assert_int_equal(udp_group_slot(c), slot);
	assert_int_equal(udp_group_bind(c, &addr, 0, &fd), 0);
	assert_int_equal(getsockopt(fd, IPPROTO_UDP, 104, &v, &len), 0);
	assert_int_equal(v, 0);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &v, &len), 0);
	assert_int_not_equal(v, 200000);
	udp_group_leave(a);
	udp_group_leave(c);
}

static unsigned count_fds(bool *ret_cloexec)
{
	unsigned n = 0;

	for (int fd = 3; fd < 1024; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (flags < 0)
			continue;
		n++;
		if (!(flags & FD_CLOEXEC))
			*ret_cloexec = false;
	}
	return n;
}

/* Nothing is inherited by exec, nothing is left after leave. */
static void test_fds(void **state)
{
	struct udp_group_config cfg = { 0 };
	struct udp_group *g, *h;
	struct gid addr = lo4(1);
	bool before_ok = true, ok = true;
	unsigned before = count_fds(&before_ok);
	int fd;

	(void)state;
	assert_int_equal(udp_group_join(&cfg, &g), 0);
	assert_int_equal(udp_group_bind(g, &addr, 0, &fd), 0);
	assert_int_equal(udp_group_join(&cfg, &h), 0);
	assert_int_equal(udp_group_bind(h, &addr, 0, &fd), 0);
	udp_group_serve(g);
	count_fds(&ok);
	udp_group_leave(g);
	udp_group_leave(h);
	assert_int_equal(count_fds(&ok), before);
	if (before_ok)
		assert_true(ok);
}

/* ---- what others do ---- */

static int rogue_connect(unsigned slot)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1,
			 "softhca/%u/4791/%u", (unsigned)geteuid(), slot);

	assert_int_equal(
		connect(fd, (struct sockaddr *)&a,
			(socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 +
				(socklen_t)n),
		0);
	return fd;
}

static void rogue_send(int sock, const void *p, size_t len, int fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)p, .iov_len = len };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c = (void *)control;

	if (fd >= 0) {
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
		h.msg_control = control;
		h.msg_controllen = sizeof(control);
	}
	sendmsg(sock, &h, MSG_NOSIGNAL);
}

/* Anything may come in through the name: it is looked at, thrown away, and
 * leaves no fd behind. */
static void test_rogue(void **state)
{
	struct udp_group_config cfg = { 0 };
	struct gid addr = lo4(1), other = lo4(9);
	struct group_msg m = { .magic = GROUP_MAGIC,
			       .type = GROUP_PUSH,
			       .nfds = 1,
			       .gid = other };
	struct udp_group *g;
	bool ok;
	unsigned before;
	int fd, tcp, udp, sock, pipes[2];

	(void)state;
	assert_int_equal(udp_group_join(&cfg, &g), 0);
	assert_int_equal(udp_group_bind(g, &addr, 0, &fd), 0);
	tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	before = count_fds(&ok);
	for (unsigned i = 0; i < 8; i++) {
		const int fds[] = { tcp, udp, pipes[0], fd, -1, tcp, tcp, -1 };
		struct group_msg bad = m;
		size_t len = i == 5 ? 7 : sizeof(bad);

		bad.first = i == 6 ? 255 : 0;
		if (i == 7)
			bad.magic++;
		sock = rogue_connect(udp_group_slot(g));
		rogue_send(sock, &bad, len, fds[i]);
		udp_group_serve(g);
		close(sock);
		udp_group_serve(g);
		assert_int_equal(count_fds(&ok), before);
		assert_int_equal(udp_group_peer_fd(g, &other, 0), -1);
	}
	/* fds with a question are not kept either */
	m.type = GROUP_GET;
	sock = rogue_connect(udp_group_slot(g));
	rogue_send(sock, &m, sizeof(m), udp);
	udp_group_serve(g);
	close(sock);
	udp_group_serve(g);
	assert_int_equal(count_fds(&ok), before);
	close(tcp);
	close(udp);
	close(pipes[0]);
	close(pipes[1]);
	udp_group_leave(g);
}

/* Many connections that say nothing: the newest are kept, nothing hangs. */
static void test_rogue_silent(void **state)
{
	struct udp_group_config cfg = { 0 };
	struct udp_group *g, *h;
	int sock[100];

	(void)state;
	assert_int_equal(udp_group_join(&cfg, &g), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(sock); i++)
		sock[i] = rogue_connect(udp_group_slot(g));
	udp_group_serve(g);
	assert_int_equal(udp_group_join(&cfg, &h), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(sock); i++)
		close(sock[i]);
	udp_group_leave(h);
	udp_group_leave(g);
}

static void test_no_address(void **state)
{
	struct udp_group_config cfg = { 0 };
	struct gid away = gid_from_v4(0xc0000207), zero = { 0 };
	struct udp_group *g;
	int fd = -7;

	(void)state;
	assert_int_equal(udp_group_join(&cfg, &g), 0);
	assert_int_equal(udp_group_bind(g, &away, 0, &fd), -EADDRNOTAVAIL);
	assert_non_null(strstr(udp_group_error(), "192.0.2.7"));
	assert_int_equal(udp_group_bind(g, &zero, 0, &fd), -EINVAL);
	assert_int_equal(fd, -7);
	udp_group_leave(g);
}

/* Another program of ours that does not share the port. */
static void test_in_use_own(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(ROCEV2_UDP_PORT),
				 .sin_addr.s_addr = htonl(0x7f000042) };
	struct udp_group_config cfg = { 0 };
	struct gid addr = lo4(0x42);
	struct udp_group *g;
	int fd, s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(udp_group_join(&cfg, &g), 0);
	assert_int_equal(udp_group_bind(g, &addr, 0, &fd), -EADDRINUSE);
	assert_non_null(strstr(udp_group_error(), "127.0.0.66"));
	close(s);
	assert_int_equal(udp_group_bind(g, &addr, 0, &fd), 0);
	udp_group_leave(g);
}

/* Another user. */
static void test_in_use_foreign(void **state)
{
	struct member m;
	struct stats st;
	struct udp_group_config cfg = { 0 };
	struct gid addr = lo4(1);
	struct udp_group *g;
	int fd, sv[2];

	(void)state;
	if (!have_net || setresuid(-1, 12345, -1))
		skip();
	assert_int_equal(setresuid(-1, 0, -1), 0);
	assert_int_equal(udp_group_join(&cfg, &g), 0);
	assert_int_equal(udp_group_bind(g, &addr, 0, &fd), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	m.cmd = sv[0];
	m.pid = fork();
	if (m.pid == 0) {
		assert_int_equal(setresuid(12345, 12345, 12345), 0);
		member_main(sv[1], 1);
	}
	st = member_read(&m);
	assert_int_equal(st.err, -EADDRINUSE);
	assert_non_null(strstr(st.words, "user 0"));
	waitpid(m.pid, NULL, 0);
	close(sv[0]);
	close(sv[1]);
	udp_group_leave(g);
}

/* ---- slow ones: each in a process and namespace of its own, meanwhile ---- */

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond))                                                   \
			_exit(__LINE__ & 0xff ?: 1);                           \
	} while (0)

/* Holds the join lock and does not go on: others must not hang. */
static void slow_stopped_holder(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1,
			 "softhca/%u/4791/lock", (unsigned)geteuid());
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				    (size_t)n);
	struct udp_group_config cfg = { 0 };
	struct udp_group *g;
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int64_t start = now_ms();

	CHECK(bind(s, (struct sockaddr *)&a, len) == 0);
	CHECK(listen(s, 10) == 0);
	CHECK(udp_group_join(&cfg, &g) == -EAGAIN);
	CHECK(now_ms() - start >= 1500 && now_ms() - start < 4000);
	CHECK(strstr(udp_group_error(), "stopped"));
	close(s);
	CHECK(udp_group_join(&cfg, &g) == 0);
}

/* All members stopped: an error with words, not a hang. */
static void slow_stopped_members(void)
{
	struct udp_group_config cfg = { 0 };
	struct udp_group *g;
	struct member m;
	int64_t start;

	member_fork(&m, 1);
	CHECK(member_read(&m).err == 0);
	kill(m.pid, SIGSTOP);
	start = now_ms();
	CHECK(udp_group_join(&cfg, &g) == -EAGAIN);
	CHECK(now_ms() - start >= 1500 && now_ms() - start < 4000);
	CHECK(strstr(udp_group_error(), "stopped"));
	kill(m.pid, SIGCONT);
	CHECK(udp_group_join(&cfg, &g) == 0);
	CHECK(udp_group_slot(g) == 2);
	kill(m.pid, SIGKILL);
}

/* Sockets of this user that no member knows shift the places: say so rather
 * than deliver to the wrong process. */
static void slow_unknown_sockets(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(ROCEV2_UDP_PORT),
				 .sin_addr.s_addr = htonl(0x7f000043) };
	struct udp_group_config cfg = { 0 };
	struct gid addr = lo4(0x43);
	struct udp_group *g;
	int on = 1, fd, s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK(setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) == 0);
	CHECK(bind(s, (struct sockaddr *)&a, sizeof(a)) == 0);
	CHECK(udp_group_join(&cfg, &g) == 0);
	CHECK(udp_group_bind(g, &addr, 0, &fd) == -EADDRINUSE);
	CHECK(strstr(udp_group_error(), "no member knows"));
	close(s);
	CHECK(udp_group_bind(g, &addr, 0, &fd) == 0);
}

static struct {
	void (*fn)(void);
	pid_t pid;
} slow[] = {
	{ .fn = slow_stopped_holder },
	{ .fn = slow_stopped_members },
	{ .fn = slow_unknown_sockets },
};

/* Before the namespace of the others is made. */
static void slow_start(void)
{
	for (unsigned i = 0; i < ARRAY_SIZE(slow); i++) {
		slow[i].pid = fork();
		if (slow[i].pid)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!private_net())
			_exit(255);
		slow[i].fn();
		_exit(0);
	}
}

static void slow_result(unsigned i)
{
	int status;

	assert_int_equal(waitpid(slow[i].pid, &status, 0), slow[i].pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 255)
		skip();
	if (WEXITSTATUS(status))
		fail_msg("failed at line %d (mod 256)", WEXITSTATUS(status));
}

static void test_stopped_holder(void **state)
{
	(void)state;
	slow_result(0);
}

static void test_stopped_members(void **state)
{
	(void)state;
	slow_result(1);
}

static void test_unknown_sockets(void **state)
{
	(void)state;
	slow_result(2);
}

/* ---- what goes wrong between members ---- */

/* A newcomer was killed while it told the others of its socket: who comes next
 * finds out that the one it asked does not know all, and tells everybody. */
static void test_lost_push(void **state)
{
	struct udp_group_config cfg = { 0 };
	struct gid addr = lo4(0x51);
	struct udp_group *g[3];
	uint8_t p[PKT_BYTES] = { 0 };
	int fd[3], stolen;

	(void)state;
	if (!have_net)
		skip();
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(udp_group_join(&cfg, &g[i]), 0);
		assert_int_equal(udp_group_bind(g[i], &addr, 0, &fd[i]), 0);
	}
	stolen = accept(g[0]->listen_fd, NULL, NULL);
	assert_true(stolen >= 0);
	close(stolen);
	assert_int_equal(udp_group_join(&cfg, &g[2]), 0);
	assert_int_equal(udp_group_bind(g[2], &addr, 0, &fd[2]), 0);
	udp_group_serve(g[0]);
	for (unsigned i = 0; i < 3; i++)
		assert_true(udp_group_peer_fd(g[0], &addr,
					      (i + 1) << UDP_GROUP_QPN_BITS) >=
			    0);
	udp_group_leave(g[1]);
	for (unsigned i = 0; i < 3; i += 2) {
		struct sockaddr_in to = { .sin_family = AF_INET,
					  .sin_port = htons(ROCEV2_UDP_PORT),
					  .sin_addr.s_addr =
						  htonl(gid_v4(&addr)) };

		p[5] = (uint8_t)(i + 1);
		assert_int_equal(sendto(fd[0], p, sizeof(p), 0,
					(struct sockaddr *)&to, sizeof(to)),
				 sizeof(p));
		assert_int_equal(recv(fd[i], p, sizeof(p), 0), sizeof(p));
	}
	udp_group_leave(g[0]);
	udp_group_leave(g[2]);
}

/* The child of a fork only closes; its parent stays a member. */
static void test_fork(void **state)
{
	struct udp_group_config cfg = { 0 };
	struct gid addr = lo4(1);
	struct udp_group *g, *h;
	pid_t pid;
	int fd, status;

	(void)state;
	assert_int_equal(udp_group_join(&cfg, &g), 0);
	assert_int_equal(udp_group_bind(g, &addr, 0, &fd), 0);
	pid = fork();
	if (pid == 0) {
		udp_group_leave(g);
		_exit(fcntl(fd, F_GETFD) == -1 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(udp_group_join(&cfg, &h), 0);
	assert_int_not_equal(udp_group_slot(h), udp_group_slot(g));
	udp_group_leave(g);
	udp_group_leave(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gsi),
		cmocka_unit_test(test_two_in_one),
		cmocka_unit_test(test_adopt_options),
		cmocka_unit_test(test_fds),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_no_address),
		cmocka_unit_test(test_in_use_own),
		cmocka_unit_test(test_in_use_foreign),
		cmocka_unit_test(test_rogue),
		cmocka_unit_test(test_rogue_silent),
		cmocka_unit_test(test_steering),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_ipv6),
		cmocka_unit_test(test_turnover),
		cmocka_unit_test(test_lost_push),
		cmocka_unit_test(test_stopped_holder),
		cmocka_unit_test(test_stopped_members),
		cmocka_unit_test(test_unknown_sockets),
	};

	slow_start();
	have_net = private_net();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
