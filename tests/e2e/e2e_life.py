#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Death and stillness: processes that end in every way, stop, fork, lose their
descriptors, cancel threads. What the peer sees, and that nothing is left.

E2E_LONG=1 (make test-full) adds the long variants.
"""
import glob
import os
import re
import signal
import subprocess
import time

from e2e_lib import (Failed, Skip, done, expect, finish_pair, helper, in_own_netns,
                     need, run, run_pair, start_pair, test)

LONG = os.environ.get("E2E_LONG") == "1"
STOCK = ["--rcvbuf", "stock"]
# 4.096 us * 2^16 = 0.27 s, sent twice: 0.54 s until a WR fails.
QUICK = ["-T", 16, "-R", 1]
# Nothing that this machine's load does to a process takes so long (17 s).
PATIENT = ["-T", 20, "-R", 3]
JEMALLOC = "/usr/lib/*/libjemalloc.so.2"


# ---- nothing of ours is left ----

def abstract_names():
    with open("/proc/net/unix", encoding="ascii") as f:
        return [line.split()[-1] for line in f if "softhca" in line]


def files():
    """In /dev/shm and /tmp, without the copy of sysfs that `softhca run` keeps
    and this file's own directory."""
    found = set()
    for top in ("/dev/shm", "/tmp"):
        for name in os.listdir(top):
            if not re.match(r"softhca-(e2e-|\d+$)", name):
                found.add(os.path.join(top, name))
    return {f for f in found if "softhca" in f or "shca" in f}


def udp_sockets():
    """On port 4791 (0x12B7) of this network namespace."""
    n = 0
    for table in ("udp", "udp6"):
        with open("/proc/net/" + table, encoding="ascii") as f:
            n += sum(":12B7 " in line for line in f)
    return n


def nothing_left():
    """The kernel takes a moment for a process that was killed."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        left = abstract_names(), files(), udp_sockets()
        if not any(left):
            return
        time.sleep(0.02)
    raise Failed("left behind: %s %s, %d sockets" % left)


def next_run():
    nothing_left()
    run_pair([helper("many_qps"), "-q", 4, *PATIENT], opts=STOCK).no_loss()
    nothing_left()


# ---- the server dies ----

def end_pair(server, client, status):
    """The client sees the death by the book (it checks that itself)."""
    try:
        rc = client.wait(30)
        rc_server = server.wait(10)
    finally:
        client.kill()
        server.kill()
    expect(rc == 0 and "server is gone" in client.output(), client.output())
    expect(rc_server == status, "server: status %s\n%s" % (
        rc_server, server.output()))
    expect("softhca" not in server.output() and
           "stream" not in server.output(), server.output())
    found = re.search(r"fresh WR.*", client.output())
    print("# " + found.group(0))


def dies(how, status):
    server, client = start_pair(
        [helper("stream"), "-m", how, "-n", 50, "-t", 20, *QUICK], opts=STOCK)
    end_pair(server, client, status)
    if how.startswith("exit"):
        expect(server.stats().get("rx_payload_bytes") >= 50 * 65536,
               "no statistics of a process that called exit()")
    next_run()


def exits_inside():
    for i in range(20 if LONG else 4):
        rc, out = run([helper("cancel"), "-x", 1000 + 313 * i], opts=STOCK)
        expect(rc == 0, "status %d\n%s" % (rc, out))
    next_run()


def program_killed(args):
    """Debian's programs, killed in the middle; the peer ends by itself or does
    not notice, and the next run is undisturbed."""
    need(args[0])
    server, client = start_pair(args, opts=STOCK)
    time.sleep(1.5)  # perftest is in its loop by then
    server.popen.send_signal(signal.SIGKILL)
    client.kill()
    server.kill()
    next_run()


# ---- the server stops ----

def stops_too_long():
    server, client = start_pair(
        [helper("stream"), "-t", 30, *QUICK], opts=STOCK)
    server.wait_text("pid")
    client.wait_text("done")
    os.killpg(server.popen.pid, signal.SIGSTOP)
    try:
        rc = client.wait(30)
        expect(rc == 0 and "server is gone" in client.output(),
               client.output())
        if LONG:
            time.sleep(10)
        os.killpg(server.popen.pid, signal.SIGCONT)
        # It finds its client gone, like a program whose peer died.
        server.wait(20)
    finally:
        client.kill()
        server.kill()
    next_run()


def counts(process):
    return [(float(at), int(n)) for at, n in re.findall(
        r"^at ([0-9.]+) done (\d+)", process.output(), re.M)]


def stops_and_goes_on():
    """Stopped for longer than a timeout, for less than the retries last:
    everything arrives."""
    stop_s, timeout = (10, 19) if LONG else (1.2, 16)  # 17 s, 2.1 s
    server, client = start_pair(
        [helper("stream"), "-t", int(stop_s) + 2, "-T", timeout, "-R", 7],
        opts=STOCK)
    client.wait_text("done")
    os.killpg(server.popen.pid, signal.SIGSTOP)
    begin = time.monotonic()
    time.sleep(stop_s)
    end = time.monotonic()
    os.killpg(server.popen.pid, signal.SIGCONT)
    pair = finish_pair(server, client)
    seen = counts(client)
    # What was acknowledged before the stop may be polled a little later.
    expect(not [t for t, _ in seen if begin + 0.2 < t < end],
           "messages went on while the server was stopped")
    expect([t for t, _ in seen if t > end], "nothing after the stop")
    pair.none_of([("link", "rx_bad_icrc")])
    n = pair.c.get("req_timeouts")
    expect(1 <= n < 8, "%d timeouts" % n)
    print("# %d timeouts" % n)
    next_run()


# ---- descriptors, forks, threads, libraries ----

def loses_fds(how):
    server, client = start_pair([helper("lost_fds"), "-m", how, *PATIENT],
                                opts=STOCK)
    finish_pair(server, client)
    expect("was not harmed" in client.output(), client.output())
    next_run()


def forks(n):
    pair = run_pair([helper("forker"), "-n", n, *PATIENT], opts=STOCK)
    pair.no_loss()
    expect("%d forks" % n in pair.client.output(), pair.client.output())
    # Of four children one used a device of its own, and one was executed.
    lines = len(pair.c.processes)
    expect(lines == 1 + 2 * (n // 4), "%d lines of statistics" % lines)
    nothing_left()


def single(name, text, *args, **kwargs):
    rc, out = run([helper(name), *args], **kwargs)
    expect(rc == 0 and text in out, "status %d\n%s" % (rc, out))
    nothing_left()


# ---- where its thread runs ----

def nic_thread(process):
    """Policy and allowed CPUs of its NIC thread."""
    for task in glob.glob("/proc/%d/task/*" % process.popen.pid):
        with open(task + "/comm", encoding="ascii") as f:
            if f.read().strip() != "softhca-nic":
                continue
        with open(task + "/status", encoding="ascii") as f:
            cpus = re.search(r"Cpus_allowed_list:\s*(\S+)", f.read()).group(1)
        with open(task + "/stat", encoding="ascii") as f:
            return int(f.read().rsplit(")", 1)[1].split()[38]), cpus
    raise Failed("no NIC thread")


def place_of_process():
    with open("/proc/self/status", encoding="ascii") as f:
        return re.search(r"Cpus_allowed_list:\s*(\S+)", f.read()).group(1)


def placed(how):
    server, client = start_pair(
        [helper("stream"), "-m", how, "-t", 1, *PATIENT], opts=STOCK)
    try:
        client.wait_text("done")
        for p in (server, client):
            policy, cpus = nic_thread(p)
            expect(policy == 0, "policy %d" % policy)
            expect(cpus == place_of_process(), "CPUs " + cpus)
    finally:
        pair = finish_pair(server, client)
    if how == "fifo":
        pair.no_wire_loss()
    else:
        pair.no_loss()


def real_time():
    rc = subprocess.run(["chrt", "-f", "1", "true"], check=False,
                        capture_output=True).returncode
    if rc:
        raise Skip("SCHED_FIFO is not allowed")
    placed("fifo")


def real_time_on_one_cpu():
    """Neither gives way to the other's NIC thread by yielding."""
    need("chrt", "taskset")
    if subprocess.run(["chrt", "-f", "1", "true"], check=False,
                      capture_output=True).returncode:
        raise Skip("SCHED_FIFO is not allowed")
    cpu = min(os.sched_getaffinity(0))
    pair = run_pair(["ibv_rc_pingpong", "-g", 0, "-n", 1000],
                    prefix=["taskset", "-c", str(cpu), "chrt", "-f", "1"],
                    opts=STOCK)
    pair.no_loss()


def other_malloc():
    found = glob.glob(JEMALLOC)
    if not found:
        raise Skip("no libjemalloc.so.2")
    pair = run_pair([helper("many_qps"), "-q", 50, *PATIENT], opts=STOCK,
                    env={"LD_PRELOAD": found[0]})
    pair.no_loss()


def main():
    in_own_netns()
    test("kill -9", dies, "kill", -signal.SIGKILL)
    test("SIGSEGV", dies, "segv", -signal.SIGSEGV)
    test("SIGSEGV with a handler that ends it", dies, "handler", 7)
    test("exit() without cleanup", dies, "exit", 0)
    test("_exit()", dies, "_exit", 0)
    test("exit() while threads are inside verbs", dies, "exit_threads", 0)
    test("exit() in a signal handler", dies, "exit_signal", 0)
    test("exit() in a handler that interrupts the engine", exits_inside)
    if LONG:
        for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
            test("%s killed" % program, program_killed,
                 [program, "-F", "-D", 20])
    test("stopped for too long", stops_too_long)
    test("stopped, and goes on", stops_and_goes_on)
    for how in ("poll,later", "sleep,later", "idle,later"):
        test("all descriptors closed: " + how, loses_fds, how)
    test("fork, with and without exec, while threads post", forks,
         200 if LONG else 16)
    test("threads cancelled inside verbs", single, "cancel",
         "all goes on", 200 if LONG else 15)
    test("library unloaded with a device open", single, "unload", "unloaded")
    test("the program's thread on one CPU", placed, "pin")
    test("SCHED_FIFO", real_time)
    test("SCHED_FIFO, both on one CPU", real_time_on_one_cpu)
    test("jemalloc", other_malloc)
    done()


main()
