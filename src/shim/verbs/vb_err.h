/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * vb_err.h - libibverbs' conventions of failing, the only place that knows
 * them. Everything below answers 0 or -errno. errno is set in each case:
 * programs look there even after functions that return it.
 */
#ifndef SOFTHCA_SHIM_VB_ERR_H
#define SOFTHCA_SHIM_VB_ERR_H

#include <errno.h>
#include <stddef.h>

/* For what returns an errno: ibv_modify_qp, ibv_destroy_*, ibv_post_*... */
static inline int ret_errno(int rc)
{
	if (rc < 0)
		errno = -rc;
	return -rc;
}

/* For what returns -1 with errno: ibv_query_gid, ibv_get_cq_event... */
static inline int ret_minus1(int rc)
{
	if (rc >= 0)
		return 0;
	errno = -rc;
	return -1;
}

/* For what returns an object: NULL with errno. rc < 0. */
static inline void *ret_null(int rc)
{
	errno = -rc;
	return NULL;
}

/* For the few that return a count or -errno. */
static inline long ret_negative(long rc)
{
	if (rc < 0)
		errno = (int)-rc;
	return rc;
}

#endif
