/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/mcast.h"

#include <errno.h>

#include "core/obj/hca_priv.h"

static struct mcast *find(const struct qp *qp, const struct gid *mgid)
{
	const struct dlist *head = &qp->hca->mcasts;

	for (struct dlist *n = head->next; n != head; n = n->next) {
		struct mcast *m = CONTAINER_OF(n, struct mcast, node);

		if (m->qp == qp && gid_eq(&m->mgid, mgid))
			return m;
	}
	return NULL;
}

int qp_attach_mcast(struct qp *qp, const struct gid *mgid)
{
	struct mcast *m;

	if (qp->type != QP_TYPE_UD || !gid_is_multicast(mgid))
		return -EINVAL;
	if (find(qp, mgid))
		return -EEXIST;
	m = hca_alloc(qp->hca, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->mgid = *mgid;
	m->v4 = gid_group_v4(mgid);
	m->qp = qp;
	dlist_init(&m->node);
	dlist_push_back(&qp->hca->mcasts, &m->node);
	return 0;
}

static void detach(struct mcast *m)
{
	dlist_remove(&m->node);
	hca_release(m->qp->hca, m);
}

int qp_detach_mcast(struct qp *qp, const struct gid *mgid)
{
	struct mcast *m = find(qp, mgid);

	if (!m)
		return -EINVAL;
	detach(m);
	return 0;
}

struct mcast *mcast_next(struct hca *hca, const struct gid *dst,
			 struct dlist **pos)
{
	struct dlist *n = *pos ? (*pos)->next : hca->mcasts.next;

	for (; n != &hca->mcasts; n = n->next) {
		struct mcast *m = CONTAINER_OF(n, struct mcast, node);

		if (!gid_eq(&m->mgid, dst) && !gid_eq(&m->v4, dst))
			continue;
		*pos = n;
		return m;
	}
	return NULL;
}

void mcast_forget_qp(struct qp *qp)
{
	struct dlist *head = &qp->hca->mcasts, *n, *next;

	for (n = head->next; n != head; n = next) {
		next = n->next;
		if (CONTAINER_OF(n, struct mcast, node)->qp == qp)
			detach(CONTAINER_OF(n, struct mcast, node));
	}
}

bool qp_mcast_group(const struct qp *qp, struct gid *ret_mgid)
{
	const struct dlist *head = &qp->hca->mcasts;

	for (struct dlist *n = head->next; n != head; n = n->next) {
		struct mcast *m = CONTAINER_OF(n, struct mcast, node);

		if (m->qp != qp)
			continue;
		*ret_mgid = m->mgid;
		return true;
	}
	return false;
}
