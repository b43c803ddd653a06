/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * mutant.h - deliberate faults, to test the tests.
 *
 * MUTANT(name) is the constant 0 and costs nothing, unless the file is
 * compiled with -DSOFTHCA_MUTANTS: then it is true while the program chose
 * that fault. Only tests/sim/mutants.c does; each fault must be caught by the
 * simulator's oracles.
 */
#ifndef SOFTHCA_BASE_MUTANT_H
#define SOFTHCA_BASE_MUTANT_H

/* X(name, profile of tests/sim that must catch it) */
#define MUTANTS(X)                                                             \
	/* responder */                                                        \
	X(gap_accepted, "rc/loss5")                                            \
	X(psn_does_not_wrap, "rc/loss5")                                       \
	X(atomic_executed_again, "rc/loss5")                                   \
	X(write_executed_again, "rc/loss5")                                    \
	X(write_not_stored, "rc/clean")                                        \
	X(write_a_byte_more, "rc/clean")                                       \
	X(rnr_accepted, "rc/clean")                                            \
	X(imm_forgotten, "rc/clean")                                           \
	X(byte_len_forgotten, "rc/clean")                                      \
	X(unaligned_atomic, "rc/errors")                                       \
	X(recv_length_unchecked, "rc/errors")                                  \
	X(acks_too_early, "rc/loss5")                                          \
	/* keys and bounds */                                                  \
	X(key_byte_ignored, "rc/errors")                                       \
	X(bounds_ignored, "rc/errors")                                         \
	X(bounds_one_more, "rc/errors")                                        \
	X(access_ignored, "rc/errors")                                         \
	X(pd_ignored, "rc/errors")                                             \
	/* requester and completer */                                          \
	X(ack_passes_read, "rc/reorder")                                       \
	X(read_restarts_at_zero, "rc/loss5")                                   \
	X(fence_ignored, "rc/clean")                                           \
	X(rnr_wait_skipped, "rc/clean")                                        \
	X(retries_not_counted, "rc/dead")                                      \
	X(no_timeout, "rc/loss20")                                             \
	X(sge_offset_lost, "rc/loss5")                                         \
	/* queues and completions */                                           \
	X(flush_lost, "rc/errors")                                             \
	X(unsignaled_error_lost, "rc/errors")                                  \
	X(completions_swapped, "rc/clean")                                     \
	X(completion_doubled, "rc/clean")                                      \
	X(wrong_cq, "rc/errors")                                               \
	X(event_lost, "rc/clean")                                              \
	X(ring_leaked, "rc/clean")                                             \
	/* UC */                                                               \
	X(uc_gap_accepted, "uc/loss20")                                        \
	X(uc_offset_kept, "uc/loss20")                                         \
	/* copies without packets */                                           \
	X(uc_copy_overtakes, "uc/direct")

#ifdef SOFTHCA_MUTANTS
enum mutant {
	MUTANT_NONE,
#define MUTANT_ENUM(name, profile) MUTANT_##name,
	MUTANTS(MUTANT_ENUM)
#undef MUTANT_ENUM
		MUTANT_COUNT
};
extern int mutant_active; /* enum mutant */
#define MUTANT(name) (mutant_active == MUTANT_##name)
#else
#define MUTANT(name) 0
#endif

#endif
