/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rc_rig.h - a bench for RC tests: two hcas with one RC QP each, fake memory,
 * a wire in virtual time whose every frame a test can see, drop, double or
 * delay, and a way to play the peer by hand. No I/O, no sleep.
 */
#ifndef SOFTHCA_TESTS_UNIT_RC_RIG_H
#define SOFTHCA_TESTS_UNIT_RC_RIG_H

#include "base/dlist.h"
#include "core/verbs.h"
#include "wire/pkt.h"

#define RIG_MEM_BYTES (UINT32_C(4) << 20)
#define RIG_VA UINT64_C(0x10000000)	  /* memory ops' address of byte 0 */
#define RIG_IOVA UINT64_C(0x700000000000) /* keys' address of byte 0 */
#define RIG_HOP_NS 1000			  /* one way */
#define RIG_LOG_MAX 4096

struct rig_conf {	   /* zero: the default in the comment */
	enum mtu_code mtu; /* 1024 */
	uint32_t sq_psn[2], rq_psn_skew;
	uint8_t timeout;			     /* 14; 255 means 0 */
	uint8_t retry_cnt, rnr_retry, min_rnr_timer; /* as they are */
	uint8_t max_rd_atomic, max_dest_rd_atomic;   /* 4, 4; 255 means 0 */
	uint32_t access;			     /* all; 1 << 31: none */
	uint32_t dest_budget, read_budget;
	uint32_t max_wr;     /* 64 */
	uint32_t burst_pkts; /* 8 */
	int64_t tx_gap_ns;   /* a host sends one frame in this time; 0: no limit
			      */
	const struct dcqcn_params *dcqcn; /* NULL: no congestion control */
	bool use_srq;			  /* in a PD of its own */
	bool rtr_only;			  /* host 1 stays in RTR */
	bool no_peer; /* host 1 gets no frames: the test plays the peer */
	bool direct;  /* WRITEs and READs are copied where that is allowed */
	uint32_t direct_bytes; /* that one hca_tx() may copy; 0: the core's */
	uint32_t frame_bytes;  /* of a frame with references; 0: none */
};

struct rig_host {
	struct hca *hca;
	uint8_t *mem;
	struct pd *pd;
	struct mr *mr;
	struct cq *scq, *rcq;
	struct srq *srq;
	struct pd *srq_pd; /* NULL without an SRQ, like its region */
	struct mr *srq_mr;
	struct qp *qp;
	int64_t next_tx_ns;
	/* Memory operations on va in hole_lo .. hole_hi - 1 fail. */
	uint64_t hole_lo, hole_hi;
	uint32_t async_seen; /* bits of enum async_type */
};

struct rig_log {
	int from;
	int64_t at_ns;
	struct pkt pkt; /* payload is NULL */
	uint8_t tos;
};

struct rig;

/* What happens to a frame: copies (0: lost), a CE mark and extra delay. */
struct rig_fate {
	int copies;
	bool ce;
	int64_t delay_ns;
};
typedef struct rig_fate rig_fate_fn(struct rig *r, int from,
				    const struct pkt *p, void *arg);

struct rig_ctx { /* of one hca's ops */
	struct rig *r;
	int h;
};

struct rig {
	struct rig_conf conf;
	struct rig_ctx ctx[2];
	struct rig_host h[2];
	int64_t now_ns;
	struct dlist wire; /* struct rig_frame, by time */
	rig_fate_fn *fate;
	void *fate_arg;
	bool refuse_direct; /* copies are not done now */
	uint32_t copies;    /* pieces that were copied */
	uint32_t lose_refs; /* so many fetches fail */
	uint32_t refs_out;  /* frames with references sent */
	uint32_t voided;    /* refs_void calls */
	bool refuse_refs;   /* the link cannot read references */
	struct rig_log log[RIG_LOG_MAX];
	uint32_t logged; /* frames seen; the log holds the first RIG_LOG_MAX */
	long live;	 /* allocations */
};

struct rig *rig_new(const struct rig_conf *conf);
void rig_free(struct rig *r); /* fails when something leaked */

/* One more QP on each host, connected to each other as the conf says; the
 * caller destroys them before rig_free. CQs are those of the hosts. */
void rig_pair(struct rig *r, struct qp *ret[2]);

/* Posts on host h: local bytes at loff, remote at roff of the other's memory.
 * Returns qp_post_send's answer. */
int rig_post(struct rig *r, int h, enum wr_opcode op, uint32_t loff,
	     uint32_t roff, uint32_t len, uint32_t flags, uint64_t wr_id);
int rig_post_wr(struct rig *r, int h, const struct send_wr *wr);
int rig_recv(struct rig *r, int h, uint32_t off, uint32_t len, uint64_t wr_id);
struct sge rig_sge(struct rig *r, int h, uint32_t off, uint32_t len);

/* Runs until now is `until_ns`, or until nothing is left to happen: no frame
 * on the wire, no timer. */
void rig_run(struct rig *r, int64_t until_ns);
void rig_settle(struct rig *r);

/* The next completion; false: none. */
bool rig_wc(struct rig *r, int h, bool send, struct wc *ret);
/* The next completion must be this one. */
void rig_expect(struct rig *r, int h, bool send, uint64_t wr_id,
		enum wc_status status);
void rig_expect_none(struct rig *r, int h);
bool rig_async(struct rig *r, int h, enum async_type t); /* seen so far? */

/* A packet as if from h's peer; fills opcode's transport, QPN, P_Key, pad. */
void rig_inject(struct rig *r, int h, struct pkt *p, const void *payload,
		uint32_t len);
/* The same, and nothing is sent in answer yet. */
void rig_inject_held(struct rig *r, int h, struct pkt *p, const void *payload,
		     uint32_t len);
/* An ACK or NAK to host h. */
void rig_inject_aeth(struct rig *r, int h, uint32_t psn, uint8_t syndrome,
		     uint32_t msn);

/* Logged frames of host `from` with this opcode; the i-th of all of them. */
uint32_t rig_count(const struct rig *r, int from, enum op op);
const struct rig_log *rig_nth(const struct rig *r, int from, uint32_t i);
const struct rig_log *rig_nth_op(const struct rig *r, int from, enum op op,
				 uint32_t i);
void rig_forget(struct rig *r); /* empties the log */

/* Byte i of a pattern for a seed; fills and compares host memory. */
void rig_fill(struct rig *r, int h, uint32_t off, uint32_t len, uint32_t seed);
bool rig_same(struct rig *r, int h, uint32_t off, uint32_t len, uint32_t seed);

#define rig_counter(r, host, name) (hca_counters((r)->h[host].hca)->name)

#endif
