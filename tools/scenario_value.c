/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* scenario_value.c - scalars with units, and mappings. */
#include "tools/scenario_value.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
	const char *name;
	uint64_t num, den;
};

static const struct unit times[] = { { "ns", 1, 1 },
				     { "us", 1000, 1 },
				     { "ms", 1000000, 1 },
				     { "s", 1000000000, 1 },
				     { NULL, 0, 0 } };
static const struct unit rates[] = {
	{ "G", 1000000000, 1 }, { "Gb/s", 1000000000, 1 }, { "M", 1000000, 1 },
	{ "Mb/s", 1000000, 1 }, { "T", 1000000000000, 1 }, { NULL, 0, 0 }
};
static const struct unit sizes[] = { { "", 1, 1 },	 { "B", 1, 1 },
				     { "KB", 1000, 1 },	 { "MB", 1000000, 1 },
				     { "KiB", 1024, 1 }, { "MiB", 1 << 20, 1 },
				     { "K", 1024, 1 },	 { "M", 1 << 20, 1 },
				     { NULL, 0, 0 } };
static const struct unit parts[] = { { "%", 10000, 1 },
				     { "ppm", 1, 1 },
				     { NULL, 0, 0 } };
static const struct unit plain[] = { { "", 1, 1 }, { NULL, 0, 0 } };

bool scn_fail(struct scn *s, const yaml_node_t *at, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (s->failed)
		return false;
	s->failed = true;
	n = snprintf(s->why, s->room, "%s:%zu: ", s->path,
		     at ? at->start_mark.line + 1 : 1);
	if (n < 0 || (size_t)n >= s->room)
		return false;
	va_start(ap, fmt);
	vsnprintf(s->why + n, s->room - (size_t)n, fmt, ap);
	va_end(ap);
	return false;
}

const char *scn_text(const yaml_node_t *n)
{
	return n && n->type == YAML_SCALAR_NODE
		       ? (const char *)n->data.scalar.value
		       : NULL;
}

yaml_node_t *scn_item(struct scn *s, yaml_node_t *n, size_t i)
{
	yaml_node_item_t *item;

	if (n->type != YAML_SEQUENCE_NODE)
		return i == 0 ? n : NULL;
	item = n->data.sequence.items.start + i;
	return item < n->data.sequence.items.top
		       ? yaml_document_get_node(&s->doc, *item)
		       : NULL;
}

/* "12", "1.5" and a unit, exactly: up to nine digits after the point. */
static bool number(const char *text, const struct unit *units, uint64_t *ret)
{
	uint64_t whole, part = 0, scale = 1;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	whole = strtoull(text, &end, 10);
	if (errno)
		return false;
	if (*end == '.') {
		for (end++; *end >= '0' && *end <= '9' && scale < 1000000000;
		     end++) {
			part = part * 10 + (uint64_t)(*end - '0');
			scale *= 10;
		}
	}
	while (*end == ' ')
		end++;
	for (; units->name; units++) {
		if (strcmp(end, units->name) != 0)
			continue;
		if (whole > UINT64_MAX / 2 / units->num)
			return false;
		*ret = whole * units->num + part * units->num / scale;
		return part * units->num % scale == 0;
	}
	return false;
}

/* "gen4x16": what the lanes carry after their encoding, in bits per second. */
static bool pcie(const char *text, uint64_t *ret)
{
	static const uint64_t lane_mbps[] = { 2000, 4000, 7877, 15754, 31508 };
	unsigned gen, lanes;
	int used = 0;

	if (sscanf(text, "gen%ux%u%n", &gen, &lanes, &used) != 2 ||
	    text[used] || gen < 1 || gen > 5 || lanes < 1 || lanes > 32)
		return false;
	*ret = lane_mbps[gen - 1] * 1000000 * lanes;
	return true;
}

static bool boolean(const char *text, bool *ret)
{
	*ret = strcmp(text, "yes") == 0 || strcmp(text, "true") == 0;
	return *ret || strcmp(text, "no") == 0 || strcmp(text, "false") == 0;
}

static const char *expects(const struct scn_field *f)
{
	static const char *const texts[] = {
		[SCN_TIME] = "a time, as 10us (ns, us, ms, s)",
		[SCN_RATE] = "a rate, as 100G (M, G, T bits per second) or "
			     "gen3x16",
		[SCN_BYTES] = "a size below 4 GiB, as 64KiB (B, KB, MB, KiB, "
			      "MiB)",
		[SCN_BYTES8] = "a size, as 12MB (B, KB, MB, KiB, MiB)",
		[SCN_U8] = "a number up to 255",
		[SCN_U32] = "a number",
		[SCN_U64] = "a number",
		[SCN_PPM] = "a part, as 1% or 250ppm",
		[SCN_BOOL] = "yes or no",
		[SCN_TEXT] = "a text",
		[SCN_NODE] = "something else",
	};

	return f->expects ? f->expects : texts[f->kind];
}

static bool narrow(uint64_t v, uint64_t most, void *to, size_t size)
{
	if (v > most)
		return false;
	memcpy(to, &v, size); /* little-endian hosts, as all that we build on */
	return true;
}

static bool scalar(const char *t, enum scn_kind kind, void *to)
{
	uint64_t v;

	switch (kind) {
	case SCN_TIME:
		if (strcmp(t, "0") == 0)
			return narrow(0, 0, to, 8);
		return number(t, times, &v) && narrow(v, INT64_MAX, to, 8);
	case SCN_RATE:
		return (number(t, rates, &v) || pcie(t, &v)) &&
		       narrow(v, UINT64_MAX, to, 8);
	case SCN_BYTES:
		return number(t, sizes, &v) && narrow(v, UINT32_MAX, to, 4);
	case SCN_BYTES8:
		return number(t, sizes, &v) && narrow(v, UINT64_MAX, to, 8);
	case SCN_U8:
		return number(t, plain, &v) && narrow(v, 255, to, 1);
	case SCN_U32:
		return number(t, plain, &v) && narrow(v, UINT32_MAX, to, 4);
	case SCN_U64:
		return number(t, plain, &v) && narrow(v, UINT64_MAX, to, 8);
	case SCN_PPM:
		return number(t, parts, &v) && narrow(v, 1000000, to, 4);
	case SCN_BOOL:
		return boolean(t, to);
	case SCN_TEXT:
		free(*(char **)to);
		*(char **)to = strdup(t);
		return *(char **)to != NULL;
	case SCN_NODE:
		break;
	}
	return false;
}

bool scn_value(struct scn *s, yaml_node_t *n, const struct scn_field *f,
	       void *ret)
{
	void *to = (char *)ret + f->offset;
	const char *t = scn_text(n);

	if (f->kind == SCN_NODE) {
		*(yaml_node_t **)to = n;
		return true;
	}
	if (t && scalar(t, f->kind, to))
		return true;
	return scn_fail(s, n, "%s: %s%s%sis not %s", f->name, t ? "'" : "",
			t ? t : "this ", t ? "' " : "", expects(f));
}

static bool unknown(struct scn *s, const yaml_node_t *n,
		    const struct scn_field *f, size_t fields)
{
	char known[512] = "";
	size_t at = 0;

	for (size_t i = 0; i < fields && at < sizeof(known); i++)
		at += (size_t)snprintf(known + at, sizeof(known) - at, " %s",
				       f[i].name);
	return scn_fail(s, n, "'%s' is not known here; known are:%s",
			scn_text(n) ? scn_text(n) : "?", known);
}

bool scn_mapping(struct scn *s, yaml_node_t *n, const struct scn_field *f,
		 size_t fields, void *ret)
{
	yaml_node_pair_t *p;

	if (!n || n->type != YAML_MAPPING_NODE)
		return scn_fail(s, n, "expected names and values");
	for (p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top;
	     p++) {
		yaml_node_t *key = yaml_document_get_node(&s->doc, p->key);
		yaml_node_t *value = yaml_document_get_node(&s->doc, p->value);
		const char *name = scn_text(key);
		size_t i = 0;

		while (i < fields && name && strcmp(f[i].name, name) != 0)
			i++;
		if (!name || i == fields)
			return unknown(s, key, f, fields);
		if (!scn_value(s, value, &f[i], ret))
			return false;
	}
	return true;
}
