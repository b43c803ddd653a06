/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sim_report.h - what a simulated scenario came to: text, CSV, JSON, picture.
 */
#ifndef SOFTHCA_TOOLS_SIM_REPORT_H
#define SOFTHCA_TOOLS_SIM_REPORT_H

#include <stdio.h>

#include "tools/scenario.h"

/* The samples, a line of CSV each, and what must be remembered between them. */
struct sim_samples {
	FILE *csv;	     /* or NULL */
	uint64_t *tx_bytes;  /* by host, at the last sample */
	uint64_t *queue_max; /* bytes, by cable and end */
	uint64_t lines;
};

/* The description, normalised: every parameter, so that a report tells all. */
void sim_report_config(FILE *to, const struct scenario *s);

/* -ENOMEM. Writes the CSV's head. */
int sim_samples_init(struct sim_samples *m, const struct scenario *s,
		     FILE *csv);
/* A fabworld_sample_fn; the context is the struct sim_samples. */
void sim_samples_take(void *samples, const struct fabworld *fw, int64_t now_ns);
void sim_samples_fini(struct sim_samples *m);

void sim_report_text(FILE *to, const struct scenario *s,
		     const struct fabworld *fw, const struct sim_samples *m,
		     int64_t until_ns);
/* 0, -1 when it cannot be written. */
int sim_report_json(const char *path, const struct scenario *s,
		    const struct fabworld *fw, const struct sim_samples *m,
		    int64_t until_ns);
/* A picture (SVG, or PNG by its name) of the samples, by gnuplot. False: said
 * why. */
bool sim_report_plot(const char *path, const char *csv_path,
		     const struct scenario *s);

#endif
