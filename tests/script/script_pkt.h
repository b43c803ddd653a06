/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * script_pkt.h - packets described by field names, both ways.
 */
#ifndef SOFTHCA_TESTS_SCRIPT_PKT_H
#define SOFTHCA_TESTS_SCRIPT_PKT_H

#include "script_rig.h"

/* "> RC_SEND_ONLY psn=1 ...": hands the packet to the core. */
void script_inject(struct rig *r, struct line *l);

/* "< RC_ACK psn=1 ...": takes the next frame and compares each field that is
 * given. */
void script_expect(struct rig *r, struct line *l);

/* "LEN", "LEN:SEED" or "LEN:SEED@OFF" -> bytes of the pattern. */
uint32_t script_bytes(const struct line *l, const char *text, uint8_t *dst,
		      uint32_t room);

/* The field's value as a GID, an IPv4 address; *gid stays when there is none.
 */
void script_gid(struct line *l, const char *key, struct gid *gid);

#endif
