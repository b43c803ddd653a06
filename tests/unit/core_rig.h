/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * core_rig.h - two adapters on a desk, joined by a wire that the test holds:
 * fake memory, time by hand, frames that can be looked at, changed, dropped or
 * made up. For unit tests of core; failures of its own end the test.
 */
#ifndef SOFTHCA_TESTS_UNIT_CORE_RIG_H
#define SOFTHCA_TESTS_UNIT_CORE_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/hca.h"
#include "core/verbs.h"
#include "wire/pkt.h"

#define RIG_VA 0x700000000000ull /* of each host's memory */
#define RIG_MEM_BYTES (4u << 20)
#define RIG_NETDEV_MTU 65536
#define RIG_QKEY 0x11111111u

struct rig;

struct rig_host {
	struct rig *rig;
	struct hca *hca;
	struct gid gid; /* index 0: 10.0.0.1 or 10.0.0.2; index 1: fd00::... */
	uint8_t *mem;
	uint64_t fault_lo,
		fault_hi;      /* host memory that fails; lo == hi: none */
	int alloc_fails_after; /* allocations that work; -1: all */
	int allocs;	       /* alive */
	/* What mem_read and mem_write copied. */
	uint64_t read_bytes, written_bytes;
	size_t alloc_bytes; /* asked for so far; frees do not count */
};

enum rig_fate {
	RIG_DELIVER,
	RIG_DROP,
};

struct rig {
	struct rig_host h[2];
	int64_t now_ns;
	/* Sees each frame before it is delivered and may change it. NULL:
	 * everything arrives. */
	enum rig_fate (*filter)(struct rig *r, int from, struct rx_frame *f,
				uint8_t *pkt);
	void *filter_ctx;
	unsigned frames; /* sent so far */
};

struct rig_config {
	struct hca_config hca; /* zeroed fields get the rig's defaults */
};

/* cfg NULL: defaults. */
void rig_open(struct rig *r, const struct rig_config *cfg);
/* Every object must be destroyed; fails the test when memory is left. */
void rig_close(struct rig *r);
/* Destroys what is left, too. */
void rig_close_force(struct rig *r);

/* Moves frames until nobody has anything to send. Time stands still. */
void rig_pump(struct rig *r);
/* Pumps, and lets time pass from deadline to deadline, until `ns` are over. */
void rig_run(struct rig *r, int64_t ns);

/* The bytes behind a virtual address of a host. */
uint8_t *rig_bytes(struct rig_host *h, uint64_t va);

/* One PD, one CQ, one MR over all memory and a QP of the type, connected to
 * each other in RTS. */
struct rig_end {
	struct rig_host *host;
	struct pd *pd;
	struct cq *scq, *rcq;
	struct mr *mr; /* all access rights, iova = va */
	struct srq *srq;
	struct qp *qp;
	struct qp_cap cap;
};

struct rig_pair {
	struct rig *rig;
	struct rig_end e[2];
};

struct rig_pair_config {
	enum qp_type type;
	struct qp_cap cap;  /* zero fields: 16 WRs, 4 SGEs, 64 bytes inline */
	enum mtu_code mtu;  /* 0: 1024 */
	uint32_t cqe;	    /* 0: 256 */
	uint32_t srq_wr;    /* > 0: end 1 receives from an SRQ */
	uint32_t sq_psn;    /* of both sides */
	enum qp_state stop; /* 0: RTS; else both stay in that state */
	bool sq_sig_all;
};

void rig_end_open(struct rig_end *e, struct rig_host *h,
		  const struct rig_pair_config *cfg);
void rig_end_close(struct rig_end *e);
void rig_pair_open(struct rig_pair *p, struct rig *r,
		   const struct rig_pair_config *cfg);
void rig_pair_close(struct rig_pair *p);

/* The attributes that the transition to `to` requires, for a QP that talks to
 * `peer`'s; returns the mask, STATE included. */
uint32_t rig_attrs(enum qp_type type, enum qp_state to,
		   const struct rig_end *peer,
		   const struct rig_pair_config *cfg, struct qp_attr *a);
/* Walks a QP from RESET to the state. */
void rig_walk(struct rig_end *e, enum qp_state to, const struct rig_end *peer,
	      const struct rig_pair_config *cfg);
/* Modifies the state alone. */
int rig_state(struct rig_end *e, enum qp_state to);

/* An AH to a host. */
struct ah *rig_ah(struct rig_end *from, const struct rig_host *to);

/* Posts a receive of len bytes at offset off of the end's memory. */
int rig_post_recv(struct rig_end *e, uint64_t wr_id, uint32_t off,
		  uint32_t len);
/* Posts (and rings) wr with one SGE of len bytes at offset off, none when len
 * is 0; wr has the rest set. */
int rig_post_send(struct rig_end *e, struct send_wr wr, uint32_t off,
		  uint32_t len);

/* The oldest completion; fails the test when there is none. */
struct wc rig_poll(struct cq *cq);
/* True when the CQ is empty. */
bool rig_empty(struct cq *cq);
/* The next event of the host, which must exist. */
struct hca_event rig_event(struct rig_host *h);
bool rig_no_event(struct rig_host *h);

/* Gives the host a made-up packet from its peer: headers from pkt (pad is
 * worked out), payload_bytes at pkt->payload. */
void rig_inject(struct rig_host *to, const struct pkt *pkt);
/* Raw bytes instead of a packet. */
void rig_inject_raw(struct rig_host *to, const uint8_t *bytes, uint32_t len);

/* Takes one frame of the host, decodes it (pkt->payload points into *buf) and
 * calls hca_tx_done. False: none. */
struct rig_frame {
	struct pkt pkt;
	struct path path;
	uint8_t tos;
	uint8_t buf[PKT_MAX + ICRC_BYTES];
};
bool rig_tx(struct rig_host *h, uint32_t class_mask, struct rig_frame *ret);

#define rig_counter(host, name) (hca_counters((host)->hca)->name)

#endif
