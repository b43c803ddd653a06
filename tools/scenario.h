/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * scenario.h - a scenario file (YAML; docs/scenarios.md) as a description of a
 * world.
 */
#ifndef SOFTHCA_TOOLS_SCENARIO_H
#define SOFTHCA_TOOLS_SCENARIO_H

#include "sim/fabworld.h"

struct scenario {
	char *name, *about;
	int64_t duration_ns;
	struct fabworld_config world;
	/* What world's const pointers point to. */
	struct fabworld_host *host;
	struct fabworld_switch *sw;
	struct fabworld_cable *cable;
	struct fabworld_flow *flow;
};

/* Reads the file. NULL and a line for people, "FILE:LINE: ...", in ret_why. */
struct scenario *scenario_read(const char *path, char *ret_why, size_t room);
void scenario_free(struct scenario *s);

#endif
