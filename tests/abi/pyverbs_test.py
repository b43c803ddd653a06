#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""rdma-core's own test suite (Debian's python3-pyverbs has it) on our device, on
loopback: pyverbs.golden lists its tests, each of which passes, or is skipped by
the suite for the reason that stands beside it. One process a test, since a lost
completion would hang it.

Arguments: the softhca command; then perhaps --list, which prints what a golden
file would say now, or the ids to run."""
import concurrent.futures
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
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "pyverbs.golden")
PYTHON = "/usr/bin/python3"
LIMIT_S = 60
AT_ONCE = 2
# What a device like this one is asked: not the tests of one vendor's device,
# of flow steering, tag matching and RSS, and of rdma_cm.
MODULES = ("addr", "atomic", "cq", "cq_events", "cqex", "device", "fork", "mr",
           "odp", "parent_domain", "pd", "qp", "qpex", "relaxed_ordering",
           "shared_pd")


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


def golden():
    """[(id, reason it is skipped or '')]"""
    rows = []
    with open(GOLDEN, encoding="utf-8") as f:
        for line in f:
            line = line.strip()
            if line and not line.startswith("#"):
                name, _, why = line.partition(" - ")
                rows.append((name, why))
    return rows


def ids_of_suite(directory):
    """All tests of MODULES, by the sources."""
    found = []
    for mod in MODULES:
        cls = None
        with open(os.path.join(directory, "test_%s.py" % mod),
                  encoding="utf-8") as f:
            for line in f:
                m = re.match(r"class (\w+)", line)
                cls = m.group(1) if m else cls
                m = re.match(r"    def (test_\w+)", line)
                if m:
                    found.append("%s.%s.%s" % (mod, cls, m.group(1)))
    return found


def run(directory, device, name):
    """'pass', 'skip: why' or a failure's last lines."""
    env = dict(os.environ, XDG_RUNTIME_DIR=directory)
    cmd = [SOFTHCA, "run", PYTHON, "run_tests.py", "-v", "--dev", device,
           "--port", "1", "--gid", "0", "test_" + name]
    try:
        r = subprocess.run(cmd, cwd=directory, capture_output=True, text=True,
                           check=False, timeout=LIMIT_S, env=env)
    except subprocess.TimeoutExpired:
        return "not done after %d s" % LIMIT_S
    text = r.stdout + r.stderr
    skipped = re.search(r"skipped ['\"](.*)['\"]$", text, re.M)
    if r.returncode == 0 and skipped:
        return "skip: " + skipped.group(1)
    if r.returncode == 0 and re.search(r"^Ran 1 test", text, re.M):
        return "pass"
    return "status %d: %s" % (r.returncode, " | ".join(text.splitlines()[-6:]))


def problems(result, why):
    if result == "pass":
        if why and not why.startswith("either: "):
            return ["passes: pyverbs.golden says it does not"]
        return []
    if result.startswith("skip: ") and why:
        return []
    return [result]


def run_all(directory, rows):
    dev = loopback_device()
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda r: run(directory, dev, r[0]), rows))


def main():
    args = sys.argv[2:]
    with tempfile.TemporaryDirectory(prefix="softhca-pyverbs-") as tmp:
        if not unpack(tmp):
            skip("pyverbs", "no python3-pyverbs")
            done()
        if args == ["--list"]:
            rows = [(name, "") for name in ids_of_suite(tmp)]
            for row, result in zip(rows, run_all(tmp, rows)):
                print(row[0] + ("" if result == "pass" else " - " + result))
            return
        rows = [r for r in golden() if not args or r[0] in args]
        listed = {r[0] for r in rows}
        if not args:
            check("pyverbs: every test is listed",
                  ["not listed: " + i for i in ids_of_suite(tmp)
                   if i not in listed])
        for row, result in zip(rows, run_all(tmp, rows)):
            check("pyverbs " + row[0], problems(result, row[1]))
    done()


main()
