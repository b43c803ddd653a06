/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * losses.c - what lies behind packets that are counted as dropped, for those
 * who ask with --verbose: once a device.
 */
#include "rt/config.h"
#include "rt/rtdev.h"

void rtdev_explain_losses(struct rtdev *d)
{
	if (!rt_config()->verbose)
		return;
	if (udp_link_counters(d->link)->rx_bad_icrc &&
	    !atomic_exchange(&d->said_icrc, true))
		rt_say(true,
		       "%s: packets with a wrong ICRC are dropped "
		       "(rx_bad_icrc): they were damaged on the way, or a NAT "
		       "changed their addresses or ports, which RoCEv2 does "
		       "not survive",
		       d->id.name);
	if (hca_counters(d->hca)->rx_drop_src &&
	    !atomic_exchange(&d->said_src, true))
		rt_say(true,
		       "%s: packets whose addresses are not those of the QP's "
		       "path are dropped (rx_drop_src): the peer uses another "
		       "GID than it told, or a NAT is between",
		       d->id.name);
}
