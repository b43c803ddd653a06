/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dcqcn.c - rate, target and alpha of one flow. */
#include "core/cc/dcqcn.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define MBPS 1000000ull
#define GBPS 1000000000ull

const struct dcqcn_params dcqcn_paper = {
	.line_rate_bps = 40 * GBPS,
	.min_rate_bps = 1 * MBPS,
	.ai_rate_bps = 40 * MBPS,
	.hai_rate_bps = 400 * MBPS,
	.alpha_keep = 1020, /* g = 1/256 */
	.alpha_initial = DCQCN_ALPHA_ONE,
	.alpha_period_ns = 55000,
	.alpha_at_cnp = 1,
	.clamp_target = 1,
	.time_reset_ns = 55000,
	.byte_reset = 10000000,
	.threshold = 5,
	.cnp_interval_ns = 50000,
};

const struct dcqcn_params dcqcn_connectx = {
	.line_rate_bps = 100 * GBPS,
	.min_rate_bps = 1 * MBPS,
	.ai_rate_bps = 5 * MBPS,
	.hai_rate_bps = 50 * MBPS,
	.alpha_keep = 1019,
	.alpha_initial = 1023 * (DCQCN_ALPHA_ONE / 1024),
	.alpha_period_ns = 1000,
	.min_dec_percent = 50,
	.cut_period_ns = 4000,
	.clamp_after_time = 1,
	.time_reset_ns = 300000,
	.byte_reset = 32767,
	.threshold = 1,
	.cnp_interval_ns = 4000,
};

static const struct param {
	const char *name;
	size_t offset, size;
} params[] = {
#define DCQCN_PARAM_ROW(type, name)                                            \
	{ #name, offsetof(struct dcqcn_params, name), sizeof(type) },
	DCQCN_PARAMS(DCQCN_PARAM_ROW)
#undef DCQCN_PARAM_ROW
};

static bool set(struct dcqcn_params *p, const struct param *to, uint64_t value)
{
	uint8_t *field = (uint8_t *)p + to->offset;
	uint32_t narrow = (uint32_t)value;

	if (to->size == sizeof(uint64_t))
		memcpy(field, &value, sizeof(value));
	else if (narrow == value)
		memcpy(field, &narrow, sizeof(narrow));
	else
		return false;
	return true;
}

/* "NAME=VALUE", n bytes. */
static const char *take(struct dcqcn_params *p, const char *text, size_t n)
{
	const char *eq = memchr(text, '=', n);
	char *end;
	uint64_t value;

	if (!eq)
		return "a parameter is to be NAME=VALUE";
	for (size_t i = 0; i < ARRAY_SIZE(params); i++) {
		if (strlen(params[i].name) != (size_t)(eq - text) ||
		    memcmp(params[i].name, text, (size_t)(eq - text)) != 0)
			continue;
		if (eq[1] < '0' || eq[1] > '9')
			return "a value is to be a number";
		value = strtoull(eq + 1, &end, 10);
		if (end != text + n)
			return "a value is to be a number";
		return set(p, &params[i], value) ? NULL
						 : "a value is too large";
	}
	return "there is no such parameter";
}

const char *dcqcn_parse(const char *text, struct dcqcn_params *ret,
			size_t *ret_at)
{
	size_t n = strcspn(text, ",");
	const char *at = text + n, *why;
	struct dcqcn_params p;

	*ret_at = 0;
	if (n == 5 && memcmp(text, "paper", n) == 0)
		p = dcqcn_paper;
	else if (n == 8 && memcmp(text, "connectx", n) == 0)
		p = dcqcn_connectx;
	else
		return "it begins with a preset, paper or connectx";
	while (*at) {
		n = strcspn(++at, ",");
		*ret_at = (size_t)(at - text);
		why = take(&p, at, n);
		if (why)
			return why;
		at += n;
	}
	*ret_at = 0;
	why = dcqcn_params_check(&p);
	if (!why)
		*ret = p;
	return why;
}

void dcqcn_params_each(const struct dcqcn_params *p,
		       void (*fn)(void *ctx, const char *name, uint64_t value),
		       void *ctx)
{
	for (size_t i = 0; i < ARRAY_SIZE(params); i++) {
		const uint8_t *field = (const uint8_t *)p + params[i].offset;
		uint64_t value = 0;
		uint32_t narrow;

		if (params[i].size == sizeof(value)) {
			memcpy(&value, field, sizeof(value));
		} else {
			memcpy(&narrow, field, sizeof(narrow));
			value = narrow;
		}
		fn(ctx, params[i].name, value);
	}
}

const char *dcqcn_params_check(const struct dcqcn_params *p)
{
	if (p->alpha_at_cnp > 1 || p->clamp_target > 1 ||
	    p->clamp_after_time > 1)
		return "a switch is to be 0 or 1";
	if (p->line_rate_bps == 0 || p->line_rate_bps > 10000 * GBPS)
		return "line_rate_bps is to be above 0, at most 10 Tb/s";
	if (p->min_rate_bps == 0 || p->min_rate_bps > p->line_rate_bps)
		return "min_rate_bps is to be above 0, at most the line rate";
	if (p->ai_rate_bps > p->line_rate_bps ||
	    p->hai_rate_bps > p->line_rate_bps)
		return "an increase is to be at most the line rate";
	if (p->first_rate_bps > p->line_rate_bps)
		return "first_rate_bps is to be at most the line rate";
	if (p->alpha_keep >= 1024)
		return "alpha_keep is to be below 1024";
	if (p->alpha_initial > DCQCN_ALPHA_ONE)
		return "alpha_initial is to be at most 1";
	if (p->alpha_period_ns == 0 || p->time_reset_ns == 0)
		return "alpha_period_ns and time_reset_ns are to be above 0";
	if (p->min_dec_percent > 100)
		return "min_dec_percent is to be at most 100";
	return NULL;
}

void dcqcn_init(struct dcqcn *d)
{
	*d = (struct dcqcn){ .cut_at_ns = INT64_MIN };
}

static uint32_t alpha_kept(const struct dcqcn_params *p, uint32_t alpha)
{
	return (uint32_t)((uint64_t)alpha * p->alpha_keep / 1024);
}

static uint32_t alpha_raised(const struct dcqcn_params *p, uint32_t alpha)
{
	return alpha_kept(p, alpha) +
	       (1024 - p->alpha_keep) * (DCQCN_ALPHA_ONE / 1024);
}

/* Alpha matters to cuts alone, so nobody wakes up for its periods: they are
 * made up for when it is looked at. Each without a CNP takes at least 1. */
static void alpha_catch_up(struct dcqcn *d, const struct dcqcn_params *p,
			   int64_t now_ns)
{
	while (d->alpha_at_ns <= now_ns && (d->alpha > 0 || d->cnp_seen)) {
		if (d->cnp_seen && !p->alpha_at_cnp)
			d->alpha = alpha_raised(p, d->alpha);
		else
			d->alpha = alpha_kept(p, d->alpha);
		d->cnp_seen = false;
		d->alpha_at_ns += p->alpha_period_ns;
	}
	if (d->alpha_at_ns <= now_ns) /* alpha is 0: whole periods pass */
		d->alpha_at_ns +=
			((now_ns - d->alpha_at_ns) / p->alpha_period_ns + 1) *
			p->alpha_period_ns;
}

static void limit(struct dcqcn *d, const struct dcqcn_params *p, int64_t now_ns)
{
	d->limited = true;
	d->rate_bps = p->first_rate_bps ? p->first_rate_bps : p->line_rate_bps;
	d->target_bps = d->rate_bps;
	d->alpha = p->alpha_initial;
	d->alpha_at_ns = now_ns + p->alpha_period_ns;
	d->cnp_seen = false;
	d->time_grew = d->bytes_grew = false;
}

static uint64_t cut_rate(const struct dcqcn *d, const struct dcqcn_params *p)
{
	uint64_t cut = d->rate_bps / 2;
	uint64_t least = d->rate_bps / 100 * p->min_dec_percent;
	uint64_t rate;

	/* Below 10 Tb/s: no overflow when the ratio is taken in two steps. */
	cut = cut / DCQCN_ALPHA_ONE * d->alpha +
	      cut % DCQCN_ALPHA_ONE * d->alpha / DCQCN_ALPHA_ONE;
	rate = d->rate_bps - cut;
	if (rate < least)
		rate = least;
	return rate < p->min_rate_bps ? p->min_rate_bps : rate;
}

static void start_stages(struct dcqcn *d, const struct dcqcn_params *p,
			 int64_t now_ns)
{
	d->time_stage = d->byte_stage = 0;
	d->bytes = 0;
	d->time_at_ns = now_ns + p->time_reset_ns;
	d->time_grew = d->bytes_grew = false;
}

bool dcqcn_cnp(struct dcqcn *d, const struct dcqcn_params *p, int64_t now_ns)
{
	bool first;

	if (d->limited)
		dcqcn_advance(d, p, now_ns);
	first = !d->limited;
	if (first)
		limit(d, p, now_ns);
	alpha_catch_up(d, p, now_ns);
	d->cnp_seen = true;
	if (now_ns < d->cut_at_ns)
		return false;
	if (p->clamp_target || d->bytes_grew ||
	    (d->time_grew && p->clamp_after_time))
		d->target_bps = d->rate_bps;
	if (!(first && p->first_rate_bps))
		d->rate_bps = cut_rate(d, p);
	if (p->alpha_at_cnp) {
		d->alpha = alpha_raised(p, d->alpha);
		d->alpha_at_ns = now_ns + p->alpha_period_ns;
		d->cnp_seen = false;
	}
	start_stages(d, p, now_ns);
	d->cut_at_ns = now_ns + p->cut_period_ns;
	return true;
}

static void grow(struct dcqcn *d, const struct dcqcn_params *p)
{
	uint32_t most = d->time_stage, least = d->byte_stage;

	if (most < least) {
		most = d->byte_stage;
		least = d->time_stage;
	}
	if (least > p->threshold)
		d->target_bps += p->hai_rate_bps;
	else if (most >= p->threshold)
		d->target_bps += p->ai_rate_bps;
	if (d->target_bps > p->line_rate_bps)
		d->target_bps = p->line_rate_bps;
	d->rate_bps = (d->rate_bps + d->target_bps + 1) / 2;
	if (d->rate_bps >= p->line_rate_bps)
		d->limited = false;
}

void dcqcn_sent(struct dcqcn *d, const struct dcqcn_params *p, uint32_t n)
{
	if (!d->limited || p->byte_reset == 0)
		return;
	d->bytes += n;
	while (d->limited && d->bytes >= p->byte_reset) {
		d->bytes -= p->byte_reset;
		d->byte_stage++;
		d->bytes_grew = true;
		grow(d, p);
	}
}

void dcqcn_advance(struct dcqcn *d, const struct dcqcn_params *p,
		   int64_t now_ns)
{
	while (d->limited && d->time_at_ns <= now_ns) {
		d->time_at_ns += p->time_reset_ns;
		d->time_stage++;
		d->time_grew = true;
		grow(d, p);
	}
}
