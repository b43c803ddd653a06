/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/ah.h"

#include <errno.h>

#include "core/obj/hca_priv.h"
#include "core/obj/idtab.h"
#include "core/obj/path.h"
#include "core/obj/pd.h"

int ah_create(struct pd *pd, const struct ah_attr *attr, struct ah **ret_ah)
{
	struct hca *hca = pd->hca;
	struct path path;
	struct ah *ah;
	int rc;

	rc = path_resolve(hca, attr, &path);
	if (rc)
		return rc;
	ah = hca_alloc(hca, sizeof(*ah));
	if (!ah)
		return -ENOMEM;
	ah->pd = pd;
	ah->path = path;
	rc = idtab_add(hca->ahs, ah, &ah->id);
	if (rc) {
		hca_release(hca, ah);
		return rc;
	}
	pd->refs++;
	*ret_ah = ah;
	return 0;
}

int ah_destroy(struct ah *ah)
{
	struct hca *hca = ah->pd->hca;

	idtab_remove(hca->ahs, ah->id);
	ah->pd->refs--;
	hca_release(hca, ah);
	return 0;
}

const struct path *ah_path(const struct ah *ah)
{
	return &ah->path;
}
