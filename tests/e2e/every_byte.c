/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * every_byte.c - each operation of a transport, sizes around every boundary,
 * through one and several SGEs, by ibv_post_send and by ibv_wr_*: what arrives
 * is compared byte for byte, and so is what lies around it.
 *
 * One process, two QPs of one device. Prints "ok N cases"; the first byte that
 * is wrong ends it with status 1.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>

#define MAX_BYTES (8u << 20)
#define GUARD 64
#define ROOM (MAX_BYTES + 2 * GUARD + 64)
#define GRH_BYTES 40
#define LIMIT_S 20 /* for one completion */
#define QKEY 0x1ee7
#define INLINE_BYTES 220
#define REMOTE_RIGHTS                                                          \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                    \
	 IBV_ACCESS_REMOTE_ATOMIC)

enum how { HOW_ONE_SGE, HOW_SGES, HOW_INLINE, HOWS };

struct mem {
	uint8_t *p;
	struct ibv_mr *mr;
};

struct end {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct mem mem;
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mw *mw;
static struct end a, b; /* a sends to b */
static struct ibv_ah *ah;
static union ibv_gid gid;
static int gid_index;
static enum ibv_qp_type type = IBV_QPT_RC;
static uint32_t mtu_bytes = 1024;
static uint32_t max_bytes = 65537;
static bool dense;
static uint32_t cases;

#define CHECK(what)                                                            \
	do {                                                                   \
		if (!(what)) {                                                 \
			fprintf(stderr, "line %d: %s (case %u)\n", __LINE__,   \
				#what, cases);                                 \
			exit(1);                                               \
		}                                                              \
	} while (0)

static struct ibv_wc completion(struct ibv_cq *cq)
{
	time_t end = time(NULL) + LIMIT_S;
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(cq, 1, &wc);
	while (n == 0 && time(NULL) < end);
	CHECK(n == 1);
	if (wc.status != IBV_WC_SUCCESS)
		fprintf(stderr, "%s\n", ibv_wc_status_str(wc.status));
	CHECK(wc.status == IBV_WC_SUCCESS);
	return wc;
}

/* ---- set-up ---- */

static void open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i] && !ctx; i++)
		if (!name || !strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	CHECK(ctx);
	ibv_free_device_list(list);
	CHECK(!ibv_query_gid(ctx, 1, gid_index, &gid));
	pd = ibv_alloc_pd(ctx);
	CHECK(pd);
}

static uint64_t send_ops(void)
{
	uint64_t ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

	if (type == IBV_QPT_UD)
		return ops;
	ops |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
	       IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;
	if (type == IBV_QPT_UC)
		return ops;
	return ops | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_READ |
	       IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
	       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
}

static void end_open(struct end *e)
{
	struct ibv_qp_init_attr_ex i = {
		.cap = { 16, 16, 5, 5, INLINE_BYTES },
		.qp_type = type,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = send_ops(),
	};
	struct ibv_qp_attr at = { .qp_state = IBV_QPS_INIT,
				  .port_num = 1,
				  .qkey = QKEY,
				  .qp_access_flags = REMOTE_RIGHTS };

	e->mem.p = malloc(ROOM);
	CHECK(e->mem.p);
	e->mem.mr = ibv_reg_mr(pd, e->mem.p, ROOM,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND |
				       REMOTE_RIGHTS);
	CHECK(e->mem.mr);
	e->cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	CHECK(e->cq);
	i.send_cq = i.recv_cq = e->cq;
	e->qp = ibv_create_qp_ex(ctx, &i);
	CHECK(e->qp);
	CHECK(!ibv_modify_qp(e->qp, &at,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     (type == IBV_QPT_UD
					      ? IBV_QP_QKEY
					      : IBV_QP_ACCESS_FLAGS)));
}

static struct ibv_ah_attr address(void)
{
	struct ibv_ah_attr r = { .is_global = 1, .port_num = 1 };

	r.grh.dgid = gid;
	r.grh.sgid_index = (uint8_t)gid_index;
	r.grh.hop_limit = 8;
	return r;
}

static enum ibv_mtu mtu_code(void)
{
	enum ibv_mtu m = IBV_MTU_256;

	while (m < IBV_MTU_4096 && 128u << m < mtu_bytes)
		m++;
	return m;
}

static void end_connect(struct end *e, const struct end *to)
{
	struct ibv_qp_attr at = { .qp_state = IBV_QPS_RTR,
				  .path_mtu = mtu_code(),
				  .dest_qp_num = to->qp->qp_num,
				  .rq_psn = 0xfffff0, /* wraps soon */
				  .sq_psn = 0xfffff0,
				  .max_dest_rd_atomic = 8,
				  .max_rd_atomic = 8,
				  .min_rnr_timer = 1,
				  .timeout = 16,
				  .retry_cnt = 7,
				  .rnr_retry = 7,
				  .ah_attr = address() };
	int rtr = IBV_QP_STATE, rts = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (type != IBV_QPT_UD)
		rtr |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		       IBV_QP_RQ_PSN;
	if (type == IBV_QPT_RC) {
		rtr |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		rts |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC;
	}
	CHECK(!ibv_modify_qp(e->qp, &at, rtr));
	at.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(e->qp, &at, rts));
}

static void set_up(const char *name)
{
	struct ibv_ah_attr to;

	open_device(name);
	end_open(&a);
	end_open(&b);
	end_connect(&a, &b);
	end_connect(&b, &a);
	to = address();
	if (type == IBV_QPT_UD)
		ah = ibv_create_ah(pd, &to);
	if (type == IBV_QPT_RC)
		mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	CHECK(type != IBV_QPT_UD || ah);
	CHECK(type != IBV_QPT_RC || mw);
}

/* ---- bytes ---- */

static uint8_t pattern(uint32_t i)
{
	return (uint8_t)(i * 31 + (i >> 8) * 7 + (i >> 16) + cases * 13);
}

/* Where a message of this case begins: at each alignment in turn. */
static uint32_t offset(void)
{
	return GUARD + cases % 9;
}

static void fill(uint8_t *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		p[i] = pattern(i);
}

static void blank(struct mem *m, uint32_t n)
{
	memset(m->p, 0xee, n + 2 * GUARD + 64);
}

/* n bytes of the pattern at off of m, and nothing around them. */
static void compare(const struct mem *m, uint32_t off, uint32_t n)
{
	uint32_t i;

	for (i = off - GUARD; i < off; i++)
		CHECK(m->p[i] == 0xee);
	for (i = 0; i < n; i++)
		CHECK(m->p[off + i] == pattern(i));
	for (i = off + n; i < off + n + GUARD; i++)
		CHECK(m->p[i] == 0xee);
}

/* The range as SGEs: one; or four, of which one is empty and the cuts are
 * beside the boundaries of packets. */
static int cut(const struct mem *m, uint32_t off, uint32_t n, enum how how,
	       struct ibv_sge *sge)
{
	uint32_t cuts[] = { n / 5, n / 5, n / 2 + 1, n };
	uint32_t at = 0;
	int i;

	if (how != HOW_SGES || n < 4)
		cuts[0] = n;
	for (i = 0; i == 0 || (at < n && i < 4); i++) {
		sge[i] = (struct ibv_sge){ .addr = (uintptr_t)m->p + off + at,
					   .length = cuts[i] - at,
					   .lkey = m->mr->lkey };
		at = cuts[i];
	}
	return i;
}

/* ---- posting ---- */

static void build(struct ibv_qp_ex *q, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(q);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(q, wr->imm_data);
		break;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(q, wr->invalidate_rkey);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(q, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(q, wr->wr.rdma.rkey,
				      wr->wr.rdma.remote_addr, wr->imm_data);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(q, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(
			q, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
			wr->wr.atomic.compare_add, wr->wr.atomic.swap);
		break;
	default:
		ibv_wr_atomic_fetch_add(q, wr->wr.atomic.rkey,
					wr->wr.atomic.remote_addr,
					wr->wr.atomic.compare_add);
	}
}

static void post_by_builder(const struct ibv_send_wr *wr)
{
	struct ibv_qp_ex *q = ibv_qp_to_qp_ex(a.qp);
	struct ibv_data_buf buf[4];

	ibv_wr_start(q);
	q->wr_id = wr->wr_id;
	q->wr_flags = wr->send_flags & ~(unsigned)IBV_SEND_INLINE;
	build(q, wr);
	if (type == IBV_QPT_UD)
		ibv_wr_set_ud_addr(q, ah, b.qp->qp_num, QKEY);
	for (int i = 0; i < wr->num_sge; i++)
		buf[i] = (struct ibv_data_buf){
			.addr = (void *)(uintptr_t)wr->sg_list[i].addr,
			.length = wr->sg_list[i].length
		};
	if (wr->send_flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data_list(q, (size_t)wr->num_sge, buf);
	else
		ibv_wr_set_sge_list(q, (size_t)wr->num_sge, wr->sg_list);
	CHECK(!ibv_wr_complete(q));
}

/* Every other case goes by ibv_wr_*. */
static void post(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->wr_id = cases;
	wr->send_flags |= IBV_SEND_SIGNALED;
	if (type == IBV_QPT_UD) {
		wr->wr.ud.ah = ah;
		wr->wr.ud.remote_qpn = b.qp->qp_num;
		wr->wr.ud.remote_qkey = QKEY;
	}
	if (cases & 1)
		post_by_builder(wr);
	else
		CHECK(!ibv_post_send(a.qp, wr, &bad));
	CHECK(completion(a.cq).wr_id == cases);
}

static void receive(uint32_t off, uint32_t n, enum how how)
{
	uint32_t grh = type == IBV_QPT_UD ? GRH_BYTES : 0;
	struct ibv_sge sge[5];
	struct ibv_recv_wr wr = { .wr_id = cases, .sg_list = sge }, *bad;

	/* Headers go to a place of their own, far behind. */
	if (grh)
		sge[0] = (struct ibv_sge){ .addr = (uintptr_t)b.mem.p + ROOM -
						   GRH_BYTES,
					   .length = grh,
					   .lkey = b.mem.mr->lkey };
	wr.num_sge = !!grh + cut(&b.mem, off, n, how, sge + !!grh);
	CHECK(!ibv_post_recv(b.qp, &wr, &bad));
}

static void rebind_window(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = mw->rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info.mr = b.mem.mr;
	wr.bind_mw.bind_info.addr = (uintptr_t)b.mem.p;
	wr.bind_mw.bind_info.length = ROOM;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
	CHECK(!ibv_post_send(b.qp, &wr, &bad));
	CHECK(completion(b.cq).opcode == IBV_WC_BIND_MW);
}

/* ---- one case ---- */

static bool takes_receive(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM ||
	       op == IBV_WR_SEND_WITH_INV || op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static void check_received(enum ibv_wr_opcode op, uint32_t n, uint32_t imm)
{
	bool write = op == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct ibv_wc wc = completion(b.cq);

	CHECK(wc.opcode == (write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV));
	CHECK(wc.byte_len == n + (type == IBV_QPT_UD ? GRH_BYTES : 0));
	if (op == IBV_WR_SEND_WITH_INV) {
		CHECK(wc.wc_flags & IBV_WC_WITH_INV);
		CHECK(wc.invalidated_rkey == mw->rkey);
	} else if (write || op == IBV_WR_SEND_WITH_IMM) {
		CHECK(wc.wc_flags & IBV_WC_WITH_IMM);
		CHECK(wc.imm_data == imm);
	}
}

/* UC says nothing of a WRITE that arrived: an empty SEND behind it does. */
static void barrier(void)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND };

	receive(GUARD, 0, HOW_ONE_SGE);
	post(&wr);
	completion(b.cq);
}

static void transfer(enum ibv_wr_opcode op, uint32_t n, enum how how)
{
	bool read = op == IBV_WR_RDMA_READ;
	struct end *from = read ? &b : &a, *to = read ? &a : &b;
	uint32_t src = offset(), dst = GUARD + cases % 7;
	struct ibv_sge sge[5];
	struct ibv_send_wr wr = { .sg_list = sge, .opcode = op };
	bool write =
		op == IBV_WR_RDMA_WRITE || op == IBV_WR_RDMA_WRITE_WITH_IMM;

	fill(from->mem.p + src, n);
	blank(&to->mem, n);
	wr.num_sge = cut(&a.mem, read ? dst : src, n, how, sge);
	wr.send_flags = how == HOW_INLINE ? IBV_SEND_INLINE : 0;
	if (op == IBV_WR_SEND_WITH_INV) {
		rebind_window();
		wr.invalidate_rkey = mw->rkey;
	} else if (op != IBV_WR_SEND) {
		wr.imm_data = cases * 0x01010101u;
	}
	if (type != IBV_QPT_UD) {
		wr.wr.rdma.rkey = b.mem.mr->rkey;
		wr.wr.rdma.remote_addr =
			(uintptr_t)b.mem.p + (read ? src : dst);
	}
	if (takes_receive(op))
		receive(dst, write ? 0 : n, how);
	post(&wr);
	if (takes_receive(op))
		check_received(op, n, cases * 0x01010101u);
	else if (type == IBV_QPT_UC)
		barrier();
	compare(&to->mem, dst, n);
	cases++;
}

static void atomic(enum ibv_wr_opcode op, enum how how)
{
	uint64_t was = 0x1122334455667788ull + cases, add = 0xfffffffffffff001;
	struct ibv_sge sge[5];
	struct ibv_send_wr wr = { .sg_list = sge, .opcode = op };
	uint64_t want, at = (uintptr_t)b.mem.p + GUARD, got;

	at = (at + 7) & ~7ull; /* malloc's 16 bytes make it GUARD */
	blank(&a.mem, 8);
	blank(&b.mem, 8);
	memcpy((void *)(uintptr_t)at, &was, 8);
	wr.num_sge = cut(&a.mem, offset(), 8, how, sge);
	wr.wr.atomic.remote_addr = at;
	wr.wr.atomic.rkey = b.mem.mr->rkey;
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.compare_add = add;
		want = was + add;
	} else {
		wr.wr.atomic.compare_add = was + cases % 3 / 2;
		wr.wr.atomic.swap = add;
		want = cases % 3 == 2 ? was : add;
	}
	post(&wr);
	memcpy(&got, a.mem.p + offset(), 8);
	CHECK(got == was);
	memcpy(&got, (void *)(uintptr_t)at, 8);
	CHECK(got == want);
	CHECK(a.mem.p[offset() - 1] == 0xee && a.mem.p[offset() + 8] == 0xee);
	CHECK(b.mem.p[GUARD - 1] == 0xee && b.mem.p[GUARD + 8] == 0xee);
	cases++;
}

/* ---- all cases ---- */

static const enum ibv_wr_opcode ops[] = {
	IBV_WR_SEND,	      IBV_WR_SEND_WITH_IMM,
	IBV_WR_RDMA_WRITE,    IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_SEND_WITH_INV, IBV_WR_RDMA_READ
};

static size_t ops_of_type(void)
{
	return type == IBV_QPT_UD ? 2 : type == IBV_QPT_UC ? 4 : 6;
}

static void size(uint32_t n)
{
	if (n > max_bytes || (type == IBV_QPT_UD && n > mtu_bytes))
		return;
	for (size_t i = 0; i < ops_of_type(); i++)
		for (int how = 0; how < HOWS; how++) {
			if (how == HOW_INLINE &&
			    (n > INLINE_BYTES || ops[i] == IBV_WR_RDMA_READ))
				continue;
			transfer(ops[i], n, (enum how)how);
		}
}

static void around(uint32_t n)
{
	size(n - 1);
	size(n);
	size(n + 1);
}

static void run(void)
{
	uint32_t n;

	for (n = 0; n <= 9; n++)
		size(n);
	for (n = 16; n <= max_bytes; n *= dense ? 2 : 8)
		around(n);
	for (n = 1; n <= (dense ? 16 : 3); n++)
		around(n * mtu_bytes);
	around(max_bytes - 1);
	for (n = 0; type == IBV_QPT_RC && n < 24; n++) {
		atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, n & 1);
		atomic(IBV_WR_ATOMIC_CMP_AND_SWP, n & 1);
	}
}

static enum ibv_qp_type type_named(const char *s)
{
	return !strcmp(s, "UC")	  ? IBV_QPT_UC
	       : !strcmp(s, "UD") ? IBV_QPT_UD
				  : IBV_QPT_RC;
}

int main(int argc, char **argv)
{
	const char *name = NULL;
	int o;

	while ((o = getopt(argc, argv, "d:g:t:m:s:x")) != -1)
		switch (o) {
		case 'd':
			name = optarg;
			break;
		case 'g':
			gid_index = atoi(optarg);
			break;
		case 't':
			type = type_named(optarg);
			break;
		case 'm':
			mtu_bytes = (uint32_t)atoi(optarg);
			break;
		case 's':
			max_bytes = (uint32_t)atoi(optarg);
			break;
		case 'x':
			dense = true;
			break;
		default:
			return 2;
		}
	if (max_bytes > MAX_BYTES)
		return 2;
	set_up(name);
	run();
	printf("ok %u cases\n", cases);
	return 0;
}
