/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ah.h - address handles: a path that never changes. */
#ifndef SOFTHCA_CORE_OBJ_AH_H
#define SOFTHCA_CORE_OBJ_AH_H

#include "core/verbs.h"

struct ah {
	struct pd *pd;
	uint32_t id;
	struct path path; /* immutable: posting threads copy it */
};

#endif
