/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * script_line.c - the lexer and the small value parsers.
 */
#include "script_line.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(const struct line *l, const char *fmt, va_list ap)
{
	fprintf(stderr, "%s:%d: ", l->file, l->number);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
}

void line_error(const struct line *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(l, fmt, ap);
	va_end(ap);
	exit(2);
}

void line_fail(const struct line *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(l, fmt, ap);
	va_end(ap);
	exit(1);
}

static void add_word(struct line *l, char *text)
{
	struct word *w = &l->word[l->num_words];
	char *eq = strchr(text, '=');

	if (l->num_words++ == LINE_WORDS)
		line_error(l, "too many words");
	*w = (struct word){ .value = text };
	if (eq && eq != text && eq[1]) {
		*eq = '\0';
		w->key = text;
		w->value = eq + 1;
	}
}

void line_parse(struct line *l, char *text)
{
	char *save;

	l->cmd = NULL;
	l->num_words = 0;
	text[strcspn(text, "#\n")] = '\0';
	for (char *t = strtok_r(text, " \t", &save); t;
	     t = strtok_r(NULL, " \t", &save)) {
		if (!l->cmd)
			l->cmd = t;
		else
			add_word(l, t);
	}
}

const char *line_get(struct line *l, const char *key)
{
	const char *value = NULL;

	for (int i = 0; i < l->num_words; i++) {
		struct word *w = &l->word[i];

		if (!w->key || strcmp(w->key, key))
			continue;
		if (value)
			line_error(l, "%s given twice", key);
		w->used = true;
		value = w->value;
	}
	return value;
}

const char *line_word(struct line *l)
{
	for (int i = 0; i < l->num_words; i++) {
		struct word *w = &l->word[i];

		if (!w->key && !w->used) {
			w->used = true;
			return w->value;
		}
	}
	return NULL;
}

bool line_flag(struct line *l, const char *word)
{
	for (int i = 0; i < l->num_words; i++) {
		struct word *w = &l->word[i];

		if (!w->key && !w->used && !strcmp(w->value, word)) {
			w->used = true;
			return true;
		}
	}
	return false;
}

uint64_t line_num_of(const struct line *l, const char *text)
{
	char *end;
	uint64_t v;

	errno = 0;
	v = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-')
		line_error(l, "not a number: %s", text);
	return v;
}

uint64_t line_num(struct line *l, const char *key, uint64_t absent)
{
	const char *v = line_get(l, key);

	return v ? line_num_of(l, v) : absent;
}

int64_t line_time_of(const struct line *l, const char *text)
{
	static const struct {
		const char *unit;
		int64_t ns;
	} units[] = { { "ns", 1 },
		      { "us", 1000 },
		      { "ms", 1000000 },
		      { "s", 1000000000 } };
	char *end;
	unsigned long whole = strtoul(text, &end, 10);
	int64_t scale = 1, part = 0;

	if (end == text)
		line_error(l, "not a time: %s", text);
	if (*end == '.')
		for (end++; *end >= '0' && *end <= '9'; end++) {
			part = part * 10 + (*end - '0');
			scale *= 10;
		}
	for (unsigned i = 0; i < 4; i++)
		if (!strcmp(end, units[i].unit))
			return (int64_t)whole * units[i].ns +
			       part * units[i].ns / scale;
	line_error(l, "time without a unit (ns us ms s): %s", text);
}

int64_t line_time(struct line *l, const char *key)
{
	const char *v = line_get(l, key);

	return v ? line_time_of(l, v) : -1;
}

uint64_t line_name(const struct line *l, const char *text,
		   bool (*resolve)(void *, const char *, uint64_t *), void *ctx)
{
	char name[64];
	const char *plus = strchr(text, '+');
	size_t n = plus ? (size_t)(plus - text) : strlen(text);
	uint64_t v;

	if (*text >= '0' && *text <= '9')
		return line_num_of(l, text);
	if (n >= sizeof(name))
		line_error(l, "name too long: %s", text);
	memcpy(name, text, n);
	name[n] = '\0';
	if (!resolve(ctx, name, &v))
		line_error(l, "no such name: %s", name);
	return plus ? v + line_num_of(l, plus + 1) : v;
}

int line_enum(const struct line *l, const char *text, const char *const *table)
{
	for (int i = 0; table[i]; i++)
		if (!strcmp(table[i], text))
			return i;
	line_error(l, "unknown word: %s", text);
}

void line_done(const struct line *l)
{
	for (int i = 0; i < l->num_words; i++)
		if (!l->word[i].used)
			line_error(l, "not understood: %s%s%s",
				   l->word[i].key ? l->word[i].key : "",
				   l->word[i].key ? "=" : "", l->word[i].value);
}
