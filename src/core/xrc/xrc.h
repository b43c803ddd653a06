/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * xrc.h - the extended reliable connection [IBA annex A14]: RC cut in two. The
 * initiator is RC's requester alone; each of its requests names an SRQ of the
 * target's process. The target is RC's responder alone; it has an XRC domain in
 * place of queues, and per request takes PD, receives and CQ from the SRQ.
 *
 * Both are made of RC's machines (core/rc): what is here is what differs.
 */
#ifndef SOFTHCA_CORE_XRC_XRC_H
#define SOFTHCA_CORE_XRC_XRC_H

#include "core/verbs.h"

/* The SRQ goes away: no target QP refers to it afterwards. A message on its way
 * into it ends with the next packet, which names an unknown SRQ. [E] */
void xrc_srq_gone(struct srq *srq);

#endif
