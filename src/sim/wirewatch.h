/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * wirewatch.h - an oracle on the cable: what every frame must be, that RC
 * requests use PSNs without holes and responses name only PSNs that were used,
 * and that a requester that got an RNR NAK stays silent for the time it states.
 */
#ifndef SOFTHCA_SIM_WIREWATCH_H
#define SOFTHCA_SIM_WIREWATCH_H

#include "sim/cable.h"
#include "sim/oracles.h"

#define WATCH_QPS 16

struct watch_qp { /* a requester, as its peer names it */
	unsigned end;
	uint32_t qpn;	   /* the requester's; 0: free */
	uint32_t peer_qpn; /* where its requests go */
	struct psn next;   /* after all PSNs that were ever used */
	bool rnr;
	struct psn rnr_psn;
	int64_t silent_until_ns;
};

/* delivered: arrives now, else: leaves now. */
typedef void wirewatch_trace_fn(bool delivered, unsigned from,
				const struct pkt *pkt, int64_t now_ns);

struct wirewatch {
	struct verdict *verdict;
	uint32_t mtu_bytes;
	bool rnr_strict; /* nothing is lost, doubled or overtaken */
	struct watch_qp qp[WATCH_QPS];
	uint64_t frames;
	wirewatch_trace_fn *trace; /* sees all frames that decode; or NULL */
};

/* Attaches to the cable's taps. rnr_strict: watch RNR waits too, which needs a
 * cable without faults (else a NAK may answer what was since acknowledged). */
void wirewatch_init(struct wirewatch *w, struct verdict *v, struct cable *c,
		    uint32_t mtu_bytes, bool rnr_strict);

/* A connection: requests of `qpn` at `end` go to peer_qpn, from PSN first on.
 */
void wirewatch_add(struct wirewatch *w, unsigned end, uint32_t qpn,
		   uint32_t peer_qpn, struct psn first);
void wirewatch_remove(struct wirewatch *w, unsigned end, uint32_t qpn);

#endif
