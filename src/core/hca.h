/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * hca.h - the core's outside: the host channel adapter as a deterministic
 * machine. rt drives it in real time, sim in virtual time; both see this file
 * and core/types.h, core/counters.h and the object headers' verbs only.
 *
 * Pull, not push. The driver hands in frames, time and doorbells; it asks for
 * the next frame, the next deadline and the next event.
 *
 * Two kinds of calls:
 *   [E] engine: one thread at a time per hca (the driver's engine rule).
 *   [P] post/poll: beside a running engine; callers of one object serialise
 *       among themselves (rt's per-QP and per-CQ locks).
 */
#ifndef SOFTHCA_CORE_HCA_H
#define SOFTHCA_CORE_HCA_H

#include <stddef.h>

#include "base/assert.h"
#include "core/cc/dcqcn.h"
#include "core/counters.h"
#include "core/types.h"

struct path;

/* ---- what the driver gives at creation ---- */

struct direct_mem { /* a piece of user memory here; its key was checked */
	uint64_t va;
	uint32_t len_bytes;
};
#define DIRECT_MEM_MAX 32
#define DIRECT_PIECE_BYTES (256u << 10)

struct direct_req {
	const struct path *path; /* of our QP */
	uint32_t qpn, dest_qpn;
	uint16_t pkey;
	bool read; /* else WRITE */
	uint32_t rkey;
	uint64_t remote_addr; /* of the message, as the WR says it */
	uint32_t len_bytes;   /* of the message; its bounds are checked */
	uint32_t off, n;      /* the piece; both 0 for a message of no bytes */
	/* Where the piece's bytes are here; or inline_bytes. */
	const uint8_t *inline_bytes;
	uint32_t num_local;
	struct direct_mem local[DIRECT_MEM_MAX];
};

enum direct_verdict {
	DIRECT_DONE,
	DIRECT_NOT_NOW, /* the message goes as packets */
	DIRECT_NEVER,	/* so do all later ones of the QP */
};

struct hca_ops {
	/* Zeroed memory / its release; called from [E] control verbs only
	 * (create, modify, resize, destroy), never from a data path. NULL: out
	 * of memory. */
	void *(*alloc)(void *ctx, size_t size, size_t align);
	void (*free)(void *ctx, void *p);

	/* User memory. 0, or -EFAULT when the range is not (or no longer)
	 * accessible; then any part of it may have been copied. mem_write
	 * stores in ascending order and its last <= 64 bytes after a release
	 * barrier. mem_read is called from [P] too (inline data). Atomics are
	 * CPU atomics on 8 aligned bytes, host order. */
	int (*mem_read)(void *ctx, void *dst, uint64_t va, size_t len);
	int (*mem_write)(void *ctx, uint64_t va, const void *src, size_t len);
	int (*mem_cmp_swap)(void *ctx, uint64_t va, uint64_t compare,
			    uint64_t swap, uint64_t *ret_orig);
	int (*mem_fetch_add)(void *ctx, uint64_t va, uint64_t add,
			     uint64_t *ret_orig);

	/* One-sided copies past the network, where the driver reaches the
	 * peer's memory; both may be NULL, both are [E].
	 * direct: executes a piece of a WRITE or READ of a QP that
	 * qp_set_direct() was called for, when the peer grants it. A piece that
	 * was not done may have been copied in part. The message's last bytes
	 * come last.
	 * grant: what qp_query_grant() says of this QP may have changed. */
	enum direct_verdict (*direct)(void *ctx, const struct direct_req *r);
	void (*grant)(void *ctx, const struct qp *qp);

	/* For links that carry more than packets (docs/same-host.md); all may
	 * be NULL, all are called inside the engine.
	 * path_out: chooses the path's way out (p->out, p->frame_bytes, 0 and 0
	 * before) for a QP that goes to RTR and for each UD send.
	 * mem_fetch: like mem_write, from offset off of a received frame's
	 * payload that is elsewhere. -EAGAIN: that cannot be had, or not be
	 * told from -EFAULT; the packets count as lost.
	 * refs_void: this QP's WQEs are about to be given back: references into
	 * their memory that are still under way must not be used any more. */
	void (*path_out)(void *ctx, struct path *p, uint32_t dest_qpn);
	int (*mem_fetch)(void *ctx, uint64_t va, const void *away, uint32_t off,
			 size_t len);
	void (*refs_void)(void *ctx, uint32_t qpn);
};

struct rx_frame;
struct cm_conn;

/* What differs between link layers: one constant table each, chosen at
 * creation (RoCEv2 now; RoCEv1 and InfiniBand later). */
struct link_layer {
	const char *name;
	bool needs_grh; /* an AH without a global route is refused */
	/* Network bytes around a transport packet, ICRC included, for this
	 * destination: decides the largest path MTU of a netdev. */
	uint32_t (*overhead_bytes)(const struct gid *dgid);
	/* What a receiver's buffer is charged for one frame of n bytes. */
	uint32_t (*charge_bytes)(uint32_t frame_bytes);
	/* Writes the 40 bytes that a UD receive starts with. */
	void (*grh_encode)(const struct rx_frame *f, uint8_t *p);
	/* What the completion of a UD receive has as its SL. */
	uint8_t (*ud_wc_sl)(const struct rx_frame *f);
};
extern const struct link_layer link_layer_rocev2;

struct hca_limits { /* advertised and enforced, both */
	uint32_t max_qp, max_cq, max_mr, max_mw, max_pd, max_srq, max_ah;
	uint32_t max_qp_wr, max_cqe, max_srq_wr;
	uint32_t max_sge, max_sge_rd, max_inline_bytes;
	uint32_t max_rd_atomic; /* each way, at most 255 */
	uint64_t max_mr_bytes;
	uint32_t max_msg_bytes;	 /* 2^31 */
	uint32_t gid_table_len;	 /* at most HCA_GIDS_MAX */
	uint32_t pkey_table_len; /* at most HCA_PKEYS_MAX */
};
#define HCA_GIDS_MAX 256
#define HCA_PKEYS_MAX 16
extern const struct hca_limits hca_limits_default;

struct cc_ops; /* core/cc/cc.h */
extern const struct cc_ops cc_dcqcn;

struct hca_config {
	struct hca_limits limits;
	const struct link_layer *link_layer;
	uint64_t seed;	    /* of PSNs, QPNs, keys */
	uint64_t node_guid; /* never zero */
	uint32_t qpn_base;  /* upper bits of all QPNs: the process slot */
	uint32_t qpn_bits;  /* low bits that this hca allots, 8..24 */
	/* In-flight bound per destination and for READ responses to us, in
	 * charged bytes (link_layer.charge_bytes); 0: unbounded. */
	uint32_t dest_budget_bytes;
	uint32_t read_budget_bytes;
	uint32_t burst_pkts; /* frames one QP may send before the next gets its
				turn */
	uint32_t direct_bytes; /* that one hca_tx() may copy; 0: 1 MiB */
	/* Congestion control of RC and UC; NULL: none, marks are counted and
	 * CNPs ignored. CNPs leave in class cnp_sl with this DSCP. */
	const struct cc_ops *cc;
	struct dcqcn_params cc_params; /* dcqcn_params_check must accept them */
	uint8_t cnp_sl;		       /* 0..15 */
	uint8_t cnp_dscp;	       /* 0..63 */
};

/* ---- frames ---- */

struct rx_frame {
	const uint8_t *pkt; /* BTH to pad; the ICRC was checked and cut off */
	uint32_t len_bytes;
	struct gid src, dst;
	uint8_t tos; /* ECN in the low two bits */
	uint8_t ttl;
	uint32_t flow_label;
	uint16_t sport;
	/* RC only: the payload is not in pkt (which ends with the headers, BTH
	 * pad 0) but payload_bytes at `away`, the driver's word for mem_fetch;
	 * pkts: consecutive packets of one message in it, the first has the
	 * PSN. NULL, 0 and 0: an ordinary packet. */
	const void *away;
	uint32_t payload_bytes;
	uint32_t pkts;
};

/* It came with CE, "congestion experienced" [RFC3168 5]. */
static inline bool rx_marked(const struct rx_frame *f)
{
	return (f->tos & 3) == 3;
}

/* Where a frame goes; in a QP and in an AH. The driver reads it. */
struct path {
	struct gid sgid, dgid;
	uint32_t netdev; /* of the GID entry: interface index */
	uint16_t vlan;	 /* 0xffff: none */
	uint8_t sgid_index;
	uint8_t sl;
	uint8_t tclass; /* upper six bits go to the IP header; ECN set per frame
			 */
	uint8_t hop_limit;
	uint32_t flow_label;
	uint16_t sport; /* 0xc000..0xffff, from flow label or the QPN pair */
	/* The driver's: which way out (0: the network), and how much payload
	 * one frame may stand for (0: a packet's). */
	uint16_t out;
	uint32_t frame_bytes;
};
#define HCA_OUTS 256

/* A piece of user memory; its key was checked. */
struct tx_ref {
	uint64_t va, len_bytes;
};
#define TX_REFS_MAX 16

struct tx_frame {
	uint8_t *pkt; /* the driver's buffer; core writes BTH to pad */
	uint32_t len_bytes;
	const struct path *path; /* valid until tx_done */
	uint8_t tos; /* path's traffic class with ECT(0) or not-ECT */
	uint32_t dest_qpn, qpn; /* the peer's, the sender's */
	uint8_t sl;		/* its class */
	bool cnp;		/* a congestion notification packet */
	void *owner;		/* core's; for hca_tx_done */
	/* Where path.frame_bytes allows: pkt ends with the headers (BTH pad 0)
	 * and stands for pkts packets of one message, whose payload is this
	 * memory. It stays as it is until the peer has acknowledged it, or
	 * refs_void was called. pkts is 1 and nrefs 0 for a packet. */
	uint32_t pkts, nrefs, payload_bytes;
	struct tx_ref ref[TX_REFS_MAX];
};

/* ---- life ---- */

/* [E] NULL when alloc fails or the config breaks a limit. */
struct hca *hca_new(const struct hca_config *cfg, const struct hca_ops *ops,
		    void *ops_ctx, int64_t now_ns);
/* [E] Every object must have been destroyed (else ASSERT), unless `force`:
 * then whatever is left is freed too. */
void hca_free(struct hca *hca, bool force);

/* ---- the engine's calls, all [E] ---- */

/* Takes WQEs of all QPs whose doorbell was rung since the last call. */
void hca_doorbells(struct hca *hca, int64_t now_ns);

/* Takes one received frame. Bytes are not referenced after return. */
void hca_rx(struct hca *hca, const struct rx_frame *f, int64_t now_ns);

/* Builds the next frame of the classes in the mask (bit sl) into
 * frame->pkt, which has room for PKT_MAX + ICRC_BYTES. False: nothing to
 * send now. A true answer obliges the driver to hand the frame to the link
 * (now or later, whole or in parts; a link that refuses makes the driver keep
 * it, the core does not change back) and then to call hca_tx_done. */
bool hca_tx(struct hca *hca, uint32_t class_mask, struct tx_frame *frame,
	    int64_t now_ns);
void hca_tx_done(struct hca *hca, const struct tx_frame *frame);

/* Instead of hca_tx_done: the link could not read a frame's references. The
 * same packets come again one by one. */
void hca_tx_refused(struct hca *hca, const struct tx_frame *frame);

/* Way `out` takes no frames (its ring is full), or does again: QPs whose next
 * frame would go there wait, and stand in nobody's way. */
void hca_out_block(struct hca *hca, unsigned out);
void hca_out_unblock(struct hca *hca, unsigned out);
/* Way `out` is no more: paths that have it go through the network. */
void hca_out_gone(struct hca *hca, unsigned out);

/* A hint that hca_tx would now say true: O(1). */
bool hca_tx_pending(const struct hca *hca);
/* hca_tx said false because it had copied enough (struct hca_ops.direct): call
 * it again soon. */
bool hca_tx_paused(const struct hca *hca);
/* The check that a direct_req must pass at the peer's hca, for drivers that
 * have both in one address space. *ret_va: of remote_addr, for the peer's
 * memory ops; not for a message of no bytes. */
bool hca_direct_check(struct hca *hca, const struct direct_req *r,
		      uint64_t *ret_va);

/* When hca_advance wants to be called next; INT64_MAX: never. */
int64_t hca_deadline(const struct hca *hca);
void hca_advance(struct hca *hca, int64_t now_ns);

enum hca_event_kind {
	HCA_EVENT_COMP,	 /* completion event for .cq's channel */
	HCA_EVENT_ASYNC, /* .type with .qp, .cq, .srq or .port_num */
	HCA_EVENT_CM,	 /* .cm_kind (enum cm_event) of .conn: core/cm/cm.h */
};

struct hca_event {
	enum hca_event_kind kind;
	enum async_type type;
	struct qp *qp;
	struct cq *cq;
	struct srq *srq;
	uint8_t port_num;
	struct cm_conn *conn;
	uint8_t cm_kind;
};

/* Takes the oldest pending event. Destroying an object takes its pending
 * events with it. */
bool hca_event_next(struct hca *hca, struct hca_event *ret);

/* ---- the port, [E] ---- */

struct gid_entry {
	bool valid;
	struct gid gid;
	uint32_t netdev;    /* interface index, opaque to the core */
	uint16_t vlan;	    /* 0xffff: none */
	uint32_t mtu_bytes; /* the netdev's */
};

/* Changes one entry. Once hca_set_port was called, an address that comes, goes
 * or changes raises ASYNC_GID_CHANGE.
 * -EINVAL: index outside the table. */
MUST_USE int hca_set_gid(struct hca *hca, uint32_t index,
			 const struct gid_entry *e);
const struct gid_entry *hca_gid(const struct hca *hca, uint32_t index);
/* Netdev MTU decides active_mtu; raises PORT_ACTIVE / PORT_ERR on a change of
 * state (none on the first call). */
void hca_set_port(struct hca *hca, enum port_state state, uint32_t netdev_mtu);
enum port_state hca_port_state(const struct hca *hca);
enum mtu_code hca_active_mtu(const struct hca *hca);
uint16_t hca_pkey(const struct hca *hca, uint32_t index); /* 0: no entry */
MUST_USE int hca_set_pkey(struct hca *hca, uint32_t index, uint16_t pkey);

const struct hca_counters *hca_counters(const struct hca *hca);
const struct hca_limits *hca_limits(const struct hca *hca);

#endif
