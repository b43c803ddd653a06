/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * path_map.c - see path_map.h.
 */
#include "shim/path/path_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "rt/rawsys.h"

#define SYS_CLASS "/sys/class/infiniband"
#define DEV_DIR "/dev/infiniband"

/* Not cached: a program may set up the environment of a child by hand, and
 * only paths with one of the prefixes come here. */
static const char *tree(void)
{
	const char *t = secure_getenv("SOFTHCA_SYSFS");

	return t && t[0] == '/' ? t : NULL;
}

/* a + b + c into buf. False: too long. */
static bool join(char buf[PATH_MAP_MAX], const char *a, const char *b,
		 const char *c)
{
	size_t na = strlen(a), nb = strlen(b), nc = strlen(c);

	if (na + nb + nc >= PATH_MAP_MAX)
		return false;
	memcpy(buf, a, na);
	memcpy(buf + na, b, nb);
	memcpy(buf + na + nb, c, nc + 1);
	return true;
}

static bool exists(const char *path)
{
#ifdef SYS_access
	return RAWSYS2(SYS_access, path, 0) == 0;
#else
	return RAWSYS3(SYS_faccessat, -100, path, 0) == 0;
#endif
}

static const char *map_sys(const char *path, char buf[PATH_MAP_MAX])
{
	const char *rest = path + strlen(SYS_CLASS);
	const char *t = tree();

	if (!t ||
	    (rest[0] && rest[0] != '/' && strncmp(rest, "_verbs", 6) != 0))
		return path;
	return join(buf, t, "/class/infiniband", rest) ? buf : path;
}

static const char *map_dev(const char *path, char buf[PATH_MAP_MAX])
{
	const char *rest = path + strlen(DEV_DIR);
	const char *t = tree();

	if (!t)
		return path;
	if (!rest[0] || !strcmp(rest, "/"))
		return join(buf, t, "/dev/infiniband", "") ? buf : path;
	if (rest[0] != '/' || strchr(rest + 1, '/') ||
	    !join(buf, t, "/class/infiniband", rest) || !exists(buf))
		return path;
	return "/dev/null";
}

const char *path_map(const char *path, char buf[PATH_MAP_MAX])
{
	if (!path || path[0] != '/')
		return path;
	if (path[1] == 's' && !strncmp(path, SYS_CLASS, strlen(SYS_CLASS)))
		return map_sys(path, buf);
	if (path[1] == 'd' && !strncmp(path, DEV_DIR, strlen(DEV_DIR)))
		return map_dev(path, buf);
	return path;
}
