#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A program that waits for an event costs nothing. In a network namespace of
its own: a newcomer to port 4791 greets all its neighbours there."""
import os
import re
import time

from e2e_lib import done, expect, helper, in_own_netns, start_pair, test

STOCK = ["--rcvbuf", "stock"]


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
    # A timer that was set for the last send goes off once more, for nothing.
    server, client = start_pair([helper("channel_wait"), "-T", 14],
                                opts=STOCK)
    try:
        pids = []
        for p in (server, client):
            p.wait_text("waiting")
            pids.append(int(re.search(r"pid (\d+)", p.output()).group(1)))
        # What is still under way ends with the ACK timeout of the QPs (1 s),
        # for which the driver's timer may still be set.
        time.sleep(2)
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
    in_own_netns()
    test("10 s on a completion channel without a context switch",
         idle_costs_nothing)
    done()


main()
