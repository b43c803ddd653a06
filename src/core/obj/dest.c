/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/dest.h"

#include "core/obj/hca_priv.h"

struct dest *dest_get(struct hca *hca, const struct path *path,
		      uint32_t dest_qpn)
{
	uint32_t slot = dest_qpn >> hca->cfg.qpn_bits;
	struct dest *d;

	for (struct dlist *n = hca->dests.next; n != &hca->dests; n = n->next) {
		d = CONTAINER_OF(n, struct dest, node);
		if (d->slot == slot && d->out == path->out &&
		    gid_eq(&d->dgid, &path->dgid)) {
			d->refs++;
			return d;
		}
	}
	d = hca_alloc(hca, sizeof(*d));
	if (!d)
		return NULL;
	d->dgid = path->dgid;
	d->slot = slot;
	d->out = path->out;
	d->refs = 1;
	budget_init(&d->budget, path->out ? 0 : hca->cfg.dest_budget_bytes);
	dlist_push_back(&hca->dests, &d->node);
	return d;
}

void dest_put(struct hca *hca, struct dest *d)
{
	if (!d || --d->refs)
		return;
	ASSERT(dlist_empty(&d->budget.waiters));
	dlist_remove(&d->node);
	hca_release(hca, d);
}
