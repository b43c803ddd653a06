/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mutants.c - each deliberate fault of base/mutant.h must be caught by the
 * simulator's oracles, and the core without one must pass the same rounds.
 *
 *   mutants          all of them
 *   mutants NAME     one, with what caught it
 *
 * Every fault runs in a child, since a fault may also break an invariant of
 * the core's own (ASSERT aborts), which counts as caught and is said.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mutant.h"
#include "sim_heap.h"
#include "sim_profile.h"

#define ROUNDS 60
#define MSGS 60
#define CHILD_SECONDS 120

enum { EXIT_SURVIVED = 0, EXIT_TROUBLE = 2, EXIT_CAUGHT = 10 };

int mutant_active;

static const struct {
	const char *name, *profile;
} mutants[] = { [MUTANT_NONE] = { "none", NULL },
#define MUTANT_ROW(n, p) [MUTANT_##n] = { #n, p },
		MUTANTS(MUTANT_ROW)
#undef MUTANT_ROW
};

/* Runs rounds until one fails; for a child. */
static int run_rounds(const char *name, const char *profile)
{
	static struct wl wl;
	struct fault_error err;
	struct wl_config cfg;

	if (!sim_profile(profile, MSGS, NULL, &cfg, &err)) {
		printf("no profile %s\n", profile);
		return EXIT_TROUBLE;
	}
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		if (wl_run(&wl, &cfg, seed, &sim_heap))
			return EXIT_TROUBLE;
		if (wl.verdict.what) {
			printf("%s: %s seed %" PRIu64 ": %s: %#" PRIx64
			       " %#" PRIx64 " %#" PRIx64 "\n",
			       name, profile, seed, wl.verdict.what,
			       wl.verdict.a, wl.verdict.b, wl.verdict.c);
			return EXIT_CAUGHT;
		}
	}
	return EXIT_SURVIVED;
}

/* The child's wait status. */
static int in_child(int mutant, const char *profile)
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		int rc;

		alarm(CHILD_SECONDS);
		mutant_active = mutant;
		rc = run_rounds(mutants[mutant].name, profile);
		fflush(stdout);
		_exit(rc);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

static bool caught(int mutant)
{
	int status = in_child(mutant, mutants[mutant].profile);

	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_CAUGHT)
		return true;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) {
		printf("%s: %s: an invariant of the core broke\n",
		       mutants[mutant].name, mutants[mutant].profile);
		return true;
	}
	printf("%s: %s: NOT CAUGHT (wait status %#x)\n", mutants[mutant].name,
	       mutants[mutant].profile, status);
	return false;
}

/* The same rounds without a fault. */
static bool healthy(const char *profile)
{
	int status = in_child(MUTANT_NONE, profile);

	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SURVIVED)
		return true;
	printf("no mutant: %s failed (wait status %#x)\n", profile, status);
	return false;
}

/* Is this the first row with its profile? */
static bool first_of_profile(int mutant)
{
	for (int i = 1; i < mutant; i++)
		if (!strcmp(mutants[i].profile, mutants[mutant].profile))
			return false;
	return true;
}

int main(int argc, char **argv)
{
	int failed = 0, run = 0;

	for (int m = 1; m < MUTANT_COUNT; m++) {
		if (argc > 1 && strcmp(argv[1], mutants[m].name))
			continue;
		run++;
		failed += !caught(m);
		if (argc == 1 && first_of_profile(m))
			failed += !healthy(mutants[m].profile);
	}
	printf("%d mutants, %d failures\n", run, failed);
	return failed || !run;
}
