/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/mkey.h"

#include "base/mutant.h"
#include "core/obj/hca_priv.h"
#include "core/obj/idtab.h"
#include "core/obj/pd.h"
#include "core/obj/qp.h"

int mkey_add(struct mkey *k, struct pd *pd)
{
	struct hca *hca = pd->hca;
	int rc = idtab_add(hca->mkeys, k, &k->index);

	if (rc)
		return rc;
	k->pd = pd;
	k->key = k->index << 8 | (prng_u32(&hca->rng) & 0xff);
	pd->refs++;
	return 0;
}

void mkey_remove(struct mkey *k)
{
	idtab_remove(k->pd->hca->mkeys, k->index);
	k->pd->refs--;
}

void mkey_rotate(struct mkey *k)
{
	uint8_t byte = (uint8_t)k->key;

	byte = (uint8_t)(byte + 1 + prng_below(&k->pd->hca->rng, 255));
	k->key = k->index << 8 | byte;
}

struct mkey *mkey_at(const struct hca *hca, uint32_t index)
{
	return idtab_get(hca->mkeys, index);
}

struct mkey *mkey_find(const struct hca *hca, uint32_t key)
{
	struct mkey *k = mkey_at(hca, key >> 8);

	return k && (k->key == key || MUTANT(key_byte_ignored)) ? k : NULL;
}

bool mkey_holds(const struct mkey *k, uint64_t addr, uint64_t len,
		uint64_t *ret_va)
{
	/* Differences only: a sum could wrap (bug log B025, B086). */
	if ((addr < k->iova || addr - k->iova > k->len_bytes ||
	     len > k->len_bytes - (addr - k->iova) + MUTANT(bounds_one_more)) &&
	    !MUTANT(bounds_ignored))
		return false;
	*ret_va = k->va + (addr - k->iova);
	return true;
}

static bool grants(const struct mkey *k, const struct pd *pd, uint32_t access)
{
	return (k->pd == pd || MUTANT(pd_ignored)) &&
	       ((k->access & access) == access || MUTANT(access_ignored));
}

const struct mkey *mkey_local(const struct hca *hca, const struct pd *pd,
			      uint32_t lkey, uint64_t addr, uint64_t len,
			      uint32_t access, uint64_t *ret_va)
{
	const struct mkey *k = mkey_find(hca, lkey);

	if (!k || k->window || !grants(k, pd, access) ||
	    !mkey_holds(k, addr, len, ret_va))
		return NULL;
	return k;
}

bool mkey_remote(const struct qp *qp, const struct pd *pd, uint32_t rkey,
		 uint64_t addr, uint64_t len, uint32_t access, uint64_t *ret_va)
{
	const struct mkey *k = mkey_find(qp->hca, rkey);

	return k && (!k->qp || k->qp == qp) && grants(k, pd, access) &&
	       mkey_holds(k, addr, len, ret_va);
}
