#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Many at once: eight processes in four pairs; a thousand QPs in one pair."""
import os
import re

from e2e_lib import (done, expect, finish_pair, helper, isolate, run_pair,
                     start_pair, test)

STOCK = ["--rcvbuf", "stock"]


def four_pairs():
    """Four pairs of different programs that run at the same time."""
    jobs = [
        (["ibv_rc_pingpong", "-g", 0, "-s", 4096, "-n", 1000, "-c"], 4096000),
        (["ib_write_bw", "-F", "-s", 65536, "-n", 1000], 65536000),
        (["ib_send_bw", "-F", "-s", 4096, "-n", 2000, "-e"], 8192000),
        (["ib_read_bw", "-F", "-s", 65536, "-n", 1000], 65536000),
    ]
    running = []
    try:
        for args, _ in jobs:
            running.append(start_pair(args, opts=STOCK))
        for (args, n_bytes), (server, client) in zip(jobs, running):
            pair = finish_pair(server, client)
            if "send" in args[0]:
                pair.no_wire_loss()
            else:
                pair.no_loss()
            way = ["client", "server"]
            if "read" in args[0]:
                way.reverse()
            pair.moved(*way, n_bytes)
    finally:
        for server, client in running:
            client.kill()
            server.kill()


def many_qps(n, size):
    """Each of n QPs sends, writes and reads, both ways (many_qps.c)."""
    pair = run_pair([helper("many_qps"), "-q", n, "-s", size], opts=STOCK)
    pair.no_loss()
    for a, b in (("client", "server"), ("server", "client")):
        pair.moved(a, b, 3 * n * size)
    for side in (pair.s, pair.c):
        for name in ("req_send_msgs", "req_write_msgs", "req_read_msgs"):
            expect(side.get(name) == n, "%s is %d" % (name, side.get(name)))
    return pair


def ten_thousand_qps():
    """Connected within the 20 s of docs/performance.md."""
    pair = many_qps(10000, 64)
    for side in (pair.server, pair.client):
        m = re.search(r"connected in ([0-9.]+) s", side.output())
        expect(m, side.output())
        print("# 10,000 QPs connected in %s s" % m.group(1))
        expect(float(m.group(1)) < 20, side.output())


def main():
    isolate()
    test("eight processes in four pairs", four_pairs)
    test("1,000 RC QPs in one pair of processes", many_qps, 1000, 4096)
    if os.environ.get("E2E_LONG"):
        test("10,000 RC QPs in one pair of processes", ten_thousand_qps)
    done()


main()
