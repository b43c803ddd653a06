/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * scenario_value.h - the values of scenario files: times, rates, sizes, and so
 * on, and mappings of named fields.
 */
#ifndef SOFTHCA_TOOLS_SCENARIO_VALUE_H
#define SOFTHCA_TOOLS_SCENARIO_VALUE_H

#include <stdbool.h>
#include <stdint.h>
#include <yaml.h>

/* A file being read; the first error stays. */
struct scn {
	const char *path;
	yaml_document_t doc;
	char *why;
	size_t room;
	bool failed;
};

enum scn_kind {
	SCN_TIME,   /* int64_t ns: 10us */
	SCN_RATE,   /* uint64_t bits per second: 100G, "gen3x16" */
	SCN_BYTES,  /* uint32_t: 64KiB, 12MB */
	SCN_BYTES8, /* uint64_t */
	SCN_U8,
	SCN_U32,
	SCN_U64,
	SCN_PPM,  /* uint32_t parts of a million: 1%, 250ppm */
	SCN_BOOL, /* bool */
	SCN_TEXT, /* char *, malloc'ed */
	SCN_NODE, /* yaml_node_t *: looked at by the caller */
};

struct scn_field {
	const char *name;
	enum scn_kind kind;
	size_t offset;
	const char *expects; /* for a message; NULL: by kind */
};

/* Says "PATH:LINE: ..." if nothing was said yet. Returns false. */
bool scn_fail(struct scn *s, const yaml_node_t *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Fills *ret from a mapping by these fields; what is not there keeps its
 * value. An unknown name is an error that lists the known ones. */
bool scn_mapping(struct scn *s, yaml_node_t *n, const struct scn_field *f,
		 size_t fields, void *ret);
/* One scalar. */
bool scn_value(struct scn *s, yaml_node_t *n, const struct scn_field *f,
	       void *ret);

/* The text of a scalar, or NULL. */
const char *scn_text(const yaml_node_t *n);
/* The i-th of a sequence, or the node itself when it is none and i is 0; NULL
 * past the end. */
yaml_node_t *scn_item(struct scn *s, yaml_node_t *n, size_t i);

#endif
