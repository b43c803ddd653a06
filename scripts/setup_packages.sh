#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# setup_packages.sh SCOPE... - sees that the packages of these scopes of
# packages.txt are there. Installs what is missing with apt-get when that can
# be done (root, or sudo without a password); else names it and fails. With
# everything present it changes nothing and needs no privilege.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)

# present CHECK: true when what the check names is there.
present()
{
	what=${1#*:}
	case $1 in
	cmd:*)
		# Administration tools live where users' PATHs do not look.
		PATH=$PATH:/usr/sbin:/sbin command -v "$what" >/dev/null 2>&1
		;;
	pkg:*)
		pkg-config --exists "$what" 2>/dev/null
		;;
	header:*)
		echo "#include <$what>" |
			${CC:-cc} -E -x c - >/dev/null 2>&1
		;;
	file:*)
		# shellcheck disable=SC2086
		ls -d $what >/dev/null 2>&1
		;;
	*)
		echo "packages.txt: unknown check '$1'" >&2
		exit 2
		;;
	esac
}

# missing SCOPE...: prints the packages that are not there.
missing()
{
	while read -r scope package check; do
		case $scope in
		'' | '#'*) continue ;;
		esac
		case " $* " in
		*" $scope "*) present "$check" || echo "$package" ;;
		esac
	done <"$top/packages.txt" | sort -u
}

lack=$(missing "$@" | tr '\n' ' ')
lack=${lack% }
[ -n "$lack" ] || exit 0

how=
if command -v apt-get >/dev/null 2>&1; then
	if [ "$(id -u)" = 0 ]; then
		how=apt
	elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
		how='sudo apt'
	fi
fi
if [ -z "$how" ]; then
	echo "softhca: missing packages (Debian's names): $lack" >&2
	exit 1
fi

root=
[ "$how" = apt ] || root='sudo -n'
echo "softhca: installing $lack"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# $root and $lack are lists of words.
# shellcheck disable=SC2086
if ! {
	$root apt-get update &&
		$root env DEBIAN_FRONTEND=noninteractive \
			apt-get install -y --no-install-recommends $lack
} >"$log" 2>&1; then
	tail -n 20 "$log" >&2
	echo "softhca: apt-get could not install: $lack" >&2
	exit 1
fi
lack=$(missing "$@" | tr '\n' ' ')
if [ -n "$lack" ]; then
	echo "softhca: installed, but still not usable: $lack" >&2
	exit 1
fi
