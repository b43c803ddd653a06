/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * gate_copy.c - the copier's side: check, announce, check again, copy, clear.
 *
 * What the peer's area says is read once into a view; after the announcement
 * only the words are read again, and must be the same.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "link/gate.h"
#include "link/gate_area.h"

/* Where a copied message's last bytes must be a call of their own. */
#if defined(__x86_64__)
#define TAIL_IS_A_CALL                                                         \
	0 /* a string instruction's stores come after those of                 \
	     the one before */
#else
#define TAIL_IS_A_CALL 1
#endif

/* The gates that a request passes, as they were when read. */
struct view {
	uint32_t qp, mr; /* indices */
	uint64_t qp_word, mr_word;
	uint32_t qp_access, qp_pd, peer_qpn, pkey;
	uint64_t own[2], peer[2];
	uint32_t mr_access, mr_pd;
	uint64_t va, iova, len_bytes;
};

/* Acquire pairs with the owner's release, see gate.c. */
#define GET(field) atomic_load_explicit(&(field), memory_order_acquire)

int gate_peer_init(struct gate_peer *p, const struct gate_area *area, pid_t pid)
{
	uint32_t tag = *(const volatile uint32_t *)&area->tag;

	if (*(const volatile uint32_t *)&area->magic != GATE_MAGIC ||
	    *(const volatile uint32_t *)&area->layout != GATE_LAYOUT || !tag)
		return -EPROTO;
	*p = (struct gate_peer){ .area = area, .pid = pid, .tag = tag };
	return 0;
}

/* ---- the first look ---- */

static void read_qp(const struct gate_qp *g, struct view *v)
{
	v->qp_access = GET(g->access);
	v->qp_pd = GET(g->pd);
	v->peer_qpn = GET(g->peer_qpn);
	v->pkey = GET(g->pkey);
	for (int i = 0; i < 2; i++) {
		v->own[i] = GET(g->own[i]);
		v->peer[i] = GET(g->peer[i]);
	}
}

static bool qp_serves(const struct gate_area *a, const struct gate_request *r,
		      struct view *v)
{
	v->qp = r->peer_qpn % GATE_QPS;
	v->qp_word = GET(a->qps[v->qp].word);
	if (!(v->qp_word & GATE_OPEN) || v->qp_word >> 40 != r->peer_qpn)
		return false;
	read_qp(&a->qps[v->qp], v);
	return (v->qp_access & r->access) == r->access &&
	       v->peer_qpn == r->qpn && v->pkey == r->pkey &&
	       memcmp(v->own, r->peer.raw, sizeof(v->own)) == 0 &&
	       memcmp(v->peer, r->own.raw, sizeof(v->peer)) == 0;
}

static bool find_mr(const struct gate_area *a, uint32_t key, struct view *v)
{
	for (uint32_t n = 0; n < GATE_MR_PROBES; n++) {
		v->mr = gate_mr_place(key, n);
		v->mr_word = GET(a->mrs[v->mr].word);
		if (v->mr_word & GATE_OPEN && v->mr_word >> 32 == key)
			return true;
	}
	return false;
}

static bool mr_grants(const struct gate_area *a, const struct gate_request *r,
		      struct view *v)
{
	const struct gate_mr *g;

	if (r->len_bytes == 0) { /* no key is checked [IBA 9.7.4.1.5] */
		v->mr = GATE_NO_MR_INDEX;
		return true;
	}
	if (!find_mr(a, r->rkey, v))
		return false;
	g = &a->mrs[v->mr];
	v->mr_access = GET(g->access);
	v->mr_pd = GET(g->pd);
	v->va = GET(g->va);
	v->iova = GET(g->iova);
	v->len_bytes = GET(g->len_bytes);
	/* Differences only: a sum could wrap. */
	return (v->mr_access & r->access) == r->access &&
	       v->mr_pd == v->qp_pd && r->remote_addr >= v->iova &&
	       r->remote_addr - v->iova <= v->len_bytes &&
	       r->len_bytes <= v->len_bytes - (r->remote_addr - v->iova);
}

/* ---- the second look ---- */

/* seq_cst, like the announcement before it and the owner's two steps. */
static bool unchanged(const struct gate_area *a, const struct view *v)
{
	return gate_owner_lives(a) &&
	       atomic_load_explicit(&a->qps[v->qp].word,
				    memory_order_seq_cst) == v->qp_word &&
	       (v->mr == GATE_NO_MR_INDEX ||
		atomic_load_explicit(&a->mrs[v->mr].word,
				     memory_order_seq_cst) == v->mr_word);
}

/* ---- the copy ---- */

static enum gate_verdict call(const struct gate_peer *p,
			      const struct gate_request *r,
			      const struct iovec *local, unsigned num_local,
			      unsigned num_remote, size_t n)
{
	long nr = r->access == GATE_WRITE ? SYS_process_vm_writev
					  : SYS_process_vm_readv;
	/* The stop word and, right behind the area, our own iovecs. */
	long got = syscall(nr, (long)p->pid, local, (unsigned long)num_local,
			   &p->area->stop, 1ul + num_remote, 0ul);

	if (got >= 0)
		return (size_t)got == n ? GATE_DONE : GATE_FAULT;
	switch (errno) {
	case EINVAL:
		return GATE_SHUT; /* the stop word is set */
	case ESRCH:
		return GATE_GONE;
	case EPERM:
	case ENOSYS:
		return GATE_REFUSED;
	default:
		return GATE_FAULT;
	}
}

/* Bytes of the aligned word that holds the message's last byte. */
static uint32_t tail_bytes(uint64_t va, uint32_t n)
{
	uint32_t tail = (uint32_t)((va + n - 1) & 7) + 1;

	return tail < n ? tail : n;
}

/* Takes the last `tail` of n bytes off an iovec list, into ret_tail; returns
 * how many entries are left. The list is the caller's copy. */
static unsigned split_tail(struct iovec *v, unsigned num, uint32_t tail,
			   struct iovec *ret_tail, unsigned *ret_num)
{
	unsigned left = num, cut;
	uint32_t first;

	while (tail > v[left - 1].iov_len)
		tail -= (uint32_t)v[--left].iov_len;
	cut = left - 1;
	first = (uint32_t)v[cut].iov_len - tail;
	*ret_num = num - cut;
	memcpy(ret_tail, &v[cut], *ret_num * sizeof(*v));
	ret_tail[0].iov_base = (uint8_t *)v[cut].iov_base + first;
	ret_tail[0].iov_len = tail;
	v[cut].iov_len = first;
	return left;
}

/* The announcement once more and a third look at the gates order what was
 * stored before what follows. */
static bool store_barrier(_Atomic uint64_t *word, const struct gate_peer *p,
			  const struct view *v)
{
	atomic_store_explicit(word, gate_announce(p->tag, v->mr, v->qp),
			      memory_order_seq_cst);
	return unchanged(p->area, v);
}

static enum gate_verdict copy_tail_apart(_Atomic uint64_t *word,
					 const struct gate_peer *p,
					 const struct gate_request *r,
					 const struct view *v,
					 struct iovec *remote, uint32_t tail)
{
	uint64_t va = (uint64_t)(uintptr_t)remote[0].iov_base;
	struct iovec local[GATE_LOCAL_MAX], end[GATE_LOCAL_MAX];
	enum gate_verdict verdict;
	unsigned num, num_end;

	memcpy(local, r->local, r->num_local * sizeof(*local));
	num = split_tail(local, r->num_local, tail, end, &num_end);
	remote[0].iov_len = r->n - tail;
	verdict = call(p, r, local, num, 1, r->n - tail);
	if (verdict != GATE_DONE)
		return verdict;
	if (!store_barrier(word, p, v))
		return GATE_SHUT;
	remote[0] =
		(struct iovec){ (void *)(uintptr_t)(va + r->n - tail), tail };
	return call(p, r, end, num_end, 1, tail);
}

static enum gate_verdict copy(_Atomic uint64_t *word, const struct gate_peer *p,
			      const struct gate_request *r,
			      const struct view *v)
{
	/* The private page behind the mapped area, see gate_map(). */
	struct iovec *remote =
		(struct iovec *)((uintptr_t)p->area + GATE_AREA_BYTES);
	uint64_t va = v->va + (r->remote_addr - v->iova) + r->off;
	bool last = r->access == GATE_WRITE && r->off + r->n == r->len_bytes;
	uint32_t tail = last ? tail_bytes(va, r->n) : r->n;

	remote[0] = (struct iovec){ (void *)(uintptr_t)va, r->n };
	if (tail == r->n)
		return call(p, r, r->local, r->num_local, 1, r->n);
	if (TAIL_IS_A_CALL)
		return copy_tail_apart(word, p, r, v, remote, tail);
	remote[0].iov_len = r->n - tail;
	remote[1] =
		(struct iovec){ (void *)(uintptr_t)(va + r->n - tail), tail };
	return call(p, r, r->local, r->num_local, 2, r->n);
}

enum gate_verdict gate_copy(struct gate_area *own, unsigned slot,
			    const struct gate_peer *p,
			    const struct gate_request *r)
{
	_Atomic uint64_t *word = &own->announcements[slot].word;
	enum gate_verdict verdict = GATE_SHUT;
	struct view v;

	ASSERT(slot < GATE_ANNOUNCEMENTS && r->num_local <= GATE_LOCAL_MAX);
	ASSERT(r->n <= GATE_PIECE_BYTES && r->off <= r->len_bytes &&
	       r->n <= r->len_bytes - r->off);
	if (!gate_owner_lives(p->area))
		return GATE_NO_OWNER;
	if (!qp_serves(p->area, r, &v))
		return GATE_NO_QP;
	if (!mr_grants(p->area, r, &v))
		return GATE_NO_MR;
	atomic_store_explicit(word, gate_announce(p->tag, v.mr, v.qp),
			      memory_order_seq_cst);
	if (unchanged(p->area, &v))
		verdict = r->n ? copy(word, p, r, &v) : GATE_DONE;
	/* Release: the copy's accesses come before. */
	atomic_store_explicit(word, 0, memory_order_release);
	return verdict;
}
