/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * path_map.h - where programs look for RDMA hardware, and where they find it.
 */
#ifndef SOFTHCA_SHIM_PATH_MAP_H
#define SOFTHCA_SHIM_PATH_MAP_H

#define PATH_MAP_MAX 512

/* What to use in place of path: path itself, or buf filled. With T the tree
 * that `softhca run` made ($SOFTHCA_SYSFS) and D one of its devices:
 *   /sys/class/infiniband...   T/class/infiniband...  (infiniband_verbs too)
 *   /dev/infiniband            T/dev/infiniband
 *   /dev/infiniband/D          /dev/null
 * Needs no lock, allocates nothing; errno untouched. */
const char *path_map(const char *path, char buf[PATH_MAP_MAX]);

#endif
