# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# A thin front to Meson; each target first sees that its packages are there
# (packages.txt). Variables: BUILD, the build directory; PREFIX, DESTDIR for
# `make install`; MESON_ARGS for the first configuration; ALLOWED_SKIPS, a file
# that names the tests which may be skipped (default: any). Of `make bench`:
# BENCH=quick, ROUNDS, ONLY (patterns of row names), BENCH_OUT, the directory of
# the results.

BUILD ?= build
PREFIX ?= /usr/local
MESON_ARGS ?=
ALLOWED_SKIPS ?=
BENCH ?=
ROUNDS ?=
ONLY ?=
BENCH_OUT ?= out

all: build

build:
	@scripts/setup_packages.sh build
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja:
	meson setup --prefix=$(PREFIX) $(MESON_ARGS) $(BUILD)

run:
	@scripts/setup_packages.sh build run
	@$(MAKE) --no-print-directory $(BUILD)/build.ninja
	@ninja -C $(BUILD) demo
	@scripts/run_demo.sh $(BUILD)

test:
	@scripts/setup_packages.sh build test
	@$(MAKE) --no-print-directory build
	@python3 scripts/run_tests.py $(BUILD) \
		$(if $(ALLOWED_SKIPS),--allowed-skips $(ALLOWED_SKIPS))

lint:
	@scripts/setup_packages.sh build test
	@$(MAKE) --no-print-directory build
	@python3 scripts/run_tests.py $(BUILD) --suite lint

test-full:
	@scripts/setup_packages.sh build test full
	@$(MAKE) --no-print-directory build
	@scripts/test_full.sh $(BUILD)

# A peer that is missing is a line of the table, not a reason to stop.
bench:
	@scripts/setup_packages.sh build
	@scripts/setup_packages.sh bench || echo "softhca: going on without them"
	@$(MAKE) --no-print-directory build
	@python3 bench/bench.py $(BUILD) --out $(BENCH_OUT) \
		$(if $(filter quick,$(BENCH)),--quick) \
		$(if $(ROUNDS),--rounds $(ROUNDS)) \
		$(if $(ONLY),--only '$(ONLY)')

install: build
	meson install -C $(BUILD) --no-rebuild

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-clang $(BUILD)-arm64 \
		$(BUILD)-arm64-root out

.PHONY: all build run test lint test-full bench install clean
