/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * umem_probe.c - is a range mapped with these rights? From the list of
 * mappings, so that no page is touched: by the query ioctl where the kernel
 * has it (6.11), else by reading the text; without /proc by mincore(), which
 * knows no rights.
 */
#include "rt/umem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/ioctl.h>

#include "rt/rawsys.h"

/* Not /proc/self: that is empty once the main thread has ended. */
static const char maps_path[] = "/proc/thread-self/maps";

struct mapping {
	uint64_t start, end;
	bool read, write;
};

/* ---- PROCMAP_QUERY, in words of our own: headers are older ---- */

struct map_query {
	uint64_t size, flags, addr;
	uint64_t ret_start, ret_end, ret_flags;
	uint64_t ret_page_size, ret_offset, ret_inode;
	uint32_t ret_dev_major, ret_dev_minor;
	uint32_t name_size, build_id_size;
	uint64_t name_addr, build_id_addr;
};
#define MAP_QUERY _IOWR('f', 17, struct map_query)
#define MAP_QUERY_READABLE 1
#define MAP_QUERY_WRITABLE 2

/* The mapping that holds addr. 0, -ENOENT: none, other -errno: not to be had
 * this way. */
static int query_mapping(int fd, uint64_t addr, struct mapping *ret)
{
	struct map_query q = { .size = sizeof(q), .addr = addr };
	long r = RAWSYS3(SYS_ioctl, fd, MAP_QUERY, &q);

	if (r != 0)
		return (int)r;
	*ret = (struct mapping){ q.ret_start, q.ret_end,
				 q.ret_flags & MAP_QUERY_READABLE,
				 q.ret_flags & MAP_QUERY_WRITABLE };
	return 0;
}

/* 1: yes, 0: no, -errno: cannot tell. */
static int probe_query(int fd, uint64_t va, uint64_t end, bool write)
{
	struct mapping m = { 0 };
	int r;

	while (va < end) {
		r = query_mapping(fd, va, &m);
		if (r == -ENOENT)
			return 0;
		if (r != 0)
			return r;
		if (!m.read || (write && !m.write))
			return 0;
		va = m.end;
	}
	return 1;
}

/* ---- the text ---- */

struct reader {
	int fd;
	bool failed;
	size_t at, fill;
	char buf[2048];
};

/* The next character; -1 at the end. */
static int reader_next(struct reader *r)
{
	long n;

	if (r->at == r->fill) {
		do
			n = RAWSYS3(SYS_read, r->fd, r->buf, sizeof(r->buf));
		while (n == -EINTR);
		if (n < 0)
			r->failed = true;
		if (n <= 0)
			return -1;
		r->at = 0;
		r->fill = (size_t)n;
	}
	return (unsigned char)r->buf[r->at++];
}

/* A hexadecimal number and the one character after it. */
static uint64_t reader_hex(struct reader *r)
{
	uint64_t v = 0;

	for (;;) {
		int c = reader_next(r);

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (uint64_t)(c - 'a' + 10);
		else
			return v;
	}
}

/* One line: "start-end rw..."; false at the end. */
static bool reader_mapping(struct reader *r, struct mapping *ret)
{
	int c;

	ret->start = reader_hex(r);
	ret->end = reader_hex(r);
	ret->read = reader_next(r) == 'r';
	ret->write = reader_next(r) == 'w';
	do
		c = reader_next(r);
	while (c != '\n' && c >= 0);
	return c == '\n';
}

static int probe_text(int fd, uint64_t va, uint64_t end, bool write)
{
	struct reader r = { .fd = fd };
	struct mapping m;

	while (va < end && reader_mapping(&r, &m)) {
		if (m.end <= va)
			continue;
		if (m.start > va || !m.read || (write && !m.write))
			return 0;
		va = m.end;
	}
	return va >= end ? 1 : r.failed ? -EIO : 0;
}

/* ---- without /proc ---- */

#define PAGES_A_CALL 1024

static bool probe_mincore(uint64_t va, uint64_t end)
{
	const uint64_t page = 4096; /* the smallest there is; mincore() wants a
				     * multiple of the real one */
	uint64_t at = va & ~(uint64_t)65535;
	unsigned char vec[PAGES_A_CALL];

	/* 64 KiB suits every page size, but must not reach before va. */
	if (RAWSYS3(SYS_mincore, va & ~(page - 1), 1, vec) != -EINVAL)
		at = va & ~(page - 1);
	while (at < end) {
		uint64_t n = end - at;

		if (n > PAGES_A_CALL * page)
			n = PAGES_A_CALL * page;
		if (RAWSYS3(SYS_mincore, at, n, vec) != 0)
			return false;
		at += n;
	}
	return true;
}

bool umem_probe(uint64_t va, uint64_t len, bool write)
{
	static atomic_bool no_query;
	uint64_t end = va + len;
	int r = -ENOTTY;
	long fd;

	if (len == 0)
		return true;
	if (end < va)
		return false;
	fd = RAWSYS4(SYS_openat, AT_FDCWD, maps_path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return probe_mincore(va, end);
	if (!atomic_load(&no_query))
		r = probe_query((int)fd, va, end, write);
	if (r < 0) {
		atomic_store(&no_query, true);
		r = probe_text((int)fd, va, end, write);
	}
	(void)RAWSYS1(SYS_close, fd);
	return r < 0 ? probe_mincore(va, end) : r == 1;
}
