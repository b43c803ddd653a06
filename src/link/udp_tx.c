/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * udp_tx.c - frames into datagrams, datagrams to the kernel.
 *
 * Frames are built one after another in one buffer. Neighbours of equal size
 * and equal way become one UDP_SEGMENT message. The kernel gives the k-th
 * segment the IPv4 ID k and everything else that has DF the ID 0; so the ICRC,
 * which covers the ID, can be sealed as soon as the place is known.
 *
 *   tx_room -> tx_add: build, place, seal      flush: sendmmsg, then compact
 *
 * A message is left in the batch (held) when its send socket is full or its
 * receiver on this host is; everything behind it on the same socket or for the
 * same receiver is left too, so order per destination is kept.
 */
#include "link/udp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bytes.h"
#include "link/udp_priv.h"

#define BTH_DEST_QPN 5 /* offset of the destination QPN's upper byte */
#define DEFAULT_TTL 64
#define IPV6_OFF(tx) ((tx)->nsock)

int udp_tx_init(struct udp_link *l)
{
	struct udp_tx *tx = &l->tx;

	tx->buf = malloc(UDP_TX_BYTES);
	if (!tx->buf)
		return -ENOMEM;
	tx->segment = l->cfg.segment;
	tx->wants_write = -1;
	for (unsigned i = 0; i < UDP_PEERS; i++)
		tx->peer[i].fd = -1;
	return 0;
}

uint8_t *udp_link_tx_room(struct udp_link *l)
{
	struct udp_tx *tx = &l->tx;

	if (tx->nframes == UDP_TX_FRAMES ||
	    tx->used_bytes + UDP_FRAME_MAX > UDP_TX_BYTES)
		return NULL;
	return tx->buf + tx->used_bytes;
}

/* ---- adding ---- */

/* One QP always gets the same socket: sport and slot are constant for it. The
 * slot is mixed in because a receiving NIC may merge datagrams of equal ports,
 * and then all go to the first one's process. */
static unsigned pick_sock(const struct udp_tx *tx, const struct gid *dst,
			  uint16_t sport, uint8_t slot)
{
	uint32_t h = (uint32_t)sport * 0x9e3779b1u >> 16;
	unsigned i = (h + slot) % tx->nsock;

	return gid_is_v4(dst) ? i : IPV6_OFF(tx) + i;
}

static bool can_join(const struct udp_tx *tx, const struct udp_msg *m,
		     const struct udp_msg *f)
{
	return tx->segment && !m->closed && !m->singly &&
	       m->nframes < UDP_SEG_FRAMES_MAX &&
	       m->bytes + f->bytes <= UDP_SEG_BYTES_MAX &&
	       f->bytes <= m->seg_bytes && m->sock == f->sock &&
	       m->slot == f->slot && m->peer_fd == f->peer_fd &&
	       m->ifindex == f->ifindex && m->flow.tos == f->flow.tos &&
	       m->flow.ttl == f->flow.ttl &&
	       gid_eq(&m->flow.dst, &f->flow.dst) &&
	       gid_eq(&m->flow.src, &f->flow.src);
}

/* Appends a control message; data of n bytes. */
static void cmsg_put(struct msghdr *h, int level, int type, const void *data,
		     size_t n)
{
	struct cmsghdr *c =
		(void *)((uint8_t *)h->msg_control + h->msg_controllen);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(n);
	memcpy(CMSG_DATA(c), data, n);
	h->msg_controllen += CMSG_SPACE(n);
	ASSERT(h->msg_controllen <= sizeof(((struct udp_msg_io *)0)->control));
}

/* hdr[i] refers to msg[i] and io[i]; the control length is left alone. */
static void msg_point(struct udp_tx *tx, unsigned i)
{
	struct msghdr *h = &tx->hdr[i].msg_hdr;
	struct udp_msg_io *io = &tx->io[i];

	io->iov.iov_base = tx->buf + tx->msg[i].off;
	io->iov.iov_len = tx->msg[i].bytes;
	h->msg_name = &io->to;
	h->msg_namelen = io->to.sa.sa_family == AF_INET ? sizeof(io->to.v4)
							: sizeof(io->to.v6);
	h->msg_iov = &io->iov;
	h->msg_iovlen = 1;
	h->msg_control = io->control;
	h->msg_flags = 0;
}

static void control_v4(struct msghdr *h, const struct udp_msg *m)
{
	struct in_pktinfo info = {
		.ipi_ifindex = (int)m->ifindex,
		.ipi_spec_dst.s_addr = htonl(gid_v4(&m->flow.src)),
	};
	int tos = m->flow.tos, ttl = m->flow.ttl;

	cmsg_put(h, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	if (tos)
		cmsg_put(h, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
	if (ttl != DEFAULT_TTL && ttl)
		cmsg_put(h, IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl));
}

static void control_v6(struct msghdr *h, const struct udp_msg *m)
{
	struct in6_pktinfo info = { .ipi6_ifindex = m->ifindex };
	int tclass = m->flow.tos, hops = m->flow.ttl;

	memcpy(&info.ipi6_addr, m->flow.src.raw, 16);
	cmsg_put(h, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
	if (tclass)
		cmsg_put(h, IPPROTO_IPV6, IPV6_TCLASS, &tclass, sizeof(tclass));
	if (hops != DEFAULT_TTL && hops)
		cmsg_put(h, IPPROTO_IPV6, IPV6_HOPLIMIT, &hops, sizeof(hops));
}

static void set_dest(union udp_addr *to, const struct udp_msg *m)
{
	const struct gid *dst = &m->flow.dst;

	memset(to, 0, sizeof(*to));
	if (gid_is_v4(dst)) {
		to->v4.sin_family = AF_INET;
		to->v4.sin_port = htons(ROCEV2_UDP_PORT);
		to->v4.sin_addr.s_addr = htonl(gid_v4(dst));
		return;
	}
	to->v6.sin6_family = AF_INET6;
	to->v6.sin6_port = htons(ROCEV2_UDP_PORT);
	to->v6.sin6_scope_id = m->ifindex;
	memcpy(&to->v6.sin6_addr, dst->raw, 16);
}

static void msg_start(struct udp_tx *tx, const struct udp_msg *f)
{
	unsigned i = tx->nmsgs++;
	struct udp_msg *m = &tx->msg[i];
	struct msghdr *h = &tx->hdr[i].msg_hdr;

	*m = *f;
	set_dest(&tx->io[i].to, m);
	msg_point(tx, i);
	h->msg_controllen = 0;
	if (gid_is_v4(&m->flow.dst))
		control_v4(h, m);
	else
		control_v6(h, m);
	m->control_bytes = (uint8_t)h->msg_controllen;
}

static void msg_join(struct udp_tx *tx, const struct udp_msg *f)
{
	unsigned i = tx->nmsgs - 1;
	struct udp_msg *m = &tx->msg[i];

	if (m->nframes == 1)
		cmsg_put(&tx->hdr[i].msg_hdr, IPPROTO_UDP, UDP_SEGMENT,
			 &m->seg_bytes, sizeof(m->seg_bytes));
	m->nframes++;
	m->bytes += f->bytes;
	m->closed = f->bytes < m->seg_bytes;
	tx->io[i].iov.iov_len = m->bytes;
}

static bool is_link_local(const struct gid *g)
{
	return g->raw[0] == 0xfe && (g->raw[1] & 0xc0) == 0x80;
}

/* A message of this one frame. */
static struct udp_msg frame_msg(const struct udp_tx *tx,
				const struct rocev2_flow *flow,
				const struct udp_link_dest *dest, size_t len)
{
	struct udp_msg f = {
		.flow = *flow,
		.off = tx->used_bytes,
		.bytes = (uint32_t)(len + ICRC_BYTES),
		.seg_bytes = (uint16_t)(len + ICRC_BYTES),
		.nframes = 1,
		.ifindex = is_link_local(&flow->dst) ||
					   gid_is_multicast(&flow->dst)
				   ? dest->ifindex
				   : 0,
		.peer_fd = dest->peer_fd,
		.slot = tx->buf[tx->used_bytes + BTH_DEST_QPN],
	};

	f.sock = (uint8_t)pick_sock(tx, &flow->dst, flow->sport, f.slot);
	f.flow.sport = tx->sock[f.sock].port;
	f.flow.flow_label = 0; /* the kernel's choice for plain sockets */
	f.flow.ip_id = 0;
	f.flow.df = true;
	return f;
}

void udp_link_tx_add(struct udp_link *l, const struct rocev2_flow *flow,
		     const struct udp_link_dest *dest, size_t len)
{
	struct udp_tx *tx = &l->tx;
	struct udp_msg f;
	struct rocev2_flow sealed;

	ASSERT(len >= BTH_BYTES && len <= PKT_MAX && len % 4 == 0);
	ASSERT(udp_link_tx_room(l));
	ASSERT(gid_is_v4(&flow->src) == gid_is_v4(&flow->dst));
	f = frame_msg(tx, flow, dest, len);
	if (tx->sock[f.sock].fd < 0) { /* no IPv6 here */
		l->count.tx_errors++;
		return;
	}
	sealed = f.flow;
	if (tx->nmsgs && can_join(tx, &tx->msg[tx->nmsgs - 1], &f)) {
		sealed.ip_id = tx->msg[tx->nmsgs - 1].nframes;
		msg_join(tx, &f);
	} else {
		msg_start(tx, &f);
	}
	rocev2_seal(&sealed, tx->buf + f.off, len);
	tx->used_bytes += f.bytes;
	tx->nframes++;
}

/* A datagram of its own: the first frame of one is never sealed again. */
void udp_link_tx_add_spoilt(struct udp_link *l, const struct rocev2_flow *flow,
			    const struct udp_link_dest *dest, size_t len,
			    const uint32_t *bit, unsigned n)
{
	struct udp_tx *tx = &l->tx;
	uint8_t *pkt = tx->buf + tx->used_bytes;
	unsigned before = tx->nframes;

	if (tx->nmsgs)
		tx->msg[tx->nmsgs - 1].closed = true;
	udp_link_tx_add(l, flow, dest, len);
	if (tx->nframes == before) /* refused, and counted */
		return;
	tx->msg[tx->nmsgs - 1].closed = true;
	for (unsigned i = 0; i < n; i++) {
		ASSERT(bit[i] / 8 < len + ICRC_BYTES);
		pkt[bit[i] / 8] ^= (uint8_t)(1u << bit[i] % 8);
	}
}

/* ---- sending ---- */

static uint32_t frame_bytes(const struct udp_msg *m, unsigned k)
{
	uint32_t left = m->bytes - k * m->seg_bytes;

	return left < m->seg_bytes ? left : m->seg_bytes;
}

/* The kernel took the first n frames of the message. */
static void frames_sent(struct udp_link *l, struct udp_msg *m, unsigned n)
{
	const uint8_t *pkt = l->tx.buf + m->off;
	struct rocev2_flow flow = m->flow;

	l->count.tx_messages++;
	l->count.tx_frames += n;
	if (!l->tap)
		return;
	for (unsigned k = 0; k < n; k++) {
		flow.ip_id = (uint16_t)k;
		l->tap(l->tap_ctx, true, &flow, pkt, frame_bytes(m, k));
		pkt += m->seg_bytes;
	}
}

/* Seals the frames again for the ID 0 of datagrams of their own. */
static void msg_make_singly(struct udp_tx *tx, unsigned i)
{
	struct udp_msg *m = &tx->msg[i];

	for (unsigned k = 1; k < m->nframes; k++)
		rocev2_seal(&m->flow, tx->buf + m->off + k * m->seg_bytes,
			    frame_bytes(m, k) - ICRC_BYTES);
	m->singly = m->closed = true;
	tx->hdr[i].msg_hdr.msg_controllen = m->control_bytes;
}

static bool sock_full(struct udp_link *l, struct udp_send_sock *s)
{
	if (errno != EAGAIN && errno != EINTR) {
		udp_note_lost(l, errno);
		return false;
	}
	l->count.tx_again++;
	s->blocked_flush = l->tx.flush;
	l->tx.wants_write = s->fd;
	return true;
}

/* Sends frame by frame until done or the socket is full. Returns how many the
 * kernel took. */
static unsigned send_singly(struct udp_link *l, unsigned i)
{
	struct udp_tx *tx = &l->tx;
	struct udp_msg *m = &tx->msg[i];
	struct udp_send_sock *s = &tx->sock[m->sock];
	unsigned taken = 0;

	while (m->nframes) {
		uint32_t bytes = frame_bytes(m, 0);

		tx->io[i].iov.iov_base = tx->buf + m->off;
		tx->io[i].iov.iov_len = bytes;
		l->count.tx_syscalls++;
		if (syscall(SYS_sendmsg, s->fd, &tx->hdr[i].msg_hdr,
			    MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
			frames_sent(l, m, 1);
			taken++;
		} else if (sock_full(l, s)) {
			break;
		} else {
			l->count.tx_errors++;
		}
		m->off += bytes;
		m->bytes -= bytes;
		m->nframes--;
	}
	return taken;
}

void udp_tx_no_segments(struct udp_link *l)
{
	l->tx.segment = false;
	if (l->cfg.note)
		l->cfg.note("UDP_SEGMENT was refused: frames are sent one by "
			    "one from now on");
}

/* A device or kernel without UDP_SEGMENT says EINVAL or EIO; but so do other
 * faults. Only frames that pass one by one prove it. */
static void try_singly(struct udp_link *l, unsigned i)
{
	msg_make_singly(&l->tx, i);
	if (send_singly(l, i) && l->tx.segment)
		udp_tx_no_segments(l);
}

/* The kernel refused message i of a run that ends at end. Returns where to go
 * on. */
static unsigned msg_refused(struct udp_link *l, unsigned i, unsigned end)
{
	struct udp_tx *tx = &l->tx;
	struct udp_msg *m = &tx->msg[i];

	if (sock_full(l, &tx->sock[m->sock]))
		return end;
	if (m->nframes > 1 && (errno == EINVAL || errno == EIO)) {
		try_singly(l, i);
		return i + 1;
	}
	l->count.tx_errors += m->nframes;
	m->nframes = 0;
	return i + 1;
}

/* Messages i..end-1, all of one socket, to the kernel. */
static void send_run(struct udp_link *l, unsigned i, unsigned end)
{
	struct udp_tx *tx = &l->tx;
	struct udp_send_sock *s = &tx->sock[tx->msg[i].sock];

	while (i < end && s->blocked_flush != tx->flush) {
		long n = syscall(SYS_sendmmsg, s->fd, &tx->hdr[i], end - i,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		l->count.tx_syscalls++;
		if (n <= 0) {
			i = msg_refused(l, i, end);
			continue;
		}
		for (; n > 0; n--, i++) {
			frames_sent(l, &tx->msg[i], tx->msg[i].nframes);
			tx->msg[i].nframes = 0;
		}
	}
}

static bool needs_singly(const struct udp_tx *tx, const struct udp_msg *m)
{
	return m->singly || (m->nframes > 1 && !tx->segment);
}

/* Sends message i and those behind it that can go with it. Returns the first
 * not looked at. */
static unsigned flush_from(struct udp_link *l, unsigned i)
{
	struct udp_tx *tx = &l->tx;
	const struct udp_msg *m = &tx->msg[i];
	unsigned end = i;

	tx->run++;
	if (tx->sock[m->sock].blocked_flush == tx->flush)
		return i + 1;
	if (needs_singly(tx, m)) {
		if (!udp_peer_admit(l, m))
			return i + 1;
		if (!m->singly)
			msg_make_singly(tx, i);
		send_singly(l, i);
		return i + 1;
	}
	while (end < tx->nmsgs && tx->msg[end].sock == m->sock &&
	       !needs_singly(tx, &tx->msg[end]) &&
	       udp_peer_admit(l, &tx->msg[end]))
		end++;
	if (end == i)
		return i + 1;
	send_run(l, i, end);
	return end;
}

/* Moves what is held to the front of the batch. */
static void compact(struct udp_tx *tx)
{
	unsigned to = 0, nframes = 0;
	uint32_t off = 0;

	for (unsigned i = 0; i < tx->nmsgs; i++) {
		struct udp_msg *m = &tx->msg[i];

		if (!m->nframes)
			continue;
		memmove(tx->buf + off, tx->buf + m->off, m->bytes);
		m->off = off;
		off += m->bytes;
		nframes += m->nframes;
		if (to != i) {
			tx->msg[to] = *m;
			tx->io[to] = tx->io[i];
			tx->hdr[to] = tx->hdr[i];
		}
		msg_point(tx, to++);
	}
	tx->nmsgs = to;
	tx->nframes = nframes;
	tx->used_bytes = off;
}

unsigned udp_link_flush(struct udp_link *l)
{
	struct udp_tx *tx = &l->tx;
	int saved_errno = errno;

	if (!tx->nmsgs)
		return 0;
	tx->flush++;
	tx->wants_write = -1;
	for (unsigned i = 0; i < tx->nmsgs;)
		i = flush_from(l, i);
	compact(tx);
	errno = saved_errno;
	return tx->nframes;
}

int udp_link_wants_write(const struct udp_link *l)
{
	return l->tx.wants_write;
}
