#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Measures softhca, its peers and this machine's limits in turn, and says how
they compare: docs/benchmarks.md.

    bench.py BUILD [--quick] [--rounds N] [--only PATTERN]... [--out DIR]
             [--cpus A,B] [--list]

Runs in a network namespace of its own where it can; everything it starts is
bounded in time, and ends with it. The exit status is 0 when it could measure,
whatever came out: a missed target is in the table.
"""
import argparse
import contextlib
import datetime
import fnmatch
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROUNDS, QUICK_ROUNDS = 7, 3
TARGET_S, QUICK_TARGET_S = 0.4, 0.15
FAILURES_MAX = 2  # then a row is left out of the further rounds
PACKAGES = ("perftest", "ucx-utils", "libfabric-bin", "iperf3", "ibverbs-utils")


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--rounds", type=int, default=0)
    p.add_argument("--only", action="append", default=[])
    p.add_argument("--out", default="out")
    p.add_argument("--cpus", default="")
    p.add_argument("--list", action="store_true")
    p.add_argument("--limit-s", type=float, default=0,
                   help="no round begins after so many seconds")
    a = p.parse_args()
    a.build = os.path.abspath(a.build)
    a.out = os.path.abspath(a.out)
    a.only = [x for o in a.only for x in re.split(r"[ ,]+", o) if x]
    a.rounds = a.rounds or (QUICK_ROUNDS if a.quick else ROUNDS)
    a.limit_s = a.limit_s or (240 if a.quick else 1500)
    return a


def into_netns():
    """This program again, in a network namespace where nobody else's sockets
    are. Where none can be made it goes on here, without the veth rows."""
    if os.environ.get("BENCH_NETNS"):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=False)
        return
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    for cmd in (["unshare", "-n"], ["unshare", "-rn"]):
        if shutil.which("unshare") and shutil.which("ip") and subprocess.run(
                cmd + ["true"], check=False,
                capture_output=True).returncode == 0:
            os.environ["BENCH_NETNS"] = "1"
            os.execvp(cmd[0], cmd + [sys.executable] + sys.argv)
    os.environ["BENCH_NETNS"] = "0"


def two_cpus(text):
    """The passive side's and the active side's; of different cores where
    there are such."""
    if text:
        a, b = (int(x) for x in text.split(","))
        return a, b
    allowed = sorted(os.sched_getaffinity(0))
    cores = {}
    for c in allowed:
        name = str(c)
        with contextlib.suppress(OSError):
            with open("/sys/devices/system/cpu/cpu%d/topology/"
                      "thread_siblings_list" % c, encoding="ascii") as f:
                name = f.read().strip()
        cores.setdefault(name, c)
    chosen = sorted(cores.values())
    if len(chosen) < 2:
        chosen = allowed * 2
    return chosen[0], chosen[1]


# ---- the machine ----

def first_line(*cmd):
    try:
        p = subprocess.run(cmd, check=False, capture_output=True, text=True,
                           timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (p.stdout or p.stderr).strip().split("\n")[0]


def cpu_name():
    with contextlib.suppress(OSError):
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            m = re.search(r"^model name\s*:\s*(.+)$", f.read(), re.M)
            if m:
                return m[1]
    return platform.machine()


def versions():
    found = []
    for p in PACKAGES:
        v = first_line("dpkg-query", "-W", "-f", "${Version}", p)
        found.append("%s %s" % (p, v if v and "no packages" not in v
                                else "absent"))
    return ", ".join(found)


def sysctl(name):
    with contextlib.suppress(OSError):
        with open("/proc/sys/" + name.replace(".", "/"),
                  encoding="ascii") as f:
            return f.read().strip()
    return "?"


def commit():
    top = os.path.dirname(HERE)
    text = first_line("git", "-C", top, "rev-parse", "--short=12", "HEAD")
    if not text or "fatal" in text:
        return "unknown"
    if first_line("git", "-C", top, "status", "--porcelain", "-uno"):
        text += ", changed"
    return text


def machine_facts(a, cpus):
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime(
            "%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "CPU": "%s, %d CPUs; passive side on %d, active side on %d" % (
            cpu_name(), os.cpu_count(), *cpus),
        "kernel": platform.release(),
        "packages": versions(),
        "TCP": sysctl("net.ipv4.tcp_congestion_control"),
        "rmem_default": sysctl("net.core.rmem_default"),
        "load at the start": "%.2f" % os.getloadavg()[0],
        "namespaces": "yes" if os.environ["BENCH_NETNS"] == "1" else "no",
        "quick": a.quick,
        "rounds": 0,
    }


def same_host_way(rows):
    mine = [r for r in rows if r.key.startswith("host.") and any(r.values)]
    udp = [r.key for r in mine if r.through_udp]
    if not udp:
        return "shared memory" if mine else "-"
    return "UDP sockets" if len(udp) == len(mine) else \
        "shared memory, but UDP sockets in: " + ", ".join(udp)


# ---- the rounds ----

def measure(bench, row, keep):
    """One row once; the warm-up round's numbers are not kept."""
    # Imported here: bench_run reads the environment.
    import e2e_lib
    from bench_run import Absent, Broken
    value = None
    if row.failures < FAILURES_MAX:
        try:
            value = row.measure(bench, row)
        except (Absent, e2e_lib.Skip) as e:
            row.trouble = str(e)
            row.failures = FAILURES_MAX
        except (Broken, e2e_lib.Failed, OSError, ValueError, IndexError,
                ZeroDivisionError) as e:
            row.failures += 1
            row.trouble = "failed: " + " ".join(str(e).split())[-400:]
    if keep:
        row.values.append(value)
    else:
        row.losses = row.through_udp = 0
    return value


def progress(text):
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K" + text[:76])
        sys.stderr.flush()


def say(text):
    progress("")
    print(text, flush=True)


def rounds(bench, rows, a, begin):
    """Returns how many rounds were run in full."""
    for r in range(a.rounds + 1):
        at = time.monotonic()
        for i, row in enumerate(rows):
            progress("round %d of %d: %d of %d, %s" % (
                r, a.rounds, i + 1, len(rows), row.key))
            measure(bench, row, r > 0)
        took = time.monotonic() - at
        say("%s: %.0f s" % ("warm-up" if r == 0 else "round %d of %d" % (
            r, a.rounds), took))
        if r and time.monotonic() - begin + took > a.limit_s:
            say("no time for more rounds")
            return r
    return a.rounds


def wanted_by(patterns):
    def wanted(key):
        return not patterns or any(fnmatch.fnmatch(key, p) for p in patterns)
    return wanted


def print_verdicts(judged):
    misses = 0
    for d in judged:
        if d["must_verdict"] == d["aim_verdict"] == "not measured":
            continue
        misses += d["must_verdict"] == "MISS"
        say("%-20s %-44s %12s  must %-12s %-12s aim %-12s %s" % (
            d["path"], d["what"][:44], d["measured"], d["must_verdict"],
            d["must_ratio"][:12], d["aim_verdict"], d["aim_ratio"]))
    say("%d of the musts missed" % misses)


def prepare(a):
    os.environ["SOFTHCA"] = os.path.join(a.build, "tools", "softhca")
    os.environ["HELPERS"] = os.path.join(a.build, "tests", "e2e")
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    os.environ["SOFTHCA_ONE_SIDED"] = "1"  # before e2e_lib says no
    sys.dont_write_bytecode = True
    # So that `finally` runs, and ends what was started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))


def main():
    a = arguments()
    if not a.list:
        into_netns()
    prepare(a)
    import bench_cost
    import bench_report
    import bench_rows
    wanted = wanted_by(a.only)
    rows = [r for r in bench_rows.all_rows()
            if wanted(r.key) and (r.quick or not a.quick or a.only)]
    if a.list:
        print("\n".join("%-28s %s" % (r.key, r.title) for r in rows))
        return
    begin = time.monotonic()
    cpus = two_cpus(a.cpus)
    facts = machine_facts(a, cpus)
    bench = bench_rows.Bench(a.build, cpus,
                             QUICK_TARGET_S if a.quick else TARGET_S)
    say("%d rows, %d rounds, CPUs %d and %d" % (len(rows), a.rounds, *cpus))
    try:
        checks = bench_cost.checks(bench, a.quick, wanted, progress)
        facts["rounds"] = rounds(bench, rows, a, begin)
        cases, tool = bench_cost.measure_all(bench, a.quick, wanted, progress)
        idle = bench_cost.idle_all(bench, a.quick, wanted, progress)
    finally:
        bench.close()
    facts["same host goes through"] = same_host_way(rows)
    facts["seconds"] = round(time.monotonic() - begin)
    results = bench_report.Results(rows, idle)
    judged, paths = bench_report.write_all(a.out, facts, results, cases, tool,
                                           checks)
    print_verdicts(judged)
    say("written: " + " ".join(os.path.relpath(p) for p in paths))
    if not any(v for r in rows for v in r.values) and rows:
        sys.exit("bench: nothing could be measured")


main()
