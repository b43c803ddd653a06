/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fabswitch.h - a switch (fabric/netswitch.h) as a node of a fabric. */
#ifndef SOFTHCA_SIM_FABSWITCH_H
#define SOFTHCA_SIM_FABSWITCH_H

#include "sim/fab.h"

struct fabswitch {
	struct fab_node node;
	struct netswitch *sw;
	struct world_event timer;
	/* Sees every frame that was let in, before it is queued; or NULL: a
	 * mirror port. */
	void (*mirror)(void *ctx, const struct fab_frame *f, int64_t now_ns);
	void *mirror_ctx;
};

/* -EINVAL: the config (netswitch_config_check); -ENOMEM. */
MUST_USE int fabswitch_init(struct fabswitch *s, struct fab *fab,
			    const struct netswitch_config *cfg);
void fabswitch_fini(struct fabswitch *s);

#endif
