/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * stats.h - one JSON line a process, appended to a file at exit
 * (`softhca run --stats FILE`):
 *
 *   {"pid":1,"comm":"rping","devices":[{"name":"shca0","hca":{...},
 *    "link":{...},"rt":{...}}]}
 *
 * Devices that were closed before the end are in it; one that was opened
 * several times is one entry, its counters added up.
 */
#ifndef SOFTHCA_RT_STATS_H
#define SOFTHCA_RT_STATS_H

#include <stdint.h>

#include "base/assert.h"
#include "core/counters.h"
#include "link/udp.h"

/* What rt itself counts, one X-macro. */
#define RT_COUNTERS(X)                                                         \
	X(visits_post) /* engine visits by who made them */                    \
	X(visits_poll)                                                         \
	X(visits_nic)                                                          \
	X(visits_marked) /* somebody was inside: left a mark */                \
	X(rounds)                                                              \
	X(handed_over) /* budget spent: the rest went to the NIC thread */     \
	X(empty_polls)                                                         \
	X(yields)                                                              \
	X(nic_wakes) /* of the NIC thread, for whatever reason */              \
	X(nic_ticks) /* once a millisecond at most, while a program polls */   \
	X(nic_arms)                                                            \
	X(nic_disarms)                                                         \
	X(nic_kicks)                                                           \
	X(tx_frames)                                                           \
	X(tx_bytes) /* BTH to pad */                                           \
	X(rx_frames)                                                           \
	X(rx_bytes)                                                            \
	X(comp_events)                                                         \
	X(async_events)                                                        \
	X(fault_drop) /* frames that a fault plan hit, by what it did */       \
	X(fault_dup)                                                           \
	X(fault_reorder)                                                       \
	X(fault_delay)                                                         \
	X(fault_corrupt)                                                       \
	X(fault_ce)                                                            \
	X(fault_blackhole)                                                     \
	X(fault_overrun)  /* no room to keep a frame: not delayed, no copy */  \
	X(ring_tx_frames) /* through shared memory, docs/same-host.md */       \
	X(ring_rx_frames)                                                      \
	X(ring_tx_refs)	    /* of those, payload by reference */               \
	X(ring_refs_failed) /* the copy failed or came too late */             \
	X(ring_wakes)	    /* of peers that slept */                          \
	X(ring_blocked)	    /* full: back-pressure */                          \
	X(ring_given_up)    /* frames to a peer that does not read: lost */    \
	X(ring_tx_broken)   /* peers cut off for breaking the rules */         \
	X(ring_rx_broken)                                                      \
	X(ring_rx_spoilt)                                                      \
	X(gate_waits)	  /* met a peer's copy when memory was deregistered */ \
	X(gate_overruled) /* of those, the peer was stopped */                 \
	X(gate_expired)	  /* and given up */                                   \
	X(gate_no_place)  /* regions that peers reach by packets alone */      \
	X(umem_faults)	  /* of the process, not of the device */              \
	X(umem_kernel_copies) /* likewise */                                   \
	X(capture_lost)

struct rt_counters {
#define RT_COUNTER_FIELD(name) uint64_t name;
	RT_COUNTERS(RT_COUNTER_FIELD)
#undef RT_COUNTER_FIELD
};

struct stats_counters {
	struct hca_counters hca;
	struct udp_link_counters link;
	struct rt_counters rt;
};

/* A device that is open: fill writes its current counters (into zeroed
 * memory). Called by stats_write() and stats_remove(), not under any lock of
 * the device; values may be slightly torn while the engine runs. */
struct stats_source {
	const char *name; /* "shca0"; at most 63 characters, copied */
	void (*fill)(struct stats_source *s, struct stats_counters *ret);
	struct stats_source *next; /* stats' own */
};

/* Thread-safe; allocate nothing. remove adds the last values to what was
 * closed. At most 64 different names are kept apart, further ones are added
 * to "other". */
void stats_add(struct stats_source *s);
void stats_remove(struct stats_source *s);

/* In the child of a fork: forgets all sources and sums, so that the child
 * reports its own. */
void stats_forget(void);

/* Appends the line to path in one write(). When no device was ever opened it
 * does nothing, so programs that merely load the library leave no line. Once a
 * process: later calls do nothing until stats_forget(). 0, -errno. */
MUST_USE int stats_write(const char *path);

/* The line itself, malloc'ed, newline included: what stats_write() appends.
 * NULL: out of memory. */
char *stats_line(void);

#endif
