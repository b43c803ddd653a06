/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fuzz_target.h - what each fuzz_<x>.c defines. libFuzzer or fuzz_replay.c
 * calls it; a fault found is an abort.
 */
#ifndef SOFTHCA_FUZZ_TARGET_H
#define SOFTHCA_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

/* One input of size bytes; always returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
