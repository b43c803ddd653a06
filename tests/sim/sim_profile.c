/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sim_profile.c - the table of profiles.
 */
#include "sim_profile.h"

#include <string.h>

#define PLAN_MAX 1024

static const struct {
	const char *name;
	bool errors;
	const char *faults; /* docs/faults.md; NULL: none */
} profiles[] = {
	{ "clean", false, NULL },
	{ "errors", true, NULL },
	{ "loss1", false, "drop=1%" },
	{ "loss5", false, "drop=5%" },
	{ "loss20", false, "drop=20%" },
	{ "dup", false, "dup=10%:0-100us" },
	{ "reorder", false, "reorder=10%:50us" },
	{ "corrupt", false, "corrupt=3%" },
	/* Nothing gets through: every request ends with an error. */
	{ "dead", false, "blackhole" },
	/* Copies among packets: names that begin so. */
	{ "direct", true, NULL },
	{ "direct5", true, "drop=5%,dup=3%:0-100us,reorder=5%:50us" },
	{ "storm", true, "drop=3%,dup=3%:0-200us,reorder=5%:200us,corrupt=2%" },
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

/* The profile's faults and the caller's, either or both of which may be NULL.
 * False: the caller's are wrong, *ret_err says where in its text. */
static bool make_plan(const char *own, const char *more, struct fault_plan *ret,
		      struct fault_error *ret_err)
{
	char text[PLAN_MAX];
	size_t skip = own && more ? strlen(own) + 1 : 0;

	memset(ret, 0, sizeof(*ret));
	if (!own && !more)
		return true;
	if (more && skip + strlen(more) >= PLAN_MAX) {
		*ret_err =
			(struct fault_error){ .why = "the text is too long" };
		return false;
	}
	strcpy(text, own ? own : "");
	strcat(text, skip ? ";" : "");
	strcat(text, more ? more : "");
	if (!fault_parse(ret, text, ret_err))
		return true;
	ret_err->at -= (uint32_t)skip;
	return false;
}

static bool find(const char *name, unsigned *ret_type, unsigned *ret_profile)
{
	const char *slash = strchr(name, '/');

	for (unsigned t = 0; slash && t < ARRAY_SIZE(types); t++) {
		if (strncmp(name, types[t].name, (size_t)(slash - name)))
			continue;
		for (unsigned i = 0; i < ARRAY_SIZE(profiles); i++) {
			if (strcmp(slash + 1, profiles[i].name))
				continue;
			*ret_type = t;
			*ret_profile = i;
			return true;
		}
	}
	return false;
}

bool sim_profile(const char *name, uint32_t msgs, const char *faults,
		 struct wl_config *ret, struct fault_error *ret_err)
{
	unsigned t, i;

	*ret_err = (struct fault_error){ .why = "no such profile" };
	if (!find(name, &t, &i))
		return false;
	memset(ret, 0, sizeof(*ret));
	ret->type = types[t].type;
	ret->msgs = msgs;
	ret->errors = profiles[i].errors;
	ret->direct = strncmp(profiles[i].name, "direct", 6) == 0;
	return make_plan(profiles[i].faults, faults, &ret->faults, ret_err);
}
