/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * verbs_self.h - a plain verbs program that talks to itself: one device, one
 * region, QPs connected to each other in this process. Failures end the cmocka
 * test that runs.
 */
#ifndef SOFTHCA_TESTS_ABI_VERBS_SELF_H
#define SOFTHCA_TESTS_ABI_VERBS_SELF_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <infiniband/verbs.h>

#define SELF_PORT 1
#define SELF_BYTES 65536
#define SELF_WAIT_MS 10000 /* for what must come */
#define SELF_GRACE_MS 100  /* for what must not */

struct self {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr; /* of mem, all rights */
	uint8_t *mem;	   /* SELF_BYTES */
	union ibv_gid gid;
	uint8_t gid_index;
	enum ibv_mtu mtu;
	bool no_grh; /* address by LID: the link layer is InfiniBand */
	uint16_t lid;
};

/* The first device, or SOFTHCA_TEST_DEVICE. For cmocka's group set-up. */
int self_open(struct self *s);
int self_close(struct self *s);

struct ibv_ah_attr self_ah(const struct self *s);
/* RESET to INIT, then to RTR and RTS with that peer; PSNs are 0. */
void self_init(const struct self *s, struct ibv_qp *qp);
void self_rtr(const struct self *s, struct ibv_qp *qp, uint32_t dest_qpn);
void self_rts(struct ibv_qp *qp);
/* All three. */
void self_connect(const struct self *s, struct ibv_qp *qp, uint32_t dest_qpn);
/* A QP with the same CQ for both, connected to itself; UD: in RTS. */
struct ibv_qp *self_qp(const struct self *s, enum ibv_qp_type type,
		       struct ibv_cq *cq, struct ibv_srq *srq);

struct ibv_sge self_sge(const struct self *s, size_t off, uint32_t len);
void self_recv(const struct self *s, struct ibv_qp *qp, uint64_t id, size_t off,
	       uint32_t len);
void self_srq_recv(const struct self *s, struct ibv_srq *srq, uint64_t id,
		   size_t off, uint32_t len);
/* Signaled SEND of len bytes at off. */
void self_send(const struct self *s, struct ibv_qp *qp, uint64_t id, size_t off,
	       uint32_t len);

int64_t self_now_ms(void);
struct ibv_wc self_poll(struct ibv_cq *cq);
/* Nothing comes for SELF_GRACE_MS. */
void self_no_cqe(struct ibv_cq *cq);
bool self_readable(int fd, int ms);
/* The next asynchronous event, which must be of this type; acknowledged. */
struct ibv_async_event self_event(const struct self *s,
				  enum ibv_event_type type);
void self_no_event(const struct self *s);

#define assert_null_errno(what, err)                                           \
	do {                                                                   \
		errno = 0;                                                     \
		assert_null(what);                                             \
		assert_int_equal(errno, err);                                  \
	} while (0)

#endif
