/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * dlist.h - an intrusive circular doubly linked list for data paths: O(1)
 * insert and remove, no allocation. An unlinked node points to itself.
 */
#ifndef SOFTHCA_BASE_DLIST_H
#define SOFTHCA_BASE_DLIST_H

#include <stdbool.h>

struct dlist {
	struct dlist *prev, *next;
};

static inline void dlist_init(struct dlist *l)
{
	l->prev = l->next = l;
}

static inline bool dlist_empty(const struct dlist *l)
{
	return l->next == l;
}

/* True while the node is on a list (dlist_init'ed or removed ones are not). */
static inline bool dlist_linked(const struct dlist *n)
{
	return n->next != n;
}

static inline void dlist_push_back(struct dlist *head, struct dlist *n)
{
	n->prev = head->prev;
	n->next = head;
	head->prev->next = n;
	head->prev = n;
}

static inline void dlist_push_front(struct dlist *head, struct dlist *n)
{
	dlist_push_back(head->next, n);
}

/* Harmless on an unlinked node. */
static inline void dlist_remove(struct dlist *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	dlist_init(n);
}

/* First node, still linked, or NULL. */
static inline struct dlist *dlist_first(struct dlist *head)
{
	return dlist_empty(head) ? (struct dlist *)0 : head->next;
}

#endif
