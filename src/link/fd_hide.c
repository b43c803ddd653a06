/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "link/fd_hide.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Above what select() can name; a table of this size costs the kernel 16 KiB.
 * Where fewer are allowed, the upper half. */
#define FLOOR 1024

static int floor_of_limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur >= 2 * FLOOR)
		return FLOOR;
	return (int)r.rlim_cur / 2;
}

int fd_hidden_dup(int fd)
{
	int up = fcntl(fd, F_DUPFD_CLOEXEC, floor_of_limit());

	if (up < 0)
		up = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return up < 0 ? -errno : up;
}

int fd_hide(int fd)
{
	int saved_errno = errno;
	int up;

	if (fd < 0)
		return fd;
	up = fcntl(fd, F_DUPFD_CLOEXEC, floor_of_limit());
	if (up >= 0)
		(void)syscall(SYS_close, fd);
	errno = saved_errno;
	return up < 0 ? fd : up;
}
