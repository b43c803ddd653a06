/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_parse: an error lies inside the text; a plan judges every opcode within
 * the packet. */
#include "fabric/fault.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "fuzz_target.h"
#include "wire/bth.h"

static void check(const struct fault_verdict *v, uint32_t wire_bytes)
{
	ASSERT(v->flips <= FAULT_FLIPS);
	for (unsigned i = 0; i < v->flips; i++)
		ASSERT(v->bit[i] < wire_bytes * 8);
	ASSERT(v->delay_ns >= 0 &&
	       v->delay_ns <= 2 * FAULT_RULES * FAULT_TIME_MAX_NS);
	ASSERT(v->copy_ns >= 0 && v->copy_ns <= FAULT_TIME_MAX_NS);
	ASSERT(!v->drop || (!v->copy && !v->flips && !v->delay_ns));
	ASSERT(!v->drop ==
	       !(v->did & (1u << FAULT_DROP | 1u << FAULT_BLACKHOLE)));
}

static void judge_all(struct fault_plan *plan)
{
	fault_start(plan, 1, 5);
	for (unsigned i = 0; i < 512; i++) {
		uint8_t bytes[BTH_BYTES] = { (uint8_t)i };
		struct fault_pkt pkt = { bytes, BTH_BYTES, BTH_BYTES + 4,
					 (uint8_t)i };
		struct fault_verdict v =
			fault_judge(plan, i & 1, &pkt, (int64_t)i * 10000000);

		check(&v, pkt.wire_bytes);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fault_plan plan;
	struct fault_error err = { 0 };
	char *text = malloc(size + 1);

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	if (fault_parse(&plan, text, &err) == 0) {
		ASSERT(plan.num_rules >= 1 && plan.num_rules <= FAULT_RULES);
		judge_all(&plan);
	} else {
		ASSERT(err.why && err.at <= strlen(text) &&
		       err.len <= strlen(text) - err.at);
	}
	free(text);
	return 0;
}
