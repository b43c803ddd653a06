/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * sim_profile.h - kinds of rounds by name: "rc/loss5" is RC with 5 % loss.
 */
#ifndef SOFTHCA_TESTS_SIM_PROFILE_H
#define SOFTHCA_TESTS_SIM_PROFILE_H

#include "sim/workload.h"

/* Fills *ret from "type/faults"; false: no such name. */
bool sim_profile(const char *name, uint32_t msgs, struct wl_config *ret);

/* All fault names, NULL at the end. */
const char *sim_profile_faults(unsigned i);

#endif
