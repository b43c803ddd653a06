/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * target.c - one-sided work into a process that does something else, and what
 * that costs it; and what QPs cost that do nothing. What perftest's programs do
 * not show. A plain verbs program (tests/e2e/pairlib.h has the options).
 *
 *   -m OP:HOW   the client keeps 16 WRITEs or READs (OP: write, read) of -s
 *               bytes under way for -t seconds, over -n KiB of memory at each
 *               end. The server meanwhile (HOW) polls its CQ (poll), sleeps
 *               in recv() (sleep) or computes (compute). Afterwards whoever
 *               was written to compares all bytes.
 *   -m idle     connects -q QPs, does one WRITE on each, and waits to be ended
 *
 * Each side prints one line of JSON.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "pairlib.h"

#define DEPTH 16
#define WARM_UP_NS 50000000

static uint8_t *mem;
static size_t mem_bytes;
static struct ibv_mr *mr;

/* ---- what it costs ---- */

struct usage {
	int64_t wall_ns, own_ns, all_ns; /* own: of the calling thread */
	long own_switches, all_switches;
};

static int64_t clock_of(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

static long switches_of(int who)
{
	struct rusage r;

	getrusage(who, &r);
	return r.ru_nvcsw + r.ru_nivcsw;
}

static struct usage usage_now(void)
{
	return (struct usage){
		.wall_ns = clock_of(CLOCK_MONOTONIC),
		.own_ns = clock_of(CLOCK_THREAD_CPUTIME_ID),
		.all_ns = clock_of(CLOCK_PROCESS_CPUTIME_ID),
		.own_switches = switches_of(RUSAGE_THREAD),
		.all_switches = switches_of(RUSAGE_SELF),
	};
}

/* Ends the line that the caller began. */
static void print_usage(const struct usage *a, const struct usage *b)
{
	int64_t own_ns = b->own_ns - a->own_ns;
	int64_t other_ns = b->all_ns - a->all_ns - own_ns;
	long own_switches = b->own_switches - a->own_switches;

	printf("\"wall_ms\":%.3f,\"own_cpu_ms\":%.3f,\"other_cpu_ms\":%.3f,"
	       "\"own_switches\":%ld,\"other_switches\":%ld}\n",
	       (double)(b->wall_ns - a->wall_ns) / 1e6, (double)own_ns / 1e6,
	       (double)(other_ns > 0 ? other_ns : 0) / 1e6, own_switches,
	       b->all_switches - a->all_switches - own_switches);
}

/* ---- data ---- */

static uint8_t pattern(size_t i)
{
	return (uint8_t)((i * 2654435761u) >> 11);
}

static void fill(void)
{
	for (size_t i = 0; i < mem_bytes; i++)
		mem[i] = pattern(i);
}

static void compare(void)
{
	for (size_t i = 0; i < mem_bytes; i++)
		if (mem[i] != pattern(i))
			pl_die("byte %zu is wrong", i);
}

/* ---- the client ---- */

static size_t next_off(const struct pl *p, size_t off)
{
	off += p->size;
	return off + p->size > mem_bytes ? 0 : off;
}

/* Keeps DEPTH under way until `ns` are over and all memory was passed, or for
 * ever. Returns how many were done. */
static uint64_t keep_busy(struct pl *p, enum ibv_wr_opcode op, int64_t ns,
			  bool all)
{
	uint64_t posted = 0, done = 0, least = all ? mem_bytes / p->size : 0;
	int64_t end_ns = pl_now_ns() + ns;
	bool over = false;
	size_t off = 0;

	while (!over || done < posted) {
		struct ibv_wc wc[DEPTH];
		int n;

		while (!over && posted < done + DEPTH) {
			pl_post(p, 0, op, mr, mem + off, p->size,
				p->raddr + off);
			off = next_off(p, off);
			posted++;
		}
		n = ibv_poll_cq(p->cq, DEPTH, wc);
		PL_CHECK(n >= 0);
		for (int i = 0; i < n; i++)
			PL_CHECK(wc[i].status == IBV_WC_SUCCESS);
		done += (uint64_t)n;
		if (n)
			over = posted >= least && pl_now_ns() >= end_ns;
	}
	return done;
}

static void ask(struct pl *p, enum ibv_wr_opcode op)
{
	struct usage a, b;
	uint64_t n;

	keep_busy(p, op, WARM_UP_NS, true);
	pl_sync(p);
	a = usage_now();
	n = keep_busy(p, op, p->seconds * 1000000000ll, false);
	b = usage_now();
	pl_tell(p, n);
	printf("{\"side\":\"client\",\"msgs\":%llu,\"gbps\":%.3f,",
	       (unsigned long long)n,
	       (double)(n * p->size) * 8 / (double)(b.wall_ns - a.wall_ns));
	print_usage(&a, &b);
}

/* ---- the server ---- */

static bool told(struct pl *p, int flags)
{
	char c;

	return recv(p->sock, &c, 1, MSG_PEEK | flags) >= 0;
}

static void behave(struct pl *p, const char *how)
{
	volatile uint64_t x = 88172645463325252ull;
	struct ibv_wc wc;

	if (strcmp(how, "sleep") == 0) {
		told(p, 0);
		return;
	}
	do {
		if (strcmp(how, "poll") == 0) {
			for (int i = 0; i < 10000; i++)
				PL_CHECK(ibv_poll_cq(p->cq, 1, &wc) == 0);
		} else {
			for (int i = 0; i < 1000000; i++)
				x = x * 6364136223846793005u + 1;
		}
	} while (!told(p, MSG_DONTWAIT));
}

static void serve(struct pl *p, const char *how)
{
	struct usage a, b;
	uint64_t n;

	pl_sync(p);
	a = usage_now();
	behave(p, how);
	b = usage_now();
	n = pl_hear(p);
	printf("{\"side\":\"server\",\"msgs\":%llu,", (unsigned long long)n);
	print_usage(&a, &b);
}

static void one_sided(struct pl *p, enum ibv_wr_opcode op, const char *how)
{
	bool source = p->client == (op == IBV_WR_RDMA_WRITE);

	if (source)
		fill();
	mr = pl_share(p, mem, mem_bytes);
	pl_connect(p, NULL);
	if (p->client)
		ask(p, op);
	else
		serve(p, how);
	pl_sync(p);
	if (!source)
		compare();
	PL_CHECK(ibv_dereg_mr(mr) == 0);
	pl_stop(p);
}

/* ---- idle QPs ---- */

static long resident_bytes(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	PL_CHECK(f);
	PL_CHECK(fscanf(f, "%*d %ld", &pages) == 1);
	fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

static void idle(struct pl *p)
{
	long before = resident_bytes();
	int64_t begin_ns;

	mr = pl_share(p, mem, mem_bytes);
	pl_sync(p);
	begin_ns = pl_now_ns();
	pl_connect(p, NULL);
	printf("{\"pid\":%d,\"qps\":%d,\"connect_s\":%.3f,", getpid(), p->qps,
	       (double)(pl_now_ns() - begin_ns) / 1e9);
	for (int i = 0; p->client && i < p->qps; i++) {
		pl_post(p, i, IBV_WR_RDMA_WRITE, mr, mem, p->size, p->raddr);
		pl_poll_n(p, 1);
	}
	printf("\"bytes_a_qp\":%ld}\n", (resident_bytes() - before) / p->qps);
	fflush(stdout);
	told(p, 0); /* the other side tells nothing: its end */
}

int main(int argc, char **argv)
{
	const char *how;
	struct pl p;

	pl_start(&p, argc, argv, 8192);
	mem_bytes = (size_t)p.n * 1024;
	if (mem_bytes < p.size)
		mem_bytes = p.size;
	mem_bytes -= mem_bytes % p.size;
	mem = aligned_alloc(4096, (mem_bytes + 4095) & ~(size_t)4095);
	PL_CHECK(mem);
	memset(mem, 0, mem_bytes);
	how = strchr(p.mode, ':');
	if (strcmp(p.mode, "idle") == 0)
		idle(&p);
	else if (how && strncmp(p.mode, "write", 5) == 0)
		one_sided(&p, IBV_WR_RDMA_WRITE, how + 1);
	else if (how && strncmp(p.mode, "read", 4) == 0)
		one_sided(&p, IBV_WR_RDMA_READ, how + 1);
	else
		pl_die("-m %s?", p.mode);
	free(mem);
	return 0;
}
