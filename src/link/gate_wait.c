/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * gate_wait.c - the owner waits for copies that are under way: a few
 * microseconds when the copier runs, until it gets a CPU when it does not, not
 * at all when it is stopped or dead (docs/adr/0007-same-host-gates.md).
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "link/gate.h"
#include "link/gate_area.h"

#define SPINS 2000
#define NAP_NS 50000
#define NAP_MAX_NS 2000000

static int64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#else
	__asm__ volatile("yield");
#endif
}

/* ---- what the threads of a process are doing, from /proc ---- */

enum doing {
	DOING_UNKNOWN,
	DOING_STOPPED, /* all of its threads are */
	DOING_COPYING, /* one is inside process_vm_readv or _writev */
};

/* The first bytes of a file of a thread; false: not to be read. */
static bool thread_file(pid_t pid, const char *tid, const char *name, char *buf,
			size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%.10s/%s", (int)pid, tid,
		 name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, buf, size - 1);
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* State T (stopped) or t (by a tracer). The name before it may hold anything
 * but ends at the last parenthesis. */
static bool thread_stopped(pid_t pid, const char *tid)
{
	char buf[128];
	const char *p;

	if (!thread_file(pid, tid, "stat", buf, sizeof(buf)))
		return false;
	p = strrchr(buf, ')');
	return p && p[1] == ' ' && (p[2] == 'T' || p[2] == 't');
}

static bool thread_copying(pid_t pid, const char *tid)
{
	char buf[32];
	long nr;

	if (!thread_file(pid, tid, "syscall", buf, sizeof(buf)))
		return false;
	nr = strtol(buf, NULL, 10); /* "running" gives 0 */
	return nr == SYS_process_vm_readv || nr == SYS_process_vm_writev;
}

static enum doing look_once(pid_t pid)
{
	enum doing d = DOING_STOPPED;
	struct dirent *e;
	unsigned n = 0;
	char path[32];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = pid > 0 ? opendir(path) : NULL;
	if (!dir)
		return DOING_UNKNOWN;
	while (d != DOING_COPYING && (e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		n++;
		if (thread_stopped(pid, e->d_name))
			continue;
		d = thread_copying(pid, e->d_name) ? DOING_COPYING
						   : DOING_UNKNOWN;
	}
	closedir(dir);
	return n ? d : DOING_UNKNOWN;
}

/* Twice: while a thread runs others may end, and the list skip one. */
static enum doing look(pid_t pid)
{
	enum doing d = look_once(pid);

	return d == DOING_STOPPED ? look_once(pid) : d;
}

/* ---- the stop word ---- */

static void set_stop(struct gate_table *t, bool on)
{
	atomic_store_explicit(&t->area->stop.len, on ? UINT64_MAX : 0,
			      memory_order_seq_cst);
	atomic_store_explicit(&t->stopped, on, memory_order_relaxed);
}

static uint64_t announced(const struct gate_overruled *o)
{
	return atomic_load_explicit(&o->area->announcements[o->slot].word,
				    memory_order_seq_cst);
}

/* Under the lock: drops records that do not stand any more, and those of
 * `gone`. */
static void sift(struct gate_table *t, const struct gate_area *gone)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->num_overruled; i++)
		if (t->overruled[i].area != gone &&
		    announced(&t->overruled[i]) == t->overruled[i].word)
			t->overruled[n++] = t->overruled[i];
	t->num_overruled = n;
	if (n == 0)
		set_stop(t, false);
}

void gate_settle(struct gate_table *t)
{
	if (!atomic_load_explicit(&t->stopped, memory_order_relaxed) ||
	    pthread_mutex_trylock(&t->lock))
		return;
	sift(t, NULL);
	pthread_mutex_unlock(&t->lock);
}

void gate_forget(struct gate_table *t, const struct gate_area *area)
{
	pthread_mutex_lock(&t->lock);
	if (t->num_overruled)
		sift(t, area);
	pthread_mutex_unlock(&t->lock);
}

/* ---- one announcement ---- */

struct wait {
	struct gate_table *t;
	const struct gate_watch *peer;
	struct gate_overruled who;
	int64_t begin_ns;
};

/* Refuses what may begin from now on; then asks whether nothing is under way.
 * True: no need to wait on. */
static bool overrule(struct wait *w, bool expired)
{
	struct gate_table *t = w->t;
	bool kept = t->num_overruled < GATE_OVERRULED_MAX;
	enum doing d;

	if (kept)
		t->overruled[t->num_overruled++] = w->who;
	set_stop(t, true);
	d = look(w->peer->pid);
	if (kept && d != DOING_STOPPED && (!expired || d == DOING_COPYING)) {
		t->num_overruled--;
		sift(t, NULL);
		return false;
	}
	if (!kept) /* cannot be: more announcements than peers have */
		return false;
	if (d == DOING_STOPPED)
		t->counters.overruled++;
	else
		t->counters.expired++;
	return true;
}

/* True: this announcement need not be waited for any longer. */
static bool pointless(struct wait *w)
{
	bool expired = clock_ns() - w->begin_ns > w->t->expire_ns;
	bool done;

	if (w->peer->gone && w->peer->gone(w->peer))
		return true;
	/* First without the stop word: it disturbs everybody. */
	if (!expired && look(w->peer->pid) != DOING_STOPPED)
		return false;
	pthread_mutex_lock(&w->t->lock);
	done = overrule(w, expired);
	pthread_mutex_unlock(&w->t->lock);
	return done;
}

static bool names(const struct gate_table *t, struct gate_closed c,
		  uint64_t word)
{
	uint32_t index =
		(uint32_t)(c.kind == GATE_MR ? word >> 16 : word) & 0xffffu;

	return word >> 32 == t->tag && index == c.index;
}

static void wait_for(struct wait *w)
{
	struct timespec nap = { .tv_nsec = NAP_NS };

	for (unsigned n = 0; announced(&w->who) == w->who.word; n++) {
		if (n < SPINS) {
			relax();
			continue;
		}
		nanosleep(&nap, NULL);
		if (nap.tv_nsec < NAP_MAX_NS)
			nap.tv_nsec *= 2;
		else if (pointless(w))
			return;
	}
}

void gate_wait(struct gate_table *t, struct gate_closed c,
	       const struct gate_watch *peers, unsigned n)
{
	if (c.kind == GATE_NONE)
		return;
	for (unsigned i = 0; i < n * GATE_ANNOUNCEMENTS; i++) {
		struct wait w = {
			.t = t,
			.peer = &peers[i / GATE_ANNOUNCEMENTS],
			.who = { .slot = i % GATE_ANNOUNCEMENTS },
		};

		w.who.area = w.peer->area;
		w.who.word = announced(&w.who);
		if (!names(t, c, w.who.word))
			continue;
		w.begin_ns = clock_ns();
		wait_for(&w);
		pthread_mutex_lock(&t->lock);
		t->counters.waits++;
		pthread_mutex_unlock(&t->lock);
	}
	if (c.kind != GATE_MR)
		return;
	pthread_mutex_lock(&t->lock);
	t->place[c.index] = GATE_PLACE_FREE;
	pthread_mutex_unlock(&t->lock);
}
