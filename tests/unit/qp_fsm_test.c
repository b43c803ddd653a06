/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The transition table of qp_fsm.c against one that was written down in
 * another form: a line a transition and type, as [IBA table 91] has them.
 */
#include "core_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "core/obj/qp.h"

static struct rig rig;

static int open_rig(void **state)
{
	(void)state;
	rig_open(&rig, NULL);
	return 0;
}

static int close_rig(void **state)
{
	(void)state;
	rig_close(&rig);
	return 0;
}

/* Attributes by letter:
 *   c cur_state   n sqd notify  a access    k pkey_index  o port
 *   q qkey        v av          m path_mtu  t timeout     r retry_cnt
 *   R rnr_retry   p rq_psn      s sq_psn    i max_rd_atomic
 *   d max_dest_rd_atomic  A alt_path  w min_rnr_timer  g mig_state
 *   D dest_qpn
 */
static const char letters[] = "cnakoqvmtrRpiAwsdgD";
static const uint32_t letter_bits[] = {
	QP_ATTR_CUR_STATE,
	QP_ATTR_EN_SQD_ASYNC_NOTIFY,
	QP_ATTR_ACCESS_FLAGS,
	QP_ATTR_PKEY_INDEX,
	QP_ATTR_PORT,
	QP_ATTR_QKEY,
	QP_ATTR_AV,
	QP_ATTR_PATH_MTU,
	QP_ATTR_TIMEOUT,
	QP_ATTR_RETRY_CNT,
	QP_ATTR_RNR_RETRY,
	QP_ATTR_RQ_PSN,
	QP_ATTR_MAX_QP_RD_ATOMIC,
	QP_ATTR_ALT_PATH,
	QP_ATTR_MIN_RNR_TIMER,
	QP_ATTR_SQ_PSN,
	QP_ATTR_MAX_DEST_RD_ATOMIC,
	QP_ATTR_PATH_MIG_STATE,
	QP_ATTR_DEST_QPN,
};

static uint32_t bits(const char *s)
{
	uint32_t m = 0;

	for (; *s; s++) {
		const char *l = strchr(letters, *s);

		assert_non_null(l);
		m |= letter_bits[l - letters];
	}
	return m;
}

static const struct line {
	enum qp_type type;
	enum qp_state from, to;
	const char *required, *optional;
} lines[] = {
	{ QP_TYPE_RC, QP_STATE_RESET, QP_STATE_INIT, "kao", "" },
	{ QP_TYPE_RC, QP_STATE_INIT, QP_STATE_INIT, "", "kao" },
	{ QP_TYPE_RC, QP_STATE_INIT, QP_STATE_RTR, "vmDpdw", "Aak" },
	{ QP_TYPE_RC, QP_STATE_RTR, QP_STATE_RTS, "trRsi", "caAwg" },
	{ QP_TYPE_RC, QP_STATE_RTS, QP_STATE_RTS, "", "caAwg" },
	{ QP_TYPE_RC, QP_STATE_RTS, QP_STATE_SQD, "", "n" },
	{ QP_TYPE_RC, QP_STATE_SQD, QP_STATE_RTS, "", "caAwg" },
	{ QP_TYPE_RC, QP_STATE_SQD, QP_STATE_SQD, "", "ovtrRidAakwg" },

	{ QP_TYPE_UC, QP_STATE_RESET, QP_STATE_INIT, "kao", "" },
	{ QP_TYPE_UC, QP_STATE_INIT, QP_STATE_INIT, "", "kao" },
	{ QP_TYPE_UC, QP_STATE_INIT, QP_STATE_RTR, "vmDp", "Aak" },
	{ QP_TYPE_UC, QP_STATE_RTR, QP_STATE_RTS, "s", "caAg" },
	{ QP_TYPE_UC, QP_STATE_RTS, QP_STATE_RTS, "", "caAg" },
	{ QP_TYPE_UC, QP_STATE_RTS, QP_STATE_SQD, "", "n" },
	{ QP_TYPE_UC, QP_STATE_SQD, QP_STATE_RTS, "", "caAg" },
	{ QP_TYPE_UC, QP_STATE_SQD, QP_STATE_SQD, "", "vAakg" },
	{ QP_TYPE_UC, QP_STATE_SQE, QP_STATE_RTS, "", "ca" },

	{ QP_TYPE_UD, QP_STATE_RESET, QP_STATE_INIT, "kqo", "" },
	{ QP_TYPE_UD, QP_STATE_INIT, QP_STATE_INIT, "", "kqo" },
	{ QP_TYPE_UD, QP_STATE_INIT, QP_STATE_RTR, "", "kq" },
	{ QP_TYPE_UD, QP_STATE_RTR, QP_STATE_RTS, "s", "cq" },
	{ QP_TYPE_UD, QP_STATE_RTS, QP_STATE_RTS, "", "cq" },
	{ QP_TYPE_UD, QP_STATE_RTS, QP_STATE_SQD, "", "n" },
	{ QP_TYPE_UD, QP_STATE_SQD, QP_STATE_RTS, "", "cq" },
	{ QP_TYPE_UD, QP_STATE_SQD, QP_STATE_SQD, "", "kq" },
	{ QP_TYPE_UD, QP_STATE_SQE, QP_STATE_RTS, "", "cq" },
};

/* NULL: no such transition. */
static const struct line *find(enum qp_type type, enum qp_state from,
			       enum qp_state to)
{
	static struct line any = { .required = "", .optional = "" };

	if (to == QP_STATE_RESET || to == QP_STATE_ERR)
		return &any;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (lines[i].type == type && lines[i].from == from &&
		    lines[i].to == to)
			return &lines[i];
	/* RC never gets to SQE, but could leave it. */
	if (from == QP_STATE_SQE && to == QP_STATE_RTS)
		return &any;
	return NULL;
}

static struct rig_pair_config config_of(enum qp_type type)
{
	return (struct rig_pair_config){ .type = type };
}

static void put_in(struct rig_end *e, enum qp_state s,
		   const struct rig_end *peer, const struct rig_pair_config *c)
{
	if (qp_state(e->qp) != QP_STATE_RESET)
		assert_int_equal(rig_state(e, QP_STATE_RESET), 0);
	if (s == QP_STATE_SQE) {
		rig_walk(e, QP_STATE_RTS, peer, c);
		/* What a failing send does; for RC there is no way. */
		if (c->type == QP_TYPE_RC)
			atomic_store(&e->qp->state, QP_STATE_SQE);
		else
			qp_sq_error(e->qp);
		return;
	}
	rig_walk(e, s, peer, c);
}

/* All attributes of all transitions, every value fine. */
static struct qp_attr good_attr(const struct rig_end *peer,
				const struct rig_pair_config *c,
				enum qp_state from, enum qp_state to)
{
	struct qp_attr a, rtr, rts;

	rig_attrs(c->type, QP_STATE_INIT, peer, c, &a);
	rig_attrs(c->type, QP_STATE_RTR, peer, c, &rtr);
	rig_attrs(c->type, QP_STATE_RTS, peer, c, &rts);
	a.state = to;
	a.cur_state = from;
	a.ah = a.alt_ah = rtr.ah;
	a.alt_port_num = 1;
	a.path_mtu = rtr.path_mtu;
	a.dest_qpn = rtr.dest_qpn;
	a.max_dest_rd_atomic = 4;
	a.max_rd_atomic = 4;
	a.timeout = 14;
	a.retry_cnt = a.rnr_retry = 7;
	return a;
}

struct pick { /* one call of modify */
	struct rig_end *e;
	const struct rig_end *peer;
	const struct rig_pair_config *c;
	enum qp_state from, to;
};

static void try(const struct pick *p, uint32_t mask, bool ok)
{
	struct qp_attr a = good_attr(p->peer, p->c, p->from, p->to);
	int rc;

	put_in(p->e, p->from, p->peer, p->c);
	rc = qp_modify(p->e->qp, &a, mask | QP_ATTR_STATE, 0);
	if (rc != (ok ? 0 : -EINVAL))
		print_message("type %d, %d -> %d, mask %x: %d\n", p->c->type,
			      p->from, p->to, mask, rc);
	assert_int_equal(rc, ok ? 0 : -EINVAL);
	assert_int_equal(qp_state(p->e->qp), ok ? p->to : p->from);
}

/* Each single attribute dropped from, or added to, the required ones. */
static void try_masks(const struct pick *p, const struct line *l)
{
	uint32_t required = l ? bits(l->required) : 0;
	uint32_t optional = l ? bits(l->optional) : 0;

	try(p, required, l != NULL);
	try(p, required | optional, l != NULL);
	for (uint32_t bit = 1; bit < 1u << 27; bit <<= 1) {
		if (bit == QP_ATTR_STATE)
			continue;
		try(p, required ^ bit,
		    l && !(required & bit) && (optional & bit));
	}
}

static void test_all_transitions(void **state)
{
	static const enum qp_type types[] = { QP_TYPE_RC, QP_TYPE_UC,
					      QP_TYPE_UD };

	(void)state;
	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		struct rig_pair_config c = config_of(types[t]);
		struct rig_pair p;

		rig_pair_open(&p, &rig, &c);
		for (int from = 0; from <= QP_STATE_ERR; from++)
			for (int to = 0; to <= QP_STATE_ERR; to++) {
				struct pick k = { &p.e[0], &p.e[1], &c,
						  (enum qp_state)from,
						  (enum qp_state)to };

				try_masks(&k, find(types[t], k.from, k.to));
			}
		rig_pair_close(&p);
	}
}

/* One attribute out of its range in an otherwise good call: refused, and
 * nothing changed. */
static void refuse(struct rig_pair *p, struct rig_pair_config *c,
		   enum qp_state from, uint32_t mask, const struct qp_attr *a)
{
	struct qp_attr before, after;
	struct qp_init init;

	put_in(&p->e[0], from, &p->e[1], c);
	qp_query(p->e[0].qp, &before, &init);
	assert_int_equal(qp_modify(p->e[0].qp, a, mask, 0), -EINVAL);
	qp_query(p->e[0].qp, &after, &init);
	assert_memory_equal(&before, &after, sizeof(before));
}

static void test_rtr_values(void **state)
{
	struct rig_pair_config c = config_of(QP_TYPE_RC);
	struct rig_pair p;
	struct qp_attr a, good;
	uint32_t mask;

	(void)state;
	rig_pair_open(&p, &rig, &c);
	mask = rig_attrs(QP_TYPE_RC, QP_STATE_RTR, &p.e[1], &c, &good);
#define BAD(change)                                                            \
	do {                                                                   \
		a = good;                                                      \
		change;                                                        \
		refuse(&p, &c, QP_STATE_INIT, mask, &a);                       \
	} while (0)
	BAD(a.path_mtu = 0);
	BAD(a.path_mtu = 6);
	BAD(a.dest_qpn = 0x1000000);
	BAD(a.max_dest_rd_atomic = 129);
	BAD(a.min_rnr_timer = 32);
	BAD(a.ah.is_global = false); /* B124 */
	BAD(a.ah.port_num = 0);
	BAD(a.ah.port_num = 2);
	BAD(a.ah.sgid_index = 2); /* empty */
	BAD(a.ah.sgid_index = 255);
	BAD(a.ah.sgid_index = 1); /* IPv6 source, IPv4 destination */
	BAD(memset(&a.ah.dgid, 0, 16));
	BAD(a.ah.sl = 16);
	BAD(a.ah.flow_label = 0x100000);
#undef BAD
	put_in(&p.e[0], QP_STATE_INIT, &p.e[1], &c);
	assert_int_equal(qp_modify(p.e[0].qp, &good, mask, 0), 0);
	rig_pair_close(&p);
}

/* B101: what the port and the source's netdev carry. */
static void test_path_mtu(void **state)
{
	static const struct {
		uint32_t netdev;
		enum mtu_code active;
	} cases[] = {
		{ 200, 0 },	    { 576, MTU_256 },	 { 1280, MTU_1024 },
		{ 1500, MTU_1024 }, { 2200, MTU_2048 },	 { 4200, MTU_4096 },
		{ 9000, MTU_4096 }, { 65536, MTU_4096 },
	};
	struct rig_pair_config c = config_of(QP_TYPE_RC);
	struct gid_entry e = *hca_gid(rig.h[0].hca, 0);
	struct rig_pair p;

	(void)state;
	rig_pair_open(&p, &rig, &c);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		hca_set_port(rig.h[0].hca, PORT_STATE_ACTIVE, cases[i].netdev);
		assert_int_equal(hca_active_mtu(rig.h[0].hca), cases[i].active);
		for (enum mtu_code m = MTU_256; m <= MTU_4096; m++) {
			struct qp_attr a;
			uint32_t mask;

			put_in(&p.e[0], QP_STATE_INIT, &p.e[1], &c);
			mask = rig_attrs(QP_TYPE_RC, QP_STATE_RTR, &p.e[1], &c,
					 &a);
			a.path_mtu = m;
			assert_int_equal(qp_modify(p.e[0].qp, &a, mask, 0),
					 m <= cases[i].active ? 0 : -EINVAL);
		}
	}
	/* The entry's own netdev is the smaller one. */
	e.mtu_bytes = 600;
	assert_int_equal(hca_set_gid(rig.h[0].hca, 0, &e), 0);
	{
		struct qp_attr a;
		uint32_t mask =
			rig_attrs(QP_TYPE_RC, QP_STATE_RTR, &p.e[1], &c, &a);

		a.path_mtu = MTU_1024;
		refuse(&p, &c, QP_STATE_INIT, mask, &a);
	}
	rig_pair_close(&p);
}

static void test_other_values(void **state)
{
	struct rig_pair_config c = config_of(QP_TYPE_RC);
	struct rig_pair p;
	struct qp_attr a, init, rts;
	uint32_t imask, rmask;

	(void)state;
	rig_pair_open(&p, &rig, &c);
	imask = rig_attrs(QP_TYPE_RC, QP_STATE_INIT, &p.e[1], &c, &init);
	rmask = rig_attrs(QP_TYPE_RC, QP_STATE_RTS, &p.e[1], &c, &rts);
#define BAD(from, good, mask, change)                                          \
	do {                                                                   \
		a = good;                                                      \
		change;                                                        \
		refuse(&p, &c, from, mask, &a);                                \
	} while (0)
	BAD(QP_STATE_RESET, init, imask, a.port_num = 0);
	BAD(QP_STATE_RESET, init, imask, a.port_num = 2);
	BAD(QP_STATE_RESET, init, imask, a.pkey_index = 1);
	BAD(QP_STATE_RTR, rts, rmask, a.timeout = 32);
	BAD(QP_STATE_RTR, rts, rmask, a.retry_cnt = 8);
	BAD(QP_STATE_RTR, rts, rmask, a.rnr_retry = 8);
	BAD(QP_STATE_RTR, rts, rmask, a.max_rd_atomic = 129);
	BAD(QP_STATE_RTR, rts, rmask | QP_ATTR_CUR_STATE,
	    a.cur_state = QP_STATE_RTS);
	BAD(QP_STATE_RTR, rts, rmask | QP_ATTR_PATH_MIG_STATE,
	    a.mig_state = MIG_STATE_ARMED);
	BAD(QP_STATE_RTR, rts, rmask | QP_ATTR_ALT_PATH, a.alt_port_num = 0);
	BAD(QP_STATE_RTR, rts, rmask, a.state = (enum qp_state)7);
	BAD(QP_STATE_RTR, rts, rmask, a.state = (enum qp_state) - 1);
#undef BAD
	rig_pair_close(&p);
}

/* B095, B097, B098: query gives back what was set. */
static void test_query(void **state)
{
	struct rig_pair_config c = config_of(QP_TYPE_RC);
	struct rig_end e;
	struct qp_attr init, rtr, rts, got;
	struct qp_init qi;
	uint32_t mask;

	(void)state;
	rig_end_open(&e, &rig.h[0], &c);
	qp_query(e.qp, &got, &qi);
	assert_int_equal(got.state, QP_STATE_RESET);
	assert_ptr_equal(qi.send_cq, e.scq);
	assert_ptr_equal(qi.recv_cq, e.rcq);
	assert_int_equal(qi.type, QP_TYPE_RC);
	assert_memory_equal(&qi.cap, &e.cap, sizeof(e.cap));
	mask = rig_attrs(QP_TYPE_RC, QP_STATE_INIT, &e, &c, &init);
	init.access = ACCESS_REMOTE_READ;
	assert_int_equal(qp_modify(e.qp, &init, mask, 0), 0);
	mask = rig_attrs(QP_TYPE_RC, QP_STATE_RTR, &e, &c, &rtr);
	rtr.dest_qpn = 0xabcdef;
	rtr.rq_psn = 0xff123456; /* cut to 24 bits */
	rtr.min_rnr_timer = 31;
	rtr.max_dest_rd_atomic = 3;
	rtr.ah.hop_limit = 17;
	rtr.ah.traffic_class = 0x68;
	rtr.ah.flow_label = 0xfffff;
	rtr.ah.sl = 5;
	rtr.ah.static_rate = 3;
	assert_int_equal(qp_modify(e.qp, &rtr, mask, 0), 0);
	mask = rig_attrs(QP_TYPE_RC, QP_STATE_RTS, &e, &c, &rts);
	rts.sq_psn = 0x654321;
	rts.retry_cnt = 5;
	rts.rnr_retry = 6;
	rts.timeout = 31;
	rts.max_rd_atomic = 2;
	assert_int_equal(qp_modify(e.qp, &rts, mask, 0), 0);
	qp_query(e.qp, &got, &qi);
	assert_int_equal(got.state, QP_STATE_RTS);
	assert_int_equal(got.cur_state, QP_STATE_RTS);
	assert_int_equal(got.port_num, 1);
	assert_int_equal(got.pkey_index, 0);
	assert_int_equal(got.access, ACCESS_REMOTE_READ);
	assert_int_equal(got.path_mtu, MTU_1024);
	assert_int_equal(got.dest_qpn, 0xabcdef);
	assert_int_equal(got.rq_psn, 0x123456);
	assert_int_equal(got.sq_psn, 0x654321);
	assert_int_equal(got.retry_cnt, 5);
	assert_int_equal(got.rnr_retry, 6);
	assert_int_equal(got.timeout, 31);
	assert_int_equal(got.min_rnr_timer, 31);
	assert_int_equal(got.max_rd_atomic, 2);
	assert_int_equal(got.max_dest_rd_atomic, 3);
	assert_int_equal(got.mig_state, MIG_STATE_MIGRATED);
	assert_memory_equal(&got.ah, &rtr.ah, sizeof(rtr.ah));
	assert_memory_equal(&got.cap, &e.cap, sizeof(e.cap));
	assert_int_equal(qp_path(e.qp)->hop_limit, 17);
	assert_int_equal(qp_path(e.qp)->tclass, 0x68);
	assert_int_equal(qp_path(e.qp)->netdev, 2);
	/* RESET forgets. */
	assert_int_equal(rig_state(&e, QP_STATE_RESET), 0);
	qp_query(e.qp, &got, &qi);
	assert_int_equal(got.dest_qpn, 0);
	assert_int_equal(got.state, QP_STATE_RESET);
	assert_memory_equal(&got.cap, &e.cap, sizeof(e.cap));
	rig_end_close(&e);
}

/* B100: a QP keeps its port, QPs spread over them; a flow label decides. */
static void test_source_ports(void **state)
{
	struct rig_pair_config c = config_of(QP_TYPE_UC);
	bool seen[0x4000] = { false };
	unsigned distinct = 0;

	(void)state;
	for (int i = 0; i < 100; i++) {
		struct rig_pair p;
		uint16_t sport;

		rig_pair_open(&p, &rig, &c);
		sport = qp_path(p.e[0].qp)->sport;
		assert_in_range(sport, 0xc000, 0xffff);
		assert_int_equal(sport, qp_path(p.e[1].qp)->sport);
		distinct += !seen[sport & 0x3fff];
		seen[sport & 0x3fff] = true;
		rig_pair_close(&p);
	}
	assert_in_range(distinct, 90, 100);
}

/* SQD: what was begun finishes, what was not waits; then the event. */
static void test_drain(void **state)
{
	struct rig_pair_config c = { .type = QP_TYPE_UC, .sq_sig_all = true };
	struct qp_attr a = { .state = QP_STATE_SQD,
			     .en_sqd_async_notify = true };
	struct send_wr wr = { .opcode = WR_SEND };
	struct rig_frame f;
	struct rig_pair p;
	struct qp_init qi;
	struct hca_event ev;

	(void)state;
	rig_pair_open(&p, &rig, &c);
	for (int i = 0; i < 2; i++)
		assert_int_equal(rig_post_recv(&p.e[1], 1, 0, 4096), 0);
	assert_int_equal(rig_post_send(&p.e[0], wr, 0, 3000), 0);
	assert_int_equal(rig_post_send(&p.e[0], wr, 0, 10), 0);
	assert_true(rig_tx(&rig.h[0], 1, &f)); /* 1 of 3 */
	assert_int_equal(qp_modify(p.e[0].qp, &a,
				   QP_ATTR_STATE | QP_ATTR_EN_SQD_ASYNC_NOTIFY,
				   0),
			 0);
	qp_query(p.e[0].qp, &a, &qi);
	assert_true(a.sq_draining);
	assert_true(rig_no_event(&rig.h[0]));
	assert_true(rig_tx(&rig.h[0], 1, &f));
	assert_true(rig_no_event(&rig.h[0]));
	assert_true(rig_tx(&rig.h[0], 1, &f));
	assert_int_equal(f.pkt.bth.opcode, OPCODE(TRANSPORT_UC, OP_SEND_LAST));
	ev = rig_event(&rig.h[0]);
	assert_int_equal(ev.type, ASYNC_SQ_DRAINED);
	assert_ptr_equal(ev.qp, p.e[0].qp);
	assert_true(rig_no_event(&rig.h[0]));
	qp_query(p.e[0].qp, &a, &qi);
	assert_false(a.sq_draining);
	assert_false(rig_tx(&rig.h[0], 1, &f));
	assert_int_equal(rig_post_send(&p.e[0], wr, 0, 11), 0);
	assert_false(rig_tx(&rig.h[0], 1, &f));
	assert_int_equal(rig_state(&p.e[0], QP_STATE_RTS), 0);
	assert_true(rig_tx(&rig.h[0], 1, &f));
	assert_true(rig_tx(&rig.h[0], 1, &f));
	assert_int_equal(f.pkt.payload_bytes, 11);
	/* Nothing under way: drained at once; silent when not asked for. */
	a = (struct qp_attr){ .state = QP_STATE_SQD };
	assert_int_equal(qp_modify(p.e[0].qp, &a,
				   QP_ATTR_STATE | QP_ATTR_EN_SQD_ASYNC_NOTIFY,
				   0),
			 0);
	qp_query(p.e[0].qp, &a, &qi);
	assert_false(a.sq_draining);
	assert_true(rig_no_event(&rig.h[0]));
	rig_pair_close(&p);
}

/* RESET drops what is queued without a completion, and takes the QP's CQEs out
 * of its CQs. */
static void test_reset(void **state)
{
	struct rig_pair_config c = { .type = QP_TYPE_UC, .sq_sig_all = true };
	struct send_wr wr = { .wr_id = 1, .opcode = WR_WRITE };
	struct rig_pair p;

	(void)state;
	rig_pair_open(&p, &rig, &c);
	assert_int_equal(rig_post_send(&p.e[0], wr, 0, 0), 0);
	rig_pump(&rig);
	wr.wr_id = 2;
	for (int i = 0; i < 16; i++)
		assert_int_equal(rig_post_send(&p.e[0], wr, 0, 0), 0);
	assert_int_equal(rig_post_send(&p.e[0], wr, 0, 0), -ENOMEM);
	assert_int_equal(rig_post_recv(&p.e[0], 3, 0, 8), 0);
	assert_int_equal(rig_state(&p.e[0], QP_STATE_RESET), 0);
	rig_pump(&rig);
	assert_true(rig_empty(p.e[0].scq));
	assert_true(rig_empty(p.e[0].rcq));
	rig_walk(&p.e[0], QP_STATE_RTS, &p.e[1], &c);
	wr.wr_id = 4;
	for (int i = 0; i < 16; i++)
		assert_int_equal(rig_post_send(&p.e[0], wr, 0, 0), 0);
	rig_pump(&rig);
	for (int i = 0; i < 16; i++)
		assert_int_equal(rig_poll(p.e[0].scq).wr_id, 4);
	rig_pair_close(&p);
}

/* An attribute change that needs memory and gets none changes nothing. */
static void test_no_memory(void **state)
{
	struct rig_pair_config c = config_of(QP_TYPE_RC);
	struct rig_pair p;
	struct qp_attr a;
	uint32_t mask;

	(void)state;
	c.stop = QP_STATE_INIT;
	rig_pair_open(&p, &rig, &c);
	mask = rig_attrs(QP_TYPE_RC, QP_STATE_RTR, &p.e[1], &c, &a);
	for (int n = 0; n < 2;
	     n++) { /* room for answers, account of the peer */
		rig.h[0].alloc_fails_after = n;
		assert_int_equal(qp_modify(p.e[0].qp, &a, mask, 0), -ENOMEM);
		assert_int_equal(qp_state(p.e[0].qp), QP_STATE_INIT);
		assert_int_equal(rig_state(&p.e[0], QP_STATE_RESET), 0);
		rig_walk(&p.e[0], QP_STATE_INIT, &p.e[1], &c);
	}
	rig.h[0].alloc_fails_after = -1;
	assert_int_equal(qp_modify(p.e[0].qp, &a, mask, 0), 0);
	rig_pair_close(&p);
}

/* What a connected RC QP costs beyond the WQEs that it asked for; the account
 * of the peer's process is shared. docs/performance.md states it. */
static void test_memory(void **state)
{
	static const struct {
		uint8_t rd_atomic;
		size_t limit_bytes;
	} want[] = { { 1, 2048 }, { 16, 4096 }, { 128, 16384 } };
	struct rig_pair_config c = config_of(QP_TYPE_RC);
	struct rig_pair first; /* makes table chunks and the account */
	struct rig_end e;

	(void)state;
	rig_pair_open(&first, &rig, &c);
	rig_end_open(&e, &rig.h[0], &c);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		struct qp_init qi = { .type = QP_TYPE_RC,
				      .send_cq = e.scq,
				      .recv_cq = e.rcq };
		struct qp_attr a;
		size_t before;
		uint32_t mask;

		assert_int_equal(qp_destroy(e.qp), 0);
		before = rig.h[0].alloc_bytes;
		assert_int_equal(qp_create(e.pd, &qi, &e.cap, &e.qp), 0);
		rig_walk(&e, QP_STATE_INIT, &first.e[1], &c);
		mask = rig_attrs(QP_TYPE_RC, QP_STATE_RTR, &first.e[1], &c, &a);
		a.max_dest_rd_atomic = want[i].rd_atomic;
		assert_int_equal(qp_modify(e.qp, &a, mask, 0), 0);
		print_message("%u: %zu bytes\n", want[i].rd_atomic,
			      rig.h[0].alloc_bytes - before);
		assert_in_range(rig.h[0].alloc_bytes - before, 1,
				want[i].limit_bytes);
	}
	rig_end_close(&e);
	rig_pair_close(&first);
}

/* QPs to one process share an account, others have their own. */
static void test_dest_accounts(void **state)
{
	struct rig_pair_config c = config_of(QP_TYPE_RC);
	struct rig_pair p, q;
	struct qp_attr a;
	uint32_t mask;

	(void)state;
	rig_pair_open(&p, &rig, &c);
	rig_pair_open(&q, &rig, &c);
	assert_non_null(qp_dest_budget(p.e[0].qp));
	assert_ptr_equal(qp_dest_budget(p.e[0].qp), qp_dest_budget(q.e[0].qp));
	/* Another process at the same address. */
	assert_int_equal(rig_state(&q.e[0], QP_STATE_RESET), 0);
	assert_null(qp_dest_budget(q.e[0].qp));
	rig_walk(&q.e[0], QP_STATE_INIT, &q.e[1], &c);
	mask = rig_attrs(QP_TYPE_RC, QP_STATE_RTR, &q.e[1], &c, &a);
	a.dest_qpn ^= 1u << 20;
	assert_int_equal(qp_modify(q.e[0].qp, &a, mask, 0), 0);
	assert_ptr_not_equal(qp_dest_budget(p.e[0].qp),
			     qp_dest_budget(q.e[0].qp));
	rig_pair_close(&q);
	rig_pair_close(&p);
}

#define RIGGED(t) cmocka_unit_test_setup_teardown(t, open_rig, close_rig)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIGGED(test_all_transitions), RIGGED(test_rtr_values),
		RIGGED(test_path_mtu),	      RIGGED(test_other_values),
		RIGGED(test_query),	      RIGGED(test_source_ports),
		RIGGED(test_drain),	      RIGGED(test_reset),
		RIGGED(test_no_memory),	      RIGGED(test_dest_accounts),
		RIGGED(test_memory),
	};

	return cmocka_run_group_tests_name("qp_fsm", tests, NULL, NULL);
}
