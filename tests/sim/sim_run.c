/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sim_run.c - rounds of the random workload in virtual time.
 *
 *   sim_run --seed N --rounds M [--msgs K] [--fault PLAN] [--verbose]
 * PROFILE...
 *
 * PROFILE is rc/clean, uc/loss5, ... (sim_profile.c). Round i of a profile has
 * seed N + i. PLAN (docs/faults.md) adds to its faults. The first failure ends
 * the run and prints one line that replays it; so does an abort in the core.
 */
#include <argp.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "sim_heap.h"
#include "sim_profile.h"

struct options {
	uint64_t seed, rounds;
	uint32_t msgs;
	bool verbose, trace;
	const char *faults; /* or NULL */
	char **profiles;
	int num_profiles;
};

static char replay[1024]; /* for the abort handler */
static size_t replay_len;

static void on_abort(int sig)
{
	ssize_t n = write(STDERR_FILENO, replay, replay_len);

	(void)n;
	signal(sig, SIG_DFL);
	raise(sig);
}

static void set_replay(const struct options *o, const char *profile,
		       uint64_t seed)
{
	int n = snprintf(replay, sizeof(replay),
			 "replay: sim_run --seed %" PRIu64
			 " --rounds 1 --msgs %" PRIu32,
			 seed, o->msgs);

	if (o->faults)
		n += snprintf(replay + n, sizeof(replay) - (size_t)n,
			      " --fault '%.512s'", o->faults);
	n += snprintf(replay + n, sizeof(replay) - (size_t)n, " %s\n", profile);
	replay_len = (size_t)n < sizeof(replay) ? (size_t)n : sizeof(replay);
}

static void report(const char *profile, uint64_t seed, const struct verdict *v)
{
	fprintf(stderr,
		"sim_run: %s seed %" PRIu64 " at %" PRId64 " ns: %s: %#" PRIx64
		" %#" PRIx64 " %#" PRIx64 "\n%s",
		profile, seed, v->at_ns, v->what, v->a, v->b, v->c, replay);
}

static void add_stats(struct wl_stats *sum, const struct wl_stats *s)
{
	sum->msgs += s->msgs;
	sum->receives += s->receives;
	sum->failures += s->failures;
	sum->read_bytes += s->read_bytes;
	sum->retransmits += s->retransmits;
	sum->rnr_naks += s->rnr_naks;
	sum->direct += s->direct;
	sum->direct_refused += s->direct_refused;
	sum->cable.sent += s->cable.sent;
	for (int a = 0; a < FAULT_ACTIONS; a++)
		sum->cable.hit[a] += s->cable.hit[a];
}

static void print_stats(const char *profile, const struct wl_stats *s)
{
	printf("%s: %" PRIu64 " messages, %" PRIu64 " received, %" PRIu64
	       " failed connections, %" PRIu64 " frames (%" PRIu64
	       " lost, %" PRIu64 " doubled, %" PRIu64 " late, %" PRIu64
	       " broken), %" PRIu64 " sent again, %" PRIu64 " RNR, %" PRIu64
	       " copied, %" PRIu64 " not\n",
	       profile, s->msgs, s->receives, s->failures, s->cable.sent,
	       s->cable.hit[FAULT_DROP] + s->cable.hit[FAULT_BLACKHOLE],
	       s->cable.hit[FAULT_DUP],
	       s->cable.hit[FAULT_REORDER] + s->cable.hit[FAULT_DELAY],
	       s->cable.hit[FAULT_CORRUPT], s->retransmits, s->rnr_naks,
	       s->direct, s->direct_refused);
}

/* A run that moves nothing, or whose faults never happen, proves nothing. */
static bool vacuous(const struct wl_config *cfg, const struct wl_stats *s)
{
	for (int a = 0; a < FAULT_ACTIONS; a++)
		if (fault_does(&cfg->faults, a) && !s->cable.hit[a])
			return true;
	if (cfg->direct && (!s->direct || !s->direct_refused))
		return true;
	return !s->msgs ||
	       (cfg->errors && cfg->type == QP_TYPE_RC && !s->failures);
}

static void print_frame(bool delivered, unsigned from, const struct pkt *p,
			int64_t now_ns)
{
	printf("%12" PRId64 " %s %u %s qpn=%#x psn=%#x%s", now_ns,
	       delivered ? "got " : "sent", from, p->info->name,
	       p->bth.dest_qpn, p->bth.psn.v, p->bth.ackreq ? " ackreq" : "");
	if (p->info->exth & EXTH_RETH)
		printf(" va=%#" PRIx64 " len=%u", p->ext.reth.va,
		       p->ext.reth.len_bytes);
	if (p->info->exth & EXTH_AETH)
		printf(" syndrome=%#x msn=%u", p->ext.aeth.syndrome,
		       p->ext.aeth.msn);
	printf(" payload=%u\n", p->payload_bytes);
}

static int run_profile(const struct options *o, const char *name)
{
	static struct wl wl;
	struct wl_stats sum = { 0 };
	static struct wl_config cfg;
	struct fault_error err;

	if (!sim_profile(name, o->msgs, o->faults, &cfg, &err)) {
		fprintf(stderr, "sim_run: %s%s%s, character %u: %s\n", name,
			o->faults ? " with " : "", o->faults ? o->faults : "",
			err.at + 1, err.why);
		return 2;
	}
	cfg.trace = o->trace ? print_frame : NULL;
	for (uint64_t i = 0; i < o->rounds; i++) {
		uint64_t seed = o->seed + i;

		set_replay(o, name, seed);
		if (wl_run(&wl, &cfg, seed, &sim_heap)) {
			fprintf(stderr, "sim_run: out of memory\n");
			return 2;
		}
		if (wl.verdict.what) {
			report(name, seed, &wl.verdict);
			return 1;
		}
		if (o->verbose)
			print_stats(name, &wl.stats);
		add_stats(&sum, &wl.stats);
	}
	print_stats(name, &sum);
	if (o->rounds >= 10 && vacuous(&cfg, &sum)) {
		fprintf(stderr, "sim_run: %s tested nothing\n", name);
		return 1;
	}
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 's':
		o->seed = strtoull(arg, NULL, 0);
		return 0;
	case 'r':
		o->rounds = strtoull(arg, NULL, 0);
		return 0;
	case 'm':
		o->msgs = (uint32_t)strtoul(arg, NULL, 0);
		return 0;
	case 'f':
		o->faults = arg;
		return 0;
	case 't':
		o->trace = true;
		return 0;
	case 'v':
		o->verbose = true;
		return 0;
	case ARGP_KEY_ARGS:
		o->profiles = state->argv + state->next;
		o->num_profiles = state->argc - state->next;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option argp_options[] = {
	{ "seed", 's', "N", 0, "seed of the first round (1)", 0 },
	{ "rounds", 'r', "N", 0, "rounds of each profile (1)", 0 },
	{ "msgs", 'm', "N", 0, "messages of each end of each pair (60)", 0 },
	{ "fault", 'f', "PLAN", 0, "faults, see docs/faults.md", 0 },
	{ "trace", 't', NULL, 0, "every frame, as sent and as delivered", 0 },
	{ "verbose", 'v', NULL, 0, "statistics of every round", 0 },
	{ 0 }
};

int main(int argc, char **argv)
{
	const struct argp argp = {
		argp_options, parse,
		"PROFILE...", "Random verbs workload in virtual time.",
		NULL,	      NULL,
		NULL
	};
	struct options o = { .seed = 1, .rounds = 1, .msgs = 60 };
	int rc = 0;

	argp_parse(&argp, argc, argv, 0, NULL, &o);
	if (o.msgs < 2 || o.rounds < 1) {
		fprintf(stderr, "sim_run: --msgs >= 2, --rounds >= 1\n");
		return 2;
	}
	signal(SIGABRT, on_abort);
	for (int i = 0; i < o.num_profiles && !rc; i++)
		rc = run_profile(&o, o.profiles[i]);
	return rc;
}
