/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/pd.h"

#include <errno.h>

#include "core/obj/hca_priv.h"
#include "core/obj/idtab.h"

int pd_create(struct hca *hca, struct pd **ret_pd)
{
	struct pd *pd = hca_alloc(hca, sizeof(*pd));
	int rc;

	if (!pd)
		return -ENOMEM;
	pd->hca = hca;
	rc = idtab_add(hca->pds, pd, &pd->id);
	if (rc) {
		hca_release(hca, pd);
		return rc;
	}
	*ret_pd = pd;
	return 0;
}

uint32_t pd_num(const struct pd *pd)
{
	return pd->id;
}

int pd_destroy(struct pd *pd)
{
	struct hca *hca = pd->hca;

	if (pd->refs)
		return -EBUSY;
	idtab_remove(hca->pds, pd->id);
	hca_release(hca, pd);
	return 0;
}
