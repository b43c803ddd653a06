#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A process whose CPU is elsewhere: one-sided access to one that sleeps and
one that computes; one that waits for an event and costs nothing."""
import os
import re
import time

from e2e_lib import done, expect, helper, run_pair, start_pair, test

STOCK = ["--rcvbuf", "stock"]


def onesided(mode):
    n, size = 200, 65536
    pair = run_pair([helper("onesided"), "-m", mode, "-n", n, "-s", size],
                    opts=STOCK)
    pair.no_loss()
    pair.moved("client", "server", n * size)
    pair.moved("server", "client", n * size)


def switches(pid):
    """thread id -> voluntary + involuntary context switches so far."""
    counts = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, tid),
                  encoding="ascii") as f:
            found = re.findall(r"ctxt_switches:\s*(\d+)", f.read())
        counts[tid] = sum(int(x) for x in found)
    return counts


def idle_costs_nothing():
    """Both sides wait in ibv_get_cq_event for 10 s: no thread of either may
    be switched to or from even once."""
    server, client = start_pair([helper("channel_wait")], opts=STOCK)
    try:
        pids = []
        for p in (server, client):
            p.wait_text("waiting")
            pids.append(int(re.search(r"pid (\d+)", p.output()).group(1)))
        # What is still under way (the last ACK, a tick that disarms) ends
        # within two of the driver's ticks; a second is plenty.
        time.sleep(1)
        before = [switches(pid) for pid in pids]
        time.sleep(10)
        after = [switches(pid) for pid in pids]
        expect(server.running() and client.running(), "a process ended")
        expect(all(before), "no threads seen")
        for a, b in zip(before, after):
            expect(len(a) >= 2, "no NIC thread: %s" % a)
            expect(a == b, "context switches before and after: %s %s" % (a,
                                                                         b))
    finally:
        client.kill()
        server.kill()


def main():
    test("WRITE and READ into a process that sleeps", onesided, "sleep")
    test("WRITE and READ into a process that computes", onesided, "compute")
    test("10 s on a completion channel without a context switch",
         idle_costs_nothing)
    done()


main()
