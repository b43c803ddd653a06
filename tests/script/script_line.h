/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * script_line.h - lines of a packet script: words and key=value fields.
 *
 * Strict: whatever a command does not take is an error with its line number,
 * and ends the program with status 2.
 */
#ifndef SOFTHCA_TESTS_SCRIPT_LINE_H
#define SOFTHCA_TESTS_SCRIPT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_WORDS 32

struct word {
	char *key;   /* "psn" of psn=1; NULL: a bare word */
	char *value; /* "1"; a bare word's text */
	bool used;
};

struct line {
	const char *file;
	int number;
	char *cmd; /* the first word; NULL: an empty line */
	struct word word[LINE_WORDS];
	int num_words;
};

/* What a name in a value stands for: "m" or "m+8". False: unknown. */
struct names {
	bool (*addr)(void *ctx, const char *name, uint64_t *ret);
	bool (*key)(void *ctx, const char *name, uint64_t *ret);
	void *ctx;
};

/* Prints file:line: message and exits with status 2: the script is wrong. */
_Noreturn void line_error(const struct line *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Prints file:line: message and exits with status 1: the core is wrong. */
_Noreturn void line_fail(const struct line *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Cuts text (changed) into words; '#' starts a comment. */
void line_parse(struct line *l, char *text);

/* The value of this key, marked as used, or NULL. */
const char *line_get(struct line *l, const char *key);
/* The next unused bare word, or NULL. */
const char *line_word(struct line *l);
/* Is this bare word present? */
bool line_flag(struct line *l, const char *word);
/* A number (decimal, 0x, or value when the key is absent). */
uint64_t line_num(struct line *l, const char *key, uint64_t absent);
uint64_t line_num_of(const struct line *l, const char *text);
/* A time with unit ns, us, ms or s; -1 when absent. */
int64_t line_time(struct line *l, const char *key);
int64_t line_time_of(const struct line *l, const char *text);
/* "name", "name+off" or a number, through resolve. */
uint64_t line_name(const struct line *l, const char *text,
		   bool (*resolve)(void *, const char *, uint64_t *),
		   void *ctx);
/* Position of text in a NULL-terminated table of names; an error if absent. */
int line_enum(const struct line *l, const char *text, const char *const *table);
/* Every word was used, or an error. */
void line_done(const struct line *l);

#endif
