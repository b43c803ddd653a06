/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * path_calls.c - libc's functions that take a path, in front of libc. Each
 * replaces the path by path_map() and calls on.
 *
 * Both names of the large-file pairs are defined here, so the headers must
 * not redirect one to the other; and declarations are our own, since the
 * headers no longer have all of these names (__xstat) or hide them in
 * fortified inlines (__open_2).
 */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "shim/abi.h"
#include "shim/path/path_map.h"
#include "shim/path/path_next.h"

static long no_such_function(void)
{
	errno = ENOSYS;
	return -1;
}

/* Calls the next `name`, of type ret(*)params, with args; p in them is the
 * mapped path. */
#define CALL_NEXT(ret, name, params, args)                                     \
	do {                                                                   \
		char buf_[PATH_MAP_MAX];                                       \
		ret(*next_) params = NEXT(ret(*) params, name);                \
		const char *p = path_map(path, buf_);                          \
		if (!next_)                                                    \
			return (ret)no_such_function();                        \
		return next_ args;                                             \
	} while (0)

#define SHIM(ret, name, params, args)                                          \
	ABI_EXPORT ret name params;                                            \
	ret name params                                                        \
	{                                                                      \
		CALL_NEXT(ret, #name, params, args);                           \
	}

/* ---- stat ---- */

SHIM(int, stat, (const char *path, struct stat *st), (p, st))
SHIM(int, lstat, (const char *path, struct stat *st), (p, st))
SHIM(int, stat64, (const char *path, struct stat64 *st), (p, st))
SHIM(int, lstat64, (const char *path, struct stat64 *st), (p, st))
SHIM(int, fstatat, (int fd, const char *path, struct stat *st, int flags),
     (fd, p, st, flags))
SHIM(int, fstatat64, (int fd, const char *path, struct stat64 *st, int flags),
     (fd, p, st, flags))
SHIM(int, statx,
     (int fd, const char *path, int flags, unsigned int mask, struct statx *st),
     (fd, p, flags, mask, st))
/* before glibc 2.33 */
SHIM(int, __xstat, (int ver, const char *path, struct stat *st), (ver, p, st))
SHIM(int, __lxstat, (int ver, const char *path, struct stat *st), (ver, p, st))
SHIM(int, __xstat64, (int ver, const char *path, struct stat64 *st),
     (ver, p, st))
SHIM(int, __lxstat64, (int ver, const char *path, struct stat64 *st),
     (ver, p, st))
SHIM(int, __fxstatat,
     (int ver, int fd, const char *path, struct stat *st, int flags),
     (ver, fd, p, st, flags))
SHIM(int, __fxstatat64,
     (int ver, int fd, const char *path, struct stat64 *st, int flags),
     (ver, fd, p, st, flags))

/* ---- access ---- */

SHIM(int, access, (const char *path, int mode), (p, mode))
SHIM(int, eaccess, (const char *path, int mode), (p, mode))
SHIM(int, euidaccess, (const char *path, int mode), (p, mode))
SHIM(int, faccessat, (int fd, const char *path, int mode, int flags),
     (fd, p, mode, flags))

/* ---- open ---- */

static mode_t mode_arg(int flags, va_list ap)
{
	if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE)
		return va_arg(ap, mode_t);
	return 0;
}

#define SHIM_OPEN(name)                                                        \
	ABI_EXPORT int name(const char *path, int flags, ...);                 \
	int name(const char *path, int flags, ...)                             \
	{                                                                      \
		va_list ap;                                                    \
		mode_t mode;                                                   \
		va_start(ap, flags);                                           \
		mode = mode_arg(flags, ap);                                    \
		va_end(ap);                                                    \
		CALL_NEXT(int, #name, (const char *, int, ...),                \
			  (p, flags, mode));                                   \
	}
SHIM_OPEN(open)
SHIM_OPEN(open64)

#define SHIM_OPENAT(name)                                                      \
	ABI_EXPORT int name(int fd, const char *path, int flags, ...);         \
	int name(int fd, const char *path, int flags, ...)                     \
	{                                                                      \
		va_list ap;                                                    \
		mode_t mode;                                                   \
		va_start(ap, flags);                                           \
		mode = mode_arg(flags, ap);                                    \
		va_end(ap);                                                    \
		CALL_NEXT(int, #name, (int, const char *, int, ...),           \
			  (fd, p, flags, mode));                               \
	}
SHIM_OPENAT(openat)
SHIM_OPENAT(openat64)

SHIM(int, __open_2, (const char *path, int flags), (p, flags))
SHIM(int, __open64_2, (const char *path, int flags), (p, flags))
SHIM(int, __openat_2, (int fd, const char *path, int flags), (fd, p, flags))
SHIM(int, __openat64_2, (int fd, const char *path, int flags), (fd, p, flags))

/* ---- what gives a pointer: NULL with errno ---- */

#define SHIM_PTR(ret, name, params, args)                                      \
	ABI_EXPORT ret *name params;                                           \
	ret *name params                                                       \
	{                                                                      \
		char buf_[PATH_MAP_MAX];                                       \
		ret *(*next_)params = NEXT(ret * (*)params, #name);            \
		const char *p = path_map(path, buf_);                          \
		if (!next_) {                                                  \
			errno = ENOSYS;                                        \
			return NULL;                                           \
		}                                                              \
		return next_ args;                                             \
	}

SHIM_PTR(FILE, fopen, (const char *path, const char *mode), (p, mode))
SHIM_PTR(FILE, fopen64, (const char *path, const char *mode), (p, mode))
SHIM_PTR(DIR, opendir, (const char *path), (p))
SHIM_PTR(char, realpath, (const char *path, char *resolved), (p, resolved))
SHIM_PTR(char, __realpath_chk, (const char *path, char *resolved, size_t size),
	 (p, resolved, size))
SHIM_PTR(char, canonicalize_file_name, (const char *path), (p))

/* ---- links and listings ---- */

SHIM(ssize_t, readlink, (const char *path, char *to, size_t size),
     (p, to, size))
SHIM(ssize_t, readlinkat, (int fd, const char *path, char *to, size_t size),
     (fd, p, to, size))
SHIM(ssize_t, __readlink_chk,
     (const char *path, char *to, size_t size, size_t room),
     (p, to, size, room))
SHIM(ssize_t, __readlinkat_chk,
     (int fd, const char *path, char *to, size_t size, size_t room),
     (fd, p, to, size, room))
SHIM(int, scandir,
     (const char *path, struct dirent ***list,
      int (*filter)(const struct dirent *),
      int (*order)(const struct dirent **, const struct dirent **)),
     (p, list, filter, order))
SHIM(int, scandir64,
     (const char *path, struct dirent64 ***list,
      int (*filter)(const struct dirent64 *),
      int (*order)(const struct dirent64 **, const struct dirent64 **)),
     (p, list, filter, order))

/* ---- extended attributes: ls -l asks for them ---- */

SHIM(ssize_t, getxattr,
     (const char *path, const char *name, void *to, size_t size),
     (p, name, to, size))
SHIM(ssize_t, lgetxattr,
     (const char *path, const char *name, void *to, size_t size),
     (p, name, to, size))
SHIM(ssize_t, listxattr, (const char *path, char *to, size_t size),
     (p, to, size))
SHIM(ssize_t, llistxattr, (const char *path, char *to, size_t size),
     (p, to, size))
