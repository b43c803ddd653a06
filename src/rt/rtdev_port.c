/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * rtdev_port.c - the port of a device instance: its netdev's state, MTU and
 * addresses as GID table, kept up to date; and the addresses' sockets.
 *
 * GID indices are stable: an address that goes leaves a hole, one that comes
 * back finds its old place. Sockets of addresses that went stay: they are the
 * port group's (docs/port-sharing.md), and serve again with the address.
 */
#include <errno.h>
#include <stdlib.h>

#include "rt/netdev.h"
#include "rt/rtdev.h"

void rtdev_port_event(struct rtdev *d, enum async_type type)
{
	rt_lock_acquire(&d->evq_lock);
	for (struct dlist *n = d->evqs.next; n != &d->evqs; n = n->next) {
		struct rt_evq *q = CONTAINER_OF(n, struct rt_evq, dev_node);

		if (q->async)
			evq_push_async(&q->port, type);
	}
	rt_lock_release(&d->evq_lock);
}

/* ---- the netdev's state and addresses ---- */

static bool has_addr(const struct netdev *nd, const struct gid *g)
{
	for (int i = 0; i < nd->n_addrs; i++)
		if (gid_eq(&nd->addrs[i].gid, g))
			return true;
	return false;
}

/* Where a new address goes: its old index, else the first that no address ever
 * had, else the first hole; the table's length when full. */
static uint32_t place_for(struct rtdev *d, const struct gid *g)
{
	uint32_t len = hca_limits(d->hca)->gid_table_len;
	uint32_t fresh = len, hole = len;

	for (uint32_t i = 0; i < len; i++) {
		const struct gid_entry *e = hca_gid(d->hca, i);

		if (gid_eq(&d->gid_seen[i], g))
			return i;
		if (e->valid)
			continue;
		if (gid_is_zero(&d->gid_seen[i])) {
			if (fresh == len)
				fresh = i;
		} else if (hole == len) {
			hole = i;
		}
	}
	return fresh < len ? fresh : hole;
}

/* The table is as long as the limits say: setting within it cannot fail. */
static void set_gid(struct rtdev *d, uint32_t index, const struct gid_entry *e)
{
	int err = hca_set_gid(d->hca, index, e);

	ASSERT(!err);
}

/* [E] nd NULL: the netdev is gone. */
static void drop_gids(struct rtdev *d, const struct netdev *nd)
{
	static const struct gid_entry none;

	for (uint32_t i = 0; i < hca_limits(d->hca)->gid_table_len; i++) {
		const struct gid_entry *e = hca_gid(d->hca, i);

		if (e->valid && !(nd && has_addr(nd, &e->gid)))
			set_gid(d, i, &none);
	}
}

/* [E] */
static void take_gids(struct rtdev *d, const struct netdev *nd)
{
	for (int i = 0; i < nd->n_addrs; i++) {
		struct gid_entry e = {
			.valid = true,
			.gid = nd->addrs[i].gid,
			.netdev = nd->ifindex,
			.vlan = nd->vlan,
			.mtu_bytes = nd->mtu_bytes,
		};
		uint32_t at = place_for(d, &e.gid);

		if (at == hca_limits(d->hca)->gid_table_len)
			return;
		d->gid_seen[at] = e.gid;
		set_gid(d, at, &e);
	}
}

/* [E] */
static void apply(struct rtdev *d, const struct netdev *nd)
{
	drop_gids(d, nd);
	if (!nd) {
		hca_set_port(d->hca, PORT_STATE_DOWN, d->netdev_mtu);
		return;
	}
	d->speed_mbps = nd->speed_mbps;
	d->netdev_mtu = nd->mtu_bytes;
	take_gids(d, nd);
	hca_set_port(d->hca, nd->running ? PORT_STATE_ACTIVE : PORT_STATE_DOWN,
		     nd->mtu_bytes);
}

int rtdev_port_init(struct rtdev *d)
{
	struct netdev *nd;
	int err = netdev_get(d->id.ifindex, &nd);

	if (err)
		return err;
	apply(d, nd);
	free(nd);
	return 0;
}

void rtdev_port_refresh(struct rtdev *d)
{
	struct netdev *nd = NULL;
	int err = netdev_get(d->id.ifindex, &nd);

	if (err && err != -ENODEV) {
		rt_say(true, "%s: cannot look at %s", d->id.name, d->id.ifname);
		return;
	}
	engine_lock(d);
	apply(d, nd);
	engine_unlock(d);
	free(nd);
}

/* ---- binding addresses ---- */

/* By address, not by index: one that went and came back may have another. */
static bool is_bound(const struct rtdev *d, const struct gid *g)
{
	for (uint32_t i = 0; i < hca_limits(d->hca)->gid_table_len; i++)
		if (d->bound[i] && gid_eq(&d->bound_gid[i], g))
			return true;
	return false;
}

int rtdev_receive_from(struct rtdev *d, int fd, const struct gid *local)
{
	int err = rtdev_lost(d) ? -EIO : udp_link_add_rx(d->link, fd, local);

	if (err)
		return err;
	err = nic_add_socket(d, fd);
	if (err)
		udp_link_remove_rx(d->link, fd);
	return err;
}

void rtdev_read_gsi(struct rtdev *d)
{
	struct gid addr;
	int fd;

	engine_lock(d);
	for (unsigned i = 0; i < HCA_GIDS_MAX && !rtdev_lost(d); i++) {
		if (d->gsi_read[i])
			continue;
		if (!udp_group_gsi_socket(d->group, i, &addr, &fd))
			break;
		if (fd >= 0 && rtdev_receive_from(d, fd, &addr) == 0)
			d->gsi_read[i] = true;
	}
	engine_unlock(d);
}

static int bind_locked(struct rtdev *d, uint32_t index,
		       const struct gid_entry *e)
{
	int fd, err;

	if (is_bound(d, &e->gid))
		return 0;
	err = udp_group_bind(d->group, &e->gid, gid_scope(&e->gid, e->netdev),
			     &fd);
	if (err)
		return err;
	engine_lock(d);
	err = rtdev_receive_from(d, fd, &e->gid);
	engine_unlock(d);
	rtdev_read_gsi(d);
	if (!err) {
		d->bound[index] = true;
		d->bound_gid[index] = e->gid;
	}
	return err;
}

static int bind_one(struct rtdev *d, uint32_t index)
{
	struct gid_entry e;
	int err = rt_query_gid(d, index, &e);
	int cancel;

	if (err)
		return err == -ENODATA ? -EINVAL : err;
	/* It waits in cancellation points, with locks. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&d->control);
	err = bind_locked(d, index, &e);
	pthread_mutex_unlock(&d->control);
	pthread_setcancelstate(cancel, NULL);
	return err;
}

int rtdev_bind_gid(struct rtdev *d, uint32_t index)
{
	int err = bind_one(d, index);

	if (err && err != -EINVAL)
		rt_say(false, "%s, GID %u: %s", d->id.name, index,
		       udp_group_error());
	return err;
}

int rtdev_bind_all(struct rtdev *d)
{
	int err, first_err = -EADDRNOTAVAIL;
	bool any = false;

	for (uint32_t i = 0; i < hca_limits(d->hca)->gid_table_len; i++) {
		err = bind_one(d, i);
		if (err == -EINVAL)
			continue; /* no entry there */
		if (!err)
			any = true;
		else if (first_err == -EADDRNOTAVAIL)
			first_err = err;
	}
	if (any)
		return 0;
	rt_say(false, "%s: %s", d->id.name, udp_group_error());
	return first_err;
}
