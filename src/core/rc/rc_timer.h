/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rc_timer.h - the transport timer, the RNR timer and what is left of the
 * retries [IBA 9.7.6.1.3, 9.7.5.2.8].
 */
#ifndef SOFTHCA_CORE_RC_RC_TIMER_H
#define SOFTHCA_CORE_RC_RC_TIMER_H

#include "core/rc/rc_qp.h"

void rc_timer_init(struct qp *qp);

/* Both off; counters full. */
void rc_timer_reset(struct qp *qp);

/* 4.096 us * 2^timeout, or INT64_MAX for 0. */
int64_t rc_timer_timeout_ns(const struct qp *qp);

/* A request went out: the transport timer runs from now. Packets of a QP may
 * lie far apart when it waits for its turn or a budget, and the peer owes
 * nothing until one that asks for an ACK. */
void rc_timer_sent(struct qp *qp, int64_t now_ns);

/* The peer acknowledged something new: counters full again. The transport
 * timer starts over when in_flight, else stops. */
void rc_timer_progress(struct qp *qp, bool in_flight, int64_t now_ns);

/* The timeout attribute may be another: the transport timer runs or not as it
 * says; one that runs keeps its deadline. */
void rc_timer_changed(struct qp *qp, bool in_flight, int64_t now_ns);

/* Nothing is in flight: the transport timer stops. */
void rc_timer_stop(struct qp *qp);

/* The RNR wait, at least ns; the transport timer does not run meanwhile. */
void rc_timer_rnr_start(struct qp *qp, int64_t ns, int64_t now_ns);
void rc_timer_rnr_stop(struct qp *qp);

/* Takes one of the retries (timeouts and NAKs; RNR NAKs). False: none left. An
 * RNR NAK shows that the request arrives: retry_cnt counts from there again. */
bool rc_timer_take_retry(struct qp *qp);
/* A new path has all of them. */
void rc_timer_refill(struct qp *qp);
bool rc_timer_take_rnr_retry(struct qp *qp);

#endif
