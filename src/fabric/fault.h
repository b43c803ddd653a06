/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fault.h - what befalls packets between an adapter and its network: a plan of
 * rules, written by the user in one line (docs/faults.md), judged packet by
 * packet, and drawn from a seed.
 *
 * A rule selects packets (direction, opcode, QPN, the nth, a time span) and
 * has one or more actions, each with a rate. Every action of every rule has a
 * random stream of its own for each direction, so what one does is the same
 * whatever else the plan holds and however the two directions interleave:
 * the k-th packet that a rule selects in a direction always meets the same
 * fate under the same seed.
 *
 * The plan only decides. Its driver drops, copies and delays.
 */
#ifndef SOFTHCA_FABRIC_FAULT_H
#define SOFTHCA_FABRIC_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/prng.h"

#define FAULT_RULES 16
#define FAULT_FLIPS 3		      /* bits of one packet, at most */
#define FAULT_TIME_MAX_NS 60000000000 /* of one delay */

enum fault_dir { FAULT_TX, FAULT_RX, FAULT_DIRS };

/* Names as users write them and as counters are called. */
#define FAULT_ACTIONS_X(X)                                                     \
	X(drop, DROP)                                                          \
	X(dup, DUP)                                                            \
	X(reorder, REORDER)                                                    \
	X(delay, DELAY)                                                        \
	X(corrupt, CORRUPT)                                                    \
	X(ce, CE)                                                              \
	X(blackhole, BLACKHOLE)

enum fault_action {
#define FAULT_ACTION_ENUM(name, NAME) FAULT_##NAME,
	FAULT_ACTIONS_X(FAULT_ACTION_ENUM)
#undef FAULT_ACTION_ENUM
		FAULT_ACTIONS
};

const char *fault_action_name(enum fault_action a);

struct fault_effect {
	bool on;
	uint32_t ppm;		/* of the packets that the rule selects */
	int64_t min_ns, max_ns; /* DUP: of the copy; REORDER, DELAY */
	uint32_t flips;		/* CORRUPT: 1..FAULT_FLIPS; 0: any of these */
	struct prng rng[FAULT_DIRS];
};

struct fault_rule {
	/* What it selects. */
	bool dir[FAULT_DIRS];
	uint32_t opcodes[8]; /* a bit for each opcode */
	uint8_t aeth_kinds;  /* of ACK packets: a bit for each enum aeth_kind */
	bool has_qpn;
	uint32_t qpn;	  /* destination, as in the BTH */
	uint64_t nth;	  /* from the nth matching packet on, 1 = first, */
	uint64_t every;	  /* each every-th of them, 1 = all, */
	uint64_t count;	  /* count times in all */
	int64_t after_ns; /* from this time after the start on, */
	int64_t for_ns;	  /* for so long; INT64_MAX: for ever */
	struct fault_effect effect[FAULT_ACTIONS];
	/* Each direction counts for itself. */
	uint64_t matched[FAULT_DIRS], selected[FAULT_DIRS];
};

struct fault_plan {
	struct fault_rule rule[FAULT_RULES];
	uint32_t num_rules;
	bool has_seed;
	uint64_t seed;
	int64_t start_ns;
};

/* Where a text is wrong: characters at .. at + len - 1 (len may be 0: something
 * is missing there), and what would be right. */
struct fault_error {
	uint32_t at, len;
	const char *why; /* a constant */
};

/* Reads the text into *ret (some 15 KiB; nothing in it needs to be freed).
 * -EINVAL with *ret_err filled; *ret is then undefined. */
MUST_USE int fault_parse(struct fault_plan *ret, const char *text,
			 struct fault_error *ret_err);

/* Once after fault_parse: `seed` is for a text that has none. Times in rules
 * count from now_ns. */
void fault_start(struct fault_plan *p, uint64_t seed, int64_t now_ns);

/* Does some rule have this action? */
bool fault_does(const struct fault_plan *p, enum fault_action a);

/* How late a packet or a copy can come by rules without a count, in ns. */
int64_t fault_late_ns(const struct fault_plan *p);

struct fault_pkt {
	const uint8_t *bytes; /* BTH and what follows */
	uint32_t avail_bytes; /* that may be read: at least BTH_BYTES */
	uint32_t wire_bytes;  /* BTH to ICRC: where bits may flip */
	uint8_t tos;	      /* ECN in the low two bits */
};

struct fault_verdict {
	/* Actions that hit, a bit for each enum fault_action: for counters. A
	 * packet that is dropped meets nothing else. */
	uint32_t did;
	bool drop;
	bool mark_ce;  /* only ever of a packet that is ECN-capable */
	bool copy;     /* one more, intact, copy_ns after the original's time */
	uint8_t flips; /* bits to flip: never one that no ICRC covers */
	uint32_t bit[FAULT_FLIPS]; /* bit b: byte b / 8, value 1 << b % 8 */
	int64_t delay_ns;	   /* 0: at once */
	int64_t copy_ns;
};

/* What befalls this packet. O(rules). */
struct fault_verdict fault_judge(struct fault_plan *p, enum fault_dir dir,
				 const struct fault_pkt *pkt, int64_t now_ns);

#endif
