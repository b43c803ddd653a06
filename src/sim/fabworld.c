/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fabworld.c - builds a fabric from its description and runs it. */
#include "sim/fabworld.h"

#include <errno.h>
#include <string.h>

#define FAR UINT32_MAX

struct cut { /* a cable that goes down and up, a host that crashes */
	struct world_event ev;
	struct fabworld *fw;
	uint32_t index;
	bool host;
};

struct fabworld {
	struct fabworld_config cfg;
	const struct sim_alloc *mem;
	struct world world;
	struct fab fab;
	struct fabhost *host;
	struct fabflow_end *end;
	struct fabswitch *sw;
	struct fabflow *flow;
	struct fab_port *(*port)[2]; /* by cable */
	struct cut *cut;
	uint32_t hosts, switches, flows, cuts; /* made so far */
	struct world_event sampler;
	fabworld_sample_fn sample;
	void *sample_ctx;
};

static void *zalloc(const struct sim_alloc *mem, uint32_t n, size_t size)
{
	return mem->alloc(mem->ctx, (n ? n : 1) * size, 64);
}

static struct gid host_gid(uint32_t i)
{
	struct gid g = { .raw = { [10] = 0xff,
				  [11] = 0xff,
				  [12] = 10,
				  [13] = (uint8_t)(i >> 16),
				  [14] = (uint8_t)(i >> 8),
				  [15] = (uint8_t)i } };

	return g;
}

static uint32_t index_of(void *ctx, const struct gid *g)
{
	const struct fabworld *fw = ctx;
	uint32_t i = (uint32_t)g->raw[13] << 16 | (uint32_t)g->raw[14] << 8 |
		     g->raw[15];

	return i < fw->cfg.hosts ? i : UINT32_MAX;
}

/* ---- nodes ---- */

static int make_host(struct fabworld *fw, uint32_t i)
{
	const struct fabworld_host *c = &fw->cfg.host[i];
	struct fabhost_config hc = {
		.hca = { .limits = hca_limits_default,
			 .link_layer = &link_layer_rocev2,
			 .seed = fw->cfg.seed * 1000003 + i,
			 .node_guid = i + 1,
			 .qpn_bits = 16,
			 .cc = c->cc ? &cc_dcqcn : NULL,
			 .cc_params = c->dcqcn,
			 .cnp_sl = 6,
			 .cnp_dscp = 48 },
		.gid = host_gid(i),
		.index = i,
		.netdev_mtu = fw->cfg.netdev_mtu,
		.mem_base = 0x10000,
		.mem_bytes = fw->cfg.mem_bytes,
		.pkt_ns = c->pkt_ns,
		.bus_bps = c->bus_bps,
		.lossless = fw->cfg.lossless,
		.rx_xoff_bytes = c->rx_xoff_bytes,
		.rx_max_bytes = c->rx_max_bytes,
		.pause_ns = 800000,
	};
	int rc = fabhost_init(&fw->host[i], &fw->fab, &hc);

	if (rc)
		return rc;
	fw->hosts++;
	fw->host[i].index_of = index_of;
	fw->host[i].index_ctx = fw;
	fw->host[i].on_comp = fabflow_on_comp;
	return fabflow_end_init(&fw->end[i], &fw->host[i]);
}

static uint32_t count_ports(const struct fabworld_config *c, uint32_t sw)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->cables; i++)
		for (int e = 0; e < 2; e++)
			n += c->cable[i].end[e].is_switch &&
			     c->cable[i].end[e].index == sw;
	return n;
}

static int make_switch(struct fabworld *fw, uint32_t i, const char **ret_why)
{
	struct netswitch_config c = fw->cfg.sw[i].cfg;
	int rc;

	c.ports = count_ports(&fw->cfg, i);
	c.seed = fw->cfg.seed * 7919 + i;
	*ret_why = netswitch_config_check(&c);
	if (*ret_why)
		return -EINVAL;
	rc = fabswitch_init(&fw->sw[i], &fw->fab, &c);
	if (!rc)
		fw->switches++;
	return rc;
}

static struct fab_port *take_port(struct fabworld *fw,
				  const struct fabworld_end *e)
{
	struct fab_node *n = e->is_switch ? &fw->sw[e->index].node
					  : &fw->host[e->index].node;

	for (uint32_t i = 0; i < n->ports; i++)
		if (!n->port[i].peer)
			return &n->port[i];
	return NULL;
}

static int make_cable(struct fabworld *fw, uint32_t i, const char **ret_why)
{
	const struct fabworld_cable *c = &fw->cfg.cable[i];

	for (int e = 0; e < 2; e++) {
		fw->port[i][e] = take_port(fw, &c->end[e]);
		if (!fw->port[i][e]) {
			*ret_why = "a host has two cables";
			return -EINVAL;
		}
		/* A cable from a host to itself would take its port twice. */
		if (e == 1 && fw->port[i][0] == fw->port[i][1]) {
			*ret_why = "a cable begins and ends at one port";
			return -EINVAL;
		}
		fw->port[i][e]->faults = c->faults[e];
		if (c->faults[e])
			fault_start(c->faults[e],
				    fw->cfg.seed + 2 * i + (uint32_t)e, 0);
	}
	fab_connect(fw->port[i][0], fw->port[i][1], &c->cable);
	return 0;
}

/* ---- routes ---- */

static uint32_t node_id(const struct fabworld *fw, const struct fabworld_end *e)
{
	return e->is_switch ? fw->cfg.hosts + e->index : e->index;
}

/* Distances of all nodes from host dst; hosts forward nothing. */
static void distances(const struct fabworld *fw, uint32_t dst, uint32_t *dist)
{
	const struct fabworld_config *c = &fw->cfg;
	bool more = true;

	for (uint32_t i = 0; i < c->hosts + c->switches; i++)
		dist[i] = FAR;
	dist[dst] = 0;
	while (more) {
		more = false;
		for (uint32_t i = 0; i < c->cables; i++) {
			for (int e = 0; e < 2; e++) {
				uint32_t a = node_id(fw, &c->cable[i].end[e]);
				uint32_t b = node_id(fw, &c->cable[i].end[!e]);

				if (dist[a] == FAR || dist[b] <= dist[a] + 1 ||
				    (a < c->hosts && a != dst))
					continue;
				dist[b] = dist[a] + 1;
				more = true;
			}
		}
	}
}

static int route_to(struct fabworld *fw, uint32_t dst, const uint32_t *dist)
{
	const struct fabworld_config *c = &fw->cfg;
	int rc = 0;

	for (uint32_t s = 0; s < c->switches && !rc; s++) {
		struct fab_node *n = &fw->sw[s].node;
		uint16_t ports[NETSWITCH_ECMP_MAX];
		uint32_t k = 0;

		for (uint32_t i = 0; i < c->cables; i++) {
			for (int e = 0; e < 2; e++) {
				uint32_t to = node_id(fw, &c->cable[i].end[!e]);

				if (fw->port[i][e]->node != n ||
				    k == NETSWITCH_ECMP_MAX)
					continue;
				if (dist[to] != FAR &&
				    dist[to] + 1 == dist[c->hosts + s])
					ports[k++] =
						(uint16_t)fw->port[i][e]->index;
			}
		}
		rc = netswitch_route(fw->sw[s].sw, dst, ports, k);
	}
	return rc;
}

/* Only hosts that flows end at are looked for, both ends: answers go back. */
static int make_routes(struct fabworld *fw, const char **ret_why)
{
	const struct fabworld_config *c = &fw->cfg;
	uint32_t *dist =
		zalloc(fw->mem, c->hosts + c->switches, sizeof(dist[0]));
	int rc = dist ? 0 : -ENOMEM;

	for (uint32_t d = 0; d < c->hosts && !rc; d++) {
		bool any = false;

		for (uint32_t f = 0; f < c->flows; f++)
			any |= c->flow[f].dst == d || c->flow[f].src == d;
		if (!any)
			continue;
		distances(fw, d, dist);
		for (uint32_t f = 0; f < c->flows && !rc; f++) {
			if (c->flow[f].dst == d &&
			    dist[c->flow[f].src] == FAR) {
				*ret_why = "a flow has no path";
				rc = -EINVAL;
			}
		}
		if (!rc)
			rc = route_to(fw, d, dist);
	}
	fw->mem->free(fw->mem->ctx, dist);
	return rc;
}

/* ---- time ---- */

static void on_sample(struct world_event *e, int64_t now_ns)
{
	struct fabworld *fw = CONTAINER_OF(e, struct fabworld, sampler);

	fw->sample(fw->sample_ctx, fw, now_ns);
	world_at(&fw->world, e, now_ns + fw->cfg.sample_ns);
}

static void on_cut(struct world_event *e, int64_t now_ns)
{
	struct cut *c = CONTAINER_OF(e, struct cut, ev);
	struct fabworld *fw = c->fw;

	if (c->host) {
		fw->host[c->index].crashed = true;
		return;
	}
	for (int i = 0; i < 2; i++)
		fw->port[c->index][i]->down =
			now_ns < fw->cfg.cable[c->index].up_ns;
	if (now_ns < fw->cfg.cable[c->index].up_ns)
		world_at(&fw->world, e, fw->cfg.cable[c->index].up_ns);
}

static void add_cut(struct fabworld *fw, bool host, uint32_t index,
		    int64_t at_ns)
{
	struct cut *c = &fw->cut[fw->cuts++];

	c->fw = fw;
	c->host = host;
	c->index = index;
	world_event_init(&c->ev, on_cut);
	world_at(&fw->world, &c->ev, at_ns);
}

static void make_cuts(struct fabworld *fw)
{
	const struct fabworld_config *c = &fw->cfg;

	for (uint32_t i = 0; i < c->cables; i++)
		if (c->cable[i].down_ns < c->cable[i].up_ns)
			add_cut(fw, false, i, c->cable[i].down_ns);
	for (uint32_t i = 0; i < c->hosts; i++)
		if (c->host[i].crash_ns != INT64_MAX)
			add_cut(fw, true, i, c->host[i].crash_ns);
	world_event_init(&fw->sampler, on_sample);
	if (c->sample_ns && fw->sample)
		world_at(&fw->world, &fw->sampler, 0);
}

/* ---- life ---- */

static bool alloc_all(struct fabworld *fw)
{
	const struct fabworld_config *c = &fw->cfg;

	fw->host = zalloc(fw->mem, c->hosts, sizeof(fw->host[0]));
	fw->end = zalloc(fw->mem, c->hosts, sizeof(fw->end[0]));
	fw->sw = zalloc(fw->mem, c->switches, sizeof(fw->sw[0]));
	fw->flow = zalloc(fw->mem, c->flows, sizeof(fw->flow[0]));
	fw->port = zalloc(fw->mem, c->cables, sizeof(fw->port[0]));
	fw->cut = zalloc(fw->mem, c->cables + c->hosts, sizeof(fw->cut[0]));
	return fw->host && fw->end && fw->sw && fw->flow && fw->port && fw->cut;
}

static int make(struct fabworld *fw, const char **ret_why)
{
	const struct fabworld_config *c = &fw->cfg;
	int rc = 0;

	for (uint32_t i = 0; i < c->hosts && !rc; i++)
		rc = make_host(fw, i);
	for (uint32_t i = 0; i < c->switches && !rc; i++)
		rc = make_switch(fw, i, ret_why);
	for (uint32_t i = 0; i < c->cables && !rc; i++)
		rc = make_cable(fw, i, ret_why);
	for (uint32_t i = 0; i < c->hosts && !rc; i++)
		if (!fw->host[i].node.port[0].peer) {
			*ret_why = "a host has no cable";
			rc = -EINVAL;
		}
	if (!rc)
		rc = make_routes(fw, ret_why);
	for (uint32_t i = 0; i < c->flows && !rc; i++) {
		const struct fabworld_flow *f = &c->flow[i];

		rc = fabflow_init(&fw->flow[i], &f->cfg, i, &fw->host[f->src],
				  &fw->end[f->src], &fw->host[f->dst],
				  &fw->end[f->dst]);
		if (rc)
			*ret_why = "the verbs refuse a flow";
		else
			fw->flows++;
	}
	return rc;
}

int fabworld_new(const struct fabworld_config *cfg, const struct sim_alloc *mem,
		 fabworld_sample_fn sample, void *sample_ctx,
		 struct fabworld **ret, const char **ret_why)
{
	struct fab_config fc = { .frames = cfg->frames,
				 .zero_headers = cfg->zero_headers };
	struct fabworld *fw = zalloc(mem, 1, sizeof(*fw));
	uint32_t events = cfg->frames + 8 * cfg->hosts + 4 * cfg->flows +
			  4 * cfg->cables + 2 * cfg->switches + 16;
	int rc;

	*ret_why = NULL;
	if (!fw)
		return -ENOMEM;
	fw->cfg = *cfg;
	fw->mem = mem;
	fw->sample = sample;
	fw->sample_ctx = sample_ctx;
	rc = world_init(&fw->world, mem, cfg->seed, events);
	if (rc) {
		mem->free(mem->ctx, fw);
		return rc;
	}
	rc = fab_init(&fw->fab, &fw->world, &fc);
	if (!rc)
		rc = alloc_all(fw) ? make(fw, ret_why) : -ENOMEM;
	if (rc) {
		fabworld_free(fw);
		return rc;
	}
	make_cuts(fw);
	*ret = fw;
	return 0;
}

static void release(struct fabworld *fw, void *p)
{
	if (p)
		fw->mem->free(fw->mem->ctx, p);
}

void fabworld_free(struct fabworld *fw)
{
	for (uint32_t i = 0; i < fw->flows; i++)
		fabflow_fini(&fw->flow[i]);
	for (uint32_t i = 0; i < fw->hosts; i++)
		fabhost_fini(&fw->host[i]);
	for (uint32_t i = 0; i < fw->switches; i++)
		fabswitch_fini(&fw->sw[i]);
	release(fw, fw->host);
	release(fw, fw->end);
	release(fw, fw->sw);
	release(fw, fw->flow);
	release(fw, fw->port);
	release(fw, fw->cut);
	if (fw->fab.frames)
		fab_fini(&fw->fab);
	world_fini(&fw->world);
	fw->mem->free(fw->mem->ctx, fw);
}

void fabworld_run(struct fabworld *fw, int64_t until_ns)
{
	while (world_step(&fw->world, until_ns))
		;
}

const struct fabworld_config *fabworld_config(const struct fabworld *fw)
{
	return &fw->cfg;
}

const struct fabflow *fabworld_flow(const struct fabworld *fw, uint32_t i)
{
	return &fw->flow[i];
}

const struct fabhost *fabworld_host(const struct fabworld *fw, uint32_t i)
{
	return &fw->host[i];
}

const struct fabswitch *fabworld_switch(const struct fabworld *fw, uint32_t i)
{
	return &fw->sw[i];
}

const struct fab_stats *fabworld_stats(const struct fabworld *fw)
{
	return &fw->fab.stats;
}

uint64_t fabworld_events(const struct fabworld *fw)
{
	return fw->world.fired;
}

const struct fab_port *fabworld_port(const struct fabworld *fw, uint32_t i,
				     unsigned e)
{
	return fw->port[i][e];
}
