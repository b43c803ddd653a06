/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mcast.h - multicast: which UD QPs are attached to which groups
 * [IBA 10.5, 11.3].
 */
#ifndef SOFTHCA_CORE_OBJ_MCAST_H
#define SOFTHCA_CORE_OBJ_MCAST_H

#include "core/obj/qp.h"

struct mcast {		   /* one attachment */
	struct dlist node; /* in hca->mcasts */
	struct gid mgid;   /* as the program names it */
	struct gid v4;	   /* as it arrives by IPv4 */
	struct qp *qp;
};

/* The next attachment to the group that is a frame's destination; NULL ends.
 * Start with *pos = NULL; deliveries between calls destroy nothing. */
struct mcast *mcast_next(struct hca *hca, const struct gid *dst,
			 struct dlist **pos);

/* All of them, when the hca goes. */
void mcast_forget_qp(struct qp *qp);

#endif
