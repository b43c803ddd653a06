/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fd_hide.h - numbers for our file descriptors where the program has none.
 *
 * A program may close descriptors that it does not know (closefrom before it
 * starts children, a close too many). Then our numbers are free, and what the
 * program opens next gets the lowest free one. Ours lie high: a number that was
 * closed under us stays closed, so its next use says EBADF instead of reading
 * or writing the program's file, and the device stops (rt/rtdev.h).
 */
#ifndef SOFTHCA_LINK_FD_HIDE_H
#define SOFTHCA_LINK_FD_HIDE_H

/* Moves fd to a high number, CLOEXEC, and returns that; fd itself when there
 * is none free or fd is negative. errno is preserved. */
int fd_hide(int fd);

/* A second number, high if possible, for the same file: -errno. */
int fd_hidden_dup(int fd);

#endif
