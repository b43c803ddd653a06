/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fault_spec.c - the text of a fault plan (docs/faults.md):
 *
 *   PLAN = RULE { ";" RULE }         RULE = ITEM { "," ITEM }
 *   ITEM = KEY [ "=" VALUE ]         one table of keys below
 *
 * Strict: what is not understood is an error that says where it stands and
 * what may stand there. Blanks around rules and items mean nothing.
 */
#include "fabric/fault.h"

#include <errno.h>
#include <string.h>

#include "wire/exth.h"
#include "wire/opcode.h"

#define REORDER_DEFAULT_NS 100000

/* A piece of the text. */
struct span {
	const char *p, *end;
};

struct parser {
	struct fault_plan *plan;
	const char *text;
	struct fault_error err;
	/* Of the rule under way. */
	struct fault_rule *rule;
	uint32_t keys; /* seen, a bit for each row of the table */
	unsigned items;
	bool acts, seeds;
};

static int fail(struct parser *ps, struct span where, const char *why)
{
	ps->err = (struct fault_error){
		.at = (uint32_t)(where.p - ps->text),
		.len = (uint32_t)(where.end - where.p),
		.why = why,
	};
	return -EINVAL;
}

/* ---- text ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct span trim(struct span s)
{
	while (s.p < s.end && is_blank(*s.p))
		s.p++;
	while (s.p < s.end && is_blank(s.end[-1]))
		s.end--;
	return s;
}

static bool span_is(struct span s, const char *word)
{
	for (; s.p < s.end && *word; s.p++, word++)
		if (lower(*s.p) != lower(*word))
			return false;
	return s.p == s.end && !*word;
}

/* Cuts the part before `sep` off the front of *rest; false: there is no part
 * left. After the last part rest->p is NULL. */
static bool cut(struct span *rest, char sep, struct span *ret_part)
{
	const char *p = rest->p;

	if (!p)
		return false;
	while (p < rest->end && *p != sep)
		p++;
	*ret_part = (struct span){ rest->p, p };
	rest->p = p < rest->end ? p + 1 : NULL;
	return true;
}

/* ---- numbers ---- */

static int hex_digit(char c)
{
	c = lower(c);
	if (is_digit(c))
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decimal, or hexadecimal after 0x. */
static bool parse_u64(struct span s, uint64_t *ret)
{
	unsigned base = 10;
	uint64_t v = 0;

	if (s.end - s.p > 2 && s.p[0] == '0' && lower(s.p[1]) == 'x') {
		base = 16;
		s.p += 2;
	}
	if (s.p == s.end)
		return false;
	for (; s.p < s.end; s.p++) {
		int d = hex_digit(*s.p);

		if (d < 0 || d >= (int)base || v > (UINT64_MAX - d) / base)
			return false;
		v = v * base + (unsigned)d;
	}
	*ret = v;
	return true;
}

/* A number with or without decimals at the front of *s, times 10^decimals;
 * false: none, or not whole after that, or above max. */
static bool parse_decimal(struct span *s, unsigned decimals, uint64_t max,
			  uint64_t *ret)
{
	uint64_t v = 0;
	bool point = false, digits = false;

	for (; s->p < s->end; s->p++) {
		if (*s->p == '.' && !point && digits) {
			point = true;
			digits = false;
			continue;
		}
		if (!is_digit(*s->p))
			break;
		if (point && decimals == 0) {
			if (*s->p != '0')
				return false;
			digits = true;
			continue;
		}
		v = v * 10 + (unsigned)(*s->p - '0');
		decimals -= point;
		digits = true;
		if (v > max)
			return false;
	}
	for (; decimals > 0 && v <= max; decimals--)
		v *= 10;
	*ret = v;
	return digits && v <= max;
}

static const char why_rate[] =
	"a rate is 0% to 100% in steps of 0.0001%, or 0ppm to 1000000ppm";

static bool parse_rate(struct span s, uint32_t *ret_ppm)
{
	struct span unit = s;
	uint64_t v;

	while (unit.p < unit.end && (is_digit(*unit.p) || *unit.p == '.'))
		unit.p++;
	if (!parse_decimal(&s, span_is(unit, "%") ? 4 : 0, 1000000, &v))
		return false;
	if (s.p != unit.p || (!span_is(unit, "%") && !span_is(unit, "ppm")))
		return false;
	*ret_ppm = (uint32_t)v;
	return true;
}

static const char why_time[] =
	"a time is a number with ns, us, ms or s, or two with - between, up to"
	" 60s";

static bool parse_one_time(struct span s, int64_t *ret_ns)
{
	static const struct {
		const char *name;
		unsigned decimals;
	} units[] = { { "ns", 0 }, { "us", 3 }, { "ms", 6 }, { "s", 9 } };
	struct span unit = s;
	uint64_t v;

	if (span_is(s, "0")) {
		*ret_ns = 0;
		return true;
	}
	while (unit.p < unit.end && (is_digit(*unit.p) || *unit.p == '.'))
		unit.p++;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (!span_is(unit, units[i].name))
			continue;
		if (!parse_decimal(&s, units[i].decimals, FAULT_TIME_MAX_NS,
				   &v))
			return false;
		*ret_ns = (int64_t)v;
		return s.p == unit.p;
	}
	return false;
}

/* TIME or TIME-TIME. */
static bool parse_times(struct span s, int64_t *ret_min_ns, int64_t *ret_max_ns)
{
	struct span a;

	cut(&s, '-', &a);
	if (!parse_one_time(a, ret_min_ns))
		return false;
	*ret_max_ns = *ret_min_ns;
	if (!s.p)
		return true;
	return parse_one_time(s, ret_max_ns) && *ret_max_ns >= *ret_min_ns;
}

/* ---- packets by name ---- */

struct class
{
	const char *name;
	uint16_t has, has_not; /* enum opcode_flags */
};

static const struct class classes[] = {
	{ "send", OPCODE_SEND, 0 },
	{ "write", OPCODE_WRITE, 0 },
	{ "read", OPCODE_READ | OPCODE_REQUEST, 0 },
	{ "read_resp", OPCODE_READ | OPCODE_RESPONSE, 0 },
	{ "atomic", OPCODE_ATOMIC | OPCODE_REQUEST, 0 },
	{ "request", OPCODE_REQUEST, 0 },
	{ "response", OPCODE_RESPONSE, 0 },
	{ "first", OPCODE_START, OPCODE_END },
	{ "middle", OPCODE_PAYLOAD, OPCODE_START | OPCODE_END },
	{ "last", OPCODE_END, OPCODE_START },
	{ "only", OPCODE_START | OPCODE_END, 0 },
};

static const char why_op[] =
	"a packet is an opcode's name as RC_READ_RESP_MIDDLE, with or without"
	" its transport, or one of send write read read_resp atomic request"
	" response first middle last only ack nak rnr; several with + between";

static void add_opcode(struct fault_rule *r, unsigned opcode, unsigned kinds)
{
	r->opcodes[opcode / 32] |= 1u << opcode % 32;
	if (opcode == OPCODE(TRANSPORT_RC, OP_ACK) ||
	    opcode == OPCODE(TRANSPORT_XRC, OP_ACK))
		r->aeth_kinds |= (uint8_t)kinds;
}

/* Those that are told apart by their syndrome. "ack" is the opcode: all. */
static bool add_ack_kind(struct fault_rule *r, struct span name)
{
	unsigned kind = span_is(name, "nak")   ? 1u << AETH_NAK
			: span_is(name, "rnr") ? 1u << AETH_RNR_NAK
					       : 0;

	if (!kind)
		return false;
	add_opcode(r, OPCODE(TRANSPORT_RC, OP_ACK), kind);
	add_opcode(r, OPCODE(TRANSPORT_XRC, OP_ACK), kind);
	return true;
}

static bool name_matches(struct span s, const char *opcode_name)
{
	const char *after = strchr(opcode_name, '_');

	return span_is(s, opcode_name) || (after && span_is(s, after + 1));
}

static bool class_has(const struct class *c, const struct opcode_info *info)
{
	return (info->flags & c->has) == c->has && !(info->flags & c->has_not);
}

static bool add_name(struct fault_rule *r, struct span name)
{
	const struct class *c = NULL;
	bool found = false;

	if (add_ack_kind(r, name))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
		if (span_is(name, classes[i].name))
			c = &classes[i];
	for (unsigned op = 0; op < 256; op++) {
		const struct opcode_info *info = opcode_lookup((uint8_t)op);

		if (!info->name)
			continue;
		if (c ? !class_has(c, info) : !name_matches(name, info->name))
			continue;
		add_opcode(r, op, 0xf);
		found = true;
	}
	return found;
}

/* ---- values ---- */

static int take_op(struct parser *ps, int arg, struct span v)
{
	struct span name;

	(void)arg;
	memset(ps->rule->opcodes, 0, sizeof(ps->rule->opcodes));
	ps->rule->aeth_kinds = 0;
	while (cut(&v, '+', &name))
		if (!add_name(ps->rule, trim(name)))
			return fail(ps, trim(name), why_op);
	return 0;
}

static int take_dir(struct parser *ps, int arg, struct span v)
{
	struct fault_rule *r = ps->rule;

	(void)arg;
	if (!span_is(v, "tx") && !span_is(v, "rx") && !span_is(v, "both"))
		return fail(ps, v, "a direction is tx, rx or both");
	r->dir[FAULT_TX] = !span_is(v, "rx");
	r->dir[FAULT_RX] = !span_is(v, "tx");
	return 0;
}

static int take_qpn(struct parser *ps, int arg, struct span v)
{
	uint64_t n;

	(void)arg;
	if (!parse_u64(v, &n) || n > 0xffffff)
		return fail(ps, v,
			    "a QP number is 0 to 16777215 or 0x0 to 0xffffff");
	ps->rule->has_qpn = true;
	ps->rule->qpn = (uint32_t)n;
	return 0;
}

enum number { NUMBER_NTH, NUMBER_EVERY, NUMBER_COUNT };

static int take_number(struct parser *ps, int arg, struct span v)
{
	struct fault_rule *r = ps->rule;
	uint64_t n;

	if (!parse_u64(v, &n) || n == 0)
		return fail(ps, v, "a number from 1 on");
	if (arg == NUMBER_NTH)
		r->nth = n;
	else if (arg == NUMBER_EVERY)
		r->every = n;
	else
		r->count = n;
	return 0;
}

static int take_seed(struct parser *ps, int arg, struct span v)
{
	(void)arg;
	if (!parse_u64(v, &ps->plan->seed))
		return fail(ps, v, "a seed is a number of 64 bits");
	if (ps->plan->has_seed)
		return fail(ps, v, "there is a seed already");
	ps->plan->has_seed = ps->seeds = true;
	return 0;
}

enum moment { MOMENT_AFTER, MOMENT_FOR };

static int take_moment(struct parser *ps, int arg, struct span v)
{
	int64_t *field =
		arg == MOMENT_AFTER ? &ps->rule->after_ns : &ps->rule->for_ns;

	if (!parse_one_time(v, field))
		return fail(ps, v,
			    "a time is a number with ns, us, ms or s, up to"
			    " 60s");
	return 0;
}

/* ---- actions ---- */

static struct fault_effect *effect_on(struct parser *ps, int action)
{
	struct fault_effect *e = &ps->rule->effect[action];

	ps->acts = true;
	e->on = true;
	e->ppm = 1000000;
	return e;
}

/* KEY[=RATE] */
static int take_rated(struct parser *ps, int action, struct span v)
{
	struct fault_effect *e = effect_on(ps, action);

	if (v.p && !parse_rate(v, &e->ppm))
		return fail(ps, v, why_rate);
	return 0;
}

/* corrupt[=RATE[:BITS]] */
static int take_corrupt(struct parser *ps, int action, struct span v)
{
	struct fault_effect *e = effect_on(ps, action);
	struct span rate;
	uint64_t bits;

	if (!cut(&v, ':', &rate))
		return 0;
	if (!parse_rate(rate, &e->ppm))
		return fail(ps, rate, why_rate);
	if (!v.p)
		return 0;
	if (!parse_u64(v, &bits) || bits < 1 || bits > FAULT_FLIPS)
		return fail(ps, v, "1, 2 or 3 bits");
	e->flips = (uint32_t)bits;
	return 0;
}

/* KEY=RATE, KEY=TIME or KEY=RATE:TIME */
static int take_timed(struct parser *ps, int action, struct span v)
{
	struct fault_effect *e = effect_on(ps, action);
	struct span first;
	bool timed;

	if (action == FAULT_REORDER)
		e->max_ns = REORDER_DEFAULT_NS;
	if (!cut(&v, ':', &first))
		return 0;
	timed = parse_times(first, &e->min_ns, &e->max_ns);
	if (v.p && (timed || !parse_rate(first, &e->ppm)))
		return fail(ps, first, why_rate);
	if (v.p && !parse_times(v, &e->min_ns, &e->max_ns))
		return fail(ps, v, why_time);
	if (!v.p && !timed && !parse_rate(first, &e->ppm))
		return fail(ps, first,
			    "RATE, TIME or RATE:TIME, as 1%, 20us or 1%:20us");
	if (action == FAULT_DELAY && !v.p && !timed)
		return fail(ps, (struct span){ first.end, first.end },
			    "a delay needs a time: TIME or RATE:TIME, as 1ms or"
			    " 1%:1ms");
	/* A single time bounds a reordering and fixes the others. */
	if (action == FAULT_REORDER && e->min_ns == e->max_ns)
		e->min_ns = 0;
	return 0;
}

/* ---- rules ---- */

enum need { NEED_NONE, NEED_OPTIONAL, NEED_VALUE };

static const struct key {
	const char *name;
	enum need need;
	int (*take)(struct parser *ps, int arg, struct span value);
	int arg;
} keys[] = {
	{ "drop", NEED_OPTIONAL, take_rated, FAULT_DROP },
	{ "dup", NEED_OPTIONAL, take_timed, FAULT_DUP },
	{ "reorder", NEED_OPTIONAL, take_timed, FAULT_REORDER },
	{ "delay", NEED_VALUE, take_timed, FAULT_DELAY },
	{ "corrupt", NEED_OPTIONAL, take_corrupt, FAULT_CORRUPT },
	{ "ce", NEED_OPTIONAL, take_rated, FAULT_CE },
	{ "blackhole", NEED_NONE, take_rated, FAULT_BLACKHOLE },
	{ "dir", NEED_VALUE, take_dir, 0 },
	{ "op", NEED_VALUE, take_op, 0 },
	{ "qpn", NEED_VALUE, take_qpn, 0 },
	{ "nth", NEED_VALUE, take_number, NUMBER_NTH },
	{ "every", NEED_VALUE, take_number, NUMBER_EVERY },
	{ "count", NEED_VALUE, take_number, NUMBER_COUNT },
	{ "after", NEED_VALUE, take_moment, MOMENT_AFTER },
	{ "for", NEED_VALUE, take_moment, MOMENT_FOR },
	{ "seed", NEED_VALUE, take_seed, 0 },
};

static int parse_item(struct parser *ps, struct span item)
{
	struct span value = { NULL, NULL }, name;
	size_t i = 0;

	value = item;
	cut(&value, '=', &name);
	name = trim(name);
	if (value.p)
		value = trim(value);
	while (i < ARRAY_SIZE(keys) && !span_is(name, keys[i].name))
		i++;
	if (i == ARRAY_SIZE(keys))
		return fail(ps, name,
			    "an action (drop dup reorder delay corrupt ce"
			    " blackhole) or one of dir op qpn nth every count"
			    " after for seed");
	if (ps->keys & 1u << i)
		return fail(ps, name,
			    "once in a rule; rules are separated"
			    " by ;");
	ps->keys |= 1u << i;
	ps->items++;
	if (keys[i].need == NEED_NONE && value.p)
		return fail(ps, value, "it takes no value");
	if (keys[i].need == NEED_VALUE && !value.p)
		return fail(ps, (struct span){ item.end, item.end },
			    "it needs a value, as KEY=VALUE");
	return keys[i].take(ps, keys[i].arg, value);
}

static const char why_no_action[] =
	"a rule needs an action: drop dup reorder delay corrupt ce blackhole";

static void rule_init(struct fault_rule *r)
{
	*r = (struct fault_rule){
		.dir = { true, true },
		.aeth_kinds = 0xf,
		.for_ns = INT64_MAX,
	};
	memset(r->opcodes, 0xff, sizeof(r->opcodes));
}

/* The nth alone means that one; with every=, all from there on. */
static void rule_defaults(struct fault_rule *r)
{
	if (r->count == 0)
		r->count = r->nth && !r->every ? 1 : UINT64_MAX;
	if (r->nth == 0)
		r->nth = 1;
	if (r->every == 0)
		r->every = 1;
}

static int parse_rule(struct parser *ps, struct span text)
{
	struct fault_plan *plan = ps->plan;
	struct span rest = text, item;
	int err;

	if (plan->num_rules == FAULT_RULES)
		return fail(ps, text, "at most 16 rules");
	ps->rule = &plan->rule[plan->num_rules];
	ps->keys = ps->items = 0;
	ps->acts = ps->seeds = false;
	rule_init(ps->rule);
	while (cut(&rest, ',', &item)) {
		err = parse_item(ps, trim(item));
		if (err)
			return err;
	}
	rule_defaults(ps->rule);
	if (ps->acts)
		plan->num_rules++;
	else if (!ps->seeds || ps->items > 1) /* a seed may stand alone */
		return fail(ps, text, why_no_action);
	return 0;
}

int fault_parse(struct fault_plan *ret, const char *text,
		struct fault_error *ret_err)
{
	struct parser ps = { .plan = ret, .text = text };
	struct span rest = { text, text + strlen(text) }, rule;
	int err = 0;

	memset(ret, 0, sizeof(*ret));
	while (!err && cut(&rest, ';', &rule))
		err = parse_rule(&ps, trim(rule));
	if (!err && ret->num_rules == 0)
		err = fail(&ps,
			   trim((struct span){ text, text + strlen(text) }),
			   why_no_action);
	if (err)
		*ret_err = ps.err;
	return err;
}
