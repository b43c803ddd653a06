/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * probe.c - what this machine can do at all: the limits column of `make bench`.
 * Prints one line of JSON for each thing that it is asked to measure. Knows
 * nothing of softhca.
 *
 *   probe [-c CPU,CPU] [-t MS] [-a ADDR] [-b ADDR] [-N NETNS] WHAT...
 *
 *   -c  the two CPUs; the first is the passive side's
 *   -t  time for each measurement, 200 ms
 *   -a  IPv4 address of the sender, -b of the receiver; 127.0.0.1
 *   -N  file of the receiver's network namespace
 *
 *   memcpy:SIZE:WSET   copies of SIZE bytes inside one process; WSET bytes at
 *                      each end are walked through
 *   vm:SIZE:WSET       the same by process_vm_writev and process_vm_readv, the
 *                      other process asleep
 *   udp:BYTES:OFFLOAD  datagrams of BYTES one way, as many as arrive; OFFLOAD
 *                      1: UDP_SEGMENT and UDP_GRO
 *   pingpong:BYTES     one datagram there and back, both sides polling
 *   line               one cache line there and back
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SOL_UDP
#define SOL_UDP 17
#endif
#define OPT_UDP_SEGMENT 103
#define OPT_UDP_GRO 104

#define PORT 4799
#define DATAGRAM_MAX 65507
#define SEGMENTS_MAX 64
#define SAMPLES 20000
#define GIVE_UP_NS 2000000000ll /* a side that hears nothing for so long */

struct options {
	int cpu[2];
	int64_t time_ns;
	const char *addr[2]; /* sender, receiver */
	const char *netns;   /* of the receiver; NULL: ours */
};

static struct options opt = { .cpu = { -1, -1 },
			      .time_ns = 200000000,
			      .addr = { "127.0.0.1", "127.0.0.1" } };

/* What the two processes of a measurement share. */
struct shared {
	_Alignas(128) _Atomic uint64_t received; /* bytes */
	_Alignas(128) _Atomic uint32_t ball;
	_Alignas(128) _Atomic bool ready, stop;
};
static struct shared *sh;

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "probe: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

static void pin(int side)
{
	cpu_set_t set;

	if (opt.cpu[side] < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((unsigned)opt.cpu[side], &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

static void *map(size_t len, int flags)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       flags | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

static size_t page_up(size_t n)
{
	return (n + 4095) & ~(size_t)4095;
}

/* ---- the other process ---- */

/* Starts fn in a child on the passive CPU, which ends with us. */
static pid_t start(void (*fn)(void *arg), void *arg)
{
	pid_t parent = getpid(), pid;

	memset(sh, 0, sizeof(*sh));
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	pin(0);
	fn(arg);
	_exit(0);
}

static void wait_ready(pid_t pid)
{
	while (!atomic_load(&sh->ready)) {
		if (waitpid(pid, NULL, WNOHANG) == pid) {
			errno = ECHILD;
			die("the other process ended");
		}
		usleep(200);
	}
}

static void stop(pid_t pid)
{
	atomic_store(&sh->stop, true);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- copies ---- */

struct copy {
	size_t size, wset;
	uint8_t *own, *other;
	pid_t pid;
};

typedef bool copy_fn(const struct copy *c, size_t off);

static bool by_memcpy(const struct copy *c, size_t off)
{
	memcpy(c->other + off, c->own + off, c->size);
	/* The copy is wanted. */
	__asm__ volatile("" : : "r"(c->other) : "memory");
	return true;
}

static bool by_vm(const struct copy *c, size_t off, bool write)
{
	struct iovec mine = { c->own + off, c->size };
	struct iovec theirs = { c->other + off, c->size };
	ssize_t n;

	n = write ? process_vm_writev(c->pid, &mine, 1, &theirs, 1, 0)
		  : process_vm_readv(c->pid, &mine, 1, &theirs, 1, 0);
	return n == (ssize_t)c->size;
}

static bool by_vm_write(const struct copy *c, size_t off)
{
	return by_vm(c, off, true);
}

static bool by_vm_read(const struct copy *c, size_t off)
{
	return by_vm(c, off, false);
}

static void measure_copy(const char *what, const struct copy *c, copy_fn *fn)
{
	int64_t begin_ns, ns;
	uint64_t n = 0;
	size_t off = 0, stride = page_up(c->size);

	if (c->wset < stride)
		stride = 0;
	for (size_t at = 0; at + c->size <= c->wset; at += page_up(c->size))
		(void)fn(c, at); /* the pages are there, caches are warm */
	begin_ns = now_ns();
	do {
		for (int i = 0; i < 16; i++, n++) {
			if (!fn(c, off)) {
				printf("{\"what\":\"%s\",\"size\":%zu,"
				       "\"error\":\"%s\"}\n",
				       what, c->size, strerror(errno));
				return;
			}
			off += stride;
			if (off + c->size > c->wset)
				off = 0;
		}
		ns = now_ns() - begin_ns;
	} while (ns < opt.time_ns);
	printf("{\"what\":\"%s\",\"size\":%zu,\"wset\":%zu,\"gbps\":%.3f,"
	       "\"us\":%.4f}\n",
	       what, c->size, c->wset, (double)(n * c->size) * 8 / (double)ns,
	       (double)ns / (double)n / 1000);
}

/* Both buffers are there before the child is made: it has the second at the
 * same address, and its own pages after a write to each. */
static struct copy copy_new(size_t size, size_t wset)
{
	struct copy c = { .size = size, .wset = wset < size ? size : wset };

	c.own = map(page_up(c.wset), MAP_PRIVATE);
	c.other = map(page_up(c.wset), MAP_PRIVATE);
	memset(c.own, 1, c.wset);
	memset(c.other, 2, c.wset);
	return c;
}

static void copy_free(const struct copy *c)
{
	munmap(c->own, page_up(c->wset));
	munmap(c->other, page_up(c->wset));
}

static void sleep_with_memory(void *arg)
{
	const struct copy *c = arg;

	memset(c->other, 3, c->wset);
	atomic_store(&sh->ready, true);
	for (;;)
		pause();
}

static void probe_memcpy(size_t size, size_t wset)
{
	struct copy c = copy_new(size, wset);

	measure_copy("memcpy", &c, by_memcpy);
	copy_free(&c);
}

static void probe_vm(size_t size, size_t wset)
{
	struct copy c = copy_new(size, wset);

	c.pid = start(sleep_with_memory, &c);
	wait_ready(c.pid);
	memset(c.own, 1, c.wset); /* not shared with the child any more */
	measure_copy("vm_write", &c, by_vm_write);
	measure_copy("vm_read", &c, by_vm_read);
	stop(c.pid);
	copy_free(&c);
}

/* ---- UDP ---- */

struct udp {
	size_t bytes; /* a datagram's payload */
	bool offload;
	unsigned window; /* sends that may be unread */
};

static void enter_netns(void)
{
	int fd;

	if (!opt.netns)
		return;
	fd = open(opt.netns, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die(opt.netns);
	close(fd);
}

static int udp_socket(int side)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)(PORT + side)) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), one = 1;
	int size = 8 << 20;

	if (fd < 0)
		die("socket");
	inet_pton(AF_INET, opt.addr[side], &a.sin_addr);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)))
		die("bind");
	return fd;
}

static void udp_connect(int fd, int side)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)(PORT + side)) };

	inet_pton(AF_INET, opt.addr[side], &a.sin_addr);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)))
		die("connect");
}

static void receive_all(void *arg)
{
	const struct udp *u = arg;
	static uint8_t buf[1 << 16];
	int fd, one = 1;

	enter_netns();
	fd = udp_socket(1);
	if (u->offload)
		setsockopt(fd, SOL_UDP, OPT_UDP_GRO, &one, sizeof(one));
	atomic_store(&sh->ready, true);
	for (;;) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		if (n > 0)
			atomic_fetch_add_explicit(&sh->received, (uint64_t)n,
						  memory_order_release);
	}
}

/* Waits until all but `most` of the bytes sent were received; what is not seen
 * for 20 ms is taken for lost. Returns the bytes that were lost. */
static uint64_t wait_window(uint64_t sent, uint64_t lost, uint64_t most)
{
	int64_t since_ns = 0;
	uint64_t before = 0;

	for (;;) {
		uint64_t got = atomic_load_explicit(&sh->received,
						    memory_order_acquire);

		if (sent - lost - got <= most)
			return 0;
		if (got != before || !since_ns) {
			before = got;
			since_ns = now_ns();
		} else if (now_ns() - since_ns > 20000000) {
			return sent - lost - got;
		}
	}
}

static double send_for_a_while(int fd, const struct udp *u)
{
	static uint8_t buf[DATAGRAM_MAX];
	size_t one = u->bytes, batch = one;
	uint64_t sent = 0, lost = 0, got;
	int64_t begin_ns, ns;
	int segment = (int)u->bytes;

	if (u->offload) {
		size_t n = DATAGRAM_MAX / one;

		batch = one * (n > SEGMENTS_MAX ? SEGMENTS_MAX : n);
		if (setsockopt(fd, SOL_UDP, OPT_UDP_SEGMENT, &segment,
			       sizeof(segment)))
			return -1;
	}
	begin_ns = now_ns();
	do {
		ssize_t n = send(fd, buf, batch, 0);

		if (n > 0)
			sent += (uint64_t)n;
		else if (errno != EAGAIN && errno != ENOBUFS)
			return -1;
		lost += wait_window(sent, lost, (uint64_t)u->window * 60000);
		ns = now_ns() - begin_ns;
	} while (ns < opt.time_ns / 4);
	lost += wait_window(sent, lost, 0);
	ns = now_ns() - begin_ns;
	got = atomic_load(&sh->received);
	return (double)got * 8 / (double)ns;
}

static double udp_once(const struct udp *u)
{
	pid_t pid = start(receive_all, (void *)u);
	double gbps;
	int fd;

	wait_ready(pid);
	fd = udp_socket(0);
	udp_connect(fd, 1);
	gbps = send_for_a_while(fd, u);
	stop(pid);
	close(fd);
	return gbps;
}

/* The best of a few windows: too small a one lets the receiver starve, too
 * large a one leaves the caches. */
static void probe_udp(size_t bytes, bool offload)
{
	struct udp u = { .bytes = bytes, .offload = offload };
	static const unsigned windows[] = { 1, 2, 4, 8 };
	double best = -1;
	unsigned at = 0;

	for (unsigned i = 0; i < 4; i++) {
		double gbps;

		u.window = windows[i];
		gbps = udp_once(&u);
		if (gbps > best) {
			best = gbps;
			at = windows[i];
		}
	}
	if (best < 0)
		printf("{\"what\":\"udp\",\"size\":%zu,\"offload\":%d,"
		       "\"error\":\"send failed\"}\n",
		       bytes, offload);
	else
		printf("{\"what\":\"udp\",\"size\":%zu,\"offload\":%d,"
		       "\"gbps\":%.3f,\"window\":%u}\n",
		       bytes, offload, best, at);
}

/* ---- there and back ---- */

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Prints the median of half the round trips. */
static void print_trips(const char *what, size_t size, uint32_t *ns, unsigned n,
			unsigned trips)
{
	if (!n) {
		printf("{\"what\":\"%s\",\"size\":%zu,\"error\":\"no "
		       "answer\"}\n",
		       what, size);
		return;
	}
	qsort(ns, n, sizeof(*ns), by_value);
	printf("{\"what\":\"%s\",\"size\":%zu,\"us\":%.4f,\"us_99\":%.4f}\n",
	       what, size, ns[n / 2] / 2e3 / trips,
	       ns[n - 1 - n / 100] / 2e3 / trips);
}

static void echo(void *arg)
{
	const struct udp *u = arg;
	static uint8_t buf[1 << 16];
	int fd;

	enter_netns();
	fd = udp_socket(1);
	udp_connect(fd, 0);
	atomic_store(&sh->ready, true);
	for (;;)
		if (recv(fd, buf, sizeof(buf), 0) > 0)
			(void)!send(fd, buf, u->bytes, 0);
}

static bool udp_trip(int fd, uint8_t *buf, size_t bytes)
{
	int64_t begin_ns = now_ns();

	if (send(fd, buf, bytes, 0) < 0)
		return false;
	while (recv(fd, buf, DATAGRAM_MAX, 0) <= 0)
		if (now_ns() - begin_ns > GIVE_UP_NS)
			return false;
	return true;
}

static void probe_pingpong(size_t bytes)
{
	struct udp u = { .bytes = bytes };
	static uint8_t buf[DATAGRAM_MAX];
	static uint32_t ns[SAMPLES];
	unsigned n = 0;
	int64_t end_ns;
	pid_t pid = start(echo, &u);
	int fd;

	wait_ready(pid);
	fd = udp_socket(0);
	udp_connect(fd, 1);
	for (int i = 0; i < 100; i++)
		udp_trip(fd, buf, bytes);
	end_ns = now_ns() + opt.time_ns;
	while (n < SAMPLES && now_ns() < end_ns) {
		int64_t t = now_ns();

		if (!udp_trip(fd, buf, bytes))
			break;
		ns[n++] = (uint32_t)(now_ns() - t);
	}
	stop(pid);
	close(fd);
	print_trips("udp_pingpong", bytes, ns, n, 1);
}

static void bounce(void *arg)
{
	uint32_t n = 0;

	(void)arg;
	atomic_store(&sh->ready, true);
	for (;;) {
		while (atomic_load_explicit(&sh->ball, memory_order_acquire) !=
		       n + 1)
			;
		n += 2;
		atomic_store_explicit(&sh->ball, n, memory_order_release);
	}
}

static void probe_line(void)
{
	enum { TRIPS = 50 };
	static uint32_t ns[SAMPLES];
	pid_t pid = start(bounce, NULL);
	int64_t end_ns;
	unsigned n = 0;
	uint32_t v = 0;

	wait_ready(pid);
	end_ns = now_ns() + opt.time_ns;
	while (n < SAMPLES && now_ns() < end_ns) {
		int64_t t = now_ns();

		for (int i = 0; i < TRIPS; i++) {
			atomic_store_explicit(&sh->ball, v + 1,
					      memory_order_release);
			v += 2;
			while (atomic_load_explicit(&sh->ball,
						    memory_order_acquire) != v)
				;
		}
		ns[n++] = (uint32_t)(now_ns() - t);
	}
	stop(pid);
	print_trips("cache_line", 64, ns, n, TRIPS);
}

/* ---- the command line ---- */

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "c:t:a:b:N:")) != -1) {
		if (c == 'c' &&
		    sscanf(optarg, "%d,%d", &opt.cpu[0], &opt.cpu[1]) == 2)
			continue;
		if (c == 't')
			opt.time_ns = atoi(optarg) * 1000000ll;
		else if (c == 'a')
			opt.addr[0] = optarg;
		else if (c == 'b')
			opt.addr[1] = optarg;
		else if (c == 'N')
			opt.netns = optarg;
		else
			exit(2);
	}
}

static bool run(const char *what)
{
	size_t a = 0, b = 0;

	if (sscanf(what, "memcpy:%zu:%zu", &a, &b) == 2 && a)
		probe_memcpy(a, b);
	else if (sscanf(what, "vm:%zu:%zu", &a, &b) == 2 && a)
		probe_vm(a, b);
	else if (sscanf(what, "udp:%zu:%zu", &a, &b) == 2 && a &&
		 a <= DATAGRAM_MAX)
		probe_udp(a, b != 0);
	else if (sscanf(what, "pingpong:%zu", &a) == 1 && a &&
		 a <= DATAGRAM_MAX)
		probe_pingpong(a);
	else if (strcmp(what, "line") == 0)
		probe_line();
	else
		return false;
	fflush(stdout);
	return true;
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	sh = map(sizeof(*sh), MAP_SHARED);
	pin(1);
	for (int i = optind; i < argc; i++)
		if (!run(argv[i])) {
			fprintf(stderr, "probe: %s?\n", argv[i]);
			return 2;
		}
	return optind == argc ? 2 : 0;
}
