/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cmd_devices.c - `softhca devices`: what a program would see, without one.
 */
#include "tools/cmd.h"

#include <argp.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt/netdev.h"
#include "rt/rt.h"

static void print_gid(const struct gid *g, char ret[INET6_ADDRSTRLEN])
{
	if (!inet_ntop(AF_INET6, g->raw, ret, INET6_ADDRSTRLEN))
		strcpy(ret, "?");
}

static void print_device(const struct rt_device *d)
{
	char text[INET6_ADDRSTRLEN];
	struct netdev *nd;
	int i, rc;

	printf("%s on %s, node GUID %016llx", d->name, d->ifname,
	       (unsigned long long)d->node_guid);
	rc = netdev_get(d->ifindex, &nd);
	if (rc) {
		printf(": %s\n", strerror(-rc));
		return;
	}
	printf(", MTU %u, %s\n", nd->mtu_bytes, nd->running ? "up" : "down");
	for (i = 0; i < nd->n_addrs; i++) {
		print_gid(&nd->addrs[i].gid, text);
		printf("  GID %d  %s\n", i, text);
	}
	free(nd);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key == ARGP_KEY_ARG)
		argp_usage(state);
	return key == ARGP_KEY_ARG ? 0 : ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
	.parser = parse,
	.doc = "Lists softhca's devices: one for each usable network "
	       "interface of this network namespace.",
};

int cmd_devices(int argc, char **argv)
{
	struct rt_device *list;
	int i, n, rc;

	argp_err_exit_status = EXIT_OURS;
	argv[0] = (char *)"softhca devices";
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	rc = rt_devices(&list, &n);
	if (rc) {
		complain("cannot list network interfaces: %s", strerror(-rc));
		return EXIT_OURS;
	}
	for (i = 0; i < n; i++)
		print_device(&list[i]);
	free(list);
	if (!n)
		complain("no usable network interface (up, with an address)");
	return n ? 0 : 1;
}
