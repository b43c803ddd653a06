/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sim_report.c - the numbers of a scenario. Times are virtual. */
#include "tools/sim_report.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cmd.h"

static const char *const part_names[FAB_PARTS] = {
	[FAB_QUEUEING] = "queueing",
	[FAB_TRANSMISSION] = "transmission",
	[FAB_PROPAGATION] = "propagation",
	[FAB_PROCESSING] = "processing",
};

static const char *end_name(const struct scenario *s,
			    const struct fabworld_end *e)
{
	return e->is_switch ? s->sw[e->index].name : s->host[e->index].name;
}

/* ---- the description ---- */

static void print_param(void *to, const char *name, uint64_t value)
{
	fprintf(to, " %s=%" PRIu64, name, value);
}

static void print_prios(FILE *to, const struct netswitch_config *c)
{
	for (unsigned i = 0; i < NETSWITCH_PRIOS; i++) {
		const struct netswitch_prio *p = &c->prio[i];

		if (p->lossless)
			fprintf(to, " prio%u=lossless", i);
		if (p->ecn)
			fprintf(to, " prio%u=ecn:%u..%uB:%uppm", i,
				p->kmin_bytes, p->kmax_bytes, p->pmax_ppm);
	}
}

static void print_nodes(FILE *to, const struct scenario *s)
{
	for (uint32_t i = 0; i < s->world.hosts; i++) {
		const struct fabworld_host *h = &s->host[i];

		fprintf(to,
			"# host %s pkt_ns=%" PRId64 " bus_bps=%" PRIu64
			" rx_xoff=%u rx_max=%u crash_ns=%" PRId64 " cc=%s",
			h->name, h->pkt_ns, h->bus_bps, h->rx_xoff_bytes,
			h->rx_max_bytes,
			h->crash_ns == INT64_MAX ? -1 : h->crash_ns,
			h->cc ? "dcqcn" : "none");
		if (h->cc)
			dcqcn_params_each(&h->dcqcn, print_param, to);
		fputc('\n', to);
	}
	for (uint32_t i = 0; i < s->world.switches; i++) {
		const struct netswitch_config *c = &s->sw[i].cfg;

		fprintf(to,
			"# switch %s buffer=%" PRIu64
			" headroom=%u xoff=%u beta=%u/%u xon=%u strict_from=%u"
			" pause_ns=%" PRId64 " watchdog_ns=%" PRId64
			" restore_ns=%" PRId64,
			s->sw[i].name, c->buffer_bytes, c->headroom_bytes,
			c->xoff_bytes, c->beta_num, c->beta_den, c->xon_bytes,
			c->strict_from, c->pause_ns, c->watchdog_ns,
			c->restore_ns);
		print_prios(to, c);
		fputc('\n', to);
	}
}

static void print_flow(FILE *to, const struct fabworld_flow *f)
{
	const struct fabflow_config *c = &f->cfg;

	fprintf(to, "# flow %s op=%u type=%s size=", f->name, c->opcode,
		c->type == QP_TYPE_RC ? "rc" : "uc");
	for (uint32_t k = 0; k < c->sizes; k++)
		fprintf(to, "%s%u*%u", k ? "," : "", c->size[k].bytes,
			c->size[k].weight);
	fprintf(to,
		" mtu=%u depth=%u interval_ns=%" PRId64 " count=%" PRIu64
		" start_ns=%" PRId64 " stop_ns=%" PRId64
		" prio=%u timeout=%u retry_cnt=%u rnr_retry=%u"
		" min_rnr_timer=%u receives=%u receive_delay_ns=%" PRId64 "\n",
		128u << c->mtu, c->depth, c->interval_ns, c->count, c->start_ns,
		c->stop_ns == INT64_MAX ? -1 : c->stop_ns, c->prio, c->timeout,
		c->retry_cnt, c->rnr_retry, c->min_rnr_timer, c->receives,
		c->receive_delay_ns);
}

void sim_report_config(FILE *to, const struct scenario *s)
{
	fprintf(to,
		"# scenario %s seed=%" PRIu64 " duration_ns=%" PRId64
		" sample_ns=%" PRId64 " headers=%s frames=%u\n",
		s->name, s->world.seed, s->duration_ns, s->world.sample_ns,
		s->world.zero_headers ? "zero" : "real", s->world.frames);
	print_nodes(to, s);
	for (uint32_t i = 0; i < s->world.cables; i++) {
		const struct fabworld_cable *c = &s->cable[i];

		fprintf(to,
			"# cable %s %s rate_bps=%" PRIu64 " delay_ns=%" PRId64
			" fault=%s down_ns=%" PRId64 " up_ns=%" PRId64 "\n",
			end_name(s, &c->end[0]), end_name(s, &c->end[1]),
			c->cable.rate_bps, c->cable.delay_ns,
			c->faults[0] ? "yes" : "no", c->down_ns, c->up_ns);
	}
	for (uint32_t i = 0; i < s->world.flows; i++)
		print_flow(to, &s->flow[i]);
}

/* ---- samples ---- */

static uint64_t port_queue(const struct fabworld *fw,
			   const struct fabworld_end *e,
			   const struct fab_port *p)
{
	uint64_t n = 0;

	for (uint8_t prio = 0; prio < NETSWITCH_PRIOS; prio++)
		n += netswitch_queue_bytes(fabworld_switch(fw, e->index)->sw,
					   p->index, prio);
	return n;
}

int sim_samples_init(struct sim_samples *m, const struct scenario *s, FILE *csv)
{
	*m = (struct sim_samples){ .csv = csv };
	m->tx_bytes = calloc(s->world.hosts + 1, sizeof(m->tx_bytes[0]));
	m->queue_max = calloc(2 * s->world.cables + 1, sizeof(m->queue_max[0]));
	if (!m->tx_bytes || !m->queue_max) {
		sim_samples_fini(m);
		return -ENOMEM;
	}
	if (!csv)
		return 0;
	fprintf(csv, "time_us");
	for (uint32_t i = 0; i < s->world.cables; i++)
		for (int e = 0; e < 2; e++)
			if (s->cable[i].end[e].is_switch)
				fprintf(csv, ",queue_KB:%s>%s",
					end_name(s, &s->cable[i].end[e]),
					end_name(s, &s->cable[i].end[!e]));
	for (uint32_t i = 0; i < s->world.hosts; i++)
		fprintf(csv, ",sent_Gbps:%s", s->host[i].name);
	for (uint32_t i = 0; i < s->world.flows; i++)
		fprintf(csv, ",rate_Gbps:%s", s->flow[i].name);
	for (uint32_t i = 0; i < s->world.switches; i++)
		fprintf(csv, ",marks:%s,pauses:%s", s->sw[i].name,
			s->sw[i].name);
	fputc('\n', csv);
	return 0;
}

void sim_samples_fini(struct sim_samples *m)
{
	free(m->tx_bytes);
	free(m->queue_max);
	*m = (struct sim_samples){ 0 };
}

static void sample_queues(struct sim_samples *m, const struct fabworld *fw)
{
	const struct fabworld_config *c = fabworld_config(fw);

	for (uint32_t i = 0; i < c->cables; i++) {
		for (unsigned e = 0; e < 2; e++) {
			const struct fabworld_end *end = &c->cable[i].end[e];
			uint64_t n;

			if (!end->is_switch)
				continue;
			n = port_queue(fw, end, fabworld_port(fw, i, e));
			if (n > m->queue_max[2 * i + e])
				m->queue_max[2 * i + e] = n;
			if (m->csv)
				fprintf(m->csv, ",%" PRIu64 ".%03" PRIu64,
					n / 1000, n % 1000);
		}
	}
}

static void print_gbps(FILE *to, uint64_t bps)
{
	fprintf(to, ",%" PRIu64 ".%03" PRIu64, bps / 1000000000,
		bps / 1000000 % 1000);
}

void sim_samples_take(void *samples, const struct fabworld *fw, int64_t now_ns)
{
	const struct fabworld_config *c = fabworld_config(fw);
	struct sim_samples *m = samples;

	m->lines++;
	if (m->csv)
		fprintf(m->csv, "%" PRId64 ".%03" PRId64, now_ns / 1000,
			now_ns % 1000);
	sample_queues(m, fw);
	if (!m->csv)
		return;
	for (uint32_t i = 0; i < c->hosts; i++) {
		uint64_t n = hca_counters(fabworld_host(fw, i)->hca)
				     ->tx_payload_bytes;

		print_gbps(m->csv, (n - m->tx_bytes[i]) * 8 * 1000000000 /
					   (uint64_t)c->sample_ns);
		m->tx_bytes[i] = n;
	}
	for (uint32_t i = 0; i < c->flows; i++) {
		uint64_t rate = fabflow_rate(fabworld_flow(fw, i));

		print_gbps(m->csv, rate ? rate
					: fabworld_flow(fw, i)
						   ->src->node.port[0]
						   .rate_bps);
	}
	for (uint32_t i = 0; i < c->switches; i++) {
		const struct netswitch_counters *n =
			netswitch_counters(fabworld_switch(fw, i)->sw);

		fprintf(m->csv, ",%" PRIu64 ",%" PRIu64, n->marked,
			n->xoff_sent);
	}
	fputc('\n', m->csv);
}

/* ---- the end ---- */

static double goodput_gbps(const struct fabworld_flow *f,
			   const struct fabflow_stats *s)
{
	int64_t ns = s->last_ns - f->cfg.start_ns;

	return ns > 0 ? (double)s->bytes * 8 / (double)ns : 0;
}

static double mean_us(const struct fabflow_stats *s)
{
	return s->completed ? (double)s->time_ns / (double)s->completed / 1000
			    : 0;
}

/* Jain's index of the goodputs of flows that had any. */
static double jain(const struct scenario *s, const struct fabworld *fw)
{
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < s->world.flows; i++) {
		double x =
			goodput_gbps(&s->flow[i], &fabworld_flow(fw, i)->stats);

		sum += x;
		squares += x * x;
	}
	return squares > 0 ? sum * sum / (s->world.flows * squares) : 0;
}

static void text_switches(FILE *to, const struct scenario *s,
			  const struct fabworld *fw)
{
	for (uint32_t i = 0; i < s->world.switches; i++) {
		const struct netswitch_counters *c =
			netswitch_counters(fabworld_switch(fw, i)->sw);

		fprintf(to,
			"switch %-10s %" PRIu64 " frames in, %" PRIu64
			" out, %" PRIu64 " marked, %" PRIu64
			" pauses begun, %" PRIu64 " received, %" PRIu64
			" storms; dropped:",
			s->sw[i].name, c->rx_frames, c->tx_frames, c->marked,
			c->xoff_sent, c->xoff_received, c->storms);
		for (int d = 0; d < NETSWITCH_DROP_KINDS; d++)
			if (c->dropped[d])
				fprintf(to, " %" PRIu64 " %s", c->dropped[d],
					netswitch_drop_name(
						(enum netswitch_drop)d));
		fputs("\n", to);
	}
}

static void text_hosts(FILE *to, const struct scenario *s,
		       const struct fabworld *fw)
{
	for (uint32_t i = 0; i < s->world.hosts; i++) {
		const struct fabhost *h = fabworld_host(fw, i);
		const struct hca_counters *c = hca_counters(h->hca);

		fprintf(to,
			"host %-12s %" PRIu64 " packets sent, %" PRIu64
			" again, %" PRIu64 " timeouts, %" PRIu64
			" sequence NAKs and %" PRIu64 " RNR NAKs got, %" PRIu64
			" CE marks seen, %" PRIu64 " CNPs sent, %" PRIu64
			" obeyed, %" PRIu64 " pauses got, %" PRIu64
			" frames lost for room\n",
			s->host[i].name, c->tx_pkts, c->req_retransmits,
			c->req_timeouts, c->req_seq_naks, c->req_rnr_naks,
			c->np_ecn_marked, c->np_cnp_sent, c->rp_cnp_handled,
			h->stats.pauses_rx, h->stats.rx_dropped);
	}
}

void sim_report_text(FILE *to, const struct scenario *s,
		     const struct fabworld *fw, const struct sim_samples *m,
		     int64_t until_ns)
{
	const struct fab_stats *fs = fabworld_stats(fw);

	fprintf(to, "\nafter %.3f us: %" PRIu64 " events\n",
		(double)until_ns / 1000, fabworld_events(fw));
	for (uint32_t i = 0; i < s->world.flows; i++) {
		const struct fabflow_stats *f = &fabworld_flow(fw, i)->stats;

		fprintf(to,
			"flow %-20s %8.3f Gb/s  %" PRIu64 " of %" PRIu64
			" messages done, %" PRIu64 " failed; %.3f us mean, "
			"%.3f us at most\n",
			s->flow[i].name, goodput_gbps(&s->flow[i], f),
			f->completed, f->posted, f->failed, mean_us(f),
			(double)f->time_max_ns / 1000);
	}
	if (s->world.flows > 1)
		fprintf(to, "Jain's index of all flows: %.4f\n", jain(s, fw));
	text_switches(to, s, fw);
	text_hosts(to, s, fw);
	for (uint32_t i = 0; i < s->world.cables; i++)
		for (int e = 0; e < 2; e++)
			if (m->queue_max[2 * i + (uint32_t)e])
				fprintf(to, "queue %s > %s: %.3f KB at most\n",
					end_name(s, &s->cable[i].end[e]),
					end_name(s, &s->cable[i].end[!e]),
					(double)m->queue_max[2 * i +
							     (uint32_t)e] /
						1000);
	fprintf(to,
		"frames: %" PRIu64 " delivered, %" PRIu64
		" lost on cables, %" PRIu64 " broken\n",
		fs->delivered, fs->lost, fs->spoilt);
	for (int i = 0; i < FAB_PARTS && fs->delivered; i++)
		fprintf(to, "  %-13s %10.3f us a frame\n", part_names[i],
			(double)fs->part_ns[i] / (double)fs->delivered / 1000);
	if (fs->starved)
		fprintf(to,
			"the pool of frames was empty %" PRIu64
			" times: give `frames` more\n",
			fs->starved);
}

static json_t *json_flows(const struct scenario *s, const struct fabworld *fw)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < s->world.flows; i++) {
		const struct fabflow_stats *f = &fabworld_flow(fw, i)->stats;

		json_array_append_new(
			list,
			json_pack("{s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:I}",
				  "name", s->flow[i].name, "posted",
				  (json_int_t)f->posted, "completed",
				  (json_int_t)f->completed, "failed",
				  (json_int_t)f->failed, "bytes",
				  (json_int_t)f->bytes, "gbps",
				  goodput_gbps(&s->flow[i], f), "mean_us",
				  mean_us(f), "max_ns",
				  (json_int_t)f->time_max_ns));
	}
	return list;
}

static json_t *json_switches(const struct scenario *s,
			     const struct fabworld *fw)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < s->world.switches; i++) {
		const struct netswitch_counters *c =
			netswitch_counters(fabworld_switch(fw, i)->sw);
		json_t *o = json_pack("{s:s, s:I}", "name", s->sw[i].name,
				      "used_bytes",
				      (json_int_t)netswitch_used_bytes(
					      fabworld_switch(fw, i)->sw));

#define SWITCH_JSON(field)                                                     \
	json_object_set_new(o, #field, json_integer((json_int_t)c->field));
		NETSWITCH_COUNTERS(SWITCH_JSON)
#undef SWITCH_JSON
		for (int d = 0; d < NETSWITCH_DROP_KINDS; d++)
			json_object_set_new(
				o, netswitch_drop_name((enum netswitch_drop)d),
				json_integer((json_int_t)c->dropped[d]));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *json_hosts(const struct scenario *s, const struct fabworld *fw)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < s->world.hosts; i++) {
		const struct hca_counters *c =
			hca_counters(fabworld_host(fw, i)->hca);
		json_t *o = json_pack("{s:s}", "name", s->host[i].name);

#define HOST_JSON(field)                                                       \
	json_object_set_new(o, #field, json_integer((json_int_t)c->field));
		HCA_COUNTERS(HOST_JSON)
#undef HOST_JSON
		json_array_append_new(list, o);
	}
	return list;
}

int sim_report_json(const char *path, const struct scenario *s,
		    const struct fabworld *fw, const struct sim_samples *m,
		    int64_t until_ns)
{
	const struct fab_stats *fs = fabworld_stats(fw);
	json_t *queues = json_array(), *root;
	int rc;

	for (uint32_t i = 0; i < 2 * s->world.cables; i++) {
		const struct fabworld_cable *c = &s->cable[i / 2];

		if (c->end[i % 2].is_switch)
			json_array_append_new(
				queues,
				json_pack("{s:s, s:s, s:I}", "at",
					  end_name(s, &c->end[i % 2]), "to",
					  end_name(s, &c->end[!(i % 2)]),
					  "max_bytes",
					  (json_int_t)m->queue_max[i]));
	}
	root = json_pack("{s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:f, s:I, s:I, "
			 "s:I}",
			 "scenario", s->name, "seed", (json_int_t)s->world.seed,
			 "time_ns", (json_int_t)until_ns, "flows",
			 json_flows(s, fw), "switches", json_switches(s, fw),
			 "hosts", json_hosts(s, fw), "queues", queues, "jain",
			 jain(s, fw), "delivered", (json_int_t)fs->delivered,
			 "lost", (json_int_t)fs->lost, "spoilt",
			 (json_int_t)fs->spoilt);
	for (int i = 0; root && i < FAB_PARTS; i++)
		json_object_set_new(root, part_names[i],
				    json_integer((json_int_t)fs->part_ns[i]));
	rc = root ? json_dump_file(root, path, JSON_INDENT(1)) : -1;
	json_decref(root);
	return rc;
}

/* One panel for each kind of column. */
static const struct panel {
	const char *prefix, *title;
} panels[] = { { "queue_KB:", "queued at switches, KB" },
	       { "sent_Gbps:", "sent by hosts, Gb/s of payload" },
	       { "rate_Gbps:", "allowed rate, Gb/s" },
	       { "pauses:", "pauses begun" },
	       { "marks:", "frames marked" } };

/* "plot" with every column whose name begins with the panel's prefix. */
static void plot_panel(FILE *g, const char *csv_path, const char *head,
		       const struct panel *p)
{
	size_t len = strlen(p->prefix);
	const char *at = head;
	unsigned column = 1;
	bool any = false;

	fprintf(g, "set ylabel '%s'\n", p->title);
	for (;; at++, column++) {
		size_t n = strcspn(at, ",\n");

		if (n > len && strncmp(at, p->prefix, len) == 0) {
			fprintf(g, "%s '%s' using 1:%u with lines title '%.*s'",
				any ? "," : "plot", csv_path, column,
				(int)(n - len), at + len);
			any = true;
		}
		at += n;
		if (*at != ',')
			break;
	}
	fputs(any ? "\n" : "set multiplot next\n", g);
}

/* The first line of the CSV, malloc'ed. */
static char *csv_head(const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;

	if (f && getline(&line, &room, f) < 0) {
		free(line);
		line = NULL;
	}
	if (f)
		fclose(f);
	return line;
}

bool sim_report_plot(const char *path, const char *csv_path,
		     const struct scenario *s)
{
	size_t n = strlen(path);
	bool png = n > 4 && strcmp(path + n - 4, ".png") == 0;
	char *head = csv_head(csv_path);
	FILE *g = head ? popen("gnuplot 2>/dev/null", "w") : NULL;
	int rc;

	if (!g) {
		complain("gnuplot cannot be started");
		free(head);
		return false;
	}
	fprintf(g, "set terminal %s size 1000,1400\nset output '%s'\n",
		png ? "pngcairo" : "svg", path);
	fprintf(g,
		"set datafile separator ','\nset key outside right noenhanced\n"
		"set title '%s' noenhanced\nset yrange [0:*]\nset grid\nset "
		"xlabel 'us'\n"
		"set multiplot layout 5,1\n",
		s->name);
	for (size_t i = 0; i < sizeof(panels) / sizeof(panels[0]); i++) {
		plot_panel(g, csv_path, head, &panels[i]);
		fputs("unset title\n", g);
	}
	fputs("unset multiplot\n", g);
	free(head);
	rc = pclose(g);
	if (rc)
		complain("gnuplot failed; is it installed?");
	return rc == 0;
}
