/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * stats.c - sums of closed devices, sources of open ones, and the JSON line.
 *
 * One lock for the lists; it is never held while the engine runs, only by
 * open, close and exit. Exit may come while another thread holds it (exit()
 * from a signal handler): after a bounded wait the line is written anyway.
 */
#include "rt/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rt/rawsys.h"

#define NAME_MAX_BYTES 64
#define CLOSED_MAX 64 /* names kept apart, "other" included */

struct sum {
	char name[NAME_MAX_BYTES];
	struct stats_counters n;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stats_source *sources;
static struct sum closed[CLOSED_MAX];
static int closed_n;
static bool any; /* a device was opened */
static bool written;

/* Every struct here is made of uint64_t alone. */
_Static_assert(sizeof(struct stats_counters) % sizeof(uint64_t) == 0,
	       "counters are 64 bits each");

static void counters_add(struct stats_counters *to,
			 const struct stats_counters *from)
{
	uint64_t *t = (uint64_t *)to;
	const uint64_t *f = (const uint64_t *)from;

	for (size_t i = 0; i < sizeof(*to) / sizeof(*t); i++)
		t[i] += f[i];
}

/* The entry of this name in a list of sums, a new one, or the last ("other")
 * when the list is full. */
static struct sum *sum_of(struct sum *list, int *n, const char *name)
{
	for (int i = 0; i < *n; i++)
		if (strcmp(list[i].name, name) == 0)
			return &list[i];
	if (*n == CLOSED_MAX)
		return &list[CLOSED_MAX - 1];
	if (*n == CLOSED_MAX - 1)
		name = "other";
	memset(&list[*n], 0, sizeof(*list));
	snprintf(list[*n].name, sizeof(list[*n].name), "%s", name);
	return &list[(*n)++];
}

static void sum_source(struct sum *list, int *n, struct stats_source *s)
{
	struct stats_counters now;

	memset(&now, 0, sizeof(now));
	s->fill(s, &now);
	counters_add(&sum_of(list, n, s->name)->n, &now);
}

void stats_add(struct stats_source *s)
{
	pthread_mutex_lock(&lock);
	s->next = sources;
	sources = s;
	any = true;
	pthread_mutex_unlock(&lock);
}

void stats_remove(struct stats_source *s)
{
	struct stats_source **at;

	pthread_mutex_lock(&lock);
	for (at = &sources; *at; at = &(*at)->next) {
		if (*at == s) {
			*at = s->next;
			sum_source(closed, &closed_n, s);
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}

void stats_forget(void)
{
	/* The parent's other threads may have held it. */
	pthread_mutex_init(&lock, NULL);
	sources = NULL;
	closed_n = 0;
	any = false;
	written = false;
}

/* ---- the line ---- */

struct text {
	char *p; /* malloc'ed, terminated */
	size_t len, room;
	bool failed; /* out of memory: nothing more is added */
};

static bool text_grow(struct text *t, size_t more)
{
	size_t room = t->room ? t->room : 4096;
	char *p;

	while (room - t->len <= more)
		room *= 2;
	if (room == t->room)
		return true;
	p = realloc(t->p, room);
	if (!p)
		return false;
	t->p = p;
	t->room = room;
	return true;
}

__attribute__((format(printf, 2, 3))) static void text_add(struct text *t,
							   const char *fmt, ...)
{
	char piece[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(piece, sizeof(piece), fmt, ap);
	va_end(ap);
	ASSERT(n >= 0 && (size_t)n < sizeof(piece));
	if (t->failed || !text_grow(t, (size_t)n)) {
		t->failed = true;
		return;
	}
	memcpy(t->p + t->len, piece, (size_t)n + 1);
	t->len += (size_t)n;
}

static void text_add_string(struct text *t, const char *s)
{
	text_add(t, "\"");
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			text_add(t, "\\%c", *s);
		else if ((unsigned char)*s < 0x20 || (unsigned char)*s > 0x7e)
			text_add(t, "\\u%04x", (unsigned char)*s);
		else
			text_add(t, "%c", *s);
	}
	text_add(t, "\"");
}

struct counter_name {
	const char *name;
	size_t offset; /* in struct stats_counters */
};

#define HCA_NAME(c) { #c, offsetof(struct stats_counters, hca.c) },
#define LINK_NAME(c) { #c, offsetof(struct stats_counters, link.c) },
#define RT_NAME(c) { #c, offsetof(struct stats_counters, rt.c) },
static const struct counter_name hca_names[] = { HCA_COUNTERS(HCA_NAME) };
static const struct counter_name link_names[] = { UDP_LINK_COUNTERS(
	LINK_NAME) };
static const struct counter_name rt_names[] = { RT_COUNTERS(RT_NAME) };

static void add_counters(struct text *t, const char *group,
			 const struct stats_counters *n,
			 const struct counter_name *names, size_t count)
{
	text_add(t, ",\"%s\":{", group);
	for (size_t i = 0; i < count; i++) {
		uint64_t v;

		memcpy(&v, (const char *)n + names[i].offset, sizeof(v));
		text_add(t, "%s\"%s\":%llu", i ? "," : "", names[i].name,
			 (unsigned long long)v);
	}
	text_add(t, "}");
}

static void add_device(struct text *t, const struct sum *s)
{
	text_add(t, "{\"name\":");
	text_add_string(t, s->name);
	add_counters(t, "hca", &s->n, hca_names, ARRAY_SIZE(hca_names));
	add_counters(t, "link", &s->n, link_names, ARRAY_SIZE(link_names));
	add_counters(t, "rt", &s->n, rt_names, ARRAY_SIZE(rt_names));
	text_add(t, "}");
}

static void add_head(struct text *t)
{
	char comm[32] = "";
	long fd = RAWSYS4(SYS_openat, AT_FDCWD, "/proc/self/comm",
			  O_RDONLY | O_CLOEXEC, 0);
	long n = 0;

	if (fd >= 0) {
		n = RAWSYS3(SYS_read, fd, comm, sizeof(comm) - 1);
		(void)RAWSYS1(SYS_close, fd);
	}
	comm[n > 0 ? n : 0] = '\0';
	comm[strcspn(comm, "\n")] = '\0';
	text_add(t, "{\"pid\":%ld,\"comm\":", RAWSYS0(SYS_getpid));
	text_add_string(t, comm);
	text_add(t, ",\"devices\":[");
}

/* [lock held, or the process is at its end] */
static char *line_locked(void)
{
	struct sum *all = malloc(sizeof(closed));
	struct text t = { 0 };
	int n = closed_n;

	if (!all)
		return NULL;
	memcpy(all, closed, sizeof(closed));
	for (struct stats_source *s = sources; s; s = s->next)
		sum_source(all, &n, s);
	add_head(&t);
	for (int i = 0; i < n; i++) {
		if (i)
			text_add(&t, ",");
		add_device(&t, &all[i]);
	}
	text_add(&t, "]}\n");
	free(all);
	if (!t.failed)
		return t.p;
	free(t.p);
	return NULL;
}

/* Waits 100 ms at most. True: held. */
static bool lock_for_exit(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 100 * 1000 * 1000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return pthread_mutex_timedlock(&lock, &until) == 0;
}

char *stats_line(void)
{
	bool held = lock_for_exit();
	char *line = line_locked();

	if (held)
		pthread_mutex_unlock(&lock);
	return line;
}

static int append_line(const char *path, const char *line)
{
	size_t len = strlen(line);
	long fd, n;

	fd = RAWSYS4(SYS_openat, AT_FDCWD, path,
		     O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return (int)fd;
	do
		n = RAWSYS3(SYS_write, fd, line, len);
	while (n == -EINTR);
	(void)RAWSYS1(SYS_close, fd);
	if (n < 0)
		return (int)n;
	return (size_t)n == len ? 0 : -ENOSPC;
}

int stats_write(const char *path)
{
	char *line;
	int r;

	if (!any || written)
		return 0;
	written = true;
	line = stats_line();
	if (!line)
		return -ENOMEM;
	r = append_line(path, line);
	free(line);
	return r;
}
