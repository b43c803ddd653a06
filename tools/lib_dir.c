/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * lib_dir.c - where our libraries are.
 */
#include "tools/cmd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* From the directory of this program: installed, then a build tree. */
static const char *const places[] = { "../lib/softhca", "../src/shim" };

static int own_dir(char ret[CMD_PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", ret, CMD_PATH_MAX - 1);
	char *slash;

	if (n < 0)
		return -errno;
	ret[n] = '\0';
	slash = strrchr(ret, '/');
	if (!slash)
		return -EINVAL;
	*slash = '\0';
	return 0;
}

/* Absolute and without "..": it goes into other programs' environments. */
static int try_place(const char *own, const char *place, char ret[CMD_PATH_MAX])
{
	char dir[CMD_PATH_MAX], file[CMD_PATH_MAX + 32];
	char *slash;

	if (strlen(own) + strlen(place) + 2 > sizeof(dir))
		return -ENAMETOOLONG;
	memcpy(dir, own, strlen(own) + 1);
	while (!strncmp(place, "../", 3)) {
		slash = strrchr(dir, '/');
		if (slash)
			*slash = '\0';
		place += 3;
	}
	strcat(dir, "/");
	strcat(dir, place);
	snprintf(file, sizeof(file), "%s/libibverbs.so.1", dir);
	if (access(file, R_OK))
		return -errno;
	memcpy(ret, dir, strlen(dir) + 1);
	return 0;
}

int lib_dir_find(char ret_dir[CMD_PATH_MAX])
{
	char own[CMD_PATH_MAX];
	size_t i;
	int rc;

	rc = own_dir(own);
	if (rc) {
		complain("cannot read /proc/self/exe: %s", strerror(-rc));
		return rc;
	}
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (!try_place(own, places[i], ret_dir))
			return 0;
	complain("no libibverbs.so.1 of softhca in %s/%s; is the installation "
		 "complete?",
		 own, places[0]);
	return -ENOENT;
}
