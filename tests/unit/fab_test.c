/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Fabrics of a few hosts in virtual time, held against arithmetic. */
#include "sim/fabflow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/fabswitch.h"

#define GBPS UINT64_C(1000000000)
#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define HOSTS_MAX 33
#define FLOWS_MAX 40
#define MEM_BYTES (1 << 20)

static long live;

static void *take(void *ctx, size_t bytes, size_t align)
{
	size_t n = (bytes + align - 1) / align * align;
	void *p = aligned_alloc(align, n ? n : align);

	(void)ctx;
	assert_non_null(p);
	live++;
	return memset(p, 0, n);
}

static void give(void *ctx, void *p)
{
	(void)ctx;
	if (!p)
		return;
	live--;
	free(p);
}

static const struct sim_alloc heap = { .alloc = take, .free = give };

/* A star: hosts around one switch, host i at port i. */
struct star {
	struct world w;
	struct fab fab;
	struct fabswitch sw;
	struct fabhost host[HOSTS_MAX];
	struct fabflow_end end[HOSTS_MAX];
	struct fabflow flow[FLOWS_MAX];
	uint32_t hosts, flows;
};

static struct gid gid_of(uint32_t i)
{
	struct gid g = { .raw = { [10] = 0xff,
				  [11] = 0xff,
				  [12] = 10,
				  [14] = (uint8_t)(i >> 8),
				  [15] = (uint8_t)i } };

	return g;
}

static uint32_t index_of(void *ctx, const struct gid *g)
{
	(void)ctx;
	return (uint32_t)g->raw[14] << 8 | g->raw[15];
}

static struct netswitch_config lossless_switch(uint32_t ports)
{
	return (struct netswitch_config){
		.ports = ports,
		.buffer_bytes = 32000000,
		.headroom_bytes = 40000,
		.beta_num = 8,
		.beta_den = 1,
		.lossy_num = 8,
		.lossy_den = 1,
		.strict_from = 6,
		.pause_ns = 800 * US,
		.seed = 1,
		.prio = { [3] = { .lossless = true } },
	};
}

static void star_init(struct star *s, uint32_t hosts,
		      const struct netswitch_config *sc, bool zero_headers,
		      const struct dcqcn_params *cc)
{
	struct fab_config fc = { .frames = 6000, .zero_headers = zero_headers };

	memset(s, 0, sizeof(*s));
	s->hosts = hosts;
	assert_int_equal(world_init(&s->w, &heap, 1, fc.frames + 1000), 0);
	assert_int_equal(fab_init(&s->fab, &s->w, &fc), 0);
	assert_int_equal(fabswitch_init(&s->sw, &s->fab, sc), 0);
	for (uint32_t i = 0; i < hosts; i++) {
		struct fabhost_config hc = {
			.hca = { .limits = hca_limits_default,
				 .link_layer = &link_layer_rocev2,
				 .seed = i + 1,
				 .node_guid = i + 1,
				 .qpn_bits = 16,
				 .cnp_sl = 6,
				 .cnp_dscp = 48 },
			.gid = gid_of(i),
			.index = i,
			.netdev_mtu = 9000,
			.mem_base = 0x10000,
			.mem_bytes = MEM_BYTES,
		};
		uint16_t port = (uint16_t)i;

		if (cc) {
			hc.hca.cc = &cc_dcqcn;
			hc.hca.cc_params = *cc;
		}
		assert_int_equal(fabhost_init(&s->host[i], &s->fab, &hc), 0);
		s->host[i].index_of = index_of;
		s->host[i].on_comp = fabflow_on_comp;
		assert_int_equal(fabflow_end_init(&s->end[i], &s->host[i]), 0);
		assert_int_equal(netswitch_route(s->sw.sw, i, &port, 1), 0);
	}
}

static void cable(struct star *s, uint32_t host, uint64_t rate_bps,
		  int64_t delay_ns)
{
	struct fab_cable c = { rate_bps, delay_ns };

	fab_connect(&s->host[host].node.port[0], &s->sw.node.port[host], &c);
}

static struct fabflow_config writes(uint32_t bytes, uint32_t depth,
				    int64_t stop_ns)
{
	return (struct fabflow_config){
		.type = QP_TYPE_RC,
		.opcode = WR_WRITE,
		.size = { { bytes, 1 } },
		.sizes = 1,
		.depth = depth,
		.stop_ns = stop_ns,
		.prio = 3,
		.mtu = MTU_1024,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
}

static struct fabflow *add_flow(struct star *s, uint32_t from, uint32_t to,
				const struct fabflow_config *c)
{
	struct fabflow *f = &s->flow[s->flows];

	assert_int_equal(fabflow_init(f, c, s->flows, &s->host[from],
				      &s->end[from], &s->host[to], &s->end[to]),
			 0);
	s->flows++;
	return f;
}

static void star_run(struct star *s, int64_t until_ns)
{
	while (world_step(&s->w, until_ns))
		;
}

static void star_fini(struct star *s)
{
	for (uint32_t i = 0; i < s->flows; i++)
		fabflow_fini(&s->flow[i]);
	for (uint32_t i = 0; i < s->hosts; i++)
		fabhost_fini(&s->host[i]);
	fabswitch_fini(&s->sw);
	fab_fini(&s->fab);
	world_fini(&s->w);
	assert_int_equal(live, 0);
	free(s);
}

static struct star *star_new(void)
{
	struct star *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	return s;
}

/* 100 Gb/s in, 25 out, for 100 us: 75 * 100,000 / 8 = 937,500 bytes wait, to
 * one packet, when headers are nothing. */
static void test_bottleneck(void **state)
{
	struct netswitch_config sc = lossless_switch(2);
	struct fabflow_config fc = writes(65536, 64, 100 * US);
	struct star *s = star_new();

	(void)state;
	star_init(s, 2, &sc, true, NULL);
	cable(s, 0, 100 * GBPS, 0);
	cable(s, 1, 25 * GBPS, 0);
	add_flow(s, 0, 1, &fc);
	star_run(s, 100 * US);
	assert_in_range(netswitch_used_bytes(s->sw.sw), 937500 - 1024,
			937500 + 1024);
	assert_int_equal(netswitch_counters(s->sw.sw)->marked, 0);
	star_fini(s);
}

/* The same with headers: frames of 1,024 bytes of payload are 1,024 + 16
 * (BTH, ICRC) + 28 (IPv4, UDP) + 38 (Ethernet) on the wire; the FIRST of each
 * 64 has a RETH of 16 more. */
static void test_bottleneck_headers(void **state)
{
	const int64_t message = 64 * (1024 + 16 + 28 + 38) + 16;
	const int64_t in = 100 * 100000 / 8, out = 25 * 100000 / 8;
	struct netswitch_config sc = lossless_switch(2);
	struct fabflow_config fc = writes(65536, 64, 100 * US);
	struct star *s = star_new();
	int64_t frames_in;

	(void)state;
	star_init(s, 2, &sc, false, NULL);
	cable(s, 0, 100 * GBPS, 0);
	cable(s, 1, 25 * GBPS, 0);
	add_flow(s, 0, 1, &fc);
	star_run(s, 100 * US);
	assert_in_range(netswitch_used_bytes(s->sw.sw), in - out - 1106,
			in - out + 1106);
	frames_in = (int64_t)netswitch_counters(s->sw.sw)->rx_frames;
	/* ACKs come in by the other port: fewer than one in 16 frames. */
	assert_in_range(frames_in, in * 64 / message - 1,
			in * 64 / message * 17 / 16 + 1);
	star_fini(s);
}

/* The four parts of a frame's life, one frame: 1,106 + 16 bytes at 10 Gb/s
 * twice, 500 ns of cable twice, nothing else. (fab_delivered checks the sum.)
 */
static void test_parts(void **state)
{
	struct netswitch_config sc = lossless_switch(2);
	struct fabflow_config fc = writes(1024, 1, 100 * US);
	struct star *s = star_new();
	int64_t data_ns = (1106 + 16) * 8 / 10;
	int64_t ack_ns = (38 + 28 + 12 + 4 + 4) * 8 / 10;

	(void)state;
	fc.count = 1;
	star_init(s, 2, &sc, false, NULL);
	cable(s, 0, 10 * GBPS, 500);
	cable(s, 1, 10 * GBPS, 500);
	add_flow(s, 0, 1, &fc);
	star_run(s, 10 * MS);
	assert_int_equal(s->flow[0].stats.completed, 1);
	assert_int_equal(s->fab.stats.delivered, 2);
	assert_in_range(s->fab.stats.part_ns[FAB_TRANSMISSION],
			2 * (data_ns + ack_ns) - 4, 2 * (data_ns + ack_ns) + 4);
	assert_int_equal(s->fab.stats.part_ns[FAB_PROPAGATION], 4 * 500);
	assert_int_equal(s->fab.stats.part_ns[FAB_QUEUEING], 0);
	assert_int_equal(s->fab.stats.part_ns[FAB_PROCESSING], 0);
	assert_in_range(s->flow[0].stats.time_ns,
			2 * (data_ns + ack_ns) + 2000 - 4,
			2 * (data_ns + ack_ns) + 2000 + 4);
	star_fini(s);
}

/* What hosts cost: 100 ns a frame and 16 Gb/s of bus bound a 100 Gb/s cable. */
static void test_processing(void **state)
{
	struct netswitch_config sc = lossless_switch(2);
	struct fabflow_config fc = writes(65536, 8, 1 * MS);
	struct star *s = star_new();
	uint64_t per_frame_ns = 100 + 1106 * 8 / 16;
	uint64_t want = 1000000 / per_frame_ns * 1024;

	(void)state;
	star_init(s, 2, &sc, false, NULL);
	for (int i = 0; i < 2; i++) {
		cable(s, (uint32_t)i, 100 * GBPS, 0);
		s->host[i].cfg.pkt_ns = 100;
		s->host[i].cfg.bus_bps = 16 * GBPS;
	}
	add_flow(s, 0, 1, &fc);
	star_run(s, 2 * MS);
	assert_in_range(s->flow[0].stats.bytes, want - want / 20,
			want + 10 * 65536);
	assert_true(s->fab.stats.part_ns[FAB_PROCESSING] > 0);
	star_fini(s);
}

/* Eight hosts into one, no congestion control: PFC keeps it lossless with the
 * headroom that the plan says, and with one frame less something is lost. */
static uint64_t incast_drops(uint32_t headroom_bytes)
{
	struct netswitch_config sc = lossless_switch(9);
	struct fabflow_config fc = writes(1 << 20, 2, 2 * MS);
	struct star *s = star_new();
	uint64_t drops;

	sc.buffer_bytes = 2000000;
	sc.headroom_bytes = headroom_bytes;
	sc.beta_num = 1;
	sc.beta_den = 16;
	star_init(s, 9, &sc, false, NULL);
	for (uint32_t i = 0; i < 9; i++)
		cable(s, i, 40 * GBPS, 1500);
	for (uint32_t i = 0; i < 8; i++)
		add_flow(s, i, 8, &fc);
	star_run(s, 4 * MS);
	assert_true(netswitch_counters(s->sw.sw)->xoff_sent > 8);
	drops = netswitch_counters(s->sw.sw)
			->dropped[NETSWITCH_DROP_NO_HEADROOM];
	for (uint32_t i = 0; i < 8; i++) {
		const struct hca_counters *c = hca_counters(s->host[i].hca);

		assert_int_equal(s->flow[i].stats.failed, 0);
		if (!drops)
			assert_int_equal(c->req_retransmits, 0);
	}
	star_fini(s);
	return drops;
}

static void test_headroom(void **state)
{
	uint32_t need = (uint32_t)netswitch_headroom(40 * GBPS, 1500, 1122, 0);

	(void)state;
	assert_int_equal(incast_drops(need), 0);
	assert_true(incast_drops(need - 1122 - 1122) > 0);
}

struct share { /* of the bottleneck, in a window of time */
	double jain, used;
	uint64_t drops, marked, queue_max;
};

/* n hosts write to one through a 40 Gb/s port, each over 40 Gb/s, with what the
 * paper recommends for switches and hosts. */
static struct share compete(uint32_t n, int64_t settle_ns, int64_t window_ns)
{
	struct netswitch_config sc = lossless_switch(n + 1);
	struct fabflow_config fc = writes(1 << 20, 2, INT64_MAX);
	struct star *s = star_new();
	struct share r = { 0 };
	double sum = 0, squares = 0;
	uint64_t before[HOSTS_MAX];

	sc.prio[3].ecn = true;
	sc.prio[3].kmin_bytes = 5000;
	sc.prio[3].kmax_bytes = 200000;
	sc.prio[3].pmax_ppm = 10000;
	star_init(s, n + 1, &sc, false, &dcqcn_paper);
	for (uint32_t i = 0; i <= n; i++)
		cable(s, i, 40 * GBPS, 1000);
	for (uint32_t i = 0; i < n; i++)
		add_flow(s, i, n, &fc);
	star_run(s, settle_ns);
	for (uint32_t i = 0; i < n; i++)
		before[i] = hca_counters(s->host[i].hca)->tx_payload_bytes;
	for (int64_t t = settle_ns; t < settle_ns + window_ns; t += 10 * US) {
		uint64_t q;

		star_run(s, t + 10 * US);
		q = netswitch_queue_bytes(s->sw.sw, n, 3);
		r.queue_max = q > r.queue_max ? q : r.queue_max;
	}
	for (uint32_t i = 0; i < n; i++) {
		double x = (double)(hca_counters(s->host[i].hca)
					    ->tx_payload_bytes -
				    before[i]);

		sum += x;
		squares += x * x;
	}
	r.jain = sum * sum / (n * squares);
	r.used = sum * 1106 / 1024 * 8 / (double)window_ns / 40;
	for (int d = 0; d < NETSWITCH_DROP_KINDS; d++)
		r.drops += netswitch_counters(s->sw.sw)->dropped[d];
	r.marked = netswitch_counters(s->sw.sw)->marked;
	star_fini(s);
	return r;
}

static void test_fair(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= 16; n *= 2) {
		struct share r = compete(n, 100 * MS, 100 * MS);

		print_message("%u flows: Jain %.4f, %.1f %% used, %.0f KB at "
			      "most queued, %.0f marked\n",
			      n, r.jain, r.used * 100,
			      (double)r.queue_max / 1000, (double)r.marked);
		assert_true(r.jain > 0.99);
		assert_true(r.used > 0.95);
		assert_int_equal(r.drops, 0);
	}
}

/* Same seed, same run. */
static void test_repeats(void **state)
{
	uint64_t digest[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct netswitch_config sc = lossless_switch(5);
		struct fabflow_config fc = writes(30000, 4, 300 * US);
		struct star *s = star_new();

		sc.prio[3].ecn = true;
		sc.prio[3].kmin_bytes = 5000;
		sc.prio[3].kmax_bytes = 200000;
		sc.prio[3].pmax_ppm = 10000;
		star_init(s, 5, &sc, false, &dcqcn_paper);
		for (uint32_t h = 0; h < 5; h++)
			cable(s, h, 40 * GBPS, 1000);
		for (uint32_t h = 0; h < 4; h++)
			add_flow(s, h, 4, &fc);
		star_run(s, 1 * MS);
		digest[i] =
			s->w.fired * 1000003 + (uint64_t)s->fab.stats.age_ns;
		star_fini(s);
	}
	assert_int_equal(digest[0], digest[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bottleneck),
		cmocka_unit_test(test_bottleneck_headers),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_processing),
		cmocka_unit_test(test_headroom),
		cmocka_unit_test(test_fair),
		cmocka_unit_test(test_repeats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
