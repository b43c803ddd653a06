/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* scenario.c - hosts, switches, cables and flows out of a file. */
#include "tools/scenario.h"

#include <fnmatch.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/scenario_value.h"

#define LIST_MAX 65536
#define ROW(s, n, k, f)                                                        \
	{                                                                      \
		n, k, offsetof(struct s, f), NULL                              \
	}
#define FIELDS(a) (a), sizeof(a) / sizeof((a)[0])

/* What one item of a list says, before patterns are expanded. */
struct host_item {
	struct fabworld_host host;
	char *name, *cc;
	uint32_t count;
};

struct ecn_item {
	uint8_t prio;
	uint32_t kmin, kmax, pmax;
};

struct switch_item {
	struct fabworld_switch sw;
	char *name;
	yaml_node_t *lossless, *ecn;
	uint32_t beta;
};

struct cable_item {
	char *from, *to, *medium, *fault;
	uint64_t rate;
	int64_t delay, down, up;
	uint32_t length;
};

struct flow_item {
	char *name, *from, *to, *op, *type, *pattern;
	yaml_node_t *sizes;
	uint32_t mtu;
	struct fabflow_config cfg;
};

struct top {
	struct scenario *s;
	char *name, *about, *headers;
	yaml_node_t *hosts, *switches, *cables, *flows;
	int64_t duration, sample;
	uint64_t seed;
	uint32_t mtu, frames;
	struct scn *in;
};

/* ---- lists ---- */

/* Room for one more of this size in a malloc'ed array. */
static void *more(struct scn *in, void *array, uint32_t n, size_t size)
{
	void *p;

	if (n >= LIST_MAX) {
		scn_fail(in, NULL, "more than %d of a kind", LIST_MAX);
		return NULL;
	}
	p = realloc(array, (n + 1) * size);
	if (!p)
		scn_fail(in, NULL, "out of memory");
	return p;
}

#define APPEND(in, s, list, count, value)                                      \
	do {                                                                   \
		void *p_ = more(in, (s)->list, (s)->world.count,               \
				sizeof((s)->list[0]));                         \
		if (!p_)                                                       \
			return false;                                          \
		(s)->list = p_;                                                \
		(s)->list[(s)->world.count++] = (value);                       \
	} while (0)

/* ---- hosts ---- */

static bool one_host(struct top *t, yaml_node_t *at, struct host_item *h)
{
	struct scenario *s = t->s;
	const char *why;
	size_t off;
	char name[64];

	if (!h->name)
		return scn_fail(t->in, at, "a host needs a name");
	if (h->count < 1 || h->count > FABWORLD_HOSTS_MAX)
		return scn_fail(t->in, at, "count is 1 to %d",
				FABWORLD_HOSTS_MAX);
	if (h->cc && strcmp(h->cc, "none") != 0) {
		why = dcqcn_parse(h->cc, &h->host.dcqcn, &off);
		if (why)
			return scn_fail(t->in, at, "cc: at character %zu: %s",
					off + 1, why);
		h->host.cc = true;
	}
	for (uint32_t i = 0; i < h->count; i++) {
		if (h->count == 1)
			snprintf(name, sizeof(name), "%s", h->name);
		else
			snprintf(name, sizeof(name), "%.40s%u", h->name, i + 1);
		for (uint32_t k = 0; k < s->world.hosts; k++)
			if (strcmp(s->host[k].name, name) == 0)
				return scn_fail(t->in, at, "a second '%s'",
						name);
		h->host.name = strdup(name);
		APPEND(t->in, s, host, hosts, h->host);
	}
	return true;
}

static bool read_host(struct top *t, yaml_node_t *n)
{
	static const struct scn_field fields[] = {
		ROW(host_item, "name", SCN_TEXT, name),
		ROW(host_item, "count", SCN_U32, count),
		ROW(host_item, "cc", SCN_TEXT, cc),
		ROW(host_item, "pkt", SCN_TIME, host.pkt_ns),
		ROW(host_item, "bus", SCN_RATE, host.bus_bps),
		ROW(host_item, "rx_xoff", SCN_BYTES, host.rx_xoff_bytes),
		ROW(host_item, "rx_max", SCN_BYTES, host.rx_max_bytes),
		ROW(host_item, "crash", SCN_TIME, host.crash_ns),
	};
	struct host_item h = { .count = 1, .host.crash_ns = INT64_MAX };
	bool ok =
		scn_mapping(t->in, n, FIELDS(fields), &h) && one_host(t, n, &h);

	free(h.name);
	free(h.cc);
	return ok;
}

/* ---- switches ---- */

static bool read_ecn(struct top *t, yaml_node_t *n, struct netswitch_config *c)
{
	static const struct scn_field fields[] = {
		ROW(ecn_item, "prio", SCN_U8, prio),
		ROW(ecn_item, "kmin", SCN_BYTES, kmin),
		ROW(ecn_item, "kmax", SCN_BYTES, kmax),
		ROW(ecn_item, "pmax", SCN_PPM, pmax),
	};
	struct ecn_item e = { .prio = 3 };

	if (!scn_mapping(t->in, n, FIELDS(fields), &e))
		return false;
	if (e.prio >= NETSWITCH_PRIOS)
		return scn_fail(t->in, n, "prio is 0 to 7");
	c->prio[e.prio].ecn = true;
	c->prio[e.prio].kmin_bytes = e.kmin;
	c->prio[e.prio].kmax_bytes = e.kmax;
	c->prio[e.prio].pmax_ppm = e.pmax;
	return true;
}

static bool lossless_prios(struct top *t, yaml_node_t *n,
			   struct netswitch_config *c)
{
	static const struct scn_field field = { "lossless", SCN_U8, 0, NULL };
	yaml_node_t *item;
	uint8_t prio;

	for (size_t i = 0; (item = scn_item(t->in, n, i)); i++) {
		if (!scn_value(t->in, item, &field, &prio))
			return false;
		if (prio >= NETSWITCH_PRIOS)
			return scn_fail(t->in, item, "a priority is 0 to 7");
		c->prio[prio].lossless = true;
		t->s->world.lossless |= (uint8_t)(1u << prio);
	}
	return true;
}

static bool one_switch(struct top *t, yaml_node_t *at, struct switch_item *w)
{
	yaml_node_t *item;

	if (!w->name)
		return scn_fail(t->in, at, "a switch needs a name");
	w->sw.cfg.beta_num = w->beta;
	w->sw.cfg.beta_den = 1;
	if (w->lossless && !lossless_prios(t, w->lossless, &w->sw.cfg))
		return false;
	for (size_t i = 0; w->ecn && (item = scn_item(t->in, w->ecn, i)); i++)
		if (!read_ecn(t, item, &w->sw.cfg))
			return false;
	w->sw.name = strdup(w->name);
	APPEND(t->in, t->s, sw, switches, w->sw);
	return true;
}

static bool read_switch(struct top *t, yaml_node_t *n)
{
	static const struct scn_field fields[] = {
		ROW(switch_item, "name", SCN_TEXT, name),
		ROW(switch_item, "buffer", SCN_BYTES8, sw.cfg.buffer_bytes),
		ROW(switch_item, "headroom", SCN_BYTES, sw.cfg.headroom_bytes),
		ROW(switch_item, "xoff", SCN_BYTES, sw.cfg.xoff_bytes),
		ROW(switch_item, "beta", SCN_U32, beta),
		ROW(switch_item, "xon", SCN_BYTES, sw.cfg.xon_bytes),
		ROW(switch_item, "lossless", SCN_NODE, lossless),
		ROW(switch_item, "ecn", SCN_NODE, ecn),
		ROW(switch_item, "strict_from", SCN_U32, sw.cfg.strict_from),
		ROW(switch_item, "pause", SCN_TIME, sw.cfg.pause_ns),
		ROW(switch_item, "watchdog", SCN_TIME, sw.cfg.watchdog_ns),
		ROW(switch_item, "restore", SCN_TIME, sw.cfg.restore_ns),
	};
	struct switch_item w = { .beta = 8,
				 .sw.cfg = { .buffer_bytes = 12000000,
					     .lossy_num = 1,
					     .lossy_den = 1,
					     .strict_from = 6,
					     .pause_ns = 800000,
					     .restore_ns = 10000000 } };
	bool ok = scn_mapping(t->in, n, FIELDS(fields), &w) &&
		  one_switch(t, n, &w);

	free(w.name);
	return ok;
}

/* ---- cables ---- */

/* The next node that the pattern fits, from *at on: hosts, then switches. */
static bool match(const struct scenario *s, const char *pattern, uint32_t *at,
		  struct fabworld_end *ret)
{
	for (; *at < s->world.hosts + s->world.switches; ++*at) {
		bool sw = *at >= s->world.hosts;
		uint32_t i = sw ? *at - s->world.hosts : *at;

		if (fnmatch(pattern, sw ? s->sw[i].name : s->host[i].name, 0))
			continue;
		*ret = (struct fabworld_end){ sw, i };
		++*at;
		return true;
	}
	return false;
}

static struct fault_plan *plan(struct top *t, yaml_node_t *at, const char *text)
{
	struct fault_plan *p = calloc(1, sizeof(*p));
	struct fault_error e;

	if (p && fault_parse(p, text, &e) == 0)
		return p;
	if (p)
		scn_fail(t->in, at, "fault: '%.*s' at character %u: %s",
			 (int)e.len, text + e.at, e.at + 1, e.why);
	else
		scn_fail(t->in, at, "out of memory");
	free(p);
	return NULL;
}

static bool set_delay(struct top *t, yaml_node_t *at, struct cable_item *c)
{
	uint64_t m_per_s = 210000000; /* fibre */

	if (c->medium && strcmp(c->medium, "air") == 0)
		m_per_s = 300000000;
	else if (c->medium && strcmp(c->medium, "fibre") != 0)
		return scn_fail(t->in, at, "medium is air or fibre");
	if (c->length && c->delay)
		return scn_fail(t->in, at, "length and delay are both given");
	if (c->length)
		c->delay = (int64_t)((c->length * UINT64_C(1000000000) +
				      m_per_s / 2) /
				     m_per_s);
	if (!c->rate)
		return scn_fail(t->in, at, "a cable needs a rate");
	return true;
}

static bool one_cable(struct top *t, yaml_node_t *at, struct cable_item *c)
{
	struct scenario *s = t->s;
	uint32_t i = 0, k, before = s->world.cables;
	struct fabworld_end a, b;

	if (!c->from || !c->to)
		return scn_fail(t->in, at, "a cable needs from and to");
	if (!set_delay(t, at, c))
		return false;
	while (match(s, c->from, &i, &a)) {
		for (k = 0; match(s, c->to, &k, &b);) {
			struct fabworld_cable w = {
				.end = { a, b },
				.cable = { c->rate, c->delay },
				.down_ns = c->down,
				.up_ns = c->up,
			};

			if (a.is_switch == b.is_switch && a.index == b.index)
				continue;
			for (int e = 0; c->fault && e < 2; e++) {
				w.faults[e] = plan(t, at, c->fault);
				if (!w.faults[e])
					return false;
			}
			APPEND(t->in, s, cable, cables, w);
		}
	}
	if (s->world.cables == before)
		return scn_fail(t->in, at, "nothing is called %s and %s",
				c->from, c->to);
	return true;
}

static bool read_cable(struct top *t, yaml_node_t *n)
{
	static const struct scn_field fields[] = {
		ROW(cable_item, "from", SCN_TEXT, from),
		ROW(cable_item, "to", SCN_TEXT, to),
		ROW(cable_item, "rate", SCN_RATE, rate),
		ROW(cable_item, "delay", SCN_TIME, delay),
		{ "length", SCN_U32, offsetof(struct cable_item, length),
		  "a length in whole metres" },
		ROW(cable_item, "medium", SCN_TEXT, medium),
		ROW(cable_item, "fault", SCN_TEXT, fault),
		ROW(cable_item, "down", SCN_TIME, down),
		ROW(cable_item, "up", SCN_TIME, up),
	};
	struct cable_item c = { 0 };
	bool ok = scn_mapping(t->in, n, FIELDS(fields), &c) &&
		  one_cable(t, n, &c);

	free(c.from);
	free(c.to);
	free(c.medium);
	free(c.fault);
	return ok;
}

/* ---- flows ---- */

static bool set_words(struct top *t, yaml_node_t *at, struct flow_item *f)
{
	static const struct {
		const char *name;
		enum wr_opcode op;
	} ops[] = { { "send", WR_SEND },
		    { "write", WR_WRITE },
		    { "read", WR_READ },
		    { "fetch_add", WR_FETCH_ADD } };
	size_t i = 0;

	while (f->op && i < 4 && strcmp(f->op, ops[i].name) != 0)
		i++;
	if (!f->op || i == 4)
		return scn_fail(t->in, at,
				"op is send, write, read or fetch_add");
	f->cfg.opcode = ops[i].op;
	f->cfg.type = QP_TYPE_RC;
	if (f->type && strcmp(f->type, "uc") == 0)
		f->cfg.type = QP_TYPE_UC;
	else if (f->type && strcmp(f->type, "rc") != 0)
		return scn_fail(t->in, at, "type is rc or uc");
	if (f->cfg.opcode == WR_SEND && !f->cfg.receives)
		f->cfg.receives = 64;
	for (f->cfg.mtu = MTU_256; f->cfg.mtu <= MTU_4096; f->cfg.mtu++)
		if (128u << f->cfg.mtu == f->mtu)
			break;
	if (f->cfg.mtu > MTU_4096)
		return scn_fail(t->in, at,
				"mtu is 256, 512, 1024, 2048 or 4096");
	if (f->cfg.prio >= NETSWITCH_PRIOS)
		return scn_fail(t->in, at, "prio is 0 to 7");
	if (f->cfg.depth < 1 || f->cfg.depth > 4096)
		return scn_fail(t->in, at, "depth is 1 to 4096");
	return true;
}

/* "64KiB", or a list of "64KiB" and "1MiB: 3" (three times as often). */
static bool set_sizes(struct top *t, yaml_node_t *at, struct flow_item *f)
{
	static const struct scn_field size = { "size", SCN_BYTES, 0, NULL };
	static const struct scn_field weight = { "weight", SCN_U32, 0, NULL };
	yaml_node_t *n;

	if (!f->sizes)
		return scn_fail(t->in, at, "a flow needs a size");
	for (size_t i = 0; (n = scn_item(t->in, f->sizes, i)); i++) {
		struct fabflow_size *s = &f->cfg.size[f->cfg.sizes];
		yaml_node_pair_t *p = n->data.mapping.pairs.start;

		if (f->cfg.sizes == FABFLOW_SIZES_MAX)
			return scn_fail(t->in, n, "more than %d sizes",
					FABFLOW_SIZES_MAX);
		s->weight = 1;
		if (n->type == YAML_MAPPING_NODE &&
		    p < n->data.mapping.pairs.top) {
			yaml_document_t *d = &t->in->doc;

			if (!scn_value(t->in,
				       yaml_document_get_node(d, p->value),
				       &weight, &s->weight))
				return false;
			n = yaml_document_get_node(d, p->key);
		}
		if (!scn_value(t->in, n, &size, &s->bytes))
			return false;
		if (s->bytes > t->s->world.mem_bytes)
			t->s->world.mem_bytes = s->bytes;
		f->cfg.sizes++;
	}
	return true;
}

static bool wanted(const char *pattern, uint32_t a, uint32_t b, uint32_t hosts)
{
	if (a == b)
		return false;
	if (pattern && strcmp(pattern, "permutation") == 0)
		return b == (a + 1) % hosts;
	return true;
}

static bool one_flow(struct top *t, yaml_node_t *at, struct flow_item *f)
{
	struct scenario *s = t->s;
	uint32_t before = s->world.flows, i = 0, k;
	struct fabworld_end a, b;
	char name[160];

	if (!f->from || !f->to)
		return scn_fail(t->in, at, "a flow needs from and to");
	if (f->pattern && strcmp(f->pattern, "each") != 0 &&
	    strcmp(f->pattern, "permutation") != 0)
		return scn_fail(t->in, at, "pattern is each or permutation");
	if (!set_words(t, at, f) || !set_sizes(t, at, f))
		return false;
	while (match(s, f->from, &i, &a)) {
		for (k = 0; match(s, f->to, &k, &b);) {
			struct fabworld_flow w = { .src = a.index,
						   .dst = b.index,
						   .cfg = f->cfg };

			if (a.is_switch || b.is_switch ||
			    !wanted(f->pattern, a.index, b.index,
				    s->world.hosts))
				continue;
			snprintf(name, sizeof(name), "%s%s%s-%s",
				 f->name ? f->name : "", f->name ? ":" : "",
				 s->host[a.index].name, s->host[b.index].name);
			w.name = strdup(name);
			APPEND(t->in, s, flow, flows, w);
		}
	}
	if (s->world.flows == before)
		return scn_fail(t->in, at, "no hosts are called %s and %s",
				f->from, f->to);
	return true;
}

static bool read_flow(struct top *t, yaml_node_t *n)
{
	static const struct scn_field fields[] = {
		ROW(flow_item, "name", SCN_TEXT, name),
		ROW(flow_item, "from", SCN_TEXT, from),
		ROW(flow_item, "to", SCN_TEXT, to),
		ROW(flow_item, "pattern", SCN_TEXT, pattern),
		ROW(flow_item, "op", SCN_TEXT, op),
		ROW(flow_item, "type", SCN_TEXT, type),
		ROW(flow_item, "size", SCN_NODE, sizes),
		ROW(flow_item, "mtu", SCN_U32, mtu),
		ROW(flow_item, "depth", SCN_U32, cfg.depth),
		ROW(flow_item, "interval", SCN_TIME, cfg.interval_ns),
		ROW(flow_item, "count", SCN_U64, cfg.count),
		ROW(flow_item, "start", SCN_TIME, cfg.start_ns),
		ROW(flow_item, "stop", SCN_TIME, cfg.stop_ns),
		ROW(flow_item, "prio", SCN_U8, cfg.prio),
		ROW(flow_item, "timeout", SCN_U8, cfg.timeout),
		ROW(flow_item, "retry_cnt", SCN_U8, cfg.retry_cnt),
		ROW(flow_item, "rnr_retry", SCN_U8, cfg.rnr_retry),
		ROW(flow_item, "min_rnr_timer", SCN_U8, cfg.min_rnr_timer),
		ROW(flow_item, "receives", SCN_U32, cfg.receives),
		ROW(flow_item, "receive_delay", SCN_TIME, cfg.receive_delay_ns),
	};
	struct flow_item f = { .mtu = t->mtu,
			       .cfg = { .depth = 16,
					.stop_ns = INT64_MAX,
					.prio = 3,
					.timeout = 14,
					.retry_cnt = 7,
					.rnr_retry = 7,
					.min_rnr_timer = 12 } };
	bool ok =
		scn_mapping(t->in, n, FIELDS(fields), &f) && one_flow(t, n, &f);

	free(f.name);
	free(f.from);
	free(f.to);
	free(f.op);
	free(f.type);
	free(f.pattern);
	return ok;
}

/* ---- the whole ---- */

static bool each(struct top *t, yaml_node_t *list,
		 bool (*fn)(struct top *t, yaml_node_t *n))
{
	yaml_node_t *n;

	for (size_t i = 0; list && (n = scn_item(t->in, list, i)); i++)
		if (!fn(t, n))
			return false;
	return true;
}

static bool read_top(struct top *t, yaml_node_t *root)
{
	static const struct scn_field fields[] = {
		ROW(top, "name", SCN_TEXT, name),
		ROW(top, "about", SCN_TEXT, about),
		ROW(top, "seed", SCN_U64, seed),
		ROW(top, "duration", SCN_TIME, duration),
		ROW(top, "sample", SCN_TIME, sample),
		ROW(top, "headers", SCN_TEXT, headers),
		ROW(top, "mtu", SCN_U32, mtu),
		ROW(top, "frames", SCN_U32, frames),
		ROW(top, "hosts", SCN_NODE, hosts),
		ROW(top, "switches", SCN_NODE, switches),
		ROW(top, "cables", SCN_NODE, cables),
		ROW(top, "flows", SCN_NODE, flows),
	};
	struct fabworld_config *w = &t->s->world;

	if (!root)
		return scn_fail(t->in, NULL, "the file is empty");
	if (!scn_mapping(t->in, root, FIELDS(fields), t))
		return false;
	if (t->duration <= 0)
		return scn_fail(t->in, root, "a scenario needs a duration");
	if (!t->hosts || !t->cables || !t->flows)
		return scn_fail(t->in, root,
				"a scenario needs hosts, cables and flows");
	if (t->headers && strcmp(t->headers, "zero") != 0 &&
	    strcmp(t->headers, "real") != 0)
		return scn_fail(t->in, root, "headers is real or zero");
	if (t->frames < 1000 || t->frames > 4000000)
		return scn_fail(t->in, root, "frames is 1000 to 4000000");
	w->zero_headers = t->headers && strcmp(t->headers, "zero") == 0;
	w->seed = t->seed;
	w->sample_ns = t->sample;
	w->frames = t->frames;
	w->netdev_mtu = 9000;
	w->mem_bytes = 4096;
	t->s->duration_ns = t->duration;
	return each(t, t->hosts, read_host) &&
	       each(t, t->switches, read_switch) &&
	       each(t, t->cables, read_cable) && each(t, t->flows, read_flow);
}

static bool load(struct scn *in, FILE *file)
{
	yaml_parser_t p;
	bool ok;

	if (!yaml_parser_initialize(&p))
		return scn_fail(in, NULL, "out of memory");
	yaml_parser_set_input_file(&p, file);
	ok = yaml_parser_load(&p, &in->doc);
	if (!ok) {
		in->failed = true;
		snprintf(in->why, in->room, "%s:%zu: %s", in->path,
			 p.problem_mark.line + 1,
			 p.problem ? p.problem : "this is no YAML");
	}
	yaml_parser_delete(&p);
	return ok;
}

struct scenario *scenario_read(const char *path, char *ret_why, size_t room)
{
	struct scn in = { .path = path, .why = ret_why, .room = room };
	struct scenario *s = calloc(1, sizeof(*s));
	struct top t = {
		.s = s, .in = &in, .seed = 1, .mtu = 1024, .frames = 20000
	};
	FILE *file = fopen(path, "r");
	bool ok = false;

	if (!file || !s) {
		snprintf(ret_why, room, "%s: cannot be read", path);
	} else if (load(&in, file)) {
		ok = read_top(&t, yaml_document_get_root_node(&in.doc));
		yaml_document_delete(&in.doc);
	}
	if (file)
		fclose(file);
	free(t.headers);
	if (s) {
		s->name = t.name ? t.name : strdup(path);
		s->about = t.about;
		s->world.host = s->host;
		s->world.sw = s->sw;
		s->world.cable = s->cable;
		s->world.flow = s->flow;
	}
	if (!ok) {
		scenario_free(s);
		return NULL;
	}
	return s;
}

void scenario_free(struct scenario *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->world.hosts; i++)
		free((char *)(uintptr_t)s->host[i].name);
	for (uint32_t i = 0; i < s->world.switches; i++)
		free((char *)(uintptr_t)s->sw[i].name);
	for (uint32_t i = 0; i < s->world.flows; i++)
		free((char *)(uintptr_t)s->flow[i].name);
	for (uint32_t i = 0; i < s->world.cables; i++)
		for (int e = 0; e < 2; e++)
			free(s->cable[i].faults[e]);
	free(s->host);
	free(s->sw);
	free(s->cable);
	free(s->flow);
	free(s->name);
	free(s->about);
	free(s);
}
