/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * interop_side.h - one side of a case: its verbs objects, its work, what became
 * of it. Whatever should never fail ends the process (pl_die()).
 */
#ifndef SOFTHCA_TESTS_INTEROP_INTEROP_SIDE_H
#define SOFTHCA_TESTS_INTEROP_INTEROP_SIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "interop_cases.h"

#define SIDE_QKEY 0x11111111u
#define SIDE_MAX_WRS 128

/* What a side tells the other; both are little-endian machines. */
struct side_info {
	uint64_t addr;
	uint32_t rkey, qpn, psn, mtu;
	union ibv_gid gid;
};

struct side {
	const struct interop_case *c;
	bool requester;
	uint32_t len; /* bytes of a WR */
	int count;
	int gid_index;
	int timeout; /* code; 0: the case's */

	struct ibv_context *ctx; /* the caller's, opened */
	struct ibv_pd *pd, *other_pd;
	struct ibv_cq *scq, *rcq;
	struct ibv_qp *qp;
	struct ibv_ah *ah; /* UD, the requester's */
	uint8_t *mem;	   /* guard, count WRs' places, guard */
	size_t mem_len;
	struct ibv_mr *mr;
	struct side_info own, peer;
};

/* Opens the device, or the only one for NULL. */
struct ibv_context *side_open(const char *device);
/* Makes all objects, the QP in INIT, and fills s->own. max_mtu: an enum ibv_mtu
 * or 0. */
void side_create(struct side *s, int max_mtu);
/* RTR and RTS towards s->peer. */
void side_connect(struct side *s);
void side_post_recvs(struct side *s);
/* The requester's WRs, as one list. */
void side_post_sends(struct side *s);
/* Prints "WHAT i STATUS" for n completions, or for those that come within
 * quiet_ms of each other; returns how many. */
int side_reap(struct ibv_cq *cq, const char *what, int n, int quiet_ms);
/* Prints events, the QP's state, and whether memory is as it has to be. */
void side_report(struct side *s);
void side_destroy(struct side *s);

#endif
