/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "pairlib.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_NS (30 * 1000000000LL)

void pl_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " (errno %d)\n", errno);
	exit(1);
}

int64_t pl_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* ---- options and TCP ---- */

static void parse_option(struct pl *p, int c)
{
	switch (c) {
	case 'd':
		p->device = optarg;
		break;
	case 'g':
		p->gid_index = atoi(optarg);
		break;
	case 'p':
		p->port = optarg;
		break;
	case 'q':
		p->qps = atoi(optarg);
		break;
	case 's':
		p->size = strtoul(optarg, NULL, 0);
		break;
	case 'n':
		p->n = atoi(optarg);
		break;
	case 't':
		p->seconds = atoi(optarg);
		break;
	case 'T':
		p->timeout = atoi(optarg);
		break;
	case 'R':
		p->retry_cnt = atoi(optarg);
		break;
	case 'm':
		p->mode = optarg;
		break;
	case 'l':
		p->late = true;
		break;
	default:
		pl_die("bad option");
	}
}

static void parse(struct pl *p, int argc, char **argv)
{
	int c;

	p->qps = p->n = p->seconds = 1;
	p->size = 65536;
	p->mode = "";
	/* A second, beyond what a busy machine's scheduler takes: a loss still
	 * shows, as a retransmission. */
	p->timeout = 18;
	p->retry_cnt = 7;
	while ((c = getopt(argc, argv, "d:g:p:q:s:n:t:m:T:R:l")) != -1)
		parse_option(p, c);
	p->host = argv[optind];
	p->client = p->host != NULL;
	PL_CHECK(p->port);
}

static void tcp_open(struct pl *p)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)atoi(p->port)) };
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	PL_CHECK(s >= 0);
	if (p->client) {
		PL_CHECK(inet_pton(AF_INET, p->host, &a.sin_addr) == 1);
		PL_CHECK(connect(s, (struct sockaddr *)&a, sizeof(a)) == 0);
		p->sock = s;
	} else {
		setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		PL_CHECK(bind(s, (struct sockaddr *)&a, sizeof(a)) == 0);
		PL_CHECK(listen(s, 1) == 0);
		p->sock = accept(s, NULL, NULL);
		PL_CHECK(p->sock >= 0);
		close(s);
	}
	setsockopt(p->sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static void put(struct pl *p, const void *buf, size_t len)
{
	PL_CHECK(send(p->sock, buf, len, MSG_NOSIGNAL) == (ssize_t)len);
}

static void get(struct pl *p, void *buf, size_t len)
{
	PL_CHECK(recv(p->sock, buf, len, MSG_WAITALL) == (ssize_t)len);
}

void pl_tell(struct pl *p, uint64_t v)
{
	put(p, &v, sizeof(v));
}

uint64_t pl_hear(struct pl *p)
{
	uint64_t v;

	get(p, &v, sizeof(v));
	return v;
}

void pl_sync(struct pl *p)
{
	pl_tell(p, 1);
	PL_CHECK(pl_hear(p) == 1);
}

/* ---- objects ---- */

static void open_device(struct pl *p)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	PL_CHECK(list);
	for (int i = 0; list[i] && !p->ctx; i++)
		if (!p->device ||
		    strcmp(p->device, ibv_get_device_name(list[i])) == 0)
			p->ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	if (!p->ctx)
		pl_die("no device");
}

void pl_start(struct pl *p, int argc, char **argv, int cqe)
{
	memset(p, 0, sizeof(*p));
	setvbuf(stdout, NULL, _IOLBF, 0);
	parse(p, argc, argv);
	tcp_open(p);
	open_device(p);
	PL_CHECK(ibv_query_port(p->ctx, 1, &p->port_attr) == 0);
	PL_CHECK(ibv_query_gid(p->ctx, 1, p->gid_index, &p->gid) == 0);
	p->pd = ibv_alloc_pd(p->ctx);
	PL_CHECK(p->pd);
	p->channel = ibv_create_comp_channel(p->ctx);
	PL_CHECK(p->channel);
	p->cq = ibv_create_cq(p->ctx, cqe, p, p->channel, 0);
	PL_CHECK(p->cq);
}

static struct ibv_qp *make_qp(struct pl *p)
{
	struct ibv_qp_init_attr init = {
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.cap = { 32, 4, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = PL_FLAG_ACCESS,
	};
	struct ibv_qp *qp = ibv_create_qp(p->pd, &init);

	PL_CHECK(qp);
	PL_CHECK(ibv_modify_qp(qp, &attr,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS) == 0);
	return qp;
}

static void to_rts(struct pl *p, struct ibv_qp *qp, uint32_t dest_qpn,
		   const union ibv_gid *dgid)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = p->port_attr.active_mtu,
		.dest_qp_num = dest_qpn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = *dgid,
				      .sgid_index = (uint8_t)p->gid_index,
				      .hop_limit = 64 } },
	};

	PL_CHECK(ibv_modify_qp(qp, &attr,
			       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER) == 0);
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = (uint8_t)p->timeout;
	attr.retry_cnt = (uint8_t)p->retry_cnt;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 4;
	PL_CHECK(ibv_modify_qp(qp, &attr,
			       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

void pl_connect(struct pl *p, void (*post)(struct pl *p))
{
	union ibv_gid dgid;

	p->qp = calloc((size_t)p->qps, sizeof(*p->qp));
	PL_CHECK(p->qp);
	for (int i = 0; i < p->qps; i++)
		p->qp[i] = make_qp(p);
	if (post)
		post(p);
	put(p, &p->gid, sizeof(p->gid));
	get(p, &dgid, sizeof(dgid));
	for (int i = 0; i < p->qps; i++) {
		pl_tell(p, p->qp[i]->qp_num);
		to_rts(p, p->qp[i], (uint32_t)pl_hear(p), &dgid);
	}
	pl_sync(p);
}

void pl_stop(struct pl *p)
{
	pl_sync(p);
	for (int i = 0; i < p->qps; i++)
		PL_CHECK(ibv_destroy_qp(p->qp[i]) == 0);
	free(p->qp);
	PL_CHECK(ibv_destroy_cq(p->cq) == 0);
	PL_CHECK(ibv_destroy_comp_channel(p->channel) == 0);
	PL_CHECK(ibv_dealloc_pd(p->pd) == 0);
	PL_CHECK(ibv_close_device(p->ctx) == 0);
	close(p->sock);
}

struct ibv_mr *pl_reg(struct pl *p, void *buf, size_t len)
{
	struct ibv_mr *mr = ibv_reg_mr(p->pd, buf, len, PL_FLAG_ACCESS);

	PL_CHECK(mr);
	return mr;
}

struct ibv_mr *pl_share(struct pl *p, void *buf, size_t len)
{
	struct ibv_mr *mr = pl_reg(p, buf, len);

	pl_tell(p, (uintptr_t)buf);
	pl_tell(p, mr->rkey);
	p->raddr = pl_hear(p);
	p->rkey = (uint32_t)pl_hear(p);
	return mr;
}

/* ---- work ---- */

void pl_post(struct pl *p, int i, enum ibv_wr_opcode op, struct ibv_mr *mr,
	     void *buf, size_t len, uint64_t raddr)
{
	struct ibv_sge sge = { (uintptr_t)buf, (uint32_t)len, mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = (uint64_t)i,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { raddr, p->rkey },
	};
	struct ibv_send_wr *bad;

	PL_CHECK(ibv_post_send(p->qp[i], &wr, &bad) == 0);
}

void pl_recv(struct pl *p, int i, struct ibv_mr *mr, void *buf, size_t len)
{
	struct ibv_sge sge = { (uintptr_t)buf, (uint32_t)len, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uint64_t)i,
				  .sg_list = &sge,
				  .num_sge = 1 };
	struct ibv_recv_wr *bad;

	PL_CHECK(ibv_post_recv(p->qp[i], &wr, &bad) == 0);
}

struct ibv_wc pl_poll(struct pl *p)
{
	int64_t end_ns = pl_now_ns() + LIMIT_NS;
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(p->cq, 1, &wc)) == 0)
		if (pl_now_ns() > end_ns)
			pl_die("no completion within the limit");
	PL_CHECK(n == 1);
	return wc;
}

void pl_poll_n(struct pl *p, int n)
{
	while (n-- > 0) {
		struct ibv_wc wc = pl_poll(p);

		if (wc.status != IBV_WC_SUCCESS)
			pl_die("wr %d: %s", (int)wc.wr_id,
			       ibv_wc_status_str(wc.status));
	}
}

/* ---- one process alone ---- */

static void self_open(struct pl_self *s)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	PL_CHECK(list && list[0]);
	s->ctx = ibv_open_device(list[0]);
	PL_CHECK(s->ctx);
	ibv_free_device_list(list);
	s->pd = ibv_alloc_pd(s->ctx);
	PL_CHECK(s->pd);
	s->channel = ibv_create_comp_channel(s->ctx);
	PL_CHECK(s->channel);
	s->cq = ibv_create_cq(s->ctx, 64, s, s->channel, 0);
	PL_CHECK(s->cq);
	s->mr = ibv_reg_mr(s->pd, s->buf, sizeof(s->buf), PL_FLAG_ACCESS);
	PL_CHECK(s->mr);
}

void pl_self_start(struct pl_self *s)
{
	struct pl p = { .qps = 1, .timeout = 18, .retry_cnt = 7 };

	memset(s, 0, sizeof(*s));
	self_open(s);
	p.pd = s->pd;
	p.cq = s->cq;
	PL_CHECK(ibv_query_port(s->ctx, 1, &p.port_attr) == 0);
	PL_CHECK(ibv_query_gid(s->ctx, 1, 0, &p.gid) == 0);
	s->qp = make_qp(&p);
	to_rts(&p, s->qp, s->qp->qp_num, &p.gid);
}

void pl_self_write(struct pl_self *s, int n)
{
	const size_t half = sizeof(s->buf) / 2;
	struct pl p = { .qp = &s->qp, .cq = s->cq, .rkey = s->mr->rkey };

	for (int i = 0; i < n; i++) {
		memset(s->buf, i + 1, half);
		pl_post(&p, 0, IBV_WR_RDMA_WRITE, s->mr, s->buf, half,
			(uintptr_t)s->buf + half);
		pl_poll_n(&p, 1);
		PL_CHECK(memcmp(s->buf, s->buf + half, half) == 0);
	}
}

void pl_self_stop(struct pl_self *s)
{
	PL_CHECK(ibv_destroy_qp(s->qp) == 0);
	PL_CHECK(ibv_dereg_mr(s->mr) == 0);
	PL_CHECK(ibv_destroy_cq(s->cq) == 0);
	PL_CHECK(ibv_destroy_comp_channel(s->channel) == 0);
	PL_CHECK(ibv_dealloc_pd(s->pd) == 0);
	PL_CHECK(ibv_close_device(s->ctx) == 0);
}
