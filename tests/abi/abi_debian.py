#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Every undefined RDMA symbol of the RDMA programs installed here is exported
by our libraries. Programs are linked with BIND_NOW: one missing name, even if
it is never called, and the program does not start.

Argument: directory of the built libraries."""
import os
import subprocess
import sys

from abi_elf import check, done, skip, symbols

lib_dir = sys.argv[1]
PACKAGES = ["ibverbs-utils", "perftest", "rdmacm-utils", "python3-pyverbs"]
# Looked at where they happen to be installed; needed.list speaks for them.
OTHERS = ["qperf", "libucx0", "libfabric1", "fio", "librdmacm1"]
OURS = {"IBVERBS_": "libibverbs.so.1", "MLX5_": "libmlx5.so.1",
        "MLX4_": "libmlx4.so.1", "EFA_": "libefa.so.1",
        "MANA_": "libmana.so.1", "HNS_": "libhns.so.1"}

exported = {lib: symbols(os.path.join(lib_dir, lib))[0]
            for lib in set(OURS.values())}


def elf_files(package):
    """The package's ELF files, [] when it is not installed."""
    r = subprocess.run(["dpkg", "-L", package], capture_output=True,
                       text=True, check=False)
    for path in r.stdout.splitlines() if r.returncode == 0 else []:
        if os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as f:
                if f.read(4) == b"\x7fELF":
                    yield path


def missing(path):
    for name, version, _ in sorted(symbols(path)[1]):
        for prefix, lib in OURS.items():
            if version.startswith(prefix) and \
               (name, version) not in exported[lib]:
                yield "%s wants %s@%s" % (path, name, version)


for package in PACKAGES + OTHERS:
    title = "%s finds all its names" % package
    files = list(elf_files(package)) if os.path.exists("/usr/bin/dpkg") else []
    if files:
        check("%s (%d files)" % (title, len(files)),
              [m for f in files for m in missing(f)])
    elif package in PACKAGES:
        skip(title, "not installed")
done()
