/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "link/fd_hide.h"

static void limit(rlim_t n)
{
	struct rlimit r;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
	r.rlim_cur = n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &r), 0);
}

static int null_fd(void)
{
	int fd = open("/dev/null", O_RDWR);

	assert_true(fd >= 0);
	return fd;
}

static void test_moves_up(void **state)
{
	int low = null_fd();
	int fd = fd_hide(low);

	(void)state;
	assert_true(fd >= 512);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	/* The low number is free: the program's next one. */
	assert_int_equal(null_fd(), low);
	close(low);
	close(fd);
}

static void test_keeps_errors(void **state)
{
	(void)state;
	errno = ENFILE;
	assert_int_equal(fd_hide(-1), -1);
	assert_int_equal(errno, ENFILE);
	assert_int_equal(fd_hidden_dup(-1), -EBADF);
}

static void test_no_number_left(void **state)
{
	int fd[64], n = 0;
	int dup;

	(void)state;
	limit(64);
	/* The upper half first, then below. */
	for (int f = 32; f < 64; f++)
		assert_int_equal(dup2(0, f), f);
	fd[n] = null_fd();
	assert_int_equal(fd_hide(fd[n]), fd[n]);
	dup = fd_hidden_dup(fd[n]);
	assert_in_range(dup, 3, 31);
	while ((fd[++n] = open("/dev/null", O_RDWR)) >= 0)
		;
	assert_int_equal(fd_hidden_dup(fd[0]), -EMFILE);
	for (int f = 3; f < 64; f++)
		close(f);
}

static void test_same_file(void **state)
{
	struct stat a, b;
	int fd = null_fd(), up = fd_hidden_dup(fd);

	(void)state;
	assert_true(up > fd);
	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(fstat(up, &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	close(fd);
	close(up);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moves_up),
		cmocka_unit_test(test_keeps_errors),
		cmocka_unit_test(test_same_file),
		cmocka_unit_test(test_no_number_left), /* changes the limit */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
