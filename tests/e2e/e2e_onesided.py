#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""RDMA WRITE and READ between processes of one host as copies: the target's
process takes no part, its memory is its own again after dereg, and where
copies are not possible packets do it."""
import os
import re
import signal
import time

os.environ["SOFTHCA_ONE_SIDED"] = "1"

from e2e_lib import (Process, Skip, done, expect, finish_pair, free_port,
                     helper, isolate, need, run_pair, start_pair, test)

STOCK = ["--rcvbuf", "stock"]


def copied(pair, kind, n, n_bytes):
    """All n of the client's messages were copies, and the server answered
    none."""
    done_n = pair.c.get("direct_%ss" % kind)
    expect(done_n >= n, "%d of %d were copied\n%s" % (done_n, n,
                                                      pair.c.text()))
    expect(pair.c.get("direct_bytes") >= n_bytes, pair.c.text())
    expect(pair.c.get("req_%s_msgs" % kind) == done_n, pair.c.text())
    expect(pair.s.get("rsp_%s_msgs" % kind) == 0, pair.s.text())


def took_no_part(pair):
    """The engine of the server ran for set-up, and no more."""
    visits = sum(pair.s.get(name, "rt") for name in
                 ("visits_nic", "visits_poll", "visits_post"))
    print("# %d engine visits of the server" % visits)
    expect(visits < 150, pair.s.text())


def perftest(program, size, n, *flags):
    need(program)
    kind = "read" if "read" in program else "write"
    pair = run_pair([program, "-F", "-s", size, "-n", n, *flags], opts=STOCK)
    copied(pair, kind, n, n * size)
    if "lat" in program and kind == "write": # both write, both spin
        expect(pair.s.get("direct_writes") >= n, pair.s.text())
    elif "-b" not in flags:
        took_no_part(pair)
    return pair


def latency(program, size, n, limit_us):
    """The typical one; the average has the scheduler's part of a busy
    machine."""
    pair = perftest(program, size, n)
    m = re.search(r"^ *%d +%d +\S+ +\S+ +(\S+)" % (size, n),
                  pair.client.output(), re.M)
    expect(m, pair.client.output())
    print("# typical %s us" % m.group(1))
    expect(float(m.group(1)) < limit_us, pair.client.output())


def other_side(mode):
    n, size = 1000, 65536
    pair = run_pair([helper("onesided"), "-m", mode, "-n", n, "-s", size],
                    opts=STOCK)
    copied(pair, "write", n, 2 * n * size)
    copied(pair, "read", n, 2 * n * size)
    took_no_part(pair)


def stopped():
    """A stopped process takes no part, and its peers go on."""
    server, client = start_pair([helper("stream"), "-t", 3, "-R", 7],
                                opts=STOCK)
    client.wait_text("done")
    os.killpg(server.popen.pid, signal.SIGSTOP)
    begin = time.monotonic()
    time.sleep(1)
    end = time.monotonic()
    os.killpg(server.popen.pid, signal.SIGCONT)
    pair = finish_pair(server, client)
    seen = [float(t) for t in re.findall(r"^at (\S+) done",
                                         client.output(), re.M)]
    during = [t for t in seen if begin + 0.2 < t < end]
    expect(len(during) > 3, "%d lines while it was stopped" % len(during))
    expect(pair.c.get("req_timeouts") == 0, pair.c.text())


def last_byte():
    rounds, size = 20000, 65536
    pair = run_pair([helper("last_byte"), "-n", rounds, "-s", size],
                    opts=STOCK, limit_s=100)
    copied(pair, "write", rounds, rounds * size)


def live_read():
    pair = run_pair([helper("live_read"), "-t", 2], opts=STOCK)
    expect(pair.c.get("direct_reads") >= 100, pair.c.text())


def unmap(case):
    pair = run_pair([helper("unmap"), "-m", case])
    for p in (pair.client, pair.server):
        expect("own handler works" in p.output(), p.output())
    # On a busy machine it is gone before the first copy.
    expect(pair.c.get("direct_refused") > 0, pair.c.text())


def revoke():
    """dereg, munmap and other use of the addresses amid WRITEs."""
    rounds = 60
    pair = run_pair([helper("revoke"), "-q", rounds, "-s", 512 << 10],
                    opts=STOCK, limit_s=100)
    print("# " + pair.client.output().strip())
    expect(pair.c.get("direct_writes") >= rounds, pair.c.text())
    waits = pair.s.get("gate_waits", "rt")
    print("# %d of %d met a copy under way" % (waits, rounds))
    expect(pair.s.get("gate_expired", "rt") == 0, pair.s.text())


def packets_only(pair, n):
    expect(pair.c.get("direct_writes") == 0, pair.c.text())
    expect(pair.c.get("req_write_msgs") == n, pair.c.text())
    expect(pair.s.get("rsp_write_msgs") == n, pair.s.text())


def refused(*what):
    """A sandbox forbids the copies, or the memory to agree on them."""
    probe = Process([helper("refuse"), *what, "--", "true"], bare=True)
    if probe.wait() == 77:
        raise Skip("no seccomp")
    pair = run_pair(["ib_write_bw", "-F", "-n", 200, "-s", 65536],
                    prefix=[helper("refuse"), *what, "--"], opts=STOCK)
    packets_only(pair, 200)


def not_wanted(option):
    pair = run_pair(["ib_write_bw", "-F", "-n", 200, "-s", 65536],
                    opts=[*STOCK, *option])
    packets_only(pair, 200)


def killed():
    """WRITEs to a process that is killed end as they do with packets."""
    port = free_port()
    server = Process([helper("stream"), "-t", 30, "-T", 14, "-R", 2, "-p",
                      port], opts=STOCK)
    server.wait_listening(port)
    client = Process([helper("stream"), "-t", 30, "-T", 14, "-R", 2, "-p",
                      port, "127.0.0.1"], opts=STOCK)
    try:
        client.wait_text("done")
        server.kill()
        rc = client.wait(30)
        expect(rc == 0 and "server is gone" in client.output(),
               client.output()[-500:])
        expect(client.stats().get("direct_writes") > 0,
               client.stats().text())
    finally:
        client.kill()
        server.kill()


def main():
    isolate()
    test("ib_write_bw 64 KiB", perftest, "ib_write_bw", 65536, 5000)
    test("ib_read_bw 64 KiB", perftest, "ib_read_bw", 65536, 5000)
    test("ib_write_bw 8 MiB", perftest, "ib_write_bw", 8 << 20, 100)
    test("ib_write_bw, both directions", perftest, "ib_write_bw", 65536, 2000,
         "-b")
    test("ib_write_bw, 16 QPs", perftest, "ib_write_bw", 65536, 2000, "-q",
         16)
    test("ib_write_bw over UC", perftest, "ib_write_bw", 65536, 2000, "-c",
         "UC")
    test("ib_write_lat 128 bytes: under 5 us", latency, "ib_write_lat", 128,
         5000, 5)
    test("the target sleeps", other_side, "sleep")
    test("the target computes", other_side, "compute")
    test("the target is stopped", stopped)
    test("the target is killed", killed)
    test("the last byte of 64 KiB implies the others", last_byte)
    test("READ of memory that a thread writes", live_read)
    for case in ("read_remote", "read_local", "write_remote", "write_local"):
        test("munmap during %s" % case, unmap, case)
    test("dereg amid WRITEs", revoke)
    test("process_vm_* refused", refused, "process_vm_readv",
         "process_vm_writev")
    test("process_vm_writev refused", refused, "process_vm_writev")
    test("memfd_create refused", refused, "memfd_create")
    test("--no-one-sided", not_wanted, ["--no-one-sided"])
    test("--capture", not_wanted, ["--capture", "/dev/null"])
    test("--fault", not_wanted, ["--fault", "drop,nth=1000000"])
    done()


main()
