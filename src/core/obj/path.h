/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* path.h - from an address vector to a path, and the choice of UDP ports. */
#ifndef SOFTHCA_CORE_OBJ_PATH_H
#define SOFTHCA_CORE_OBJ_PATH_H

#include "core/verbs.h"

/* Copies the GID entry that attr names. -EINVAL: port, GID index, no global
 * route where the link layer needs one, a zero destination, an address family
 * that is not the source's, or fields above their width. [E] */
MUST_USE int path_resolve(const struct hca *hca, const struct ah_attr *attr,
			  struct path *ret_path);

/* The largest payload that the netdev of the path's GID entry carries. */
enum mtu_code path_max_mtu(const struct hca *hca, const struct path *path,
			   uint32_t sgid_index);

/* 0xc000..0xffff: from the flow label when there is one, else from the two
 * QPNs, the same in both directions [IBA A17.9.1]. */
uint16_t path_sport(uint32_t flow_label, uint32_t qpn, uint32_t dest_qpn);

#endif
