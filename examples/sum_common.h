/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sum_common.h - what the two-numbers client and server share: from "which
 * device" to "connected", and waiting for completions without polling.
 *
 * Plain libibverbs: the programs know nothing of softhca and run as well on
 * a hardware NIC.
 */
#ifndef SOFTHCA_EXAMPLES_SUM_COMMON_H
#define SOFTHCA_EXAMPLES_SUM_COMMON_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* What goes through the NIC, in network byte order. */
struct sum_request {
	uint64_t a, b;
};

struct sum_reply {
	uint64_t sum;
};

#define SUM_TCP_PORT "18620"

/* Two sends and two receives at most are outstanding. */
#define SUM_CQ_ENTRIES 4

struct sum_options {
	const char *device; /* NULL: the first with an active port */
	int gid_index;	    /* -1: sum_open() finds a usable one */
	const char *port;   /* of TCP */
	unsigned clients;   /* server: how many to serve, 0: no end */
};

/* Reads -d, -g, -p and -n; returns the index of the first operand, or -1 after
 * a word on stderr. */
int sum_parse(int argc, char **argv, struct sum_options *ret_opt);

/* An opened device and everything that a connection needs. Each pointer is
 * NULL until it is made, so that sum_close() can be called at any point. */
struct sum_end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	int gid_index;
	union ibv_gid gid;
	enum ibv_mtu mtu;
	uint32_t psn; /* of our first packet */

	/* Completions that were taken off the CQ and not yet looked at. */
	struct ibv_wc wc[SUM_CQ_ENTRIES];
	int num_wc;

	/* The registered memory: the only bytes that the NIC reads or writes
	 * for us. The client sends the request and receives the reply, the
	 * server the other way round. */
	struct {
		struct sum_request request;
		struct sum_reply reply;
	} buf;
};

/* All functions below return 0, or -1 after a line on stderr that says what
 * failed. */

/* Opens the device, finds the port's GID, makes PD, MR, channel, CQ, QP; the QP
 * is in INIT then, so that receives can be posted. */
int sum_open(struct sum_end *e, const struct sum_options *opt);
void sum_close(struct sum_end *e);

/* Exchanges QP number, PSN, GID and MTU over the connected TCP socket and
 * takes the QP to RTS. Call it with the first receive posted. */
int sum_connect(struct sum_end *e, int sock);

/* Posts a receive into (a send from) len bytes at `at`, inside e->buf. */
int sum_post_recv(struct sum_end *e, void *at, uint32_t len);
int sum_post_send(struct sum_end *e, void *at, uint32_t len);

/* Sleeps until a work request has completed. *ret_gone (may be NULL): the
 * peer has closed the TCP socket, and there is no completion. A completion
 * with an error status is a failure. timeout_ms < 0: for ever. */
int sum_wait(struct sum_end *e, int sock, int timeout_ms, struct ibv_wc *ret_wc,
	     bool *ret_gone);

#endif
