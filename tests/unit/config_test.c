/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * config_test.c - defaults < file < environment, and what is said about bad
 * values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "rt/config.h"

static const char *const *env; /* name, value, name, value, NULL */
static char said[8][1024];
static int said_n;

static const char *fake_getenv(const char *name)
{
	for (const char *const *e = env; e && *e; e += 2)
		if (strcmp(e[0], name) == 0)
			return e[1];
	return NULL;
}

static void fake_say(const char *text)
{
	assert_true(said_n < 8);
	assert_null(strchr(text, '\n'));
	snprintf(said[said_n++], sizeof(said[0]), "%s", text);
}

/* An empty file keeps the machine's own configuration out. */
static struct rt_config load(const char *const *pairs)
{
	struct rt_config c;

	env = pairs;
	said_n = 0;
	config_load(&c, fake_getenv, fake_say);
	return c;
}

#define LOAD(...) load((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })
#define NO_FILE "SOFTHCA_CONFIG", "/dev/null"

static void test_defaults(void **state)
{
	struct rt_config c = LOAD(NO_FILE);

	(void)state;
	assert_int_equal(said_n, 0);
	assert_false(c.verbose);
	assert_string_equal(c.stats_path, "");
	assert_string_equal(c.capture_path, "");
	assert_true(c.offload);
	assert_true(c.one_sided);
	assert_false(c.icrc_strict);
	assert_int_equal(c.rcvbuf_bytes, 0);
	assert_int_equal(c.umem, UMEM_FIXUP);
	assert_false(c.has_seed);
	assert_int_equal(c.send_sockets, 8);
	assert_int_equal(c.dest_budget_bytes, 140000);
	assert_int_equal(c.read_budget_bytes, 104000);
	assert_int_equal(c.empty_polls, 16);
	assert_true(config_allows(&c, "eth0"));
}

static void test_environment(void **state)
{
	struct rt_config c =
		LOAD(NO_FILE, "SOFTHCA_VERBOSE", "1", "SOFTHCA_STATS", "/a b",
		     "SOFTHCA_CAPTURE", "c.pcap", "SOFTHCA_OFFLOAD", "0",
		     "SOFTHCA_ONE_SIDED", "0", "SOFTHCA_ICRC", "strict",
		     "SOFTHCA_RCVBUF", "65536", "SOFTHCA_UMEM", "kernel",
		     "SOFTHCA_SEED", "0xffffffffffffffff",
		     "SOFTHCA_SEND_SOCKETS", "64", "SOFTHCA_DEST_BUDGET",
		     "unbounded", "SOFTHCA_READ_BUDGET", "8192",
		     "SOFTHCA_EMPTY_POLLS", "never", "SOFTHCA_DEVICES", "lo");

	(void)state;
	assert_int_equal(said_n, 0);
	assert_true(c.verbose);
	assert_string_equal(c.stats_path, "/a b");
	assert_string_equal(c.capture_path, "c.pcap");
	assert_false(c.offload);
	assert_false(c.one_sided);
	assert_true(c.icrc_strict);
	assert_int_equal(c.rcvbuf_bytes, 65536);
	assert_int_equal(c.umem, UMEM_KERNEL);
	assert_true(c.has_seed);
	assert_true(c.seed == UINT64_MAX);
	assert_int_equal(c.send_sockets, 64);
	assert_int_equal(c.dest_budget_bytes, 0);
	assert_int_equal(c.read_budget_bytes, 8192);
	assert_int_equal(c.empty_polls, 0);
	assert_string_equal(c.devices, "lo");
}

/* One bad value, the default stays, one line names variable and choices. */
static void test_bad_values(void **state)
{
	static const char *const bad[][3] = {
		{ "SOFTHCA_VERBOSE", "maybe", "0 or 1" },
		{ "SOFTHCA_OFFLOAD", "", "0 or 1" },
		{ "SOFTHCA_ICRC", "1", "strict or relaxed" },
		{ "SOFTHCA_RCVBUF", "100", "4096..2147483647" },
		{ "SOFTHCA_RCVBUF", "99999999999", "stock" },
		{ "SOFTHCA_UMEM", "both", "fixup or kernel" },
		{ "SOFTHCA_SEED", "-1", "64 bits" },
		{ "SOFTHCA_SEED", "18446744073709551616", "64 bits" },
		{ "SOFTHCA_SEED", "12z", "64 bits" },
		{ "SOFTHCA_SEND_SOCKETS", "0", "1..64" },
		{ "SOFTHCA_SEND_SOCKETS", "65", "1..64" },
		{ "SOFTHCA_EMPTY_POLLS", "0", "never" },
		{ "SOFTHCA_DEST_BUDGET", "12 ", "unbounded" },
	};
	struct rt_config want = LOAD(NO_FILE);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct rt_config c = LOAD(NO_FILE, bad[i][0], bad[i][1]);

		assert_int_equal(said_n, 1);
		assert_non_null(strstr(said[0], bad[i][0]));
		assert_non_null(strstr(said[0], bad[i][2]));
		assert_memory_equal(&c, &want, sizeof(c));
	}
}

static void test_too_long(void **state)
{
	char name[RT_CONFIG_PATH_MAX + 1];
	struct rt_config c;

	(void)state;
	memset(name, 'a', sizeof(name));
	name[RT_CONFIG_PATH_MAX - 1] = '\0';
	c = LOAD(NO_FILE, "SOFTHCA_STATS", name);
	assert_int_equal(said_n, 0);
	assert_string_equal(c.stats_path, name);
	name[RT_CONFIG_PATH_MAX - 1] = 'a';
	name[RT_CONFIG_PATH_MAX] = '\0';
	c = LOAD(NO_FILE, "SOFTHCA_STATS", name);
	assert_int_equal(said_n, 1);
	assert_string_equal(c.stats_path, "");
}

/* ---- files ---- */

static char dir[64];

static const char *put_file(const char *name, const char *text)
{
	static char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return path;
}

static void test_file(void **state)
{
	const char *path = put_file("own.conf", "# a comment\n"
						"\n"
						"  verbose = yes # another\n"
						"SEED=7\n"
						"send_sockets = 3\r\n"
						"stats = /tmp/with space\n"
						"empty_polls = 9");
	struct rt_config c =
		LOAD("SOFTHCA_CONFIG", path, "SOFTHCA_SEND_SOCKETS", "5");

	(void)state;
	assert_int_equal(said_n, 0);
	assert_true(c.verbose);
	assert_true(c.has_seed && c.seed == 7);
	assert_int_equal(c.send_sockets, 5); /* the environment wins */
	assert_string_equal(c.stats_path, "/tmp/with space");
	assert_int_equal(c.empty_polls, 9);
}

static void test_file_errors(void **state)
{
	const char *path = put_file("bad.conf", "verbose = 1\n"
						"colour = blue\n"
						"just words\n"
						"seed = many\n"
						"icrc = strict\n");
	struct rt_config c = LOAD("SOFTHCA_CONFIG", path);

	(void)state;
	assert_int_equal(said_n, 3);
	assert_non_null(strstr(said[0], "bad.conf:2: "));
	assert_non_null(strstr(said[0], "colour"));
	assert_non_null(strstr(said[1], "bad.conf:3: "));
	assert_non_null(strstr(said[2], "bad.conf:4: "));
	assert_non_null(strstr(said[2], "64 bits"));
	assert_true(c.verbose);
	assert_true(c.icrc_strict);
	assert_false(c.has_seed);
	/* A file that was named must be there. */
	c = LOAD("SOFTHCA_CONFIG", "/nonexistent/softhca.conf");
	assert_int_equal(said_n, 1);
	assert_non_null(strstr(said[0], "/nonexistent/softhca.conf"));
	assert_false(c.verbose);
	c = LOAD("SOFTHCA_CONFIG", dir); /* not a file */
	assert_int_equal(said_n, 1);
}

static void test_file_search(void **state)
{
	char sub[128];
	struct rt_config c;

	(void)state;
	put_file("softhca.conf", "send_sockets = 11\n");
	snprintf(sub, sizeof(sub), "%s/.config", dir);
	assert_int_equal(mkdir(sub, 0700), 0);
	put_file(".config/softhca.conf", "send_sockets = 12\n");
	c = LOAD("XDG_CONFIG_HOME", dir, "HOME", dir);
	assert_int_equal(c.send_sockets, 11);
	c = LOAD("XDG_CONFIG_HOME", "", "HOME", dir);
	assert_int_equal(c.send_sockets, 12);
	c = LOAD("XDG_CONFIG_HOME", "/nonexistent", "HOME", dir);
	assert_int_equal(c.send_sockets, 12);
	c = LOAD(NO_FILE, "XDG_CONFIG_HOME", dir, "HOME", dir);
	assert_int_equal(c.send_sockets, 8);
	assert_int_equal(said_n, 0);
}

static void test_allows(void **state)
{
	struct rt_config c = LOAD(NO_FILE, "SOFTHCA_DEVICES", "eth0, lo");

	(void)state;
	assert_true(config_allows(&c, "eth0"));
	assert_true(config_allows(&c, "lo"));
	assert_false(config_allows(&c, "eth"));
	assert_false(config_allows(&c, "eth01"));
	assert_false(config_allows(&c, ""));
	c = LOAD(NO_FILE, "SOFTHCA_DEVICES", "!docker0,!virbr0,eth9");
	assert_false(config_allows(&c, "docker0"));
	assert_false(config_allows(&c, "virbr0"));
	assert_false(config_allows(&c, "eth9"));
	assert_true(config_allows(&c, "eth0"));
}

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/config_test.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	static const char *const names[] = {
		"own.conf", "bad.conf", "softhca.conf", ".config/softhca.conf",
		".config",  ""
	};
	char path[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		if (remove(path) != 0)
			return -1;
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_file_errors),
		cmocka_unit_test(test_file_search),
		cmocka_unit_test(test_allows),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
