#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_arm64.sh BUILD - cross-builds everything for arm64 into BUILD and runs
# the unit (but for two that test the kernel: tests/unit/meson.build), script,
# sim and fuzz suites under qemu-user.
#
# The libraries for arm64 are downloaded with apt into BUILD-root, below lists
# of its own, and only unpacked: the machine's packages and architectures stay
# as they are. Without cross compiler, qemu or packages it prints one line with
# the reason, and ends with status 0.
set -eu

build=$1
top=$(cd "$(dirname "$0")/.." && pwd)
triplet=aarch64-linux-gnu
packages='libdeflate-dev libcmocka-dev libjansson-dev libpcap0.8-dev
	libibverbs-dev'
# The cross compiler has these.
theirs='^(libc6|libc6-dev|libc-.*|libcrypt.*|libgcc.*|gcc-.*|linux-libc-dev|libnsl.*|libtirpc.*|rpcsvc-proto)='

skip()
{
	echo "arm64: skipped: $*"
	exit 0
}

# apt ARGS: apt-get of another machine, an arm64 one with nothing installed.
apt()
{
	apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
		-o Dir::State::Lists="$root/lists" -o Dir::Cache="$root/cache" \
		-o Dir::State::status=/dev/null -o Debug::NoLocking=1 \
		-o APT::Sandbox::User= --no-install-recommends "$@"
}

# fill_root: unpacks what $packages need into $root.
fill_root()
{
	mkdir -p "$root/lists/partial" "$root/cache/archives/partial" \
		"$root/debs"
	apt update >"$root/log" 2>&1 || return 1
	# shellcheck disable=SC2086
	wanted=$(apt -s install $packages 2>>"$root/log" |
		sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*/\1=\2/p' |
		grep -Ev "$theirs")
	[ -n "$wanted" ] || return 1
	# shellcheck disable=SC2086
	(cd "$root/debs" && apt download $wanted) >>"$root/log" 2>&1 ||
		return 1
	for deb in "$root"/debs/*.deb; do
		dpkg -x "$deb" "$root" || return 1
	done
	touch "$root/filled"
}

# cross_file: the compiler with $root behind its own directories.
cross_file()
{
	lib=$root/usr/lib/$triplet
	cat <<END
[binaries]
c = ['$triplet-gcc', '-B$lib/']
exe_wrapper = ['$qemu', '-L', '/usr/$triplet',
	'-E', 'LD_LIBRARY_PATH=$lib:$root/lib/$triplet']
[properties]
sys_root = '$root'
pkg_config_libdir = '$lib/pkgconfig:$root/usr/share/pkgconfig'
[built-in options]
c_args = ['-idirafter', '$root/usr/include',
	'-idirafter', '$root/usr/include/$triplet']
c_link_args = ['-Wl,--allow-shlib-undefined', '-L$lib',
	'-Wl,-rpath-link,$lib:$root/lib/$triplet']
END
}

command -v $triplet-gcc >/dev/null || skip "no $triplet-gcc"
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64) ||
	skip 'no qemu-aarch64'
[ -e /usr/$triplet/lib/crti.o ] || skip 'no libc6-dev for arm64'
case $build in /*) ;; *) build=$PWD/$build ;; esac
root=$build-root
if [ ! -e "$root/filled" ]; then
	command -v apt-get >/dev/null || skip 'no apt-get'
	fill_root || skip "no packages: $(tail -n 1 "$root/log")"
fi
cross_file >"$root/cross.txt"
[ -f "$build/build.ninja" ] || meson setup --cross-file "$top/cross/aarch64.txt" \
	--cross-file "$root/cross.txt" "$build" "$top"
ninja -C "$build"
python3 "$top/scripts/run_tests.py" "$build" --suite unit --suite script \
	--suite sim --suite fuzz --timeout-multiplier 10
