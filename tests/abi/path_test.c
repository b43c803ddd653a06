/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * path_test.c - the preloaded library: each way to look at a path of RDMA
 * hardware finds the tree, other paths are as they were, and handlers of
 * SIGSEGV go where the hook says. Runs itself with LD_PRELOAD; argument: the
 * directory of the built libraries.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define SYS_DEV "/sys/class/infiniband/shca77"
#define SYS_FILE SYS_DEV "/node_type"
#define DEV_FILE "/dev/infiniband/shca77"

static char tree[] = "/tmp/softhca-path-XXXXXX";

static void make(const char *sub, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", tree, sub);
	if (!text) {
		if (mkdir(path, 0755))
			abort();
		return;
	}
	f = fopen(path, "w");
	if (!f || fputs(text, f) < 0 || fclose(f))
		abort();
}

static int make_tree(void **state)
{
	(void)state;
	if (!mkdtemp(tree))
		return -1;
	make("class", NULL);
	make("class/infiniband", NULL);
	make("class/infiniband/shca77", NULL);
	make("class/infiniband/shca77/node_type", "1: CA\n");
	make("class/infiniband_verbs", NULL);
	make("class/infiniband_verbs/abi_version", "6\n");
	make("dev", NULL);
	make("dev/infiniband", NULL);
	return setenv("SOFTHCA_SYSFS", tree, 1);
}

static int remove_tree(void **state)
{
	static const char *const names[] = {
		"dev/infiniband",
		"dev",
		"class/infiniband_verbs/abi_version",
		"class/infiniband_verbs",
		"class/infiniband/shca77/node_type",
		"class/infiniband/shca77",
		"class/infiniband",
		"class",
	};
	char path[512];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", tree, names[i]);
		if (remove(path))
			return -1;
	}
	return rmdir(tree);
}

/* ---- files ---- */

static void assert_reads_node_type(int fd)
{
	char buf[16] = "";

	assert_true(fd >= 0);
	assert_int_equal(read(fd, buf, sizeof(buf) - 1), 6);
	assert_string_equal(buf, "1: CA\n");
	close(fd);
}

static void test_open(void **state)
{
	int (*open_2)(const char *, int) = (int (*)(const char *, int))(
		uintptr_t)dlsym(RTLD_DEFAULT, "__open_2");
	FILE *f;

	(void)state;
	assert_reads_node_type(open(SYS_FILE, O_RDONLY));
	assert_reads_node_type(open64(SYS_FILE, O_RDONLY));
	assert_reads_node_type(openat(AT_FDCWD, SYS_FILE, O_RDONLY));
	assert_reads_node_type(openat64(-1, SYS_FILE, O_RDONLY));
	assert_non_null(open_2);
	assert_reads_node_type(open_2(SYS_FILE, O_RDONLY));
	f = fopen(SYS_FILE, "r");
	assert_non_null(f);
	assert_int_equal(fgetc(f), '1');
	fclose(f);
	assert_int_equal(open(SYS_DEV "/no_such", O_RDONLY), -1);
	assert_int_equal(errno, ENOENT);
}

static void test_stat(void **state)
{
	int (*xstat)(int, const char *, struct stat *) =
		(int (*)(int, const char *, struct stat *))(uintptr_t)dlsym(
			RTLD_DEFAULT, "__xstat");
	struct statx stx;
	struct stat st;

	(void)state;
	assert_int_equal(stat(SYS_FILE, &st), 0);
	assert_int_equal(st.st_size, 6);
	assert_int_equal(lstat(SYS_DEV, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(fstatat(-1, SYS_FILE, &st, 0), 0);
	assert_int_equal(statx(-1, SYS_FILE, 0, STATX_SIZE, &stx), 0);
	assert_int_equal(stx.stx_size, 6);
	assert_non_null(xstat);
	assert_int_equal(xstat(1, SYS_FILE, &st), 0);
	assert_int_equal(access(SYS_FILE, R_OK), 0);
	assert_int_equal(faccessat(-1, SYS_FILE, R_OK, 0), 0);
	assert_int_equal(stat("/sys/class/infiniband_verbs/abi_version", &st),
			 0);
}

static void test_directories(void **state)
{
	struct dirent *e, **list;
	char *real;
	DIR *d;
	int n;

	(void)state;
	d = opendir("/sys/class/infiniband");
	assert_non_null(d);
	do
		e = readdir(d);
	while (e && e->d_name[0] == '.');
	assert_non_null(e);
	assert_string_equal(e->d_name, "shca77");
	closedir(d);
	n = scandir(SYS_DEV, &list, NULL, alphasort);
	assert_int_equal(n, 3);
	while (n--)
		free(list[n]);
	free(list);
	real = realpath(SYS_DEV, NULL);
	assert_non_null(real);
	assert_int_equal(strncmp(real, tree, strlen(tree)), 0);
	free(real);
}

/* UCX wants a character device that it may read and write. */
static void test_device(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(stat(DEV_FILE, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(access(DEV_FILE, R_OK | W_OK), 0);
	assert_int_equal(stat("/dev/infiniband", &st), 0);
	assert_int_equal(stat("/dev/infiniband/", &st), 0);
	assert_int_equal(stat("/dev/infiniband/shca78", &st), -1);
	assert_int_equal(stat("/dev/infiniband/rdma_cm", &st),
			 access("/dev/infiniband/rdma_cm", F_OK));
}

static void test_other_paths(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(stat("/sys/class/infinibandx", &st), -1);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_int_equal(access("/proc/self/exe", X_OK), 0);
	assert_int_equal(stat("", &st), -1);
	assert_int_equal(errno, ENOENT);
	unsetenv("SOFTHCA_SYSFS");
	assert_int_equal(stat(SYS_DEV, &st), -1);
	setenv("SOFTHCA_SYSFS", tree, 1);
}

static void test_creates(void **state)
{
	char path[512];
	struct stat st;
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/made", tree);
	fd = open(path, O_CREAT | O_WRONLY | O_EXCL, 0640); /* the third one */
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 0707, 0600);
	close(fd);
	assert_int_equal(unlink(path), 0);
}

/* ---- signals ---- */

static int hook_signo, hook_answer;
static struct sigaction hook_act;
static bool hook_has_act;

static int hook(int signo, const struct sigaction *act, struct sigaction *old)
{
	hook_signo = signo;
	hook_has_act = act != NULL;
	if (act)
		hook_act = *act;
	if (!hook_answer && old) {
		memset(old, 0, sizeof(*old));
		old->sa_handler = SIG_IGN;
	}
	return hook_answer;
}

static void handler(int signo)
{
	(void)signo;
}

static void hook_set(void)
{
	void (*set)(
		int (*)(int, const struct sigaction *, struct sigaction *)) =
		(void (*)(int (*)(int, const struct sigaction *,
				  struct sigaction *)))(uintptr_t)
			dlsym(RTLD_DEFAULT, "softhca_sigaction_hook_set");

	assert_non_null(set);
	set(hook);
	hook_signo = 0;
}

static void test_sigaction_hooked(void **state)
{
	struct sigaction act = { .sa_handler = handler }, old;

	(void)state;
	hook_set();
	hook_answer = 0;
	assert_int_equal(sigaction(SIGSEGV, &act, &old), 0);
	assert_int_equal(hook_signo, SIGSEGV);
	assert_ptr_equal(hook_act.sa_handler, handler);
	assert_ptr_equal(old.sa_handler, SIG_IGN);
	assert_int_equal(sigaction(SIGBUS, NULL, &old), 0);
	assert_int_equal(hook_signo, SIGBUS);
	assert_false(hook_has_act);
	hook_answer = -EINVAL;
	assert_int_equal(sigaction(SIGSEGV, &act, NULL), -1);
	assert_int_equal(errno, EINVAL);
}

static void test_signal_hooked(void **state)
{
	(void)state;
	hook_set();
	hook_answer = 0;
	assert_ptr_equal(signal(SIGSEGV, handler), SIG_IGN);
	assert_ptr_equal(hook_act.sa_handler, handler);
	assert_true(hook_act.sa_flags & SA_RESTART);
	assert_ptr_equal(sysv_signal(SIGBUS, handler), SIG_IGN);
	assert_true(hook_act.sa_flags & (int)SA_RESETHAND);
	assert_ptr_equal(sigset(SIGBUS, handler), SIG_IGN);
	assert_int_equal(hook_signo, SIGBUS);
	hook_answer = -EINVAL;
	assert_ptr_equal(signal(SIGSEGV, handler), SIG_ERR);
}

/* Others, and these while nothing of ours is installed, go to libc. */
static void test_signals_not_ours(void **state)
{
	struct sigaction act = { .sa_handler = handler }, old;

	(void)state;
	hook_set();
	hook_answer = 0;
	assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
	assert_int_equal(sigaction(SIGUSR1, NULL, &old), 0);
	assert_ptr_equal(old.sa_handler, handler);
	assert_ptr_equal(signal(SIGUSR1, SIG_DFL), handler);
	assert_int_equal(hook_signo, 0);
	hook_answer = -ENOSYS;
	assert_int_equal(sigaction(SIGBUS, &act, &old), 0);
	assert_int_equal(hook_signo, SIGBUS);
	assert_int_equal(sigaction(SIGBUS, &old, &act), 0);
	assert_ptr_equal(act.sa_handler, handler);
}

static int run_preloaded(char **argv)
{
	char lib[1024];

	snprintf(lib, sizeof(lib), "%s/libsofthca_path.so", argv[1]);
	if (setenv("LD_PRELOAD", lib, 1))
		return 2;
	execv("/proc/self/exe", argv);
	perror("/proc/self/exe");
	return 2;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_stat),
		cmocka_unit_test(test_directories),
		cmocka_unit_test(test_device),
		cmocka_unit_test(test_other_paths),
		cmocka_unit_test(test_creates),
		cmocka_unit_test(test_sigaction_hooked),
		cmocka_unit_test(test_signal_hooked),
		cmocka_unit_test(test_signals_not_ours),
	};

	if (argc != 2)
		return 2;
	if (!dlsym(RTLD_DEFAULT, "softhca_sigaction_hook_set"))
		return getenv("LD_PRELOAD") ? 2 : run_preloaded(argv);
	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
