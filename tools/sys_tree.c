/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sys_tree.c - a directory that looks like the parts of sysfs that programs
 * read about RDMA devices.
 *
 *   BASE/softhca/net-<network namespace>/
 *       class/infiniband/<device>/{node_type,node_guid,...}
 *           device/net/<interface>/
 *           ports/1/{state,rate,link_layer,...}
 *               gids/<i>  pkeys/0  gid_attrs/{types,ndevs}/<i>
 *       class/infiniband_verbs/<device>/ibdev
 *       dev/infiniband/
 *
 * BASE is the first of $XDG_RUNTIME_DIR, /tmp/softhca-<uid> and
 * /dev/shm/softhca-<uid> that can be written to, is ours and nobody else's.
 * Files are replaced by rename, so that programs of an earlier run never read
 * half of one. What is stale stays until its device is there again: no program
 * asks for it. All may read: a program that changes its user still sees it.
 */
#include "tools/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rt/netdev.h"
#include "rt/rt.h"

#define PORT "ports/1"

/* Everything below one directory; the first error stays. */
struct tree {
	int root; /* fd */
	int rc;
};

static void tree_fail(struct tree *t)
{
	if (!t->rc)
		t->rc = -errno;
}

/* Makes rel and the directories above it. */
static void make_dirs(struct tree *t, const char *rel)
{
	char part[CMD_PATH_MAX];
	size_t i, n = strlen(rel);

	for (i = 1; i <= n && n < sizeof(part); i++) {
		if (rel[i] != '/' && rel[i] != '\0')
			continue;
		memcpy(part, rel, i);
		part[i] = '\0';
		if (mkdirat(t->root, part, 0755) && errno != EEXIST)
			tree_fail(t);
	}
}

static void put_file(struct tree *t, const char *rel, const char *text)
{
	char tmp[CMD_PATH_MAX + 32];
	size_t n = strlen(text);
	int fd;

	snprintf(tmp, sizeof(tmp), "%s.%ld", rel, (long)getpid());
	fd = openat(t->root, tmp,
		    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		    0644);
	if (fd < 0) {
		tree_fail(t);
		return;
	}
	if (write(fd, text, n) != (ssize_t)n)
		tree_fail(t);
	close(fd);
	if (renameat(t->root, tmp, t->root, rel))
		tree_fail(t);
}

/* One line in a file of the directory dir, which is there. */
__attribute__((format(printf, 4, 5))) static void put(struct tree *t,
						      const char *dir,
						      const char *name,
						      const char *fmt, ...)
{
	char rel[CMD_PATH_MAX], text[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text) - 1, fmt, ap);
	va_end(ap);
	if (n < 0 || n >= (int)sizeof(text) - 1 ||
	    snprintf(rel, sizeof(rel), "%s/%s", dir, name) >=
		    (int)sizeof(rel)) {
		errno = ENAMETOOLONG;
		tree_fail(t);
		return;
	}
	strcat(text, "\n");
	put_file(t, rel, text);
}

static void put_guid(struct tree *t, const char *dir, const char *name,
		     uint64_t g)
{
	put(t, dir, name, "%04x:%04x:%04x:%04x", (unsigned)(g >> 48) & 0xffff,
	    (unsigned)(g >> 32) & 0xffff, (unsigned)(g >> 16) & 0xffff,
	    (unsigned)g & 0xffff);
}

static void put_gid(struct tree *t, const char *port, int index,
		    const struct gid *g, const char *ifname)
{
	char dir[CMD_PATH_MAX + 32], name[16], text[40];
	int i, n = 0;

	snprintf(name, sizeof(name), "%d", index);
	for (i = 0; i < 16; i += 2)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s%02x%02x",
			      i ? ":" : "", g->raw[i], g->raw[i + 1]);
	snprintf(dir, sizeof(dir), "%s/gids", port);
	put(t, dir, name, "%s", text);
	snprintf(dir, sizeof(dir), "%s/gid_attrs/types", port);
	put(t, dir, name, "RoCE v2");
	snprintf(dir, sizeof(dir), "%s/gid_attrs/ndevs", port);
	put(t, dir, name, "%s", ifname);
}

/* An interface may have had more addresses in an earlier run. */
static void drop_gids(struct tree *t, const char *port, int from)
{
	static const char *const subs[] = { "gid_attrs/types",
					    "gid_attrs/ndevs", "gids" };
	char rel[CMD_PATH_MAX + 32];
	bool there = true;
	size_t k;

	for (; there; from++)
		for (k = 0; k < sizeof(subs) / sizeof(subs[0]); k++) {
			snprintf(rel, sizeof(rel), "%s/%s/%d", port, subs[k],
				 from);
			there = !unlinkat(t->root, rel, 0);
		}
}

static void put_port(struct tree *t, const char *dev, const struct netdev *nd)
{
	static const char *const subs[] = { "gids", "pkeys", "gid_attrs/types",
					    "gid_attrs/ndevs" };
	char port[CMD_PATH_MAX], dir[CMD_PATH_MAX + 32];
	size_t k;
	int i;

	snprintf(port, sizeof(port), "%s/" PORT, dev);
	for (k = 0; k < sizeof(subs) / sizeof(subs[0]); k++) {
		snprintf(dir, sizeof(dir), "%s/%s", port, subs[k]);
		make_dirs(t, dir);
	}
	put(t, port, "state", "%s", nd->running ? "4: ACTIVE" : "1: DOWN");
	put(t, port, "phys_state", "%s",
	    nd->running ? "5: LinkUp" : "3: Disabled");
	put(t, port, "rate", "%u Gb/sec (1X)",
	    nd->speed_mbps >= 1000 ? nd->speed_mbps / 1000 : 1);
	put(t, port, "link_layer", "Ethernet");
	put(t, port, "lid", "0x0");
	put(t, port, "lid_mask_count", "0");
	put(t, port, "sm_lid", "0x0");
	put(t, port, "sm_sl", "0");
	put(t, port, "cap_mask", "0x04010000");
	snprintf(dir, sizeof(dir), "%s/pkeys", port);
	put(t, dir, "0", "0xffff");
	for (i = 0; i < nd->n_addrs; i++)
		put_gid(t, port, i, &nd->addrs[i].gid, nd->name);
	drop_gids(t, port, nd->n_addrs);
}

static void put_device(struct tree *t, const struct rt_device *d)
{
	char dev[RT_NAME_MAX + 64], dir[RT_NAME_MAX + 128];
	struct netdev *nd;

	if (netdev_get(d->ifindex, &nd))
		return; /* gone since it was listed */
	snprintf(dev, sizeof(dev), "class/infiniband/%s", d->name);
	snprintf(dir, sizeof(dir), "%s/device/net/%s", dev, d->ifname);
	make_dirs(t, dir);
	put(t, dev, "node_type", "1: CA");
	put_guid(t, dev, "node_guid", d->node_guid);
	put_guid(t, dev, "sys_image_guid", d->node_guid);
	put(t, dev, "node_desc", "softhca on %s", d->ifname);
	put(t, dev, "fw_ver", SOFTHCA_VERSION);
	put(t, dev, "hw_rev", "0");
	put(t, dev, "board_id", "SOFTHCA");
	snprintf(dir, sizeof(dir), "%s/device", dev);
	put(t, dir, "numa_node", "-1");
	put_port(t, dev, nd);
	snprintf(dir, sizeof(dir), "class/infiniband_verbs/%s", d->name);
	make_dirs(t, dir);
	put(t, dir, "ibdev", "%s", d->name);
	free(nd);
}

/* ---- where it is ---- */

static bool is_own_dir(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISDIR(st.st_mode) &&
	       st.st_uid == geteuid() && !(st.st_mode & 022);
}

/* Makes path if need be. 0, -errno; -EPERM: it is not ours alone. */
static int own_dir(const char *path)
{
	if (mkdir(path, 0755) && errno != EEXIST)
		return -errno;
	if (!is_own_dir(path))
		return -EPERM;
	return access(path, W_OK) ? -errno : 0;
}

static int tree_dir(const char *base, char ret[CMD_PATH_MAX])
{
	struct stat ns;
	int rc = own_dir(base);

	if (rc)
		return rc;
	if (stat("/proc/self/ns/net", &ns))
		ns.st_ino = 0; /* a kernel without namespaces */
	if (snprintf(ret, CMD_PATH_MAX, "%s/net-%llu", base,
		     (unsigned long long)ns.st_ino) >= CMD_PATH_MAX)
		return -ENAMETOOLONG;
	return own_dir(ret);
}

static int fill(struct tree *t)
{
	struct rt_device *list;
	int i, n, rc;

	make_dirs(t, "class/infiniband");
	make_dirs(t, "class/infiniband_verbs");
	make_dirs(t, "dev/infiniband");
	put(t, "class/infiniband_verbs", "abi_version", "6");
	rc = rt_devices(&list, &n);
	if (rc)
		return rc;
	for (i = 0; i < n; i++)
		put_device(t, &list[i]);
	free(list);
	return t->rc;
}

static int make_in(const char *base, char ret_path[CMD_PATH_MAX])
{
	struct tree t = { 0 };
	int rc = tree_dir(base, ret_path);

	if (!rc) {
		t.root = open(ret_path, O_DIRECTORY | O_PATH | O_CLOEXEC);
		rc = t.root < 0 ? -errno : fill(&t);
		if (t.root >= 0)
			close(t.root);
	}
	if (rc)
		remark("%s: %s", base,
		       rc == -EPERM ? "not a directory of yours alone"
				    : strerror(-rc));
	return rc;
}

int sys_tree_make(char ret_path[CMD_PATH_MAX])
{
	static const char *const tops[] = { "/tmp", "/dev/shm" };
	const char *run = getenv("XDG_RUNTIME_DIR");
	char base[CMD_PATH_MAX];
	int rc = -ENOENT;
	size_t i;

	if (run && run[0] == '/' && is_own_dir(run) &&
	    snprintf(base, sizeof(base), "%s/softhca", run) < (int)sizeof(base))
		rc = make_in(base, ret_path);
	for (i = 0; rc && i < sizeof(tops) / sizeof(tops[0]); i++) {
		snprintf(base, sizeof(base), "%s/softhca-%u", tops[i],
			 (unsigned)geteuid());
		rc = make_in(base, ret_path);
	}
	if (rc)
		remark("no directory for a tree like /sys/class/infiniband: "
		       "the program does not see one");
	return rc;
}
