# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a message costs beside its time: system calls, context switches,
wake-ups, CPU time of each side; and what QPs cost that do nothing.

Each is counted over two runs, of n and of 3 n messages, and the difference is
divided by 2 n: what programs do to start and to end drops out."""
import os
import re
import shutil
import statistics
import subprocess
import time

import bench_run as run
import e2e_lib
from bench_rows import KIB, LIMIT_S, ours, stats_files
from bench_run import Absent, Broken, need

EVENTS = {"raw_syscalls:sys_enter": "syscalls",
          "context-switches": "switches", "sched:sched_wakeup": "wakeups"}
RUNS = 3


def counter():
    """What can count here: "perf" counts all; "strace" system calls alone,
    slowly; None."""
    for tool, cmd in (("perf", ["perf", "stat", "-x,", "-e",
                                ",".join(EVENTS), "true"]),
                      ("strace", ["strace", "-f", "-c", "true"])):
        if not shutil.which(tool):
            continue
        p = subprocess.run(cmd, check=False, capture_output=True, text=True)
        if p.returncode == 0 and "<not" not in p.stderr:
            return tool
    return None


def counted(tool, cmd, path):
    """cmd, with its events counted into a file."""
    die_with_it = ["setpriv", "--pdeathsig", "KILL"] \
        if shutil.which("setpriv") else []
    if tool == "perf":
        return ["perf", "stat", "-x,", "-o", path, "-e", ",".join(EVENTS),
                "--", *die_with_it, *cmd]
    return ["strace", "-f", "-c", "-o", path, *die_with_it, *cmd]


def read_counts(tool, path):
    found = {}
    with open(path, encoding="ascii", errors="replace") as f:
        for line in f:
            part = line.split(",") if tool == "perf" else line.split()
            if tool == "perf" and len(part) > 2 and part[2] in EVENTS and \
                    part[0].isdigit():
                found[EVENTS[part[2]]] = int(part[0])
            elif tool == "strace" and part[-1:] == ["total"]:
                found["syscalls"] = int(part[3])
    return found


class Case:
    """A program pair that moves n messages of size bytes."""

    def __init__(self, key, title, copies, size, way, commands, first_n,
                 quick=False):
        self.key = key
        self.title = title
        self.copies = copies  # of each byte, by analysis of the path
        self.size = size
        self.way = way
        self.commands = commands  # (bench, path, port, n, size) -> 2 lists
        self.first_n = first_n
        self.quick = quick
        self.found = None
        self.trouble = None


def perftest(program, *flags):
    def commands(bench, path, port, n, size):
        need(program)
        stats = stats_files()
        both = [ours(bench, path.opts, stats[i],
                     [program, "-F", "-d", path.devices[i][0], "-x",
                      path.devices[i][1], "-p", port, "-s", size, "-n", n,
                      *flags]) for i in range(2)]
        return both[0], [*both[1], path.server.address], {}
    return commands


def iperf3(bench, path, port, n, size):
    need("iperf3")
    return (["iperf3", "-s", "-1", "-p", port],
            ["iperf3", "-c", path.server.address, "-p", port, "-l", size,
             "-n", n * size, "-J"], {})


def ucx(tls, test):
    def commands(bench, path, port, n, size):
        need("ucx_perftest")
        cmd = ["ucx_perftest", "-p", port]
        env = {"UCX_TLS": tls, "UCX_LOG_LEVEL": "error"}
        if tls.startswith("tcp"):
            env["UCX_NET_DEVICES"] = "lo"
        return cmd, [*cmd, "-t", test, "-s", size, "-n", n, "-w", 10, "-f",
                     path.server.address], env
    return commands


UDP_COPIES = "4 (frame, kernel in, kernel out, memory)"
TCP_COPIES = "2 (kernel in, kernel out)"


def cases(bench):
    big, small = 64 * KIB, 128
    write = "1" if bench.has_one_sided else UDP_COPIES
    send, answer = ("1", "2 (ring in, ring out)") if bench.has_link else \
        (UDP_COPIES, UDP_COPIES)
    yield Case("host.write", "WRITE, same host", write, big, "host",
               perftest("ib_write_bw", "-N"), 10000, True)
    yield Case("host.send", "SEND, same host", send, big, "host",
               perftest("ib_send_bw", "-N"), 10000)
    yield Case("udp.write", "WRITE, UDP on loopback", UDP_COPIES, big, "udp",
               perftest("ib_write_bw", "-N"), 4000, True)
    yield Case("udp.send", "SEND, UDP on loopback", UDP_COPIES, big, "udp",
               perftest("ib_send_bw", "-N"), 4000)
    yield Case("iperf3", "iperf3 TCP on loopback", TCP_COPIES, big, "udp",
               iperf3, 10000, True)
    yield Case("ucx.tcp", "UCX tcp, tag", "2 to 4", big, "udp",
               ucx("tcp,self", "tag_bw"), 4000)
    yield Case("ucx.shm", "UCX shm, tag", "1", big, "udp",
               ucx("sm,self", "tag_bw"), 10000)
    yield Case("host.send_lat", "SEND and answer, same host", answer, small,
               "host", perftest("ib_send_lat"), 20000)
    yield Case("udp.send_lat", "SEND and answer, UDP on loopback",
               UDP_COPIES, small, "udp", perftest("ib_send_lat"), 10000)
    yield Case("udp.send_lat.events",
               "SEND and answer, UDP on loopback, events", UDP_COPIES, small,
               "udp", perftest("ib_send_lat", "-e"), 4000)
    yield Case("ucx.tcp_lat", "UCX tcp, tag and answer", "2 to 4", small,
               "udp", ucx("tcp,self", "tag_lat"), 4000)


def run_once(bench, case, n, tool):
    """(server, client): dicts of totals, and the seconds it took."""
    path = bench.path(case.way)
    port = e2e_lib.free_port()
    server, client, env = case.commands(bench, path, port, n, case.size)
    files = [e2e_lib.tmp_path("perf") for _ in range(2)]
    if tool:
        server, client = (counted(tool, c, f)
                          for c, f in zip((server, client), files))
    begin = time.monotonic()
    done = run.run_pair(path.server, path.client, server, client, port,
                        LIMIT_S, env=env)
    took = time.monotonic() - begin
    totals = []
    for p, f in zip((done.server, done.client), files):
        t = read_counts(tool, f) if tool else {}
        t["cpu_ns"] = (p.usage.ru_utime + p.usage.ru_stime) * 1e9
        if tool == "strace":
            del t["cpu_ns"]  # most of it is strace's doing
        elif not tool:
            t["switches"] = p.usage.ru_nvcsw + p.usage.ru_nivcsw
        totals.append(t)
    return totals, took


def measure_case(bench, case, tool):
    """{name: per message} of both sides."""
    _, took = run_once(bench, case, case.first_n, tool)
    n = case.first_n
    # About a second for the long run, whatever the machine.
    if took > 1.5:
        n = max(100, int(n * 1.0 / took))
    series = {}
    for _ in range(RUNS):
        short, _ = run_once(bench, case, n, tool)
        long, _ = run_once(bench, case, 3 * n, tool)
        for side, a, b in zip(("passive", "active"), short, long):
            for name in b:
                series.setdefault((side, name), []).append(
                    max(0.0, (b[name] - a.get(name, 0)) / (2 * n)))
    return {"%s_%s" % k: statistics.median(v) for k, v in series.items()}


def measure_all(bench, quick, wanted, say):
    tool = counter()
    done = []
    for case in cases(bench):
        if (quick and not case.quick) or not wanted("cost." + case.key):
            continue
        say("cost of " + case.title)
        try:
            case.found = measure_case(bench, case, tool)
        except (Absent, Broken, e2e_lib.Failed, e2e_lib.Skip, OSError) as e:
            case.trouble = str(e)
        done.append(case)
    return done, tool


# ---- QPs that do nothing ----

def switches(pid):
    total = 0
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, tid),
                  encoding="ascii") as f:
            total += sum(int(x) for x in re.findall(
                r"ctxt_switches:\s*(\d+)", f.read()))
    return total


def wait_line(p, until):
    while True:
        lines = run.json_lines(p.output())
        if lines:
            return lines[0]
        if not p.running():
            raise Broken("ended early: " + p.said())
        if time.monotonic() > until:
            raise Broken("%s: not connected in time" % " ".join(p.cmd))
        time.sleep(0.05)


def idle(bench, way, qps, watch_s=10, limit_s=90):
    """Context switches of both processes in watch_s; how long connecting
    took, and resident memory of a QP."""
    path = bench.path(way)
    port = e2e_lib.free_port()
    args = [bench.exe("target"), "-d", path.devices[0][0], "-g",
            path.devices[0][1], "-p", port, "-m", "idle", "-q", qps, "-s", 64,
            "-T", 14]
    until = time.monotonic() + limit_s
    stats = stats_files()
    s, c = run.start_pair(
        path.server, path.client, ours(bench, path.opts, stats[0], args),
        ours(bench, path.opts, stats[1], [*args, path.server.address]), port,
        until)
    try:
        lines = [wait_line(p, until) for p in (s, c)]
        time.sleep(2)  # the last timer of the last WRITE
        before = [switches(p.pid) for p in (s, c)]
        time.sleep(watch_s)
        if not (s.running() and c.running()):
            raise Broken("a process ended: %s; %s" % (s.said(), c.said()))
        after = [switches(p.pid) for p in (s, c)]
    finally:
        run.end_all([s, c])
    return {"switches": sum(after) - sum(before), "watch_s": watch_s,
            "connect_s": max(d["connect_s"] for d in lines),
            "bytes_a_qp": max(d["bytes_a_qp"] for d in lines)}


def idle_all(bench, quick, wanted, say):
    """{"idle.WAY.QPS": numbers or the reason}."""
    found = {}
    for way in ("host", "udp"):
        for qps in (100,) if quick else (100, 10000):
            key = "idle.%s.%d" % (way, qps)
            if not wanted(key):
                continue
            say("%d idle QPs, %s" % (qps, way))
            try:
                found[key] = idle(bench, way, qps)
            except (Absent, Broken, e2e_lib.Failed, OSError) as e:
                found[key] = str(e)
    return found


# ---- is it the right data? ----

def checks(bench, quick, wanted, say):
    """Programs of the tests that compare every byte: (name, trouble)."""
    found = []
    for way in ("host", "udp", "veth1500", "veth9000"):
        for name, args in (("many_qps", ["-q", 16, "-s", 64 * KIB]),
                           ("onesided", ["-n", 50, "-s", MIB_CHECK, "-m",
                                         "sleep"]),
                           ("onesided", ["-n", 50, "-s", MIB_CHECK, "-m",
                                         "compute"])):
            if not wanted("check." + way) or (quick and name != "many_qps"):
                continue
            title = "%s %s, %s" % (name, " ".join(map(str, args)), way)
            say(title)
            try:
                check(bench, way, name, args)
                found.append((title, None))
            except Absent as e:
                found.append((title, "skipped: " + str(e)))
            except (Broken, e2e_lib.Failed, OSError) as e:
                found.append((title, str(e)))
    return found


MIB_CHECK = 1 << 20


def check(bench, way, name, args):
    path = bench.path(way)
    port = e2e_lib.free_port()
    stats = stats_files()
    cmds = []
    for i in range(2):
        d, gid = path.devices[i]
        cmds.append(ours(bench, path.opts, stats[i],
                         [os.path.join(bench.build, "tests", "e2e", name),
                          "-d", d, "-g", gid, "-p", port, *args]))
    run.run_pair(path.server, path.client, cmds[0],
                 [*cmds[1], path.server.address], port, 60)
