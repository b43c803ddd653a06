/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cmd_sim.c - `softhca sim`: a scenario file in virtual time. */
#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cmd.h"
#include "tools/sim_report.h"

enum { OPT_CSV = 256, OPT_JSON, OPT_PLOT, OPT_SEED };

#define STEPS 100 /* progress, and looks for an interruption */

struct sim_args {
	const char *file, *csv, *json, *plot;
	bool has_seed;
	uint64_t seed;
};

static const struct argp_option options[] = {
	{ "csv", OPT_CSV, "FILE", 0, "Write the samples to FILE", 0 },
	{ "json", OPT_JSON, "FILE", 0, "Write the results to FILE", 0 },
	{ "plot", OPT_PLOT, "FILE", 0,
	  "Draw the samples (SVG, or PNG by the name) with gnuplot", 0 },
	{ "seed", OPT_SEED, "NUMBER", 0, "Instead of the scenario's", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct sim_args *a = state->input;
	char *end;

	switch (key) {
	case OPT_CSV:
		a->csv = arg;
		return 0;
	case OPT_JSON:
		a->json = arg;
		return 0;
	case OPT_PLOT:
		a->plot = arg;
		return 0;
	case OPT_SEED:
		errno = 0;
		a->seed = strtoull(arg, &end, 0);
		if (errno || end == arg || *end)
			argp_error(state, "--seed: '%s' is no number", arg);
		a->has_seed = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->file)
			argp_error(state, "more than one scenario");
		a->file = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->file)
			argp_error(state, "no scenario");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void *take(void *ctx, size_t bytes, size_t align)
{
	size_t n = (bytes + align - 1) / align * align;
	void *p = aligned_alloc(align, n ? n : align);

	(void)ctx;
	return p ? memset(p, 0, n) : NULL;
}

static void give(void *ctx, void *p)
{
	(void)ctx;
	free(p);
}

static volatile sig_atomic_t stop;

static void on_int(int sig)
{
	(void)sig;
	stop = 1;
}

/* The first signal asks for what was done so far, a second one ends all. */
static void catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_int,
				.sa_flags = (int)SA_RESETHAND };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

/* To the scenario's end, or until somebody interrupts. */
static int64_t run_all(struct fabworld *fw, const struct scenario *s)
{
	bool tty = isatty(STDERR_FILENO);
	int64_t now = 0;

	for (int i = 1; i <= STEPS && !stop; i++) {
		now = i == STEPS ? s->duration_ns : s->duration_ns / STEPS * i;
		fabworld_run(fw, now);
		if (tty)
			fprintf(stderr, "\r%d %%", i);
	}
	if (tty)
		fputs("\r     \r", stderr);
	return now;
}

static int report(const struct sim_args *a, const struct scenario *s,
		  const struct fabworld *fw, struct sim_samples *m,
		  int64_t until_ns, const char *csv_path)
{
	int rc = 0;

	if (stop)
		printf("\ninterrupted: this is what was done\n");
	sim_report_text(stdout, s, fw, m, until_ns);
	if (a->json && sim_report_json(a->json, s, fw, m, until_ns)) {
		complain("%s: cannot be written", a->json);
		rc = EXIT_OURS;
	}
	if (m->csv && (fflush(m->csv) || ferror(m->csv))) {
		complain("%s: cannot be written", csv_path);
		rc = EXIT_OURS;
	}
	if (a->plot && !sim_report_plot(a->plot, csv_path, s))
		rc = EXIT_OURS;
	return rc;
}

static int simulate(const struct sim_args *a, const struct scenario *s,
		    FILE *csv, const char *csv_path)
{
	static const struct sim_alloc heap = { .alloc = take, .free = give };
	struct sim_samples m;
	struct fabworld *fw;
	const char *why;
	int64_t until;
	int rc;

	if (sim_samples_init(&m, s, csv)) {
		complain("out of memory");
		return EXIT_OURS;
	}
	rc = fabworld_new(&s->world, &heap, sim_samples_take, &m, &fw, &why);
	if (rc) {
		complain("%s: %s", a->file, why ? why : strerror(-rc));
		sim_samples_fini(&m);
		return EXIT_OURS;
	}
	catch_signals();
	if (s->about)
		printf("%s\n", s->about);
	sim_report_config(stdout, s);
	fflush(stdout);
	until = run_all(fw, s);
	rc = report(a, s, fw, &m, until, csv_path);
	fabworld_free(fw);
	sim_samples_fini(&m);
	return rc;
}

int cmd_sim(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "SCENARIO",
		.doc = "Run a scenario of hosts, switches and cables in "
		       "virtual "
		       "time.",
	};
	char why[512], temp[] = "/tmp/softhca-sim-XXXXXX";
	struct sim_args a = { 0 };
	struct scenario *s;
	const char *csv_path;
	FILE *csv = NULL;
	int rc, fd = -1;

	argp_err_exit_status = EXIT_OURS;
	argp_parse(&argp, argc, argv, 0, NULL, &a);
	s = scenario_read(a.file, why, sizeof(why));
	if (!s) {
		complain("%s", why);
		return EXIT_OURS;
	}
	if (a.has_seed)
		s->world.seed = a.seed;
	csv_path = a.csv;
	if (!csv_path && a.plot) {
		fd = mkstemp(temp);
		csv_path = temp;
	}
	if (csv_path)
		csv = fd >= 0 ? fdopen(fd, "w") : fopen(csv_path, "w");
	if (csv_path && !csv) {
		complain("%s: %s", csv_path, strerror(errno));
		rc = EXIT_OURS;
	} else {
		rc = simulate(&a, s, csv, csv_path);
	}
	if (csv)
		fclose(csv);
	if (fd >= 0)
		unlink(temp);
	scenario_free(s);
	return rc;
}
