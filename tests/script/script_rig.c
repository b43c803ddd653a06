/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * script_rig.c - drives the core for a script.
 */
#include "script_rig.h"

#include <stdlib.h>
#include <string.h>

#include "../sim/sim_heap.h"

#define MEM_BYTES ((uint64_t)RIG_MRS * RIG_MR_ROOM + RIG_MR_ROOM)

void rig_init(struct rig *r, struct line *l)
{
	struct hca_config cfg = {
		.limits = hca_limits_default,
		.link_layer = &link_layer_rocev2,
		.seed = 1,
		.node_guid = 0x0200000000000001u,
		.qpn_base = 0x010000,
		.qpn_bits = 16,
		.burst_pkts = 16,
	};
	struct gid_entry gid = {
		.valid = true, .netdev = 1, .vlan = 0xffff, .mtu_bytes = 9000
	};

	memset(r, 0, sizeof(*r));
	r->self = gid_from_v4(0x0a000001);
	r->peer = gid_from_v4(0x0a000002);
	gid.gid = r->self;
	r->frames = calloc(RIG_FRAMES, sizeof(r->frames[0]));
	if (!r->frames ||
	    simmem_init(&r->mem, &sim_heap, RIG_MEM_BASE, MEM_BYTES))
		line_error(l, "out of memory");
	r->hca = hca_new(&cfg, &simmem_ops, &r->mem, 0);
	if (!r->hca)
		line_error(l, "no hca");
	if (hca_set_gid(r->hca, 0, &gid) || pd_create(r->hca, &r->pd) ||
	    pd_create(r->hca, &r->other_pd) ||
	    cq_create(r->hca, 256, NULL, &r->send_cq) ||
	    cq_create(r->hca, 256, NULL, &r->recv_cq))
		line_error(l, "set-up failed");
	hca_set_port(r->hca, PORT_STATE_ACTIVE, 9000);
}

void rig_fini(struct rig *r)
{
	hca_free(r->hca, true);
	simmem_fini(&r->mem);
	free(r->frames);
}

static void collect_events(struct rig *r)
{
	struct hca_event e;

	while (hca_event_next(r->hca, &e))
		r->events[r->next_event++ % 64] = e;
}

/* One frame of the core into the queue. */
static bool transmit(struct rig *r)
{
	struct rig_frame *f = &r->frames[r->next % RIG_FRAMES];
	static uint8_t buf[PKT_MAX + ICRC_BYTES];
	struct tx_frame tx = { .pkt = buf };

	if (r->next - r->first == RIG_FRAMES)
		return false;
	if (!hca_tx(r->hca, 0xffff, &tx, r->now_ns))
		return false;
	f->at_ns = r->now_ns;
	f->len_bytes = tx.len_bytes;
	f->tos = tx.tos;
	f->dst = tx.path->dgid;
	memcpy(f->bytes, buf, tx.len_bytes);
	hca_tx_done(r->hca, &tx);
	r->next++;
	return true;
}

static void settle(struct rig *r)
{
	hca_doorbells(r->hca, r->now_ns);
	if (hca_deadline(r->hca) <= r->now_ns)
		hca_advance(r->hca, r->now_ns);
	while (transmit(r))
		;
	collect_events(r);
}

void rig_run(struct rig *r, int64_t until_ns, bool stop)
{
	int64_t next;

	for (;;) {
		settle(r);
		if (stop && r->next != r->first)
			return;
		next = hca_deadline(r->hca);
		if (next > until_ns) {
			if (until_ns > r->now_ns)
				r->now_ns = until_ns;
			return;
		}
		r->now_ns = next > r->now_ns ? next : r->now_ns + 1;
	}
}

void rig_inject(struct rig *r, const uint8_t *pkt, uint32_t len,
		const struct gid *src, const struct gid *dst)
{
	struct rx_frame f = { .len_bytes = len,
			      .src = *src,
			      .dst = *dst,
			      .ttl = 64,
			      .sport = 0xc000 };
	uint8_t *exact = malloc(len ? len : 1);

	/* An allocation of just this size: sanitizers see a byte too far. */
	if (!exact)
		abort();
	memcpy(exact, pkt, len);
	f.pkt = exact;
	hca_rx(r->hca, &f, r->now_ns);
	free(exact);
	settle(r);
}

struct rig_frame *rig_frame_next(struct rig *r)
{
	if (r->first == r->next)
		return NULL;
	return &r->frames[r->first++ % RIG_FRAMES];
}

struct rig_mr *rig_mr_named(struct rig *r, const char *name)
{
	for (uint32_t i = 0; i < r->num_mrs; i++)
		if (!strcmp(r->mr[i].name, name))
			return &r->mr[i];
	return NULL;
}

bool rig_addr(void *ctx, const char *name, uint64_t *ret)
{
	struct rig_mr *m = rig_mr_named(ctx, name);

	if (m)
		*ret = m->iova;
	return m != NULL;
}

bool rig_key(void *ctx, const char *name, uint64_t *ret)
{
	struct rig_mr *m = rig_mr_named(ctx, name);

	if (m)
		*ret = m->key;
	return m != NULL;
}

bool rig_srqn(void *ctx, const char *name, uint64_t *ret)
{
	struct rig *r = ctx;
	struct srq *s = NULL;

	if (!strcmp(name, "own"))
		s = r->srq;
	else if (!strcmp(name, "other"))
		s = r->other_srq;
	if (s)
		*ret = srq_num(s);
	return s != NULL;
}
