/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * simmem.c - memory ops over a byte array.
 */
#include "sim/simmem.h"

#include <errno.h>
#include <string.h>

int simmem_init(struct simmem *m, const struct sim_alloc *mem, uint64_t base,
		uint64_t len_bytes)
{
	*m = (struct simmem){ .mem = mem,
			      .base = base,
			      .len_bytes = len_bytes };
	m->bytes = mem->alloc(mem->ctx, len_bytes, 64);
	return m->bytes ? 0 : -ENOMEM;
}

void simmem_fini(struct simmem *m)
{
	m->mem->free(m->mem->ctx, m->bytes);
	m->bytes = NULL;
}

static bool inside(const struct simmem *m, uint64_t va, uint64_t len_bytes)
{
	uint64_t off = va - m->base;

	if (va < m->base || off > m->len_bytes ||
	    len_bytes > m->len_bytes - off)
		return false;
	if (!m->hole_bytes)
		return true;
	return va + len_bytes <= m->hole || va >= m->hole + m->hole_bytes;
}

uint8_t *simmem_at(const struct simmem *m, uint64_t va, uint64_t len_bytes)
{
	ASSERT(va >= m->base && va - m->base + len_bytes <= m->len_bytes);
	return m->bytes + (va - m->base);
}

static void *op_alloc(void *ctx, size_t size, size_t align)
{
	struct simmem *m = ctx;
	void *p;

	if (m->fail_alloc_after && !--m->fail_alloc_after)
		return NULL;
	p = m->mem->alloc(m->mem->ctx, size, align);
	if (p)
		m->live_allocs++;
	return p;
}

static void op_free(void *ctx, void *p)
{
	struct simmem *m = ctx;

	if (!p)
		return;
	ASSERT(m->live_allocs > 0);
	m->live_allocs--;
	m->mem->free(m->mem->ctx, p);
}

static int op_read(void *ctx, void *dst, uint64_t va, size_t len)
{
	struct simmem *m = ctx;

	if (!inside(m, va, len))
		return -EFAULT;
	memcpy(dst, m->bytes + (va - m->base), len);
	return 0;
}

static int op_write(void *ctx, uint64_t va, const void *src, size_t len)
{
	struct simmem *m = ctx;

	if (!inside(m, va, len))
		return -EFAULT;
	memcpy(m->bytes + (va - m->base), src, len);
	return 0;
}

static int op_cmp_swap(void *ctx, uint64_t va, uint64_t compare, uint64_t swap,
		       uint64_t *ret_orig)
{
	struct simmem *m = ctx;
	uint64_t v;

	if (!inside(m, va, sizeof(v)))
		return -EFAULT;
	ASSERT(va % sizeof(v) == 0);
	memcpy(&v, m->bytes + (va - m->base), sizeof(v));
	*ret_orig = v;
	if (v == compare)
		memcpy(m->bytes + (va - m->base), &swap, sizeof(v));
	return 0;
}

static int op_fetch_add(void *ctx, uint64_t va, uint64_t add,
			uint64_t *ret_orig)
{
	struct simmem *m = ctx;
	uint64_t v;

	if (!inside(m, va, sizeof(v)))
		return -EFAULT;
	ASSERT(va % sizeof(v) == 0);
	memcpy(&v, m->bytes + (va - m->base), sizeof(v));
	*ret_orig = v;
	v += add;
	memcpy(m->bytes + (va - m->base), &v, sizeof(v));
	return 0;
}

static enum direct_verdict op_direct(void *ctx, const struct direct_req *r)
{
	struct simmem *m = ctx;

	return m->direct ? m->direct(m, r) : DIRECT_NEVER;
}

bool simmem_direct(struct simmem *m, const struct direct_req *r,
		   struct simmem *peer, uint64_t peer_va)
{
	uint8_t *there;

	if (!inside(peer, peer_va, r->n))
		return false;
	there = simmem_at(peer, peer_va, r->n);
	if (r->inline_bytes) {
		memcpy(there, r->inline_bytes, r->n);
		return true;
	}
	for (uint32_t i = 0; i < r->num_local; i++) {
		const struct direct_mem *l = &r->local[i];

		if (r->read ? op_write(m, l->va, there, l->len_bytes)
			    : op_read(m, there, l->va, l->len_bytes))
			return false;
		there += l->len_bytes;
	}
	return true;
}

const struct hca_ops simmem_ops = {
	.alloc = op_alloc,
	.free = op_free,
	.mem_read = op_read,
	.mem_write = op_write,
	.mem_cmp_swap = op_cmp_swap,
	.mem_fetch_add = op_fetch_add,
	.direct = op_direct,
};
