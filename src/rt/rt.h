/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rt.h - what the shims see of the real-time driver: devices, and the core's
 * verbs with locks, the engine and real memory around them.
 *
 * Thread-safe unless said otherwise. Errors are -errno. Control verbs may
 * sleep; post and poll never do.
 */
#ifndef SOFTHCA_RT_RT_H
#define SOFTHCA_RT_RT_H

#include <stdint.h>

#include "core/types.h"
#include "core/verbs.h"

/* ---- devices ---- */

#define RT_NAME_MAX 64

struct rt_device {
	char name[RT_NAME_MAX]; /* "shca0" */
	char ifname[16];
	uint32_t ifindex;
	uint64_t node_guid; /* host order; never zero, stable over runs */
};

/* The usable interfaces of the calling thread's network namespace, those with
 * a default route first. *ret_list: malloc'ed, the caller frees it; *ret_n may
 * be 0. 0, -errno. */
MUST_USE int rt_devices(struct rt_device **ret_list, int *ret_n);

/* One instance per process and device; contexts share it (counted). */
struct rtdev;
MUST_USE int rtdev_open(const struct rt_device *dev, struct rtdev **ret_dev);
/* The last close frees it; every object must be gone. */
void rtdev_close(struct rtdev *d);
/* True in the child of a fork: the instance is dead, every verb fails with
 * -EIO (close and destroy only release the child's memory). */
bool rtdev_dead(const struct rtdev *d);
/* True when descriptors of ours were closed under us: QPs are in ERR, new
 * objects are refused (-EIO). Numbers that the program knows (an event queue's)
 * may be another file's: close none of them. */
bool rtdev_lost(const struct rtdev *d);
const struct hca_limits *rtdev_limits(const struct rtdev *d);

struct rt_port {
	enum port_state state;
	enum mtu_code active_mtu, max_mtu;
	uint32_t netdev_mtu;
	uint32_t speed_mbps; /* the netdev's, 0: unknown */
	uint32_t gid_table_len, pkey_table_len;
	uint64_t bad_pkey_counter, bad_qkey_counter;
};
void rt_query_port(struct rtdev *d, struct rt_port *ret);
/* -EINVAL: index out of range; -ENODATA: empty entry. */
MUST_USE int rt_query_gid(struct rtdev *d, uint32_t index,
			  struct gid_entry *ret);
MUST_USE int rt_query_pkey(struct rtdev *d, uint32_t index, uint16_t *ret);

/* ---- event queues: completion channels and async fds ---- */

/* A queue with a real fd: readable while an event waits, honours the
 * program's O_NONBLOCK, can be poll()ed and dup()ed. */
struct rt_evq;

struct rt_event {
	enum hca_event_kind kind;
	enum async_type type; /* HCA_EVENT_ASYNC */
	/* What it is about: the user cookie of the CQ, QP or SRQ; for port
	 * and device events port_num and NULL. */
	void *user;
	uint8_t port_num;
};

MUST_USE int rt_evq_new(struct rtdev *d, bool async, struct rt_evq **ret_q);
void rt_evq_free(struct rt_evq *q);
int rt_evq_fd(const struct rt_evq *q);
/* Blocks as a read() of the fd would and as its flags say (a cancellation
 * point).
 * -EAGAIN: O_NONBLOCK and nothing there; -EINTR after a signal handler without
 * SA_RESTART. -EIO: device dead, or lost and all events given out. */
MUST_USE int rt_evq_get(struct rt_evq *q, struct rt_event *ret);

/* ---- objects ---- */

struct rt_qp;
struct rt_cq;
struct rt_srq;
struct rt_xrcd;

MUST_USE int rt_pd_alloc(struct rtdev *d, struct pd **ret);
MUST_USE int rt_pd_dealloc(struct rtdev *d, struct pd *pd);
/* Also verifies that the range is mapped with the rights that access needs
 * (-EFAULT), unless ON_DEMAND. */
MUST_USE int rt_mr_reg(struct rtdev *d, struct pd *pd,
		       const struct mr_attr *attr, struct mr **ret);
MUST_USE int rt_mr_dereg(struct rtdev *d, struct mr *mr);
MUST_USE int rt_mr_rereg(struct rtdev *d, struct mr *mr, uint32_t flags,
			 struct pd *pd, const struct mr_attr *attr);
MUST_USE int rt_mr_reg_null(struct rtdev *d, struct pd *pd, struct mr **ret);
MUST_USE int rt_mw_alloc(struct rtdev *d, struct pd *pd, enum mw_type type,
			 struct mw **ret);
MUST_USE int rt_mw_dealloc(struct rtdev *d, struct mw *mw);
MUST_USE int rt_ah_create(struct rtdev *d, struct pd *pd,
			  const struct ah_attr *attr, struct ah **ret);
MUST_USE int rt_ah_destroy(struct rtdev *d, struct ah *ah);

/* Device memory: zeroed at first, shared by all contexts of the device.
 * -EINVAL: no bytes or more than a page's alignment; -ENOMEM. Works in a fork's
 * child, which gets memory of its own. */
struct dmem_block;
MUST_USE int rt_dm_alloc(struct rtdev *d, size_t len_bytes, uint32_t align_log,
			 struct dmem_block **ret);
void rt_dm_free(struct rtdev *d, struct dmem_block *b);
size_t rt_dm_max_bytes(void); /* of one device, all blocks together */
/* Where it is, for rt_mr_reg(). */
uint64_t rt_dm_va(const struct dmem_block *b);
/* -EINVAL: outside, or offset or length no multiple of 4. */
MUST_USE int rt_dm_write(struct rtdev *d, struct dmem_block *b, uint64_t off,
			 const void *src, size_t len);
MUST_USE int rt_dm_read(struct rtdev *d, const struct dmem_block *b,
			uint64_t off, void *dst, size_t len);

/* comp: the completion channel's queue or NULL; async: where CQ_ERR goes. */
MUST_USE int rt_cq_create(struct rtdev *d, uint32_t cqe, struct rt_evq *comp,
			  struct rt_evq *async, void *user, struct rt_cq **ret);
/* As cq_keep_times() and so on of the core. */
MUST_USE int rt_cq_keep_times(struct rt_cq *cq);
void rt_cq_ignore_overrun(struct rt_cq *cq);
MUST_USE int rt_cq_moderate(struct rt_cq *cq, uint32_t count,
			    int64_t period_ns);
/* CLOCK_MONOTONIC of the last completion that rt_cq_poll() gave the caller, who
 * is alone in polling. */
int64_t rt_cq_polled_ns(const struct rt_cq *cq);
/* Takes its pending events out of the queues. *ret_comp, *ret_async: events
 * of this CQ that rt_evq_get() gave out so far (the shim waits for acks). */
MUST_USE int rt_cq_destroy(struct rt_cq *cq, uint32_t *ret_comp,
			   uint32_t *ret_async);
MUST_USE int rt_cq_resize(struct rt_cq *cq, uint32_t cqe);
uint32_t rt_cq_cqe(const struct rt_cq *cq);
/* Fast path: returns completions written, >= 0. Drives the engine when the CQ
 * is empty. */
int rt_cq_poll(struct rt_cq *cq, int n, struct wc *ret_wc);
MUST_USE int rt_cq_arm(struct rt_cq *cq, bool solicited_only);

/* Of a domain of XRC when xrcd is not NULL; then cq gets its receives. */
MUST_USE int rt_srq_create(struct rtdev *d, struct pd *pd, struct rt_xrcd *xrcd,
			   struct rt_cq *cq, const struct srq_attr *attr,
			   struct rt_evq *async, void *user,
			   struct rt_srq **ret);
MUST_USE int rt_srq_destroy(struct rt_srq *s, uint32_t *ret_async);
MUST_USE int rt_srq_modify(struct rt_srq *s, struct srq_attr *attr,
			   uint32_t mask);
MUST_USE int rt_srq_query(struct rt_srq *s, struct srq_attr *ret);
uint32_t rt_srq_num(const struct rt_srq *s);

/* XRC domains. key: the file by which this process shares it, NULL: private. */
struct rt_xrcd_key {
	uint64_t dev, ino;
};
enum rt_xrcd_flags {
	RT_XRCD_CREATE = 1 << 0, /* a file that has none yet: else -EAGAIN */
	RT_XRCD_EXCL = 1 << 1,	 /* one that has: -EINVAL */
};
MUST_USE int rt_xrcd_open(struct rtdev *d, const struct rt_xrcd_key *key,
			  uint32_t flags, struct rt_xrcd **ret);
/* -EBUSY: the last hold, and SRQs or QPs are in it. */
MUST_USE int rt_xrcd_close(struct rt_xrcd *xrcd);
/* Another hold of a target QP; -EINVAL: the domain has no such QP. */
MUST_USE int rt_qp_open(struct rt_xrcd *xrcd, uint32_t qpn,
			struct rt_evq *async, void *user, struct rt_qp **ret);

struct rt_qp_init {
	enum qp_type type;
	struct rt_cq *send_cq, *recv_cq;
	struct rt_srq *srq;
	struct rt_xrcd *xrcd; /* XRC target: this and no PD */
	struct qp_cap cap;
	bool sq_sig_all;
	struct rt_evq *async;
	void *user;
};
MUST_USE int rt_qp_create(struct rtdev *d, struct pd *pd,
			  const struct rt_qp_init *init, struct qp_cap *ret_cap,
			  struct rt_qp **ret);
/* Takes the QP's completions out of its CQs. */
MUST_USE int rt_qp_destroy(struct rt_qp *qp, uint32_t *ret_async);
/* On the way to RTR binds the source address's port (-EADDRINUSE and the like
 * come from there, with a line on stderr that says why). */
MUST_USE int rt_qp_modify(struct rt_qp *qp, const struct qp_attr *attr,
			  uint32_t mask);
/* Without effect on ret_init's rt objects: cap, type, sq_sig_all only. */
MUST_USE int rt_qp_query(struct rt_qp *qp, struct qp_attr *ret_attr,
			 struct qp_cap *ret_cap);
/* Multicast [IBA 11.3]: as qp_attach_mcast(), and the interface joins the
 * group's IP address. Attaching twice is once. */
MUST_USE int rt_qp_attach_mcast(struct rt_qp *qp, const struct gid *mgid);
MUST_USE int rt_qp_detach_mcast(struct rt_qp *qp, const struct gid *mgid);
void rt_qp_detach_all(struct rt_qp *qp);
uint32_t rt_qp_num(const struct rt_qp *qp);
enum qp_state rt_qp_state(const struct rt_qp *qp);

/* Posting a list: begin (takes the queue's lock), one call a WR until one
 * fails, end (unlocks, rings the doorbell, may drive the engine). */
void rt_send_begin(struct rt_qp *qp);
MUST_USE int rt_send_post(struct rt_qp *qp, const struct send_wr *wr);
/* Between begin and end: what rt_send_post would say, and how many more would
 * fit. */
MUST_USE int rt_send_check(struct rt_qp *qp, const struct send_wr *wr);
uint32_t rt_send_room(struct rt_qp *qp);
void rt_send_end(struct rt_qp *qp);
void rt_recv_begin(struct rt_qp *qp);
MUST_USE int rt_recv_post(struct rt_qp *qp, const struct recv_wr *wr);
void rt_recv_end(struct rt_qp *qp);
void rt_srq_begin(struct rt_srq *s);
MUST_USE int rt_srq_post(struct rt_srq *s, const struct recv_wr *wr);
void rt_srq_end(struct rt_srq *s);

/* ---- words for the user ---- */

/* One line "softhca: ..." on stderr; at --verbose only, or always. Never
 * called from inside the engine. */
void rt_say(bool verbose_only, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
