/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "interop_cases.h"

#include <string.h>

#define RC .type = IBV_QPT_RC
#define UC .type = IBV_QPT_UC
#define UD .type = IBV_QPT_UD
#define SEND .op = IBV_WR_SEND, .recvs = -1
#define SEND_IMM .op = IBV_WR_SEND_WITH_IMM, .recvs = -1
#define WRITE .op = IBV_WR_RDMA_WRITE
#define WRITE_IMM .op = IBV_WR_RDMA_WRITE_WITH_IMM, .recvs = -1
#define READ .op = IBV_WR_RDMA_READ
#define FADD .op = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 8
#define CAS .op = IBV_WR_ATOMIC_CMP_AND_SWP, .len = 8
#define GOOD .bad_at = -1, .count = 4, .rnr_retry = 7
/* One WR that works, one with the fault, one that is flushed. */
#define BAD .bad_at = 1, .count = 3, .rnr_retry = 7
/* The fault is in what the responder offers: the first WR meets it. */
#define BAD_ALL .bad_at = 0, .count = 3, .rnr_retry = 7
/* Far past the memory's end, and just before its begin. */
#define BEHIND .offset = 1 << 26
#define BEFORE .offset = -(1 << 20)

static const struct interop_case cases[] = {
	{ "send", RC, SEND, .len = 3000, GOOD },
	{ "send_imm", RC, SEND_IMM, .len = 3000, GOOD },
	{ "write", RC, WRITE, .len = 3000, GOOD },
	{ "write_imm", RC, WRITE_IMM, .len = 3000, GOOD },
	{ "read", RC, READ, .len = 3000, GOOD },
	{ "fadd", RC, FADD, GOOD },
	{ "cas", RC, CAS, GOOD },
	{ "uc_send", UC, SEND, .len = 3000, GOOD },
	{ "uc_send_imm", UC, SEND_IMM, .len = 3000, GOOD },
	{ "uc_write", UC, WRITE, .len = 3000, GOOD },
	{ "uc_write_imm", UC, WRITE_IMM, .len = 3000, GOOD },
	{ "ud_send", UD, SEND, .len = 900, GOOD },
	{ "ud_send_imm", UD, SEND_IMM, .len = 900, GOOD },

	/* NAK: remote access error */
	{ "write_rkey", RC, WRITE, .len = 3000, BAD, .rkey_xor = 0xff00 },
	{ "write_behind", RC, WRITE, .len = 3000, BAD, BEHIND },
	{ "write_before", RC, WRITE, .len = 3000, BAD, BEFORE },
	{ "read_rkey", RC, READ, .len = 3000, BAD, .rkey_xor = 0xff00 },
	{ "read_behind", RC, READ, .len = 3000, BAD, BEHIND },
	{ "fadd_rkey", RC, FADD, BAD, .rkey_xor = 0xff00 },
	{ "fadd_behind", RC, FADD, BAD, BEHIND },
	{ "write_imm_rkey", RC, WRITE_IMM, .len = 3000, BAD,
	  .rkey_xor = 0xff00 },
	{ "write_perm", RC, WRITE, .len = 3000, BAD_ALL,
	  .no_mr_access = IBV_ACCESS_REMOTE_WRITE },
	{ "read_perm", RC, READ, .len = 3000, BAD_ALL,
	  .no_mr_access = IBV_ACCESS_REMOTE_READ },
	{ "fadd_perm", RC, FADD, BAD_ALL,
	  .no_mr_access = IBV_ACCESS_REMOTE_ATOMIC },
	{ "cas_perm", RC, CAS, BAD_ALL,
	  .no_mr_access = IBV_ACCESS_REMOTE_ATOMIC },
	{ "write_pd", RC, WRITE, .len = 3000, BAD_ALL, .flags = CASE_OTHER_PD },
	{ "read_pd", RC, READ, .len = 3000, BAD_ALL, .flags = CASE_OTHER_PD },
	{ "write_stale", RC, WRITE, .len = 3000, BAD_ALL,
	  .flags = CASE_STALE_KEY },

	/* NAK: invalid request */
	{ "write_qp_perm", RC, WRITE, .len = 3000, BAD_ALL,
	  .no_qp_access = IBV_ACCESS_REMOTE_WRITE },
	{ "read_qp_perm", RC, READ, .len = 3000, BAD_ALL,
	  .no_qp_access = IBV_ACCESS_REMOTE_READ },
	{ "fadd_qp_perm", RC, FADD, BAD_ALL,
	  .no_qp_access = IBV_ACCESS_REMOTE_ATOMIC },
	{ "send_long", RC, SEND, .len = 3000, BAD_ALL, .recv_cut = 1 },
	{ "send_long_one", RC, SEND, .len = 100, BAD_ALL, .recv_cut = 1 },
	{ "fadd_unaligned", RC, FADD, BAD, .offset = 4 },

	/* NAK: remote operational error */
	{ "recv_lkey", RC, SEND, .len = 3000, BAD_ALL,
	  .flags = CASE_RECV_BAD_LKEY },
	{ "recv_no_write", RC, SEND, .len = 3000, BAD_ALL,
	  .flags = CASE_RECV_NO_WRITE },

	/* RNR NAK */
	{ "rnr_waits", RC, SEND, .len = 3000, GOOD, .flags = CASE_LATE_RECV },
	{ "rnr_imm_waits", RC, WRITE_IMM, .len = 3000, GOOD,
	  .flags = CASE_LATE_RECV },
	{ "rnr_ends", RC, .op = IBV_WR_SEND, .len = 3000, .bad_at = 1,
	  .count = 3, .recvs = 1, .rnr_retry = 2 },
	{ "rnr_ends_at_0", RC, .op = IBV_WR_SEND, .len = 3000, .bad_at = 1,
	  .count = 3, .recvs = 1, .rnr_retry = 0 },

	/* nobody there: 3 repetitions of 4.096 us * 2^12 = 17 ms and more */
	{ "no_peer_send", RC, .op = IBV_WR_SEND, .len = 3000, BAD_ALL,
	  .flags = CASE_NO_PEER, .retry_cnt = 3, .timeout = 12 },
	{ "no_peer_read", RC, READ, .len = 3000, BAD_ALL, .flags = CASE_NO_PEER,
	  .retry_cnt = 3, .timeout = 12 },

	/* nothing reaches the wire */
	{ "send_lkey", RC, SEND, .len = 3000, BAD,
	  .flags = CASE_SEND_BAD_LKEY },

	/* no NAK: the requester never learns it */
	{ "uc_write_rkey", UC, WRITE, .len = 3000, BAD, .rkey_xor = 0xff00 },
	{ "uc_send_long", UC, SEND, .len = 3000, BAD_ALL, .recv_cut = 1 },
	{ "ud_qkey", UD, SEND, .len = 900, BAD, .flags = CASE_BAD_QKEY },
};

const struct interop_case *interop_case_find(const char *name)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (strcmp(cases[i].name, name) == 0)
			return &cases[i];
	return NULL;
}
