#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_full.sh BUILD - `make test-full`: everything of `make test`, then
#   - the machines' suites under address and undefined-behaviour sanitizers,
#   - a build with clang, warnings as errors, and the same suites,
#   - longer simulations (SOFTHCA_SIM_RUNS times as many seeds) and fuzzing.
set -u

build=$1
suites='unit script sim fuzz'
failures=0

# suite_args BUILD: --suite options for those of $suites that exist there.
suite_args()
{
	meson introspect --tests "$1" | python3 -c '
import json, sys
have = {s.split(":")[-1] for t in json.load(sys.stdin) for s in t["suite"]}
print(" ".join("--suite " + s for s in sys.argv[1].split() if s in have))
' "$suites"
}

# step WORDS COMMAND...
step()
{
	echo "=== $1"
	shift
	"$@" || failures=$((failures + 1))
}

# configured DIR ARGS...: sets up a build directory once, then builds it.
configured()
{
	dir=$1
	shift
	[ -f "$dir/build.ninja" ] || meson setup "$@" "$dir" || return 1
	ninja -C "$dir"
}

sanitized()
{
	configured "$build-asan" -Db_sanitize=address,undefined \
		-Db_lundef=false || return 1
	# shellcheck disable=SC2046
	UBSAN_OPTIONS=halt_on_error=1 python3 scripts/run_tests.py \
		"$build-asan" $(suite_args "$build-asan")
}

with_clang()
{
	CC=clang configured "$build-clang" || return 1
	# shellcheck disable=SC2046
	python3 scripts/run_tests.py "$build-clang" \
		$(suite_args "$build-clang")
}

long_sims()
{
	SOFTHCA_SIM_RUNS=20 python3 scripts/run_tests.py "$build" --suite sim \
		--timeout-multiplier 20
}

step "the tests of make test" python3 scripts/run_tests.py "$build"
step "address and undefined-behaviour sanitizers" sanitized
step "clang" with_clang
step "longer simulations" long_sims
echo "=== $failures of 4 steps failed"
exit $failures
