/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/apm.h"

#include "core/obj/direct.h"

bool apm_on_alternate(const struct qp *qp, const struct rx_frame *f)
{
	return qp->attr.mig_state == MIG_STATE_ARMED &&
	       gid_eq(&f->src, &qp->alt_path.dgid) &&
	       gid_eq(&f->dst, &qp->alt_path.sgid);
}

bool apm_migrate(struct qp *qp)
{
	struct qp_attr *a = &qp->attr;

	if (a->mig_state != MIG_STATE_ARMED)
		return false;
	a->mig_state = MIG_STATE_MIGRATED;
	a->ah = a->alt_ah;
	a->port_num = a->alt_port_num;
	a->pkey_index = a->alt_pkey_index;
	a->timeout = a->alt_timeout;
	qp->pkey = hca_pkey(qp->hca, a->pkey_index);
	qp->path = qp->alt_path;
	qp->direct = false;
	qp_set_sl(qp, qp->path.sl);
	direct_grant_changed(qp);
	qp_event(qp, ASYNC_PATH_MIG);
	return true;
}

void apm_heard(struct qp *qp, const struct rx_frame *f, bool migreq)
{
	if (qp->attr.mig_state == MIG_STATE_REARM && !migreq)
		qp->attr.mig_state = MIG_STATE_ARMED;
	else if (migreq && apm_on_alternate(qp, f))
		(void)apm_migrate(qp);
}
