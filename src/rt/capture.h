/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * capture.h - frames into a pcap file (`softhca run --capture FILE`).
 *
 * Link type Ethernet; the Ethernet, IP and UDP headers are rebuilt from the
 * flow. Each process writes what it sends and what it receives; several may
 * append to one file: records go out by O_APPEND writes of whole records.
 */
#ifndef SOFTHCA_RT_CAPTURE_H
#define SOFTHCA_RT_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "wire/rocev2.h"

struct capture;

/* Opens (creates) the file and writes the pcap header when it is empty.
 * Allocates the buffer. 0, -errno. Not from inside the engine. */
MUST_USE int capture_open(const char *path, struct capture **ret_c);
/* Flushes. NULL is allowed. */
void capture_close(struct capture *c);

/* The same without writing: what is buffered is not this process's. */
void capture_forget(struct capture *c);

/* Adds one frame: flow with IPv4 ID and DF as on the wire, pkt the len bytes
 * from BTH to ICRC. Has the type of udp_link_tap_fn (ctx is the capture).
 * Flushes by itself when the buffer is full. One thread at a time (the
 * engine); raw system calls, errno untouched. */
void capture_frame(void *ctx, bool tx, const struct rocev2_flow *flow,
		   const uint8_t *pkt, size_t len);

/* Writes what is buffered: call at the end of an engine visit. NULL is
 * allowed; nothing buffered costs nothing. */
void capture_flush(struct capture *c);

/* Records lost to a full disk and the like. */
uint64_t capture_lost(const struct capture *c);

#endif
