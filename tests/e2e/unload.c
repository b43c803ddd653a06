/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * unload.c - loads libibverbs.so.1 by itself, opens a device, unloads the
 * library while it is open, loads it again and goes on with what it has. Then
 * it ends with the library unloaded and the device open.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%d: %s\n", __LINE__, #cond);          \
			exit(1);                                               \
		}                                                              \
	} while (0)

static void *lib;

static void load(void)
{
	lib = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	CHECK(lib);
}

static void unload(void)
{
	CHECK(dlclose(lib) == 0);
	usleep(50000); /* our thread has time to run code that is gone */
}

static void *call(const char *name)
{
	void *f = dlsym(lib, name);

	CHECK(f);
	return f;
}

static struct ibv_context *open_first(void)
{
	struct ibv_device **(*list)(int *) =
		(struct ibv_device * *(*)(int *)) call("ibv_get_device_list");
	struct ibv_context *(*open)(struct ibv_device *) =
		(struct ibv_context * (*)(struct ibv_device *))
			call("ibv_open_device");
	struct ibv_device **devices = list(NULL);
	struct ibv_context *c;

	CHECK(devices && devices[0]);
	c = open(devices[0]);
	CHECK(c);
	return c;
}

static struct ibv_pd *use(struct ibv_context *c)
{
	struct ibv_pd *(*alloc)(struct ibv_context *) =
		(struct ibv_pd * (*)(struct ibv_context *))
			call("ibv_alloc_pd");
	int (*dealloc)(struct ibv_pd *) =
		(int (*)(struct ibv_pd *))call("ibv_dealloc_pd");
	struct ibv_pd *pd = alloc(c);

	CHECK(pd && dealloc(pd) == 0);
	return alloc(c);
}

int main(void)
{
	struct ibv_context *c;
	struct ibv_pd *pd;

	load();
	c = open_first();
	unload();
	load();
	pd = use(c);
	CHECK(pd && pd->context == c);
	unload();
	printf("unloaded\n");
	return 0;
}
