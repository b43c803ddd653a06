/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Turns, classes and events: hca_tx.c and hca_event.c. */
#include "core_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "core/obj/qp.h"

#define BURST 4

static struct rig rig;

static int open_rig(void **state)
{
	struct rig_config c = { .hca.burst_pkts = BURST };

	(void)state;
	rig_open(&rig, &c);
	return 0;
}

static int close_rig(void **state)
{
	(void)state;
	rig_close(&rig);
	return 0;
}

/* A UC QP whose frames go out in class sl. */
static void open_in_class(struct rig_pair *p, uint8_t sl)
{
	struct rig_pair_config c = { .type = QP_TYPE_UC,
				     .stop = QP_STATE_INIT };
	struct qp_attr a;
	uint32_t mask;

	rig_pair_open(p, &rig, &c);
	mask = rig_attrs(QP_TYPE_UC, QP_STATE_RTR, &p->e[1], &c, &a);
	a.ah.sl = sl;
	assert_int_equal(qp_modify(p->e[0].qp, &a, mask, 0), 0);
	mask = rig_attrs(QP_TYPE_UC, QP_STATE_RTS, &p->e[1], &c, &a);
	assert_int_equal(qp_modify(p->e[0].qp, &a, mask, 0), 0);
}

static void post(struct rig_pair *p, uint32_t len)
{
	struct send_wr wr = { .opcode = WR_SEND };

	assert_int_equal(rig_post_send(&p->e[0], wr, 0, len), 0);
}

static int sender(struct rig_pair *p, int n, uint32_t class_mask)
{
	struct rig_frame f;

	if (!rig_tx(&rig.h[0], class_mask, &f))
		return -1;
	for (int i = 0; i < n; i++)
		if (f.pkt.bth.dest_qpn == qp_num(p[i].e[1].qp))
			return i;
	fail();
	return -1;
}

/* QPs of one class take turns, a burst each. */
static void test_turns(void **state)
{
	struct rig_pair p[3];
	int sent[3] = { 0 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		open_in_class(&p[i], 0);
		post(&p[i], 40 * 1024);
	}
	for (int turn = 0; turn < 30; turn++) {
		int first = sender(p, 3, 1);

		for (int k = 1; k < BURST; k++)
			assert_int_equal(sender(p, 3, 1), first);
		assert_int_equal(first, turn % 3);
		sent[first] += BURST;
	}
	assert_int_equal(sent[0], 40);
	assert_int_equal(sent[1], 40);
	assert_int_equal(sender(p, 3, 1), -1);
	for (int i = 0; i < 3; i++)
		rig_pair_close(&p[i]);
}

/* Classes take turns; one that is not in the mask keeps its place and keeps
 * nobody waiting. */
static void test_classes(void **state)
{
	static const uint8_t sls[3] = { 0, 3, 15 };
	struct rig_pair p[3];
	int sent[3] = { 0 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		open_in_class(&p[i], sls[i]);
		post(&p[i], 24 * 1024);
	}
	for (int k = 0; k < 24; k++)
		sent[sender(p, 3, 0xffff)]++;
	assert_int_equal(sent[0], 8);
	assert_int_equal(sent[1], 8);
	assert_int_equal(sent[2], 8);
	for (int k = 0; k < 16; k++)
		assert_int_equal(sender(p, 3, 1u << 15), 2);
	assert_int_equal(sender(p, 3, 1u << 15), -1);
	assert_true(hca_tx_pending(rig.h[0].hca));
	assert_int_equal(sender(p, 3, 0), -1);
	for (int k = 0; k < 16; k++)
		assert_int_equal(sender(p, 3, 1u << 3), 1);
	for (int k = 0; k < 16; k++)
		assert_int_equal(sender(p, 3, 0xffff), 0);
	assert_int_equal(sender(p, 3, 0xffff), -1);
	assert_false(hca_tx_pending(rig.h[0].hca));
	for (int i = 0; i < 3; i++)
		rig_pair_close(&p[i]);
}

/* A UD QP's datagrams each go in the class of their AH, in order: a blocked
 * one holds up those behind it in the same QP, no other QP. */
static void test_ud_classes(void **state)
{
	struct rig_pair_config c = { .type = QP_TYPE_UD };
	struct rig_pair p;
	struct ah *ah[2];
	struct rig_frame f;

	(void)state;
	rig_pair_open(&p, &rig, &c);
	for (int i = 0; i < 2; i++) {
		struct ah_attr a = { .is_global = true,
				     .dgid = rig.h[1].gid,
				     .port_num = 1,
				     .traffic_class = (uint8_t)(0x20 * i + 3),
				     .sl = (uint8_t)(7 * i) };

		assert_int_equal(ah_create(p.e[0].pd, &a, &ah[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		struct send_wr wr = { .opcode = WR_SEND,
				      .ah = ah[i == 1 || i == 2],
				      .remote_qpn = 0x100u + (uint32_t)i };

		assert_int_equal(rig_post_send(&p.e[0], wr, 0, 0), 0);
	}
	assert_true(rig_tx(&rig.h[0], 1, &f));
	assert_int_equal(f.pkt.bth.dest_qpn, 0x100);
	assert_int_equal(f.tos, 0);		/* not ECT */
	assert_false(rig_tx(&rig.h[0], 1, &f)); /* the next is of class 7 */
	assert_true(hca_tx_pending(rig.h[0].hca));
	assert_true(rig_tx(&rig.h[0], 1 << 7, &f));
	assert_int_equal(f.pkt.bth.dest_qpn, 0x101);
	assert_int_equal(f.tos, 0x20);
	assert_int_equal(f.path.sl, 7);
	assert_true(rig_tx(&rig.h[0], 0xffff, &f));
	assert_true(rig_tx(&rig.h[0], 0xffff, &f));
	assert_int_equal(f.pkt.bth.dest_qpn, 0x103);
	assert_false(rig_tx(&rig.h[0], 0xffff, &f));
	for (int i = 0; i < 2; i++)
		assert_int_equal(ah_destroy(ah[i]), 0);
	rig_pair_close(&p);
}

static void test_counters(void **state)
{
	struct rig_pair p;

	(void)state;
	open_in_class(&p, 0);
	post(&p, 3001);
	post(&p, 0);
	while (sender(&p, 1, 1) == 0)
		;
	assert_int_equal(rig_counter(&rig.h[0], tx_pkts), 4);
	assert_int_equal(rig_counter(&rig.h[0], tx_payload_bytes), 3001);
	assert_int_equal(rig_counter(&rig.h[0], req_send_msgs), 2);
	assert_int_equal(rig_counter(&rig.h[0], req_msg_bytes), 3001);
	rig_pair_close(&p);
}

/* Events of one kind pend once; objects take turns; B064, B065: they name
 * their object and go with it. */
static void test_events(void **state)
{
	struct rig_pair a, b;
	struct hca_event ev;

	(void)state;
	open_in_class(&a, 0);
	open_in_class(&b, 0);
	qp_event(a.e[0].qp, ASYNC_QP_FATAL);
	qp_event(a.e[0].qp, ASYNC_QP_FATAL);
	qp_event(a.e[0].qp, ASYNC_COMM_EST);
	qp_event(b.e[0].qp, ASYNC_QP_REQ_ERR);
	ev = rig_event(&rig.h[0]);
	assert_ptr_equal(ev.qp, a.e[0].qp);
	assert_int_equal(ev.kind, HCA_EVENT_ASYNC);
	assert_null(ev.cq);
	assert_null(ev.srq);
	ev = rig_event(&rig.h[0]);
	assert_ptr_equal(ev.qp, b.e[0].qp);
	assert_int_equal(ev.type, ASYNC_QP_REQ_ERR);
	ev = rig_event(&rig.h[0]);
	assert_ptr_equal(ev.qp, a.e[0].qp);
	assert_true(rig_no_event(&rig.h[0]));
	qp_event(a.e[0].qp, ASYNC_QP_FATAL);
	qp_event(b.e[0].qp, ASYNC_QP_FATAL);
	rig_pair_close(&a);
	assert_ptr_equal(rig_event(&rig.h[0]).qp, b.e[0].qp);
	assert_true(rig_no_event(&rig.h[0]));
	rig_pair_close(&b);
}

static void expect_port(enum async_type type)
{
	struct hca_event ev = rig_event(&rig.h[0]);

	assert_int_equal(ev.kind, HCA_EVENT_ASYNC);
	assert_int_equal(ev.type, type);
	assert_int_equal(ev.port_num, 1);
	assert_null(ev.qp);
	assert_true(rig_no_event(&rig.h[0]));
}

static void test_port_events(void **state)
{
	struct hca *hca = rig.h[0].hca;
	struct gid_entry e = *hca_gid(hca, 0);

	(void)state;
	assert_true(rig_no_event(&rig.h[0])); /* none for what began so */
	hca_set_port(hca, PORT_STATE_ACTIVE, 1500);
	assert_true(rig_no_event(&rig.h[0]));
	hca_set_port(hca, PORT_STATE_DOWN, 1500);
	expect_port(ASYNC_PORT_ERR);
	assert_int_equal(hca_port_state(hca), PORT_STATE_DOWN);
	hca_set_port(hca, PORT_STATE_ACTIVE, 1500);
	expect_port(ASYNC_PORT_ACTIVE);
	assert_int_equal(hca_set_gid(hca, 0, &e), 0); /* the same */
	assert_true(rig_no_event(&rig.h[0]));
	assert_int_equal(hca_set_gid(hca, 5, &e), 0); /* a new one */
	expect_port(ASYNC_GID_CHANGE);
	e.gid = gid_from_v4(1);
	assert_int_equal(hca_set_gid(hca, 0, &e), 0);
	expect_port(ASYNC_GID_CHANGE);
	e.valid = false;
	assert_int_equal(hca_set_gid(hca, 0, &e), 0);
	expect_port(ASYNC_GID_CHANGE);
	assert_int_equal(hca_set_gid(hca, HCA_GIDS_MAX, &e), -EINVAL);
	assert_null(hca_gid(hca, HCA_GIDS_MAX));
	assert_int_equal(hca_set_pkey(hca, 0, 0x8001), 0);
	expect_port(ASYNC_PKEY_CHANGE);
}

static void *no_memory(void *ctx, size_t size, size_t align)
{
	(void)ctx;
	(void)size;
	(void)align;
	return NULL;
}

static void test_configs(void **state)
{
	static const struct hca_ops ops = { .alloc = no_memory };
	struct hca_config good = { .limits = hca_limits_default,
				   .link_layer = &link_layer_rocev2,
				   .node_guid = 1,
				   .qpn_bits = 16 };
	struct hca_config c;

	(void)state;
	assert_null(hca_new(&good, &ops, NULL, 0));
	/* Refused before memory is asked for: no ops at all. */
#define BAD(change)                                                            \
	do {                                                                   \
		c = good;                                                      \
		change;                                                        \
		assert_null(hca_new(&c, NULL, NULL, 0));                       \
	} while (0)
	BAD(c.link_layer = NULL);
	BAD(c.node_guid = 0);
	BAD(c.qpn_bits = 7);
	BAD(c.qpn_bits = 25);
	BAD(c.qpn_base = 0x100);
	BAD(c.qpn_base = 0x1000000);
	BAD(c.limits.max_qp = 0);
	BAD(c.limits.max_rd_atomic = 256);
	BAD(c.limits.gid_table_len = 257);
	BAD(c.limits.gid_table_len = 0);
	BAD(c.limits.pkey_table_len = 17);
	BAD(c.limits.max_sge_rd = 33);
	BAD(c.limits.max_msg_bytes = 1u << 31 | 1);
#undef BAD
}

#define RIGGED(t) cmocka_unit_test_setup_teardown(t, open_rig, close_rig)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIGGED(test_turns),
		RIGGED(test_classes),
		RIGGED(test_ud_classes),
		RIGGED(test_counters),
		RIGGED(test_events),
		RIGGED(test_port_events),
		cmocka_unit_test(test_configs),
	};

	return cmocka_run_group_tests_name("hca_tx", tests, NULL, NULL);
}
