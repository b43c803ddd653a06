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
#define MEMINFO_VARS SK_MEMINFO_VARS

/* Kernel 6.18: a datagram of its own lies in a power-of-two allocation with
 * about 400 bytes of bookkeeping in it, and 320 are charged on top. Segments
 * that the kernel has to cut for a receiver without UDP_GRO cost 832 each,
 * more than those that stay merged. */
uint32_t udp_charge_bytes(uint32_t frame_bytes, unsigned nframes)
{
	uint32_t alloc = 512;

	if (nframes > 1)
		return nframes * (frame_bytes + 832);
	while (alloc < frame_bytes + 448)
		alloc *= 2;
	return alloc + 320;
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

/* Asks how full the receiver is. True: `charge` more bytes fit. */
static bool peer_ask(struct udp_peer *p, uint32_t charge)
{
	uint32_t info[MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(info);
	uint32_t rmem, limit, spare;

	if (syscall(SYS_getsockopt, p->fd, SOL_SOCKET, SO_MEMINFO, info, &len))
		return true; /* cannot be known: as for any remote receiver */
	rmem = info[SK_MEMINFO_RMEM_ALLOC];
	limit = info[SK_MEMINFO_RCVBUF] / 4 * 3;
	if (rmem && rmem + charge > limit) {
		p->credit_bytes = 0;
		return !wait_for(p, rmem);
	}
	p->rmem_bytes = rmem;
	p->full_since_ns = 0;
	p->given_up = false;
	spare = limit > rmem + charge ? limit - rmem - charge : 0;
	if (spare > limit / 6)
		spare = limit / 6;
	p->credit_bytes = (int32_t)spare;
	return true;
}

bool udp_peer_admit(struct udp_link *l, const struct udp_msg *m)
{
	struct udp_peer *p;
	uint32_t charge;

	if (m->peer_fd < 0)
		return true;
	p = peer_get(&l->tx, m->peer_fd);
	if (p->blocked_flush == l->tx.flush)
		return false;
	charge = udp_charge_bytes(m->seg_bytes, m->nframes);
	if (m->singly || !l->tx.segment)
		charge = m->nframes * udp_charge_bytes(m->seg_bytes, 1);
	if ((uint32_t)p->credit_bytes >= charge) {
		p->credit_bytes -= (int32_t)charge;
		return true;
	}
	if (peer_ask(p, charge))
		return true;
	p->blocked_flush = l->tx.flush;
	l->count.tx_blocked_peer++;
	return false;
}
