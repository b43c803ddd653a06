/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * group_msg.c - one message of the rendezvous with its file descriptors
 * (SCM_RIGHTS). Whoever is at the other end runs as the same user; what it
 * says is checked all the same.
 */
#include "link/group_priv.h"

#include <errno.h>
#include <unistd.h>

int group_msg_send(int sock, struct group_msg *m, const int *fds)
{
	ASSERT(m->nfds <= GROUP_FDS_MAX);
	m->magic = GROUP_MAGIC;
	m->resv = 0;
	return seqsock_send(sock, m, sizeof(*m), fds, m->nfds);
}

static bool valid(const struct group_msg *m, unsigned nfds)
{
	return m->magic == GROUP_MAGIC && m->nfds == nfds && m->resv == 0 &&
	       m->type >= GROUP_GET && m->type <= GROUP_PUSH &&
	       m->first + nfds <= UDP_GROUP_SLOTS;
}

int group_msg_recv(int sock, struct group_msg *m, int fds[GROUP_FDS_MAX])
{
	unsigned n;
	int err = seqsock_recv(sock, m, sizeof(*m), fds, GROUP_FDS_MAX, &n);

	if (err)
		return err;
	if (valid(m, n))
		return 0;
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
	return -EBADMSG;
}
