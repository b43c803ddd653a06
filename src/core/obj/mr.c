/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/mr.h"

#include <errno.h>

#include "base/mutant.h"
#include "core/obj/hca_priv.h"
#include "core/obj/idtab.h"
#include "core/obj/pd.h"

#define ACCESS_KNOWN                                                           \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |       \
	 ACCESS_REMOTE_ATOMIC | ACCESS_MW_BIND | ACCESS_ZERO_BASED |           \
	 ACCESS_ON_DEMAND | ACCESS_HUGETLB | ACCESS_OPTIONAL_RANGE)

/* A remote write is a local write too [IBA 10.6.3.1, bug log B091]. */
static bool access_ok(uint32_t access)
{
	if (access & ~(uint32_t)ACCESS_KNOWN)
		return false;
	return (access & ACCESS_LOCAL_WRITE) ||
	       !(access & (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC));
}

/* The last byte may be the last of the address space. */
static bool wraps(uint64_t addr, uint64_t len)
{
	return len > 0 && addr + (len - 1) < addr;
}

static int range_check(const struct hca *hca, const struct mr_attr *attr)
{
	if (wraps(attr->va, attr->len_bytes) ||
	    wraps(attr->iova, attr->len_bytes))
		return -EINVAL;
	if (attr->len_bytes > hca->cfg.limits.max_mr_bytes)
		return -ENOMEM;
	return 0;
}

static void set_range(struct mr *mr, const struct mr_attr *attr)
{
	mr->va = attr->va;
	mr->iova = mr->access & ACCESS_ZERO_BASED ? 0 : attr->iova;
	mr->len_bytes = attr->len_bytes;
}

int mr_reg(struct pd *pd, const struct mr_attr *attr, struct mr **ret_mr)
{
	struct hca *hca = pd->hca;
	struct mr *mr;
	int rc;

	if (!access_ok(attr->access))
		return -EINVAL;
	rc = range_check(hca, attr);
	if (rc)
		return rc;
	mr = hca_alloc(hca, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	mr->pd = pd;
	mr->access = attr->access;
	set_range(mr, attr);
	rc = idtab_add(hca->mrs, mr, &mr->index);
	if (rc) {
		hca_release(hca, mr);
		return rc;
	}
	mr->key = mr->index << 8 | (prng_u32(&hca->rng) & 0xff);
	pd->refs++;
	*ret_mr = mr;
	return 0;
}

int mr_dereg(struct mr *mr)
{
	struct hca *hca = mr->pd->hca;

	idtab_remove(hca->mrs, mr->index);
	mr->pd->refs--;
	hca_release(hca, mr);
	return 0;
}

int mr_rereg(struct mr *mr, uint32_t flags, struct pd *pd,
	     const struct mr_attr *attr)
{
	struct hca *hca = mr->pd->hca;
	uint8_t byte = (uint8_t)mr->key;

	if (!flags || (flags & ~(uint32_t)(MR_REREG_TRANSLATION | MR_REREG_PD |
					   MR_REREG_ACCESS)))
		return -EINVAL;
	if ((flags & MR_REREG_PD) && (!pd || pd->hca != hca))
		return -EINVAL;
	if ((flags & MR_REREG_ACCESS) && !access_ok(attr->access))
		return -EINVAL;
	if (flags & MR_REREG_TRANSLATION) {
		int rc = range_check(hca, attr);

		if (rc)
			return rc;
	}
	if (flags & MR_REREG_ACCESS)
		mr->access = attr->access;
	if (flags & MR_REREG_TRANSLATION)
		set_range(mr, attr);
	if (flags & MR_REREG_PD) {
		mr->pd->refs--;
		mr->pd = pd;
		pd->refs++;
	}
	if (!(flags & MR_REREG_TRANSLATION))
		return 0;
	/* Any byte but the old one. */
	byte = (uint8_t)(byte + 1 + prng_below(&hca->rng, 255));
	mr->key = mr->index << 8 | byte;
	return 0;
}

uint32_t mr_key(const struct mr *mr)
{
	return mr->key;
}

struct mr *mr_check(struct hca *hca, const struct pd *pd, uint32_t key,
		    uint64_t addr, uint64_t len, uint32_t access,
		    uint64_t *ret_va)
{
	struct mr *mr = idtab_get(hca->mrs, key >> 8);

	if (!mr || (mr->key != key && !MUTANT(key_byte_ignored)) ||
	    (mr->pd != pd && !MUTANT(pd_ignored)) ||
	    ((mr->access & access) != access && !MUTANT(access_ignored)))
		return NULL;
	/* Differences only: a sum could wrap (bug log B025, B086). */
	if ((addr < mr->iova || addr - mr->iova > mr->len_bytes ||
	     len > mr->len_bytes - (addr - mr->iova) +
			     MUTANT(bounds_one_more)) &&
	    !MUTANT(bounds_ignored))
		return NULL;
	*ret_va = mr->va + (addr - mr->iova);
	return mr;
}
