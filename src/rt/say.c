/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * say.c - words for the user: whole lines on stderr, one write each, so that
 * lines of several processes do not mix.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rt/config.h"
#include "rt/rawsys.h"
#include "rt/rt.h"

#define SAY_LINE_MAX 1024

void rt_say(bool verbose_only, const char *fmt, ...)
{
	static const char prefix[] = "softhca: ";
	char line[SAY_LINE_MAX];
	size_t len = sizeof(prefix) - 1;
	int saved_errno = errno;
	va_list ap;
	int n;

	if (verbose_only && !rt_config()->verbose)
		return;
	memcpy(line, prefix, len);
	va_start(ap, fmt);
	n = vsnprintf(line + len, sizeof(line) - len - 1, fmt, ap);
	va_end(ap);
	if (n > 0)
		len += (size_t)n < sizeof(line) - len - 1
			       ? (size_t)n
			       : sizeof(line) - len - 2;
	line[len++] = '\n';
	/* A closed stderr is nobody's error. */
	(void)RAWSYS3(SYS_write, 2, line, len);
	errno = saved_errno;
}
