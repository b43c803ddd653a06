/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cm_sidr.c - service id resolution: which QP serves datagrams [IBA 12.11].
 * And the timer, which belongs to both kinds of communications.
 */
#include <errno.h>
#include <string.h>

#include "core/cm/cm_priv.h"
#include "core/obj/hca_priv.h"
#include "core/obj/path.h"

#define SIDR_RETRIES 15
#define SIDR_WAIT_MAX_NS 4300000000LL

void cm_timer_fire(struct timer *t, int64_t now_ns)
{
	struct cm_conn *c = CONTAINER_OF(t, struct cm_conn, timer);

	(void)now_ns;
	if (!c->sidr) {
		cm_fsm_timeout(c);
	} else if (c->state == CM_STATE_TIMEWAIT) {
		cm_conn_done(c);
	} else if (!cm_retry(c)) {
		cm_event(c, CM_EVENT_UNREACHABLE);
		cm_conn_done(c);
	}
}

int cm_resolve(struct hca *hca, const struct cm_resolve_param *p, void *user,
	       struct cm_conn **ret)
{
	struct cm_msg m = { .attr = CM_SIDR_REQ };
	struct cm_conn *c;
	struct path path;
	int rc = path_resolve(hca, &p->av, &path);

	if (rc)
		return rc;
	if (p->priv_bytes > cm_private_bytes(CM_SIDR_REQ))
		return -EINVAL;
	c = cm_conn_take(hca, false);
	if (!c)
		return -ENOMEM;
	c->sidr = true;
	c->user = user;
	c->path = path;
	c->av = p->av;
	m.tid = c->tid;
	m.local_id = c->local_id;
	m.service_id = p->service_id;
	m.pkey = p->pkey;
	if (p->priv_bytes)
		memcpy(m.priv, p->priv, p->priv_bytes);
	c->state = CM_STATE_SIDR_SENT;
	c->tries_left = SIDR_RETRIES;
	c->wait_max_ns = SIDR_WAIT_MAX_NS;
	cm_send_retried(c, &m);
	*ret = c;
	return 0;
}

void cm_rx_sidr_rep(struct cm_conn *c, const struct cm_msg *m)
{
	if (c->state != CM_STATE_SIDR_SENT) {
		HCA_COUNT(c->hca, cm_duplicates);
		return;
	}
	c->peer = *m;
	c->remote_qpn = m->qpn;
	if (m->status == CM_SIDR_OK) {
		cm_event(c, CM_EVENT_REP);
	} else {
		c->reject_reason = m->status;
		memcpy(c->reject_priv, m->priv, sizeof(c->reject_priv));
		cm_event(c, CM_EVENT_REJECTED);
	}
	cm_conn_done(c);
}

static void refuse(struct hca *hca, const struct rx_frame *f,
		   const struct cm_msg *m, enum cm_sidr_status status)
{
	struct cm_msg r = {
		.attr = CM_SIDR_REP,
		.tid = m->tid,
		.local_id = m->local_id,
		.service_id = m->service_id,
		.status = status,
	};

	HCA_COUNT(hca, cm_rejects_sent);
	cm_reply(hca, f, &r);
}

/* A request has no CA GUID; who sent it is told by the address. */
static uint64_t sender(const struct rx_frame *f)
{
	uint64_t h = 0;

	for (unsigned i = 0; i < sizeof(f->src.raw); i++)
		h = h * 31 + f->src.raw[i];
	return h;
}

void cm_rx_sidr_req(struct hca *hca, const struct rx_frame *f,
		    const struct cm_msg *m)
{
	struct cm_conn *c = cm_find_peer(hca, sender(f), m->local_id, true);
	struct cm_listener *l;

	if (c) {
		HCA_COUNT(hca, cm_duplicates);
		if (c->state == CM_STATE_TIMEWAIT)
			cm_resend(c);
		return;
	}
	l = cm_find_listener(hca, m->service_id, &f->dst);
	if (!l) {
		refuse(hca, f, m, CM_SIDR_NO_SERVICE);
		return;
	}
	c = cm_born(l, f, m);
	if (!c)
		return;
	c->sidr = true;
	c->remote_guid = sender(f);
	c->state = CM_STATE_SIDR_RCVD;
	cm_hash_peer(c);
	c->av = (struct ah_attr){
		.is_global = true,
		.dgid = f->src,
		.sgid_index = c->path.sgid_index,
		.hop_limit = c->path.hop_limit,
		.traffic_class = c->path.tclass,
		.port_num = 1,
	};
	cm_event(c, CM_EVENT_REQ);
}

int cm_sidr_reply(struct cm_conn *c, enum cm_sidr_status status, uint32_t qpn,
		  uint32_t qkey, const uint8_t *priv, size_t priv_bytes)
{
	struct cm_msg m = { .attr = CM_SIDR_REP };

	if (c->state != CM_STATE_SIDR_RCVD)
		return -EINVAL;
	if (priv_bytes > cm_private_bytes(CM_SIDR_REP))
		return -EINVAL;
	m.tid = c->peer.tid;
	m.local_id = c->remote_id;
	m.service_id = c->peer.service_id;
	m.status = status;
	if (status == CM_SIDR_OK) {
		m.qpn = qpn;
		m.qkey = qkey;
	} else {
		HCA_COUNT(c->hca, cm_rejects_sent);
	}
	if (priv_bytes)
		memcpy(m.priv, priv, priv_bytes);
	cm_send_kept(c, &m);
	/* It stays a while, to say the same again to who did not hear it. */
	c->state = CM_STATE_TIMEWAIT;
	c->tries_left = 0;
	timer_arm(&c->hca->wheel, &c->timer, c->hca->now_ns + SIDR_WAIT_MAX_NS);
	return 0;
}

void cm_sidr_abandon(struct cm_conn *c)
{
	int rc;

	switch (c->state) {
	case CM_STATE_SIDR_RCVD:
		rc = cm_sidr_reply(c, CM_SIDR_REJECT, 0, 0, NULL, 0);
		ASSERT(!rc);
		break;
	case CM_STATE_TIMEWAIT:
		break;
	default:
		cm_conn_done(c);
	}
}
