/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * udp_priv.h - the parts of struct udp_link; for link/udp_*.c only.
 *
 * udp_sock.c makes and frees it, udp_tx.c and udp_peer.c own tx, udp_rx.c owns
 * rx.
 */
#ifndef SOFTHCA_LINK_UDP_PRIV_H
#define SOFTHCA_LINK_UDP_PRIV_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* struct mmsghdr; the build sets it too */
#endif

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "link/udp.h"
#include "wire/pkt.h"

/* Older C libraries lack some of these. */
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11
#endif

#define UDP_FRAME_MAX (PKT_MAX + ICRC_BYTES)

/* ---- sending ---- */

#define UDP_TX_FRAMES 256
#define UDP_TX_BYTES (256 * 1024)
#define UDP_SEND_SOCKETS_MAX 64 /* per address family */
#define UDP_SEG_FRAMES_MAX 64	/* the kernel's limit per UDP_SEGMENT send */
#define UDP_SEG_BYTES_MAX 65000 /* below 65,535 less IP and UDP headers */
#define UDP_PEERS 64		/* table of local receivers, by fd */

union udp_addr {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* One datagram for the kernel: one frame, or several of equal size (the last
 * may be smaller) that UDP_SEGMENT cuts again. The frames lie one after
 * another in the batch buffer from off on. */
struct udp_msg {
	struct rocev2_flow flow; /* ip_id 0 and df true: frame 0's */
	uint32_t off;		 /* in tx.buf */
	uint32_t bytes;
	uint16_t seg_bytes; /* sealed size of every frame but the last */
	uint16_t nframes;
	uint32_t ifindex;
	int peer_fd;
	uint8_t sock; /* index in tx.sock */
	uint8_t slot; /* of the destination QPN: one receiver a message */
	bool closed;  /* a smaller frame was added: it was the last */
	bool singly;  /* UDP_SEGMENT was refused: one by one, ID 0 */
	uint8_t control_bytes; /* of the cmsgs other than UDP_SEGMENT */
};

struct udp_msg_io {
	union udp_addr to;
	struct iovec iov;
	_Alignas(8) uint8_t control[128];
};

/* A receive socket on this host, and how much may still be sent to it before
 * asking again. */
struct udp_peer {
	int fd; /* -1: unused */
	uint32_t credit_bytes;
	uint32_t unsent_bytes; /* admitted to run unsent_run, not yet sent */
	uint64_t unsent_run;
	uint32_t rmem_bytes;	/* at the last question */
	int64_t full_since_ns;	/* 0: it is not full */
	bool merges;		/* has UDP_GRO: charged by the bytes */
	bool given_up;		/* full and not reading: not waited for */
	uint64_t blocked_flush; /* number of the flush that found it full */
};

struct udp_send_sock {
	int fd; /* -1: none */
	uint16_t port;
	uint64_t blocked_flush; /* number of the flush that met EAGAIN */
};

struct udp_tx {
	struct udp_send_sock sock[2 * UDP_SEND_SOCKETS_MAX]; /* v4, then v6 */
	unsigned nsock;					     /* per family */
	bool segment;
	uint8_t *buf; /* UDP_TX_BYTES */
	uint32_t used_bytes;
	unsigned nmsgs, nframes;
	struct udp_msg msg[UDP_TX_FRAMES];
	struct udp_msg_io io[UDP_TX_FRAMES];
	struct mmsghdr hdr[UDP_TX_FRAMES]; /* hdr[i] is msg[i] for the kernel */
	struct udp_peer peer[UDP_PEERS];
	uint64_t flush; /* counts flushes, from 1 */
	uint64_t run;	/* counts runs of messages, from 1 */
	int wants_write;
};

/* ---- receiving ---- */

#define UDP_RX_SOCKETS_MAX 256
#define UDP_RX_GRO_BUFS 16
#define UDP_RX_GRO_BUF_BYTES 65536
#define UDP_RX_BUFS 64 /* without UDP_GRO */
#define UDP_RX_BUF_BYTES 4608
#define UDP_ID_GUESSES 64
/* So many frames without DF in a row, and the source has changed its ways. */
#define UDP_DF_DOUBTS 16

struct udp_rx_sock {
	int fd;
	struct gid local;
	uint32_t dropped; /* SO_RXQ_OVFL's count as last seen, mod 2^32 */
};

struct udp_rx_io {
	union udp_addr from;
	struct iovec iov;
	_Alignas(8) uint8_t control[192];
};

/* How the IPv4 IDs of one source went so far. */
enum udp_id_mode {
	UDP_ID_INDEX,	  /* the index in a merged buffer; 0 when single */
	UDP_ID_ZERO,	  /* always 0 */
	UDP_ID_PORT_NEXT, /* one more than the last from address and port */
	UDP_ID_ADDR_NEXT, /* one more than the last from the address */
	UDP_ID_MODES
};

struct udp_id_guess {
	struct gid src;
	uint16_t sport; /* 0: entry for the address as a whole */
	uint16_t last_id;
	uint8_t mode; /* enum udp_id_mode that was right last */
	/* Of the entry for an address: it sets DF, and how many frames in a
	 * row seemed not to. */
	bool df;
	uint8_t without_df;
};

struct udp_rx {
	struct udp_rx_sock sock[UDP_RX_SOCKETS_MAX];
	unsigned nsock, next;
	unsigned nbufs;
	uint32_t buf_bytes;
	uint8_t *buf; /* nbufs * buf_bytes */
	struct udp_rx_io io[UDP_RX_BUFS];
	struct mmsghdr hdr[UDP_RX_BUFS];
	/* [0]: of addresses, [1]: of their ports. They are looked up in turns
	 * and must not drive each other out. */
	struct udp_id_guess guess[2][UDP_ID_GUESSES];
	udp_link_rx_fn fn; /* of the udp_link_rx() under way */
	void *fn_ctx;
	bool overflowed; /* news with the datagram in hand */
};

struct udp_link {
	struct udp_link_config cfg;
	struct udp_link_counters count;
	bool lost; /* a descriptor of ours was closed under us */
	udp_link_tap_fn tap;
	void *tap_ctx;
	udp_link_spoil_fn spoil;
	void *spoil_ctx;
	struct udp_tx tx;
	struct udp_rx rx;
};

/* Looks at errno after a failed system call on a socket of ours. */
static inline void udp_note_lost(struct udp_link *l, int err)
{
	if (err == EBADF || err == ENOTSOCK)
		l->lost = true;
}

/* udp_peer.c: true when the message may join the run that tx.run counts. False
 * for the first of a run: its receiver is full, it has to wait; for a later
 * one: the run has to be sent first. */
bool udp_peer_admit(struct udp_link *l, const struct udp_msg *m);

/* udp_tx.c: no message holds several frames from now on; says so. */
void udp_tx_no_segments(struct udp_link *l);

/* udp_tx.c, udp_rx.c: set up what the data paths use. 0, -ENOMEM. */
int udp_tx_init(struct udp_link *l);
int udp_rx_init(struct udp_link *l);

#endif
