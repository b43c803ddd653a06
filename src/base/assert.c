/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/assert.h"

_Noreturn void assert_failed(const char *cond, const char *file, int line)
{
	/* Kept alive for the debugger and the core file. */
	const char *volatile failed_cond = cond;
	const char *volatile failed_file = file;
	volatile int failed_line = line;

	(void)failed_cond;
	(void)failed_file;
	(void)failed_line;
	abort();
}
