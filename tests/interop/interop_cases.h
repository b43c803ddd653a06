/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * interop_cases.h - what interop_probe can do to a peer: a list of WRs of one
 * kind on a fresh QP, one of them (or what the responder offers to them) with
 * a fault.
 */
#ifndef SOFTHCA_TESTS_INTEROP_INTEROP_CASES_H
#define SOFTHCA_TESTS_INTEROP_INTEROP_CASES_H

#include <infiniband/verbs.h>
#include <stdint.h>

enum case_flag {
	CASE_LATE_RECV = 1 << 0,     /* receives are posted LATE_MS later */
	CASE_NO_PEER = 1 << 1,	     /* the responder's QP is in RESET */
	CASE_OTHER_PD = 1 << 2,	     /* its memory is of another PD */
	CASE_STALE_KEY = 1 << 3,     /* its memory was deregistered */
	CASE_RECV_BAD_LKEY = 1 << 4, /* its receives name no memory */
	CASE_RECV_NO_WRITE = 1 << 5, /* its receives: memory without write */
	CASE_SEND_BAD_LKEY = 1 << 6, /* the requester's SGE names no memory */
	CASE_BAD_QKEY = 1 << 7,	     /* UD */
};

#define LATE_MS 200

struct interop_case {
	const char *name;
	enum ibv_qp_type type;
	enum ibv_wr_opcode op;
	uint32_t len;	   /* bytes of each WR, unless the command line says */
	int count;	   /* WRs, likewise */
	int bad_at;	   /* index of the WR that fails; -1: none does */
	int recvs;	   /* receives that the responder posts; -1: count */
	uint32_t recv_cut; /* bytes that they are too short */
	int64_t offset;	   /* added to the failing WR's remote address */
	uint32_t rkey_xor; /* changes the failing WR's rkey */
	int no_mr_access;  /* IBV_ACCESS_* that the memory lacks */
	int no_qp_access;  /* IBV_ACCESS_* that the responder's QP lacks */
	unsigned flags;	   /* enum case_flag */
	uint8_t rnr_retry; /* 7: for ever */
	uint8_t retry_cnt; /* 0: 7 */
	uint8_t timeout;   /* 4.096 us * 2^timeout; 0: 16 (268 ms) */
};

/* The case of this name, or NULL. */
const struct interop_case *interop_case_find(const char *name);

#endif
