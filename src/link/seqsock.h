/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * seqsock.h - abstract SOCK_SEQPACKET names by which processes of one user and
 * one network namespace find each other, and messages with descriptors.
 *
 * The kernel frees a name when its owner dies. A name is no proof of life or of
 * identity, a connection is: SO_PEERCRED must show our own uid.
 */
#ifndef SOFTHCA_LINK_SEQSOCK_H
#define SOFTHCA_LINK_SEQSOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/assert.h"

struct ucred;

#define SEQSOCK_FDS_MAX 253 /* the kernel's limit for one message */

struct seqsock_user {
	uid_t uid;  /* ours, as SO_PEERCRED reports it */
	bool vague; /* it is the overflow uid: strangers have it too */
};

/* 0, -errno. */
MUST_USE int seqsock_user(struct seqsock_user *ret);
/* Is who is at the other end the same user? Never when that is vague. */
bool seqsock_same_user(const struct seqsock_user *u, int fd, struct ucred *ret);

/* A fresh socket, non-blocking, CLOEXEC; -1 and errno. */
int seqsock_new(void);
/* Takes the name `leaf` of this user: binds and listens. -EADDRINUSE. */
MUST_USE int seqsock_hold(const struct seqsock_user *u, const char *leaf,
			  int *ret_fd);
/* Connects to it. -ECONNREFUSED: nobody has it; -EACCES: another user does,
 * *ret_cred says who; -EAGAIN: too many wait there. */
MUST_USE int seqsock_connect(const struct seqsock_user *u, const char *leaf,
			     struct ucred *ret_cred, int *ret_fd);

/* One message of len bytes with nfds descriptors, never blocking. -EAGAIN. */
MUST_USE int seqsock_send(int sock, const void *msg, size_t len, const int *fds,
			  unsigned nfds);
/* Exactly len bytes and at most max_fds (<= SEQSOCK_FDS_MAX) descriptors,
 * CLOEXEC, the caller's. -EAGAIN; -EPIPE at the end; -EBADMSG, all descriptors
 * closed, when the message is another one. */
MUST_USE int seqsock_recv(int sock, void *msg, size_t len, int *fds,
			  unsigned max_fds, unsigned *ret_nfds);

#endif
