/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "rt/rtdev.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rt/config.h"
#include "rt/dmem.h"
#include "rt/rt_obj.h"
#include "rt/stats.h"
#include "rt/umem.h"

/* ---- what the core gets from us ---- */

static void *ops_alloc(void *ctx, size_t size, size_t align)
{
	void *p;

	(void)ctx;
	if (align < sizeof(void *))
		align = sizeof(void *);
	if (posix_memalign(&p, align, size))
		return NULL;
	return memset(p, 0, size);
}

static void ops_free(void *ctx, void *p)
{
	(void)ctx;
	free(p);
}

static int ops_read(void *ctx, void *dst, uint64_t va, size_t len)
{
	(void)ctx;
	return umem_read(dst, va, len);
}

static int ops_write(void *ctx, uint64_t va, const void *src, size_t len)
{
	(void)ctx;
	return umem_write(va, src, len);
}

static int ops_cmp_swap(void *ctx, uint64_t va, uint64_t compare, uint64_t swap,
			uint64_t *ret_orig)
{
	(void)ctx;
	return umem_cmp_swap(va, compare, swap, ret_orig);
}

static int ops_fetch_add(void *ctx, uint64_t va, uint64_t add,
			 uint64_t *ret_orig)
{
	(void)ctx;
	return umem_fetch_add(va, add, ret_orig);
}

static const struct hca_ops core_ops = {
	.alloc = ops_alloc,
	.free = ops_free,
	.mem_read = ops_read,
	.mem_write = ops_write,
	.mem_cmp_swap = ops_cmp_swap,
	.mem_fetch_add = ops_fetch_add,
	.direct = gates_direct,
	.grant = gates_grant,
	.path_out = rings_path_out,
	.mem_fetch = rings_fetch,
	.refs_void = rings_void,
};

static void note(const char *text)
{
	rt_say(true, "%s", text);
}

/* ---- the process's instances ---- */

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rtdev *open_devs;

static uint64_t netns_id(void)
{
	struct stat st;

	return stat("/proc/thread-self/ns/net", &st) ? 0 : (uint64_t)st.st_ino;
}

static struct rtdev *find_open(uint32_t ifindex, uint64_t netns)
{
	for (struct rtdev *d = open_devs; d; d = d->next)
		if (!rtdev_failed(d) && d->id.ifindex == ifindex &&
		    d->netns == netns)
			return d;
	return NULL;
}

static void unlink_open(struct rtdev *d)
{
	for (struct rtdev **p = &open_devs; *p; p = &(*p)->next) {
		if (*p == d) {
			*p = d->next;
			return;
		}
	}
}

/* fork: the child has our memory and our fds but no NIC thread, and the QPs
 * are the parent's. Its instances are dead; it may open devices anew. */
static void fork_prepare(void)
{
	pthread_mutex_lock(&open_lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&open_lock);
}

static void close_all(struct rtdev *d)
{
	if (d->dead)
		gates_abandon(d);
	else
		gates_free(d);
	capture_close(d->capture);
	d->capture = NULL;
	if (d->link)
		udp_link_free(d->link);
	d->link = NULL;
	rtdev_close_groups(d);
	faults_free(d->faults);
	d->faults = NULL;
	if (d->group)
		udp_group_leave(d->group);
	d->group = NULL;
}

static void fork_child(void)
{
	for (struct rtdev *d = open_devs; d; d = d->next) {
		d->dead = true;
		nic_abandon(d);
		capture_forget(d->capture); /* the parent's records */
		d->capture = NULL;
		close_all(d);
	}
	open_devs = NULL;
	stats_forget();
	pthread_mutex_unlock(&open_lock);
}

/* exit() may be called by a signal handler that interrupts our own work: then
 * this thread is inside already, and waiting for it would never end. */
#define EXIT_WAIT_NS 500000000

/* The device lives on without its thread: destructors that run after us, and
 * threads that run until the end, may still use it. */
static void device_at_exit(struct rtdev *d)
{
	nic_stop(d, EXIT_WAIT_NS);
	if (!engine_lock_timed(d, EXIT_WAIT_NS)) {
		d->dead = true;
		return;
	}
	engine_drain(d);
	rtdev_explain_losses(d);
	capture_flush(d->capture);
}

static void at_exit(void)
{
	const struct rt_config *c = rt_config();

	/* All that follows is read while nobody is inside. */
	for (struct rtdev *d = open_devs; d; d = d->next)
		device_at_exit(d);
	if (c->stats_path[0]) {
		int err = stats_write(c->stats_path);

		if (err)
			rt_say(false, "cannot write statistics to %s: %s",
			       c->stats_path, strerror(-err));
	}
	for (struct rtdev *d = open_devs; d; d = d->next)
		if (!d->dead)
			engine_unlock(d);
}

static void register_hooks(void)
{
	(void)pthread_atfork(fork_prepare, fork_parent, fork_child);
	(void)atexit(at_exit);
}

/* ---- statistics ---- */

static void fill_stats(struct stats_source *s, struct stats_counters *ret)
{
	struct rtdev *d = CONTAINER_OF(s, struct rtdev, stats);
	struct gate_counters gates = { 0 };

	ret->hca = *hca_counters(d->hca);
	ret->link = *udp_link_counters(d->link);
#define COPY(name)                                                             \
	ret->rt.name = atomic_load_explicit(&d->engine.counters.name,          \
					    memory_order_relaxed);
	RT_COUNTERS(COPY)
#undef COPY
	gates_counters(d, &gates);
	ret->rt.gate_waits = gates.waits;
	ret->rt.gate_overruled = gates.overruled;
	ret->rt.gate_expired = gates.expired;
	ret->rt.umem_faults = umem_faults();
	ret->rt.umem_kernel_copies = umem_kernel_copies();
	if (d->capture)
		ret->rt.capture_lost = capture_lost(d->capture);
}

/* ---- open ---- */

static int make_capture(struct rtdev *d, const struct rt_config *c)
{
	int err;

	if (!c->capture_path[0])
		return 0;
	err = capture_open(c->capture_path, &d->capture);
	if (err)
		rt_say(false, "cannot write a capture to %s: %s",
		       c->capture_path, strerror(-err));
	else
		udp_link_set_tap(d->link, capture_frame, d->capture);
	return err;
}

static int make_link(struct rtdev *d, const struct rt_config *c)
{
	struct udp_group_config gc = {
		.gro = c->offload,
		.rcvbuf_bytes = c->rcvbuf_bytes,
		.note = note,
	};
	struct udp_link_config lc = {
		.segment = c->offload,
		.gro = c->offload,
		.icrc_strict = c->icrc_strict,
		.send_sockets = c->send_sockets,
		.note = note,
	};
	int err = udp_group_join(&gc, &d->group);

	if (err) {
		rt_say(false, "%s: %s", d->id.name, udp_group_error());
		return err;
	}
	err = udp_link_new(&lc, &d->link);
	if (err)
		rt_say(false, "%s: cannot open UDP sockets: %s", d->id.name,
		       strerror(-err));
	return err;
}

/* CNPs have the class and the DSCP that NICs give them from the factory. */
static void choose_cc(struct hca_config *hc, const struct rt_config *c)
{
	const char *why;
	size_t at;

	hc->cnp_sl = 6;
	hc->cnp_dscp = 48;
	if (strcmp(c->cc, "none") == 0)
		return;
	hc->cc = &cc_dcqcn;
	why = dcqcn_parse(c->cc, &hc->cc_params, &at);
	if (!why)
		return;
	rt_say(false, "CC=%s: at character %zu: %s; ConnectX's values are used",
	       c->cc, at + 1, why);
	hc->cc_params = dcqcn_connectx;
}

static int make_core(struct rtdev *d, const struct rt_config *c)
{
	struct hca_config hc = {
		.limits = hca_limits_default,
		.link_layer = &link_layer_rocev2,
		.seed = c->seed,
		.node_guid = d->id.node_guid,
		.qpn_base = udp_group_slot(d->group) << UDP_GROUP_QPN_BITS,
		.qpn_bits = UDP_GROUP_QPN_BITS,
		.dest_budget_bytes = c->dest_budget_bytes,
		.read_budget_bytes = c->read_budget_bytes,
		.burst_pkts = 16,
	};

	choose_cc(&hc, c);
	if (!c->has_seed &&
	    getrandom(&hc.seed, sizeof(hc.seed), 0) != sizeof(hc.seed))
		return -EIO;
	d->hca = hca_new(&hc, &core_ops, d, rt_now_ns());
	return d->hca ? 0 : -ENOMEM;
}

static int make_faults(struct rtdev *d, const struct rt_config *c)
{
	struct fault_error at;
	uint64_t seed = c->seed;
	int err;

	if (!c->fault[0])
		return 0;
	if (!c->has_seed && getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return -EIO;
	err = faults_new(c->fault, seed, rt_now_ns(), &d->engine, &d->faults,
			 &at);
	if (err == -EINVAL)
		rt_say(false, "fault plan: '%.*s' at character %u: %s",
		       (int)at.len, c->fault + at.at, at.at + 1, at.why);
	if (err)
		return err;
	udp_link_set_spoil(d->link, faults_spoil, d->faults);
	rt_say(true, "%s: faults with seed=%llu: %s", d->id.name,
	       (unsigned long long)faults_seed(d->faults), c->fault);
	return 0;
}

static void destroy(struct rtdev *d)
{
	close_all(d);
	if (d->hca)
		hca_free(d->hca, true);
	dmem_free(atomic_load_explicit(&d->dmem, memory_order_relaxed),
		  !rtdev_lost(d));
	pthread_mutex_destroy(&d->control);
	free(d);
}

static void say_umem(const struct rt_config *c)
{
	bool refused = umem_kernel_refused();

	if (c->umem == UMEM_KERNEL)
		rt_say(true, "registered memory is reached %s",
		       refused ? "through pipes: process_vm_readv and _writev "
				 "were refused"
			       : "by process_vm_readv and _writev");
	else if (refused)
		rt_say(true, "process_vm_readv and _writev were refused: "
			     "threads that block SIGSEGV reach registered "
			     "memory through pipes");
}

static int build(struct rtdev *d)
{
	const struct rt_config *c = rt_config();
	int err = umem_init(c->umem);

	if (!err)
		say_umem(c);
	if (!err)
		err = make_link(d, c);
	if (!err)
		err = make_core(d, c);
	if (!err)
		err = make_capture(d, c);
	if (!err)
		err = make_faults(d, c);
	if (!err)
		err = rtdev_port_init(d);
	if (err)
		return err;
	gates_new(d);
	err = nic_start(d);
	if (err)
		rt_say(false, "%s: cannot start the NIC's thread: %s",
		       d->id.name, strerror(-err));
	return err;
}

static int open_new(const struct rt_device *dev, uint64_t netns,
		    struct rtdev **ret_dev)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct rtdev *d;
	int err;

	pthread_once(&once, register_hooks);
	if (posix_memalign((void **)&d, 64, sizeof(*d)))
		return -ENOMEM;
	memset(d, 0, sizeof(*d));
	d->id = *dev;
	d->netns = netns;
	pthread_mutex_init(&d->control, NULL);
	engine_init(&d->engine);
	rt_lock_init(&d->evq_lock);
	dlist_init(&d->evqs);
	dlist_init(&d->qps);
	dlist_init(&d->xrcds);
	dlist_init(&d->groups);
	nic_init(d);
	err = build(d);
	if (err) {
		destroy(d);
		return err;
	}
	d->stats =
		(struct stats_source){ .name = d->id.name, .fill = fill_stats };
	stats_add(&d->stats);
	d->next = open_devs;
	open_devs = d;
	*ret_dev = d;
	return 0;
}

int rtdev_open(const struct rt_device *dev, struct rtdev **ret_dev)
{
	uint64_t netns = netns_id();
	struct rtdev *d;
	int cancel, err = 0;

	/* Sockets and files are cancellation points; a thread that ended here
	 * would keep locks. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&open_lock);
	d = find_open(dev->ifindex, netns);
	if (!d)
		err = open_new(dev, netns, &d);
	if (!err) {
		d->refs++;
		*ret_dev = d;
	}
	pthread_mutex_unlock(&open_lock);
	pthread_setcancelstate(cancel, NULL);
	return err;
}

void rtdev_close(struct rtdev *d)
{
	bool last;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&open_lock);
	last = --d->refs == 0;
	if (last && !d->dead) {
		unlink_open(d);
		nic_stop(d, 0);
		nic_abandon(d);
		engine_drain(d);
		rtdev_explain_losses(d);
		stats_remove(&d->stats);
	}
	pthread_mutex_unlock(&open_lock);
	pthread_setcancelstate(cancel, NULL);
	/* A dead instance's core may have been copied in the middle of
	 * something by the fork: leave it. */
	if (last && !d->dead)
		destroy(d);
}

/* ---- queries ---- */

bool rtdev_dead(const struct rtdev *d)
{
	return d->dead;
}

bool rtdev_lost(const struct rtdev *d)
{
	return atomic_load_explicit(&d->lost, memory_order_relaxed);
}

const struct hca_limits *rtdev_limits(const struct rtdev *d)
{
	return hca_limits(d->hca);
}

void rt_query_port(struct rtdev *d, struct rt_port *ret)
{
	const struct hca_limits *l = hca_limits(d->hca);

	*ret = (struct rt_port){
		.state = hca_port_state(d->hca),
		.active_mtu = hca_active_mtu(d->hca),
		.max_mtu = MTU_4096,
		.netdev_mtu = d->netdev_mtu,
		.speed_mbps = d->speed_mbps,
		.gid_table_len = l->gid_table_len,
		.pkey_table_len = l->pkey_table_len,
		.bad_pkey_counter = hca_counters(d->hca)->rx_drop_pkey,
		.bad_qkey_counter = hca_counters(d->hca)->rx_drop_qkey,
	};
}

int rt_query_gid(struct rtdev *d, uint32_t index, struct gid_entry *ret)
{
	if (index >= hca_limits(d->hca)->gid_table_len)
		return -EINVAL;
	if (rtdev_dead(d))
		return -EIO;
	engine_lock(d);
	*ret = *hca_gid(d->hca, index);
	engine_unlock(d);
	return ret->valid ? 0 : -ENODATA;
}

int rt_query_pkey(struct rtdev *d, uint32_t index, uint16_t *ret)
{
	if (index >= hca_limits(d->hca)->pkey_table_len)
		return -EINVAL;
	*ret = hca_pkey(d->hca, index);
	return 0;
}

/* ---- event queues ---- */

void rtdev_add_evq(struct rtdev *d, struct rt_evq *q)
{
	rt_lock_acquire(&d->evq_lock);
	dlist_push_back(&d->evqs, &q->dev_node);
	rt_lock_release(&d->evq_lock);
}

void rtdev_remove_evq(struct rtdev *d, struct rt_evq *q)
{
	/* In the child the lock may be held by a thread of the parent. */
	if (d->dead)
		return;
	rt_lock_acquire(&d->evq_lock);
	dlist_remove(&q->dev_node);
	rt_lock_release(&d->evq_lock);
}

/* ---- loss ---- */

void rtdev_lose(struct rtdev *d)
{
	static const struct qp_attr to_err = { .state = QP_STATE_ERR };
	int err;

	if (rtdev_lost(d))
		return;
	atomic_store_explicit(&d->lost, true, memory_order_relaxed);
	udp_link_disown(d->link);
	udp_group_disown(d->group);
	gates_disown(d);
	nic_disown(d);
	for (struct dlist *n = d->qps.next; n != &d->qps; n = n->next) {
		err = qp_modify(CONTAINER_OF(n, struct rt_qp, dev_node)->qp,
				&to_err, QP_ATTR_STATE, rt_now_ns());
		ASSERT(!err);
	}
	rtdev_port_event(d, ASYNC_DEVICE_FATAL);
	rt_lock_acquire(&d->evq_lock);
	for (struct dlist *n = d->evqs.next; n != &d->evqs; n = n->next)
		evq_wake_all(CONTAINER_OF(n, struct rt_evq, dev_node));
	rt_lock_release(&d->evq_lock);
}
