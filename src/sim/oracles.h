/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * oracles.h - what must be true of memory and messages, whatever the core
 * does. A model of its own: byte images of both hosts' memory and a list of
 * messages, in the order in which they were posted. Shares no code with the
 * core.
 *
 * image: every byte of a host's memory, as it must be. Changed only here: by
 * the workload filling buffers, and when a message is known to have taken
 * effect. Bytes of no message must never change.
 *
 * flow: one direction of one connection. Between `retired` (known to have
 * taken effect, in the image) and `posted` are messages of which any prefix,
 * and of the next one any part, may have reached the target. A byte of the
 * target is right when it is what one of these prefixes left there: writes
 * and atomics are executed in order and once [IBA 9.5, 10.8.3.3], so nothing
 * else is possible. A READ that is answered late may see later writes up to
 * the first fenced request [IBA 10.8.3.3, table 79].
 */
#ifndef SOFTHCA_SIM_ORACLES_H
#define SOFTHCA_SIM_ORACLES_H

#include "core/types.h"
#include "sim/simmem.h"

#define MSG_PIECES 4

/* The first failure of a run; what == NULL while there is none. */
struct verdict {
	const char *what;
	uint64_t a, b, c; /* what they are, `what` says */
	int64_t at_ns;
};

struct image {
	struct simmem *mem;
	uint8_t *bytes; /* mem->len_bytes of them */
};

struct piece { /* of a message in a buffer, offset into the image */
	uint64_t off;
	uint32_t len;
};

/* A message as the model knows it. */
struct msg {
	uint8_t kind; /* enum wr_opcode */
	bool signaled, fence, is_inline;
	bool from_read; /* payload is what the READ before it fetched */
	bool shared;	/* an atomic on the shared counter, not the target */
	bool received;	/* its receive completion was seen */
	uint8_t expect; /* enum wc_status when its turn comes */
	uint8_t num_pieces;
	struct piece piece[MSG_PIECES]; /* local buffer */
	uint32_t slot;			/* the workload's: local buffer */
	uint32_t len;
	uint32_t imm_be;
	uint64_t pattern;    /* payload = pattern_fill(pattern) */
	uint32_t target_off; /* into the target region */
	uint64_t compare_add, swap;
	uint64_t orig; /* atomics: what came back */
};

struct flow {
	struct image *src, *dst;
	uint64_t target_off; /* region in dst's image, 8-byte aligned */
	uint32_t target_bytes;
	bool ordered; /* RC; UC and UD lose, and by faults reorder */
	struct msg *msgs;
	uint32_t posted;     /* messages given to the core */
	uint32_t retired;    /* known to have succeeded; <= done */
	uint32_t done;	     /* completed, with success or error */
	uint32_t received;   /* next message that a receive can match */
	uint32_t conn_first; /* first message of this connection */
	uint8_t *cur, *ok;   /* scratch, scratch_bytes each */
	uint8_t *payload;    /* scratch, twice that */
	uint32_t scratch_bytes;
};

static inline bool msg_takes_receive(const struct msg *m)
{
	return m->kind == WR_SEND || m->kind == WR_SEND_IMM ||
	       m->kind == WR_WRITE_IMM;
}

static inline bool msg_writes(const struct msg *m)
{
	return m->kind == WR_WRITE || m->kind == WR_WRITE_IMM;
}

static inline bool msg_is_atomic(const struct msg *m)
{
	return m->kind == WR_CMP_SWAP || m->kind == WR_FETCH_ADD;
}

static inline bool msg_has_imm(const struct msg *m)
{
	return m->kind == WR_SEND_IMM || m->kind == WR_WRITE_IMM;
}

/* Records the first failure. */
void verdict_fail(struct verdict *v, int64_t now_ns, const char *what,
		  uint64_t a, uint64_t b, uint64_t c);

/* len reproducible bytes. */
void pattern_fill(uint64_t pattern, uint8_t *dst, uint32_t len);

/* Memory and image both become this. */
void image_set(struct image *im, uint64_t off, const uint8_t *src,
	       uint32_t len);
/* The image learns what the memory holds: bytes that cannot be known. */
void image_learn(struct image *im, uint64_t off, uint32_t len);
/* Do memory and image agree here? Else *ret_off is the first difference. */
bool image_same(const struct image *im, uint64_t off, uint64_t len,
		uint64_t *ret_off);

/* The payload of m, m->len bytes, into dst. */
void msg_payload(const struct flow *f, const struct msg *m, uint8_t *dst);

/* Message i is known to have succeeded; every earlier one was retired. Checks
 * its effect (target bytes, READ data, original value) and enters it into the
 * images. NULL, or what is wrong, with the offset in *ret_off. */
const char *flow_retire(struct flow *f, uint32_t i, uint64_t *ret_off);

/* Message i has arrived as a whole at the receiver: earlier writes (and i's
 * own) must be in place. */
const char *flow_arrived(struct flow *f, uint32_t i, uint64_t *ret_off);

/* Both QPs are dead: target bytes must be what some prefix left; the images
 * learn what happened. */
const char *flow_settle(struct flow *f, uint64_t *ret_off);

#endif
