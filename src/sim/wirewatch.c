/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * wirewatch.c - looks at every frame before faults happen to it.
 */
#include "sim/wirewatch.h"

#include "wire/rocev2.h"

static struct watch_qp *find(struct wirewatch *w, unsigned end, uint32_t qpn,
			     uint32_t peer_qpn)
{
	for (uint32_t i = 0; i < WATCH_QPS; i++) {
		struct watch_qp *q = &w->qp[i];

		if (q->qpn && q->end == end && (!qpn || q->qpn == qpn) &&
		    (!peer_qpn || q->peer_qpn == peer_qpn))
			return q;
	}
	return NULL;
}

void wirewatch_add(struct wirewatch *w, unsigned end, uint32_t qpn,
		   uint32_t peer_qpn, struct psn first)
{
	uint32_t i = 0;

	while (i < WATCH_QPS && w->qp[i].qpn)
		i++;
	ASSERT(i < WATCH_QPS && !find(w, end, qpn, 0));
	w->qp[i] = (struct watch_qp){
		.end = end, .qpn = qpn, .peer_qpn = peer_qpn, .next = first
	};
}

void wirewatch_remove(struct wirewatch *w, unsigned end, uint32_t qpn)
{
	struct watch_qp *q = find(w, end, qpn, 0);

	if (q)
		q->qpn = 0;
}

/* The rnr_timer table once more, in us * 100, so as not to trust one copy:
 * IBA table 45. */
static const int32_t rnr_wait_10us[32] = {
	65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
	48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

/* A response has reached the requester; after an RNR NAK there is silence. */
static void see_nak(struct wirewatch *w, unsigned from, const struct pkt *p,
		    int64_t now_ns)
{
	struct watch_qp *q = find(w, !from, p->bth.dest_qpn, 0);
	uint8_t syndrome = p->ext.aeth.syndrome;

	if (!q)
		return;
	/* What was refused has been taken since, on another try. */
	if (q->rnr && aeth_kind(syndrome) == AETH_ACK &&
	    !psn_before(p->bth.psn, q->rnr_psn))
		q->rnr = false;
	if (aeth_kind(syndrome) != AETH_RNR_NAK)
		return;
	/* Two tries on their way, two NAKs: the first one counts. */
	if (q->rnr && psn_eq(q->rnr_psn, p->bth.psn) &&
	    now_ns < q->silent_until_ns)
		return;
	q->rnr = true;
	q->rnr_psn = p->bth.psn;
	q->silent_until_ns =
		now_ns + (int64_t)rnr_wait_10us[aeth_value(syndrome)] * 10000;
}

/* Until the time that the NAK states is over, no request at or past its PSN
 * leaves [IBA 9.7.5.2.8]. */
static void see_request(struct wirewatch *w, unsigned from, const struct pkt *p,
			int64_t now_ns)
{
	struct watch_qp *q = find(w, from, 0, p->bth.dest_qpn);

	if (!q || !q->rnr || psn_before(p->bth.psn, q->rnr_psn))
		return;
	if (now_ns < q->silent_until_ns)
		verdict_fail(w->verdict, now_ns,
			     "request inside the RNR wait (qpn, psn, ns early)",
			     q->qpn, p->bth.psn.v,
			     (uint64_t)(q->silent_until_ns - now_ns));
	q->rnr = false;
}

/* PSNs that a request takes: a READ one for each response [IBA 9.7.3.2]. */
static int32_t psns_of(const struct wirewatch *w, const struct pkt *p)
{
	uint32_t len = p->ext.reth.len_bytes;

	if (!(p->info->flags & OPCODE_READ) || len <= w->mtu_bytes)
		return 1;
	return (int32_t)((len - 1) / w->mtu_bytes + 1);
}

/* A new request has the next PSN; any other was sent before. */
static void see_psn(struct wirewatch *w, unsigned from, const struct pkt *p,
		    int64_t now_ns)
{
	struct watch_qp *q = find(w, from, 0, p->bth.dest_qpn);
	struct psn after = psn_add(p->bth.psn, psns_of(w, p));

	if (!q)
		return;
	if (psn_before(q->next, p->bth.psn))
		verdict_fail(w->verdict, now_ns,
			     "request past the next PSN (qpn, psn, next)",
			     q->qpn, p->bth.psn.v, q->next.v);
	if (psn_before(q->next, after))
		q->next = after;
}

/* No answer to what was never asked; a NAK may name the next PSN. */
static void see_answer(struct wirewatch *w, unsigned from, const struct pkt *p,
		       int64_t now_ns)
{
	struct watch_qp *q = find(w, !from, p->bth.dest_qpn, 0);
	bool ack = !(p->info->exth & EXTH_AETH) ||
		   aeth_kind(p->ext.aeth.syndrome) == AETH_ACK;

	if (q && !psn_before(psn_add(p->bth.psn, ack ? 0 : -1), q->next))
		verdict_fail(w->verdict, now_ns,
			     "answer to a PSN never used (qpn, psn, next)",
			     q->qpn, p->bth.psn.v, q->next.v);
}

static const char *judge(const struct wirewatch *w, const uint8_t *frame,
			 uint32_t len_bytes, struct pkt *p)
{
	struct rocev2_flow flow;
	size_t sealed, off;

	off = rocev2_decode_headers(&flow, frame, len_bytes, &sealed);
	if (!off || sealed < ICRC_BYTES || off + sealed != len_bytes)
		return "a frame whose network headers are wrong";
	if (!rocev2_icrc_ok(&flow, frame + off, sealed))
		return "a frame whose ICRC is wrong";
	if (pkt_decode(p, frame + off, sealed - ICRC_BYTES) != PKT_OK)
		return "a frame that does not decode";
	if (p->payload_bytes > w->mtu_bytes)
		return "a frame with more payload than the path MTU";
	if ((p->info->flags & OPCODE_PAYLOAD) &&
	    !(p->info->flags & OPCODE_END) && p->payload_bytes != w->mtu_bytes)
		return "FIRST or MIDDLE that is not one path MTU";
	if (p->bth.tver || p->bth.fecn || p->bth.resv6 || p->bth.resv7)
		return "a frame with reserved BTH bits set";
	return NULL;
}

static void on_sent(void *ctx, unsigned from, const uint8_t *frame,
		    uint32_t len_bytes, int64_t now_ns)
{
	struct wirewatch *w = ctx;
	struct pkt p;
	const char *bad = judge(w, frame, len_bytes, &p);

	w->frames++;
	if (bad) {
		verdict_fail(w->verdict, now_ns, bad, from, w->frames,
			     len_bytes);
		return;
	}
	if (w->trace)
		w->trace(false, from, &p, now_ns);
	if (opcode_transport(p.bth.opcode) != TRANSPORT_RC)
		return;
	if (p.info->flags & OPCODE_REQUEST) {
		if (w->rnr_strict)
			see_request(w, from, &p, now_ns);
		see_psn(w, from, &p, now_ns);
	} else {
		see_answer(w, from, &p, now_ns);
	}
}

static void on_delivered(void *ctx, unsigned from, const uint8_t *frame,
			 uint32_t len_bytes, int64_t now_ns)
{
	struct wirewatch *w = ctx;
	struct pkt p;

	if (judge(w, frame, len_bytes, &p)) /* broken on its way */
		return;
	if (w->trace)
		w->trace(true, from, &p, now_ns);
	if (w->rnr_strict && (p.info->exth & EXTH_AETH))
		see_nak(w, from, &p, now_ns);
}

void wirewatch_init(struct wirewatch *w, struct verdict *v, struct cable *c,
		    uint32_t mtu, bool rnr_strict)
{
	*w = (struct wirewatch){ .verdict = v,
				 .mtu_bytes = mtu,
				 .rnr_strict = rnr_strict };
	c->tap_sent = on_sent;
	c->tap_delivered = on_delivered;
	c->tap_ctx = w;
}
