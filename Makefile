# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# A thin front to Meson; each target first sees that its packages are there
# (packages.txt). Variables: BUILD, the build directory; PREFIX, DESTDIR for
# `make install`; MESON_ARGS for the first configuration; ALLOWED_SKIPS, a file
# that names the tests which may be skipped (default: any).

BUILD ?= build
PREFIX ?= /usr/local
MESON_ARGS ?=
ALLOWED_SKIPS ?=

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

install: build
	meson install -C $(BUILD) --no-rebuild

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-clang $(BUILD)-arm64 \
		$(BUILD)-arm64-root out

.PHONY: all build run test lint test-full install clean
