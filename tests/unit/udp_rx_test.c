/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * udp_rx_test.c - what a link receives that no link of ours has sent: IDs and
 * DF of other stacks, damage, garbage, too much of it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "link/udp.h"
#include "link/udp_priv.h"
#include "private_net.h"
#include "udp_rig.h"
#include "wire/net.h"
#include "wire/pkt.h"

/* A sender with its own ideas of the IPv4 ID. */
struct foreign {
	int fd;
	struct rocev2_flow flow;
	struct sockaddr_in to;
};

static void foreign_open(struct foreign *s)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(0x7f000001) };
	socklen_t len = sizeof(a);

	s->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_return_code(bind(s->fd, (struct sockaddr *)&a, len), errno);
	getsockname(s->fd, (struct sockaddr *)&a, &len);
	s->flow = (struct rocev2_flow){ .src = lo4(),
					.dst = lo4(),
					.sport = ntohs(a.sin_port),
					.df = true };
	s->to = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_port = htons(ROCEV2_UDP_PORT),
				      .sin_addr.s_addr = htonl(0x7f000001) };
}

static void foreign_send(struct foreign *s, const uint8_t *p, size_t len)
{
	assert_int_equal(sendto(s->fd, p, len, 0, (struct sockaddr *)&s->to,
				sizeof(s->to)),
			 len);
}

static void foreign_frame(struct foreign *s, uint32_t psn, uint16_t id, bool df)
{
	uint8_t p[1000 + ICRC_BYTES];

	frame_build(p, QPN, psn, 1000);
	s->flow.ip_id = id;
	s->flow.df = df;
	rocev2_seal(&s->flow, p, 1000);
	foreign_send(s, p, sizeof(p));
}

static void test_foreign_ids(void **state)
{
	struct gid addr = lo4();
	struct pair *p = pair_new(&addr, true, true, false);
	const struct udp_link_counters *r = udp_link_counters(p->rx);
	struct foreign s;

	(void)state;
	foreign_open(&s);
	foreign_frame(&s, 0, 0x1234, true); /* unknown: accepted, counted */
	foreign_frame(&s, 1, 0x1235, true); /* counts on: exact */
	foreign_frame(&s, 2, 0x1236, true);
	foreign_frame(&s, 3, 0x1240, true); /* a gap */
	foreign_frame(&s, 4, 0x1241, true);
	foreign_frame(&s, 5, 0, true); /* what plain sockets send */
	pair_receive(p);
	assert_int_equal(r->rx_icrc_relaxed, 2);
	pair_check_all(p, 6);
	assert_int_equal(r->rx_bad_icrc, 0);
	close(s.fd);
	pair_free(p);
}

/* A source that never sets DF is as good; one that has set it is believed to
 * have stopped only when it is no single frame. */
static void test_foreign_df(void **state)
{
	struct gid addr = lo4();
	struct pair *p = pair_new(&addr, true, true, false);
	const struct udp_link_counters *r = udp_link_counters(p->rx);
	struct foreign s;

	(void)state;
	foreign_open(&s);
	foreign_frame(&s, 0, 0x1242, false);
	foreign_frame(&s, 1, 0x1243, false);
	foreign_frame(&s, 2, 0x1300, true);
	pair_receive(p);
	assert_int_equal(r->rx_icrc_relaxed, 3);
	for (uint16_t i = 1; i < UDP_DF_DOUBTS; i++)
		foreign_frame(&s, 99, 0x1300 + i, false);
	pair_receive(p);
	assert_int_equal(r->rx_bad_icrc, UDP_DF_DOUBTS - 1);
	foreign_frame(&s, 3, 0x1400, false);
	pair_receive(p);
	pair_check_all(p, 4);
	assert_int_equal(r->rx_bad_icrc, UDP_DF_DOUBTS - 1);
	close(s.fd);
	pair_free(p);
}

/* Every single bit of damage is found, also those that some ID with a DF of the
 * other sign would explain (docs/wire.md; byte of UDP's payload, bit). */
static void test_foreign_damage(void **state)
{
	static const unsigned unseen[2][2] = { { 173, 3 }, { 1834, 6 } };
	struct gid addr = lo4();
	struct pair *p = pair_new(&addr, false, false, false);
	const struct udp_link_counters *r = udp_link_counters(p->rx);
	uint8_t f[4096 + ICRC_BYTES];
	struct foreign s;
	uint16_t id;
	bool df;

	(void)state;
	foreign_open(&s);
	foreign_frame(&s, 0, 0x1234, true);
	for (unsigned i = 0; i < 2; i++) {
		frame_build(f, QPN, 99, 4096);
		rocev2_seal(&s.flow, f, 4096);
		f[unseen[i][0]] ^= (uint8_t)(1u << unseen[i][1]);
		assert_true(
			rocev2_icrc_ok_any_id(&s.flow, f, sizeof(f), &id, &df));
		foreign_send(&s, f, sizeof(f));
	}
	pair_receive(p);
	assert_int_equal(r->rx_bad_icrc, 2);
	pair_check_all(p, 1);
	close(s.fd);
	pair_free(p);
}

static void foreign_strict(void)
{
	struct gid addr = lo4();
	struct pair *p = pair_new(&addr, true, true, true);
	const struct udp_link_counters *r = udp_link_counters(p->rx);
	struct foreign s;

	foreign_open(&s);
	foreign_frame(&s, 99, 0x1234, true); /* refused, but learned */
	foreign_frame(&s, 0, 0x1235, true);
	foreign_frame(&s, 1, 0x1236, true);
	foreign_frame(&s, 99, 0x1237, false); /* no DF: refused */
	pair_receive(p);
	pair_check_all(p, 2);
	assert_int_equal(r->rx_bad_icrc, 2);
	assert_int_equal(r->rx_icrc_relaxed, 0);
	close(s.fd);
	pair_free(p);
}

/* The kernel picks the source port: what was learned about it must not depend
 * on where in a table it falls. */
static void test_foreign_ids_strict(void **state)
{
	(void)state;
	for (int i = 0; i < 300; i++)
		foreign_strict();
}

static void test_garbage(void **state)
{
	struct gid addr = lo4();
	struct pair *p = pair_new(&addr, false, false, false);
	const struct udp_link_counters *r = udp_link_counters(p->rx);
	static uint8_t zeros[UDP_RX_BUF_BYTES + 100];
	struct foreign s;
	uint8_t f[200 + ICRC_BYTES];

	(void)state;
	foreign_open(&s);
	foreign_send(&s, zeros, 0);
	foreign_send(&s, zeros, 3);
	foreign_send(&s, zeros, 12); /* BTH, no ICRC */
	foreign_send(&s, zeros, 17); /* odd */
	pair_receive(p);
	assert_int_equal(r->rx_short, 4);
	foreign_send(&s, zeros, UDP_RX_BUF_BYTES + 1);
	pair_receive(p);
	assert_int_equal(r->rx_truncated, 1);
	frame_build(f, QPN, 0, 200);
	s.flow.ip_id = 0;
	rocev2_seal(&s.flow, f, 200);
	for (unsigned i = 0; i < sizeof(f); i++) {
		if (i == 4) /* resv8a: not covered */
			continue;
		f[i] ^= 0x10;
		foreign_send(&s, f, sizeof(f));
		f[i] ^= 0x10;
		pair_receive(p);
	}
	assert_int_equal(r->rx_bad_icrc, sizeof(f) - 1);
	assert_int_equal(p->nseen, 0);
	foreign_send(&s, f, sizeof(f));
	pair_receive(p);
	pair_check_all(p, 1);
	close(s.fd);
	pair_free(p);
}

/* Lost in the receive buffer: the count tells, once something gets through
 * again; what was lost before add_rx is not counted. */
static void test_overflow(void **state)
{
	struct gid addr = lo4();
	struct pair *p = pair_new(&addr, false, false, true);
	const struct udp_link_counters *r = udp_link_counters(p->rx);
	unsigned first;

	(void)state;
	p->dest.peer_fd = -1;
	for (unsigned i = 0; i < 40; i++)
		assert_true(pair_add(p, 4108));
	assert_int_equal(udp_link_flush(p->tx), 0);
	udp_link_remove_rx(p->rx, p->fd);
	assert_int_equal(udp_link_add_rx(p->rx, p->fd, &addr), 0);
	pair_receive(p);
	first = p->nseen;
	assert_in_range(first, 20, 39);
	assert_true(pair_add(p, 4108));
	udp_link_flush(p->tx);
	pair_receive(p);
	assert_int_equal(r->rx_overflow, 0);
	for (unsigned i = 0; i < 40; i++)
		assert_true(pair_add(p, 4108));
	udp_link_flush(p->tx);
	pair_receive(p);
	assert_true(pair_add(p, 4108));
	udp_link_flush(p->tx);
	pair_receive(p);
	assert_int_equal(first + 1 + 40 - r->rx_overflow + 1, p->nseen);
	assert_true(r->rx_overflow > 0);
	/* That one says so, as if a switch had marked it; no other does. */
	for (unsigned i = 0; i < p->nseen; i++)
		assert_int_equal(p->seen[i].flow.tos & ECN_CE,
				 i + 1 == p->nseen ? ECN_CE : ECN_ECT0);
	pair_free(p);
}

/* Several receive sockets are served in turn, and the budget holds. */
static void test_fair(void **state)
{
	struct gid addr = lo4(), other = gid_from_v4(0x7f000002);
	struct pair *p = pair_new(&addr, false, false, true);
	struct rocev2_flow f = p->flow;
	struct udp_link_dest dest = { .peer_fd = -1 };
	int fd = pair_open_rx(&other, false);
	unsigned from_other = 0;

	(void)state;
	assert_int_equal(udp_link_add_rx(p->rx, fd, &other), 0);
	for (unsigned i = 0; i < 100; i++)
		assert_true(pair_add(p, 100));
	f.src = f.dst = other;
	for (unsigned i = 0; i < 100; i++) {
		frame_build(udp_link_tx_room(p->tx), QPN, 1000 + i, 100);
		udp_link_tx_add(p->tx, &f, &dest, 100);
	}
	assert_int_equal(udp_link_flush(p->tx), 0);
	assert_int_equal(udp_link_rx(p->rx, 10, pair_on_rx, p), 10);
	assert_int_equal(udp_link_rx(p->rx, 10, pair_on_rx, p), 10);
	for (unsigned i = 0; i < p->nseen; i++)
		from_other += gid_eq(&p->seen[i].flow.dst, &other);
	assert_int_equal(from_other, 10);
	pair_receive(p);
	assert_int_equal(p->nseen, 200);
	udp_link_remove_rx(p->rx, fd);
	close(fd);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_foreign_ids, pair_clean_up),
		cmocka_unit_test_teardown(test_foreign_df, pair_clean_up),
		cmocka_unit_test_teardown(test_foreign_damage, pair_clean_up),
		cmocka_unit_test_teardown(test_foreign_ids_strict,
					  pair_clean_up),
		cmocka_unit_test_teardown(test_garbage, pair_clean_up),
		cmocka_unit_test_teardown(test_overflow, pair_clean_up),
		cmocka_unit_test_teardown(test_fair, pair_clean_up),
	};

	private_net();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
