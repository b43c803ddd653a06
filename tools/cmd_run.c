/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cmd_run.c - `softhca run`: sets the environment so that the loader takes our
 * libraries, and becomes the program.
 */
#include "tools/cmd.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/hca.h"
#include "fabric/fault.h"

enum {
	OPT_STATS = 256,
	OPT_CAPTURE,
	OPT_NO_OFFLOAD,
	OPT_NO_ONE_SIDED,
	OPT_LINK,
	OPT_ICRC,
	OPT_RCVBUF,
	OPT_UMEM,
	OPT_SEED,
	OPT_CC,
	OPT_FAULT,
	OPT_NO_PRELOAD,
};

#define FAULT_TEXT_MAX 2048 /* SOFTHCA_FAULT holds as much */

struct run_args {
	char **program; /* NULL-terminated */
	const char *stats, *capture;
	char fault[FAULT_TEXT_MAX]; /* all --fault options so far */
	bool no_preload;
};

static const struct argp_option options[] = {
	{ "verbose", 'v', NULL, 0, "Say on stderr what happens and why", 0 },
	{ "stats", OPT_STATS, "FILE", 0,
	  "Write each process's counters to FILE at its exit, one line of JSON",
	  0 },
	{ "capture", OPT_CAPTURE, "FILE", 0,
	  "Write the packets to FILE, for Wireshark", 0 },
	{ "no-offload", OPT_NO_OFFLOAD, NULL, 0,
	  "Send and receive single packets, so that tcpdump sees real ones",
	  0 },
	{ "link", OPT_LINK, "ring|udp", 0,
	  "How to reach processes of this host: shared memory (default) or UDP",
	  0 },
	{ "no-one-sided", OPT_NO_ONE_SIDED, NULL, 0,
	  "Send RDMA WRITE and READ to processes of this host as packets, too",
	  0 },
	{ "icrc", OPT_ICRC, "relaxed|strict", 0,
	  "Accept ICRCs that differ by what a socket hides (default), or none",
	  0 },
	{ "rcvbuf", OPT_RCVBUF, "BYTES|stock", 0,
	  "Receive buffer of each socket; stock: the system's default", 0 },
	{ "umem", OPT_UMEM, "fixup|kernel", 0,
	  "Reach registered memory with a fault handler (default) or through "
	  "the kernel",
	  0 },
	{ "seed", OPT_SEED, "NUMBER", 0,
	  "Make PSNs, QPNs and keys the same in each run", 0 },
	{ "fault", OPT_FAULT, "PLAN", 0,
	  "Drop, double, delay, damage or mark packets, as drop=1%,seed=7; "
	  "several make one plan",
	  0 },
	{ "cc", OPT_CC, "none|PRESET[,NAME=VALUE...]", 0,
	  "Congestion control: DCQCN as connectx (default) or paper has it, "
	  "or none",
	  0 },
	{ "no-preload", OPT_NO_PRELOAD, NULL, 0,
	  "Do not preload the library that shows /dev/infiniband and "
	  "/sys/class/infiniband to the program",
	  0 },
	{ 0 },
};

static void set(const char *name, const char *value)
{
	if (setenv(name, value, 1)) {
		complain("out of memory");
		exit(EXIT_OURS);
	}
}

/* A number in [0, max], else a usage error. */
static void check_number(struct argp_state *state, const char *option,
			 const char *arg, unsigned long long max)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(arg, &end, 0);
	if (errno || end == arg || *end || arg[0] == '-' || v > max)
		argp_error(state, "--%s: '%s' is no number up to %llu", option,
			   arg, max);
}

static void check_cc(struct argp_state *state, const char *arg)
{
	struct dcqcn_params params;
	const char *why;
	size_t at;

	if (strcmp(arg, "none") == 0)
		return;
	why = dcqcn_parse(arg, &params, &at);
	if (why)
		argp_error(state, "--cc: '%s': at character %zu: %s", arg,
			   at + 1, why);
}

static void check_word(struct argp_state *state, const char *option,
		       const char *arg, const char *a, const char *b)
{
	if (strcmp(arg, a) != 0 && strcmp(arg, b) != 0)
		argp_error(state, "--%s: '%s' is neither %s nor %s", option,
			   arg, a, b);
}

/* Puts one more rule list to the plan; a usage error when it is none. */
static void add_fault(struct argp_state *state, struct run_args *a,
		      const char *arg)
{
	static struct fault_plan plan; /* large */
	struct fault_error err;
	size_t used = strlen(a->fault);
	int n;

	n = snprintf(a->fault + used, sizeof(a->fault) - used, "%s%s",
		     used ? ";" : "", arg);
	if (n < 0 || (size_t)n >= sizeof(a->fault) - used)
		argp_error(state, "--fault: more than %d characters",
			   FAULT_TEXT_MAX - 1);
	if (fault_parse(&plan, a->fault, &err))
		argp_error(state, "--fault: '%.*s' at character %u of '%s': %s",
			   (int)err.len, a->fault + err.at, err.at + 1,
			   a->fault, err.why);
	set("SOFTHCA_FAULT", a->fault);
}

static error_t parse_valued(int key, char *arg, struct argp_state *state)
{
	struct run_args *a = state->input;

	switch (key) {
	case OPT_STATS:
		a->stats = arg;
		return 0;
	case OPT_CAPTURE:
		a->capture = arg;
		return 0;
	case OPT_LINK:
		check_word(state, "link", arg, "ring", "udp");
		set("SOFTHCA_LINK", arg);
		return 0;
	case OPT_ICRC:
		check_word(state, "icrc", arg, "relaxed", "strict");
		set("SOFTHCA_ICRC", arg);
		return 0;
	case OPT_RCVBUF:
		if (strcmp(arg, "stock") != 0)
			check_number(state, "rcvbuf", arg, INT_MAX);
		set("SOFTHCA_RCVBUF", arg);
		return 0;
	case OPT_UMEM:
		check_word(state, "umem", arg, "fixup", "kernel");
		set("SOFTHCA_UMEM", arg);
		return 0;
	case OPT_FAULT:
		add_fault(state, a, arg);
		return 0;
	case OPT_CC:
		check_cc(state, arg);
		set("SOFTHCA_CC", arg);
		return 0;
	case OPT_SEED:
		check_number(state, "seed", arg, ULLONG_MAX);
		set("SOFTHCA_SEED", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct run_args *a = state->input;

	switch (key) {
	case 'v':
		set("SOFTHCA_VERBOSE", "1");
		return 0;
	case OPT_NO_ONE_SIDED:
		set("SOFTHCA_ONE_SIDED", "0");
		return 0;
	case OPT_NO_OFFLOAD:
		set("SOFTHCA_OFFLOAD", "0");
		return 0;
	case OPT_NO_PRELOAD:
		a->no_preload = true;
		return 0;
	case ARGP_KEY_ARG: /* the program: all that follows is its own */
		a->program = &state->argv[state->next - 1];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which PROGRAM?");
		return EINVAL;
	default:
		return parse_valued(key, arg, state);
	}
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "PROGRAM [ARG...]",
	.doc = "Runs PROGRAM with softhca in place of RDMA hardware."
	       "\vThe exit status is PROGRAM's; 125: softhca failed, 126: "
	       "PROGRAM cannot be run, 127: it was not found.",
};

/* ---- files ---- */

/* Absolute: the program may change its directory. */
static int absolute(const char *path, char ret[CMD_PATH_MAX])
{
	char cwd[CMD_PATH_MAX];
	int n;

	if (path[0] == '/')
		n = snprintf(ret, CMD_PATH_MAX, "%s", path);
	else if (!getcwd(cwd, sizeof(cwd)))
		return -errno;
	else
		n = snprintf(ret, CMD_PATH_MAX, "%s/%s", cwd, path);
	return n >= CMD_PATH_MAX ? -ENAMETOOLONG : 0;
}

/* Empties the file that processes will append to, writes its head, and names
 * it to them. */
static int start_file(const char *path, const char *variable, const void *head,
		      size_t head_len)
{
	char abs[CMD_PATH_MAX];
	int fd, rc;

	rc = absolute(path, abs);
	if (rc)
		goto err;
	fd = open(abs, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0) {
		rc = -errno;
		goto err;
	}
	if (head_len && write(fd, head, head_len) != (ssize_t)head_len)
		rc = errno ? -errno : -EIO;
	if (close(fd) && !rc)
		rc = -errno;
	if (rc)
		goto err;
	set(variable, abs);
	return 0;
err:
	complain("%s: %s", path, strerror(-rc));
	return rc;
}

/* pcap: microseconds, this machine's byte order. */
static int start_capture(const char *path)
{
	static const struct {
		unsigned int magic;
		unsigned short major, minor;
		unsigned int zone, sigfigs, snaplen, linktype;
	} head = { 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1 /* Ethernet */ };

	_Static_assert(sizeof(head) == 24, "pcap file header");
	return start_file(path, "SOFTHCA_CAPTURE", &head, sizeof(head));
}

/* ---- the loader's environment ---- */

/* value in front of what the variable has. */
static void prepend(const char *variable, const char *value)
{
	const char *old = getenv(variable);
	char *both;

	if (!old || !*old) {
		set(variable, value);
		return;
	}
	if (asprintf(&both, "%s:%s", value, old) < 0) {
		complain("out of memory");
		exit(EXIT_OURS);
	}
	set(variable, both);
	free(both);
}

static int set_libraries(const struct run_args *a)
{
	char dir[CMD_PATH_MAX], lib[CMD_PATH_MAX + 32], tree[CMD_PATH_MAX];
	char first[CMD_PATH_MAX];

	if (lib_dir_find(dir))
		return -1;
	if (strpbrk(dir, ":; ")) {
		complain("%s: the dynamic loader cannot be told of a directory "
			 "with ':', ';' or ' ' in its name",
			 dir);
		return -1;
	}
	prepend("LD_LIBRARY_PATH", dir);
	if (a->no_preload)
		return 0;
	/* Without it programs that look there see no devices; verbs do. */
	if (!sys_tree_make(tree))
		set("SOFTHCA_SYSFS", tree);
	snprintf(lib, sizeof(lib), "%s/libsofthca_path.so", dir);
	prepend("LD_PRELOAD", lib);
	if (sanitizer_runtime(a->program[0], first)) {
		remark("%s goes in front of what is preloaded", first);
		prepend("LD_PRELOAD", first);
	}
	return 0;
}

int cmd_run(int argc, char **argv)
{
	struct run_args a = { 0 };
	int err;

	argp_err_exit_status = EXIT_OURS;
	argv[0] = (char *)"softhca run";
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &a);
	if ((a.stats && start_file(a.stats, "SOFTHCA_STATS", NULL, 0)) ||
	    (a.capture && start_capture(a.capture)) || set_libraries(&a))
		return EXIT_OURS;
	execvp(a.program[0], a.program);
	err = errno;
	complain("%s: %s", a.program[0], strerror(err));
	return err == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}
