/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * counters.h - everything that the core counts, one X-macro. Each dropped
 * packet adds to exactly one rx_drop_* counter. The names are the JSON keys of
 * `softhca run --stats`.
 */
#ifndef SOFTHCA_CORE_COUNTERS_H
#define SOFTHCA_CORE_COUNTERS_H

#include <stdint.h>

#define HCA_COUNTERS(X)                                                        \
	/* traffic */                                                          \
	X(tx_pkts)                                                             \
	X(tx_payload_bytes)                                                    \
	X(rx_pkts)                                                             \
	X(rx_payload_bytes) /* of packets accepted in sequence */              \
	/* requester */                                                        \
	X(req_send_msgs) /* messages completed with success, by kind */        \
	X(req_write_msgs)                                                      \
	X(req_read_msgs)                                                       \
	X(req_atomic_msgs)                                                     \
	X(mw_binds)                                                            \
	X(mw_invalidates)  /* local, and by a SEND that came in */             \
	X(req_msg_bytes)   /* payload of those, READ data included */          \
	X(req_retransmits) /* packets sent again */                            \
	X(req_timeouts)                                                        \
	X(req_stalls)	    /* timeouts excused: this host stood still */      \
	X(req_seq_naks)	    /* NAK sequence error received */                  \
	X(req_implied_naks) /* a response past one that is missing */          \
	X(req_rnr_naks)                                                        \
	X(req_remote_errors)  /* fatal NAKs received */                        \
	X(req_stale_acks)     /* acknowledging what is not outstanding */      \
	X(req_blocked_budget) /* times a QP waited for the destination's bound \
			       */                                              \
	X(req_blocked_credit)                                                  \
	X(req_budget_cuts) /* times a CNP or mark halved such a bound */       \
	X(local_errors)	   /* WQEs failed by a local check */                  \
	X(direct_writes)   /* messages copied without packets; among those     \
			      above */                                         \
	X(direct_reads)                                                        \
	X(direct_bytes)                                                        \
	X(direct_refused) /* tried, and sent as packets */                     \
	/* responder */                                                        \
	X(rsp_send_msgs)                                                       \
	X(rsp_write_msgs)                                                      \
	X(rsp_read_msgs)                                                       \
	X(rsp_atomic_msgs)                                                     \
	X(rsp_msg_bytes) /* payload taken in or, for READ, given out */        \
	X(rsp_acks)                                                            \
	X(rsp_rnr_naks)                                                        \
	X(rsp_seq_naks)                                                        \
	X(rsp_refs_lost) /* of those, for a payload that could not be had */   \
	X(rsp_inv_req_naks)                                                    \
	X(rsp_access_naks)                                                     \
	X(rsp_op_naks)                                                         \
	X(rsp_duplicates)                                                      \
	X(rsp_atomic_replays)                                                  \
	/* drops */                                                            \
	X(rx_drop_malformed) /* any pkt_verdict but OK */                      \
	X(rx_drop_no_qp)                                                       \
	X(rx_drop_qp_type) /* the opcode is not of the QP's transport */       \
	X(rx_drop_qp_state)                                                    \
	X(rx_drop_src) /* source or destination address is not the QP's */     \
	X(rx_drop_pkey)                                                        \
	X(rx_drop_qkey)                                                        \
	X(rx_drop_out_of_seq) /* after the one NAK of a gap */                 \
	X(rx_drop_no_wqe)     /* UC, UD: no receive posted */                  \
	X(rx_drop_len)	  /* UC, UD: does not fit, or wrong for its place */   \
	X(rx_drop_access) /* UC: key, bounds, permission */                    \
	X(rx_drop_duplicate) /* repeated request that cannot be served again   \
			      */                                               \
	X(rx_drop_response)  /* response that answers nothing */               \
	X(rx_drop_rnr_wait)  /* came while an RNR NAK is outstanding */        \
	X(rx_drop_opcode)    /* known, but not built */                        \
	X(rx_drop_mad)	     /* no class, message or length that is known */   \
	/* congestion: notification point, reaction point */                   \
	X(np_ecn_marked) /* packets of RC, UC or UD with CE, or after which    \
			    our buffer was found to have overflowed */         \
	X(np_cnp_sent)                                                         \
	X(rp_cnp_handled)                                                      \
	X(rp_cnp_ignored) /* no congestion control here */                     \
	X(rp_rate_cuts)	  /* CNPs that lowered a rate */                       \
	X(req_paced)	  /* times a QP waited for its rate */                 \
	/* management, connections */                                          \
	X(gsi_tx_mads)                                                         \
	X(gsi_rx_mads)                                                         \
	X(gsi_tx_drops) /* no room in QP1's ring */                            \
	X(cm_connects)	/* connections established */                          \
	X(cm_rejects_sent)                                                     \
	X(cm_retransmits)                                                      \
	X(cm_duplicates)    /* messages that came again */                     \
	X(cm_stale)	    /* REQs for a QP that is connected to us */        \
	X(cm_backlog_drops) /* REQs for which a listener had no room */        \
	X(cm_unowned)	    /* messages for no communication of ours */        \
	X(cm_ignored)	    /* messages that their state has no use for */     \
	/* completions */                                                      \
	X(cqes)                                                                \
	X(cq_overflows)                                                        \
	X(flushed_wrs)

struct hca_counters {
#define HCA_COUNTER_FIELD(name) uint64_t name;
	HCA_COUNTERS(HCA_COUNTER_FIELD)
#undef HCA_COUNTER_FIELD
};

#endif
