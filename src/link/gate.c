/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * gate.c - the owner's side: gates open and close. Who waits is gate_wait.c.
 *
 * A QP's gate has its place by its QPN; it is written by one thread at a time,
 * the one inside the engine. A region's key may have one of a few places.
 */
#include "link/gate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "link/gate_area.h"

#define EXPIRE_NS 10000000000

/* ---- mapping ---- */

const struct gate_area *gate_map(int fd, off_t offset)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *at = mmap(NULL, GATE_AREA_BYTES + page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	if (mmap(at, GATE_AREA_BYTES, PROT_READ, MAP_SHARED | MAP_FIXED, fd,
		 offset) == MAP_FAILED) {
		munmap(at, GATE_AREA_BYTES + page);
		return NULL;
	}
	(void)madvise(at + GATE_AREA_BYTES, page, MADV_WIPEONFORK);
	return (const struct gate_area *)(const void *)at;
}

void gate_unmap(const struct gate_area *area)
{
	if (area)
		munmap((void *)area,
		       GATE_AREA_BYTES + (size_t)sysconf(_SC_PAGESIZE));
}

/* ---- life ---- */

static bool init_owner(struct gate_area *area)
{
	pthread_mutexattr_t a;
	bool ok = !pthread_mutexattr_init(&a) &&
		  !pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED) &&
		  !pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST) &&
		  !pthread_mutex_init(&area->owner.mutex, &a);

	pthread_mutexattr_destroy(&a);
	return ok;
}

struct gate_table *gate_table_new(struct gate_area *area, uint32_t tag)
{
	struct gate_table *t = calloc(1, sizeof(*t));

	ASSERT(tag != 0);
	if (!t || !init_owner(area)) {
		free(t);
		return NULL;
	}
	t->area = area;
	t->tag = tag;
	t->expire_ns = EXPIRE_NS;
	pthread_mutex_init(&t->lock, NULL);
	area->layout = GATE_LAYOUT;
	area->tag = tag;
	area->magic = GATE_MAGIC;
	return t;
}

int gate_vouch(struct gate_table *t)
{
	return -pthread_mutex_lock(&t->area->owner.mutex);
}

void gate_table_shut(struct gate_table *t)
{
	pthread_mutex_lock(&t->lock);
	t->shut = true;
	pthread_mutex_unlock(&t->lock);
	for (uint32_t i = 0; i < GATE_MRS; i++)
		if (t->place[i] == GATE_PLACE_OPEN)
			(void)gate_mr_close(t, t->key[i]);
}

void gate_table_free(struct gate_table *t)
{
	if (t)
		pthread_mutex_destroy(&t->lock);
	free(t);
}

void gate_counters(const struct gate_table *t, struct gate_counters *ret)
{
	*ret = t->counters;
}

/* ---- opening ---- */

/* Release pairs with a copier's acquire: who sees one of these sees the closing
 * before it, too. */
#define PUT(field, value)                                                      \
	atomic_store_explicit(&(field), (value), memory_order_release)

static void put_gid(_Atomic uint64_t *to, const struct gid *g)
{
	uint64_t w[2];

	memcpy(w, g->raw, sizeof(w));
	PUT(to[0], w[0]);
	PUT(to[1], w[1]);
}

static void open_place(struct gate_table *t, uint32_t i,
		       const struct gate_mr_attr *a)
{
	struct gate_mr *g = &t->area->mrs[i];
	uint64_t serial = ++t->serial & 0x7fffffff;

	t->place[i] = GATE_PLACE_OPEN;
	t->key[i] = a->key;
	PUT(g->va, a->va);
	PUT(g->iova, a->iova);
	PUT(g->len_bytes, a->len_bytes);
	PUT(g->access, a->access);
	PUT(g->pd, a->pd);
	PUT(g->word, (uint64_t)a->key << 32 | serial << 1 | GATE_OPEN);
}

int gate_mr_open(struct gate_table *t, const struct gate_mr_attr *a)
{
	int err = -ENOSPC;

	pthread_mutex_lock(&t->lock);
	for (uint32_t n = 0; err && !t->shut && n < GATE_MR_PROBES; n++) {
		uint32_t i = gate_mr_place(a->key, n);

		if (t->place[i] != GATE_PLACE_FREE)
			continue;
		open_place(t, i, a);
		err = 0;
	}
	pthread_mutex_unlock(&t->lock);
	return err;
}

void gate_qp_open(struct gate_table *t, const struct gate_qp_attr *a)
{
	struct gate_qp *g = &t->area->qps[a->qpn % GATE_QPS];
	uint64_t old = atomic_load_explicit(&g->word, memory_order_relaxed);
	uint64_t serial = ((old >> 1) + 1) & ((1ull << 39) - 1);

	/* Closed for as long as the fields are not consistent. */
	atomic_store_explicit(&g->word, old & ~(uint64_t)GATE_OPEN,
			      memory_order_seq_cst);
	PUT(g->access, a->access);
	PUT(g->pd, a->pd);
	PUT(g->peer_qpn, a->peer_qpn);
	PUT(g->pkey, a->pkey);
	put_gid(g->own, &a->own);
	put_gid(g->peer, &a->peer);
	PUT(g->word, (uint64_t)a->qpn << 40 | serial << 1 | GATE_OPEN);
}

/* ---- closing ---- */

/* The word keeps its number, so that the next opening has another. seq_cst: in
 * the one order of all such operations the owner's look at the announcements
 * comes after it. */
static bool close_word(_Atomic uint64_t *word)
{
	uint64_t old = atomic_load_explicit(word, memory_order_relaxed);

	atomic_store_explicit(word, old & ~(uint64_t)GATE_OPEN,
			      memory_order_seq_cst);
	return old & GATE_OPEN;
}

struct gate_closed gate_mr_close(struct gate_table *t, uint32_t key)
{
	struct gate_closed c = { .kind = GATE_NONE };

	pthread_mutex_lock(&t->lock);
	for (uint32_t n = 0; n < GATE_MR_PROBES; n++) {
		uint32_t i = gate_mr_place(key, n);

		if (t->place[i] != GATE_PLACE_OPEN || t->key[i] != key)
			continue;
		t->place[i] = GATE_PLACE_CLOSING;
		(void)close_word(&t->area->mrs[i].word);
		c = (struct gate_closed){ .kind = GATE_MR, .index = i };
		break;
	}
	pthread_mutex_unlock(&t->lock);
	return c;
}

struct gate_closed gate_of_qp(uint32_t qpn)
{
	return (struct gate_closed){ .kind = GATE_QP, .index = qpn % GATE_QPS };
}

/* Closed already still means: a copy may be under way. */
struct gate_closed gate_qp_close(struct gate_table *t, uint32_t qpn)
{
	(void)close_word(&t->area->qps[qpn % GATE_QPS].word);
	return gate_of_qp(qpn);
}
