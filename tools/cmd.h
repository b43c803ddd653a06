/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cmd.h - the softhca command: one function a subcommand, and what they share.
 */
#ifndef SOFTHCA_TOOLS_CMD_H
#define SOFTHCA_TOOLS_CMD_H

#include <stdbool.h>
#include <stddef.h>

#define CMD_PATH_MAX 1024

/* Exit statuses of our own failures, as env(1) and sh(1) have them. */
enum {
	EXIT_OURS = 125, /* softhca itself failed */
	EXIT_CANNOT_RUN = 126,
	EXIT_NOT_FOUND = 127,
};

/* argv[0] is the subcommand's name. Each returns the exit status. */
int cmd_run(int argc, char **argv);
int cmd_devices(int argc, char **argv);
int cmd_sim(int argc, char **argv);

/* "softhca: ..." on stderr with a newline. */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same, when --verbose was given. */
void remark(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- sys_tree.c ---- */

/* Makes the sysfs tree that programs are shown, below a directory of this
 * user's; kept for the next run and shared by runs in one network namespace.
 * Writes its path. 0, or -errno: no directory will do; said at --verbose. */
int sys_tree_make(char ret_path[CMD_PATH_MAX]);

/* ---- sanitizer.c ---- */

/* True: the program is built with a sanitizer whose runtime must be the first
 * library of the process; its name to preload. */
bool sanitizer_runtime(const char *program, char ret[CMD_PATH_MAX]);

/* ---- lib_dir.c ---- */

/* The directory with our libibverbs.so.1: from the place of this program,
 * installed or in a build tree. 0, or -errno after complaining. */
int lib_dir_find(char ret_dir[CMD_PATH_MAX]);

#endif
