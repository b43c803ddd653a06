/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Memory that is not an ordinary region: windows, the null region, device
 * memory. As in rt_obj.c the core's verbs run inside the engine.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rt/dmem.h"
#include "rt/rtdev.h"

int rt_mr_reg_null(struct rtdev *d, struct pd *pd, struct mr **ret)
{
	int err;

	if (rtdev_failed(d))
		return -EIO;
	engine_lock(d);
	err = mr_reg_null(pd, ret);
	engine_unlock(d);
	return err;
}

int rt_mw_alloc(struct rtdev *d, struct pd *pd, enum mw_type type,
		struct mw **ret)
{
	int err;

	if (rtdev_failed(d))
		return -EIO;
	engine_lock(d);
	err = mw_create(pd, type, ret);
	engine_unlock(d);
	return err;
}

int rt_mw_dealloc(struct rtdev *d, struct mw *mw)
{
	int err;

	if (rtdev_dead(d))
		return 0;
	engine_lock(d);
	err = mw_destroy(mw);
	engine_unlock(d);
	return err;
}

/* ---- device memory ---- */

/* The arena is made when it is first asked for. Two threads may make one each;
 * the first that is told keeps its own. The child of a fork has one apart: the
 * parent's blocks are not its to give out. */
static int arena_of(struct rtdev *d, struct dmem **ret)
{
	_Atomic(struct dmem *) *at = rtdev_dead(d) ? &d->dmem_child : &d->dmem;
	struct dmem *a = atomic_load_explicit(at, memory_order_acquire);
	struct dmem *have = NULL;
	int err;

	if (!a) {
		err = dmem_new(&a);
		if (err)
			return err;
		if (!atomic_compare_exchange_strong_explicit(
			    at, &have, a, memory_order_acq_rel,
			    memory_order_acquire)) {
			dmem_free(a, true);
			a = have;
		}
	}
	*ret = a;
	return 0;
}

int rt_dm_alloc(struct rtdev *d, size_t len_bytes, uint32_t align_log,
		struct dmem_block **ret)
{
	struct dmem *a;
	int err;

	if (rtdev_lost(d))
		return -EIO;
	err = arena_of(d, &a);
	return err ? err : dmem_take(a, len_bytes, align_log, ret);
}

/* A fork's child has no part in its parent's blocks. */
static bool is_ours(struct rtdev *d, const struct dmem_block *b)
{
	return !rtdev_dead(d) ||
	       b->arena == atomic_load_explicit(&d->dmem_child,
						memory_order_acquire);
}

void rt_dm_free(struct rtdev *d, struct dmem_block *b)
{
	if (is_ours(d, b))
		dmem_give(b);
}

uint64_t rt_dm_va(const struct dmem_block *b)
{
	return (uintptr_t)dmem_bytes(b);
}

size_t rt_dm_max_bytes(void)
{
	return DMEM_BYTES;
}

int rt_dm_write(struct rtdev *d, struct dmem_block *b, uint64_t off,
		const void *src, size_t len)
{
	if (!is_ours(d, b))
		return -EIO;
	if (!dmem_may_copy(b, off, len))
		return -EINVAL;
	memcpy(dmem_bytes(b) + off, src, len);
	return 0;
}

int rt_dm_read(struct rtdev *d, const struct dmem_block *b, uint64_t off,
	       void *dst, size_t len)
{
	if (!is_ours(d, b))
		return -EIO;
	if (!dmem_may_copy(b, off, len))
		return -EINVAL;
	memcpy(dst, dmem_bytes(b) + off, len);
	return 0;
}
