/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cm_rx.c - a CM message came: whose is it, and what is nobody's
 * [IBA 12.9.8, 12.10].
 */
#include "core/cm/cm_priv.h"
#include "core/obj/hca_priv.h"

/* The communication that the message names; a peer that does not know our id
 * yet is known by its own. */
static struct cm_conn *owner(struct hca *hca, const struct cm_msg *m)
{
	uint64_t guid = 0;
	struct cm_conn *c;

	if (m->attr == CM_REJ && m->reason == CM_REJ_TIMEOUT) {
		for (unsigned i = 0; i < 8; i++)
			guid = guid << 8 | m->info[i];
		c = cm_find_peer(hca, guid, m->local_id, false);
		if (c)
			return c;
	}
	c = cm_find(hca, m->attr == CM_SIDR_REP ? m->local_id : m->remote_id);
	if (!c || c->sidr != (m->attr == CM_SIDR_REP))
		return NULL;
	/* Before the REP the active side knows no id of its peer. */
	if (c->remote_id && m->attr != CM_SIDR_REP && m->local_id &&
	    c->remote_id != m->local_id)
		return NULL;
	return c;
}

/* A DREQ for what we do not know is answered, so that its sender comes to an
 * end; a REP likewise. The rest is only counted. */
static void nobodys(struct hca *hca, const struct rx_frame *f,
		    const struct cm_msg *m)
{
	struct cm_msg drep = {
		.attr = CM_DREP,
		.tid = m->tid,
		.local_id = m->remote_id,
		.remote_id = m->local_id,
	};

	HCA_COUNT(hca, cm_unowned);
	if (m->attr == CM_DREQ)
		cm_reply(hca, f, &drep);
	else if (m->attr == CM_REP)
		cm_reply_rej(hca, f, m, CM_WHICH_REP, CM_REJ_INVALID_COMM_ID);
}

static void dispatch(struct cm_conn *c, const struct cm_msg *m)
{
	switch (m->attr) {
	case CM_MRA:
		cm_rx_mra(c, m);
		break;
	case CM_REJ:
		cm_rx_rej(c, m);
		break;
	case CM_REP:
		cm_rx_rep(c, m);
		break;
	case CM_RTU:
		cm_rx_rtu(c, m);
		break;
	case CM_DREQ:
		cm_rx_dreq(c, m);
		break;
	case CM_DREP:
		cm_rx_drep(c, m);
		break;
	case CM_SIDR_REP:
		cm_rx_sidr_rep(c, m);
		break;
	case CM_LAP:
		cm_rx_lap(c, m);
		break;
	case CM_APR: /* nobody here asks for an alternate path */
	case CM_REQ:
	case CM_SIDR_REQ:
		break;
	}
}

void cm_rx(struct hca *hca, const struct rx_frame *f, const uint8_t *mad)
{
	struct cm_conn *c;
	struct cm_msg m;

	if (!cm_msg_decode(&m, mad)) {
		HCA_COUNT(hca, rx_drop_mad);
		return;
	}
	if (m.attr == CM_REQ) {
		cm_rx_req(hca, f, &m);
		return;
	}
	if (m.attr == CM_SIDR_REQ) {
		cm_rx_sidr_req(hca, f, &m);
		return;
	}
	c = owner(hca, &m);
	if (c)
		dispatch(c, &m);
	else
		nobodys(hca, f, &m);
}
