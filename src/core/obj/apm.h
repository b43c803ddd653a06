/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * apm.h - automatic path migration [IBA 17.2.8]: a connected QP with an
 * alternate path changes over to it when its retries on the primary are used
 * up, when the peer has done so, or when its consumer says so.
 *
 *              modify(REARM)           heard: MigReq 0
 *   MIGRATED ----------------> REARM -----------------> ARMED
 *      ^                                                  |
 *      '--------------------------------------------------'
 *          heard: MigReq 1 on the alternate path; retries used up;
 *          modify(MIGRATED)
 *
 * MIGRATED is told to the peer by MigReq in every packet.
 */
#ifndef SOFTHCA_CORE_OBJ_APM_H
#define SOFTHCA_CORE_OBJ_APM_H

#include "core/obj/qp.h"

static inline bool apm_migreq(const struct qp *qp)
{
	return qp->attr.mig_state == MIG_STATE_MIGRATED;
}

/* ARMED, and the frame came by the alternate path. */
bool apm_on_alternate(const struct qp *qp, const struct rx_frame *f);

/* A packet of the peer was admitted. */
void apm_heard(struct qp *qp, const struct rx_frame *f, bool migreq);

/* Where the alternate path has the place of the primary afterwards, with its
 * timeout and P_Key, and PATH_MIG is raised. False: not ARMED, and nothing
 * changed. A frame that the driver still holds leaves by the new path. */
bool apm_migrate(struct qp *qp);

#endif
