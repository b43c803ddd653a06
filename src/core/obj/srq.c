/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/srq.h"

#include <errno.h>
#include <string.h>

#include "core/obj/hca_priv.h"
#include "core/obj/idtab.h"
#include "core/obj/cq.h"
#include "core/obj/pd.h"
#include "core/xrc/xrc.h"
#include "core/xrc/xrcd.h"

static int create(struct pd *pd, struct xrcd *xrcd, struct cq *cq,
		  const struct srq_attr *attr, void *user, struct srq **ret_srq)
{
	struct hca *hca = pd->hca;
	struct srq *srq;
	int rc;

	if (attr->max_wr < 1 || attr->max_wr > hca->cfg.limits.max_srq_wr ||
	    attr->max_sge > hca->cfg.limits.max_sge)
		return -EINVAL;
	srq = hca_alloc(hca, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	rc = wring_init_recv(&srq->rq, hca, attr->max_wr, attr->max_sge);
	if (rc)
		goto err_srq;
	srq->hca = hca;
	srq->pd = pd;
	srq->user = user;
	event_init(&srq->events, EVENT_OWNER_SRQ);
	rc = idtab_add(hca->srqs, srq, &srq->id);
	if (rc)
		goto err_ring;
	srq->xrcd = xrcd;
	srq->cq = cq;
	pd->refs++;
	*ret_srq = srq;
	return 0;
err_ring:
	wring_fini(&srq->rq, hca);
err_srq:
	hca_release(hca, srq);
	return rc;
}

int srq_create(struct pd *pd, const struct srq_attr *attr, void *user,
	       struct srq **ret_srq)
{
	return create(pd, NULL, NULL, attr, user, ret_srq);
}

int srq_create_xrc(struct pd *pd, struct xrcd *xrcd, struct cq *cq,
		   const struct srq_attr *attr, void *user,
		   struct srq **ret_srq)
{
	int rc = create(pd, xrcd, cq, attr, user, ret_srq);

	if (rc)
		return rc;
	xrcd->refs++;
	cq->refs++;
	return 0;
}

int srq_destroy(struct srq *srq)
{
	struct hca *hca = srq->hca;

	if (srq->refs)
		return -EBUSY;
	if (srq->xrcd) {
		xrc_srq_gone(srq);
		srq->xrcd->refs--;
		srq->cq->refs--;
	}
	event_forget(&srq->events);
	idtab_remove(hca->srqs, srq->id);
	srq->pd->refs--;
	wring_fini(&srq->rq, hca);
	hca_release(hca, srq);
	return 0;
}

static int resize(struct srq *srq, uint32_t max_wr)
{
	struct wring *old = &srq->rq, bigger;
	uint32_t head = spsc_head(&old->idx), n = spsc_ready(&old->idx);
	int rc;

	if (n > max_wr)
		return -EINVAL;
	rc = wring_init_recv(&bigger, srq->hca, max_wr, old->max_sge);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < n; i++)
		memcpy(wring_slot(&bigger, i), wring_slot(old, head + i),
		       old->stride_bytes);
	spsc_push(&bigger.idx, n);
	wring_fini(old, srq->hca);
	*old = bigger;
	return 0;
}

int srq_modify(struct srq *srq, struct srq_attr *attr, uint32_t mask)
{
	const uint32_t known = SRQ_ATTR_MAX_WR | SRQ_ATTR_LIMIT;
	uint32_t max_wr =
		mask & SRQ_ATTR_MAX_WR ? attr->max_wr : srq->rq.capacity;
	uint32_t limit = mask & SRQ_ATTR_LIMIT ? attr->limit : srq->limit;

	if (mask & ~known)
		return -EINVAL;
	if (max_wr < 1 || max_wr > srq->hca->cfg.limits.max_srq_wr ||
	    limit > max_wr)
		return -EINVAL;
	if (mask & SRQ_ATTR_MAX_WR) {
		int rc = resize(srq, max_wr);

		if (rc)
			return rc;
	}
	srq->limit = limit;
	srq_query(srq, attr);
	return 0;
}

void srq_query(const struct srq *srq, struct srq_attr *ret_attr)
{
	*ret_attr = (struct srq_attr){ .max_wr = srq->rq.capacity,
				       .max_sge = srq->rq.max_sge,
				       .limit = srq->limit };
}

void *srq_user(const struct srq *srq)
{
	return srq->user;
}

uint32_t srq_num(const struct srq *srq)
{
	return srq->id;
}

int srq_post_recv(struct srq *srq, const struct recv_wr *wr)
{
	return wring_post_recv(&srq->rq, wr);
}

bool srq_take(struct srq *srq, struct rwqe *w)
{
	uint32_t n = spsc_ready(&srq->rq.idx);

	if (!n)
		return false;
	memcpy(w, wring_slot(&srq->rq, spsc_head(&srq->rq.idx)),
	       srq->rq.stride_bytes);
	spsc_pop(&srq->rq.idx, 1);
	/* The event disarms the limit [IBA 10.2.9.1]. */
	if (n - 1 < srq->limit) {
		srq->limit = 0;
		event_raise(srq->hca, &srq->events, ASYNC_SRQ_LIMIT_REACHED);
	}
	return true;
}

uint32_t srq_wqe_max(const struct hca *hca)
{
	return (uint32_t)(sizeof(struct rwqe) +
			  hca->cfg.limits.max_sge * sizeof(struct sge) + 15);
}
