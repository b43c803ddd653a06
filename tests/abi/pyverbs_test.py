#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""rdma-core's own test suite (Debian's python3-pyverbs has it) on our device,
on loopback: no test fails, and as many as we know of pass. What it skips is
what we say is not supported.

Argument: the softhca command."""
import glob
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile

from abi_elf import check, done, skip

SOFTHCA = os.path.abspath(sys.argv[1])
SUITE = "/usr/share/doc/rdma-core/tests"
PYTHON = "/usr/bin/python3"
LIMIT_S = 60
# module -> tests that pass with rdma-core 44
MODULES = {
    "addr": 3, "atomic": 9, "cq": 4, "cq_events": 2, "cqex": 5, "device": 13,
    "fork": 1, "mr": 5, "odp": 12, "parent_domain": 5, "pd": 4, "qp": 21,
    "qpex": 18, "relaxed_ordering": 2,
}


def unpack(to):
    """The suite as Debian packs it; False when it is not installed."""
    if not os.path.exists(os.path.join(SUITE, "run_tests.py")):
        return False
    for path in glob.glob(SUITE + "/*"):
        name = os.path.join(to, os.path.basename(path))
        if path.endswith(".gz"):
            with gzip.open(path) as src, open(name[:-3], "wb") as dst:
                shutil.copyfileobj(src, dst)
        else:
            shutil.copy(path, name)
    return True


def loopback_device():
    out = subprocess.run([SOFTHCA, "devices"], capture_output=True, text=True,
                         check=True).stdout
    return re.search(r"^(\S+) on lo,", out, re.M).group(1)


def run(directory, device, module):
    """(passed, failures)"""
    r = subprocess.run(
        [SOFTHCA, "run", PYTHON, "run_tests.py", "-v", "--dev", device,
         "--port", "1", "--gid", "0", "test_" + module],
        cwd=directory, capture_output=True, text=True, check=False,
        timeout=LIMIT_S)
    bad = re.findall(r"^(?:FAIL|ERROR): .*", r.stderr, re.M)
    if r.returncode and not bad:
        bad = ["status %d" % r.returncode] + r.stderr.splitlines()[-5:]
    return len(re.findall(r"\bok$", r.stderr + r.stdout, re.M)), bad


def problems(directory, device, module, known):
    try:
        passed, bad = run(directory, device, module)
    except subprocess.TimeoutExpired:
        return ["not done after %d s" % LIMIT_S]
    if passed < known:
        bad.append("%d passed, want %d" % (passed, known))
    return bad


with tempfile.TemporaryDirectory(prefix="softhca-pyverbs-") as tmp:
    there = unpack(tmp)
    dev = loopback_device() if there else None
    for mod, count in MODULES.items():
        title = "pyverbs test_" + mod
        if there:
            check(title, problems(tmp, dev, mod, count))
        else:
            skip(title, "no python3-pyverbs")
done()
