/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "link/seqsock.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define OVERFLOW_UID 65534 /* /proc/sys/kernel/overflowuid; nobody sets it */
#define BACKLOG 4096
#define CONTROL_BYTES CMSG_SPACE(SEQSOCK_FDS_MAX * sizeof(int))

/* ---- who ---- */

/* Our uid as others will see it in SO_PEERCRED. */
static int own_uid(uid_t *ret_uid)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int sv[2];
	int err = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv))
		return -errno;
	if (getsockopt(sv[0], SOL_SOCKET, SO_PEERCRED, &cred, &len))
		err = -errno;
	close(sv[0]);
	close(sv[1]);
	if (!err)
		*ret_uid = cred.uid;
	return err;
}

/* True when uid is only what this user namespace shows for ids that it does
 * not map: then it is no proof of anything. */
static bool is_vague(uid_t uid)
{
	FILE *f;
	unsigned first, outside, n;
	bool mapped = false;

	if (uid != OVERFLOW_UID)
		return false;
	f = fopen("/proc/self/uid_map", "re");
	if (!f)
		return true;
	while (!mapped && fscanf(f, "%u %u %u", &first, &outside, &n) == 3)
		mapped = uid >= first && uid - first < n;
	fclose(f);
	return !mapped;
}

int seqsock_user(struct seqsock_user *ret)
{
	uid_t uid = 0;
	int err = own_uid(&uid);

	if (!err)
		*ret = (struct seqsock_user){ .uid = uid,
					      .vague = is_vague(uid) };
	return err;
}

bool seqsock_same_user(const struct seqsock_user *u, int fd, struct ucred *ret)
{
	socklen_t len = sizeof(*ret);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &len) == 0 &&
	       ret->uid == u->uid && !u->vague;
}

/* ---- names ---- */

int seqsock_new(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC,
		      0);
}

static socklen_t name_of(struct sockaddr_un *a, const struct seqsock_user *u,
			 const char *leaf)
{
	int n;

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	n = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "softhca/%u/%s",
		     (unsigned)u->uid, leaf);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)n);
}

int seqsock_hold(const struct seqsock_user *u, const char *leaf, int *ret_fd)
{
	struct sockaddr_un a;
	socklen_t len = name_of(&a, u, leaf);
	int fd = seqsock_new();
	int err;

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&a, len) || listen(fd, BACKLOG)) {
		err = -errno;
		close(fd);
		return err;
	}
	*ret_fd = fd;
	return 0;
}

int seqsock_connect(const struct seqsock_user *u, const char *leaf,
		    struct ucred *ret_cred, int *ret_fd)
{
	struct sockaddr_un a;
	socklen_t len = name_of(&a, u, leaf);
	int fd = seqsock_new();
	int err;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&a, len))
		err = -errno;
	else
		err = seqsock_same_user(u, fd, ret_cred) ? 0 : -EACCES;
	if (err) {
		close(fd);
		return err;
	}
	*ret_fd = fd;
	return 0;
}

/* ---- messages ---- */

int seqsock_send(int sock, const void *msg, size_t len, const int *fds,
		 unsigned nfds)
{
	_Alignas(struct cmsghdr) uint8_t control[CONTROL_BYTES];
	/* The kernel only reads from it. */
	struct iovec iov = { .iov_base = (void *)(uintptr_t)msg,
			     .iov_len = len };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t bytes = nfds * sizeof(int);

	ASSERT(nfds <= SEQSOCK_FDS_MAX);
	if (nfds) {
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

/* Takes the descriptors; those past max are closed. */
static unsigned take_fds(struct msghdr *h, int *fds, unsigned max)
{
	unsigned n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		size_t bytes = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < bytes / sizeof(int); i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (n < max)
				fds[n] = fd;
			else
				close(fd);
			n++;
		}
	}
	return n;
}

int seqsock_recv(int sock, void *msg, size_t len, int *fds, unsigned max_fds,
		 unsigned *ret_nfds)
{
	_Alignas(struct cmsghdr) uint8_t control[CONTROL_BYTES];
	struct iovec iov = { .iov_base = msg, .iov_len = len };
	struct msghdr h = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t got = recvmsg(sock, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	unsigned n, kept;

	if (got < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	n = take_fds(&h, fds, max_fds);
	if (got == (ssize_t)len && n <= max_fds &&
	    !(h.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
		*ret_nfds = n;
		return 0;
	}
	kept = n < max_fds ? n : max_fds;
	for (unsigned i = 0; i < kept; i++)
		close(fds[i]);
	return got == 0 && n == 0 ? -EPIPE : -EBADMSG;
}
