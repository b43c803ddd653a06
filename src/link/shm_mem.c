/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "link/shm_mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

static int size_and_map(int fd, size_t bytes, size_t map_bytes, void **ret_map)
{
	struct rlimit r;
	void *p;

	/* Beyond it there is a signal. */
	if (getrlimit(RLIMIT_FSIZE, &r) == 0 && r.rlim_cur < bytes)
		return -EFBIG;
	if (ftruncate(fd, (off_t)bytes))
		return -errno;
	p = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	/* Before Linux 5.1 peers could map it writable, as one user's processes
	 * can reach each other anyway. */
	if (madvise(p, map_bytes, MADV_DONTFORK) ||
	    (fcntl(fd, F_ADD_SEALS, SIZE_SEALS | F_SEAL_FUTURE_WRITE) &&
	     fcntl(fd, F_ADD_SEALS, SIZE_SEALS))) {
		int err = -errno;

		munmap(p, map_bytes);
		return err;
	}
	*ret_map = p;
	return 0;
}

int shm_mem_new(const char *name, size_t bytes, size_t map_bytes, int *ret_fd,
		void **ret_map)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (fd < 0)
		return -errno;
	err = size_and_map(fd, bytes, map_bytes, ret_map);
	if (err) {
		close(fd);
		return err;
	}
	*ret_fd = fd;
	return 0;
}

int shm_mem_map_peer(int fd, size_t bytes, size_t map_bytes,
		     const void **ret_map)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	void *p;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) ||
	    st.st_size < 0 || (size_t)st.st_size < bytes)
		return -EBADMSG;
	p = mmap(NULL, map_bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	madvise(p, map_bytes, MADV_DONTFORK);
	*ret_map = p;
	return 0;
}

void shm_mem_unmap(const void *map, size_t map_bytes)
{
	munmap((void *)(uintptr_t)map, map_bytes);
}
