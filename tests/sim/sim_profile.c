/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sim_profile.c - the table of profiles.
 */
#include "sim_profile.h"

#include <string.h>

#define PERCENT 10000u /* in ppm */

static const struct {
	const char *name;
	bool errors;
	struct cable_faults faults;
} profiles[] = {
	{ "clean", false, { 0 } },
	{ "errors", true, { 0 } },
	{ "loss1", false, { .drop_ppm = 1 * PERCENT } },
	{ "loss5", false, { .drop_ppm = 5 * PERCENT } },
	{ "loss20", false, { .drop_ppm = 20 * PERCENT } },
	{ "dup", false, { .dup_ppm = 10 * PERCENT, .reorder_ns = 100000 } },
	{ "reorder",
	  false,
	  { .reorder_ppm = 10 * PERCENT, .reorder_ns = 50000 } },
	{ "corrupt", false, { .corrupt_ppm = 3 * PERCENT } },
	/* Nothing gets through: every request ends with an error. */
	{ "dead", false, { .drop_ppm = 1000000 } },
	{ "storm",
	  true,
	  { .drop_ppm = 3 * PERCENT,
	    .dup_ppm = 3 * PERCENT,
	    .reorder_ppm = 5 * PERCENT,
	    .corrupt_ppm = 2 * PERCENT,
	    .reorder_ns = 200000 } },
};

static const struct {
	const char *name;
	enum qp_type type;
} types[] = {
	{ "rc", QP_TYPE_RC },
	{ "uc", QP_TYPE_UC },
	{ "ud", QP_TYPE_UD },
};

const char *sim_profile_faults(unsigned i)
{
	return i < ARRAY_SIZE(profiles) ? profiles[i].name : NULL;
}

bool sim_profile(const char *name, uint32_t msgs, struct wl_config *ret)
{
	const char *slash = strchr(name, '/');

	if (!slash)
		return false;
	for (unsigned t = 0; t < ARRAY_SIZE(types); t++) {
		if (strncmp(name, types[t].name, (size_t)(slash - name)))
			continue;
		for (unsigned i = 0; i < ARRAY_SIZE(profiles); i++) {
			if (strcmp(slash + 1, profiles[i].name))
				continue;
			*ret = (struct wl_config){
				.type = types[t].type,
				.msgs = msgs,
				.faults = profiles[i].faults,
				.errors = profiles[i].errors,
			};
			return true;
		}
	}
	return false;
}
