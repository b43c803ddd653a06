/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * script_run.c - runs packet scripts: script_run FILE...
 *
 * Exit status 0: all hold; 1: the core did otherwise; 2: a script is wrong.
 * The language is described in docs/packet-scripts.md.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/verbs.h"
#include "script_line.h"
#include "script_pkt.h"
#include "script_rig.h"

#define MAX_SGE 4

struct script {
	struct rig rig;
	struct line line;
	bool has_title, has_clause;
	uint32_t checks; /* expectations that were compared */
};

static const char *const status_names[] = {
	"SUCCESS",	   "LOC_LEN_ERR",	"LOC_QP_OP_ERR",
	"LOC_EEC_OP_ERR",  "LOC_PROT_ERR",	"WR_FLUSH_ERR",
	"MW_BIND_ERR",	   "BAD_RESP_ERR",	"LOC_ACCESS_ERR",
	"REM_INV_REQ_ERR", "REM_ACCESS_ERR",	"REM_OP_ERR",
	"RETRY_EXC_ERR",   "RNR_RETRY_EXC_ERR", NULL
};
static const char *const state_names[] = { "RESET", "INIT", "RTR", "RTS",
					   "SQD",   "SQE",  "ERR", NULL };
static const char *const op_names[] = { "WRITE",     "WRITE_IMM", "SEND",
					"SEND_IMM",  "READ",	  "CMP_SWAP",
					"FETCH_ADD", "LOCAL_INV", "BIND_MW",
					"SEND_INV",  NULL };
static const char *const event_names[] = { "CQ_ERR",
					   "QP_FATAL",
					   "QP_REQ_ERR",
					   "QP_ACCESS_ERR",
					   "COMM_EST",
					   "SQ_DRAINED",
					   "PATH_MIG",
					   "PATH_MIG_ERR",
					   "DEVICE_FATAL",
					   "PORT_ACTIVE",
					   "PORT_ERR",
					   "LID_CHANGE",
					   "PKEY_CHANGE",
					   "SM_CHANGE",
					   "SRQ_ERR",
					   "SRQ_LIMIT_REACHED",
					   "QP_LAST_WQE_REACHED",
					   "CLIENT_REREGISTER",
					   "GID_CHANGE",
					   NULL };
static const char *const errno_names[] = { "EINVAL", "ENOMEM", "EOPNOTSUPP",
					   NULL };
static const int errno_values[] = { -EINVAL, -ENOMEM, -EOPNOTSUPP };

/* ---- set-up ---- */

static void cmd_title(struct script *s, struct line *l)
{
	s->has_title |= !strcmp(l->cmd, "title");
	s->has_clause |= !strcmp(l->cmd, "clause");
	if (!l->num_words)
		line_error(l, "%s of what?", l->cmd);
}

static uint32_t access_of(struct line *l, const char *text)
{
	static const struct {
		const char *name;
		uint32_t bit;
	} bits[] = {
		{ "LW", ACCESS_LOCAL_WRITE }, { "RW", ACCESS_REMOTE_WRITE },
		{ "RR", ACCESS_REMOTE_READ }, { "RA", ACCESS_REMOTE_ATOMIC },
		{ "MB", ACCESS_MW_BIND },     { "ZB", ACCESS_ZERO_BASED }
	};
	uint32_t access = 0;

	for (const char *p = text; *p; p += p[2] ? 3 : 2) {
		unsigned i = 0;

		while (i < ARRAY_SIZE(bits) && strncmp(p, bits[i].name, 2))
			i++;
		if (i == ARRAY_SIZE(bits) || (p[2] && p[2] != '+'))
			line_error(l, "access is LW+RW+RR+RA+MB+ZB: %s", text);
		access |= bits[i].bit;
	}
	return access;
}

static void must(struct line *l, const char *what, int rc)
{
	if (rc)
		line_fail(l, "%s: %s", what, strerror(-rc));
}

static enum mtu_code mtu_of(struct line *l)
{
	uint64_t bytes = line_num(l, "mtu", 256);

	for (int c = MTU_256; c <= MTU_4096; c++)
		if (mtu_bytes((enum mtu_code)c) == bytes)
			return (enum mtu_code)c;
	line_error(l, "mtu is 256, 512, 1024, 2048 or 4096");
}

static void qp_attrs(struct rig *r, struct line *l, struct qp_attr *a)
{
	const char *access = line_get(l, "access");

	r->dest_qpn = (uint32_t)line_num(l, "dest", 0x77);
	r->peer_qkey = (uint32_t)line_num(l, "qkey", 0x11111111);
	*a = (struct qp_attr){
		.path_mtu = mtu_of(l),
		.qkey = r->peer_qkey,
		.rq_psn = (uint32_t)line_num(l, "rq_psn", 0),
		.sq_psn = (uint32_t)line_num(l, "sq_psn", 0),
		.dest_qpn = r->dest_qpn,
		.access = access_of(l, access ? access : "RW+RR+RA"),
		.max_rd_atomic = (uint8_t)line_num(l, "rd", 16),
		.max_dest_rd_atomic = (uint8_t)line_num(l, "dest_rd", 16),
		.min_rnr_timer = (uint8_t)line_num(l, "min_rnr", 12),
		.port_num = 1,
		.timeout = (uint8_t)line_num(l, "timeout", 14),
		.retry_cnt = (uint8_t)line_num(l, "retry", 7),
		.rnr_retry = (uint8_t)line_num(l, "rnr_retry", 7),
		.ah = { .is_global = true,
			.dgid = r->peer,
			.hop_limit = 64,
			.port_num = 1 },
	};
}

static const char *const mig_names[] = { "MIGRATED", "REARM", "ARMED", NULL };

/* What each step needs, beside the state. */
static uint32_t mask_for(enum qp_type t, enum qp_state to)
{
	const uint32_t init = QP_ATTR_PKEY_INDEX | QP_ATTR_PORT;
	const uint32_t rtr = QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
			     QP_ATTR_RQ_PSN;
	const uint32_t rsp = QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER;
	const uint32_t req = QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT |
			     QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC;
	const struct {
		uint32_t init, rtr, rts;
	} of[] = {
		[QP_TYPE_RC] = { QP_ATTR_ACCESS_FLAGS, rtr | rsp, req },
		[QP_TYPE_UC] = { QP_ATTR_ACCESS_FLAGS, rtr, 0 },
		[QP_TYPE_UD] = { QP_ATTR_QKEY, 0, 0 },
		[QP_TYPE_XRC_INI] = { QP_ATTR_ACCESS_FLAGS, rtr, req },
		[QP_TYPE_XRC_TGT] = { QP_ATTR_ACCESS_FLAGS, rtr | rsp,
				      QP_ATTR_TIMEOUT },
	};

	if (to == QP_STATE_INIT)
		return QP_ATTR_STATE | init | of[t].init;
	if (to == QP_STATE_RTR)
		return QP_ATTR_STATE | of[t].rtr;
	return QP_ATTR_STATE | QP_ATTR_SQ_PSN | of[t].rts;
}

/* A target has a domain, with the SRQ "own" in it and "other" in another. */
static void target_make(struct rig *r, struct line *l,
			const struct qp_init *asked)
{
	struct srq_attr a = { .max_wr = (uint32_t)line_num(l, "srq", 16),
			      .max_sge = MAX_SGE };
	struct qp_init init = { .type = QP_TYPE_XRC_TGT, .cap = asked->cap };
	const char *pd = line_get(l, "srq_pd");
	struct qp_cap cap;

	must(l, "xrcd_create", xrcd_create(r->hca, &r->xrcd));
	must(l, "xrcd_create", xrcd_create(r->hca, &r->other_xrcd));
	must(l, "srq_create_xrc",
	     srq_create_xrc(pd ? r->other_pd : r->pd, r->xrcd, r->recv_cq, &a,
			    NULL, &r->srq));
	must(l, "srq_create_xrc",
	     srq_create_xrc(r->pd, r->other_xrcd, r->recv_cq, &a, NULL,
			    &r->other_srq));
	init.xrcd = r->xrcd;
	must(l, "qp_create", qp_create(NULL, &init, &cap, &r->qp));
}

static void qp_make(struct rig *r, struct line *l, enum qp_type type)
{
	struct srq_attr srq = { .max_wr = (uint32_t)line_num(l, "srq", 0),
				.max_sge = MAX_SGE };
	struct qp_init init = {
		.type = type,
		.send_cq = r->send_cq,
		.recv_cq = r->recv_cq,
		.cap = { .max_send_wr = (uint32_t)line_num(l, "sq", 64),
			 .max_recv_wr = (uint32_t)line_num(l, "rq", 64),
			 .max_send_sge = MAX_SGE,
			 .max_recv_sge = MAX_SGE,
			 .max_inline_bytes = 256 },
	};
	struct qp_cap cap;

	if (type == QP_TYPE_XRC_TGT) {
		target_make(r, l, &init);
		return;
	}
	if (type == QP_TYPE_XRC_INI)
		init.recv_cq = NULL;
	if (srq.max_wr) {
		must(l, "srq_create", srq_create(r->pd, &srq, NULL, &r->srq));
		init.srq = r->srq;
		init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
	}
	must(l, "qp_create", qp_create(r->pd, &init, &cap, &r->qp));
}

static void cmd_qp(struct script *s, struct line *l)
{
	static const char *const types[] = { "-",  "-",	      "RC",	 "UC",
					     "UD", "-",	      "-",	 "-",
					     "-",  "XRC_INI", "XRC_TGT", NULL };
	struct rig *r = &s->rig;
	const char *type = line_get(l, "type");
	const char *state = line_get(l, "state");
	int to = line_enum(l, state ? state : "RTS", state_names);
	enum qp_type t = (enum qp_type)line_enum(l, type ? type : "RC", types);
	uint64_t pkey = line_num(l, "pkey", 0xffff);
	struct qp_attr a;
	uint32_t mask;
	bool alt;

	if (r->qp)
		line_error(l, "one QP a script");
	if (pkey != 0xffff)
		must(l, "pkey", hca_set_pkey(r->hca, 0, (uint16_t)pkey));
	qp_attrs(r, l, &a);
	a.alt_ah = a.ah;
	a.alt_port_num = 1;
	a.alt_timeout = a.timeout;
	script_gid(l, "alt", &a.alt_ah.dgid);
	alt = !gid_eq(&a.alt_ah.dgid, &a.ah.dgid);
	qp_make(r, l, t);
	line_done(l);
	if (t == QP_TYPE_UD)
		must(l, "ah_create", ah_create(r->pd, &a.ah, &r->ah));
	for (int st = QP_STATE_INIT; st <= to && st <= QP_STATE_RTS; st++) {
		a.state = (enum qp_state)st;
		mask = mask_for(t, a.state);
		if (alt && st == QP_STATE_RTR)
			mask |= QP_ATTR_ALT_PATH;
		must(l, "qp_modify", qp_modify(r->qp, &a, mask, r->now_ns));
	}
	/* State changes raise nothing that a script would have to expect. */
	rig_run(r, r->now_ns, false);
	r->first_event = r->next_event;
}

static void cmd_mr(struct script *s, struct line *l)
{
	struct rig *r = &s->rig;
	struct rig_mr *m = &r->mr[r->num_mrs];
	const char *name = line_word(l);
	const char *access = line_get(l, "access");
	const char *pd = line_get(l, "pd");
	uint64_t slot = (uint64_t)r->num_mrs * RIG_MR_ROOM;
	struct mr_attr a = {
		.va = RIG_MEM_BASE + slot,
		.len_bytes = line_num(l, "len", 4096),
		.access = access_of(l, access ? access : "LW+RW+RR+RA"),
	};
	bool other =
		pd &&
		line_enum(l, pd, (const char *const[]){ "other", NULL }) == 0;

	a.iova = line_num(l, "iova", RIG_IOVA + slot);
	if (!name || strlen(name) >= sizeof(m->name))
		line_error(l, "mr NAME len=N ...");
	if (r->num_mrs++ == RIG_MRS || a.len_bytes > RIG_MR_ROOM)
		line_error(l, "at most %d regions of %u bytes", RIG_MRS,
			   RIG_MR_ROOM);
	line_done(l);
	strcpy(m->name, name);
	must(l, "mr_reg", mr_reg(other ? r->other_pd : r->pd, &a, &m->mr));
	m->key = mr_key(m->mr);
	m->iova = a.iova;
}

static void cmd_mw(struct script *s, struct line *l)
{
	struct rig *r = &s->rig;
	struct rig_mr *m = &r->mr[r->num_mrs];
	const char *name = line_word(l);
	uint32_t type = (uint32_t)line_num(l, "type", 2);
	bool other = line_get(l, "pd") != NULL;

	if (!name || strlen(name) >= sizeof(m->name))
		line_error(l, "mw NAME type=N");
	if (r->num_mrs++ == RIG_MRS)
		line_error(l, "at most %d regions and windows", RIG_MRS);
	line_done(l);
	strcpy(m->name, name);
	must(l, "mw_create",
	     mw_create(other ? r->other_pd : r->pd, (enum mw_type)type,
		       &m->mw));
	m->key = mw_key(m->mw);
}

static void cmd_dereg(struct script *s, struct line *l)
{
	const char *name = line_word(l);
	struct rig_mr *m = name ? rig_mr_named(&s->rig, name) : NULL;

	if (!m || !m->mr)
		line_error(l, "dereg NAME");
	line_done(l);
	must(l, "mr_dereg", mr_dereg(m->mr));
	m->mr = NULL;
}

/* ---- work requests ---- */

/* "m+8:64" -> one SGE. */
static struct sge sge_of(struct rig *r, struct line *l, const char *text)
{
	char where[64];
	unsigned len;
	int end = 0;
	struct sge sge;

	if (sscanf(text, "%63[^:]:%u%n", where, &len, &end) != 2 || text[end])
		line_error(l, "not NAME+OFF:LEN: %s", text);
	sge = (struct sge){ .addr = line_name(l, where, rig_addr, r),
			    .len_bytes = len };
	where[strcspn(where, "+")] = '\0';
	sge.lkey = (uint32_t)line_name(l, where, rig_key, r);
	return sge;
}

static int sges_of(struct rig *r, struct line *l, struct sge *sge)
{
	const char *w;
	int n = 0;

	for (; (w = line_word(l)) != NULL; n++) {
		if (n == MAX_SGE)
			line_error(l, "at most %d SGEs", MAX_SGE);
		sge[n] = sge_of(r, l, w);
	}
	return n;
}

static void check_errno(struct line *l, const char *want, int rc)
{
	int expected = want ? errno_values[line_enum(l, want, errno_names)] : 0;

	if (rc != expected)
		line_fail(l, "returned %d, expected %d", rc, expected);
}

static void cmd_recv(struct script *s, struct line *l)
{
	struct rig *r = &s->rig;
	const char *fails = line_get(l, "fails");
	const char *lkey = line_get(l, "lkey");
	struct sge sge[MAX_SGE];
	struct recv_wr wr = { .sge = sge };

	wr.wr_id = line_num(l, "id", 0);
	wr.num_sge = sges_of(r, l, sge);
	if (lkey)
		sge[0].lkey = (uint32_t)line_name(l, lkey, rig_key, r);
	line_done(l);
	check_errno(l, fails,
		    r->srq ? srq_post_recv(r->srq, &wr)
			   : qp_post_recv(r->qp, &wr));
	qp_ring(r->qp);
}

static uint32_t post_flags(struct line *l)
{
	uint32_t f = 0;

	f |= line_flag(l, "signaled") ? WR_SIGNALED : 0u;
	f |= line_flag(l, "fence") ? WR_FENCE : 0u;
	f |= line_flag(l, "solicited") ? WR_SOLICITED : 0u;
	f |= line_flag(l, "inline") ? WR_INLINE : 0u;
	return f;
}

/* What local work and SEND_INV name: keys. */
static void post_keys(struct rig *r, struct line *l, struct send_wr *wr)
{
	const char *inv = line_get(l, "inv");
	const char *window = line_get(l, "mw");
	const char *key = line_get(l, "key");
	const char *at = line_get(l, "at");
	const char *region = line_get(l, "region");
	const char *rights = line_get(l, "rights");

	if (inv)
		wr->imm_be_or_rkey = (uint32_t)line_name(l, inv, rig_key, r);
	if (!window)
		return;
	wr->rkey = (uint32_t)line_name(l, key ? key : window, rig_key, r);
	wr->bind_mw_index = (uint32_t)line_name(l, window, rig_key, r) >> 8;
	wr->remote_addr = at ? line_name(l, at, rig_addr, r) : 0;
	wr->bind_len_bytes = line_num(l, "len", 0);
	wr->bind_mr_key =
		region ? (uint32_t)line_name(l, region, rig_key, r) : 0;
	wr->bind_access = access_of(l, rights ? rights : "RW+RR");
}

static void cmd_post(struct script *s, struct line *l)
{
	struct rig *r = &s->rig;
	const char *op = line_get(l, "op");
	const char *fails = line_get(l, "fails");
	const char *lkey = line_get(l, "lkey");
	uint32_t imm = (uint32_t)line_num(l, "imm", 0);
	struct sge sge[MAX_SGE];
	struct send_wr wr = {
		.wr_id = line_num(l, "id", 0),
		.sge = sge,
		.opcode = (uint32_t)line_enum(l, op ? op : "SEND", op_names),
		.imm_be_or_rkey = __builtin_bswap32(imm),
		.remote_addr = line_num(l, "to", 0),
		.rkey = (uint32_t)line_num(l, "rkey", 0),
		.compare_add = line_num(l, "add", line_num(l, "cmp", 0)),
		.swap = line_num(l, "swap", 0),
		.ah = r->ah,
		.remote_qpn = r->dest_qpn,
		.remote_qkey = r->peer_qkey,
		.remote_srqn = (uint32_t)line_num(l, "srqn", 0),
		.flags = post_flags(l),
	};

	wr.num_sge = sges_of(r, l, sge);
	post_keys(r, l, &wr);
	if (lkey)
		sge[0].lkey = (uint32_t)line_name(l, lkey, rig_key, r);
	if (wr.flags & WR_INLINE) /* inline data are named by address */
		for (int i = 0; i < wr.num_sge; i++)
			sge[i].addr += RIG_MEM_BASE - RIG_IOVA;
	line_done(l);
	check_errno(l, fails, qp_post_send(r->qp, &wr));
	qp_ring(r->qp);
	rig_run(r, r->now_ns, false);
}

/* A smaller (or larger) completion queue. */
static void cmd_cq(struct script *s, struct line *l)
{
	const char *which = line_word(l);
	struct rig *r = &s->rig;

	if (!which || (strcmp(which, "send") && strcmp(which, "recv")))
		line_error(l, "cq send|recv size=N");
	must(l, "cq_resize",
	     cq_resize(*which == 's' ? r->send_cq : r->recv_cq,
		       (uint32_t)line_num(l, "size", 1)));
	line_done(l);
}

/* An XRC SRQ ends under its target QP. */
static void cmd_srq_gone(struct script *s, struct line *l)
{
	if (!s->rig.xrcd || !s->rig.srq)
		line_error(l, "no XRC SRQ");
	line_done(l);
	must(l, "srq_destroy", srq_destroy(s->rig.srq));
	s->rig.srq = NULL;
}

static void cmd_limit(struct script *s, struct line *l)
{
	struct srq_attr a = { .limit = (uint32_t)line_num(l, "n", 0) };

	if (!s->rig.srq)
		line_error(l, "limit without an SRQ");
	line_done(l);
	must(l, "srq_modify", srq_modify(s->rig.srq, &a, SRQ_ATTR_LIMIT));
}

/* ---- what must come ---- */

static void cmd_cqe(struct script *s, struct line *l)
{
	struct rig *r = &s->rig;
	const char *which = line_word(l);
	const char *status = line_get(l, "status");
	const char *v;
	struct wc wc;

	if (!which || (strcmp(which, "send") && strcmp(which, "recv")))
		line_error(l, "cqe send|recv id=N ...");
	rig_run(r, r->now_ns, false);
	if (!cq_poll(*which == 's' ? r->send_cq : r->recv_cq, 1, &wc))
		line_fail(l, "no completion");
	if (wc.wr_id != line_num(l, "id", 0))
		line_fail(l, "completion of id=%" PRIu64 " status=%s", wc.wr_id,
			  status_names[wc.status]);
	if ((int)wc.status !=
	    line_enum(l, status ? status : "SUCCESS", status_names))
		line_fail(l, "status is %s", status_names[wc.status]);
	if (wc.qpn != qp_num(r->qp))
		line_fail(l, "completion of QPN %#x", wc.qpn);
	v = line_get(l, "bytes");
	if (v && wc.byte_len != line_num_of(l, v))
		line_fail(l, "byte_len is %u", wc.byte_len);
	v = line_get(l, "imm");
	if (v && (__builtin_bswap32(wc.imm_be_or_rkey) != line_num_of(l, v) ||
		  !(wc.wc_flags & WC_WITH_IMM)))
		line_fail(l, "imm is %#x, flags %#x",
			  __builtin_bswap32(wc.imm_be_or_rkey), wc.wc_flags);
	v = line_get(l, "inv");
	if (v && (wc.imm_be_or_rkey != line_name(l, v, rig_key, r) ||
		  !(wc.wc_flags & WC_WITH_INV)))
		line_fail(l, "inv is %#x, flags %#x", wc.imm_be_or_rkey,
			  wc.wc_flags);
	v = line_get(l, "opcode");
	if (v && wc.opcode != line_num_of(l, v))
		line_fail(l, "opcode is %u", wc.opcode);
	v = line_get(l, "srcqpn");
	if (v && wc.src_qpn != line_num_of(l, v))
		line_fail(l, "src_qpn is %#x", wc.src_qpn);
	line_done(l);
}

static void cmd_event(struct script *s, struct line *l)
{
	struct rig *r = &s->rig;
	const char *name = line_word(l);
	const struct hca_event *e;

	if (!name)
		line_error(l, "event NAME");
	rig_run(r, r->now_ns, false);
	if (r->first_event == r->next_event)
		line_fail(l, "no event, expected %s", name);
	e = &r->events[r->first_event++ % 64];
	if (e->kind != HCA_EVENT_ASYNC ||
	    (int)e->type != line_enum(l, name, event_names))
		line_fail(l, "event is %s", event_names[e->type]);
	line_done(l);
}

static void cmd_state(struct script *s, struct line *l)
{
	const char *name = line_word(l);
	int got = (int)qp_state(s->rig.qp);

	if (!name || line_enum(l, name, state_names) != got)
		line_fail(l, "state is %s", state_names[got]);
	line_done(l);
}

static void cmd_modify(struct script *s, struct line *l)
{
	const char *name = line_get(l, "state");
	const char *mig = line_get(l, "mig");
	const char *fails = line_get(l, "fails");
	bool notify = line_flag(l, "notify");
	struct qp_attr a = { .en_sqd_async_notify = notify };
	uint32_t mask = notify ? QP_ATTR_EN_SQD_ASYNC_NOTIFY : 0;

	if (!name && !mig)
		line_error(l, "modify state=NAME [notify] | mig=NAME");
	if (name) {
		mask |= QP_ATTR_STATE;
		a.state = (enum qp_state)line_enum(l, name, state_names);
	}
	if (mig) {
		mask |= QP_ATTR_PATH_MIG_STATE;
		a.mig_state = (enum mig_state)line_enum(l, mig, mig_names);
	}
	line_done(l);
	check_errno(l, fails, qp_modify(s->rig.qp, &a, mask, s->rig.now_ns));
	rig_run(&s->rig, s->rig.now_ns, false);
}

static void cmd_mig(struct script *s, struct line *l)
{
	const char *name = line_word(l);
	struct qp_attr a;
	struct qp_init init;

	qp_query(s->rig.qp, &a, &init);
	if (!name || line_enum(l, name, mig_names) != (int)a.mig_state)
		line_fail(l, "migration state is %s", mig_names[a.mig_state]);
	line_done(l);
}

/* ---- memory ---- */

static uint8_t *mem_of(struct script *s, struct line *l, const char *text,
		       uint64_t len)
{
	uint64_t iova;

	if (!text)
		line_error(l, "%s NAME+OFF value", l->cmd);
	iova = line_name(l, text, rig_addr, &s->rig);
	/* Every region lies at the same distance, unless given an iova. */
	for (uint32_t i = 0; i < s->rig.num_mrs; i++) {
		const struct rig_mr *m = &s->rig.mr[i];

		if (iova >= m->iova && iova - m->iova + len <= RIG_MR_ROOM)
			return s->rig.mem.bytes + (uint64_t)i * RIG_MR_ROOM +
			       (iova - m->iova);
	}
	line_error(l, "outside every region: %s", text);
}

static void cmd_fill(struct script *s, struct line *l)
{
	static uint8_t buf[RIG_MR_ROOM];
	const char *where = line_word(l);
	const char *what = line_word(l);
	uint32_t n = script_bytes(l, what ? what : "?", buf, sizeof(buf));

	memcpy(mem_of(s, l, where, n), buf, n);
	line_done(l);
}

static void cmd_mem(struct script *s, struct line *l)
{
	static uint8_t buf[RIG_MR_ROOM];
	const char *where = line_word(l);
	const char *what = line_word(l);
	bool zero = line_flag(l, "zero");
	uint32_t n = script_bytes(l, what ? what : "?", buf, sizeof(buf));
	const uint8_t *got = mem_of(s, l, where, n);

	if (zero)
		memset(buf, 0, n);
	line_done(l);
	for (uint32_t i = 0; i < n; i++)
		if (got[i] != buf[i])
			line_fail(l, "byte %u is %#x, expected %#x", i, got[i],
				  buf[i]);
}

static void cmd_word(struct script *s, struct line *l)
{
	const char *where = line_word(l);
	const char *what = line_word(l);
	uint8_t *p = mem_of(s, l, where, 8);
	uint64_t want, got;

	want = line_num_of(l, what ? what : "?");
	memcpy(&got, p, 8);
	line_done(l);
	if (!strcmp(l->cmd, "setword"))
		memcpy(p, &want, 8);
	else if (got != want)
		line_fail(l, "word is %" PRIu64, got);
}

static void cmd_hole(struct script *s, struct line *l)
{
	const char *where = line_word(l);
	uint64_t len = line_num(l, "len", 0);
	uint8_t *p = mem_of(s, l, where, len);

	line_done(l);
	s->rig.mem.hole = RIG_MEM_BASE + (uint64_t)(p - s->rig.mem.bytes);
	s->rig.mem.hole_bytes = len;
}

/* ---- time ---- */

/* Nothing is left that no line asked for. */
static void check_quiet(struct script *s, struct line *l)
{
	struct rig *r = &s->rig;
	struct wc wc;
	struct rig_frame *f = rig_frame_next(r);
	struct pkt p;

	if (f && pkt_decode(&p, f->bytes, f->len_bytes) == PKT_OK)
		line_fail(l, "unexpected frame %s psn=%u", p.info->name,
			  p.bth.psn.v);
	if (f)
		line_fail(l, "unexpected frame that does not decode");
	if (cq_poll(r->send_cq, 1, &wc) || cq_poll(r->recv_cq, 1, &wc))
		line_fail(l, "unexpected completion id=%" PRIu64 " status=%s",
			  wc.wr_id, status_names[wc.status]);
	if (r->first_event != r->next_event)
		line_fail(l, "unexpected event %s",
			  event_names[r->events[r->first_event % 64].type]);
}

static void cmd_quiet(struct script *s, struct line *l)
{
	const char *t = line_word(l);

	if (!t)
		line_error(l, "quiet TIME");
	rig_run(&s->rig, s->rig.now_ns + line_time_of(l, t), false);
	line_done(l);
	check_quiet(s, l);
}

static void cmd_wait(struct script *s, struct line *l)
{
	const char *t = line_word(l);

	if (!t)
		line_error(l, "wait TIME");
	rig_run(&s->rig, s->rig.now_ns + line_time_of(l, t), false);
	line_done(l);
}

static void cmd_counter(struct script *s, struct line *l)
{
	static const char *const names[] = {
#define NAME(n) #n,
		HCA_COUNTERS(NAME)
#undef NAME
			NULL
	};
	const char *name = line_word(l);
	const char *want = line_word(l);
	uint64_t got;

	if (!name || !want)
		line_error(l, "counter NAME N");
	got = ((const uint64_t *)hca_counters(
		s->rig.hca))[line_enum(l, name, names)];
	line_done(l);
	if (got != line_num_of(l, want))
		line_fail(l, "%s is %" PRIu64, name, got);
}

static void cmd_inject(struct script *s, struct line *l)
{
	script_inject(&s->rig, l);
}

static void cmd_expect(struct script *s, struct line *l)
{
	script_expect(&s->rig, l);
}

/* ---- the program ---- */

static const struct {
	const char *name;
	void (*run)(struct script *s, struct line *l);
	bool needs_qp;
	bool checks;
} commands[] = {
	{ "title", cmd_title, false, false },
	{ "clause", cmd_title, false, false },
	{ "bug", cmd_title, false, false },
	{ "mr", cmd_mr, false, false },
	{ "mw", cmd_mw, false, false },
	{ "qp", cmd_qp, false, false },
	{ "cq", cmd_cq, false, false },
	{ "limit", cmd_limit, false, false },
	{ "srq_gone", cmd_srq_gone, true, false },
	{ "dereg", cmd_dereg, false, false },
	{ "fill", cmd_fill, false, false },
	{ "setword", cmd_word, false, false },
	{ "hole", cmd_hole, false, false },
	{ "recv", cmd_recv, true, false },
	{ "post", cmd_post, true, false },
	{ "modify", cmd_modify, true, false },
	{ "wait", cmd_wait, true, false },
	{ ">", cmd_inject, true, false },
	{ "<", cmd_expect, true, true },
	{ "cqe", cmd_cqe, true, true },
	{ "event", cmd_event, true, true },
	{ "state", cmd_state, true, true },
	{ "mig", cmd_mig, true, true },
	{ "mem", cmd_mem, false, true },
	{ "word", cmd_word, false, true },
	{ "quiet", cmd_quiet, true, true },
	{ "counter", cmd_counter, false, true },
};

static void run_line(struct script *s)
{
	struct line *l = &s->line;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(l->cmd, commands[i].name))
			continue;
		if (commands[i].needs_qp && !s->rig.qp)
			line_error(l, "%s before qp", l->cmd);
		commands[i].run(s, l);
		s->checks += commands[i].checks;
		return;
	}
	line_error(l, "unknown command: %s", l->cmd);
}

static void run_file(struct script *s, const char *path)
{
	char text[512];
	FILE *in = fopen(path, "r");

	memset(s, 0, sizeof(*s));
	s->line.file = path;
	if (!in)
		line_error(&s->line, "%s", strerror(errno));
	rig_init(&s->rig, &s->line);
	while (fgets(text, sizeof(text), in)) {
		s->line.number++;
		if (!strchr(text, '\n'))
			line_error(&s->line, "line too long or not ended");
		line_parse(&s->line, text);
		if (s->line.cmd)
			run_line(s);
	}
	fclose(in);
	if (!s->has_title || !s->has_clause || !s->checks)
		line_error(&s->line, "needs a title, a clause and a check");
	rig_run(&s->rig, s->rig.now_ns, false);
	check_quiet(s, &s->line);
	rig_fini(&s->rig);
}

int main(int argc, char **argv)
{
	static struct script s;

	if (argc < 2) {
		fprintf(stderr, "usage: script_run FILE...\n");
		return 2;
	}
	for (int i = 1; i < argc; i++)
		run_file(&s, argv[i]);
	return 0;
}
