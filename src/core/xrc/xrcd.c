/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/xrc/xrcd.h"

#include <errno.h>

#include "core/obj/hca_priv.h"
#include "core/obj/idtab.h"
#include "core/obj/qp.h"

int xrcd_create(struct hca *hca, struct xrcd **ret_xrcd)
{
	struct xrcd *x = hca_alloc(hca, sizeof(*x));
	int rc;

	if (!x)
		return -ENOMEM;
	x->hca = hca;
	rc = idtab_add(hca->xrcds, x, &x->id);
	if (rc) {
		hca_release(hca, x);
		return rc;
	}
	*ret_xrcd = x;
	return 0;
}

int xrcd_destroy(struct xrcd *xrcd)
{
	struct hca *hca = xrcd->hca;

	if (xrcd->refs)
		return -EBUSY;
	idtab_remove(hca->xrcds, xrcd->id);
	hca_release(hca, xrcd);
	return 0;
}

struct qp *xrcd_qp(const struct xrcd *xrcd, uint32_t qpn)
{
	struct qp *qp = hca_find_qp(xrcd->hca, qpn);

	return qp && qp->xrcd == xrcd ? qp : NULL;
}
