/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * config.c - one table of keys, three sources.
 */
#include "rt/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt/rawsys.h"
#include "rt/rt.h"

/* In-flight bounds for the stock receive buffer of 212,992 bytes. What was read
 * and acknowledged may still be charged: UDP gives room back in steps of a
 * quarter of the buffer while more is queued. So three quarters are usable,
 * and some of that is for the ACKs of what the receiver sends itself. The two
 * bounds do not share: who is written to at full speed while it READs at full
 * speed, and stalls, may lose (docs/adr/0005). */
#define STOCK_RCVBUF 212992
#define ACK_ROOM (20 * 832)
#define DEST_BUDGET_DEFAULT 140000
#define READ_BUDGET_DEFAULT 104000
_Static_assert(DEST_BUDGET_DEFAULT + ACK_ROOM <= STOCK_RCVBUF / 4 * 3,
	       "requests fit");
_Static_assert(READ_BUDGET_DEFAULT + ACK_ROOM <= STOCK_RCVBUF / 4 * 3,
	       "READ responses fit");
/* An empty poll that asks the sockets takes about a microsecond, a yield that
 * finds nobody else about half of that. More polls first only help a peer that
 * answers within them on another core. On one CPU, ibv_rc_pingpong took
 * 4,090 us a round at 2,000, 418 at 100, 220 at 20, 124 at 5. */
#define EMPTY_POLLS_DEFAULT 16
#define CONFIG_FILE_MAX 16384

enum value_kind {
	VALUE_BOOL,   /* bool */
	VALUE_TEXT,   /* char[size] */
	VALUE_NUMBER, /* uint32_t, min..max, and one word for a number */
	VALUE_U64,    /* uint64_t; the bool before it says that it is given */
	VALUE_CHOICE, /* enum (int size): word 0 or word 1 */
};

struct key {
	const char *name; /* as in the environment, without SOFTHCA_ */
	enum value_kind kind;
	size_t offset, size;
	uint32_t min, max;
	const char *words[2]; /* CHOICE; NUMBER: [0] stands for 0 */
	const char *accepts;  /* for the message */
};

#define FIELD(f)                                                               \
	offsetof(struct rt_config, f), sizeof(((struct rt_config *)0)->f)

static const struct key keys[] = {
	{ "VERBOSE", VALUE_BOOL, FIELD(verbose), 0, 0, { 0 }, "0 or 1" },
	{ "STATS", VALUE_TEXT, FIELD(stats_path), 0, 0, { 0 }, "a file name" },
	{ "CAPTURE",
	  VALUE_TEXT,
	  FIELD(capture_path),
	  0,
	  0,
	  { 0 },
	  "a file name" },
	{ "LINK",
	  VALUE_CHOICE,
	  FIELD(link),
	  0,
	  0,
	  { "ring", "udp" },
	  "ring or udp" },
	{ "ONE_SIDED", VALUE_BOOL, FIELD(one_sided), 0, 0, { 0 }, "0 or 1" },
	{ "OFFLOAD", VALUE_BOOL, FIELD(offload), 0, 0, { 0 }, "0 or 1" },
	{ "ICRC",
	  VALUE_BOOL,
	  FIELD(icrc_strict),
	  0,
	  0,
	  { "relaxed", "strict" },
	  "strict or relaxed" },
	{ "RCVBUF",
	  VALUE_NUMBER,
	  FIELD(rcvbuf_bytes),
	  4096,
	  INT_MAX,
	  { "stock" },
	  "stock or 4096..2147483647 bytes" },
	{ "UMEM",
	  VALUE_CHOICE,
	  FIELD(umem),
	  0,
	  0,
	  { "fixup", "kernel" },
	  "fixup or kernel" },
	{ "SEED",
	  VALUE_U64,
	  FIELD(seed),
	  0,
	  0,
	  { 0 },
	  "a number of 64 bits (0x... for hexadecimal)" },
	{ "SEND_SOCKETS",
	  VALUE_NUMBER,
	  FIELD(send_sockets),
	  1,
	  64,
	  { 0 },
	  "1..64" },
	{ "DEST_BUDGET",
	  VALUE_NUMBER,
	  FIELD(dest_budget_bytes),
	  8192,
	  INT_MAX,
	  { "unbounded" },
	  "unbounded or 8192..2147483647 bytes" },
	{ "READ_BUDGET",
	  VALUE_NUMBER,
	  FIELD(read_budget_bytes),
	  8192,
	  INT_MAX,
	  { "unbounded" },
	  "unbounded or 8192..2147483647 bytes" },
	{ "EMPTY_POLLS",
	  VALUE_NUMBER,
	  FIELD(empty_polls),
	  1,
	  INT_MAX,
	  { "never" },
	  "never or 1..2147483647" },
	{ "FAULT",
	  VALUE_TEXT,
	  FIELD(fault),
	  0,
	  0,
	  { 0 },
	  "a fault plan of at most 2047 characters" },
	{ "CC",
	  VALUE_TEXT,
	  FIELD(cc),
	  0,
	  0,
	  { 0 },
	  "none, or parameters of DCQCN of at most 511 characters" },
	{ "DEVICES",
	  VALUE_TEXT,
	  FIELD(devices),
	  0,
	  0,
	  { 0 },
	  "interface names, comma separated, \"!\" before a list to leave "
	  "out" },
};

/* Where values come from, for messages, and where messages go. */
struct source {
	void (*say)(const char *text);
	const char *file; /* NULL: the environment */
	int line;
};

__attribute__((format(printf, 2, 3))) static void source_say(
	const struct source *s, const char *fmt, ...)
{
	char text[768];
	size_t at = 0;
	va_list ap;

	if (s->file)
		at = (size_t)snprintf(text, sizeof(text),
				      "%.256s:%d: ", s->file, s->line);
	va_start(ap, fmt);
	vsnprintf(text + at, sizeof(text) - at, fmt, ap);
	va_end(ap);
	s->say(text);
}

/* ---- values ---- */

static bool parse_bool(const struct key *k, const char *v, bool *ret)
{
	static const char *const words[2][4] = {
		{ "0", "no", "off", "false" },
		{ "1", "yes", "on", "true" },
	};

	for (int b = 0; b < 2; b++) {
		if (k->words[b]) { /* words of its own */
			if (strcmp(v, k->words[b]) == 0)
				return *ret = b, true;
			continue;
		}
		for (size_t i = 0; i < ARRAY_SIZE(words[b]); i++)
			if (strcasecmp(v, words[b][i]) == 0)
				return *ret = b, true;
	}
	return false;
}

static bool parse_u64(const char *v, uint64_t *ret)
{
	char *end;
	unsigned long long n;
	int saved_errno = errno;
	bool ok;

	if (!isdigit((unsigned char)*v))
		return false;
	errno = 0;
	n = strtoull(v, &end, 0);
	ok = errno == 0 && *end == '\0';
	errno = saved_errno;
	if (ok)
		*ret = n;
	return ok;
}

static bool parse_number(const struct key *k, const char *v, uint32_t *ret)
{
	uint64_t n;

	if (k->words[0] && strcmp(v, k->words[0]) == 0) {
		*ret = 0;
		return true;
	}
	if (!parse_u64(v, &n) || n < k->min || n > k->max)
		return false;
	*ret = (uint32_t)n;
	return true;
}

static bool parse_choice(const struct key *k, const char *v, int *ret)
{
	for (int i = 0; i < 2; i++)
		if (strcmp(v, k->words[i]) == 0)
			return *ret = i, true;
	return false;
}

static bool set_value(struct rt_config *c, const struct key *k, const char *v)
{
	void *field = (char *)c + k->offset;

	switch (k->kind) {
	case VALUE_BOOL:
		return parse_bool(k, v, field);
	case VALUE_NUMBER:
		return parse_number(k, v, field);
	case VALUE_CHOICE:
		return parse_choice(k, v, field);
	case VALUE_U64:
		if (!parse_u64(v, field))
			return false;
		c->has_seed = true;
		return true;
	case VALUE_TEXT:
		if (strlen(v) >= k->size)
			return false;
		memcpy(field, v, strlen(v) + 1);
		return true;
	}
	return false;
}

static void take_value(struct rt_config *c, const struct source *s,
		       const struct key *k, const char *v)
{
	if (set_value(c, k, v))
		return;
	if (s->file)
		source_say(s,
			   "\"%.128s\" is no value of this key: %s;"
			   " it keeps the value it had",
			   v, k->accepts);
	else
		source_say(s,
			   "SOFTHCA_%s=%.128s is not understood: %s;"
			   " it keeps the value it had",
			   k->name, v, k->accepts);
}

/* ---- the file ---- */

static char *trim(char *s)
{
	size_t n;

	while (isspace((unsigned char)*s))
		s++;
	n = strlen(s);
	while (n > 0 && isspace((unsigned char)s[n - 1]))
		s[--n] = '\0';
	return s;
}

static void take_line(struct rt_config *c, const struct source *s, char *line)
{
	char *comment = strchr(line, '#');
	char *value, *name;

	if (comment)
		*comment = '\0';
	name = trim(line);
	if (*name == '\0')
		return;
	value = strchr(name, '=');
	if (!value) {
		source_say(s, "not a \"key = value\" line");
		return;
	}
	*value++ = '\0';
	name = trim(name);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (strcasecmp(name, keys[i].name) == 0) {
			take_value(c, s, &keys[i], trim(value));
			return;
		}
	}
	source_say(s, "unknown key \"%.64s\"", name);
}

/* The whole file in a malloc'ed string. 0, -errno. */
static int read_file(const char *path, char **ret_text)
{
	long fd = RAWSYS4(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	size_t fill = 0;
	char *text;
	long n;

	if (fd < 0)
		return (int)fd;
	text = malloc(CONFIG_FILE_MAX + 1);
	do {
		n = text ? RAWSYS3(SYS_read, fd, text + fill,
				   CONFIG_FILE_MAX - fill)
			 : -ENOMEM;
		fill += n > 0 ? (size_t)n : 0;
	} while (n > 0 && fill < CONFIG_FILE_MAX);
	(void)RAWSYS1(SYS_close, fd);
	if (fill == CONFIG_FILE_MAX)
		n = -EFBIG;
	if (n < 0) {
		free(text);
		return (int)n;
	}
	text[fill] = '\0';
	*ret_text = text;
	return 0;
}

/* False: there is no such file, try the next. */
static bool take_file(struct rt_config *c, void (*say)(const char *text),
		      const char *path, bool must_exist)
{
	struct source s = { .say = say, .file = path };
	char *text = NULL, *line, *rest;
	int r = read_file(path, &text);

	if (r != 0) {
		if (r == -ENOENT && !must_exist)
			return false;
		/* -EACCES of somebody else's home is not worth a line. */
		if (must_exist || (r != -ENOTDIR && r != -EACCES))
			source_say(&s, "cannot read the configuration: %s",
				   strerrordesc_np(-r));
		return true;
	}
	rest = text;
	while ((line = strsep(&rest, "\n")) != NULL) {
		s.line++;
		take_line(c, &s, line);
	}
	free(text);
	return true;
}

static void take_files(struct rt_config *c,
		       const char *(*getenv_fn)(const char *name),
		       void (*say)(const char *text))
{
	const char *own = getenv_fn("SOFTHCA_CONFIG");
	const char *xdg = getenv_fn("XDG_CONFIG_HOME");
	const char *home = getenv_fn("HOME");
	char path[RT_CONFIG_PATH_MAX];

	if (own && *own) {
		(void)take_file(c, say, own, true);
		return;
	}
	if (xdg && *xdg) {
		snprintf(path, sizeof(path), "%s/softhca.conf", xdg);
		if (take_file(c, say, path, false))
			return;
	}
	if (home && *home) {
		snprintf(path, sizeof(path), "%s/.config/softhca.conf", home);
		if (take_file(c, say, path, false))
			return;
	}
	(void)take_file(c, say, "/etc/softhca.conf", false);
}

/* ---- all of it ---- */

void config_load(struct rt_config *ret,
		 const char *(*getenv_fn)(const char *name),
		 void (*say)(const char *text))
{
	struct source s = { .say = say };
	char name[64];
	const char *v;

	*ret = (struct rt_config){
		.one_sided = true,
		.offload = true,
		.umem = UMEM_FIXUP,
		.send_sockets = 8,
		.dest_budget_bytes = DEST_BUDGET_DEFAULT,
		.read_budget_bytes = READ_BUDGET_DEFAULT,
		.empty_polls = EMPTY_POLLS_DEFAULT,
		.cc = "connectx",
	};
	take_files(ret, getenv_fn, say);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		snprintf(name, sizeof(name), "SOFTHCA_%s", keys[i].name);
		v = getenv_fn(name);
		if (v)
			take_value(ret, &s, &keys[i], v);
	}
}

static struct rt_config process_config;

static const char *env_get(const char *name)
{
	/* A set-user-ID program writes no files for its caller. */
	return secure_getenv(name);
}

static void say_config(const char *text)
{
	rt_say(false, "%s", text);
}

static void load_once(void)
{
	config_load(&process_config, env_get, say_config);
}

const struct rt_config *rt_config(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_once);
	return &process_config;
}

bool config_allows(const struct rt_config *c, const char *ifname)
{
	const char *list = c->devices;
	bool leave_out = *list == '!';
	size_t want = strlen(ifname);

	if (*list == '\0')
		return true;
	if (leave_out)
		list++;
	while (*list) {
		size_t n = strcspn(list, ",");
		size_t skip = strspn(list, " !");

		/* "!a,!b" means the same as "!a,b". */
		if (skip <= n && n - skip == want &&
		    memcmp(list + skip, ifname, want) == 0)
			return !leave_out;
		list += n;
		if (*list == ',')
			list++;
	}
	return leave_out;
}
