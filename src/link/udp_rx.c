/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * udp_rx.c - datagrams from the kernel, frames out of datagrams.
 *
 * With UDP_GRO several datagrams of one flow arrive merged in one buffer,
 * each of the announced size but the last. The ICRC covers the IPv4 ID, which
 * a plain socket does not show. Senders have habits, though (enum
 * udp_id_mode): the ID that the source's habit predicts is tried first. If it
 * fails, the ID that makes the ICRC right is computed; when it is one that any
 * habit predicts the frame is as good as checked exactly, else it is accepted
 * as `relaxed` or refused if strict. What was found is remembered either way.
 *
 * A source that has set DF goes on to: without it, what was computed is the
 * trace of damage. Both single bits that no ID gives away (docs/wire.md) are
 * seen by this.
 */
#include "link/udp.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bytes.h"
#include "link/udp_priv.h"
#include "wire/net.h"

int udp_rx_init(struct udp_link *l)
{
	struct udp_rx *rx = &l->rx;

	rx->nbufs = l->cfg.gro ? UDP_RX_GRO_BUFS : UDP_RX_BUFS;
	rx->buf_bytes = l->cfg.gro ? UDP_RX_GRO_BUF_BYTES : UDP_RX_BUF_BYTES;
	rx->buf = malloc((size_t)rx->nbufs * rx->buf_bytes);
	if (!rx->buf)
		return -ENOMEM;
	for (unsigned i = 0; i < rx->nbufs; i++) {
		struct udp_rx_io *io = &rx->io[i];
		struct msghdr *h = &rx->hdr[i].msg_hdr;

		io->iov.iov_base = rx->buf + (size_t)i * rx->buf_bytes;
		io->iov.iov_len = rx->buf_bytes;
		h->msg_iov = &io->iov;
		h->msg_iovlen = 1;
		h->msg_name = &io->from;
		h->msg_control = io->control;
	}
	return 0;
}

int udp_link_add_rx(struct udp_link *l, int fd, const struct gid *local)
{
	struct udp_rx *rx = &l->rx;
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(info);
	int saved_errno = errno;

	if (rx->nsock == UDP_RX_SOCKETS_MAX)
		return -ENOSPC;
	/* The socket may be older than we are; its losses so far are not
	 * ours. Where the kernel cannot say, counting from 0 is all there is.
	 */
	if (syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_MEMINFO, info, &len))
		info[SK_MEMINFO_DROPS] = 0;
	errno = saved_errno;
	rx->sock[rx->nsock++] = (struct udp_rx_sock){
		.fd = fd,
		.local = *local,
		.dropped = info[SK_MEMINFO_DROPS],
	};
	return 0;
}

void udp_link_remove_rx(struct udp_link *l, int fd)
{
	struct udp_rx *rx = &l->rx;

	for (unsigned i = 0; i < rx->nsock; i++)
		if (rx->sock[i].fd == fd) {
			rx->sock[i] = rx->sock[--rx->nsock];
			return;
		}
}

/* ---- the ICRC without knowing the ID ---- */

/* The entry for this source; sport 0: for its address as a whole. A slot that
 * another source used is taken over. */
static struct udp_id_guess *guess_get(struct udp_rx *rx, const struct gid *src,
				      uint16_t sport)
{
	uint32_t h = (get_be32(src->raw + 12) ^ get_be32(src->raw + 8) ^
		      get_be32(src->raw) ^ sport) *
		     0x9e3779b1u;
	struct udp_id_guess *g =
		&rx->guess[sport != 0][h >> 16 & (UDP_ID_GUESSES - 1)];

	if (g->sport != sport || !gid_eq(&g->src, src))
		*g = (struct udp_id_guess){ .src = *src, .sport = sport };
	return g;
}

/* What each habit predicts for the frame at this index of its datagram. */
static void predict(struct udp_rx *rx, const struct rocev2_flow *f,
		    unsigned index, uint16_t id[UDP_ID_MODES])
{
	id[UDP_ID_INDEX] = (uint16_t)index;
	id[UDP_ID_ZERO] = 0;
	id[UDP_ID_ADDR_NEXT] =
		(uint16_t)(guess_get(rx, &f->src, 0)->last_id + 1);
	id[UDP_ID_PORT_NEXT] =
		(uint16_t)(guess_get(rx, &f->src, f->sport)->last_id + 1);
}

static void learn(struct udp_rx *rx, const struct rocev2_flow *f, uint8_t mode)
{
	struct udp_id_guess *g = guess_get(rx, &f->src, 0);

	g->last_id = f->ip_id;
	g->df = f->df;
	g->without_df = 0;
	g = guess_get(rx, &f->src, f->sport);
	g->last_id = f->ip_id;
	g->mode = mode;
}

static bool df_plausible(struct udp_rx *rx, const struct rocev2_flow *f)
{
	struct udp_id_guess *g = guess_get(rx, &f->src, 0);

	return f->df || !g->df || ++g->without_df >= UDP_DF_DOUBTS;
}

/* The slow way, for a frame whose likeliest ID was wrong. */
static bool icrc_search(struct udp_link *l, struct rocev2_flow *f,
			const uint8_t *pkt, size_t len,
			const uint16_t id[UDP_ID_MODES])
{
	uint8_t mode;

	if (!rocev2_icrc_ok_any_id(f, pkt, len, &f->ip_id, &f->df) ||
	    !df_plausible(&l->rx, f)) {
		l->count.rx_bad_icrc++;
		return false;
	}
	for (mode = 0; mode < UDP_ID_MODES; mode++)
		if (f->df && f->ip_id == id[mode])
			break;
	if (mode < UDP_ID_MODES) {
		learn(&l->rx, f, mode);
		return true;
	}
	learn(&l->rx, f, UDP_ID_ADDR_NEXT);
	if (l->cfg.icrc_strict) {
		l->count.rx_bad_icrc++;
		return false;
	}
	l->count.rx_icrc_relaxed++;
	return true;
}

static bool icrc_check(struct udp_link *l, struct rocev2_flow *f,
		       const uint8_t *pkt, size_t len, unsigned index)
{
	uint16_t id[UDP_ID_MODES];
	uint8_t mode;

	f->ip_id = 0;
	f->df = true;
	if (!gid_is_v4(&f->src)) {
		if (rocev2_icrc_ok(f, pkt, len))
			return true;
		l->count.rx_bad_icrc++;
		return false;
	}
	predict(&l->rx, f, index, id);
	mode = guess_get(&l->rx, &f->src, f->sport)->mode;
	f->ip_id = id[mode];
	if (!rocev2_icrc_ok(f, pkt, len))
		return icrc_search(l, f, pkt, len, id);
	learn(&l->rx, f, mode);
	return true;
}

/* ---- datagrams ---- */

/* The first datagram after some that found our buffer full passes the news on
 * as a switch with a full queue would: with the mark "congestion experienced",
 * where the sender knows of marks. On the wire it had none. */
static void deliver(struct udp_link *l, struct rocev2_flow *f,
		    const uint8_t *pkt, size_t len)
{
	uint8_t tos = f->tos;

	if (l->rx.overflowed && (tos & ECN_CE) != ECN_NOT_ECT)
		f->tos |= ECN_CE;
	l->rx.fn(l->rx.fn_ctx, f, pkt, len);
	f->tos = tos;
}

/* Frame `index` of its datagram. True: it was given to the callback. */
static bool rx_frame(struct udp_link *l, struct rocev2_flow *f, uint8_t *pkt,
		     size_t len, unsigned index)
{
	l->count.rx_frames++;
	if (len < BTH_BYTES + ICRC_BYTES || len % 4) {
		l->count.rx_short++;
		return false;
	}
	if (l->spoil)
		l->spoil(l->spoil_ctx, f, pkt, len);
	if (!icrc_check(l, f, pkt, len, index))
		return false;
	if (l->tap)
		l->tap(l->tap_ctx, false, f, pkt, len);
	deliver(l, f, pkt, len - ICRC_BYTES);
	return true;
}

static struct gid addr_gid(const union udp_addr *a, uint16_t *ret_port)
{
	struct gid g;

	if (a->sa.sa_family == AF_INET) {
		*ret_port = ntohs(a->v4.sin_port);
		return gid_from_v4(ntohl(a->v4.sin_addr.s_addr));
	}
	*ret_port = ntohs(a->v6.sin6_port);
	memcpy(g.raw, &a->v6.sin6_addr, 16);
	return g;
}

static int cmsg_int(const struct cmsghdr *c)
{
	int v;

	if (c->cmsg_len < CMSG_LEN(sizeof(v)))
		return *(const uint8_t *)CMSG_DATA(c);
	memcpy(&v, CMSG_DATA(c), sizeof(v));
	return v;
}

static void rx_overflow(struct udp_link *l, struct udp_rx_sock *s, uint32_t now)
{
	/* Counts of datagrams that were queued in another order. */
	if ((int32_t)(now - s->dropped) <= 0)
		return;
	l->count.rx_overflow += now - s->dropped;
	s->dropped = now;
	l->rx.overflowed = true;
}

/* Reads what came with the datagram; returns the size to split at. */
static size_t rx_control(struct udp_link *l, struct udp_rx_sock *s,
			 struct msghdr *h, size_t len, struct rocev2_flow *f)
{
	size_t split = len;
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		int v = cmsg_int(c);

		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
			if (v > 0 && (size_t)v < len)
				split = (size_t)v;
		} else if (c->cmsg_level == SOL_SOCKET) {
			if (c->cmsg_type == SO_RXQ_OVFL)
				rx_overflow(l, s, (uint32_t)v);
		} else if (c->cmsg_level == IPPROTO_IP) {
			if (c->cmsg_type == IP_TOS)
				f->tos = (uint8_t)v;
			else if (c->cmsg_type == IP_TTL)
				f->ttl = (uint8_t)v;
		} else if (c->cmsg_level == IPPROTO_IPV6) {
			if (c->cmsg_type == IPV6_TCLASS)
				f->tos = (uint8_t)v;
			else if (c->cmsg_type == IPV6_HOPLIMIT)
				f->ttl = (uint8_t)v;
			else if (c->cmsg_type == IPV6_FLOWINFO)
				f->flow_label = ntohl((uint32_t)v) & 0xfffff;
		}
	}
	return split;
}

static unsigned rx_datagram(struct udp_link *l, struct udp_rx_sock *s,
			    unsigned i)
{
	struct msghdr *h = &l->rx.hdr[i].msg_hdr;
	size_t len = l->rx.hdr[i].msg_len;
	uint8_t *p = l->rx.io[i].iov.iov_base;
	struct rocev2_flow f = { .dst = s->local, .ttl = 64 };
	unsigned index = 0, given = 0;
	size_t split;

	l->count.rx_messages++;
	l->rx.overflowed = false;
	if (h->msg_flags & MSG_TRUNC) {
		l->count.rx_truncated++;
		return 0;
	}
	f.src = addr_gid(&l->rx.io[i].from, &f.sport);
	split = rx_control(l, s, h, len, &f);
	do {
		size_t n = len < split ? len : split;

		given += rx_frame(l, &f, p, n, index++);
		p += n;
		len -= n;
	} while (len);
	return given;
}

/* One recvmmsg of up to max datagrams; returns their number, 0 when there
 * were none (or the socket is dead, which shows elsewhere). */
static unsigned rx_call(struct udp_link *l, int fd, unsigned max)
{
	struct udp_rx *rx = &l->rx;
	long n;

	for (unsigned i = 0; i < max; i++) {
		struct msghdr *h = &rx->hdr[i].msg_hdr;

		h->msg_namelen = sizeof(rx->io[i].from);
		h->msg_controllen = sizeof(rx->io[i].control);
	}
	l->count.rx_syscalls++;
	n = syscall(SYS_recvmmsg, fd, rx->hdr, max, MSG_DONTWAIT, NULL);
	if (n < 0)
		udp_note_lost(l, errno);
	return n > 0 ? (unsigned)n : 0;
}

/* Datagrams to ask for when `left` more frames are wanted: with UDP_GRO one
 * may hold many. */
static unsigned rx_want(const struct udp_link *l, unsigned left)
{
	unsigned n = l->cfg.gro ? (left + 7) / 8 : left;

	return n < l->rx.nbufs ? n : l->rx.nbufs;
}

/* Frames looked at so far, good or bad: a flood of bad ones must not keep us
 * in here. */
static uint64_t looked_at(const struct udp_link *l)
{
	return l->count.rx_frames + l->count.rx_truncated;
}

unsigned udp_link_rx(struct udp_link *l, unsigned max_frames, udp_link_rx_fn fn,
		     void *ctx)
{
	struct udp_rx *rx = &l->rx;
	uint64_t end = looked_at(l) + max_frames;
	unsigned given = 0, dry = 0;
	int saved_errno = errno;

	rx->fn = fn;
	rx->fn_ctx = ctx;
	while (looked_at(l) < end && dry < rx->nsock) {
		struct udp_rx_sock *s = &rx->sock[rx->next++ % rx->nsock];
		unsigned want = rx_want(l, (unsigned)(end - looked_at(l)));
		unsigned n = rx_call(l, s->fd, want);

		for (unsigned i = 0; i < n; i++)
			given += rx_datagram(l, s, i);
		dry = n < want ? dry + 1 : 0;
	}
	errno = saved_errno;
	return given;
}
