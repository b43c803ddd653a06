/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cable_test.c - what a cable does to frames. */
#include "sim/cable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/rocev2.h"

#define GOT_MAX 4096

static struct world world;
static struct cable cable;
static struct {
	int64_t at_ns;
	uint32_t len, tag;
	uint8_t tos;
	bool whole; /* its ICRC is right */
} got[GOT_MAX];
static unsigned num_got;
static bool flow_v6; /* the next frames are IPv6 */

static void *heap_alloc(void *ctx, size_t bytes, size_t align)
{
	(void)ctx;
	(void)align;
	return calloc(1, bytes);
}

static void heap_free(void *ctx, void *p)
{
	(void)ctx;
	free(p);
}

static const struct sim_alloc heap = { heap_alloc, heap_free, NULL };

static void on_rx(void *ctx, const uint8_t *frame, uint32_t len, int64_t now)
{
	struct rocev2_flow flow;
	size_t sealed = 0, off;

	(void)ctx;
	assert_true(num_got < GOT_MAX);
	off = rocev2_decode_headers(&flow, frame, len, &sealed);
	got[num_got].at_ns = now;
	got[num_got].tos = flow.tos;
	got[num_got].len = len;
	got[num_got].whole = off && sealed > BTH_BYTES + 4 &&
			     rocev2_icrc_ok(&flow, frame + off, sealed);
	if (got[num_got].whole)
		memcpy(&got[num_got].tag, frame + off + BTH_BYTES, 4);
	num_got++;
}

static struct fault_plan *plan_of(const char *text)
{
	static struct fault_plan plan;
	struct fault_error err;

	assert_int_equal(fault_parse(&plan, text, &err), 0);
	return &plan;
}

static void start(const struct cable_config *cfg)
{
	num_got = 0;
	assert_int_equal(world_init(&world, &heap, 1, 2048), 0);
	assert_int_equal(cable_init(&cable, &world, cfg, "cable"), 0);
	for (unsigned i = 0; i < CABLE_ENDS; i++)
		cable.port[i].rx = on_rx;
}

static void stop(void)
{
	cable_fini(&cable);
	world_fini(&world);
}

/* A SEND ONLY whose payload begins with the tag. */
static void send_op(uint8_t opcode, uint32_t tag, uint32_t payload)
{
	static uint8_t frame[CABLE_FRAME_MAX];
	struct rocev2_flow flow = { .src = gid_from_v4(1),
				    .dst = gid_from_v4(2),
				    .sport = 0xc000,
				    .tos = 0xb8 | 2,
				    .df = true };
	struct pkt p = { .bth = { .opcode = opcode, .pkey = 0xffff } };
	size_t len = BTH_BYTES, off;

	if (flow_v6)
		flow.src.raw[0] = flow.dst.raw[0] = 0xfd;
	off = rocev2_overhead(&flow);
	memset(frame, 0, sizeof(frame));
	bth_encode(&p.bth, frame + off);
	memcpy(frame + off + BTH_BYTES, &tag, 4);
	len += payload;
	rocev2_seal(&flow, frame + off, len);
	rocev2_encode_headers(&flow, len + ICRC_BYTES, frame);
	cable_send(&cable, 0, frame, (uint32_t)(off + len + ICRC_BYTES));
}

static void send_tag(uint32_t tag)
{
	send_op(OP_SEND_ONLY, tag, 64);
}

static void run(void)
{
	while (world_step(&world, world.now_ns + 1000000000))
		;
}

static void latency_and_rate(void **state)
{
	struct cable_config cfg = { .latency_ns = 1000,
				    .ns_per_kib = 1024,
				    .frames = 16,
				    .backlog = 2 };
	uint32_t bytes;
	int64_t when = 0;

	(void)state;
	start(&cfg);
	send_tag(1);
	send_tag(2);
	run();
	bytes = got[0].len;
	assert_int_equal(num_got, 2);
	assert_int_equal(got[0].at_ns, 1000 + bytes);
	assert_int_equal(got[1].at_ns, 1000 + 2 * bytes);
	assert_true(got[0].whole && got[0].tag == 1 && got[1].tag == 2);
	/* Two KiB of backlog, then a pause until there is room again. */
	for (unsigned n = 0; cable_room(&cable, 0, &when); n++) {
		assert_true(n < 4);
		send_op(OP_SEND_ONLY, n, 1000);
	}
	assert_true(when > world.now_ns);
	world_step(&world, when);
	assert_true(cable_room(&cable, 0, &when));
	stop();
}

static void faults_by_rate(void **state)
{
	struct cable_config cfg = {
		.latency_ns = 1000,
		.frames = 1024,
		.faults = plan_of("drop=10%,dup=10%:0-50us,corrupt=10%,"
				  "reorder=10%:50us"),
	};
	const uint64_t *hit = cable.stats.hit;
	unsigned broken = 0, overtaken = 0;
	uint32_t last = 0;

	(void)state;
	start(&cfg);
	for (uint32_t i = 0; i < 1000; i++) {
		send_tag(i);
		world_step(&world, world.now_ns + 100);
	}
	run();
	for (unsigned i = 0; i < num_got; i++) {
		broken += !got[i].whole;
		if (!got[i].whole)
			continue;
		overtaken += got[i].tag < last;
		last = got[i].tag;
	}
	assert_in_range(hit[FAULT_DROP], 60, 140);
	assert_in_range(hit[FAULT_DUP], 50, 130);
	assert_int_equal(num_got, 1000 - hit[FAULT_DROP] + hit[FAULT_DUP]);
	assert_true(overtaken > 20);
	assert_in_range(broken, 50, 130);
	assert_int_equal(broken, hit[FAULT_CORRUPT]);
	stop();
}

static void rules_hit_the_nth(void **state)
{
	struct cable_config cfg = {
		.latency_ns = 10,
		.frames = 64,
		.faults = plan_of("drop,op=send,nth=2,count=2,dir=tx;"
				  "delay=500ns,op=ack,nth=1,dir=tx;"
				  "drop,dir=rx,count=100"),
	};
	static const uint32_t want[] = { 0, 2, 4, 1 };

	(void)state;
	start(&cfg);
	send_tag(0);
	send_op(OP_ACK, 1, 64);
	send_op(OP_ACK, 2, 64);
	send_tag(3);
	send_tag(3);
	send_tag(4);
	run();
	assert_int_equal(num_got, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(got[i].tag, want[i]);
	assert_int_equal(cable.stats.hit[FAULT_DROP], 2);
	assert_int_equal(cable.stats.hit[FAULT_DELAY], 1);
	stop();
}

/* In both kinds of IP header, and the ICRC stays right. */
static void congestion_is_marked(void **state)
{
	struct cable_config cfg = { .frames = 64, .faults = plan_of("ce") };

	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		start(&cfg);
		flow_v6 = v6;
		send_tag(0);
		run();
		assert_int_equal(num_got, 1);
		assert_true(got[0].whole);
		assert_int_equal(got[0].tos, 0xb8 | 3);
		stop();
	}
	flow_v6 = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(latency_and_rate),
		cmocka_unit_test(faults_by_rate),
		cmocka_unit_test(rules_hit_the_nth),
		cmocka_unit_test(congestion_is_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
