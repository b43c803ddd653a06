#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# guest_image.sh DIR - makes DIR/vmlinuz and DIR/base.cpio: Debian's kernel with
# rdma_rxe, and the programs that talk to us from there, of the release that
# this host's apt knows. Packages are downloaded to $INTEROP_DEBS (default
# DIR/debs) and only unpacked, never installed; needs no privilege. What is
# there already is kept. Status 77, with the reason: cannot be had here.
set -eu

dir=$1
debs=${INTEROP_DEBS:-$dir/debs}
# ibverbs-utils and perftest are the peers, the two libraries are our own
# command's, the rest lets them run. (The shell is dash, since busybox's prefers
# its own ip, tc and modprobe.)
packages='busybox-static dash kmod iproute2 ibverbs-providers
	ibverbs-utils perftest libyaml-0-2 libjansson4'
# udp_diag: who holds a UDP port.
modules='virtio_pci virtio_net virtio_rng crc32_generic crc32_pclmul
	ib_uverbs rdma_rxe ifb act_mirred cls_u32 sch_ingress sch_netem sch_prio
	udp_diag'
PATH=$PATH:/usr/sbin:/sbin

skip()
{
	echo "no guest image: $*" >&2
	exit 77
}

# apt ARGS: apt-get as if nothing were installed, so that it names everything.
apt()
{
	apt-get -qq -o Dir::State::status=/dev/null -o Debug::NoLocking=1 \
		-o APT::Sandbox::User= --no-install-recommends "$@"
}

stamp=$(cksum <"$0")
[ "$(cat "$dir/stamp" 2>/dev/null)" != "$stamp" ] || exit 0
rm -rf "$dir/stamp" "$dir/root" "$dir/kernel"
mkdir -p "$debs" "$dir/root" "$dir/kernel"

for tool in apt-get apt-cache dpkg cpio depmod modprobe; do
	command -v $tool >/dev/null || skip "no $tool"
done
[ "$(dpkg --print-architecture)" = amd64 ] || skip 'not an amd64 system'
image=$(apt-cache depends linux-image-amd64 2>/dev/null |
	sed -n 's/.*Depends: \(linux-image-[^ ]*\)/\1/p' | head -n 1)
[ -n "$image" ] || skip 'apt knows no kernel (apt-get update?)'
release=${image#linux-image-}

# Inst NAME (VERSION ...): the closure of what is asked for.
apt -s install $packages 2>/dev/null |
	sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*/\1=\2/p' >"$dir/closure"
[ -s "$dir/closure" ] || skip "apt does not know all of: $packages"
apt-cache policy "$image" | sed -n "s/.*Candidate: /$image=/p" \
	>>"$dir/closure"

# A version's colon is %3a in the file's name.
deb_of()
{
	echo "$debs/${1%%=*}_$(echo "${1#*=}" | sed 's/:/%3a/')"_*.deb
}

lack=
wanted=$(cat "$dir/closure")
for p in $wanted; do
	[ -e "$(deb_of "$p")" ] || lack="$lack $p"
done
if [ -n "$lack" ]; then
	(cd "$debs" && apt download $lack) >"$dir/apt.log" 2>&1 ||
		skip "download failed: $(tail -n 1 "$dir/apt.log")"
fi

for p in $wanted; do
	case $p in
	"$image"=*) dpkg -x "$(deb_of "$p")" "$dir/kernel" ;;
	*) dpkg -x "$(deb_of "$p")" "$dir/root" ;;
	esac
done

cd "$dir/root"
rm -rf usr/share etc/libibverbs.d/[!r]* etc/pam* usr/lib/*/perl*
mkdir -p proc sys dev tmp
kernel=../kernel/lib/modules/$release
depmod -b ../kernel "$release"
for m in $modules; do
	modprobe -C /dev/null -d ../kernel -S "$release" --show-depends "$m"
done >../insmod
sed -n 's/^insmod \([^ ]*\).*/\1/p' ../insmod | sort -u | while read -r f; do
	to=lib/modules/$release/${f##*/modules/"$release"/}
	mkdir -p "${to%/*}"
	cp "$f" "$to"
done
cp $kernel/modules.builtin $kernel/modules.builtin.modinfo \
	$kernel/modules.order "lib/modules/$release/"
depmod -b . "$release"
find . | cpio -o -H newc -R 0:0 --quiet >../base.cpio
cp "../kernel/boot/vmlinuz-$release" ../vmlinuz
cd ..
rm -rf root kernel insmod
echo "$stamp" >stamp
