/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "core/obj/idtab.h"

#include <errno.h>

#include "core/obj/hca_priv.h"

struct idtab *idtab_new(struct hca *hca, uint32_t lo, uint32_t hi, uint32_t max)
{
	uint32_t slots = IDTAB_CHUNK, n = hi - lo + 1;
	struct idtab *t;

	ASSERT(lo > 0 && hi >= lo && hi <= 0xffffff);
	if (max > n)
		max = n;
	while (slots < max)
		slots *= 2;
	t = hca_alloc(hca, sizeof(*t) + slots / IDTAB_CHUNK * sizeof(void *));
	if (!t)
		return NULL;
	t->hca = hca;
	t->lo = lo;
	t->hi = hi;
	t->max = max;
	t->mask = slots - 1;
	t->next = lo + (uint32_t)prng_below(&hca->rng, n);
	return t;
}

void idtab_free(struct idtab *t)
{
	ASSERT(t->used == 0);
	for (uint32_t i = 0; i <= t->mask / IDTAB_CHUNK; i++)
		hca_release(t->hca, t->chunks[i]);
	hca_release(t->hca, t);
}

/* The slot of an id, made if need be. NULL: out of memory. */
static struct idtab_slot *slot_of(struct idtab *t, uint32_t id)
{
	uint32_t slot = id & t->mask;
	struct idtab_slot **c = &t->chunks[slot / IDTAB_CHUNK];

	if (!*c)
		*c = hca_alloc(t->hca, IDTAB_CHUNK * sizeof(**c));
	return *c ? *c + slot % IDTAB_CHUNK : NULL;
}

int idtab_add(struct idtab *t, void *p, uint32_t *ret_id)
{
	ASSERT(p);
	if (t->used >= t->max)
		return -ENOMEM;
	/* Fewer entries than ids, but an id's slot may be taken by another id;
	 * one walk over all of them meets every slot that ids can have. */
	for (uint64_t tries = t->hi - t->lo + 1; tries; tries--) {
		uint32_t id = t->next;
		struct idtab_slot *s = slot_of(t, id);

		if (!s)
			return -ENOMEM;
		t->next = id == t->hi ? t->lo : id + 1;
		if (s->p)
			continue;
		s->p = p;
		s->id = id;
		t->used++;
		*ret_id = id;
		return 0;
	}
	return -ENOMEM;
}

void idtab_remove(struct idtab *t, uint32_t id)
{
	struct idtab_slot *s = slot_of(t, id);

	ASSERT(s && s->p && s->id == id && t->used > 0);
	s->p = NULL;
	t->used--;
}

void *idtab_next(const struct idtab *t, uint32_t *pos)
{
	while (*pos <= t->mask) {
		const struct idtab_slot *c = t->chunks[*pos / IDTAB_CHUNK];

		if (!c) {
			*pos = (*pos / IDTAB_CHUNK + 1) * IDTAB_CHUNK;
			continue;
		}
		c += (*pos)++ % IDTAB_CHUNK;
		if (c->p)
			return c->p;
	}
	return NULL;
}
