#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# test_full.sh BUILD - `make test-full`: everything of `make test`, then
#   - longer variants of some of them (E2E_LONG=1),
#   - the machines' suites under address and undefined-behaviour sanitizers,
#   - a build with clang, warnings as errors, and the same suites,
#   - each fuzz target on new inputs for FUZZ_SECONDS (60),
#   - an arm64 build and those suites under qemu-user, where that can be had,
#   - SIM_ROUNDS (2000) rounds of each simulation, from seed SIM_SEED (1000).
set -u

build=$1
suites='unit script sim fuzz'
failures=0
steps=0

# suite_args DIR: --suite options for those of $suites that exist there.
suite_args()
{
	meson introspect --tests "$1" | python3 -c '
import json, sys
have = {s.split(":")[-1] for t in json.load(sys.stdin) for s in t["suite"]}
print(" ".join("--suite " + s for s in sys.argv[1].split() if s in have))
' "$suites"
}

# sim_profiles DIR: what the sim suite runs sim_run for.
sim_profiles()
{
	meson introspect --tests "$1" | python3 -c '
import json, sys
cmds = [t["cmd"] for t in json.load(sys.stdin)]
for profile in sorted({c[-1] for c in cmds if c[0].endswith("/sim_run")}):
    print(profile)
'
}

# step WORDS COMMAND...
step()
{
	echo "=== $1"
	steps=$((steps + 1))
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
		"$build-asan" $(suite_args "$build-asan") \
		--timeout-multiplier 5
}

with_clang()
{
	CC=clang configured "$build-clang" -Dfuzzers=true || return 1
	# shellcheck disable=SC2046
	python3 scripts/run_tests.py "$build-clang" \
		$(suite_args "$build-clang")
}

fuzzed()
{
	bad=0
	for target in "$build-clang"/tests/fuzz/fuzz_*_libfuzzer; do
		name=${target##*/fuzz_}
		name=${name%_libfuzzer}
		new=$build-clang/corpus-$name
		mkdir -p "$new"
		"$target" -max_total_time="${FUZZ_SECONDS:-60}" \
			-print_final_stats=0 -verbosity=0 \
			-artifact_prefix="$new-" "$new" \
			"tests/fuzz/corpus/$name" || bad=1
	done
	return $bad
}

long_sims()
{
	bad=0
	for profile in $(sim_profiles "$build"); do
		"$build/tests/sim/sim_run" --seed "${SIM_SEED:-1000}" \
			--rounds "${SIM_ROUNDS:-2000}" "$profile" || bad=1
	done
	return $bad
}

# The kernel's Soft-RoCE as the other end, everything instead of the short part.
interop()
{
	INTEROP=full python3 scripts/run_tests.py "$build" --suite interop \
		--timeout-multiplier 8
}

step "the tests of make test, long variants" env E2E_LONG=1 python3 scripts/run_tests.py "$build"
step "address and undefined-behaviour sanitizers" sanitized
step "clang" with_clang
step "fuzzing" fuzzed
step "arm64 under qemu-user" scripts/test_arm64.sh "$build-arm64"
step "longer simulations" long_sims
step "the kernel's Soft-RoCE" interop
echo "=== $failures of $steps steps failed"
exit $failures
