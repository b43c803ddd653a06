/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xrcd.h - XRC domains: which target QPs may reach which SRQs. */
#ifndef SOFTHCA_CORE_XRC_XRCD_H
#define SOFTHCA_CORE_XRC_XRCD_H

#include "core/verbs.h"

struct xrcd {
	struct hca *hca;
	uint32_t id;
	uint32_t refs; /* SRQs, target QPs */
};

#endif
