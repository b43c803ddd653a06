/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cm_msg.h - the messages of communication management [IBA 12.6, 12.11], and
 * the address header that rdma_cm puts in front of private data [IBA A11].
 *
 * One struct for all: which members a message has, and where its bits are, is
 * a table in cm_msg.c. Members that a message has not are zero after decoding
 * and ignored when encoding.
 */
#ifndef SOFTHCA_WIRE_CM_MSG_H
#define SOFTHCA_WIRE_CM_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/mad.h"
#include "wire/net.h"

enum cm_attr {
	CM_REQ = 0x10,
	CM_MRA = 0x11,
	CM_REJ = 0x12,
	CM_REP = 0x13,
	CM_RTU = 0x14,
	CM_DREQ = 0x15,
	CM_DREP = 0x16,
	CM_SIDR_REQ = 0x17,
	CM_SIDR_REP = 0x18,
	CM_LAP = 0x19,
	CM_APR = 0x1a,
};
#define CM_ATTR_FIRST CM_REQ
#define CM_ATTR_LAST CM_APR

/* REJ's reasons [IBA 12.6.7.2] */
enum cm_reject {
	CM_REJ_NO_QP = 1,
	CM_REJ_NO_EEC = 2,
	CM_REJ_NO_RESOURCES = 3,
	CM_REJ_TIMEOUT = 4,
	CM_REJ_UNSUPPORTED = 5,
	CM_REJ_INVALID_COMM_ID = 6,
	CM_REJ_INVALID_COMM_INSTANCE = 7,
	CM_REJ_INVALID_SERVICE_ID = 8,
	CM_REJ_INVALID_TRANSPORT_TYPE = 9,
	CM_REJ_STALE_CONN = 10,
	CM_REJ_RDC_NOT_EXIST = 11,
	CM_REJ_INVALID_GID = 12,
	CM_REJ_INVALID_LID = 13,
	CM_REJ_INVALID_SL = 14,
	CM_REJ_INVALID_TRAFFIC_CLASS = 15,
	CM_REJ_INVALID_HOP_LIMIT = 16,
	CM_REJ_INVALID_PACKET_RATE = 17,
	CM_REJ_INVALID_ALT_GID = 18,
	CM_REJ_INVALID_ALT_LID = 19,
	CM_REJ_INVALID_MTU = 26,
	CM_REJ_INSUFFICIENT_RESP_RESOURCES = 27,
	CM_REJ_CONSUMER = 28,
	CM_REJ_RNR_RETRY = 29,
	CM_REJ_DUPLICATE_COMM_ID = 30,
	CM_REJ_INVALID_CLASS_VERSION = 31,
	CM_REJ_INVALID_FLOW_LABEL = 32,
	CM_REJ_VENDOR_OPTION = 35,
};

/* What was rejected or is being worked on: MRA, REJ. */
enum cm_which {
	CM_WHICH_REQ = 0,
	CM_WHICH_REP = 1,
	CM_WHICH_OTHER = 2, /* REJ: no message; MRA: LAP */
};

/* SIDR REP's status [IBA 12.11.2.2] */
enum cm_sidr_status {
	CM_SIDR_OK = 0,
	CM_SIDR_NO_SERVICE = 1,
	CM_SIDR_REJECT = 2,
	CM_SIDR_NO_QP = 3,
	CM_SIDR_REDIRECT = 4,
	CM_SIDR_BAD_VERSION = 5,
};

struct cm_msg_path {
	uint16_t local_lid, remote_lid;
	struct gid local_gid, remote_gid;
	uint32_t flow_label; /* 20 bits */
	uint8_t rate;	     /* 6 bits */
	uint8_t tclass, hop_limit;
	uint8_t sl;	      /* 4 bits */
	uint8_t subnet_local; /* bool */
	uint8_t ack_timeout;  /* 4.096 us * 2^n, 5 bits */
};

#define CM_INFO_BYTES 72
#define CM_PRIVATE_MAX 224

struct cm_msg {
	enum cm_attr attr;
	uint64_t tid;
	uint32_t attr_mod;  /* of the MAD header: ECE's attributes */
	uint8_t vendor[3];  /* ECE's vendor id: REQ, REP, SIDR REP */
	uint32_t local_id;  /* the sender's; SIDR: the request's */
	uint32_t remote_id; /* the receiver's */
	uint64_t service_id;
	uint64_t ca_guid;
	uint32_t qkey;
	uint32_t qpn; /* the sender's; DREQ, LAP: the receiver's */
	uint32_t eecn, remote_eecn;
	uint32_t psn;
	uint8_t responder_resources, initiator_depth;
	uint8_t remote_timeout, local_timeout; /* 5-bit codes */
	uint8_t transport;		/* 0 RC, 1 UC, 2 RD, 3 extended */
	uint8_t ext_transport;		/* 1: XRC */
	uint8_t flow_control, srq, rdc; /* bools */
	uint8_t retry_count, rnr_retry; /* 3 bits */
	uint8_t max_cm_retries;		/* 4 bits */
	uint8_t mtu;			/* enum mtu_code */
	uint16_t pkey;
	struct cm_msg_path primary, alternate; /* LAP: alternate */
	uint8_t ack_delay, failover;	       /* REP */
	uint8_t which;			       /* enum cm_which */
	uint8_t service_timeout;	       /* MRA */
	uint16_t reason;		       /* REJ: enum cm_reject */
	uint8_t status;			       /* APR, SIDR REP */
	uint8_t info_len;
	uint8_t info[CM_INFO_BYTES];
	uint8_t priv[CM_PRIVATE_MAX]; /* cm_private_bytes() of them */
};

/* Bytes of private data that a message carries, 0 for none of ours. */
size_t cm_private_bytes(enum cm_attr attr);
const char *cm_attr_name(enum cm_attr attr);

/* Reads a MAD of MAD_BYTES. False: not of the CM class, version 2, method
 * Send, or no message that is known. */
bool cm_msg_decode(struct cm_msg *ret, const uint8_t *mad);
/* Writes MAD_BYTES. Values above their field's width are a broken invariant. */
void cm_msg_encode(const struct cm_msg *m, uint8_t *mad);

/* ---- rdma_cm's header in the private data of REQ and SIDR REQ ---- */

#define RDMACM_HDR_BYTES 36

struct rdmacm_hdr {
	uint8_t version; /* 0 */
	uint8_t ip;	 /* 4 or 6 */
	uint16_t sport;
	/* IPv4 as ::ffff:a.b.c.d like everywhere; on the wire the first 12
	 * bytes are zero. */
	struct gid src, dst;
};

/* False: another version of the header or of IP. */
bool rdmacm_hdr_decode(struct rdmacm_hdr *ret, const uint8_t *p);
void rdmacm_hdr_encode(const struct rdmacm_hdr *h, uint8_t *p);

#endif
