/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/mr.h"

#include <errno.h>

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

/* All of memory, nothing of which need be there [ibv_reg_mr(3), implicit
 * on-demand paging]. */
static bool is_implicit(const struct mr_attr *attr)
{
	return attr->access & ACCESS_ON_DEMAND && attr->va == 0 &&
	       attr->iova == 0 && attr->len_bytes == UINT64_MAX;
}

static int range_check(const struct hca *hca, const struct mr_attr *attr)
{
	if (is_implicit(attr))
		return 0;
	if (wraps(attr->va, attr->len_bytes) ||
	    wraps(attr->iova, attr->len_bytes))
		return -EINVAL;
	if (attr->len_bytes > hca->cfg.limits.max_mr_bytes)
		return -ENOMEM;
	return 0;
}

static void set_range(struct mkey *k, const struct mr_attr *attr)
{
	k->va = attr->va;
	k->iova = k->access & ACCESS_ZERO_BASED ? 0 : attr->iova;
	k->len_bytes = attr->len_bytes;
}

/* A region without its range. */
static int mr_new(struct pd *pd, uint32_t access, struct mr **ret_mr)
{
	struct hca *hca = pd->hca;
	struct mr *mr;
	int rc;

	if (hca->mrs >= hca->cfg.limits.max_mr)
		return -ENOMEM;
	mr = hca_alloc(hca, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	mr->k.access = access;
	rc = mkey_add(&mr->k, pd);
	if (rc) {
		hca_release(hca, mr);
		return rc;
	}
	hca->mrs++;
	*ret_mr = mr;
	return 0;
}

int mr_reg(struct pd *pd, const struct mr_attr *attr, struct mr **ret_mr)
{
	int rc;

	if (!access_ok(attr->access))
		return -EINVAL;
	rc = range_check(pd->hca, attr);
	if (rc)
		return rc;
	rc = mr_new(pd, attr->access, ret_mr);
	if (!rc)
		set_range(&(*ret_mr)->k, attr);
	return rc;
}

int mr_reg_null(struct pd *pd, struct mr **ret_mr)
{
	int rc = mr_new(pd, ACCESS_LOCAL_WRITE, ret_mr);

	if (rc)
		return rc;
	(*ret_mr)->k.null = true;
	(*ret_mr)->k.len_bytes = UINT64_MAX;
	return 0;
}

int mr_dereg(struct mr *mr)
{
	struct hca *hca = mr->k.pd->hca;

	if (mr->windows)
		return -EBUSY;
	mkey_remove(&mr->k);
	hca->mrs--;
	hca_release(hca, mr);
	return 0;
}

static int rereg_check(const struct mr *mr, uint32_t flags, const struct pd *pd,
		       const struct mr_attr *attr)
{
	struct hca *hca = mr->k.pd->hca;

	if (!flags || (flags & ~(uint32_t)(MR_REREG_TRANSLATION | MR_REREG_PD |
					   MR_REREG_ACCESS)))
		return -EINVAL;
	if ((flags & MR_REREG_PD) && (!pd || pd->hca != hca))
		return -EINVAL;
	if ((flags & MR_REREG_ACCESS) && !access_ok(attr->access))
		return -EINVAL;
	if (mr->k.null)
		return -EINVAL;
	if (mr->windows)
		return -EBUSY;
	return flags & MR_REREG_TRANSLATION ? range_check(hca, attr) : 0;
}

int mr_rereg(struct mr *mr, uint32_t flags, struct pd *pd,
	     const struct mr_attr *attr)
{
	int rc = rereg_check(mr, flags, pd, attr);

	if (rc)
		return rc;
	if (flags & MR_REREG_ACCESS)
		mr->k.access = attr->access;
	if (flags & MR_REREG_TRANSLATION)
		set_range(&mr->k, attr);
	if (flags & MR_REREG_PD) {
		mr->k.pd->refs--;
		mr->k.pd = pd;
		pd->refs++;
	}
	if (flags & MR_REREG_TRANSLATION)
		mkey_rotate(&mr->k);
	return 0;
}

uint32_t mr_key(const struct mr *mr)
{
	return mr->k.key;
}

void mr_query(const struct mr *mr, struct mr_attr *ret, uint32_t *ret_pd)
{
	*ret = (struct mr_attr){ .va = mr->k.va,
				 .iova = mr->k.iova,
				 .len_bytes = mr->k.len_bytes,
				 .access = mr->k.access };
	*ret_pd = pd_num(mr->k.pd);
}
