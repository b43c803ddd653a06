/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * event.h - pending events of one object: a set of kinds, each pending at most
 * once, and the object's place in the hca's line (hca_event.c).
 */
#ifndef SOFTHCA_CORE_OBJ_EVENT_H
#define SOFTHCA_CORE_OBJ_EVENT_H

#include <stdint.h>

#include "base/dlist.h"
#include "core/types.h"

enum event_owner {
	EVENT_OWNER_PORT,
	EVENT_OWNER_QP,
	EVENT_OWNER_CQ,
	EVENT_OWNER_SRQ,
	EVENT_OWNER_CM, /* bits are 1 << enum cm_event */
};

#define EVENT_BIT_COMP 31 /* beside the bits 1 << enum async_type */

struct event_src {
	struct dlist node;
	uint32_t pending;
	enum event_owner owner;
};

void event_init(struct event_src *e, enum event_owner owner);
/* Puts the bit's event in line unless it is pending already. */
void event_raise(struct hca *hca, struct event_src *e, uint32_t bit);
/* Forgets what is pending. */
void event_forget(struct event_src *e);

#endif
