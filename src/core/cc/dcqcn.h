/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * dcqcn.h - DCQCN, the reaction point: the rate of one flow as congestion
 * notification packets (CNPs), time and bytes sent move it [Zhu et al.,
 * "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, 3.1].
 *
 * A flow starts at line rate, unlimited and without state. A CNP cuts the rate
 * by alpha / 2; then a timer and a byte counter raise it again, each expiry one
 * stage: halfway back to the target (fast recovery), the target up by ai_rate
 * (additive increase) or hai_rate (hyper increase) first. At line rate the flow
 * is unlimited again.
 *
 * Integers only: rates in bits per second, alpha in 1 / DCQCN_ALPHA_ONE,
 * rounded down; the rate rounded up on its way to the target.
 */
#ifndef SOFTHCA_CORE_CC_DCQCN_H
#define SOFTHCA_CORE_CC_DCQCN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DCQCN_ALPHA_ONE (1u << 20)

/* Field names as in the paper, with those that NICs' drivers use beside. */
#define DCQCN_PARAMS(X)                                                        \
	X(uint64_t, line_rate_bps)                                             \
	X(uint64_t, min_rate_bps)    /* rpg_min_rate */                        \
	X(uint64_t, ai_rate_bps)     /* R_AI, rpg_ai_rate */                   \
	X(uint64_t, hai_rate_bps)    /* R_HAI, rpg_hai_rate */                 \
	X(uint64_t, first_rate_bps)  /* rate_to_set_on_first_cnp; 0: by alpha  \
				      */                                       \
	X(uint32_t, alpha_keep)	     /* 1024 * (1 - g), dce_tcp_g */           \
	X(uint32_t, alpha_initial)   /* initial_alpha_value, as alpha */       \
	X(uint32_t, alpha_period_ns) /* K, dce_tcp_rtt */                      \
	X(uint32_t, alpha_at_cnp) /* 1: a CNP raises alpha itself, and starts  \
				     the period again (paper); 0: the end of a \
				     period in which one came does (NICs) */   \
	X(uint32_t, min_dec_percent) /* rpg_min_dec_fac: a cut leaves at least \
					this part of the rate */               \
	X(uint32_t, cut_period_ns)   /* rate_reduce_monitor_period */          \
	X(uint32_t, clamp_target) /* clamp_tgt_rate: each cut sets the target  \
				   */                                          \
	X(uint32_t, clamp_after_time) /* clamp_tgt_rate_after_time_inc */      \
	X(uint32_t, time_reset_ns)    /* T, rpg_time_reset */                  \
	X(uint32_t, byte_reset)	      /* B, rpg_byte_reset; 0: no counter */   \
	X(uint32_t, threshold)	      /* F, rpg_threshold */                   \
	X(uint32_t, cnp_interval_ns)  /* N, min_time_between_cnps */

struct dcqcn_params {
#define DCQCN_PARAM_FIELD(type, name) type name;
	DCQCN_PARAMS(DCQCN_PARAM_FIELD)
#undef DCQCN_PARAM_FIELD
};

/* The paper's values after its tuning (section 5), for 40 Gb/s; and what
 * ConnectX-4 and later have from the factory, for 100 Gb/s. */
extern const struct dcqcn_params dcqcn_paper, dcqcn_connectx;

/* "PRESET" or "PRESET,NAME=VALUE,..." with the names above, e.g.
 * "connectx,line_rate_bps=25000000000". NULL and *ret, or what is wrong with it
 * (static storage) and *ret_at, the offset where. */
const char *dcqcn_parse(const char *text, struct dcqcn_params *ret,
			size_t *ret_at);
/* Calls fn for each parameter. */
void dcqcn_params_each(const struct dcqcn_params *p,
		       void (*fn)(void *ctx, const char *name, uint64_t value),
		       void *ctx);

/* A line that says what is wrong with them, or NULL. */
const char *dcqcn_params_check(const struct dcqcn_params *p);

struct dcqcn {
	bool limited;  /* else all else is meaningless but cut_at_ns */
	bool cnp_seen; /* in this alpha period */
	bool time_grew, bytes_grew; /* since the last cut */
	uint64_t rate_bps, target_bps;
	uint32_t alpha;
	uint32_t time_stage, byte_stage;
	uint64_t bytes;	     /* toward the next byte stage */
	int64_t alpha_at_ns; /* end of the alpha period */
	int64_t time_at_ns;  /* next time stage */
	int64_t cut_at_ns;   /* no cut before */
};

/* Unlimited. */
void dcqcn_init(struct dcqcn *d);

/* A CNP for this flow came. True: it cut the rate. */
bool dcqcn_cnp(struct dcqcn *d, const struct dcqcn_params *p, int64_t now_ns);

/* n bytes left. */
void dcqcn_sent(struct dcqcn *d, const struct dcqcn_params *p, uint32_t n);

/* When dcqcn_advance wants to be called; INT64_MAX: never. */
static inline int64_t dcqcn_deadline(const struct dcqcn *d)
{
	return d->limited ? d->time_at_ns : INT64_MAX;
}
void dcqcn_advance(struct dcqcn *d, const struct dcqcn_params *p,
		   int64_t now_ns);

/* Bits per second; line rate when unlimited. */
static inline uint64_t dcqcn_rate(const struct dcqcn *d,
				  const struct dcqcn_params *p)
{
	return d->limited ? d->rate_bps : p->line_rate_bps;
}

#endif
