#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Captures: tshark finds nothing malformed, and a decoder of our own, which
shares nothing with softhca, finds every ICRC right."""
import subprocess

import icrc_check
from e2e_lib import (devices, done, expect, isolate, need, run_pair, test,
                     tmp_path)


def tshark_finds_nothing(path):
    need("tshark")
    out = subprocess.run(
        ["tshark", "-r", path, "--disable-protocol", "rpcordma",
         "-Y", "_ws.malformed"], capture_output=True, text=True, check=False)
    expect(out.returncode == 0, out.stderr)
    expect(out.stdout == "", "malformed:\n" + out.stdout)


def capture(args, at_least, **kwargs):
    """Runs a pair, each side into a file of its own; checks both files."""
    paths = (tmp_path("server.pcap"), tmp_path("client.pcap"))
    pair = run_pair(args, captures=paths, **kwargs)
    for path, stats in zip(paths, (pair.s, pair.c)):
        packets = icrc_check.check_file(path)
        expect(not packets.bad, "wrong ICRC: packets %s of %s" % (
            packets.bad[:10], path))
        expect(packets.good >= at_least, "%d packets in %s" % (
            packets.good, path))
        on_wire = stats.get("tx_frames", "rt") + stats.get("rx_frames", "rt")
        expect(stats.get("capture_lost", "rt") == 0, "records were lost")
        expect(packets.good == on_wire, "%d packets captured, %d counted" % (
            packets.good, on_wire))
        tshark_finds_nothing(path)


def a_flipped_bit_is_found():
    """The checker can fail: every payload bit matters to it."""
    path = tmp_path("flip.pcap")
    run_pair(["ibv_rc_pingpong", "-g", 0, "-n", 10], captures=(path, None))
    with open(path, "rb") as f:
        data = bytearray(f.read())
    data[-20] ^= 1
    with open(path, "wb") as f:
        f.write(data)
    packets = icrc_check.check_file(path)
    expect(len(packets.bad) == 1, "%d bad packets" % len(packets.bad))


def main():
    isolate()
    device = devices()[0]
    for family in ("v4", "v6"):
        gid = device.gid_of(family)
        if gid is None:
            continue
        for kind in ("rc", "uc", "ud", "srq"):
            test("ibv_%s_pingpong, IP%s" % (kind, family), capture,
                 ["ibv_%s_pingpong" % kind, "-d", device.name, "-g", gid,
                  "-n", 100, "-s", 1000], 100)
    for op in ("send", "write", "read"):
        test("ib_%s_bw" % op, capture,
             ["ib_%s_bw" % op, "-F", "-n", 100, "-s", 10001], 100)
        test("ib_%s_bw without offload" % op, capture,
             ["ib_%s_bw" % op, "-F", "-n", 100, "-s", 10001], 100,
             opts=["--no-offload"])
    test("ib_atomic_bw", capture, ["ib_atomic_bw", "-F", "-n", 100], 100)
    test("a flipped bit is found", a_flipped_bit_is_found)
    done()


main()
