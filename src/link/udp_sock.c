/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * udp_sock.c - making and freeing a udp_link and its send sockets.
 */
#include "link/udp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "link/fd_hide.h"
#include "link/udp_priv.h"

#define PORT_BASE 0xc000 /* 0xc000..0xffff [IBA A17.3.2: source port] */
#define PORT_MASK 0x3fff
#define PORT_TRIES 200

/* IP_PMTUDISC_PROBE, not DO: both set DF (and so ID 0), but DO believes ICMP
 * "fragmentation needed" of anybody on the path and would refuse our frames
 * afterwards; the path MTU of a QP is the user's statement. */
static int set_v4(int fd)
{
	int probe = IP_PMTUDISC_PROBE;

	if (setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe)))
		return -errno;
	return 0;
}

static int set_v6(int fd)
{
	int probe = IPV6_PMTUDISC_PROBE;
	int on = 1;

	if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) ||
	    setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe,
		       sizeof(probe)))
		return -errno;
	return 0;
}

/* Binds to a random free port of the RoCEv2 source port range. */
static int bind_random(int fd, int family, uint16_t *ret_port)
{
	for (int i = 0; i < PORT_TRIES; i++) {
		union udp_addr a = { 0 };
		socklen_t len;
		uint16_t r;

		if (getrandom(&r, sizeof(r), 0) != sizeof(r))
			return -errno;
		r = PORT_BASE | (r & PORT_MASK);
		a.sa.sa_family = (sa_family_t)family;
		if (family == AF_INET) {
			a.v4.sin_port = htons(r);
			len = sizeof(a.v4);
		} else {
			a.v6.sin6_port = htons(r);
			len = sizeof(a.v6);
		}
		if (bind(fd, &a.sa, len) == 0) {
			*ret_port = r;
			return 0;
		}
		if (errno != EADDRINUSE)
			return -errno;
	}
	return -EADDRINUSE;
}

static int send_sock_open(struct udp_send_sock *s, int family, int sndbuf)
{
	int smallest = 1; /* nobody should send to this port */
	int err;
	int fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	err = family == AF_INET ? set_v4(fd) : set_v6(fd);
	if (err)
		goto err_close;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &smallest,
		       sizeof(smallest)) ||
	    (sndbuf > 0 &&
	     setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof(sndbuf)))) {
		err = -errno;
		goto err_close;
	}
	err = bind_random(fd, family, &s->port);
	if (err)
		goto err_close;
	s->fd = fd_hide(fd);
	return 0;
err_close:
	close(fd);
	return err;
}

static bool ipv6_absent(int err)
{
	return err == -EAFNOSUPPORT || err == -EADDRNOTAVAIL ||
	       err == -EPROTONOSUPPORT || err == -EPERM || err == -EACCES ||
	       err == -ENOSYS;
}

static int send_socks_open(struct udp_link *l)
{
	struct udp_tx *tx = &l->tx;
	int sndbuf = l->cfg.sndbuf_bytes;
	int err = 0;

	for (unsigned i = 0; i < tx->nsock && !err; i++)
		err = send_sock_open(&tx->sock[i], AF_INET, sndbuf);
	if (err)
		return err;
	for (unsigned i = 0; i < tx->nsock && !err; i++)
		err = send_sock_open(&tx->sock[tx->nsock + i], AF_INET6,
				     sndbuf);
	if (ipv6_absent(err)) {
		if (l->cfg.note)
			l->cfg.note("no IPv6 here: IPv6 frames are dropped");
		err = 0;
	}
	return err;
}

/* Systems that know no UDP_SEGMENT may as well ignore it in a message, and send
 * one large datagram: so ask before. 0: off, as it is. */
static void probe_segment(struct udp_link *l)
{
	int off = 0;

	if (l->tx.segment && setsockopt(l->tx.sock[0].fd, IPPROTO_UDP,
					UDP_SEGMENT, &off, sizeof(off)))
		udp_tx_no_segments(l);
}

int udp_link_new(const struct udp_link_config *cfg, struct udp_link **ret_link)
{
	struct udp_link *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->cfg = *cfg;
	l->tx.nsock = cfg->send_sockets ? cfg->send_sockets : 8;
	for (unsigned i = 0; i < ARRAY_SIZE(l->tx.sock); i++)
		l->tx.sock[i].fd = -1;
	err = -EINVAL;
	if (l->tx.nsock > UDP_SEND_SOCKETS_MAX)
		goto err_free;
	err = udp_tx_init(l);
	if (!err)
		err = udp_rx_init(l);
	if (!err)
		err = send_socks_open(l);
	if (err)
		goto err_free;
	probe_segment(l);
	*ret_link = l;
	return 0;
err_free:
	udp_link_free(l);
	return err;
}

bool udp_link_lost(const struct udp_link *l)
{
	return l->lost;
}

void udp_link_disown(struct udp_link *l)
{
	l->lost = true;
	l->rx.nsock = 0;
	for (unsigned i = 0; i < ARRAY_SIZE(l->tx.sock); i++)
		l->tx.sock[i].fd = -1;
}

void udp_link_free(struct udp_link *l)
{
	for (unsigned i = 0; i < ARRAY_SIZE(l->tx.sock); i++)
		if (l->tx.sock[i].fd >= 0)
			close(l->tx.sock[i].fd);
	free(l->tx.buf);
	free(l->rx.buf);
	free(l);
}

void udp_link_set_tap(struct udp_link *l, udp_link_tap_fn fn, void *ctx)
{
	l->tap = fn;
	l->tap_ctx = ctx;
}

void udp_link_set_spoil(struct udp_link *l, udp_link_spoil_fn fn, void *ctx)
{
	l->spoil = fn;
	l->spoil_ctx = ctx;
}

const struct udp_link_counters *udp_link_counters(const struct udp_link *l)
{
	return &l->count;
}
