/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rt/dmem.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "link/fd_hide.h"

struct dmem {
	pthread_mutex_t lock;
	int fd;
	uint8_t *base;
	struct dmem_block *first;
};

static int arena_map(struct dmem *a)
{
	int err;

	a->fd = fd_hide(memfd_create("softhca-dm", MFD_CLOEXEC));
	if (a->fd < 0)
		return -errno;
	if (ftruncate(a->fd, DMEM_BYTES))
		goto err_fd;
	a->base = mmap(NULL, DMEM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		       a->fd, 0);
	if (a->base != MAP_FAILED)
		return 0;
err_fd:
	err = -errno;
	close(a->fd);
	return err;
}

int dmem_new(struct dmem **ret)
{
	struct dmem *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return -ENOMEM;
	err = arena_map(a);
	if (err) {
		free(a);
		return err;
	}
	pthread_mutex_init(&a->lock, NULL);
	*ret = a;
	return 0;
}

void dmem_free(struct dmem *a, bool close_fd)
{
	struct dmem_block *b, *next;

	if (!a)
		return;
	for (b = a->first; b; b = next) {
		next = b->next;
		free(b);
	}
	munmap(a->base, DMEM_BYTES);
	if (close_fd)
		close(a->fd);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

/* The link to put a block of this size behind; its offset to *ret_off. NULL:
 * no gap is large enough. */
static struct dmem_block **find_gap(struct dmem *a, size_t len, size_t align,
				    size_t *ret_off)
{
	struct dmem_block **link = &a->first;
	size_t at = 0;

	for (;; link = &(*link)->next) {
		size_t end = *link ? (*link)->off : DMEM_BYTES;

		at = (at + align - 1) & ~(align - 1);
		if (at <= end && len <= end - at) {
			*ret_off = at;
			return link;
		}
		if (!*link)
			return NULL;
		at = (*link)->off + (*link)->len_bytes;
	}
}

int dmem_take(struct dmem *a, size_t len_bytes, uint32_t align_log,
	      struct dmem_block **ret)
{
	struct dmem_block *b, **link;

	if (!len_bytes || align_log > DMEM_ALIGN_LOG_MAX)
		return -EINVAL;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	/* Never less than a word: atomics go there. */
	if (align_log < 3)
		align_log = 3;
	pthread_mutex_lock(&a->lock);
	link = find_gap(a, len_bytes, (size_t)1 << align_log, &b->off);
	if (link) {
		b->arena = a;
		b->len_bytes = len_bytes;
		b->next = *link;
		*link = b;
	}
	pthread_mutex_unlock(&a->lock);
	if (!link) {
		free(b);
		return -ENOMEM;
	}
	memset(dmem_bytes(b), 0, len_bytes);
	*ret = b;
	return 0;
}

void dmem_give(struct dmem_block *b)
{
	struct dmem *a = b->arena;
	struct dmem_block **link = &a->first;

	pthread_mutex_lock(&a->lock);
	while (*link != b)
		link = &(*link)->next;
	*link = b->next;
	pthread_mutex_unlock(&a->lock);
	free(b);
}

uint8_t *dmem_bytes(const struct dmem_block *b)
{
	return b->arena->base + b->off;
}

bool dmem_may_copy(const struct dmem_block *b, uint64_t off, size_t len)
{
	return off <= b->len_bytes && len <= b->len_bytes - off &&
	       off % DMEM_COPY_ALIGN == 0 && len % DMEM_COPY_ALIGN == 0;
}
