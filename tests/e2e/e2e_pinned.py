#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Both processes on one CPU: nobody may spin the other one out."""
import os
import re

from e2e_lib import done, expect, isolate, need, run_pair, test

STOCK = ["--rcvbuf", "stock"]


def pinned(args, **kwargs):
    need("taskset")
    cpu = min(os.sched_getaffinity(0))
    return run_pair(args, prefix=["taskset", "-c", str(cpu)], opts=STOCK,
                    **kwargs)


def pingpong_in_a_second():
    pair = pinned(["ibv_rc_pingpong", "-g", 0, "-n", 1000])
    pair.no_loss()
    for p in (pair.client, pair.server):
        m = re.search(r"1000 iters in ([0-9.]+) seconds", p.output())
        expect(m, p.output())
        expect(float(m.group(1)) < 1.0, m.group(0))


def perftest(program, *flags):
    pair = pinned([program, "-F", *flags], limit_s=30)
    # With two programs on one CPU an answer may be late, never lost.
    pair.none_of([("link", "rx_bad_icrc"), ("link", "rx_overflow"),
                  ("hca", "req_seq_naks")])


def main():
    isolate()
    test("ibv_rc_pingpong -n 1000 in under 1 s", pingpong_in_a_second)
    for op in ("send", "write", "read"):
        test("ib_%s_bw" % op, perftest, "ib_%s_bw" % op, "-n", 1000)
        test("ib_%s_lat" % op, perftest, "ib_%s_lat" % op, "-n", 1000)
    test("ib_atomic_bw", perftest, "ib_atomic_bw", "-n", 1000)
    test("ib_atomic_lat", perftest, "ib_atomic_lat", "-n", 1000)
    test("ib_send_bw -c UD", perftest, "ib_send_bw", "-c", "UD", "-n", 1000,
         "-s", 1024)
    test("ib_send_lat -e", perftest, "ib_send_lat", "-e", "-n", 500)
    done()


main()
