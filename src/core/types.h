/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * types.h - the words that the core and its drivers share: enums, attributes,
 * work requests and completions.
 *
 * Where libibverbs has a number for a thing the value here is the same, so
 * that the shim copies instead of translating; the shim asserts it statically.
 */
#ifndef SOFTHCA_CORE_TYPES_H
#define SOFTHCA_CORE_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/net.h"

struct hca;
struct pd;
struct mr;
struct mw;
struct cq;
struct srq;
struct qp;
struct ah;
struct xrcd;

enum qp_type {
	QP_TYPE_RC = 2,
	QP_TYPE_UC = 3,
	QP_TYPE_UD = 4,
	QP_TYPE_XRC_INI = 9,  /* sends: the initiator */
	QP_TYPE_XRC_TGT = 10, /* receives into XRC SRQs: the target */
};

enum qp_state {
	QP_STATE_RESET = 0,
	QP_STATE_INIT = 1,
	QP_STATE_RTR = 2,
	QP_STATE_RTS = 3,
	QP_STATE_SQD = 4,
	QP_STATE_SQE = 5,
	QP_STATE_ERR = 6,
};

enum mig_state {
	MIG_STATE_MIGRATED = 0,
	MIG_STATE_REARM = 1,
	MIG_STATE_ARMED = 2,
};

/* Path MTU codes: 1..5 for 256..4096 bytes. */
enum mtu_code {
	MTU_256 = 1,
	MTU_512 = 2,
	MTU_1024 = 3,
	MTU_2048 = 4,
	MTU_4096 = 5,
};

static inline uint32_t mtu_bytes(enum mtu_code c)
{
	return 128u << c;
}

/* The largest code whose payload fits, 0 when not even 256 bytes do. */
enum mtu_code mtu_code_fitting(uint32_t payload_bytes);

enum access_flags {
	ACCESS_LOCAL_WRITE = 1 << 0,
	ACCESS_REMOTE_WRITE = 1 << 1,
	ACCESS_REMOTE_READ = 1 << 2,
	ACCESS_REMOTE_ATOMIC = 1 << 3,
	ACCESS_MW_BIND = 1 << 4,
	ACCESS_ZERO_BASED = 1 << 5,
	ACCESS_ON_DEMAND = 1 << 6,
	ACCESS_HUGETLB = 1 << 7,
	/* bits 20.. are optional hints (relaxed ordering): accepted, ignored */
	ACCESS_OPTIONAL_RANGE = 0x3ff00000,
};

enum mw_type {
	MW_TYPE_1 = 1,
	MW_TYPE_2 = 2,
};

enum wr_opcode {
	WR_WRITE = 0,
	WR_WRITE_IMM = 1,
	WR_SEND = 2,
	WR_SEND_IMM = 3,
	WR_READ = 4,
	WR_CMP_SWAP = 5,
	WR_FETCH_ADD = 6,
	WR_LOCAL_INV = 7,
	WR_BIND_MW = 8,
	WR_SEND_INV = 9,
};

enum wr_flags {
	WR_FENCE = 1 << 0,
	WR_SIGNALED = 1 << 1,
	WR_SOLICITED = 1 << 2,
	WR_INLINE = 1 << 3,
};

enum wc_status {
	WC_SUCCESS = 0,
	WC_LOC_LEN_ERR = 1,
	WC_LOC_QP_OP_ERR = 2,
	WC_LOC_EEC_OP_ERR = 3,
	WC_LOC_PROT_ERR = 4,
	WC_WR_FLUSH_ERR = 5,
	WC_MW_BIND_ERR = 6,
	WC_BAD_RESP_ERR = 7,
	WC_LOC_ACCESS_ERR = 8,
	WC_REM_INV_REQ_ERR = 9,
	WC_REM_ACCESS_ERR = 10,
	WC_REM_OP_ERR = 11,
	WC_RETRY_EXC_ERR = 12,
	WC_RNR_RETRY_EXC_ERR = 13,
	WC_REM_ABORT_ERR = 16,
	WC_FATAL_ERR = 19,
	WC_RESP_TIMEOUT_ERR = 20,
	WC_GENERAL_ERR = 21,
};

enum wc_opcode {
	WC_SEND = 0,
	WC_RDMA_WRITE = 1,
	WC_RDMA_READ = 2,
	WC_COMP_SWAP = 3,
	WC_FETCH_ADD = 4,
	WC_BIND_MW = 5,
	WC_LOCAL_INV = 6,
	WC_RECV = 128,
	WC_RECV_RDMA_WITH_IMM = 129,
};

enum wc_flags {
	WC_GRH = 1 << 0,
	WC_WITH_IMM = 1 << 1,
	WC_WITH_INV = 1 << 3,
};

/* A completion, 48 bytes and in libibverbs' order. */
struct wc {
	uint64_t wr_id;
	uint32_t status; /* enum wc_status */
	uint32_t opcode; /* enum wc_opcode; undefined unless WC_SUCCESS */
	uint32_t vendor_err;
	uint32_t byte_len;
	uint32_t
		imm_be_or_rkey; /* imm: network order; invalidated rkey: host */
	uint32_t qpn;
	uint32_t src_qpn;
	uint32_t wc_flags; /* enum wc_flags */
	uint16_t pkey_index;
	uint16_t slid;
	uint8_t sl;
	uint8_t dlid_path_bits;
};

struct sge {
	uint64_t addr; /* in the MR's iova space */
	uint32_t len_bytes;
	uint32_t lkey;
};

struct send_wr {
	uint64_t wr_id;
	const struct sge *sge;
	int num_sge;
	uint32_t opcode; /* enum wr_opcode */
	uint32_t flags;	 /* enum wr_flags */
	union {
		uint32_t imm_be_or_rkey; /* like struct wc; LOCAL_INV and
					    SEND_INV: the key that ends */
		uint32_t bind_mw_index;	 /* BIND_MW: mw_index() */
	};
	uint64_t remote_addr; /* WRITE, READ, atomics; BIND_MW: first byte,
				 in the region's iova space */
	uint32_t rkey;	      /* BIND_MW: the window's new key */
	union {
		struct { /* atomics */
			uint64_t compare_add, swap;
		};
		struct { /* BIND_MW; of no bytes: no region either */
			uint64_t bind_len_bytes;
			uint32_t bind_mr_key;
			uint32_t bind_access; /* enum access_flags */
		};
	};
	struct ah *ah;			  /* UD; read before the post returns */
	uint32_t remote_qpn, remote_qkey; /* UD */
	uint32_t remote_srqn;		  /* XRC: 24 bits */
};

struct recv_wr {
	uint64_t wr_id;
	const struct sge *sge;
	int num_sge;
};

/* Addressing as the caller states it. */
struct ah_attr {
	bool is_global;
	struct gid dgid;
	uint8_t sgid_index;
	uint8_t traffic_class;
	uint8_t hop_limit;   /* 0 is sent as 64 */
	uint32_t flow_label; /* 20 bits */
	uint8_t sl;
	uint8_t static_rate;
	uint8_t src_path_bits;
	uint8_t port_num; /* 1 */
	uint16_t dlid;
};

enum qp_attr_mask {
	QP_ATTR_STATE = 1 << 0,
	QP_ATTR_CUR_STATE = 1 << 1,
	QP_ATTR_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	QP_ATTR_ACCESS_FLAGS = 1 << 3,
	QP_ATTR_PKEY_INDEX = 1 << 4,
	QP_ATTR_PORT = 1 << 5,
	QP_ATTR_QKEY = 1 << 6,
	QP_ATTR_AV = 1 << 7,
	QP_ATTR_PATH_MTU = 1 << 8,
	QP_ATTR_TIMEOUT = 1 << 9,
	QP_ATTR_RETRY_CNT = 1 << 10,
	QP_ATTR_RNR_RETRY = 1 << 11,
	QP_ATTR_RQ_PSN = 1 << 12,
	QP_ATTR_MAX_QP_RD_ATOMIC = 1 << 13,
	QP_ATTR_ALT_PATH = 1 << 14,
	QP_ATTR_MIN_RNR_TIMER = 1 << 15,
	QP_ATTR_SQ_PSN = 1 << 16,
	QP_ATTR_MAX_DEST_RD_ATOMIC = 1 << 17,
	QP_ATTR_PATH_MIG_STATE = 1 << 18,
	QP_ATTR_CAP = 1 << 19,
	QP_ATTR_DEST_QPN = 1 << 20,
	QP_ATTR_RATE_LIMIT = 1 << 25,
};

struct qp_cap {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline_bytes;
};

struct qp_attr {
	enum qp_state state;
	enum qp_state cur_state;
	enum mtu_code path_mtu;
	enum mig_state mig_state;
	uint32_t qkey;
	uint32_t rq_psn; /* 24 bits */
	uint32_t sq_psn;
	uint32_t dest_qpn;
	uint32_t access; /* enum access_flags: the three remote ones */
	struct qp_cap cap;
	struct ah_attr ah;
	struct ah_attr alt_ah;
	uint16_t pkey_index;
	uint16_t alt_pkey_index;
	bool en_sqd_async_notify;
	bool sq_draining;
	uint8_t max_rd_atomic;	    /* initiator depth */
	uint8_t max_dest_rd_atomic; /* responder resources */
	uint8_t min_rnr_timer;	    /* code 0..31 */
	uint8_t port_num;
	uint8_t timeout;   /* 4.096 us * 2^timeout; 0: infinite */
	uint8_t retry_cnt; /* 0..7, counted */
	uint8_t rnr_retry; /* 0..6; 7: infinite */
	uint8_t alt_port_num;
	uint8_t alt_timeout;
	uint32_t rate_limit_kbps;
};

enum srq_attr_mask {
	SRQ_ATTR_MAX_WR = 1 << 0,
	SRQ_ATTR_LIMIT = 1 << 1,
};

struct srq_attr {
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t limit;
};

enum port_state {
	PORT_STATE_DOWN = 1,
	PORT_STATE_INIT = 2,
	PORT_STATE_ARMED = 3,
	PORT_STATE_ACTIVE = 4,
};

/* Asynchronous events, libibverbs' numbers. */
enum async_type {
	ASYNC_CQ_ERR = 0,
	ASYNC_QP_FATAL = 1,
	ASYNC_QP_REQ_ERR = 2,
	ASYNC_QP_ACCESS_ERR = 3,
	ASYNC_COMM_EST = 4,
	ASYNC_SQ_DRAINED = 5,
	ASYNC_PATH_MIG = 6,
	ASYNC_PATH_MIG_ERR = 7,
	ASYNC_DEVICE_FATAL = 8,
	ASYNC_PORT_ACTIVE = 9,
	ASYNC_PORT_ERR = 10,
	ASYNC_LID_CHANGE = 11,
	ASYNC_PKEY_CHANGE = 12,
	ASYNC_SM_CHANGE = 13,
	ASYNC_SRQ_ERR = 14,
	ASYNC_SRQ_LIMIT_REACHED = 15,
	ASYNC_QP_LAST_WQE_REACHED = 16,
	ASYNC_CLIENT_REREGISTER = 17,
	ASYNC_GID_CHANGE = 18,
};

#endif
