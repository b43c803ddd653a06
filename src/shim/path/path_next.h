/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * path_next.h - how the preloaded library reaches the function that it stands
 * in front of.
 */
#ifndef SOFTHCA_SHIM_PATH_NEXT_H
#define SOFTHCA_SHIM_PATH_NEXT_H

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>

/* The next definition of the enclosing function's name behind ours; looked up
 * once. type: a pointer type to call it by. NULL: libc has it no more. */
#define NEXT(type, name)                                                       \
	({                                                                     \
		static _Atomic(void *) slot_;                                  \
		void *f_ = atomic_load_explicit(&slot_, memory_order_relaxed); \
		if (!f_) {                                                     \
			f_ = dlsym(RTLD_NEXT, name);                           \
			atomic_store_explicit(&slot_, f_,                      \
					      memory_order_relaxed);           \
		}                                                              \
		(type)(uintptr_t) f_;                                          \
	})

#endif
