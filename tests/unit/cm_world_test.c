/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Communication management between two adapters in virtual time, over a wire
 * that loses, repeats and delays: each message at every step, then many at
 * random. Whatever happens both sides come to an end that fits, and everything
 * goes back to the pool.
 */
#include "core/cm/cm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "core_rig.h"
#include "core/obj/hca_priv.h"

#define SERVICE 0x1060000ull + 7174
#define MS 1000000LL
#define SEC 1000000000LL
#define FLIGHTS 4096
#define WIRE_NS 10000

enum fate {
	FATE_PASS,
	FATE_DROP,
	FATE_TWICE,
	FATE_LATE,
	FATE_VERY_LATE,
	FATES
};

struct flight {
	bool used;
	int to;
	int64_t at_ns;
	uint32_t len;
	uint8_t pkt[MAD_BYTES + PKT_HDR_MAX];
};

/* One side of the application. */
struct side {
	struct cm_conn *conn;
	bool seen[CM_EVENT_KINDS];
	bool gone; /* destroyed */
	bool slow; /* does not accept by itself */
	uint16_t reason;
};

static struct rig rig;
static struct flight flights[FLIGHTS];
static struct side side[2]; /* 0 connects, 1 listens */
static struct cm_listener *listener;
static unsigned sent;		     /* MADs so far */
static unsigned fault_at, fault_at2; /* 1.. ; 0: none */
static enum fate fault;
static struct prng rng;
static uint32_t random_ppm; /* each fate */
static int lose_attr;	    /* all of this message; 0: none */
static bool sidr;
static uint32_t their_qpn = 0x777;
static bool mute; /* the active application answers nothing */

static struct hca *hca(int i)
{
	return rig.h[i].hca;
}

/* ---- the wire ---- */

static void fly(int to, int64_t after_ns, const struct tx_frame *f)
{
	for (unsigned i = 0; i < FLIGHTS; i++) {
		struct flight *l = &flights[i];

		if (l->used)
			continue;
		*l = (struct flight){ .used = true,
				      .to = to,
				      .at_ns = rig.now_ns + after_ns,
				      .len = f->len_bytes };
		memcpy(l->pkt, f->pkt, f->len_bytes);
		return;
	}
	fail_msg("the wire is full");
}

static enum fate fate_of(const uint8_t *pkt)
{
	struct pkt k;

	assert_int_equal(pkt_decode(&k, pkt, 20 + MAD_BYTES), PKT_OK);
	if (lose_attr && k.payload[17] == lose_attr)
		return FATE_DROP;
	if (random_ppm && prng_chance(&rng, random_ppm))
		return (enum fate)(1 + prng_below(&rng, FATES - 1));
	return sent == fault_at || sent == fault_at2 ? fault : FATE_PASS;
}

static void launch(int from, const struct tx_frame *f)
{
	sent++;
	switch (fate_of(f->pkt)) {
	case FATE_DROP:
		return;
	case FATE_TWICE:
		fly(1 - from, 3 * WIRE_NS, f);
		break;
	case FATE_LATE: /* behind what follows */
		fly(1 - from, 20 * MS, f);
		return;
	case FATE_VERY_LATE: /* behind its own repetitions */
		fly(1 - from, 3 * SEC, f);
		return;
	default:
		break;
	}
	fly(1 - from, WIRE_NS, f);
}

static void send_all(void)
{
	uint8_t buf[PKT_MAX + ICRC_BYTES];

	for (int i = 0; i < 2; i++) {
		struct tx_frame f = { .pkt = buf };

		while (hca_tx(hca(i), UINT32_MAX, &f, rig.now_ns)) {
			launch(i, &f);
			hca_tx_done(hca(i), &f);
		}
	}
}

static int64_t next_ns(void)
{
	int64_t at = INT64_MAX;

	for (unsigned i = 0; i < FLIGHTS; i++)
		if (flights[i].used && flights[i].at_ns < at)
			at = flights[i].at_ns;
	for (int i = 0; i < 2; i++)
		if (hca_deadline(hca(i)) < at)
			at = hca_deadline(hca(i));
	return at;
}

static void land(struct flight *l)
{
	struct rx_frame f = {
		.pkt = l->pkt,
		.len_bytes = l->len,
		.src = rig.h[1 - l->to].gid,
		.dst = rig.h[l->to].gid,
		.ttl = 64,
		.pkts = 1,
	};

	l->used = false;
	hca_rx(hca(l->to), &f, rig.now_ns);
}

/* ---- the application ---- */

static struct ah_attr av_to(int to)
{
	return (struct ah_attr){ .is_global = true,
				 .dgid = rig.h[to].gid,
				 .hop_limit = 64,
				 .port_num = 1 };
}

static void connect_now(uint32_t qpn)
{
	uint8_t priv[4] = { 1, 2, 3, 4 };
	struct cm_connect_param p = {
		.av = av_to(1),
		.service_id = SERVICE,
		.type = QP_TYPE_RC,
		.qpn = qpn,
		.psn = 0x123456,
		.responder_resources = 4,
		.initiator_depth = 3,
		.retry_count = 7,
		.rnr_retry = 6,
		.ack_timeout = 19,
		.mtu = MTU_1024,
		.pkey = 0xffff,
		.priv = priv,
		.priv_bytes = sizeof(priv),
	};
	struct cm_resolve_param r = { .av = av_to(1),
				      .service_id = SERVICE,
				      .pkey = 0xffff,
				      .priv = priv,
				      .priv_bytes = sizeof(priv) };

	memset(&side[0], 0, sizeof(side[0]));
	if (sidr)
		assert_int_equal(
			cm_resolve(hca(0), &r, &side[0], &side[0].conn), 0);
	else
		assert_int_equal(
			cm_connect(hca(0), &p, &side[0], &side[0].conn), 0);
}

static void answer(struct side *s)
{
	uint8_t priv[2] = { 5, 6 };
	struct cm_accept_param p = {
		.qpn = their_qpn,
		.psn = 0x654321,
		.responder_resources = 3,
		.initiator_depth = 4,
		.rnr_retry = 5,
		.priv = priv,
		.priv_bytes = sizeof(priv),
	};

	if (sidr)
		assert_int_equal(cm_sidr_reply(s->conn, CM_SIDR_OK, 0x777, 9,
					       priv, sizeof(priv)),
				 0);
	else
		assert_int_equal(cm_accept(s->conn, &p), 0);
}

static void end(struct side *s)
{
	if (!s->gone)
		cm_destroy(s->conn);
	s->gone = true;
}

static void take_req(struct cm_conn *c)
{
	struct side *s = &side[1];

	memset(s, 0, sizeof(*s));
	s->conn = c;
	s->slow = mute;
	s->seen[CM_EVENT_REQ] = true;
	assert_ptr_equal(cm_conn_listener_user(c), &listener);
	assert_int_equal(cm_adopt(c, s), 0);
	if (!s->slow)
		answer(s);
}

static void take(int i, const struct hca_event *ev)
{
	struct side *s = &side[i];
	struct cm_info info;

	assert_int_equal(ev->kind, HCA_EVENT_CM);
	if (ev->cm_kind == CM_EVENT_REQ) {
		assert_int_equal(i, 1);
		take_req(ev->conn);
		return;
	}
	assert_ptr_equal(cm_conn_user(ev->conn), s);
	assert_ptr_equal(ev->conn, s->conn);
	assert_false(s->seen[ev->cm_kind]);
	s->seen[ev->cm_kind] = true;
	cm_info_get(ev->conn, &info);
	switch (ev->cm_kind) {
	case CM_EVENT_REP:
		if (!sidr && !mute)
			assert_int_equal(cm_establish(s->conn, NULL, 0), 0);
		break;
	case CM_EVENT_DISCONNECTED:
		(void)!cm_disconnect(s->conn); /* the DREP, if one is due */
		break;
	case CM_EVENT_REJECTED:
		s->reason = info.reject_reason;
		end(s);
		break;
	case CM_EVENT_UNREACHABLE:
	case CM_EVENT_TIMEWAIT_EXIT:
		end(s);
		break;
	default:
		break;
	}
}

static void take_events(void)
{
	struct hca_event ev;

	for (int i = 0; i < 2; i++)
		while (hca_event_next(hca(i), &ev))
			take(i, &ev);
}

/* ---- running ---- */

static void run(int64_t ns)
{
	int64_t end_ns = rig.now_ns + ns;

	for (;;) {
		int64_t at;

		take_events();
		send_all();
		at = next_ns();
		if (at > end_ns)
			break;
		if (at > rig.now_ns)
			rig.now_ns = at;
		for (unsigned i = 0; i < FLIGHTS; i++)
			if (flights[i].used && flights[i].at_ns <= rig.now_ns)
				land(&flights[i]);
		for (int i = 0; i < 2; i++)
			hca_advance(hca(i), rig.now_ns);
	}
	rig.now_ns = end_ns;
	for (int i = 0; i < 2; i++)
		hca_advance(hca(i), rig.now_ns);
}

static void open_world(void)
{
	rig_open(&rig, NULL);
	memset(flights, 0, sizeof(flights));
	memset(side, 0, sizeof(side));
	side[0].gone = side[1].gone = true;
	sent = 0;
	assert_int_equal(
		cm_listen(hca(1), SERVICE, NULL, 4, &listener, &listener), 0);
}

/* Everything is back where it came from. */
static void close_world(void)
{
	if (listener)
		cm_unlisten(listener);
	listener = NULL;
	run(200 * SEC);
	for (int i = 0; i < 2; i++) {
		const struct cm *cm = &hca(i)->cm;
		unsigned made = cm->tab_n ? cm->tab_n - 1 : 0;

		assert_int_equal(cm->pool_n, made);
		assert_int_equal(cm->reserved, 0);
		for (unsigned b = 0; b < CM_BUCKETS; b++) {
			assert_true(dlist_empty(
				(struct dlist *)(uintptr_t)&cm->by_peer[b]));
			assert_true(dlist_empty(
				(struct dlist *)(uintptr_t)&cm->by_qpn[b]));
		}
		assert_int_equal(hca_deadline(hca(i)), INT64_MAX);
	}
	fault_at = fault_at2 = 0;
	random_ppm = 0;
	lose_attr = 0;
	sidr = mute = false;
	their_qpn = 0x777;
	rig_close(&rig);
}

static bool both(enum cm_event active, enum cm_event passive)
{
	return side[0].seen[active] && side[1].seen[passive];
}

static void life(int who_ends)
{
	connect_now(0x111);
	run(30 * SEC);
	if (sidr) {
		assert_true(both(CM_EVENT_REP, CM_EVENT_REQ));
		end(&side[0]);
		end(&side[1]);
		return;
	}
	assert_true(both(CM_EVENT_REP, CM_EVENT_ESTABLISHED));
	assert_int_equal(cm_disconnect(side[who_ends].conn), 0);
	run(30 * SEC);
	assert_true(both(CM_EVENT_DISCONNECTED, CM_EVENT_DISCONNECTED));
	assert_true(both(CM_EVENT_TIMEWAIT_EXIT, CM_EVENT_TIMEWAIT_EXIT));
	assert_true(side[0].gone && side[1].gone);
}

static void test_one_life(void **state)
{
	struct cm_info info;

	(void)state;
	open_world();
	connect_now(0x111);
	run(1 * SEC);
	assert_int_equal(sent, 3);
	cm_info_get(side[0].conn, &info);
	assert_int_equal(info.remote_qpn, 0x777);
	assert_int_equal(info.rq_psn, 0x654321);
	assert_int_equal(info.initiator_depth, 3);
	assert_int_equal(info.responder_resources, 4);
	assert_int_equal(info.rnr_retry, 5);
	assert_memory_equal(info.peer.priv, "\5\6", 2);
	cm_info_get(side[1].conn, &info);
	assert_int_equal(info.remote_qpn, 0x111);
	assert_int_equal(info.rq_psn, 0x123456);
	assert_int_equal(info.retry_count, 7);
	assert_int_equal(info.mtu, MTU_1024);
	assert_memory_equal(info.peer.priv, "\1\2\3\4", 4);
	assert_true(gid_eq(&info.av.dgid, &rig.h[0].gid));
	end(&side[0]);
	run(1 * SEC);
	assert_int_equal(sent, 5);
	end(&side[1]);
	close_world();
}

/* Each message of a life, with each fate; whoever ends it. */
static void test_each_message(void **state)
{
	(void)state;
	for (int kind = 0; kind < 3; kind++)
		for (unsigned f = FATE_DROP; f < FATES; f++)
			for (unsigned at = 1; at <= 6; at++) {
				open_world();
				sidr = kind == 2;
				fault = (enum fate)f;
				fault_at = at;
				life(kind & 1);
				close_world();
			}
}

static void test_each_pair_of_messages(void **state)
{
	(void)state;
	for (unsigned f = FATE_DROP; f < FATES; f++)
		for (unsigned at = 1; at <= 7; at++)
			for (unsigned at2 = at + 1; at2 <= 8; at2++) {
				open_world();
				fault = (enum fate)f;
				fault_at = at;
				fault_at2 = at2;
				life(at2 & 1);
				close_world();
			}
}

/* Much worse wires: it ends, however it does, and nothing is left. */
static void test_random_wires(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 300; seed++) {
		open_world();
		prng_init(&rng, seed);
		random_ppm = 100000 + (uint32_t)prng_below(&rng, 500000);
		sidr = seed % 5 == 0;
		connect_now(0x111);
		run((int64_t)prng_below(&rng, 10000) * MS);
		if (!sidr && !side[seed & 1].gone)
			(void)!cm_disconnect(side[seed & 1].conn);
		run((int64_t)prng_below(&rng, 20000) * MS);
		end(&side[0]);
		run((int64_t)prng_below(&rng, 5000) * MS);
		end(&side[1]);
		close_world();
	}
}

/* B158: nobody listens; the listener says no; nobody is there. */
static void test_no(void **state)
{
	(void)state;
	open_world();
	cm_unlisten(listener);
	listener = NULL;
	connect_now(0x111);
	run(1 * SEC);
	assert_int_equal(side[0].reason, CM_REJ_INVALID_SERVICE_ID);
	sidr = true;
	connect_now(0);
	run(1 * SEC);
	assert_int_equal(side[0].reason, CM_SIDR_NO_SERVICE);
	close_world();

	open_world();
	mute = true;
	connect_now(0x111);
	run(1 * SEC);
	assert_int_equal(cm_reject(side[1].conn, CM_REJ_CONSUMER,
				   (const uint8_t *)"no", 2),
			 0);
	run(1 * SEC);
	assert_int_equal(side[0].reason, CM_REJ_CONSUMER);
	end(&side[1]);
	close_world();

	open_world();
	lose_attr = CM_REQ;
	connect_now(0x111);
	run(200 * SEC);
	assert_true(side[0].seen[CM_EVENT_UNREACHABLE]);
	assert_int_equal(sent, 16 + 1); /* as Linux; and a REJ */
	close_world();
}

/* B161: every RTU lost, and no data. */
static void test_no_rtu(void **state)
{
	(void)state;
	open_world();
	lose_attr = CM_RTU;
	connect_now(0x111);
	run(200 * SEC);
	assert_true(side[1].seen[CM_EVENT_UNREACHABLE]);
	assert_false(side[1].seen[CM_EVENT_ESTABLISHED]);
	assert_true(side[0].seen[CM_EVENT_DISCONNECTED]);
	close_world();
}

/* B160: the RTU is lost but data came. */
static void test_data_for_rtu(void **state)
{
	(void)state;
	open_world();
	lose_attr = CM_RTU;
	connect_now(0x111);
	run(1 * SEC);
	assert_false(side[1].seen[CM_EVENT_ESTABLISHED]);
	cm_qp_established(hca(1), 0x777);
	run(1 * SEC);
	assert_true(side[1].seen[CM_EVENT_ESTABLISHED]);
	end(&side[0]);
	end(&side[1]);
	close_world();
}

/* B155: the client dies and comes back at once with the same QPN: one refusal,
 * its old connection ends, the next try works. */
static void test_stale(void **state)
{
	struct side first;

	(void)state;
	open_world();
	connect_now(0x111);
	run(1 * SEC);
	assert_true(both(CM_EVENT_REP, CM_EVENT_ESTABLISHED));
	/* As if it had died: what it says now is lost, and forgotten. */
	first = side[0];
	lose_attr = CM_DREQ;
	end(&first);
	connect_now(0x111);
	run(100 * MS);
	assert_int_equal(side[0].reason, CM_REJ_STALE_CONN);
	assert_true(side[1].seen[CM_EVENT_DISCONNECTED]);
	lose_attr = 0;
	first = side[1];
	cm_destroy(first.conn);
	their_qpn = 0x778;
	connect_now(0x111);
	run(100 * MS);
	assert_true(both(CM_EVENT_REP, CM_EVENT_ESTABLISHED));
	end(&side[0]);
	end(&side[1]);
	close_world();
}

/* ---- what strangers send ---- */

static void inject(int to, const struct cm_msg *m)
{
	uint8_t mad[MAD_BYTES];
	struct pkt p = { .payload = mad, .payload_bytes = sizeof(mad) };

	cm_msg_encode(m, mad);
	p.bth.opcode = OPCODE(TRANSPORT_UD, OP_SEND_ONLY);
	p.bth.pkey = 0xffff;
	p.bth.dest_qpn = BTH_QPN_GSI;
	p.ext.deth.qkey = GSI_QKEY;
	p.ext.deth.src_qpn = BTH_QPN_GSI;
	rig_inject(&rig.h[to], &p);
}

static struct cm_msg some_req(uint32_t id)
{
	struct cm_msg m = {
		.attr = CM_REQ,
		.tid = id,
		.local_id = id,
		.service_id = SERVICE,
		.ca_guid = 0xabcd,
		.qpn = id & 0xffffff,
		.mtu = MTU_1024,
	};

	m.primary.local_gid = rig.h[0].gid;
	m.primary.remote_gid = rig.h[1].gid;
	return m;
}

/* 10,000 REQs: the listener's backlog bounds what they cost; an honest one is
 * served as soon as there is room. */
static void test_flood(void **state)
{
	struct hca_event ev;
	size_t before;

	(void)state;
	open_world();
	before = rig.h[1].alloc_bytes;
	for (uint32_t i = 1; i <= 10000; i++) {
		struct cm_msg m = some_req(i);

		inject(1, &m);
	}
	assert_int_equal(rig.h[1].alloc_bytes, before);
	assert_int_equal(hca_counters(hca(1))->cm_backlog_drops, 10000 - 4);
	while (hca_event_next(hca(1), &ev)) {
		assert_int_equal(cm_adopt(ev.conn, &side[1]), 0);
		cm_destroy(ev.conn);
	}
	connect_now(0x111);
	run(1 * SEC);
	assert_true(both(CM_EVENT_REP, CM_EVENT_ESTABLISHED));
	end(&side[0]);
	end(&side[1]);
	close_world();
}

/* Every reason for which a REQ itself is refused. */
static void test_bad_reqs(void **state)
{
	struct rig_frame f;
	struct cm_msg m, r;

	(void)state;
	open_world();
	for (unsigned i = 0; i < 4; i++) {
		static const enum cm_reject want[] = {
			CM_REJ_INVALID_SERVICE_ID,
			CM_REJ_INVALID_TRANSPORT_TYPE, CM_REJ_INVALID_MTU,
			CM_REJ_INVALID_GID
		};

		m = some_req(i + 1);
		m.service_id += i == 0;
		m.transport = i == 1 ? 2 : 0;
		m.mtu = i == 2 ? 6 : MTU_1024;
		m.primary.remote_gid.raw[15] ^= i == 3;
		inject(1, &m);
		assert_true(rig_tx(&rig.h[1], UINT32_MAX, &f));
		assert_true(cm_msg_decode(&r, f.pkt.payload));
		assert_int_equal(r.attr, CM_REJ);
		assert_int_equal(r.reason, want[i]);
		assert_int_equal(r.remote_id, i + 1);
		assert_int_equal(r.tid, m.tid);
	}
	close_world();
}

/* What is nobody's: DREQ and REP are answered, the rest is counted. */
static void test_unowned(void **state)
{
	struct rig_frame f;
	struct cm_msg m = { .local_id = 5, .remote_id = 0x12345678, .tid = 3 };
	struct cm_msg r;

	(void)state;
	open_world();
	for (int attr = CM_MRA; attr <= CM_ATTR_LAST; attr++) {
		bool answered = attr == CM_DREQ || attr == CM_REP;

		if (attr == CM_SIDR_REQ)
			continue;
		m.attr = (enum cm_attr)attr;
		inject(1, &m);
		assert_int_equal(rig_tx(&rig.h[1], UINT32_MAX, &f), answered);
		if (!answered)
			continue;
		assert_true(cm_msg_decode(&r, f.pkt.payload));
		assert_int_equal(r.attr, attr == CM_DREQ ? CM_DREP : CM_REJ);
		assert_int_equal(r.remote_id, 5);
	}
	assert_int_equal(hca_counters(hca(1))->cm_unowned, 9);
	close_world();
}

/* Any message in any state: no more than counters move. */
static void test_any_message_any_time(void **state)
{
	(void)state;
	prng_init(&rng, 11);
	for (unsigned round = 0; round < 400; round++) {
		open_world();
		mute = round & 1;
		sidr = round % 7 == 0;
		connect_now(0x111);
		run((int64_t)prng_below(&rng, 4) * WIRE_NS);
		for (unsigned n = 0; n < 20; n++) {
			int to = (int)prng_below(&rng, 2);
			struct cm_msg m = {
				.attr = (enum cm_attr)(CM_ATTR_FIRST +
						       prng_below(&rng, 11)),
				.service_id = SERVICE + prng_below(&rng, 2),
				.qpn = prng_below(&rng, 2) ? 0x111 : 0x777,
				.reason = (uint16_t)prng_below(&rng, 40),
				.which = (uint8_t)prng_below(&rng, 3),
				.mtu = 3,
			};

			m.ca_guid = hca(1 - to)->cfg.node_guid;
			if (!side[0].gone)
				m.local_id = side[0].conn->local_id;
			m.remote_id = m.local_id;
			if (!side[1].gone)
				m.local_id = side[1].conn->local_id;
			if (to == 1) {
				uint32_t t = m.local_id;

				m.local_id = m.remote_id;
				m.remote_id = t;
			}
			/* A REQ that makes one more is the flood's test. */
			if (m.attr == CM_REQ || m.attr == CM_SIDR_REQ)
				continue;
			inject(to, &m);
			run((int64_t)prng_below(&rng, 2) * WIRE_NS);
		}
		end(&side[0]);
		end(&side[1]);
		close_world();
	}
}

static void test_arguments(void **state)
{
	struct cm_listener *again;
	uint8_t big[CM_PRIVATE_MAX] = { 0 };
	struct cm_connect_param p = { .av = av_to(1), .priv = big };
	struct cm_accept_param a = { .priv = big, .priv_bytes = 197 };
	struct cm_conn *c;

	(void)state;
	open_world();
	assert_int_equal(cm_listen(hca(1), SERVICE, NULL, 1, NULL, &again),
			 -EADDRINUSE); /* B170 */
	assert_int_equal(cm_listen(hca(1), SERVICE + 1, NULL, 0, NULL, &again),
			 -EINVAL);
	p.av = av_to(1);
	p.priv_bytes = 93;
	assert_int_equal(cm_connect(hca(0), &p, NULL, &c), -EINVAL);
	p.priv_bytes = 0;
	p.av.is_global = false;
	assert_int_equal(cm_connect(hca(0), &p, NULL, &c), -EINVAL);
	mute = true;
	connect_now(0x111);
	assert_int_equal(cm_establish(side[0].conn, NULL, 0), -EINVAL);
	assert_int_equal(cm_disconnect(side[0].conn), -EINVAL);
	run(1 * MS);
	assert_int_equal(cm_accept(side[1].conn, &a), -EINVAL);
	assert_int_equal(cm_reject(side[1].conn, CM_REJ_CONSUMER, big, 149),
			 -EINVAL);
	end(&side[0]);
	end(&side[1]);
	close_world();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_life),
		cmocka_unit_test(test_each_message),
		cmocka_unit_test(test_each_pair_of_messages),
		cmocka_unit_test(test_random_wires),
		cmocka_unit_test(test_no),
		cmocka_unit_test(test_no_rtu),
		cmocka_unit_test(test_data_for_rtu),
		cmocka_unit_test(test_stale),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_bad_reqs),
		cmocka_unit_test(test_unowned),
		cmocka_unit_test(test_any_message_any_time),
		cmocka_unit_test(test_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
