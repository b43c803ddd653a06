#!/bin/dash
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The guest's first process: modules, the two interfaces, rxe0 on the first of
# them, then the agent. The kernel command line names what differs:
# guest.mac, guest.ip4, guest.ip6, guest.mtu, guest.port.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ LC_ALL=C
/bin/busybox mkdir -p /proc /sys /dev /tmp /run
/bin/busybox mount -t proc none /proc
/bin/busybox mount -t sysfs none /sys
/bin/busybox mount -t devtmpfs none /dev
# Debian's own programs (ip, tc, modprobe) come before busybox's.
/bin/busybox mkdir /bb
/bin/busybox --install -s /bb
PATH=$PATH:/bb

arg()
{
	sed -n "s/.*guest\.$1=\([^ ]*\).*/\1/p" /proc/cmdline
}

# netdev_of MAC: the interface's name, once it is there.
netdev_of()
{
	until grep -l "$1" /sys/class/net/*/address; do
		usleep 20000
	done | cut -d / -f 5
}

ulimit -l unlimited
for m in virtio_pci virtio_net virtio_rng crc32_generic crc32_pclmul \
	ib_uverbs rdma_rxe; do
	modprobe $m || echo "guest: no module $m"
done
ip link set lo up
ip link set "$(netdev_of "$(arg mac)")" name wire
echo 0 >/proc/sys/net/ipv6/conf/wire/accept_ra
ip link set wire mtu "$(arg mtu)" up
ip addr add "$(arg ip4)" dev wire
ip addr add "$(arg ip6)" dev wire nodad
for d in /sys/class/net/*; do
	case ${d##*/} in
	lo | wire) ;;
	*) ip link set "${d##*/}" name control ;;
	esac
done
# The host end's address is what qemu's built-in network gives out.
ip link set control up
ip addr add 10.0.2.15/24 dev control
rdma link add rxe0 type rxe netdev wire || echo "guest: no rxe0"
/guest_agent "$(arg port)"
echo "guest: ready"
# This process must live: it is the parent of everybody's orphans.
while :; do
	wait
	sleep 1
done
