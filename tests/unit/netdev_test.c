/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * netdev_test.c - which interfaces are devices, in which order, with which
 * addresses. Loopback as it is on this machine; the rest in a network
 * namespace of our own, skipped where none can be made.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "rt/netdev.h"
#include "rt/rt.h"

static struct netdev *find(struct netdev *list, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (strcmp(list[i].name, name) == 0)
			return &list[i];
	return NULL;
}

static bool has_addr(const struct netdev *d, const struct gid *g)
{
	for (int i = 0; i < d->n_addrs; i++)
		if (gid_eq(&d->addrs[i].gid, g))
			return true;
	return false;
}

static void test_loopback(void **state)
{
	struct gid v4 = gid_from_v4(0x7f000001);
	struct netdev *list, *lo, *again;
	int n;

	(void)state;
	assert_int_equal(netdev_list(&list, &n), 0);
	assert_true(n > 0);
	lo = find(list, n, "lo");
	assert_non_null(lo);
	assert_ptr_equal(lo, &list[n - 1]);
	assert_true(lo->loopback);
	assert_true(lo->running);
	assert_false(lo->has_mac);
	assert_true(lo->mtu_bytes >= 1280);
	assert_int_equal(lo->vlan, NETDEV_NO_VLAN);
	assert_true(has_addr(lo, &v4));
	assert_true(gid_eq(&lo->addrs[0].gid, &v4));
	assert_int_equal(lo->addrs[0].prefix_len, 8);
	assert_int_equal(netdev_get(lo->ifindex, &again), 0);
	assert_string_equal(again->name, "lo");
	assert_int_equal(again->n_addrs, lo->n_addrs);
	assert_memory_equal(again->addrs, lo->addrs,
			    (size_t)lo->n_addrs * sizeof(*lo->addrs));
	free(again);
	free(list);
	assert_int_equal(netdev_get(0, &again), -ENODEV);
	assert_int_equal(netdev_get(0x7ffffff0, &again), -ENODEV);
}

static void test_devices(void **state)
{
	struct rt_device *a, *b;
	int na, nb;

	(void)state;
	assert_int_equal(rt_devices(&a, &na), 0);
	assert_int_equal(rt_devices(&b, &nb), 0);
	assert_true(na > 0);
	assert_int_equal(na, nb);
	assert_string_equal(a[na - 1].ifname, "lo");
	for (int i = 0; i < na; i++) {
		char name[16];

		snprintf(name, sizeof(name), "shca%d", i);
		assert_string_equal(a[i].name, name);
		assert_true(a[i].node_guid != 0);
		assert_true(a[i].node_guid == b[i].node_guid);
		for (int k = 0; k < i; k++)
			assert_true(a[i].node_guid != a[k].node_guid);
	}
	free(a);
	free(b);
}

static void test_guid(void **state)
{
	struct netdev d = { .has_mac = true,
			    .mac = { 0x02, 0x11, 0x22, 0x33, 0x44, 0x55 },
			    .vlan = NETDEV_NO_VLAN };
	struct netdev e = { .name = "tun0", .vlan = NETDEV_NO_VLAN };
	struct netdev f = { .name = "tun1", .vlan = NETDEV_NO_VLAN };

	(void)state;
	assert_true(netdev_node_guid(&d) == 0x001122fffe334455ull);
	d.vlan = 7;
	assert_true(netdev_node_guid(&d) == 0x0011220007334455ull);
	assert_true(netdev_node_guid(&e) != 0);
	assert_true(netdev_node_guid(&e) == netdev_node_guid(&e));
	assert_true(netdev_node_guid(&e) != netdev_node_guid(&f));
}

/* ---- in a namespace ---- */

/* In the child, cmocka's asserts would write to the parent's report. */
#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "# child: line %d: %s\n", __LINE__,    \
				#cond);                                        \
			_exit(1);                                              \
		}                                                              \
	} while (0)

#define EXIT_SKIP 77

static void skip_child(const char *why)
{
	printf("# skipped: %s\n", why);
	fflush(stdout);
	_exit(EXIT_SKIP);
}

static bool run(const char *command)
{
	return system(command) == 0;
}

static void write_map(const char *path, unsigned id)
{
	FILE *f = fopen(path, "w");

	CHECK(f);
	fprintf(f, "0 %u 1", id);
	CHECK(fclose(f) == 0);
}

static void enter_namespace(void)
{
	unsigned uid = geteuid(), gid = getegid();
	FILE *f;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		skip_child("no user and network namespace to be had");
	f = fopen("/proc/self/setgroups", "w");
	if (f) {
		fputs("deny", f);
		fclose(f);
	}
	write_map("/proc/self/uid_map", uid);
	write_map("/proc/self/gid_map", gid);
	if (!run("command -v ip >/dev/null"))
		skip_child("no ip command");
	CHECK(run("ip link set lo up"));
}

static int index_of(const char *name, struct netdev *list, int n)
{
	struct netdev *d = find(list, n, name);

	return d ? (int)(d - list) : -1;
}

static struct gid gid6(const char *hex32)
{
	struct gid g;

	for (int i = 0; i < 16; i++)
		CHECK(sscanf(hex32 + 2 * i, "%2hhx", &g.raw[i]) == 1);
	return g;
}

/* v0 <-> v1 in br0 (address); v0 has the default route; v2 <-> v3 (down), so
 * v2 has no carrier; v4 is down; v5 is up without any address. */
static void make_links(void)
{
	if (!run("ip link add v0 address 02:00:00:00:00:10 type veth "
		 "peer name v1 2>/dev/null"))
		skip_child("no veth in this kernel");
	if (!run("ip link add br0 type bridge 2>/dev/null"))
		skip_child("no bridge in this kernel");
	CHECK(run("ip link add v2 type veth peer name v3"));
	CHECK(run("ip link add v4 type veth peer name v5"));
	CHECK(run("ip link set v1 master br0"));
	CHECK(run("ip addr add 10.9.1.1/24 dev v1"));
	CHECK(run("ip addr add 10.9.0.1/24 dev v0"));
	CHECK(run("ip addr add 10.9.0.3/24 dev v0"));
	CHECK(run("ip -6 addr add fd01::1/64 dev v0 nodad"));
	CHECK(run("ip addr add 10.9.0.2/24 dev br0"));
	CHECK(run("ip addr add 10.9.2.1/24 dev v2"));
	CHECK(run("ip -6 addr add fd02::1/64 dev v2"));
	CHECK(run("ip addr add 10.9.4.1/24 dev v4"));
	CHECK(run("ip link set v5 addrgenmode none"));
	for (const char *const *d = (const char *const[]){ "v0", "v1", "br0",
							   "v2", "v5", NULL };
	     *d; d++) {
		char cmd[64];

		snprintf(cmd, sizeof(cmd), "ip link set %s up", *d);
		CHECK(run(cmd));
	}
	CHECK(run("ip link set v0 mtu 4200"));
	CHECK(run("ip route add default via 10.9.0.2 dev v0"));
}

/* The kernel works out operational states in the background and tells. */
static void await_carrier(void)
{
	struct pollfd p = { .events = POLLIN };
	struct netdev *list;
	bool settled;
	int n;

	CHECK(netdev_watch_fd(&p.fd) == 0);
	do {
		CHECK(netdev_list(&list, &n) == 0);
		settled = find(list, n, "v0")->running &&
			  !find(list, n, "v2")->running;
		free(list);
		if (!settled) {
			CHECK(poll(&p, 1, 10000) == 1);
			netdev_watch_drain(p.fd);
		}
	} while (!settled);
	close(p.fd);
}

static void check_list(void)
{
	struct gid first = gid_from_v4(0x0a090001);
	struct gid global = gid6("fd010000000000000000000000000001");
	struct gid tentative = gid6("fd020000000000000000000000000001");
	struct netdev *list, *v0, *v2;
	int n;

	CHECK(netdev_list(&list, &n) == 0);
	CHECK(n == 4);
	CHECK(index_of("v0", list, n) == 0);
	CHECK(index_of("lo", list, n) == 3);
	CHECK(index_of("br0", list, n) > 0);
	CHECK(index_of("v2", list, n) > 0);
	v0 = find(list, n, "v0");
	CHECK(v0->default_route);
	CHECK(v0->has_mac && v0->mac[0] == 2 && v0->mac[5] == 0x10);
	CHECK(v0->mtu_bytes == 4200);
	CHECK(v0->running);
	CHECK(v0->speed_mbps == 10000); /* what veth says */
	CHECK(v0->n_addrs >= 3);
	CHECK(gid_eq(&v0->addrs[0].gid, &first));
	CHECK(gid_is_v4(&v0->addrs[1].gid));
	CHECK(gid_eq(&v0->addrs[2].gid, &global));
	CHECK(v0->addrs[2].prefix_len == 64 && !v0->addrs[2].link_local);
	v2 = find(list, n, "v2");
	CHECK(!v2->running);
	CHECK(!v2->default_route);
	CHECK(!has_addr(v2, &tentative));
	free(list);
}

static void check_vlan(void)
{
	struct netdev *list, *vl;
	int n;

	if (!run("ip link add link v0 name vl7 type vlan id 7 2>/dev/null")) {
		printf("# no VLAN netdevs in this kernel\n");
		fflush(stdout);
		return;
	}
	CHECK(run("ip addr add 10.9.7.1/24 dev vl7"));
	CHECK(run("ip link set vl7 up"));
	CHECK(netdev_list(&list, &n) == 0);
	vl = find(list, n, "vl7");
	CHECK(vl && vl->vlan == 7);
	CHECK(netdev_node_guid(vl) != netdev_node_guid(find(list, n, "v0")));
	free(list);
}

static void check_watch(void)
{
	struct netdev *d;
	struct netdev *list;
	struct pollfd p = { .events = POLLIN };
	uint32_t ifindex;
	int n, n_addrs;

	CHECK(netdev_list(&list, &n) == 0);
	ifindex = find(list, n, "v0")->ifindex;
	n_addrs = find(list, n, "v0")->n_addrs;
	free(list);
	CHECK(netdev_watch_fd(&p.fd) == 0);
	CHECK(!netdev_watch_drain(p.fd));
	CHECK(run("ip addr add 10.9.0.7/24 dev v0"));
	CHECK(poll(&p, 1, 5000) == 1);
	CHECK(netdev_watch_drain(p.fd));
	CHECK(netdev_get(ifindex, &d) == 0);
	CHECK(d->n_addrs == n_addrs + 1);
	free(d);
	CHECK(run("ip link set v0 down"));
	CHECK(poll(&p, 1, 5000) == 1);
	CHECK(netdev_watch_drain(p.fd));
	CHECK(netdev_get(ifindex, &d) == 0);
	CHECK(!d->running);
	free(d);
	CHECK(run("ip link del v0"));
	CHECK(netdev_get(ifindex, &d) == -ENODEV);
	close(p.fd);
}

static void test_namespace(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(60);
		enter_namespace();
		make_links();
		await_carrier();
		check_list();
		check_vlan();
		check_watch();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIP)
		skip();
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loopback),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_guid),
		cmocka_unit_test(test_namespace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
