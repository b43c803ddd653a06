/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * stats_test.c - the JSON line, read back by a real parser.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "rt/stats.h"

struct source {
	struct stats_source s;
	uint64_t tx_pkts;
};

static void fill(struct stats_source *s, struct stats_counters *ret)
{
	struct source *src = CONTAINER_OF(s, struct source, s);

	assert_true(ret->hca.rx_pkts == 0);
	ret->hca.tx_pkts = src->tx_pkts;
	ret->hca.flushed_wrs = 3;
	ret->link.tx_frames = 2 * src->tx_pkts;
	ret->link.rx_overflow = 1;
	ret->rt.visits_post = 1ull << 60;
	ret->rt.capture_lost = 5;
}

static struct source source(const char *name, uint64_t tx_pkts)
{
	return (struct source){ .s = { .name = name, .fill = fill },
				.tx_pkts = tx_pkts };
}

static json_t *line_json(void)
{
	char *line = stats_line();
	json_error_t err;
	json_t *j;

	assert_non_null(line);
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
	j = json_loads(line, 0, &err);
	if (!j)
		fail_msg("%s: %s", err.text, line);
	free(line);
	return j;
}

static json_int_t counter(json_t *j, int dev, const char *group,
			  const char *name)
{
	json_t *d = json_array_get(json_object_get(j, "devices"), (size_t)dev);
	json_t *v = json_object_get(json_object_get(d, group), name);

	assert_true(json_is_integer(v));
	return json_integer_value(v);
}

static const char *dev_name(json_t *j, int dev)
{
	json_t *d = json_array_get(json_object_get(j, "devices"), (size_t)dev);

	return json_string_value(json_object_get(d, "name"));
}

static void test_line(void **state)
{
	struct source a = source("shca0", 10), b = source("shca1", 20);
	json_t *j;

	(void)state;
	assert_int_equal(prctl(PR_SET_NAME, "we\"ird\\\t"), 0);
	stats_add(&a.s);
	stats_add(&b.s);
	j = line_json();
	assert_int_equal(json_integer_value(json_object_get(j, "pid")),
			 getpid());
	assert_string_equal(json_string_value(json_object_get(j, "comm")),
			    "we\"ird\\\t");
	assert_int_equal(json_array_size(json_object_get(j, "devices")), 2);
	for (int i = 0; i < 2; i++) {
		bool is_a = strcmp(dev_name(j, i), "shca0") == 0;

		assert_int_equal(counter(j, i, "hca", "tx_pkts"),
				 is_a ? 10 : 20);
		assert_int_equal(counter(j, i, "hca", "flushed_wrs"), 3);
		assert_int_equal(counter(j, i, "hca", "rx_pkts"), 0);
		assert_int_equal(counter(j, i, "link", "tx_frames"),
				 is_a ? 20 : 40);
		assert_int_equal(counter(j, i, "link", "rx_overflow"), 1);
		assert_true(counter(j, i, "rt", "visits_post") ==
			    (json_int_t)(1ull << 60));
		assert_int_equal(counter(j, i, "rt", "capture_lost"), 5);
	}
	json_decref(j);
	stats_remove(&a.s);
	stats_remove(&b.s);
}

/* Closed devices stay in the sum; opened again they add up. */
static void test_closed(void **state)
{
	struct source a = source("shca0", 10), b = source("shca0", 7);
	json_t *j;

	(void)state;
	stats_add(&a.s);
	a.tx_pkts = 11;
	stats_remove(&a.s);
	a.tx_pkts = 1000; /* no longer asked */
	stats_add(&b.s);
	j = line_json();
	assert_int_equal(json_array_size(json_object_get(j, "devices")), 1);
	assert_int_equal(counter(j, 0, "hca", "tx_pkts"), 18);
	json_decref(j);
	stats_remove(&b.s);
	j = line_json();
	assert_int_equal(counter(j, 0, "hca", "tx_pkts"), 18);
	json_decref(j);
}

static void test_many_names(void **state)
{
	struct source s[80];
	char names[80][16];
	json_int_t sum = 0;
	json_t *j;

	(void)state;
	for (int i = 0; i < 80; i++) {
		snprintf(names[i], sizeof(names[i]), "shca%d", i);
		s[i] = source(names[i], 1);
		stats_add(&s[i].s);
	}
	for (int i = 0; i < 80; i++)
		stats_remove(&s[i].s);
	j = line_json();
	assert_int_equal(json_array_size(json_object_get(j, "devices")), 64);
	assert_string_equal(dev_name(j, 63), "other");
	for (int i = 0; i < 64; i++)
		sum += counter(j, i, "hca", "tx_pkts");
	assert_int_equal(sum, 80);
	json_decref(j);
}

static int lines_in(const char *path)
{
	FILE *f = fopen(path, "r");
	int n = 0, c;

	assert_non_null(f);
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static void test_write(void **state)
{
	char path[] = "/tmp/stats_test.XXXXXX";
	int fd = mkstemp(path);
	struct source a = source("shca0", 10);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(stats_write(path), 0);
	assert_int_equal(lines_in(path), 0); /* nothing was opened */
	stats_add(&a.s);
	assert_int_equal(stats_write(path), 0);
	assert_int_equal(lines_in(path), 1);
	assert_int_equal(stats_write(path), 0);
	assert_int_equal(lines_in(path), 1); /* once a process */
	stats_forget();
	assert_int_equal(stats_write(path), 0);
	assert_int_equal(lines_in(path), 1);
	stats_add(&a.s);
	assert_int_equal(stats_write(path), 0);
	assert_int_equal(lines_in(path), 2);
	stats_forget();
	stats_add(&a.s);
	assert_int_equal(stats_write("/nonexistent/x"), -ENOENT);
	stats_forget();
	stats_add(&a.s);
	assert_int_equal(stats_write("/dev/full"), -ENOSPC);
	unlink(path);
}

static int forget(void **state)
{
	(void)state;
	stats_forget();
	return 0;
}

#define FRESH(fn) cmocka_unit_test_setup(fn, forget)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FRESH(test_line),
		FRESH(test_closed),
		FRESH(test_many_names),
		FRESH(test_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
