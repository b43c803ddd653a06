/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cm_fsm.c - connections: what verbs, messages and the timer do to each state
 * [IBA 12.9.5 - 12.9.8]. The picture is in cm_priv.h.
 */
#include <errno.h>
#include <string.h>

#include "core/cm/cm_priv.h"
#include "core/obj/hca_priv.h"
#include "core/obj/idtab.h"
#include "core/obj/path.h"
#include "core/obj/qp.h"

/* What we promise and ask for: as rdma_cm in Linux [peers' captures]. */
#define RESPONSE_TIMEOUT 20 /* 4.3 s */
#define CM_RETRIES 15
#define TARGET_ACK_DELAY 15
#define MRA_MAX_NS 600000000000LL /* the longest that a peer may ask for */

enum {
	TRANSPORT_TYPE_RC,
	TRANSPORT_TYPE_UC,
	TRANSPORT_TYPE_RD,
	TRANSPORT_TYPE_EXT
};

static void done(struct cm_conn *c)
{
	cm_conn_done(c);
}

static void vendor_put(struct cm_msg *m, uint32_t vendor, uint32_t options)
{
	m->vendor[0] = (uint8_t)(vendor >> 16);
	m->vendor[1] = (uint8_t)(vendor >> 8);
	m->vendor[2] = (uint8_t)vendor;
	m->attr_mod = options;
}

static int priv_put(struct cm_msg *m, const uint8_t *priv, size_t bytes)
{
	if (bytes > cm_private_bytes(m->attr))
		return -EINVAL;
	if (bytes)
		memcpy(m->priv, priv, bytes);
	return 0;
}

/* ---- active ---- */

static void req_path(struct cm_msg_path *ret, const struct path *p,
		     uint8_t ack_timeout)
{
	*ret = (struct cm_msg_path){
		.local_lid = 0xffff,
		.remote_lid = 0xffff,
		.local_gid = p->sgid,
		.remote_gid = p->dgid,
		.flow_label = p->flow_label,
		.tclass = p->tclass,
		.hop_limit = p->hop_limit,
		.sl = p->sl,
		.ack_timeout = ack_timeout,
	};
}

static void req_build(struct cm_msg *m, const struct cm_conn *c,
		      const struct cm_connect_param *p)
{
	*m = (struct cm_msg){
		.attr = CM_REQ,
		.tid = c->tid,
		.local_id = c->local_id,
		.service_id = p->service_id,
		.ca_guid = c->hca->cfg.node_guid,
		.qpn = p->qpn,
		.psn = p->psn & PSN_MASK,
		.responder_resources = p->responder_resources,
		.initiator_depth = p->initiator_depth,
		.remote_timeout = RESPONSE_TIMEOUT,
		.local_timeout = RESPONSE_TIMEOUT,
		.transport = p->type == QP_TYPE_UC ? TRANSPORT_TYPE_UC
						   : TRANSPORT_TYPE_RC,
		.flow_control = p->flow_control,
		.srq = p->srq,
		.retry_count = p->retry_count & 7,
		.rnr_retry = p->rnr_retry & 7,
		.max_cm_retries = CM_RETRIES,
		.mtu = p->mtu,
		.pkey = p->pkey,
	};
	if (p->xrc) {
		m->transport = TRANSPORT_TYPE_EXT;
		m->ext_transport = 1;
	}
	vendor_put(m, p->ece_vendor, p->ece_options);
	req_path(&m->primary, &c->path, p->ack_timeout & 31);
}

int cm_connect(struct hca *hca, const struct cm_connect_param *p, void *user,
	       struct cm_conn **ret)
{
	struct cm_conn *c;
	struct cm_msg m;
	struct path path;
	int rc = path_resolve(hca, &p->av, &path);

	if (rc)
		return rc;
	if (p->priv_bytes > cm_private_bytes(CM_REQ))
		return -EINVAL;
	c = cm_conn_take(hca, false);
	if (!c)
		return -ENOMEM;
	c->user = user;
	c->path = path;
	c->av = p->av;
	c->local_qpn = p->qpn;
	c->rq_psn = 0;
	c->sq_psn = p->psn & PSN_MASK;
	c->responder_resources = p->responder_resources;
	c->initiator_depth = p->initiator_depth;
	c->retry_count = p->retry_count & 7;
	c->rnr_retry = p->rnr_retry & 7;
	c->ack_timeout = p->ack_timeout & 31;
	c->mtu = p->mtu;
	req_build(&m, c, p);
	rc = priv_put(&m, p->priv, p->priv_bytes);
	ASSERT(!rc);
	c->state = CM_STATE_REQ_SENT;
	c->tries_left = CM_RETRIES;
	c->wait_max_ns =
		cm_code_ns(RESPONSE_TIMEOUT) + cm_code_ns(c->ack_timeout);
	cm_send_retried(c, &m);
	*ret = c;
	return 0;
}

static uint8_t least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

/* His REP says what he gives; we use no more than we asked for. */
static void take_rep(struct cm_conn *c, const struct cm_msg *m)
{
	timer_cancel(&c->timer);
	c->peer = *m;
	c->remote_id = m->local_id;
	c->remote_guid = m->ca_guid;
	c->remote_qpn = m->qpn;
	c->rq_psn = m->psn;
	c->initiator_depth = least(c->initiator_depth, m->responder_resources);
	c->responder_resources =
		least(c->responder_resources, m->initiator_depth);
	c->rnr_retry = m->rnr_retry;
	c->state = CM_STATE_REP_RCVD;
}

void cm_rx_rep(struct cm_conn *c, const struct cm_msg *m)
{
	struct cm_conn *other;

	if (c->passive) {
		HCA_COUNT(c->hca, cm_ignored);
		return;
	}
	if (c->state == CM_STATE_ESTABLISHED) { /* he did not hear our RTU */
		HCA_COUNT(c->hca, cm_duplicates);
		cm_resend(c);
		return;
	}
	if (c->state != CM_STATE_REQ_SENT) {
		HCA_COUNT(c->hca, cm_duplicates);
		return;
	}
	take_rep(c, m);
	other = cm_find_qpn(c->hca, m->ca_guid, m->qpn);
	if (other) {
		HCA_COUNT(c->hca, cm_stale);
		cm_send_rej(c, CM_REJ_STALE_CONN, NULL, 0);
		c->reject_reason = CM_REJ_STALE_CONN;
		cm_event(c, CM_EVENT_REJECTED);
		done(c);
		return;
	}
	cm_hash_qpn(c);
	cm_event(c, CM_EVENT_REP);
}

static void established(struct cm_conn *c)
{
	c->state = CM_STATE_ESTABLISHED;
	HCA_COUNT(c->hca, cm_connects);
}

int cm_establish(struct cm_conn *c, const uint8_t *priv, size_t priv_bytes)
{
	struct cm_msg m = cm_answer(c, CM_RTU);
	int rc;

	if (c->state != CM_STATE_REP_RCVD || c->passive)
		return -EINVAL;
	rc = priv_put(&m, priv, priv_bytes);
	if (rc)
		return rc;
	cm_send_kept(c, &m);
	established(c);
	return 0;
}

/* ---- passive ---- */

static enum cm_reject req_fault(const struct cm_msg *m)
{
	bool xrc = m->transport == TRANSPORT_TYPE_EXT && m->ext_transport == 1;

	if (m->transport > TRANSPORT_TYPE_UC && !xrc)
		return CM_REJ_INVALID_TRANSPORT_TYPE;
	if (m->mtu < MTU_256 || m->mtu > MTU_4096)
		return CM_REJ_INVALID_MTU;
	return 0;
}

/* The same REQ again: answer as before, if there was an answer. */
static void req_again(struct cm_conn *c, const struct rx_frame *f,
		      const struct cm_msg *m)
{
	HCA_COUNT(c->hca, cm_duplicates);
	if (c->state == CM_STATE_REP_SENT)
		cm_resend(c);
	else if (c->state == CM_STATE_TIMEWAIT)
		cm_reply_rej(c->hca, f, m, CM_WHICH_REQ, CM_REJ_STALE_CONN);
}

/* A REQ names a QP that we are connected with: that connection is history to
 * the peer [IBA 12.9.8.3.1]. */
static void stale(struct cm_conn *old, const struct rx_frame *f,
		  const struct cm_msg *m)
{
	struct hca *hca = old->hca;

	HCA_COUNT(hca, cm_stale);
	cm_reply_rej(hca, f, m, CM_WHICH_REQ, CM_REJ_STALE_CONN);
	if (old->state == CM_STATE_ESTABLISHED ||
	    old->state == CM_STATE_REP_SENT) {
		struct cm_msg dreq = cm_answer(old, CM_DREQ);

		dreq.qpn = old->remote_qpn;
		cm_send_once(old, &dreq);
		cm_event(old, CM_EVENT_DISCONNECTED);
		cm_enter_timewait(old);
	}
}

static bool av_from_req(const struct hca *hca, const struct cm_msg *m,
			struct ah_attr *ret)
{
	const struct cm_msg_path *p = &m->primary;

	for (uint32_t i = 0; i < hca->cfg.limits.gid_table_len; i++) {
		if (!hca->gids[i].valid ||
		    !gid_eq(&hca->gids[i].gid, &p->remote_gid))
			continue;
		*ret = (struct ah_attr){
			.is_global = true,
			.dgid = p->local_gid,
			.sgid_index = (uint8_t)i,
			.traffic_class = p->tclass,
			.hop_limit = p->hop_limit,
			.flow_label = p->flow_label,
			.sl = p->sl,
			.port_num = 1,
		};
		return true;
	}
	return false;
}

static void take_req(struct cm_conn *c, const struct cm_msg *m,
		     const struct ah_attr *av)
{
	c->av = *av;
	c->path.tclass = m->primary.tclass & (uint8_t)~3;
	c->remote_guid = m->ca_guid;
	c->remote_qpn = m->qpn;
	c->rq_psn = m->psn;
	c->responder_resources = m->initiator_depth;
	c->initiator_depth = m->responder_resources;
	c->retry_count = m->retry_count;
	c->rnr_retry = m->rnr_retry;
	c->ack_timeout = m->primary.ack_timeout;
	c->mtu = m->mtu;
	c->tries_left = m->max_cm_retries;
	c->wait_max_ns = cm_code_ns(m->local_timeout) +
			 cm_code_ns(m->primary.ack_timeout);
	c->state = CM_STATE_REQ_RCVD;
	cm_hash_peer(c);
	cm_hash_qpn(c);
}

void cm_rx_req(struct hca *hca, const struct rx_frame *f,
	       const struct cm_msg *m)
{
	struct cm_conn *c = cm_find_peer(hca, m->ca_guid, m->local_id, false);
	enum cm_reject why = req_fault(m);
	struct cm_listener *l;
	struct ah_attr av;

	if (c) {
		req_again(c, f, m);
		return;
	}
	c = cm_find_qpn(hca, m->ca_guid, m->qpn);
	if (c) {
		stale(c, f, m);
		return;
	}
	l = cm_find_listener(hca, m->service_id, &f->dst);
	if (!why && !l)
		why = CM_REJ_INVALID_SERVICE_ID;
	if (!why && !av_from_req(hca, m, &av))
		why = CM_REJ_INVALID_GID;
	if (why) {
		cm_reply_rej(hca, f, m, CM_WHICH_REQ, why);
		return;
	}
	c = cm_born(l, f, m);
	if (!c)
		return;
	take_req(c, m, &av);
	cm_event(c, CM_EVENT_REQ);
}

/* Tells the QP, if it is one of ours, that it waits for data or an RTU. */
static void qp_waits(struct cm_conn *c, bool waits)
{
	struct hca *hca = c->hca;
	uint32_t low = (1u << hca->cfg.qpn_bits) - 1;
	struct qp *qp;

	if ((c->local_qpn & ~low) != hca->cfg.qpn_base || !(c->local_qpn & low))
		return;
	qp = idtab_get(hca->qps, c->local_qpn & low);
	if (qp)
		qp->cm_waits = waits;
}

int cm_accept(struct cm_conn *c, const struct cm_accept_param *p)
{
	struct cm_msg m = cm_answer(c, CM_REP);
	int rc;

	if (c->state != CM_STATE_REQ_RCVD)
		return -EINVAL;
	m.qpn = p->qpn;
	m.psn = p->psn & PSN_MASK;
	m.responder_resources = p->responder_resources;
	m.initiator_depth = p->initiator_depth;
	m.ack_delay = TARGET_ACK_DELAY;
	m.flow_control = p->flow_control;
	m.rnr_retry = p->rnr_retry & 7;
	m.srq = p->srq;
	m.ca_guid = c->hca->cfg.node_guid;
	vendor_put(&m, p->ece_vendor, p->ece_options);
	rc = priv_put(&m, p->priv, p->priv_bytes);
	if (rc)
		return rc;
	c->local_qpn = p->qpn;
	c->sq_psn = m.psn;
	c->responder_resources = p->responder_resources;
	c->initiator_depth = p->initiator_depth;
	c->state = CM_STATE_REP_SENT;
	qp_waits(c, true);
	cm_send_retried(c, &m);
	return 0;
}

void cm_notify_established(struct cm_conn *c)
{
	if (c->state != CM_STATE_REP_SENT)
		return;
	timer_cancel(&c->timer);
	qp_waits(c, false);
	established(c);
	cm_event(c, CM_EVENT_ESTABLISHED);
}

void cm_rx_rtu(struct cm_conn *c, const struct cm_msg *m)
{
	(void)m;
	if (c->state != CM_STATE_REP_SENT) {
		HCA_COUNT(c->hca, cm_duplicates);
		return;
	}
	cm_notify_established(c);
}

void cm_qp_established(struct hca *hca, uint32_t qpn)
{
	for (unsigned i = 1; i < hca->cm.tab_n; i++) {
		struct cm_conn *c = hca->cm.tab[i];

		if (c->state == CM_STATE_REP_SENT && c->local_qpn == qpn)
			cm_notify_established(c);
	}
}

/* ---- refusing ---- */

int cm_reject(struct cm_conn *c, enum cm_reject reason, const uint8_t *priv,
	      size_t priv_bytes)
{
	if (c->state != CM_STATE_REQ_RCVD && c->state != CM_STATE_REP_RCVD)
		return -EINVAL;
	if (priv_bytes > cm_private_bytes(CM_REJ))
		return -EINVAL;
	HCA_COUNT(c->hca, cm_rejects_sent);
	cm_send_rej(c, reason, priv, priv_bytes);
	done(c);
	return 0;
}

void cm_rx_rej(struct cm_conn *c, const struct cm_msg *m)
{
	switch (c->state) {
	case CM_STATE_REQ_SENT:
	case CM_STATE_REQ_RCVD:
	case CM_STATE_REP_SENT:
	case CM_STATE_REP_RCVD:
		qp_waits(c, false);
		c->reject_reason = m->reason;
		memcpy(c->reject_priv, m->priv, sizeof(c->reject_priv));
		cm_event(c, CM_EVENT_REJECTED);
		done(c);
		break;
	case CM_STATE_ESTABLISHED: /* he gave up before our RTU came */
	case CM_STATE_DREQ_SENT:
		cm_event(c, CM_EVENT_DISCONNECTED);
		cm_enter_timewait(c);
		break;
	default:
		HCA_COUNT(c->hca, cm_ignored);
	}
}

void cm_rx_mra(struct cm_conn *c, const struct cm_msg *m)
{
	static const uint8_t meant[] = {
		[CM_STATE_REQ_SENT] = 1 + CM_WHICH_REQ,
		[CM_STATE_REP_SENT] = 1 + CM_WHICH_REP,
		[CM_STATE_DONE] = 0,
	};
	int64_t more_ns = cm_code_ns(m->service_timeout);

	if (meant[c->state] != 1 + m->which) {
		HCA_COUNT(c->hca, cm_ignored);
		return;
	}
	if (more_ns > MRA_MAX_NS)
		more_ns = MRA_MAX_NS;
	timer_arm(&c->hca->wheel, &c->timer,
		  c->hca->now_ns + more_ns + c->wait_max_ns);
}

/* Alternate paths are loaded by ibv_modify_qp() alone. */
void cm_rx_lap(struct cm_conn *c, const struct cm_msg *m)
{
	enum { APR_UNSUPPORTED = 2 };
	struct cm_msg r = cm_answer(c, CM_APR);

	if (c->state != CM_STATE_ESTABLISHED) {
		HCA_COUNT(c->hca, cm_ignored);
		return;
	}
	r.tid = m->tid;
	r.status = APR_UNSUPPORTED;
	cm_send_once(c, &r);
}

/* ---- the end ---- */

void cm_enter_timewait(struct cm_conn *c)
{
	int64_t wait_ns =
		cm_code_ns(c->ack_timeout) + cm_code_ns(TARGET_ACK_DELAY);

	qp_waits(c, false);
	timer_cancel(&c->timer);
	dlist_remove(&c->qpn_node);
	c->state = CM_STATE_TIMEWAIT;
	timer_arm(&c->hca->wheel, &c->timer, c->hca->now_ns + wait_ns);
}

static void send_drep(struct cm_conn *c)
{
	struct cm_msg m = cm_answer(c, CM_DREP);

	m.tid = c->peer.tid; /* the DREQ's, see cm_rx_dreq() */
	cm_send_kept(c, &m);
	cm_enter_timewait(c);
}

static void send_dreq(struct cm_conn *c)
{
	struct cm_msg m = cm_answer(c, CM_DREQ);

	m.tid = c->tid;
	m.qpn = c->remote_qpn;
	qp_waits(c, false);
	c->state = CM_STATE_DREQ_SENT;
	c->tries_left = CM_RETRIES;
	cm_send_retried(c, &m);
}

int cm_disconnect(struct cm_conn *c)
{
	if (c->state == CM_STATE_ESTABLISHED || c->state == CM_STATE_REP_SENT)
		send_dreq(c);
	else if (c->state == CM_STATE_DREQ_RCVD)
		send_drep(c);
	else
		return -EINVAL;
	return 0;
}

void cm_rx_dreq(struct cm_conn *c, const struct cm_msg *m)
{
	if (m->qpn != c->local_qpn) {
		HCA_COUNT(c->hca, cm_ignored);
		return;
	}
	c->peer.tid = m->tid;
	switch (c->state) {
	case CM_STATE_REP_SENT:
	case CM_STATE_ESTABLISHED:
		timer_cancel(&c->timer);
		qp_waits(c, false);
		c->state = CM_STATE_DREQ_RCVD;
		cm_event(c, CM_EVENT_DISCONNECTED);
		if (c->orphan)
			send_drep(c);
		break;
	case CM_STATE_DREQ_SENT: /* both at once */
		cm_event(c, CM_EVENT_DISCONNECTED);
		send_drep(c);
		break;
	case CM_STATE_TIMEWAIT: { /* he did not hear our DREP */
		struct cm_msg r = cm_answer(c, CM_DREP);

		HCA_COUNT(c->hca, cm_duplicates);
		r.tid = m->tid;
		cm_send_once(c, &r);
		break;
	}
	default:
		HCA_COUNT(c->hca, cm_duplicates);
	}
}

void cm_rx_drep(struct cm_conn *c, const struct cm_msg *m)
{
	(void)m;
	if (c->state != CM_STATE_DREQ_SENT) {
		HCA_COUNT(c->hca, cm_ignored);
		return;
	}
	cm_event(c, CM_EVENT_DISCONNECTED);
	cm_enter_timewait(c);
}

void cm_abandon(struct cm_conn *c)
{
	switch (c->state) {
	case CM_STATE_REQ_SENT:
		cm_send_rej(c, CM_REJ_TIMEOUT, NULL, 0);
		done(c);
		break;
	case CM_STATE_REQ_RCVD:
	case CM_STATE_REP_SENT:
	case CM_STATE_REP_RCVD:
		qp_waits(c, false);
		cm_send_rej(c, CM_REJ_CONSUMER, NULL, 0);
		done(c);
		break;
	case CM_STATE_ESTABLISHED:
		send_dreq(c);
		break;
	case CM_STATE_DREQ_RCVD:
		send_drep(c);
		break;
	case CM_STATE_DONE:
		done(c);
		break;
	default: /* DREQ_SENT, TIMEWAIT: the timer goes on */
		break;
	}
}

/* ---- the timer ---- */

static void unanswered(struct cm_conn *c)
{
	switch (c->state) {
	case CM_STATE_REQ_SENT:
	case CM_STATE_REP_SENT:
		qp_waits(c, false);
		cm_send_rej(c, CM_REJ_TIMEOUT, NULL, 0);
		cm_event(c, CM_EVENT_UNREACHABLE);
		done(c);
		break;
	default: /* DREQ_SENT */
		cm_event(c, CM_EVENT_DISCONNECTED);
		cm_enter_timewait(c);
	}
}

void cm_fsm_timeout(struct cm_conn *c)
{
	if (c->state == CM_STATE_TIMEWAIT) {
		cm_event(c, CM_EVENT_TIMEWAIT_EXIT);
		done(c);
	} else if (!cm_retry(c)) {
		unanswered(c);
	}
}
