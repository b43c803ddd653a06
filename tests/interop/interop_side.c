/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "interop_side.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pairlib.h"

#define GUARD 4096
#define UNTOUCHED 0xa5
#define GRH_BYTES 40
#define IMM 0x11223344u

static uint8_t pattern(int wr, size_t i)
{
	return (uint8_t)(i * 7 + (i >> 8) + (size_t)wr * 31 + 1);
}

static bool is_atomic(const struct interop_case *c)
{
	return c->op == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	       c->op == IBV_WR_ATOMIC_CMP_AND_SWP;
}

static bool is_send(const struct interop_case *c)
{
	return c->op == IBV_WR_SEND || c->op == IBV_WR_SEND_WITH_IMM;
}

/* Bytes of memory for one WR. */
static size_t place_len(const struct side *s)
{
	return s->len + (s->c->type == IBV_QPT_UD ? GRH_BYTES : 0);
}

/* All atomics of the responder go to its first place. */
static uint8_t *place(struct side *s, int wr)
{
	return s->mem + GUARD + (size_t)wr * place_len(s);
}

/* ---- objects ---- */

struct ibv_context *side_open(const char *device)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	PL_CHECK(list);
	for (int i = 0; list[i] && !ctx; i++)
		if (!device ||
		    strcmp(device, ibv_get_device_name(list[i])) == 0)
			ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	PL_CHECK(ctx);
	PL_CHECK(fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK) == 0);
	return ctx;
}

/* The responder's memory is untouched, or the READs' pattern, or for atomics
 * zero. */
static void fill_memory(struct side *s)
{
	const struct interop_case *c = s->c;
	bool source = s->requester != (c->op == IBV_WR_RDMA_READ);

	s->mem_len = 2 * GUARD + (size_t)s->count * place_len(s);
	PL_CHECK(posix_memalign((void **)&s->mem, GUARD, s->mem_len) == 0);
	memset(s->mem, UNTOUCHED, s->mem_len);
	if (is_atomic(c))
		memset(place(s, 0), 0, 8);
	else if (source)
		for (int k = 0; k < s->count; k++)
			for (size_t i = 0; i < s->len; i++)
				place(s, k)[i] = pattern(k, i);
}

static void register_memory(struct side *s)
{
	const struct interop_case *c = s->c;
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_pd *pd = s->pd;

	if (!s->requester) {
		access &= ~c->no_mr_access;
		if (c->flags & CASE_RECV_NO_WRITE)
			access = IBV_ACCESS_REMOTE_READ;
		if (c->flags & CASE_OTHER_PD)
			pd = s->other_pd;
	}
	s->mr = ibv_reg_mr(pd, s->mem, s->mem_len, access);
	PL_CHECK(s->mr);
	s->own.addr = (uintptr_t)place(s, 0);
	s->own.rkey = s->mr->rkey;
	if (!s->requester && (c->flags & CASE_STALE_KEY)) {
		PL_CHECK(ibv_dereg_mr(s->mr) == 0);
		s->mr = NULL;
	}
}

static void create_qp(struct side *s)
{
	const struct interop_case *c = s->c;
	struct ibv_qp_init_attr init = {
		.send_cq = s->scq,
		.recv_cq = s->rcq,
		.cap = { SIDE_MAX_WRS, SIDE_MAX_WRS, 1, 1, 0 },
		.qp_type = c->type,
		.sq_sig_all = 1,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qkey = SIDE_QKEY };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	s->qp = ibv_create_qp(s->pd, &init);
	PL_CHECK(s->qp);
	attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_READ |
			       IBV_ACCESS_REMOTE_ATOMIC;
	if (!s->requester)
		attr.qp_access_flags &= ~(unsigned)c->no_qp_access;
	if (c->type == IBV_QPT_UC)
		attr.qp_access_flags &= IBV_ACCESS_REMOTE_WRITE;
	mask |= c->type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	PL_CHECK(ibv_modify_qp(s->qp, &attr, mask) == 0);
}

void side_create(struct side *s, int max_mtu)
{
	struct ibv_port_attr port;

	s->pd = ibv_alloc_pd(s->ctx);
	s->other_pd = ibv_alloc_pd(s->ctx);
	s->scq = ibv_create_cq(s->ctx, 2 * SIDE_MAX_WRS, NULL, NULL, 0);
	s->rcq = ibv_create_cq(s->ctx, 2 * SIDE_MAX_WRS, NULL, NULL, 0);
	PL_CHECK(s->pd && s->other_pd && s->scq && s->rcq);
	fill_memory(s);
	register_memory(s);
	create_qp(s);
	PL_CHECK(ibv_query_port(s->ctx, 1, &port) == 0);
	PL_CHECK(ibv_query_gid(s->ctx, 1, s->gid_index, &s->own.gid) == 0);
	s->own.qpn = s->qp->qp_num;
	/* Within the first message PSNs wrap. */
	s->own.psn = s->requester ? 0xffffff : 0xfffffe;
	s->own.mtu = port.active_mtu;
	if (max_mtu && (uint32_t)max_mtu < s->own.mtu)
		s->own.mtu = (uint32_t)max_mtu;
}

/* ---- states ---- */

static struct ibv_ah_attr path_to(const struct side *s)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = s->peer.gid,
			 .sgid_index = (uint8_t)s->gid_index,
			 .hop_limit = 64 },
	};
}

static void to_rtr(struct side *s)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = s->own.mtu < s->peer.mtu ? s->own.mtu : s->peer.mtu,
		.dest_qp_num = s->peer.qpn,
		.rq_psn = s->peer.psn,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 12, /* 640 us */
		.ah_attr = path_to(s),
	};
	int mask = IBV_QP_STATE;

	if (s->c->type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN;
	if (s->c->type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	PL_CHECK(ibv_modify_qp(s->qp, &attr, mask) == 0);
}

static void to_rts(struct side *s)
{
	const struct interop_case *c = s->c;
	int timeout = s->timeout ? s->timeout : c->timeout;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = s->own.psn,
		.timeout = (uint8_t)(timeout ? timeout : 16),
		.retry_cnt = c->retry_cnt ? c->retry_cnt : 7,
		.rnr_retry = c->rnr_retry,
		.max_rd_atomic = 16,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (c->type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	PL_CHECK(ibv_modify_qp(s->qp, &attr, mask) == 0);
}

void side_connect(struct side *s)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_ah_attr path = path_to(s);

	to_rtr(s);
	to_rts(s);
	if (s->c->type == IBV_QPT_UD && s->requester) {
		s->ah = ibv_create_ah(s->pd, &path);
		PL_CHECK(s->ah);
	}
	if (!s->requester && (s->c->flags & CASE_NO_PEER))
		PL_CHECK(ibv_modify_qp(s->qp, &reset, IBV_QP_STATE) == 0);
}

/* ---- work ---- */

void side_post_recvs(struct side *s)
{
	const struct interop_case *c = s->c;
	int n = c->recvs < 0 ? s->count : c->recvs;
	uint32_t lkey = s->mr ? s->mr->lkey : 0;

	if (c->flags & CASE_RECV_BAD_LKEY)
		lkey ^= 0xff00;
	for (int k = 0; k < n; k++) {
		struct ibv_sge sge = { (uintptr_t)place(s, k),
				       (uint32_t)place_len(s) - c->recv_cut,
				       lkey };
		struct ibv_recv_wr wr = { .wr_id = (uint64_t)k,
					  .sg_list = &sge,
					  .num_sge = 1 };
		struct ibv_recv_wr *bad;

		PL_CHECK(ibv_post_recv(s->qp, &wr, &bad) == 0);
	}
}

static void set_target(struct side *s, struct ibv_send_wr *wr, int k)
{
	const struct interop_case *c = s->c;
	bool bad = k == c->bad_at;
	uint64_t addr = s->peer.addr;
	uint32_t rkey = s->peer.rkey ^ (bad ? c->rkey_xor : 0);

	if (!is_atomic(c))
		addr += (uint64_t)k * place_len(s);
	if (bad)
		addr += (uint64_t)c->offset;
	if (c->type == IBV_QPT_UD) {
		wr->wr.ud.ah = s->ah;
		wr->wr.ud.remote_qpn = s->peer.qpn;
		wr->wr.ud.remote_qkey = SIDE_QKEY + (bad ? 1 : 0);
	} else if (is_atomic(c)) {
		wr->wr.atomic.remote_addr = addr;
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.compare_add =
			c->op == IBV_WR_ATOMIC_CMP_AND_SWP ? (uint64_t)k : 1;
		wr->wr.atomic.swap = (uint64_t)k + 1;
	} else if (!is_send(c)) {
		wr->wr.rdma.remote_addr = addr;
		wr->wr.rdma.rkey = rkey;
	}
}

void side_post_sends(struct side *s)
{
	const struct interop_case *c = s->c;
	struct ibv_send_wr wrs[SIDE_MAX_WRS] = { 0 }, *bad = NULL;
	struct ibv_sge sges[SIDE_MAX_WRS];
	int rc;

	for (int k = 0; k < s->count; k++) {
		sges[k] = (struct ibv_sge){ (uintptr_t)place(s, k), s->len,
					    s->mr->lkey };
		if (k == c->bad_at && (c->flags & CASE_SEND_BAD_LKEY))
			sges[k].lkey ^= 0xff00;
		wrs[k].wr_id = (uint64_t)k;
		wrs[k].next = k + 1 < s->count ? &wrs[k + 1] : NULL;
		wrs[k].sg_list = &sges[k];
		wrs[k].num_sge = 1;
		wrs[k].opcode = c->op;
		wrs[k].imm_data = htonl(IMM);
		set_target(s, &wrs[k], k);
	}
	rc = ibv_post_send(s->qp, wrs, &bad);
	if (rc != 0) {
		printf("post %d errno %d\n", (int)bad->wr_id, rc);
		s->count = (int)bad->wr_id;
	}
}

/* "IBV_WC_REM_ACCESS_ERR" without its first seven letters. */
static const char *status_name(enum ibv_wc_status status)
{
	static const char *const names[] = {
		"SUCCESS",	   "LOC_LEN_ERR",	"LOC_QP_OP_ERR",
		"LOC_EEC_OP_ERR",  "LOC_PROT_ERR",	"WR_FLUSH_ERR",
		"MW_BIND_ERR",	   "BAD_RESP_ERR",	"LOC_ACCESS_ERR",
		"REM_INV_REQ_ERR", "REM_ACCESS_ERR",	"REM_OP_ERR",
		"RETRY_EXC_ERR",   "RNR_RETRY_EXC_ERR",
	};

	return status < sizeof(names) / sizeof(names[0]) ? names[status] : "?";
}

static void print_completion(const char *what, const struct ibv_wc *wc)
{
	printf("%s %d %s", what, (int)wc->wr_id, status_name(wc->status));
	if (wc->status == IBV_WC_SUCCESS && strcmp(what, "recv") == 0) {
		printf(" %u", wc->byte_len);
		if (wc->wc_flags & IBV_WC_WITH_IMM)
			printf(" imm %x", ntohl(wc->imm_data));
	}
	printf("\n");
}

int side_reap(struct ibv_cq *cq, const char *what, int n, int quiet_ms)
{
	int64_t end_ns = pl_now_ns() + quiet_ms * 1000000LL;
	struct ibv_wc wc;
	int got = 0;

	while (got < n && pl_now_ns() < end_ns) {
		int r = ibv_poll_cq(cq, 1, &wc);

		PL_CHECK(r >= 0);
		if (r == 0) {
			/* One virtual CPU has other things to do. */
			usleep(100);
			continue;
		}
		print_completion(what, &wc);
		got++;
		end_ns = pl_now_ns() + quiet_ms * 1000000LL;
	}
	return got;
}

/* ---- what became of it ---- */

/* RC stops at the first WR that fails; UC and UD never know of it. */
static bool wr_works(const struct side *s, int k)
{
	const struct interop_case *c = s->c;

	return c->bad_at < 0 || k < c->bad_at ||
	       (c->type != IBV_QPT_RC && k != c->bad_at);
}

static int good_wrs(const struct side *s)
{
	return s->c->bad_at < 0 ? s->count : s->c->bad_at;
}

/* WR number k's place, where the data went. */
static bool place_good(struct side *s, int k)
{
	const struct interop_case *c = s->c;
	bool gets = s->requester == (c->op == IBV_WR_RDMA_READ);
	size_t skip = c->type == IBV_QPT_UD ? GRH_BYTES : 0;
	const uint8_t *p = place(s, k);

	if (!gets)
		return true;
	if (c->recv_cut || (skip && k > 0 && c->bad_at >= 0))
		return true; /* undefined, or of the next message */
	for (size_t i = 0; i < s->len; i++)
		if (p[skip + i] != (wr_works(s, k) ? pattern(k, i) : UNTOUCHED))
			return false;
	return true;
}

/* The n-th atomic of a row finds n. */
static bool atomics_good(struct side *s)
{
	uint64_t v;

	if (!s->requester) {
		memcpy(&v, place(s, 0), sizeof(v));
		return v == (uint64_t)good_wrs(s);
	}
	for (int k = 0; k < good_wrs(s); k++) {
		memcpy(&v, place(s, k), sizeof(v));
		if (v != (uint64_t)k)
			return false;
	}
	return true;
}

static bool guards_good(const struct side *s)
{
	for (size_t i = 0; i < GUARD; i++)
		if (s->mem[i] != UNTOUCHED ||
		    s->mem[s->mem_len - 1 - i] != UNTOUCHED)
			return false;
	return true;
}

static bool memory_good(struct side *s)
{
	if (!guards_good(s))
		return false;
	if (is_atomic(s->c))
		return atomics_good(s);
	for (int k = 0; k < s->count; k++)
		if (!place_good(s, k))
			return false;
	return true;
}

static const char *state_name(enum ibv_qp_state state)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS",
					     "SQD",   "SQE",  "ERR" };

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

void side_report(struct side *s)
{
	struct ibv_async_event e;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	while (ibv_get_async_event(s->ctx, &e) == 0) {
		printf("event %s\n", ibv_event_type_str(e.event_type));
		ibv_ack_async_event(&e);
	}
	PL_CHECK(ibv_query_qp(s->qp, &attr, IBV_QP_STATE, &init) == 0);
	printf("qp %s\n", state_name(attr.qp_state));
	printf("memory %s\n", memory_good(s) ? "good" : "WRONG");
}

void side_destroy(struct side *s)
{
	if (s->ah)
		PL_CHECK(ibv_destroy_ah(s->ah) == 0);
	PL_CHECK(ibv_destroy_qp(s->qp) == 0);
	if (s->mr)
		PL_CHECK(ibv_dereg_mr(s->mr) == 0);
	PL_CHECK(ibv_destroy_cq(s->scq) == 0);
	PL_CHECK(ibv_destroy_cq(s->rcq) == 0);
	PL_CHECK(ibv_dealloc_pd(s->other_pd) == 0);
	PL_CHECK(ibv_dealloc_pd(s->pd) == 0);
	free(s->mem);
}
