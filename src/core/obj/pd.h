/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pd.h - protection domains: an identity and a count of users. */
#ifndef SOFTHCA_CORE_OBJ_PD_H
#define SOFTHCA_CORE_OBJ_PD_H

#include "core/verbs.h"

struct pd {
	struct hca *hca;
	uint32_t id;
	uint32_t refs; /* MRs, QPs, SRQs, AHs */
};

#endif
