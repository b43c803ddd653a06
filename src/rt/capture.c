/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * capture.c - pcap records, gathered in a buffer and appended in one write.
 *
 * O_APPEND makes each write atomic against other processes' writes, so records
 * do not mix. A write that the kernel cuts short is continued; a hard error
 * (disk full) loses the buffer's records, which are counted.
 */
#include "rt/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "rt/rawsys.h"
#include "wire/pkt.h"

#define PCAP_MAGIC_US 0xa1b2c3d4u
#define PCAP_LINKTYPE_ETHERNET 1
#define PCAP_SNAPLEN 65535
#define PCAP_HEADER_BYTES 24
#define PCAP_RECORD_BYTES 16

#define FRAME_MAX                                                              \
	(PCAP_RECORD_BYTES + ETH_BYTES + IPV6_BYTES + UDP_BYTES + PKT_MAX +    \
	 ICRC_BYTES)
#define BUFFER_BYTES (256 * 1024)

struct capture {
	int fd;
	dev_t dev; /* of the file: has somebody closed the fd under us? */
	ino_t ino;
	uint64_t lost;
	uint32_t records; /* in buf */
	size_t fill;
	uint8_t buf[BUFFER_BYTES];
};

static void put_native32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

static void put_native16(uint8_t *p, uint16_t v)
{
	memcpy(p, &v, sizeof(v));
}

/* ---- the file ---- */

static int write_all(int fd, const uint8_t *p, size_t len)
{
	while (len > 0) {
		long n = RAWSYS3(SYS_write, fd, p, len);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static int write_header(int fd)
{
	uint8_t h[PCAP_HEADER_BYTES] = { 0 };

	put_native32(h, PCAP_MAGIC_US);
	put_native16(h + 4, 2); /* version 2.4 */
	put_native16(h + 6, 4);
	put_native32(h + 16, PCAP_SNAPLEN);
	put_native32(h + 20, PCAP_LINKTYPE_ETHERNET);
	return write_all(fd, h, sizeof(h));
}

/* Two processes may find the file empty at once: one header, under a lock. */
static int start_file(int fd, struct stat *ret_st)
{
	long r;

	do
		r = RAWSYS2(SYS_flock, fd, LOCK_EX);
	while (r == -EINTR);
	/* Not every file system locks; pipes and /dev/stdout cannot either. */
	r = fstat(fd, ret_st) == 0 ? 0 : -errno;
	if (r == 0 && ret_st->st_size == 0)
		r = write_header(fd);
	(void)RAWSYS2(SYS_flock, fd, LOCK_UN);
	return (int)r;
}

int capture_open(const char *path, struct capture **ret_c)
{
	struct capture *c;
	struct stat st;
	long fd;
	int r;

	fd = RAWSYS4(SYS_openat, AT_FDCWD, path,
		     O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return (int)fd;
	r = start_file((int)fd, &st);
	c = r == 0 ? malloc(sizeof(*c)) : NULL;
	if (!c) {
		(void)RAWSYS1(SYS_close, fd);
		return r != 0 ? r : -ENOMEM;
	}
	c->fd = (int)fd;
	c->dev = st.st_dev;
	c->ino = st.st_ino;
	c->lost = 0;
	c->records = 0;
	c->fill = 0;
	*ret_c = c;
	return 0;
}

/* Programs that close all descriptors may get ours for a file of theirs. */
static bool still_ours(const struct capture *c)
{
	struct stat st;
	int saved_errno = errno;
	bool ok = fstat(c->fd, &st) == 0 && st.st_dev == c->dev &&
		  st.st_ino == c->ino;

	errno = saved_errno;
	return ok;
}

void capture_flush(struct capture *c)
{
	if (!c || c->fill == 0)
		return;
	if (!still_ours(c) || write_all(c->fd, c->buf, c->fill) != 0)
		c->lost += c->records;
	c->fill = 0;
	c->records = 0;
}

void capture_close(struct capture *c)
{
	if (!c)
		return;
	capture_flush(c);
	if (still_ours(c))
		(void)RAWSYS1(SYS_close, c->fd);
	free(c);
}

void capture_forget(struct capture *c)
{
	if (!c)
		return;
	c->fill = 0;
	capture_close(c);
}

uint64_t capture_lost(const struct capture *c)
{
	return c->lost;
}

/* ---- records ---- */

/* A locally administered unicast MAC that the same address always gets: 02:00
 * and the IPv4 address, or a hash of the IPv6 address. */
static void mac_of(const struct gid *g, uint8_t mac[6])
{
	uint32_t h = 2166136261u; /* FNV-1a */

	if (gid_is_v4(g)) {
		h = gid_v4(g);
	} else {
		for (size_t i = 0; i < sizeof(g->raw); i++)
			h = (h ^ g->raw[i]) * 16777619u;
	}
	mac[0] = 0x02;
	mac[1] = gid_is_v4(g) ? 0x00 : 0x06;
	put_be32(mac + 2, h);
}

static size_t put_eth(const struct rocev2_flow *flow, uint8_t *p)
{
	struct eth eth = { .ethertype = gid_is_v4(&flow->dst)
						? ETHERTYPE_IPV4
						: ETHERTYPE_IPV6 };

	mac_of(&flow->dst, eth.dst);
	mac_of(&flow->src, eth.src);
	return eth_encode(&eth, p);
}

void capture_frame(void *ctx, bool tx, const struct rocev2_flow *flow,
		   const uint8_t *pkt, size_t len)
{
	struct capture *c = ctx;
	struct timespec now;
	uint8_t *rec;
	size_t n;

	(void)tx; /* the addresses say it */
	ASSERT(len <= PKT_MAX + ICRC_BYTES);
	if (c->fill + FRAME_MAX > sizeof(c->buf))
		capture_flush(c);
	clock_gettime(CLOCK_REALTIME, &now);
	rec = c->buf + c->fill;
	n = put_eth(flow, rec + PCAP_RECORD_BYTES);
	n += rocev2_encode_headers(flow, len, rec + PCAP_RECORD_BYTES + n);
	memcpy(rec + PCAP_RECORD_BYTES + n, pkt, len);
	n += len;
	put_native32(rec, (uint32_t)now.tv_sec);
	put_native32(rec + 4, (uint32_t)(now.tv_nsec / 1000));
	put_native32(rec + 8, (uint32_t)n);
	put_native32(rec + 12, (uint32_t)n);
	c->fill += PCAP_RECORD_BYTES + n;
	c->records++;
}
