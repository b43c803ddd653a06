#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""System calls of the UDP path, a message, from our own counters. Only those
that repeat on a busy machine: sends of both sides. How often a receiver looks
in vain, or finds one datagram where three might have come, depends on the
machine."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "e2e"))
import e2e_lib as e2e  # noqa: E402

# program, flags, messages, bounds: side and counter -> at most so many a
# message. Bounds are what the design allows at worst, not what was measured: a
# 64 KiB message is 16 packets of MTU 4096 in three runs of equal size, and the
# in-flight bound, which ACKs open by quarters, may cut it in four more places.
# A call for each packet, the fault that this looks for, is 16.
RUNS = 3 + 4
# The stock buffer has room for READ units of 3 packets: 6 requests.
UNITS = 6
BOUNDS = (
    ("ib_write_bw", ["-s", 65536], 1000,
     {("c", "tx_syscalls"): RUNS, ("s", "tx_syscalls"): RUNS,
      ("c", "tx_messages"): RUNS}),
    ("ib_send_bw", ["-s", 65536], 1000,
     {("c", "tx_syscalls"): RUNS, ("s", "tx_syscalls"): RUNS,
      ("c", "tx_messages"): RUNS}),
    ("ib_read_bw", ["-s", 65536], 1000,
     {("c", "tx_syscalls"): UNITS, ("s", "tx_syscalls"): UNITS}),
    ("ib_send_bw", ["-s", 8], 5000,
     {("c", "tx_syscalls"): 1.1, ("s", "tx_syscalls"): 1.1}),
    # A message and an ACK, each way.
    ("ib_send_lat", ["-s", 128], 1000,
     {("c", "tx_syscalls"): 2.1, ("s", "tx_syscalls"): 2.1}),
)


def udp_opts():
    text = subprocess.run([e2e.SOFTHCA, "run", "--help"], check=False,
                          capture_output=True, text=True).stdout
    return ["--rcvbuf", "stock"] + (["--link", "udp"] if "--link" in text
                                    else [])


def measure(opts, program, flags, n, bounds):
    pair = e2e.run_pair([program, "-F", *flags, "-n", n], opts=opts)
    pair.no_wire_loss()
    found = {"s": pair.s, "c": pair.c}
    for (side, counter), most in bounds.items():
        x = found[side].get(counter, "link") / n
        print("# %s %s: %.2f" % (
            {"s": "server", "c": "client"}[side], counter, x))
        e2e.expect(0 < x <= most, "%s: %.2f a message, the bound is %g" % (
            counter, x, most))


def main():
    e2e.isolate()
    opts = udp_opts()
    for program, flags, n, bounds in BOUNDS:
        e2e.test(" ".join([program, *map(str, flags)]), measure, opts,
                 program, flags, n, bounds)
    e2e.done()


main()
