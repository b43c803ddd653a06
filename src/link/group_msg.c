/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * group_msg.c - one message of the rendezvous with its file descriptors
 * (SCM_RIGHTS). Whoever is at the other end runs as the same user; what it
 * says is checked all the same.
 */
#include "link/group_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONTROL_BYTES CMSG_SPACE(GROUP_FDS_MAX * sizeof(int))

int group_msg_send(int sock, struct group_msg *m, const int *fds)
{
	_Alignas(struct cmsghdr) uint8_t control[CONTROL_BYTES];
	struct iovec iov = { .iov_base = m, .iov_len = sizeof(*m) };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t bytes = m->nfds * sizeof(int);

	ASSERT(m->nfds <= GROUP_FDS_MAX);
	m->magic = GROUP_MAGIC;
	m->resv = 0;
	if (m->nfds) {
		struct cmsghdr *c = (void *)control;

		memset(control, 0, sizeof(control));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(c), fds, bytes);
		h.msg_control = control;
		h.msg_controllen = CMSG_SPACE(bytes);
	}
	if (sendmsg(sock, &h, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return -errno;
	return 0;
}

static unsigned take_fds(struct msghdr *h, int fds[GROUP_FDS_MAX])
{
	unsigned n = 0;
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		size_t bytes = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		ASSERT(n * sizeof(int) + bytes <= GROUP_FDS_MAX * sizeof(int));
		memcpy(fds + n, CMSG_DATA(c), bytes);
		n += (unsigned)(bytes / sizeof(int));
	}
	return n;
}

static bool valid(const struct group_msg *m, ssize_t len, unsigned nfds,
		  int flags)
{
	return len == sizeof(*m) && !(flags & (MSG_TRUNC | MSG_CTRUNC)) &&
	       m->magic == GROUP_MAGIC && m->nfds == nfds && m->resv == 0 &&
	       m->type >= GROUP_GET && m->type <= GROUP_PUSH &&
	       m->first + nfds <= UDP_GROUP_SLOTS;
}

int group_msg_recv(int sock, struct group_msg *m, int fds[GROUP_FDS_MAX])
{
	_Alignas(struct cmsghdr) uint8_t control[CONTROL_BYTES];
	struct iovec iov = { .iov_base = m, .iov_len = sizeof(*m) };
	struct msghdr h = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t len = recvmsg(sock, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	unsigned n;

	if (len < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	n = take_fds(&h, fds);
	if (valid(m, len, n, h.msg_flags))
		return 0;
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
	return len == 0 && n == 0 ? -EPIPE : -EBADMSG;
}
