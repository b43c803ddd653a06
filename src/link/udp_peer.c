/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * udp_peer.c - back-pressure from receivers on this host.
 *
 * A full UDP receive buffer loses packets without a word. When the receiver's
 * socket is at hand its fill can be asked for (SO_MEMINFO), so that nothing is
 * sent that would not fit: UC and UD then lose nothing on one host.
 *
 * Up to three quarters of the buffer are filled; the quarter left, and that an
 * answer is good for an eighth only, is for other senders that ask at the same
 * time. A receiver that stays full and reads nothing (stopped in a debugger)
 * is given up after a while: what is for it is lost like on a wire, and stands
 * in nobody's way.
 */
#include "link/udp_priv.h"

#include <linux/sock_diag.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define GIVE_UP_NS 500000000

/* What kernel 6.18 charges a receive buffer; upper bounds. A datagram of its
 * own lies in a power-of-two allocation with about 400 bytes of bookkeeping in
 * it, and 320 come on top. Segments that the kernel has to cut for a receiver
 * without UDP_GRO cost 832 each; merged ones cost their bytes and once that. */
static uint32_t charge_single(uint32_t bytes)
{
	uint32_t alloc = 512;

	while (alloc < bytes + 448)
		alloc *= 2;
	return alloc + 320;
}

static uint32_t msg_charge(const struct udp_tx *tx, const struct udp_peer *p,
			   const struct udp_msg *m)
{
	if (m->nframes == 1 || m->singly || !tx->segment)
		return m->nframes * charge_single(m->seg_bytes);
	return p->merges ? m->bytes + 1280 : m->bytes + m->nframes * 832u;
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static struct udp_peer *peer_get(struct udp_tx *tx, int fd)
{
	struct udp_peer *p = &tx->peer[(unsigned)fd % UDP_PEERS];

	if (p->fd != fd)
		*p = (struct udp_peer){ .fd = fd };
	return p;
}

/* Full: is it worth waiting for? */
static bool wait_for(struct udp_peer *p, uint32_t rmem)
{
	bool reads = rmem < p->rmem_bytes;

	p->rmem_bytes = rmem;
	if (!p->full_since_ns || reads) {
		p->full_since_ns = now_ns();
		p->given_up = false;
	} else if (!p->given_up) {
		p->given_up = now_ns() - p->full_since_ns > GIVE_UP_NS;
	}
	return !p->given_up;
}

enum answer { FITS, FULL, SEND_FIRST };

static bool ask_merges(int fd)
{
	int on = 0;
	socklen_t len = sizeof(on);

	return syscall(SYS_getsockopt, fd, IPPROTO_UDP, UDP_GRO, &on, &len) ==
		       0 &&
	       on;
}

/* Asks how full the receiver is: does `charge` fit behind what is admitted
 * already? */
static enum answer peer_ask(struct udp_peer *p, uint32_t charge)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(info);
	uint32_t rmem, limit, spare;

	if (syscall(SYS_getsockopt, p->fd, SOL_SOCKET, SO_MEMINFO, info, &len))
		return FITS; /* cannot be known: as for any remote receiver */
	rmem = info[SK_MEMINFO_RMEM_ALLOC] + p->unsent_bytes;
	limit = info[SK_MEMINFO_RCVBUF] / 4 * 3;
	p->credit_bytes = 0;
	if (rmem && rmem + charge > limit) {
		if (p->unsent_bytes)
			return SEND_FIRST;
		return wait_for(p, rmem) ? FULL : FITS;
	}
	p->rmem_bytes = rmem;
	p->full_since_ns = 0;
	p->given_up = false;
	spare = limit > rmem + charge ? limit - rmem - charge : 0;
	p->credit_bytes = spare < limit / 6 ? spare : limit / 6;
	return FITS;
}

static enum answer admit(struct udp_tx *tx, struct udp_peer *p,
			 const struct udp_msg *m)
{
	uint32_t charge = msg_charge(tx, p, m);
	enum answer a = FITS;

	if (p->unsent_run != tx->run) {
		p->unsent_run = tx->run;
		p->unsent_bytes = 0;
	}
	if (p->credit_bytes >= charge) {
		p->credit_bytes -= charge;
	} else {
		if (m->nframes > 1) {
			p->merges = ask_merges(p->fd);
			charge = msg_charge(tx, p, m);
		}
		a = peer_ask(p, charge);
	}
	if (a == FITS)
		p->unsent_bytes += charge;
	return a;
}

bool udp_peer_admit(struct udp_link *l, const struct udp_msg *m)
{
	struct udp_tx *tx = &l->tx;
	struct udp_peer *p;
	enum answer a;

	if (m->peer_fd < 0)
		return true;
	p = peer_get(tx, m->peer_fd);
	if (p->blocked_flush == tx->flush)
		return false;
	a = admit(tx, p, m);
	if (a == FULL) {
		p->blocked_flush = tx->flush;
		l->count.tx_blocked_peer++;
	}
	return a == FITS;
}
