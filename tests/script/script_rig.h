/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * script_rig.h - one core with one QP under test, a clock, and a queue of the
 * frames that it sent. The script is the peer.
 */
#ifndef SOFTHCA_TESTS_SCRIPT_RIG_H
#define SOFTHCA_TESTS_SCRIPT_RIG_H

#include "core/verbs.h"
#include "script_line.h"
#include "sim/simmem.h"
#include "wire/pkt.h"

#define RIG_MRS 8
#define RIG_MR_ROOM 0x10000u
#define RIG_FRAMES 512
#define RIG_MEM_BASE 0x7f0000000000ull
#define RIG_IOVA 0x40000000ull

struct rig_frame {
	int64_t at_ns;
	uint32_t len_bytes;
	uint8_t tos;
	struct gid dst;
	uint8_t bytes[PKT_MAX];
};

struct rig_mr {
	char name[32];
	struct mr *mr; /* NULL after dereg, and of a window */
	struct mw *mw; /* a window, which has only its first key here */
	uint32_t key;
	uint64_t iova;
};

struct rig {
	int64_t now_ns;
	struct simmem mem;
	struct hca *hca;
	struct pd *pd, *other_pd;
	struct cq *send_cq, *recv_cq;
	struct srq *srq;
	struct srq *other_srq; /* of another XRC domain */
	struct xrcd *xrcd, *other_xrcd;
	struct qp *qp;
	struct ah *ah;
	struct rig_mr mr[RIG_MRS];
	uint32_t num_mrs;
	uint32_t dest_qpn, peer_qkey;
	struct gid self, peer;
	struct rig_frame *frames; /* ring of RIG_FRAMES */
	uint32_t first, next;
	struct hca_event events[64];
	uint32_t first_event, next_event;
};

void rig_init(struct rig *r, struct line *l);
void rig_fini(struct rig *r); /* forced; scripts end in any state */

/* Everything that happens up to until_ns; stops early when a frame was sent
 * and `stop` is set. The clock ends at until_ns or at the frame's time. */
void rig_run(struct rig *r, int64_t until_ns, bool stop);

/* Hands len bytes (BTH to pad) to the core as if from these addresses. */
void rig_inject(struct rig *r, const uint8_t *pkt, uint32_t len,
		const struct gid *src, const struct gid *dst);

/* The oldest frame not yet taken, or NULL. */
struct rig_frame *rig_frame_next(struct rig *r);

/* For line_name: iova and key of a region. */
bool rig_addr(void *ctx, const char *name, uint64_t *ret);
bool rig_key(void *ctx, const char *name, uint64_t *ret);
/* The SRQ number that "own" and "other" stand for. */
bool rig_srqn(void *ctx, const char *name, uint64_t *ret);
struct rig_mr *rig_mr_named(struct rig *r, const char *name);

/* The script's test data: byte i of pattern `seed`. */
static inline uint8_t rig_pattern(uint32_t seed, uint32_t i)
{
	return (uint8_t)(seed * 59u + i * 7u + (i >> 8) * 3u + 1u);
}

#endif
