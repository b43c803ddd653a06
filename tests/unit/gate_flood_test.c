/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * gate_flood_test.c - memory is deregistered, unmapped and used for something
 * else in a loop while other processes copy into it as fast as they can; they
 * are killed and stopped meanwhile. No byte may land after gate_wait().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "link/gate.h"
#include "link/gate_area.h"

#define COPIERS 2
#define LEN (512u << 10)
#define STOPS 24   /* copiers stopped, and as many killed */
#define QUIET 0x11 /* what the memory holds in its next life */
#define HINT ((void *)0x200000000000)

/* What a copier and the test share. */
struct talk {
	_Alignas(64) _Atomic uint32_t key; /* 0: nothing to do */
	_Atomic bool once;		   /* one copy, then stop asking */
	_Atomic uint64_t verdicts[GATE_GONE + 1];
};

struct copier {
	pid_t pid;
	int fd, pidfd;
	struct gate_area *area;
	struct talk *talk;
};

static struct {
	int fd;
	struct gate_area *area;
	struct gate_table *table;
	struct copier copiers[COPIERS];
	uint8_t *mem;
	uint32_t key;
} w;

static const struct gid addr = { .raw = { 1 } };

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void nap_us(long us)
{
	struct timespec ts = { .tv_nsec = us * 1000 };

	nanosleep(&ts, NULL);
}

/* ---- a copier ---- */

static void copy_for_ever(unsigned i)
{
	struct copier *c = &w.copiers[i];
	struct talk *t = c->talk;
	const struct gate_area *area = gate_map(w.fd, 0);
	uint8_t *src = malloc(LEN);
	struct gate_peer p;

	if (!area || !src || gate_peer_init(&p, area, getppid()))
		_exit(1);
	memset(src, 0xe0 + (int)i, LEN);
	for (uint32_t off = 0;; off = (off + GATE_PIECE_BYTES) % LEN) {
		struct iovec iov = { src, GATE_PIECE_BYTES };
		struct gate_request r = {
			.access = GATE_WRITE,
			.qpn = 200 + i,
			.peer_qpn = 100 + i,
			.own = addr,
			.peer = addr,
			.rkey = atomic_load(&t->key),
			.remote_addr = (uintptr_t)w.mem,
			.len_bytes = LEN,
			.off = off,
			.n = GATE_PIECE_BYTES,
			.local = &iov,
			.num_local = 1,
		};

		if (!r.rkey) {
			sched_yield();
			continue;
		}
		if (atomic_load(&t->once))
			atomic_store(&t->key, 0);
		atomic_fetch_add(&t->verdicts[gate_copy(c->area, 0, &p, &r)],
				 1);
	}
}

static void start(unsigned i)
{
	struct copier *c = &w.copiers[i];
	pid_t parent = getpid();

	memset(c->talk, 0, sizeof(*c->talk));
	memset((void *)c->area->announcements, 0,
	       sizeof(c->area->announcements));
	c->pid = fork();
	assert_true(c->pid >= 0);
	if (c->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			copy_for_ever(i);
		_exit(0);
	}
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	assert_true(c->pidfd >= 0);
}

static void end(unsigned i)
{
	struct copier *c = &w.copiers[i];

	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	close(c->pidfd);
	gate_forget(w.table, c->area);
}

/* ---- the owner ---- */

static struct gate_area *new_area(int *ret_fd)
{
	void *p;

	*ret_fd = memfd_create("gates", MFD_CLOEXEC);
	assert_true(*ret_fd >= 0 && ftruncate(*ret_fd, GATE_AREA_BYTES) == 0);
	p = mmap(NULL, GATE_AREA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		 *ret_fd, 0);
	assert_true(p != MAP_FAILED);
	return p;
}

static uint8_t *map_memory(void)
{
	void *p = mmap(HINT, LEN, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	assert_true(p == HINT);
	return p;
}

static int setup(void **state)
{
	(void)state;
	w.area = new_area(&w.fd);
	w.table = gate_table_new(w.area, 0xabcd);
	assert_non_null(w.table);
	assert_int_equal(gate_vouch(w.table), 0);
	w.mem = map_memory();
	w.key = 0x100;
	for (unsigned i = 0; i < COPIERS; i++) {
		struct gate_qp_attr a = { .qpn = 100 + i,
					  .pd = 1,
					  .access = GATE_WRITE,
					  .peer_qpn = 200 + i,
					  .own = addr,
					  .peer = addr };

		gate_qp_open(w.table, &a);
		w.copiers[i].area = new_area(&w.copiers[i].fd);
		w.copiers[i].talk =
			mmap(NULL, sizeof(struct talk), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		assert_true(w.copiers[i].talk != MAP_FAILED);
		start(i);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (unsigned i = 0; i < COPIERS; i++) {
		end(i);
		munmap(w.copiers[i].area, GATE_AREA_BYTES);
		munmap(w.copiers[i].talk, sizeof(struct talk));
		close(w.copiers[i].fd);
	}
	(void)pthread_mutex_unlock(&w.area->owner.mutex);
	gate_table_free(w.table);
	munmap(w.area, GATE_AREA_BYTES);
	munmap(w.mem, LEN);
	close(w.fd);
	return 0;
}

static bool gone(const struct gate_watch *watch)
{
	struct pollfd p = { .fd = watch->pidfd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void open_mr(void)
{
	struct gate_mr_attr a = { .pd = 1,
				  .access = GATE_WRITE,
				  .va = (uintptr_t)w.mem,
				  .iova = (uintptr_t)w.mem,
				  .len_bytes = LEN };

	a.key = w.key += 0x101;
	assert_int_equal(gate_mr_open(w.table, &a), 0);
	for (unsigned i = 0; i < COPIERS; i++)
		atomic_store(&w.copiers[i].talk->key, w.key);
}

static void wait_closed(struct gate_closed c)
{
	struct gate_watch watches[COPIERS];

	for (unsigned i = 0; i < COPIERS; i++)
		watches[i] = (struct gate_watch){
			.area = w.copiers[i].area,
			.pid = w.copiers[i].pid,
			.gone = gone,
			.pidfd = w.copiers[i].pidfd,
		};
	gate_wait(w.table, c, watches, COPIERS);
}

static uint64_t count(unsigned i, enum gate_verdict v)
{
	return atomic_load(&w.copiers[i].talk->verdicts[v]);
}

/* Until copier i has had n more of this verdict; bounded. */
static bool had(unsigned i, enum gate_verdict v, uint64_t more)
{
	uint64_t want = count(i, v) + more;
	int64_t end_ns = now_ns() + 5000000000;

	while (count(i, v) < want && now_ns() < end_ns)
		nap_us(50);
	return count(i, v) >= want;
}

/* The memory gets its next life: the same pages, or others. */
static void reuse(bool unmap)
{
	if (unmap)
		w.mem = map_memory();
	memset(w.mem, QUIET, LEN);
}

static unsigned late_bytes(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < LEN; i++)
		n += w.mem[i] != QUIET;
	return n;
}

static void need_copies(void)
{
	open_mr();
	if (!had(0, GATE_DONE, 1)) {
		assert_true(count(0, GATE_REFUSED) > 0);
		print_message("process_vm_writev is refused here\n");
		skip();
	}
	wait_closed(gate_mr_close(w.table, w.key));
}

/* ---- tests ---- */

/* One life of the memory, ended under fire. Returns bytes that landed late. */
static unsigned life(unsigned k, bool wait)
{
	struct gate_closed c;
	unsigned late;

	open_mr();
	assert_true(had(k % COPIERS, GATE_DONE, 1));
	nap_us(rand() % 50);
	c = gate_mr_close(w.table, w.key);
	if (wait)
		wait_closed(c);
	reuse(k & 1);
	late = late_bytes() + late_bytes();
	if (!wait)
		wait_closed(c);
	return late;
}

static void flood(void **state)
{
	int64_t end_ns = now_ns() + 1000000000;
	struct gate_counters n;
	unsigned k = 0;

	(void)state;
	need_copies();
	for (; k < 3000 && now_ns() < end_ns; k++)
		assert_int_equal(life(k, true), 0);
	gate_counters(w.table, &n);
	print_message("%u lives, %llu met a copy under way\n", k,
		      (unsigned long long)n.waits);
	assert_true(n.expired == 0);
}

/* The same without the wait: were no byte ever late, the test above would show
 * nothing. */
static void flood_without_wait(void **state)
{
	int64_t end_ns = now_ns() + 10000000000;
	unsigned k = 0, late = 0;

	(void)state;
	need_copies();
	for (; !late && now_ns() < end_ns; k++)
		late = life(k, false);
	print_message("%u lives until %u bytes were late\n", k, late);
	assert_true(late > 0);
}

/* A QP's gate is closed and its memory stays registered. */
static void qp_leaves(void **state)
{
	struct gate_qp_attr a = { .qpn = 100,
				  .pd = 1,
				  .access = GATE_WRITE,
				  .peer_qpn = 200,
				  .own = addr,
				  .peer = addr };

	(void)state;
	need_copies();
	open_mr();
	atomic_store(&w.copiers[1].talk->key, 0);
	wait_closed(gate_qp_close(w.table, 101));
	for (unsigned k = 0; k < 100; k++) {
		assert_true(had(0, GATE_DONE, 1));
		wait_closed(gate_qp_close(w.table, 100));
		memset(w.mem, QUIET, LEN);
		assert_int_equal(late_bytes(), 0);
		gate_qp_open(w.table, &a);
	}
}

static void killed(void **state)
{
	(void)state;
	need_copies();
	for (unsigned k = 0; k < STOPS; k++) {
		unsigned i = k % COPIERS;
		struct gate_closed c;
		int64_t begin_ns;

		open_mr();
		assert_true(had(i, GATE_DONE, 1));
		nap_us(rand() % 50);
		kill(w.copiers[i].pid, SIGKILL);
		begin_ns = now_ns();
		c = gate_mr_close(w.table, w.key);
		wait_closed(c);
		assert_true(now_ns() - begin_ns < 2000000000);
		reuse(k & 2);
		assert_int_equal(late_bytes() + late_bytes(), 0);
		end(i);
		start(i);
	}
}

static bool stop_word_clears(void)
{
	int64_t end_ns = now_ns() + 5000000000;

	while (atomic_load(&w.table->stopped) && now_ns() < end_ns) {
		gate_settle(w.table);
		nap_us(100);
	}
	return !atomic_load(&w.table->stopped) &&
	       atomic_load(&w.area->stop.len) == 0;
}

/* Stopped anywhere, mostly with the announcement standing: nobody waits for
 * it, and what it does when it goes on comes to nothing. */
static void stopped(void **state)
{
	struct gate_counters n;
	int64_t longest_ns = 0;

	(void)state;
	need_copies();
	for (unsigned k = 0; k < STOPS; k++) {
		unsigned i = k % COPIERS;
		int64_t begin_ns, took_ns;

		open_mr();
		assert_true(had(i, GATE_DONE, 1));
		nap_us(rand() % 50);
		kill(w.copiers[i].pid, SIGSTOP);
		begin_ns = now_ns();
		wait_closed(gate_mr_close(w.table, w.key));
		took_ns = now_ns() - begin_ns;
		longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
		reuse(k & 2);
		assert_int_equal(late_bytes(), 0);
		kill(w.copiers[i].pid, SIGCONT);
		assert_int_equal(late_bytes(), 0);
		assert_true(had(i, GATE_NO_MR, 1));
		assert_true(stop_word_clears());
		assert_int_equal(late_bytes(), 0);
	}
	gate_counters(w.table, &n);
	print_message("%llu of %d overruled, longest wait %lld us\n",
		      (unsigned long long)n.overruled, STOPS,
		      (long long)longest_ns / 1000);
	assert_true(n.overruled > 0 && n.expired == 0);
	assert_true(longest_ns < 5000000000);
}

/* Stopped by a tracer at the very entry of the system call: it has announced,
 * looked twice, and would copy when it goes on. */
static void stopped_before_the_call(void **state)
{
	struct copier *c = &w.copiers[0];
	struct gate_counters n;
	int status;

	(void)state;
	need_copies();
	atomic_store(&c->talk->key, 0);
	if (ptrace(PTRACE_ATTACH, c->pid, 0, 0)) {
		print_message("ptrace is refused here\n");
		skip();
	}
	assert_true(waitpid(c->pid, &status, 0) == c->pid);
	open_mr();
	atomic_store(&w.copiers[1].talk->key, 0);
	atomic_store(&c->talk->once, true);
	do { /* until the entry of its copy */
		assert_int_equal(ptrace(PTRACE_SYSCALL, c->pid, 0, 0), 0);
		assert_true(waitpid(c->pid, &status, 0) == c->pid);
		assert_true(WIFSTOPPED(status));
	} while (atomic_load(&c->area->announcements[0].word) == 0);
	wait_closed(gate_mr_close(w.table, w.key));
	gate_counters(w.table, &n);
	assert_int_equal(n.overruled, 1);
	reuse(false);
	ptrace(PTRACE_DETACH, c->pid, 0, 0);
	assert_true(had(0, GATE_SHUT, 1) || count(0, GATE_SHUT) > 0);
	assert_int_equal(late_bytes(), 0);
	assert_true(stop_word_clears());
}

/* An announcement that a corrupt process leaves standing is given up. */
static void stands_for_ever(void **state)
{
	struct gate_announcement *a = &w.copiers[0].area->announcements[1];
	struct gate_counters n;
	struct gate_closed c;
	int64_t begin_ns;

	(void)state;
	need_copies();
	w.table->expire_ns = 100000000;
	open_mr();
	for (unsigned i = 0; i < COPIERS; i++)
		atomic_store(&w.copiers[i].talk->key, 0);
	c = gate_mr_close(w.table, w.key);
	atomic_store(&a->word, gate_announce(0xabcd, c.index, 100));
	begin_ns = now_ns();
	wait_closed(c);
	assert_true(now_ns() - begin_ns >= 100000000);
	gate_counters(w.table, &n);
	assert_int_equal(n.expired, 1);
	gate_settle(w.table);
	assert_true(atomic_load(&w.table->stopped));
	atomic_store(&a->word, 0);
	assert_true(stop_word_clears());
	/* And what a peer that is no more left behind. */
	open_mr();
	c = gate_mr_close(w.table, w.key);
	atomic_store(&a->word, gate_announce(0xabcd, c.index, 100));
	wait_closed(c);
	assert_true(atomic_load(&w.table->stopped));
	gate_forget(w.table, w.copiers[0].area);
	assert_false(atomic_load(&w.table->stopped));
	atomic_store(&a->word, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(flood),	    T(flood_without_wait),
		T(qp_leaves),	    T(killed),
		T(stopped),	    T(stopped_before_the_call),
		T(stands_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
