/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * cq.h - completion queues: a ring of struct wc that the engine fills beside
 * a poller that drains it.
 *
 * Arming and pushing meet as in Dekker's algorithm: the pusher stores tail,
 * then looks at `arm`; the caller of cq_arm stores `arm`, then (polling) looks
 * at tail. All four are sequentially consistent, so at least one of the two
 * sees the other: no completion is slept through (bug log B050).
 */
#ifndef SOFTHCA_CORE_OBJ_CQ_H
#define SOFTHCA_CORE_OBJ_CQ_H

#include <stdatomic.h>

#include "base/twheel.h"
#include "core/obj/event.h"
#include "core/verbs.h"

enum cq_armed {
	CQ_ARMED_NOT = 0,
	CQ_ARMED_SOLICITED = 1,
	CQ_ARMED_ANY = 2,
};

struct cq {
	struct hca *hca;
	void *user;
	uint32_t id;
	uint32_t refs; /* QPs, each queue counted */

	struct wc *ring;
	int64_t *times; /* beside ring; NULL: not kept */
	uint32_t mask;
	uint32_t capacity;    /* exact, <= mask + 1 */
	_Atomic uint32_t arm; /* enum cq_armed */
	bool overrun;	      /* lost a CQE: takes no more */
	bool ignore_overrun;
	struct dlist overrun_node;
	struct event_src events;

	/* Moderation: completions that an armed CQ has not yet told of. */
	uint32_t mod_count;
	int64_t mod_period_ns; /* 0: none */
	uint32_t held;
	struct timer mod_timer;

	_Alignas(64) _Atomic uint32_t tail; /* engine writes */
	_Alignas(64) _Atomic uint32_t head; /* poller writes */
	int64_t polled_ns;		    /* poller writes */
};

/* Adds a completion. solicited: it counts for cq_arm(.., true). A full CQ
 * loses it, raises CQ_ERR, and its QPs fail at the next cq_settle(). [E] */
void cq_push(struct cq *cq, const struct wc *wc, bool solicited);

/* Removes the completions of one QP, keeping the order of the others. No poller
 * inside. [E] */
void cq_forget_qp(struct cq *cq, uint32_t qpn);

/* Moves the QPs of overrun CQs to the error state. Every call into the engine
 * ends with it, so that no transport meets it half-way. [E] */
void cq_settle(struct hca *hca);

#endif
