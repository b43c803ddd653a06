/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sim_profile.h - kinds of rounds by name: "rc/loss5" is RC with 5 % loss.
 */
#ifndef SOFTHCA_TESTS_SIM_PROFILE_H
#define SOFTHCA_TESTS_SIM_PROFILE_H

#include "sim/workload.h"

/* Fills *ret from "type/faults", with more faults (docs/faults.md) or NULL.
 * False: no such name, or these faults are wrong; *ret_err says why. */
bool sim_profile(const char *name, uint32_t msgs, const char *faults,
		 struct wl_config *ret, struct fault_error *ret_err);

/* All fault names, NULL at the end. */
const char *sim_profile_faults(unsigned i);

#endif
