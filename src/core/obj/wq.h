/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * wq.h - send and receive rings and what a WQE's bytes are: gather for what
 * goes out, scatter for what comes in.
 *
 * Ring memory comes from the driver. Producer: the posting thread ([P],
 * serialised by the driver per queue). Consumer: the engine. Capacity is
 * exactly what was given to the caller (struct qp_cap), slots are a power of
 * two. Every field of a slot is written on post (bug log B026).
 */
#ifndef SOFTHCA_CORE_OBJ_WQ_H
#define SOFTHCA_CORE_OBJ_WQ_H

#include "base/psn.h"
#include "base/spsc.h"
#include "core/hca.h"

/* A send WQE: fixed head, then SGEs or inline bytes. */
struct wqe {
	uint64_t wr_id;
	uint8_t opcode; /* enum wr_opcode */
	uint8_t flags;	/* enum wr_flags; SIGNALED already forced by sq_sig_all
			 */
	uint16_t num_sge;
	uint32_t len_bytes; /* of the message */
	union {
		uint32_t imm_be_or_rkey;
		uint32_t bind_mw_index; /* BIND_MW */
	};
	uint32_t rkey;
	uint64_t remote_addr;
	union { /* as in struct send_wr */
		struct {
			uint64_t compare_add, swap;
		};
		struct {
			uint64_t bind_len_bytes;
			uint32_t bind_mr_key;
			uint32_t bind_access;
		};
	};

	/* The engine's; set when the requester first meets the WQE. */
	struct psn first_psn, last_psn; /* PSNs that the message occupies */
	uint32_t ssn;	     /* 24 bits: send sequence number [IBA 9.7.7.2] */
	uint32_t pkt_charge; /* budget charge of each of its packets */
	uint8_t status;	 /* enum wc_status: a local error waits for its turn */
	uint8_t started; /* PSNs are assigned */
	uint16_t pad;

	uint32_t remote_srqn; /* XRC */
	/* UD only: copied from the AH at post. */
	uint32_t remote_qpn, remote_qkey;
	struct path path;

	_Alignas(16) uint8_t tail[]; /* struct sge[num_sge] or inline data */
};

struct rwqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t len_bytes; /* sum of the SGEs, saturated */
	struct sge sge[];
};

struct wring { /* slots of equal stride between an spsc's indices */
	struct spsc idx;
	uint8_t *slots;
	uint32_t stride_bytes;
	uint32_t mask;	   /* slots - 1 */
	uint32_t capacity; /* entries that fit, <= mask + 1; 0: no ring */
	uint32_t max_sge;
	uint32_t max_inline_bytes;
};

static inline void *wring_slot(const struct wring *r, uint32_t index)
{
	return r->slots + (size_t)(index & r->mask) * r->stride_bytes;
}

/* Control: -ENOMEM. */
MUST_USE int wring_init_send(struct wring *r, struct hca *hca, uint32_t wr,
			     uint32_t sge, uint32_t inline_bytes);
MUST_USE int wring_init_recv(struct wring *r, struct hca *hca, uint32_t wr,
			     uint32_t sge);
void wring_fini(struct wring *r, struct hca *hca);
void wring_reset(struct wring *r); /* forgets all entries */

/* [P] -ENOMEM full, -EINVAL SGEs. */
MUST_USE int wring_post_recv(struct wring *r, const struct recv_wr *wr);

/* Carried out here, when all before it are complete; no packet, no PSN. */
static inline bool wqe_is_local(const struct wqe *w)
{
	return w->opcode == WR_BIND_MW || w->opcode == WR_LOCAL_INV;
}

static inline struct sge *wqe_sge(struct wqe *w)
{
	return (struct sge *)(void *)w->tail;
}

/* Copies bytes off .. off + len of the message into dst, checking lkeys
 * against pd. WC_SUCCESS, or WC_LOC_PROT_ERR (key, PD, bounds, unmapped).
 * [E] */
enum wc_status wqe_gather(struct hca *hca, const struct pd *pd, struct wqe *w,
			  uint32_t off, uint32_t len, uint8_t *dst);

/* Where these bytes are instead: up to max pieces of memory; returns how many,
 * 0 when it takes more, the data are inline, or a check failed (which
 * wqe_gather() will say). [E] */
uint32_t wqe_refs(struct hca *hca, const struct pd *pd, struct wqe *w,
		  uint32_t off, uint32_t len, struct tx_ref *ret, uint32_t max);

/* Stores len bytes at offset off of the WQE's SGEs (READ data, atomics);
 * needs local write. [E] */
enum wc_status wqe_scatter(struct hca *hca, const struct pd *pd, struct wqe *w,
			   uint32_t off, uint32_t len, const uint8_t *src);

/* The same for a receive: WC_SUCCESS, WC_LOC_LEN_ERR (does not fit),
 * WC_LOC_PROT_ERR. [E] */
enum wc_status rwqe_scatter(struct hca *hca, const struct pd *pd,
			    const struct rwqe *w, uint32_t off, uint32_t len,
			    const uint8_t *src);

/* The same from a payload that is elsewhere, len bytes of it. *ret_lost: it
 * could not be had; then the result says nothing. [E] */
enum wc_status rwqe_fetch(struct hca *hca, const struct pd *pd,
			  const struct rwqe *w, uint32_t off, uint32_t len,
			  const void *away, bool *ret_lost);

#endif
