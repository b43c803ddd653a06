/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * verbs.h - the objects' verbs as the drivers call them. Which thread may call
 * what: [E] and [P] as in core/hca.h.
 *
 * Errors are -errno and leave everything as it was. `user` is the driver's
 * cookie, returned by x_user(). Destroy verbs answer -EBUSY while something
 * still refers to the object; after a destroy or dereg returned 0 the core
 * touches neither the object nor its memory again.
 */
#ifndef SOFTHCA_CORE_VERBS_H
#define SOFTHCA_CORE_VERBS_H

#include "base/assert.h"
#include "core/hca.h"

/* ---- protection domain [IBA 11.2.2] ---- */
MUST_USE int pd_create(struct hca *hca, struct pd **ret_pd); /* [E] */
MUST_USE int pd_destroy(struct pd *pd);			     /* [E] */
uint32_t pd_num(const struct pd *pd); /* tells it from the hca's others */

/* ---- memory region [IBA 10.6, 11.2.8] ---- */
struct mr_attr {
	uint64_t va;	    /* where the bytes are, for the memory ops */
	uint64_t iova;	    /* what keys' users call the first byte */
	uint64_t len_bytes; /* 0: a key that grants access to nothing */
	uint32_t access;    /* enum access_flags */
};
/* -EINVAL: unknown access bits, remote write or atomic without local write,
 * va or iova wraps; -ENOMEM: table full or len above the limit. lkey == rkey.
 * Does not touch the memory. ON_DEMAND from address 0 for UINT64_MAX bytes is
 * every address. [E] */
MUST_USE int mr_reg(struct pd *pd, const struct mr_attr *attr,
		    struct mr **ret_mr);
/* The null region: local reads give zeros, local writes go nowhere, any address
 * and length; no remote access. [E] */
MUST_USE int mr_reg_null(struct pd *pd, struct mr **ret_mr);
/* -EBUSY: windows are bound to it. [E] */
MUST_USE int mr_dereg(struct mr *mr);
enum mr_rereg_flags {
	MR_REREG_TRANSLATION = 1 << 0,
	MR_REREG_PD = 1 << 1,
	MR_REREG_ACCESS = 1 << 2,
};
/* TRANSLATION gives a new key and the old one stops working; a change of
 * access or PD alone keeps the key, as programs expect that tell it to their
 * peers once. -EBUSY: windows are bound to it. Failing changes nothing. [E] */
MUST_USE int mr_rereg(struct mr *mr, uint32_t flags, struct pd *pd,
		      const struct mr_attr *attr);
uint32_t mr_key(const struct mr *mr);
/* As it is now; *ret_pd: pd_num() of its domain. [E] */
void mr_query(const struct mr *mr, struct mr_attr *ret, uint32_t *ret_pd);

/* ---- memory window [IBA 10.6.7, 11.2.10] ---- */
/* Bound to nothing. -EINVAL: type; -ENOMEM. [E] */
MUST_USE int mw_create(struct pd *pd, enum mw_type type, struct mw **ret_mw);
MUST_USE int mw_destroy(struct mw *mw); /* bound or not. [E] */
uint32_t mw_key(const struct mw *mw);	/* [E] */
uint32_t mw_index(const struct mw *mw); /* key >> 8, for ever. [P] */

/* ---- completion queue [IBA 10.8] ---- */
/* cqe: entries wanted, 1..max_cqe; *cq_cqe() says what was given. [E] */
MUST_USE int cq_create(struct hca *hca, uint32_t cqe, void *user,
		       struct cq **ret_cq);
MUST_USE int cq_destroy(struct cq *cq); /* [E]; -EBUSY: QPs or SRQs use it */
/* [E] and no poller inside (rt holds the CQ's lock). -EINVAL: fewer than are
 * present or above the limit. Keeps order and content. */
MUST_USE int cq_resize(struct cq *cq, uint32_t cqe);
/* From now on each completion keeps the hca's time at which it was written.
 * -ENOMEM. [E], before any completion */
MUST_USE int cq_keep_times(struct cq *cq);
/* A completion that does not fit is lost and counted, and that is all: whoever
 * asks for this counts its requests. [E] */
void cq_ignore_overrun(struct cq *cq);
/* An armed CQ raises its event at the count-th completion, or period_ns after
 * the first, whichever comes first; at once when count < 2 or period_ns is 0.
 * [E] */
void cq_moderate(struct cq *cq, uint32_t count, int64_t period_ns);
uint32_t cq_cqe(const struct cq *cq);
void *cq_user(const struct cq *cq);
/* [P] Takes up to n completions, oldest first; returns how many. -EIO... never:
 * an overrun CQ still gives what it holds. */
int cq_poll(struct cq *cq, int n, struct wc *ret_wc);
/* [P] Of a CQ that keeps times: when the last completion that cq_poll gave was
 * written, of the hca's clock. */
int64_t cq_polled_ns(const struct cq *cq);
/* [P] The next CQE (or the next solicited or failed one) raises one
 * HCA_EVENT_COMP; a CQE added after this returned is never missed. */
void cq_arm(struct cq *cq, bool solicited_only);

/* ---- shared receive queue [IBA 10.2.9] ---- */
MUST_USE int srq_create(struct pd *pd, const struct srq_attr *attr, void *user,
			struct srq **ret_srq); /* [E] */
MUST_USE int srq_destroy(struct srq *srq);     /* [E] */
/* Resizing takes the SRQ's post lock too. Writes what was given back to
 * *attr. [E] */
MUST_USE int srq_modify(struct srq *srq, struct srq_attr *attr, uint32_t mask);
void srq_query(const struct srq *srq, struct srq_attr *ret_attr); /* [E] */
void *srq_user(const struct srq *srq);
uint32_t srq_num(const struct srq *srq); /* 24 bits */
/* [P] -ENOMEM: full; -EINVAL: too many SGEs. */
MUST_USE int srq_post_recv(struct srq *srq, const struct recv_wr *wr);

/* ---- XRC domain [IBA annex A14] ---- */
MUST_USE int xrcd_create(struct hca *hca, struct xrcd **ret_xrcd); /* [E] */
/* -EBUSY: SRQs or QPs are in it. [E] */
MUST_USE int xrcd_destroy(struct xrcd *xrcd);
/* The domain's target QP of this number, or NULL. [E] */
struct qp *xrcd_qp(const struct xrcd *xrcd, uint32_t qpn);
/* An SRQ that target QPs of the domain receive into; its completions go to cq,
 * its PD is whose memory requests to it may name. Destroying it takes the
 * receive of a message that is under way with it. [E] */
MUST_USE int srq_create_xrc(struct pd *pd, struct xrcd *xrcd, struct cq *cq,
			    const struct srq_attr *attr, void *user,
			    struct srq **ret_srq);

/* ---- address handle [IBA 11.2.2.2] ---- */
/* -EINVAL: no global route on Ethernet, no such GID index, port, or an
 * address family that is not the source's. [E] */
MUST_USE int ah_create(struct pd *pd, const struct ah_attr *attr,
		       struct ah **ret_ah);
MUST_USE int ah_destroy(struct ah *ah); /* [E] */
const struct path *ah_path(const struct ah *ah);

/* ---- queue pair [IBA 10.2.4, 10.3, 11.2.4] ---- */
struct qp_init {
	enum qp_type type;
	struct cq *send_cq, *recv_cq;
	struct srq *srq;   /* NULL: a receive queue of its own */
	struct xrcd *xrcd; /* XRC target: needs nothing else but this */
	struct qp_cap cap; /* asked */
	bool sq_sig_all;
	void *user;
};
/* An XRC initiator has a PD and a send CQ, a target an XRC domain alone (pd is
 * NULL). *ret_cap: what was given, each at least what was asked. -EINVAL: above
 * a limit. -ENOMEM. [E] */
MUST_USE int qp_create(struct pd *pd, const struct qp_init *init,
		       struct qp_cap *ret_cap, struct qp **ret_qp);
/* Takes the QP's completions out of its CQs, as NICs' libraries do. -EBUSY:
 * attached to a group, or frames of this QP wait for hca_tx_done. No thread may
 * be posting to it, no poller be inside its CQs. [E] */
MUST_USE int qp_destroy(struct qp *qp);
/* By the transition and attribute tables [IBA 11.2.4.2, table 91]. -EINVAL:
 * transition, a required attribute missing, one that is not allowed, or a
 * value out of range; -EBUSY: RESET or a new address vector while frames wait
 * for hca_tx_done; -ENOMEM. Nothing changed then. PSNs are cut to 24 bits, as
 * Linux does. RESET also takes the QP's completions out of its CQs, as NICs do:
 * a QP that starts again must not meet those of its past. [E], and for RESET
 * no poller inside its CQs. */
MUST_USE int qp_modify(struct qp *qp, const struct qp_attr *attr, uint32_t mask,
		       int64_t now_ns);
void qp_query(const struct qp *qp, struct qp_attr *ret_attr,
	      struct qp_init *ret_init); /* [E] */
uint32_t qp_num(const struct qp *qp);
enum qp_state qp_state(const struct qp *qp); /* [P] */
void *qp_user(const struct qp *qp);
void qp_set_user(struct qp *qp, void *user); /* [E] */
const struct path *qp_path(const struct qp *qp);
/* [E] RC and UC: the driver's direct copies reach this QP's peer, or do not any
 * more. RESET forgets it. */
void qp_set_direct(struct qp *qp, bool on);
/* [E] What congestion control allows its data now, bits per second; 0: not
 * limited. */
uint64_t qp_rate_bps(const struct qp *qp);
/* What the peer may do to memory of this QP's domain. */
struct qp_grant {
	uint32_t access; /* ACCESS_REMOTE_WRITE, _READ; 0: nothing now */
	uint32_t qpn, pd, peer_qpn;
	uint16_t pkey;
	const struct path *path;
};
void qp_query_grant(const struct qp *qp, struct qp_grant *ret); /* [E] */
/* UD alone. Datagrams to the group are delivered to every QP that is attached,
 * the sender's own too [IBA 11.3]. -EINVAL: type, no multicast GID, or (detach)
 * not attached; -EEXIST: attached already; -ENOMEM. The driver sees to it that
 * the interface is a member. An attached QP cannot be destroyed. [E] */
MUST_USE int qp_attach_mcast(struct qp *qp, const struct gid *mgid);
MUST_USE int qp_detach_mcast(struct qp *qp, const struct gid *mgid);
/* One of its groups; false: none. [E] */
bool qp_mcast_group(const struct qp *qp, struct gid *ret_mgid);
/* [P] One WR each; the driver walks lists. Copies everything out of *wr
 * (inline data too). -ENOMEM: queue full; -EINVAL: state (RESET, INIT, RTR),
 * opcode or flags that this QP type has not, SGE count, inline length, message
 * length (UD: more than the port's MTU carries), address handle of another PD;
 * -EFAULT: unreadable inline data; -EOPNOTSUPP: an opcode that is not built. In
 * SQE and ERR the WR is accepted and flushed. */
MUST_USE int qp_post_send(struct qp *qp, const struct send_wr *wr);
/* [P] What qp_post_send would say now, but for unreadable inline data. */
MUST_USE int qp_check_send(struct qp *qp, const struct send_wr *wr);
/* [P] How many more would fit now. */
uint32_t qp_send_room(struct qp *qp);
/* [P] -EINVAL in RESET, with an SRQ, or too many SGEs; -ENOMEM: full. */
MUST_USE int qp_post_recv(struct qp *qp, const struct recv_wr *wr);
/* [P] Marks the QP for the next hca_doorbells; lock-free. Call after a batch
 * of posts. True: it was not marked before. */
bool qp_ring(struct qp *qp);

#endif
