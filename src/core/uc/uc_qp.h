/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* uc_qp.h - the UC part of a QP: req is uc.c's (through unack.c), rsp is
 * uc_rsp.c's. */
#ifndef SOFTHCA_CORE_UC_UC_QP_H
#define SOFTHCA_CORE_UC_UC_QP_H

#include "core/uc/uc_rsp.h"
#include "core/uc/unack.h"

struct uc {
	struct unack req;
	struct uc_rsp rsp;
};

static inline struct uc *uc_of(struct qp *qp)
{
	return (struct uc *)(void *)qp->transport_state;
}

#endif
