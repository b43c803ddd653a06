/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cm_out.c - sending CM messages, once or until they are answered
 * [IBA 12.9.8.4 on timeouts and retries].
 *
 * The first repetition comes after RETRY_MIN_NS, each next one after twice the
 * time, up to what the protocol gives the peer to answer. A peer must take
 * duplicates anyway, and on a plain network a lost datagram should cost a
 * quarter of a second, not six.
 */
#include <string.h>

#include "base/bytes.h"
#include "core/cm/cm_priv.h"
#include "core/obj/hca_priv.h"

#define RETRY_MIN_NS 250000000
#define CODE_UNIT_NS 4096

int64_t cm_code_ns(uint8_t code)
{
	return (int64_t)CODE_UNIT_NS << (code & 31);
}

void cm_send_once(struct cm_conn *c, const struct cm_msg *m)
{
	uint8_t mad[MAD_BYTES];

	cm_msg_encode(m, mad);
	gsi_send(c->hca, &c->path, mad);
}

void cm_resend(struct cm_conn *c)
{
	HCA_COUNT(c->hca, cm_retransmits);
	gsi_send(c->hca, &c->path, c->mad);
}

void cm_send_kept(struct cm_conn *c, const struct cm_msg *m)
{
	timer_cancel(&c->timer);
	cm_msg_encode(m, c->mad);
	gsi_send(c->hca, &c->path, c->mad);
}

void cm_send_retried(struct cm_conn *c, const struct cm_msg *m)
{
	cm_send_kept(c, m);
	c->wait_ns = RETRY_MIN_NS;
	timer_arm(&c->hca->wheel, &c->timer, c->hca->now_ns + c->wait_ns);
}

bool cm_retry(struct cm_conn *c)
{
	if (!c->tries_left)
		return false;
	c->tries_left--;
	cm_resend(c);
	c->wait_ns *= 2;
	if (c->wait_ns > c->wait_max_ns)
		c->wait_ns = c->wait_max_ns;
	timer_arm(&c->hca->wheel, &c->timer, c->hca->now_ns + c->wait_ns);
	return true;
}

struct cm_msg cm_answer(const struct cm_conn *c, enum cm_attr attr)
{
	return (struct cm_msg){
		.attr = attr,
		.tid = c->passive ? c->peer.tid : c->tid,
		.local_id = c->local_id,
		.remote_id = c->remote_id,
	};
}

static enum cm_which rejected_message(const struct cm_conn *c)
{
	switch (c->state) {
	case CM_STATE_REQ_RCVD:
		return CM_WHICH_REQ;
	case CM_STATE_REP_RCVD:
		return CM_WHICH_REP;
	default:
		return CM_WHICH_OTHER;
	}
}

void cm_send_rej(struct cm_conn *c, enum cm_reject reason, const uint8_t *priv,
		 size_t priv_bytes)
{
	struct cm_msg m = cm_answer(c, CM_REJ);
	uint8_t guid[8];

	m.which = rejected_message(c);
	m.reason = reason;
	if (reason == CM_REJ_TIMEOUT) { /* the id may mean nothing to him */
		put_be64(guid, c->hca->cfg.node_guid);
		memcpy(m.info, guid, sizeof(guid));
		m.info_len = sizeof(guid);
	}
	if (priv_bytes)
		memcpy(m.priv, priv, priv_bytes);
	cm_send_once(c, &m);
}

void cm_reply(struct hca *hca, const struct rx_frame *f,
	      const struct cm_msg *reply)
{
	uint8_t mad[MAD_BYTES];
	struct path path;

	gsi_reply_path(hca, f, &path);
	cm_msg_encode(reply, mad);
	gsi_send(hca, &path, mad);
}

void cm_reply_rej(struct hca *hca, const struct rx_frame *f,
		  const struct cm_msg *m, enum cm_which which,
		  enum cm_reject reason)
{
	struct cm_msg r = {
		.attr = CM_REJ,
		.tid = m->tid,
		.remote_id = m->local_id,
		.which = which,
		.reason = reason,
	};

	HCA_COUNT(hca, cm_rejects_sent);
	cm_reply(hca, f, &r);
}
