/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * udp_bench.c - frames a second from one process to another over port 4791 of
 * a local address, stock buffers, with back-pressure. Not a test.
 *
 *   udp_bench [-n FRAMES] [-s PAYLOAD] [-o] [-r] [-6]
 *     -o  without UDP_SEGMENT and UDP_GRO     -6  ::1 instead of 127.0.0.1
 *     -r  without asking the receiver how full it is
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "link/group.h"
#include "link/udp.h"
#include "wire/pkt.h"

struct options {
	unsigned frames;
	unsigned payload;
	bool offload;
	bool blind;
	struct gid addr;
};

struct side {
	struct udp_group *group;
	struct udp_link *link;
	int fd;
};

static void note(const char *text)
{
	fprintf(stderr, "note: %s\n", text);
}

static void die(const char *what, int err)
{
	fprintf(stderr, "%s: %s (%s)\n", what, strerror(-err),
		udp_group_error());
	exit(1);
}

static void side_open(struct side *s, const struct options *o)
{
	struct udp_group_config gc = { .gro = o->offload, .note = note };
	struct udp_link_config lc = { .segment = o->offload,
				      .gro = o->offload,
				      .icrc_strict = true,
				      .note = note };
	int err = udp_group_join(&gc, &s->group);

	if (err)
		die("join", err);
	err = udp_group_bind(s->group, &o->addr, 0, &s->fd);
	if (err)
		die("bind", err);
	err = udp_link_new(&lc, &s->link);
	if (!err)
		err = udp_link_add_rx(s->link, s->fd, &o->addr);
	if (err)
		die("link", err);
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* CPU time that the process has used: tells more than wall-clock on a busy
 * machine. */
static double cpu_ns(int who)
{
	struct rusage r;

	getrusage(who, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e9 +
	       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e3;
}

static void print_counters(const char *who, const struct udp_link_counters *c)
{
	printf("%s:", who);
#define PRINT(name)                                                            \
	if (c->name)                                                           \
		printf(" " #name " %llu", (unsigned long long)c->name);
	UDP_LINK_COUNTERS(PRINT)
#undef PRINT
	printf("\n");
}

static void build(uint8_t *p, const struct options *o, uint32_t qpn,
		  uint32_t psn)
{
	struct bth bth = { .opcode = OPCODE(TRANSPORT_UC, OP_WRITE_MIDDLE),
			   .pkey = BTH_PKEY_DEFAULT,
			   .dest_qpn = qpn,
			   .psn = psn_of(psn) };

	bth_encode(&bth, p);
	memset(p + BTH_BYTES, (int)psn, o->payload);
}

static void hold_on(struct side *s)
{
	struct timespec ts = { .tv_nsec = UDP_LINK_RETRY_NS };
	struct pollfd p = { .fd = udp_link_wants_write(s->link),
			    .events = POLLOUT };

	if (p.fd >= 0)
		poll(&p, 1, 10);
	else
		nanosleep(&ts, NULL);
}

static void sender(const struct options *o, uint32_t qpn)
{
	struct rocev2_flow flow = { .src = o->addr,
				    .dst = o->addr,
				    .sport = 0xc123,
				    .tos = 2,
				    .ttl = 64 };
	struct udp_link_dest dest = { .peer_fd = -1 };
	struct side s;
	unsigned n = 0;

	side_open(&s, o);
	if (!o->blind)
		dest.peer_fd = udp_group_peer_fd(s.group, &o->addr, qpn);
	while (n < o->frames) {
		uint8_t *room;

		for (int i = 0; i < 64 && n < o->frames; i++) {
			room = udp_link_tx_room(s.link);
			if (!room)
				break;
			build(room, o, qpn, n++);
			udp_link_tx_add(s.link, &flow, &dest,
					BTH_BYTES + o->payload);
		}
		if (udp_link_flush(s.link))
			hold_on(&s);
	}
	while (udp_link_flush(s.link))
		hold_on(&s);
	print_counters("tx", udp_link_counters(s.link));
	udp_link_free(s.link);
	udp_group_leave(s.group);
}

static void got(void *ctx, const struct rocev2_flow *f, const uint8_t *pkt,
		size_t len)
{
	unsigned *next = ctx;
	struct bth bth;

	(void)f;
	(void)len;
	bth_decode(&bth, pkt);
	*next = bth.psn.v + 1;
}

static int64_t receive(struct side *s, const struct options *o)
{
	struct pollfd p[2] = {
		{ .fd = s->fd, .events = POLLIN },
		{ .fd = udp_group_fd(s->group), .events = POLLIN },
	};
	const struct udp_link_counters *c = udp_link_counters(s->link);
	int64_t first_ns = 0, last_ns = 0;
	unsigned next = 0;

	while (next < o->frames) {
		if (!udp_link_rx(s->link, 64, got, &next)) {
			if (poll(p, 2, 1000) <= 0)
				break;
			udp_group_serve(s->group);
			continue;
		}
		last_ns = now_ns();
		if (!first_ns)
			first_ns = last_ns;
	}
	print_counters("rx", c);
	return last_ns - first_ns;
}

static void run(const struct options *o)
{
	struct side s;
	int64_t ns;
	uint64_t n;

	side_open(&s, o);
	fflush(stdout);
	if (fork() == 0) {
		uint32_t qpn = udp_group_slot(s.group) << UDP_GROUP_QPN_BITS;

		udp_link_free(s.link);
		udp_group_leave(s.group);
		sender(o, qpn | 0x11);
		exit(0);
	}
	ns = receive(&s, o);
	wait(NULL);
	n = udp_link_counters(s.link)->rx_frames;
	printf("%u B payload, offload %d: %llu of %u frames, %.0f frames/s, "
	       "%.0f ns a frame, %.2f Gb/s; CPU a frame: tx %.0f ns, "
	       "rx %.0f ns\n",
	       o->payload, o->offload, (unsigned long long)n, o->frames,
	       (double)n * 1e9 / (double)ns, (double)ns / (double)n,
	       (double)n * o->payload * 8 / (double)ns,
	       cpu_ns(RUSAGE_CHILDREN) / (double)n,
	       cpu_ns(RUSAGE_SELF) / (double)n);
	udp_link_free(s.link);
	udp_group_leave(s.group);
}

int main(int argc, char **argv)
{
	struct options o = { .frames = 200000,
			     .payload = 4096,
			     .offload = true,
			     .addr = gid_from_v4(0x7f000001) };
	int c;

	while ((c = getopt(argc, argv, "n:s:or6")) != -1) {
		if (c == 'n')
			o.frames = (unsigned)atoi(optarg);
		else if (c == 's')
			o.payload = (unsigned)atoi(optarg) & ~3u;
		else if (c == 'o')
			o.offload = false;
		else if (c == 'r')
			o.blind = true;
		else if (c == '6')
			o.addr = (struct gid){ .raw = { [15] = 1 } };
		else
			return 2;
	}
	if (o.payload > PKT_PAYLOAD_MAX)
		return 2;
	run(&o);
	return 0;
}
