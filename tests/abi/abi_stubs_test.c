/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * abi_stubs_test.c - the provider libraries that programs link: no hardware is
 * theirs, and each function says so in its own convention; and the libraries as
 * programs open them by themselves. Argument: the directory of the built ones.
 */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

static const char *dir;

static void *lib_open(const char *name)
{
	char path[1024];
	void *lib;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		fail_msg("%s", dlerror());
	return lib;
}

static uintptr_t find(const char *lib, const char *name, const char *node)
{
	uintptr_t f = (uintptr_t)dlvsym(lib_open(lib), name, node);

	if (!f)
		fail_msg("%s@%s: not found", name, node);
	return f;
}

static void expect_int(const char *lib, const char *name, const char *node)
{
	int (*f)(void *, void *) =
		(int (*)(void *, void *))find(lib, name, node);

	assert_int_equal(f(NULL, NULL), EOPNOTSUPP);
}

static void expect_null(const char *lib, const char *name, const char *node)
{
	void *(*f)(void *, void *) =
		(void *(*)(void *, void *))find(lib, name, node);

	errno = 0;
	assert_null(f(NULL, NULL));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void expect_false(const char *lib, const char *name, const char *node)
{
	bool (*f)(void *) = (bool (*)(void *))find(lib, name, node);

	assert_false(f(NULL));
}

static void test_mlx5(void **state)
{
	(void)state;
	expect_false("libmlx5.so.1", "mlx5dv_is_supported", "MLX5_1.8");
	expect_null("libmlx5.so.1", "mlx5dv_create_qp", "MLX5_1.3");
	expect_null("libmlx5.so.1", "mlx5dv_open_device", "MLX5_1.7");
	expect_int("libmlx5.so.1", "mlx5dv_query_device", "MLX5_1.0");
}

/* The one name that lies in two nodes: both are there, the newer is default. */
static void test_mlx5_two_nodes(void **state)
{
	uintptr_t plain;

	(void)state;
	expect_int("libmlx5.so.1", "mlx5dv_init_obj", "MLX5_1.0");
	expect_int("libmlx5.so.1", "mlx5dv_init_obj", "MLX5_1.2");
	plain = (uintptr_t)dlsym(lib_open("libmlx5.so.1"), "mlx5dv_init_obj");
	assert_int_equal(plain,
			 find("libmlx5.so.1", "mlx5dv_init_obj", "MLX5_1.2"));
}

static void test_others(void **state)
{
	(void)state;
	expect_null("libefa.so.1", "efadv_create_qp_ex", "EFA_1.1");
	expect_int("libefa.so.1", "efadv_query_device", "EFA_1.1");
	expect_int("libmlx4.so.1", "mlx4dv_init_obj", "MLX4_1.0");
	expect_int("libmana.so.1", "manadv_init_obj", "MANA_1.0");
	expect_false("libhns.so.1", "hnsdv_is_supported", "HNS_1.0");
	expect_null("libhns.so.1", "hnsdv_create_qp", "HNS_1.0");
}

/* As NCCL opens them [B197]: without a number, and not what the system has. */
static void test_unversioned(void **state)
{
	static const char *const names[] = { "libmlx5.so", "libefa.so",
					     "libmlx4.so" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		lib_open(names[i]);
}

/* As NCCL does [B197]: the library without a number, then each name with its
 * node; the functions are called as they come. */
static void test_ibverbs_by_dlvsym(void **state)
{
	static const struct {
		const char *name, *node;
	} names[] = {
		{ "ibv_get_device_list", "IBVERBS_1.1" },
		{ "ibv_free_device_list", "IBVERBS_1.1" },
		{ "ibv_get_device_name", "IBVERBS_1.1" },
		{ "ibv_open_device", "IBVERBS_1.1" },
		{ "ibv_close_device", "IBVERBS_1.1" },
		{ "ibv_get_async_event", "IBVERBS_1.1" },
		{ "ibv_ack_async_event", "IBVERBS_1.1" },
		{ "ibv_query_device", "IBVERBS_1.1" },
		{ "ibv_query_port", "IBVERBS_1.1" },
		{ "ibv_query_gid", "IBVERBS_1.1" },
		{ "ibv_query_qp", "IBVERBS_1.1" },
		{ "ibv_alloc_pd", "IBVERBS_1.1" },
		{ "ibv_dealloc_pd", "IBVERBS_1.1" },
		{ "ibv_reg_mr", "IBVERBS_1.1" },
		{ "ibv_reg_mr_iova2", "IBVERBS_1.8" },
		{ "ibv_reg_dmabuf_mr", "IBVERBS_1.12" },
		{ "ibv_dereg_mr", "IBVERBS_1.1" },
		{ "ibv_create_cq", "IBVERBS_1.1" },
		{ "ibv_destroy_cq", "IBVERBS_1.1" },
		{ "ibv_create_qp", "IBVERBS_1.1" },
		{ "ibv_modify_qp", "IBVERBS_1.1" },
		{ "ibv_destroy_qp", "IBVERBS_1.1" },
		{ "ibv_fork_init", "IBVERBS_1.1" },
		{ "ibv_event_type_str", "IBVERBS_1.1" },
		{ "ibv_query_ece", "IBVERBS_1.10" },
		{ "ibv_set_ece", "IBVERBS_1.10" },
	};
	void **(*list)(int *);
	void (*release)(void **);
	size_t i;
	int n = -1;
	void **l;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		find("libibverbs.so", names[i].name, names[i].node);
	list = (void **(*)(int *))find("libibverbs.so", names[0].name,
				       names[0].node);
	release = (void (*)(void **))find("libibverbs.so", names[1].name,
					  names[1].node);
	l = list(&n);
	assert_non_null(l);
	assert_true(n >= 0);
	assert_null(l[n]);
	release(l);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mlx5),
		cmocka_unit_test(test_mlx5_two_nodes),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_unversioned),
		cmocka_unit_test(test_ibverbs_by_dlvsym),
	};

	if (argc != 2)
		return 2;
	dir = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
