/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * vb_device.c - devices, contexts, and what keeps them alive.
 *
 * A device found twice is one struct, so that programs may compare pointers;
 * it lives as long as a list or an open context refers to it.
 */
#include "shim/verbs/vb.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "rt/umem.h"
#include "shim/sighook.h"

static pthread_mutex_t lists_lock = PTHREAD_MUTEX_INITIALIZER;
static struct dlist devices = { &devices, &devices };

void vb_lists_acquire(void)
{
	pthread_mutex_lock(&lists_lock);
}

void vb_lists_release(void)
{
	pthread_mutex_unlock(&lists_lock);
}

__attribute__((constructor)) static void watch_fork(void)
{
	(void)pthread_atfork(vb_lists_acquire, vb_lists_release,
			     vb_lists_release);
}

void *vb_alloc(size_t size)
{
	return calloc(1, size);
}

/* ---- devices ---- */

ABI_EXPORT const char *ibv_get_sysfs_path(void);

/* Where a program looks for /class/infiniband: `softhca run` makes a tree and
 * names it here. */
const char *ibv_get_sysfs_path(void)
{
	const char *path = secure_getenv("SOFTHCA_SYSFS");

	return path && *path ? path : "/sys";
}

static bool device_is(const struct vb_device *d, const struct rt_device *rt)
{
	return !strcmp(d->rt.name, rt->name) && d->rt.ifindex == rt->ifindex &&
	       d->rt.node_guid == rt->node_guid;
}

static void device_paths(struct vb_device *d)
{
	struct ibv_device *v = &d->ibv;
	const char *sys = ibv_get_sysfs_path();
	int n;

	snprintf(v->name, sizeof(v->name), "%s", d->rt.name);
	snprintf(v->dev_name, sizeof(v->dev_name), "%s", d->rt.name);
	n = snprintf(v->dev_path, sizeof(v->dev_path),
		     "%s/class/infiniband_verbs/%s", sys, d->rt.name);
	if (n >= (int)sizeof(v->dev_path))
		v->dev_path[0] = '\0'; /* better none than a cut one */
	n = snprintf(v->ibdev_path, sizeof(v->ibdev_path),
		     "%s/class/infiniband/%s", sys, d->rt.name);
	if (n >= (int)sizeof(v->ibdev_path))
		v->ibdev_path[0] = '\0';
}

/* The known device for rt or a new one, with one more reference. Caller holds
 * lists_lock. */
static struct vb_device *device_ref(const struct rt_device *rt)
{
	struct vb_device *d;
	struct dlist *l;

	for (l = devices.next; l != &devices; l = l->next) {
		d = CONTAINER_OF(l, struct vb_device, link);
		if (device_is(d, rt)) {
			d->refs++;
			return d;
		}
	}
	d = vb_alloc(sizeof(*d));
	if (!d)
		return NULL;
	d->rt = *rt;
	d->refs = 1;
	d->ibv.node_type = IBV_NODE_CA;
	d->ibv.transport_type = IBV_TRANSPORT_IB;
	device_paths(d);
	dlist_push_back(&devices, &d->link);
	return d;
}

static void device_unref(struct vb_device *d)
{
	vb_lists_acquire();
	if (--d->refs == 0) {
		dlist_remove(&d->link);
		free(d);
	}
	vb_lists_release();
}

static struct ibv_device **list_build(const struct rt_device *rt, int n)
{
	struct ibv_device **list = calloc((size_t)n + 1, sizeof(*list));
	struct vb_device *d;
	int i;

	if (!list)
		return NULL;
	vb_lists_acquire();
	for (i = 0; i < n; i++) {
		d = device_ref(&rt[i]);
		if (!d)
			break;
		list[i] = &d->ibv;
	}
	vb_lists_release();
	if (i == n)
		return list;
	ibv_free_device_list(list);
	return NULL;
}

ABI_EXPORT struct ibv_device **ibv_get_device_list(int *num)
{
	struct rt_device *rt = NULL;
	struct ibv_device **list;
	int n = 0, rc;

	if (num)
		*num = 0;
	rc = rt_devices(&rt, &n);
	if (rc)
		return ret_null(rc);
	list = list_build(rt, n);
	free(rt);
	if (!list)
		return ret_null(-ENOMEM);
	if (num)
		*num = n;
	return list;
}

ABI_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	int i;

	if (!list)
		return;
	for (i = 0; list[i]; i++)
		device_unref(vb_device(list[i]));
	free(list);
}

ABI_EXPORT const char *ibv_get_device_name(struct ibv_device *d)
{
	return d->name;
}

/* The interface's index: stable, and unique like a kernel device's. */
ABI_EXPORT int ibv_get_device_index(struct ibv_device *d)
{
	return (int)vb_device(d)->rt.ifindex;
}

ABI_EXPORT __be64 ibv_get_device_guid(struct ibv_device *d)
{
	uint8_t raw[8];
	__be64 ret;

	put_be64(raw, vb_device(d)->rt.node_guid);
	memcpy(&ret, raw, sizeof(ret));
	return ret;
}

/* ---- objects of a context ---- */

static void context_put(struct vb_context *ctx)
{
	bool last;

	vb_lists_acquire();
	last = --ctx->refs == 0;
	vb_lists_release();
	if (!last)
		return;
	device_unref(vb_device(ctx->v.context.device));
	pthread_mutex_destroy(&ctx->v.context.mutex);
	free(ctx);
}

void vb_obj_add(struct vb_obj *o, struct vb_context *ctx, enum vb_kind kind)
{
	o->ctx = ctx;
	o->kind = kind;
	vb_lists_acquire();
	dlist_push_back(&ctx->objs[kind], &o->link);
	ctx->refs++;
	vb_lists_release();
}

void vb_obj_del(struct vb_obj *o)
{
	vb_lists_acquire();
	dlist_remove(&o->link);
	vb_lists_release();
	context_put(o->ctx);
}

/* A program may close a device whose objects it still holds: a kernel frees
 * them then, so the peers of its QPs see them go. Not in the child of a fork:
 * there is nothing to free but memory, and a thread of the parent may have been
 * half-way through a destroy. */
static void orphan_all(struct vb_context *ctx)
{
	static void (*const orphan[VB_KINDS])(struct vb_obj *) = {
		[VB_QP] = vb_qp_orphan,		  [VB_SRQ] = vb_srq_orphan,
		[VB_CQ] = vb_cq_orphan,		  [VB_XRCD] = vb_xrcd_orphan,
		[VB_AH] = vb_ah_orphan,		  [VB_MW] = vb_mw_orphan,
		[VB_MR] = vb_mr_orphan,		  [VB_DM] = vb_dm_orphan,
		[VB_PD] = vb_pd_orphan,		  [VB_TD] = vb_td_orphan,
		[VB_CHANNEL] = vb_channel_orphan,
	};
	struct dlist *l;
	int kind;

	for (kind = 0; kind < VB_KINDS; kind++)
		while ((l = dlist_first(&ctx->objs[kind])) != NULL) {
			dlist_remove(l);
			if (!rtdev_dead(ctx->dev))
				orphan[kind](
					CONTAINER_OF(l, struct vb_obj, link));
		}
}

/* ---- contexts ---- */

/* The fds of a context. cmd_fd is nobody's command channel: a valid fd that
 * does no harm when a program polls or closes it. */
static int context_fds(struct vb_context *ctx)
{
	int rc;

	rc = rt_evq_new(ctx->dev, true, &ctx->async);
	if (rc)
		return rc;
	ctx->v.context.async_fd = rt_evq_fd(ctx->async);
	ctx->v.context.cmd_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (ctx->v.context.cmd_fd >= 0)
		return 0;
	rc = -errno;
	rt_evq_free(ctx->async);
	return rc;
}

static int context_init(struct vb_context *ctx, struct vb_device *d)
{
	struct ibv_context *c = &ctx->v.context;
	int kind, rc;

	rc = rtdev_open(&d->rt, &ctx->dev);
	if (rc)
		return rc;
	rc = context_fds(ctx);
	if (rc) {
		rtdev_close(ctx->dev);
		return rc;
	}
	for (kind = 0; kind < VB_KINDS; kind++)
		dlist_init(&ctx->objs[kind]);
	pthread_mutex_init(&c->mutex, NULL);
	ctx->refs = 1;
	c->device = &d->ibv;
	c->num_comp_vectors = VB_COMP_VECTORS;
	vb_ops_init(&ctx->v);
	return 0;
}

#pragma weak softhca_sigaction_hook_set

/* From now on SIGSEGV and SIGBUS are shared with the program. */
static void share_signals(void)
{
	if (softhca_sigaction_hook_set)
		softhca_sigaction_hook_set(umem_sigaction_hook);
}

ABI_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct vb_context *ctx;
	int cancel, rc;

	if (!device)
		return ret_null(-EINVAL);
	ctx = vb_alloc(sizeof(*ctx));
	if (!ctx)
		return ret_null(-ENOMEM);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	rc = context_init(ctx, vb_device(device));
	pthread_setcancelstate(cancel, NULL);
	if (rc) {
		free(ctx);
		return ret_null(rc);
	}
	share_signals();
	vb_lists_acquire();
	vb_device(device)->refs++;
	vb_lists_release();
	return &ctx->v.context;
}

ABI_EXPORT int ibv_close_device(struct ibv_context *c)
{
	struct vb_context *ctx = vb_context(c);
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	orphan_all(ctx);
	rt_evq_free(ctx->async);
	if (!rtdev_lost(ctx->dev))
		close(c->cmd_fd);
	rtdev_close(ctx->dev);
	pthread_setcancelstate(cancel, NULL);
	ctx->dev = NULL;
	ctx->async = NULL;
	context_put(ctx);
	return 0;
}

/* ---- what programs read from sysfs through the library ---- */

static struct rt_device *rt_device_copy(const char *name, struct rt_device *ret)
{
	struct dlist *l;
	struct vb_device *d;
	struct rt_device *found = NULL;

	vb_lists_acquire();
	for (l = devices.next; l != &devices && !found; l = l->next) {
		d = CONTAINER_OF(l, struct vb_device, link);
		if (!strcmp(d->rt.name, name)) {
			*ret = d->rt;
			found = ret;
		}
	}
	vb_lists_release();
	return found;
}

static int device_file(const struct rt_device *d, const char *file, char *buf,
		       size_t size)
{
	uint64_t g = d->node_guid;

	if (!strcmp(file, "board_id"))
		return snprintf(buf, size, "SOFTHCA");
	if (!strcmp(file, "fw_ver"))
		return snprintf(buf, size, "%s", SOFTHCA_VERSION);
	if (!strcmp(file, "hw_rev"))
		return snprintf(buf, size, "0");
	if (!strcmp(file, "node_desc"))
		return snprintf(buf, size, "softhca on %s", d->ifname);
	if (!strcmp(file, "node_type"))
		return snprintf(buf, size, "%d: CA", IBV_NODE_CA);
	if (!strcmp(file, "node_guid") || !strcmp(file, "sys_image_guid"))
		return snprintf(buf, size, "%04x:%04x:%04x:%04x",
				(unsigned)(g >> 48) & 0xffff,
				(unsigned)(g >> 32) & 0xffff,
				(unsigned)(g >> 16) & 0xffff,
				(unsigned)g & 0xffff);
	return -ENOENT;
}

static int read_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[512];
	ssize_t n;
	int fd, rc = 0;

	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, size);
	if (n < 0)
		rc = -errno;
	close(fd);
	if (rc)
		return rc;
	if (n > 0 && buf[n - 1] == '\n')
		buf[--n] = '\0';
	else if ((size_t)n < size)
		buf[n] = '\0';
	return (int)n;
}

ABI_EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
				   size_t size);

/* The length, or -1. Attributes of our devices come from memory. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
			size_t size)
{
	const char *name = strrchr(dir, '/');
	struct rt_device d;
	int rc = -ENOENT;

	if (name && strstr(dir, "/class/infiniband/") &&
	    rt_device_copy(name + 1, &d))
		rc = device_file(&d, file, buf, size);
	if (rc == -ENOENT)
		rc = read_file(dir, file, buf, size);
	if (rc < 0)
		return ret_minus1(rc);
	return rc < (int)size ? rc : (int)size;
}
