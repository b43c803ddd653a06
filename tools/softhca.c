/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * softhca.c - the command's front: finds the subcommand.
 */
#include "tools/cmd.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
} commands[] = {
	{ "run", cmd_run, "run a program on softhca's RDMA devices" },
	{ "devices", cmd_devices, "list the devices and their GIDs" },
	{ "sim", cmd_sim, "run a scenario in virtual time" },
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void say(const char *fmt, va_list ap)
{
	fputs("softhca: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

void complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

void remark(const char *fmt, ...)
{
	const char *verbose = getenv("SOFTHCA_VERBOSE");
	va_list ap;

	if (!verbose || strcmp(verbose, "1") != 0)
		return;
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

static void help(FILE *f)
{
	size_t i;

	fputs("Usage: softhca COMMAND [OPTION...]\n"
	      "An RDMA NIC in software: runs RDMA programs without one.\n\n",
	      f);
	for (i = 0; i < N_COMMANDS; i++)
		fprintf(f, "  %-10s %s\n", commands[i].name,
			commands[i].summary);
	fputs("\n  softhca COMMAND --help    its options\n"
	      "  softhca --version\n",
	      f);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	size_t i;

	if (!name) {
		help(stderr);
		return EXIT_OURS;
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		puts("softhca " SOFTHCA_VERSION);
		return 0;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "help")) {
		help(stdout);
		return 0;
	}
	for (i = 0; i < N_COMMANDS; i++)
		if (!strcmp(name, commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	complain("no command '%s'; 'softhca --help' lists them", name);
	return EXIT_OURS;
}
