#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Frames between processes of one host through shared memory: the default,
by reference where that is allowed, and by UDP where it is not wanted."""
from e2e_lib import Process, Skip, done, expect, helper, run_pair, test

N = 300


def frames(pair):
    return sum(s.get("ring_tx_frames", "rt") for s in (pair.c, pair.s))


def through_rings(program, *args):
    """Everything but the first datagrams of UD, which ask for the way."""
    pair = run_pair([program, *args])
    sent = sum(s.get("tx_frames", "rt") for s in (pair.c, pair.s))
    expect(frames(pair) > sent * 0.9, pair.c.text() + pair.s.text())
    expect(pair.c.get("req_timeouts") == 0, pair.c.text())
    return pair


def by_reference():
    pair = through_rings("ib_send_bw", "-F", "-n", N, "-s", 65536)
    expect(pair.c.get("ring_tx_refs", "rt") >= N, pair.c.text())
    expect(pair.s.get("rsp_refs_lost") == 0, pair.s.text())


def by_value():
    """Where process_vm_* is refused the ring carries the bytes."""
    probe = Process([helper("refuse"), "process_vm_readv", "--", "true"],
                    bare=True)
    if probe.wait() == 77:
        raise Skip("no seccomp")
    pair = run_pair(["ib_send_bw", "-F", "-n", N, "-s", 65536],
                    prefix=[helper("refuse"), "process_vm_readv",
                            "process_vm_writev", "--"])
    expect(pair.c.get("ring_tx_refs", "rt") == 0, pair.c.text())
    expect(pair.s.get("ring_rx_frames", "rt") >= N, pair.s.text())


def not_wanted(opts):
    pair = run_pair(["ib_send_bw", "-F", "-n", N, "-s", 4096], opts=opts)
    expect(frames(pair) == 0, pair.c.text() + pair.s.text())


def main():
    test("data of ibv_rc_pingpong", through_rings, "ibv_rc_pingpong", "-g", 0,
         "-c", "-n", N)
    test("data of ibv_srq_pingpong", through_rings, "ibv_srq_pingpong", "-g",
         0, "-c", "-n", N)
    test("data of ibv_uc_pingpong", through_rings, "ibv_uc_pingpong", "-g", 0,
         "-c", "-n", N)
    test("ibv_ud_pingpong", through_rings, "ibv_ud_pingpong", "-g", 0, "-n",
         1000)
    test("with events", through_rings, "ibv_rc_pingpong", "-g", 0, "-e", "-c",
         "-n", N)
    test("by reference", by_reference)
    test("UC of 64 KiB", through_rings, "ib_send_bw", "-F", "-c", "UC", "-n",
         N, "-s", 65536)
    test("atomics", through_rings, "ib_atomic_lat", "-F", "-n", N)
    test("by value", by_value)
    test("--link udp", not_wanted, ["--link", "udp"])
    test("--capture", not_wanted, ["--capture", "/dev/null"])
    done()


main()
