/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fault.c - judges packets by a plan. The plan's text: fault_spec.c.
 */
#include "fabric/fault.h"

#include <string.h>

#include "base/bytes.h"
#include "wire/bth.h"
#include "wire/exth.h"
#include "wire/opcode.h"

#define BTH_DEST_QPN 5 /* offset of 24 bits */
#define BTH_RESV8 4    /* the one byte of a packet that no ICRC covers */
#define ECN_MASK 3
#define ECN_NOT_ECT 0
#define ECN_CE 3

const char *fault_action_name(enum fault_action a)
{
	static const char *const names[] = {
#define FAULT_ACTION_NAME(name, NAME) [FAULT_##NAME] = #name,
		FAULT_ACTIONS_X(FAULT_ACTION_NAME)
#undef FAULT_ACTION_NAME
	};

	ASSERT((unsigned)a < FAULT_ACTIONS);
	return names[a];
}

/* ---- streams ---- */

/* "tx 03 drop": rule 3's drops of sent packets. */
static struct prng stream(const struct prng *root, enum fault_dir dir,
			  uint32_t rule, enum fault_action a)
{
	char label[32] = "tx 00 ";

	ASSERT(rule < 100);
	label[0] = dir == FAULT_TX ? 't' : 'r';
	label[3] = (char)('0' + rule / 10);
	label[4] = (char)('0' + rule % 10);
	strcat(label, fault_action_name(a));
	return prng_split(root, label);
}

void fault_start(struct fault_plan *p, uint64_t seed, int64_t now_ns)
{
	struct prng root;

	if (!p->has_seed)
		p->seed = seed;
	p->start_ns = now_ns;
	prng_init(&root, p->seed);
	for (uint32_t i = 0; i < p->num_rules; i++)
		for (int a = 0; a < FAULT_ACTIONS; a++)
			for (int d = 0; d < FAULT_DIRS; d++)
				p->rule[i].effect[a].rng[d] =
					stream(&root, d, i, a);
}

bool fault_does(const struct fault_plan *p, enum fault_action a)
{
	for (uint32_t i = 0; i < p->num_rules; i++)
		if (p->rule[i].effect[a].on)
			return true;
	return false;
}

/* Delays add up, and a copy comes after the original's time. */
int64_t fault_late_ns(const struct fault_plan *p)
{
	int64_t late_ns = 0;

	for (uint32_t i = 0; i < p->num_rules; i++) {
		const struct fault_rule *r = &p->rule[i];

		if (r->count != UINT64_MAX)
			continue;
		late_ns += r->effect[FAULT_DUP].max_ns +
			   r->effect[FAULT_REORDER].max_ns +
			   r->effect[FAULT_DELAY].max_ns;
	}
	return late_ns;
}

/* ---- selection ---- */

static bool opcode_matches(const struct fault_rule *r,
			   const struct fault_pkt *pkt)
{
	uint8_t opcode = pkt->bytes[0];

	if (!(r->opcodes[opcode / 32] >> opcode % 32 & 1))
		return false;
	if (opcode != OPCODE(TRANSPORT_RC, OP_ACK) &&
	    opcode != OPCODE(TRANSPORT_XRC, OP_ACK))
		return true;
	if (pkt->avail_bytes <= BTH_BYTES)
		return false;
	return r->aeth_kinds >> aeth_kind(pkt->bytes[BTH_BYTES]) & 1;
}

static bool in_time(const struct fault_rule *r, int64_t since_start_ns)
{
	return since_start_ns >= r->after_ns &&
	       since_start_ns - r->after_ns < r->for_ns;
}

/* Counts a matching packet; true when it is the rule's turn. */
static bool selects(struct fault_rule *r, enum fault_dir dir,
		    const struct fault_pkt *pkt, int64_t since_start_ns)
{
	if (!r->dir[dir] || !in_time(r, since_start_ns) ||
	    !opcode_matches(r, pkt))
		return false;
	if (r->has_qpn && get_be24(pkt->bytes + BTH_DEST_QPN) != r->qpn)
		return false;
	r->matched[dir]++;
	if (r->matched[dir] < r->nth ||
	    (r->matched[dir] - r->nth) % r->every != 0 ||
	    r->selected[dir] >= r->count)
		return false;
	r->selected[dir]++;
	return true;
}

/* ---- effects ---- */

static int64_t some_time(const struct fault_effect *e, struct prng *rng)
{
	uint64_t span = (uint64_t)(e->max_ns - e->min_ns);

	return span ? e->min_ns + (int64_t)prng_below(rng, span + 1)
		    : e->min_ns;
}

static bool has_bit(const struct fault_verdict *v, uint32_t bit)
{
	for (unsigned i = 0; i < v->flips; i++)
		if (v->bit[i] == bit)
			return true;
	return false;
}

/* Distinct bits, so that none flips back. */
static void add_flips(struct fault_verdict *v, const struct fault_effect *e,
		      const struct fault_pkt *pkt, struct prng *rng)
{
	uint32_t n = e->flips ? e->flips
			      : 1 + (uint32_t)prng_below(rng, FAULT_FLIPS);

	while (n-- > 0) {
		uint32_t bit = (uint32_t)prng_below(
			rng, (uint64_t)(pkt->wire_bytes - 1) * 8);

		if (bit >= BTH_RESV8 * 8)
			bit += 8;
		if (v->flips < FAULT_FLIPS && !has_bit(v, bit))
			v->bit[v->flips++] = bit;
	}
}

static bool ecn_capable(uint8_t tos)
{
	return (tos & ECN_MASK) != ECN_NOT_ECT && (tos & ECN_MASK) != ECN_CE;
}

static void apply(struct fault_verdict *v, enum fault_action a,
		  struct fault_effect *e, enum fault_dir dir,
		  const struct fault_pkt *pkt)
{
	struct prng *rng = &e->rng[dir];

	if (!prng_chance(rng, e->ppm))
		return;
	switch (a) {
	case FAULT_DROP:
	case FAULT_BLACKHOLE:
		v->drop = true;
		break;
	case FAULT_DUP:
		v->copy = true;
		v->copy_ns = some_time(e, rng);
		break;
	case FAULT_REORDER:
	case FAULT_DELAY:
		v->delay_ns += some_time(e, rng);
		break;
	case FAULT_CORRUPT:
		add_flips(v, e, pkt, rng);
		break;
	case FAULT_CE:
		if (!ecn_capable(pkt->tos))
			return;
		v->mark_ce = true;
		break;
	case FAULT_ACTIONS:
		ASSERT(false);
	}
	v->did |= 1u << a;
}

struct fault_verdict fault_judge(struct fault_plan *p, enum fault_dir dir,
				 const struct fault_pkt *pkt, int64_t now_ns)
{
	struct fault_verdict v = { 0 };

	ASSERT(pkt->avail_bytes >= BTH_BYTES && pkt->wire_bytes >= BTH_BYTES);
	for (uint32_t i = 0; i < p->num_rules; i++) {
		struct fault_rule *r = &p->rule[i];

		if (!selects(r, dir, pkt, now_ns - p->start_ns))
			continue;
		for (int a = 0; a < FAULT_ACTIONS; a++)
			if (r->effect[a].on)
				apply(&v, a, &r->effect[a], dir, pkt);
	}
	if (v.drop)
		v = (struct fault_verdict){
			.did = v.did &
			       (1u << FAULT_DROP | 1u << FAULT_BLACKHOLE),
			.drop = true,
		};
	return v;
}
