#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""perftest, unmodified: bandwidth and latency of every operation that it
offers, on the stock receive buffer and without one retransmission."""
from e2e_lib import done, expect, isolate, run_pair, test

STOCK = ["--rcvbuf", "stock"]
FAST = ["-F"]


def moved(pair, program, n_bytes):
    """Which way the payload goes is the operation's nature. Latency programs
    of SEND and WRITE are ping-pongs."""
    if "read" in program:
        pair.moved("server", "client", n_bytes)
    elif "atomic" not in program:
        pair.moved("client", "server", n_bytes)
        if "lat" in program:
            pair.moved("server", "client", n_bytes)


def perftest(program, conn, size, iters, *flags):
    args = [program, *FAST, "-n", iters, *flags]
    if "atomic" not in program:
        args += ["-s", size]
    if conn != "RC":
        args += ["-c", conn]
    pair = run_pair(args, opts=STOCK)
    pair.no_loss()
    moved(pair, program, size * iters)
    if "atomic" in program:
        done_by = pair.s.get("rsp_atomic_msgs")
        expect(done_by >= iters, "server did %d atomics" % done_by)
        expect(pair.c.get("req_atomic_msgs") >= iters, "client's atomics")


def add(program, conn, size, iters, *flags):
    name = " ".join([program, conn, "-s", str(size), "-n", str(iters),
                     *flags])
    test(name, perftest, program, conn, size, iters, *flags)


def main():
    isolate()
    for op in ("send", "write", "read"):
        add("ib_%s_bw" % op, "RC", 65536, 3000)
        add("ib_%s_bw" % op, "RC", 2, 3000)
        add("ib_%s_lat" % op, "RC", 2, 1000)
        add("ib_%s_lat" % op, "RC", 65536, 200)
    add("ib_write_bw", "RC", 1 << 20, 200)
    add("ib_read_bw", "RC", 1 << 20, 200)
    add("ib_write_bw", "RC", 65536, 1000, "-b")
    add("ib_write_bw", "RC", 4096, 2000, "-q", "8")
    add("ib_send_bw", "RC", 4096, 2000, "-e")
    add("ib_send_lat", "RC", 64, 500, "-e")
    add("ib_read_bw", "RC", 4096, 2000, "-e")
    for kind in ("FETCH_AND_ADD", "CMP_AND_SWAP"):
        add("ib_atomic_bw", "RC", 8, 2000, "-A", kind)
        add("ib_atomic_lat", "RC", 8, 500, "-A", kind)
    for op in ("send", "write"):
        add("ib_%s_bw" % op, "UC", 65536, 1000)
        add("ib_%s_lat" % op, "UC", 2, 1000)
    add("ib_send_bw", "UD", 1024, 3000)
    add("ib_send_lat", "UD", 1024, 1000)
    done()


main()
