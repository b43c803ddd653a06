/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "sum_common.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PORT_NUM 1 /* an adapter's ports count from 1 */

static int fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	return -1;
}

int sum_parse(int argc, char **argv, struct sum_options *ret_opt)
{
	struct sum_options o = { .gid_index = -1, .port = SUM_TCP_PORT };
	int c;

	while ((c = getopt(argc, argv, "d:g:p:n:")) != -1) {
		switch (c) {
		case 'd':
			o.device = optarg;
			break;
		case 'g':
			o.gid_index = atoi(optarg);
			break;
		case 'p':
			o.port = optarg;
			break;
		case 'n':
			o.clients = (unsigned)atoi(optarg);
			break;
		default:
			return -1;
		}
	}
	*ret_opt = o;
	return optind;
}

/* ---- the device and its address ---- */

static bool port_active(struct ibv_context *ctx)
{
	struct ibv_port_attr port;

	return ibv_query_port(ctx, PORT_NUM, &port) == 0 &&
	       port.state == IBV_PORT_ACTIVE;
}

/* The device of this name, or the first whose port is active. */
static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	for (int i = 0; list && list[i] && !ctx; i++) {
		if (name && strcmp(name, ibv_get_device_name(list[i])) != 0)
			continue;
		ctx = ibv_open_device(list[i]);
		if (ctx && !name && !port_active(ctx)) {
			ibv_close_device(ctx);
			ctx = NULL;
		}
	}
	if (list)
		ibv_free_device_list(list); /* opened contexts stay valid */
	if (!ctx)
		fprintf(stderr, "no RDMA device%s%s\n", name ? " " : "",
			name ? name : " with an active port");
	return ctx;
}

static bool gid_is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(gid->raw, prefix, sizeof(prefix)) == 0;
}

/* On Ethernet (RoCE) a peer is reached by its GID, an IP address in 16 bytes;
 * a port has a table of them. Prefers RoCE v2 with an IPv4 address, else takes
 * RoCE v2 with any. InfiniBand: entry 0. -1: none. */
static int find_gid(struct ibv_context *ctx, int table_len)
{
	struct ibv_gid_entry e;
	int found = -1;

	for (int i = 0; i < table_len; i++) {
		if (ibv_query_gid_ex(ctx, PORT_NUM, (uint32_t)i, &e, 0) != 0)
			continue; /* a hole in the table */
		if (e.gid_type == IBV_GID_TYPE_IB)
			return i;
		if (e.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		if (gid_is_ipv4(&e.gid))
			return i;
		if (found < 0)
			found = i;
	}
	return found;
}

static int find_address(struct sum_end *e, int wanted_index)
{
	struct ibv_port_attr port;

	errno = ibv_query_port(e->ctx, PORT_NUM, &port);
	if (errno)
		return fail("ibv_query_port");
	e->mtu = port.active_mtu;
	e->gid_index = wanted_index >= 0 ? wanted_index
					 : find_gid(e->ctx, port.gid_tbl_len);
	if (e->gid_index < 0) {
		fprintf(stderr, "the port has no usable GID\n");
		return -1;
	}
	if (ibv_query_gid(e->ctx, PORT_NUM, e->gid_index, &e->gid) != 0)
		return fail("ibv_query_gid");
	return 0;
}

/* ---- objects ---- */

/* RESET -> INIT: from here on receives may be posted. */
static int qp_to_init(struct sum_end *e)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = 0,
		.port_num = PORT_NUM,
		.qp_access_flags = 0, /* the peer may SEND, nothing else */
	};

	errno = ibv_modify_qp(e->qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				      IBV_QP_ACCESS_FLAGS);
	return errno ? fail("to INIT") : 0;
}

static int make_qp(struct sum_end *e)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = { .max_send_wr = SUM_CQ_ENTRIES / 2,
			 .max_recv_wr = SUM_CQ_ENTRIES / 2,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC, /* reliable, connected */
	};

	e->qp = ibv_create_qp(e->pd, &init);
	if (!e->qp)
		return fail("ibv_create_qp");
	return qp_to_init(e);
}

int sum_open(struct sum_end *e, const struct sum_options *opt)
{
	struct timespec now;

	memset(e, 0, sizeof(*e));
	e->ctx = open_device(opt->device);
	if (!e->ctx || find_address(e, opt->gid_index) != 0)
		return -1;
	e->pd = ibv_alloc_pd(e->ctx);
	if (!e->pd)
		return fail("ibv_alloc_pd");
	e->mr = ibv_reg_mr(e->pd, &e->buf, sizeof(e->buf),
			   IBV_ACCESS_LOCAL_WRITE);
	if (!e->mr)
		return fail("ibv_reg_mr");
	e->channel = ibv_create_comp_channel(e->ctx);
	if (!e->channel)
		return fail("ibv_create_comp_channel");
	e->cq = ibv_create_cq(e->ctx, SUM_CQ_ENTRIES, NULL, e->channel, 0);
	if (!e->cq)
		return fail("ibv_create_cq");
	/* The first completion shall raise an event. */
	errno = ibv_req_notify_cq(e->cq, 0);
	if (errno)
		return fail("ibv_req_notify_cq");
	/* Where packet numbers start; new each time, so that a late packet of
	 * an earlier connection is not taken for one of this. */
	clock_gettime(CLOCK_REALTIME, &now);
	e->psn = (uint32_t)(now.tv_nsec ^ getpid()) & 0xffffff;
	return make_qp(e);
}

/* In reverse order: an object goes before what it was made from. */
void sum_close(struct sum_end *e)
{
	if (e->qp && ibv_destroy_qp(e->qp))
		fail("ibv_destroy_qp");
	if (e->cq && ibv_destroy_cq(e->cq))
		fail("ibv_destroy_cq");
	if (e->channel && ibv_destroy_comp_channel(e->channel))
		fail("ibv_destroy_comp_channel");
	if (e->mr && ibv_dereg_mr(e->mr))
		fail("ibv_dereg_mr");
	if (e->pd && ibv_dealloc_pd(e->pd))
		fail("ibv_dealloc_pd");
	if (e->ctx && ibv_close_device(e->ctx))
		fail("ibv_close_device");
	memset(e, 0, sizeof(*e));
}

/* ---- connecting ---- */

/* What each side must know of the other; in network byte order on the TCP
 * connection. */
struct peer {
	uint32_t qpn, psn, mtu;
	union ibv_gid gid;
};

static int exchange(struct sum_end *e, int sock, struct peer *ret)
{
	struct peer mine = { htonl(e->qp->qp_num), htonl(e->psn),
			     htonl((uint32_t)e->mtu), e->gid };

	if (send(sock, &mine, sizeof(mine), MSG_NOSIGNAL) != sizeof(mine))
		return fail("send to the peer");
	errno = 0;
	if (recv(sock, ret, sizeof(*ret), MSG_WAITALL) != sizeof(*ret))
		return fail("no answer from the peer");
	ret->qpn = ntohl(ret->qpn);
	ret->psn = ntohl(ret->psn);
	ret->mtu = ntohl(ret->mtu);
	return 0;
}

/* INIT -> RTR: the receiving half knows its peer. */
static int qp_to_rtr(struct sum_end *e, const struct peer *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = peer->mtu < e->mtu ? peer->mtu : e->mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		/* On Ethernet the global route (GIDs) is the address. */
		.ah_attr = { .is_global = 1,
			     .port_num = PORT_NUM,
			     .grh = { .dgid = peer->gid,
				      .sgid_index = (uint8_t)e->gid_index,
				      .hop_limit = 64 } },
	};

	errno = ibv_modify_qp(e->qp, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER);
	return errno ? fail("to RTR") : 0;
}

/* RTR -> RTS: the sending half too. */
static int qp_to_rts(struct sum_end *e)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = e->psn,
		.timeout = 14, /* 4.096 us * 2^14 = 67 ms for an ACK */
		.retry_cnt = 7,
		.rnr_retry = 7, /* for ever */
		.max_rd_atomic = 1,
	};

	errno = ibv_modify_qp(e->qp, &attr,
			      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_MAX_QP_RD_ATOMIC);
	return errno ? fail("to RTS") : 0;
}

/* A packet that reaches a QP before its RTR is dropped, and sent again only
 * after the ACK timeout: so nobody starts before both are there. */
static int both_ready(int sock)
{
	char ready = 'r';

	if (send(sock, &ready, 1, MSG_NOSIGNAL) != 1)
		return fail("send to the peer");
	errno = 0;
	if (recv(sock, &ready, 1, MSG_WAITALL) != 1)
		return fail("the peer did not get ready");
	return 0;
}

int sum_connect(struct sum_end *e, int sock)
{
	struct peer peer;

	if (exchange(e, sock, &peer) != 0 || qp_to_rtr(e, &peer) != 0 ||
	    qp_to_rts(e) != 0)
		return -1;
	return both_ready(sock);
}

/* ---- work requests ---- */

int sum_post_recv(struct sum_end *e, void *at, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)at, len, e->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	errno = ibv_post_recv(e->qp, &wr, &bad);
	return errno ? fail("ibv_post_recv") : 0;
}

int sum_post_send(struct sum_end *e, void *at, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)at, len, e->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED, /* we want a completion */
	};
	struct ibv_send_wr *bad;

	errno = ibv_post_send(e->qp, &wr, &bad);
	return errno ? fail("ibv_post_send") : 0;
}

/* ---- completions ---- */

/* Takes the event that made the channel readable, and all completions that it
 * stands for. Every event must be acknowledged, else ibv_destroy_cq() waits for
 * ever. The order matters: first ask for the next event, then look, so that a
 * completion that comes in between is seen by one or the other. */
static int take_event(struct sum_end *e)
{
	struct ibv_cq *cq;
	void *context;
	int n;

	if (ibv_get_cq_event(e->channel, &cq, &context) != 0)
		return fail("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	errno = ibv_req_notify_cq(cq, 0);
	if (errno)
		return fail("ibv_req_notify_cq");
	n = ibv_poll_cq(cq, SUM_CQ_ENTRIES - e->num_wc, e->wc + e->num_wc);
	if (n < 0)
		return fail("ibv_poll_cq");
	e->num_wc += n;
	return 0;
}

/* The oldest completion that was taken. */
static int first_completion(struct sum_end *e, struct ibv_wc *ret_wc)
{
	*ret_wc = e->wc[0];
	e->num_wc--;
	memmove(e->wc, e->wc + 1, (size_t)e->num_wc * sizeof(e->wc[0]));
	if (ret_wc->status != IBV_WC_SUCCESS) {
		fprintf(stderr, "work request failed: %s\n",
			ibv_wc_status_str(ret_wc->status));
		return -1;
	}
	return 0;
}

int sum_wait(struct sum_end *e, int sock, int timeout_ms, struct ibv_wc *ret_wc,
	     bool *ret_gone)
{
	struct pollfd fds[2] = { { e->channel->fd, POLLIN, 0 },
				 { sock, POLLIN, 0 } };

	if (ret_gone)
		*ret_gone = false;
	while (e->num_wc == 0) {
		int n = poll(fds, 2, timeout_ms);

		if (n < 0)
			return fail("poll");
		if (n == 0) {
			fprintf(stderr, "no completion in %d ms\n", timeout_ms);
			return -1;
		}
		if (fds[0].revents) {
			if (take_event(e) != 0)
				return -1;
		} else if (ret_gone) {
			*ret_gone = true;
			return 0;
		} else {
			fprintf(stderr, "the peer has gone away\n");
			return -1;
		}
	}
	return first_completion(e, ret_wc);
}
