/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* udp_rig.c - two links over loopback, for tests. */
#define _GNU_SOURCE
#include "udp_rig.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "link/udp_priv.h"
#include "wire/pkt.h"

/* Not yet freed: a failed test must not leave its sockets to the next. */
static struct pair *live[4];

unsigned pair_notes;

static void note(const char *text)
{
	(void)text;
	pair_notes++;
}

int pair_open_rx(const struct gid *addr, bool gro)
{
	bool v4 = gid_is_v4(addr);
	struct sockaddr_in a4 = { .sin_family = AF_INET,
				  .sin_port = htons(ROCEV2_UDP_PORT) };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6,
				   .sin6_port = htons(ROCEV2_UDP_PORT) };
	int on = 1, merge = gro;
	int fd = socket(v4 ? AF_INET : AF_INET6,
			SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	a4.sin_addr.s_addr = v4 ? htonl(gid_v4(addr)) : 0;
	memcpy(&a6.sin6_addr, addr->raw, 16);
	assert_return_code(
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)),
		errno);
	assert_return_code(
		bind(fd, v4 ? (struct sockaddr *)&a4 : (struct sockaddr *)&a6,
		     v4 ? sizeof(a4) : sizeof(a6)),
		errno);
	setsockopt(fd, IPPROTO_UDP, UDP_GRO, &merge, sizeof(merge));
	setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof(on));
	setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof(on));
	setsockopt(fd, IPPROTO_IP, IP_RECVTTL, &on, sizeof(on));
	setsockopt(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, &on, sizeof(on));
	setsockopt(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, &on, sizeof(on));
	return fd;
}

static void on_tap(void *ctx, bool tx, const struct rocev2_flow *flow,
		   const uint8_t *pkt, size_t len)
{
	struct pair *p = ctx;
	struct bth bth;

	bth_decode(&bth, pkt);
	assert_true(tx);
	/* The tap's ID and DF make the ICRC right. */
	assert_true(rocev2_icrc_ok(flow, pkt, len));
	assert_true(p->ntapped < SEEN_MAX);
	p->tapped[p->ntapped++] =
		(struct seen){ .flow = *flow, .psn = bth.psn.v, .len = len };
}

struct pair *pair_new(const struct gid *addr, bool segment, bool gro,
		      bool strict)
{
	struct udp_link_config cfg = { .segment = segment,
				       .gro = gro,
				       .icrc_strict = strict,
				       .note = note,
				       .send_sockets = 2 };
	struct pair *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	p->addr = *addr;
	p->fd = pair_open_rx(addr, gro);
	p->dest.peer_fd = p->fd;
	p->flow = (struct rocev2_flow){
		.src = *addr, .dst = *addr, .sport = 0xc005, .tos = 2, .ttl = 64
	};
	assert_int_equal(udp_link_new(&cfg, &p->tx), 0);
	assert_int_equal(udp_link_new(&cfg, &p->rx), 0);
	assert_int_equal(udp_link_add_rx(p->rx, p->fd, addr), 0);
	udp_link_set_tap(p->tx, on_tap, p);
	for (unsigned i = 0; i < ARRAY_SIZE(live); i++)
		if (!live[i]) {
			live[i] = p;
			break;
		}
	return p;
}

void pair_free(struct pair *p)
{
	udp_link_remove_rx(p->rx, p->fd);
	udp_link_free(p->tx);
	udp_link_free(p->rx);
	close(p->fd);
	for (unsigned i = 0; i < ARRAY_SIZE(live); i++)
		if (live[i] == p)
			live[i] = NULL;
	free(p);
}

int pair_clean_up(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(live); i++)
		if (live[i])
			pair_free(live[i]);
	return 0;
}

void frame_build(uint8_t *room, uint32_t qpn, uint32_t psn, size_t len)
{
	struct bth bth = { .opcode = OPCODE(TRANSPORT_UC, OP_SEND_MIDDLE),
			   .pkey = BTH_PKEY_DEFAULT,
			   .dest_qpn = qpn,
			   .psn = psn_of(psn) };

	bth_encode(&bth, room);
	for (size_t i = BTH_BYTES; i < len; i++)
		room[i] = (uint8_t)(psn * 7 + i);
}

void pair_on_rx(void *ctx, const struct rocev2_flow *flow, const uint8_t *pkt,
		size_t len)
{
	struct pair *p = ctx;
	struct seen s = { .flow = *flow, .len = len, .intact = true };
	struct bth bth;

	bth_decode(&bth, pkt);
	s.psn = bth.psn.v;
	for (size_t i = BTH_BYTES; i < len; i++)
		s.intact &= pkt[i] == (uint8_t)(s.psn * 7 + i);
	assert_true(p->nseen < SEEN_MAX);
	p->seen[p->nseen++] = s;
}

bool pair_add(struct pair *p, size_t len)
{
	uint8_t *room = udp_link_tx_room(p->tx);

	if (!room)
		return false;
	frame_build(room, QPN, p->psn++, len);
	udp_link_tx_add(p->tx, &p->flow, &p->dest, len);
	return true;
}

/* Frames that were refused do not show in what udp_link_rx() returns. */
static bool pair_receive_some(struct pair *p)
{
	const struct udp_link_counters *c = udp_link_counters(p->rx);
	uint64_t before = c->rx_messages;

	udp_link_rx(p->rx, 64, pair_on_rx, p);
	return c->rx_messages != before;
}

void pair_receive(struct pair *p)
{
	while (pair_receive_some(p))
		;
}

void pair_receive_until(struct pair *p, unsigned n)
{
	struct pollfd f = { .fd = p->fd, .events = POLLIN };

	while (p->nseen < n && poll(&f, 1, 1000) > 0)
		pair_receive(p);
}

void pair_send(struct pair *p, const size_t *len, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		while (!pair_add(p, len[i])) {
			udp_link_flush(p->tx);
			pair_receive(p);
		}
	while (udp_link_flush(p->tx))
		pair_receive(p);
	pair_receive(p);
}

void pair_check_clean(const struct pair *p)
{
	const struct udp_link_counters *t = udp_link_counters(p->tx);
	const struct udp_link_counters *r = udp_link_counters(p->rx);

	assert_int_equal(t->tx_errors, 0);
	assert_int_equal(t->tx_again, 0);
	assert_int_equal(r->rx_bad_icrc, 0);
	assert_int_equal(r->rx_icrc_relaxed, 0);
	assert_int_equal(r->rx_short, 0);
	assert_int_equal(r->rx_truncated, 0);
	assert_int_equal(r->rx_overflow, 0);
	assert_int_equal(t->tx_frames, r->rx_frames);
}

void pair_check_all(struct pair *p, unsigned n)
{
	pair_receive_until(p, n);
	assert_int_equal(p->nseen, n);
	for (unsigned i = 0; i < n; i++) {
		const struct seen *s = &p->seen[i];

		assert_int_equal(s->psn, i);
		assert_true(s->intact);
		assert_true(gid_eq(&s->flow.src, &p->addr));
		assert_true(gid_eq(&s->flow.dst, &p->addr));
		assert_int_equal(s->flow.ttl, 64);
	}
}
