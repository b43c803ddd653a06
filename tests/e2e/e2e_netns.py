#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A second local interface, in a network namespace made for the test: all four
pingpongs and perftest over its addresses."""
from e2e_lib import (ADDRESS, ADDRESS6, add_interface, device_with, done,
                     expect, in_own_netns, require, run_pair, test)


# What perftest offers.
CONNECTIONS = {"send": ("RC", "UC", "UD"), "write": ("RC", "UC"),
               "read": ("RC",), "atomic": ("RC",)}


def pingpong(kind, gid_text, *flags):
    device, gid = device_with(gid_text)
    size = 1024
    pair = run_pair(["ibv_%s_pingpong" % kind, "-d", device.name, "-g", gid,
                     "-n", 300, "-s", size, "-c", *flags], host=ADDRESS,
                    opts=["--rcvbuf", "stock"])
    pair.no_loss()
    pair.moved("client", "server", 300 * size)


def perftest(program, conn):
    device, gid = device_with("::ffff:" + ADDRESS)
    size = 1024 if conn == "UD" else 4096
    args = [program, "-F", "-d", device.name, "-x", gid, "-n", 500]
    if "atomic" not in program:
        args += ["-s", size]
    if conn != "RC":
        args += ["-c", conn]
    pair = run_pair(args, host=ADDRESS, opts=["--rcvbuf", "stock"])
    pair.no_loss()
    if "atomic" in program:
        n = pair.s.get("rsp_atomic_msgs")
        expect(n >= 500, "server did %d atomics" % n)
        return
    pair.moved(*(("server", "client") if "read" in program else
                 ("client", "server")), 500 * size)


def both_are_devices():
    lo, _ = device_with("::ffff:127.0.0.1")
    dummy, _ = device_with("::ffff:" + ADDRESS)
    expect(lo.name != dummy.name, "one device for two interfaces")


def main():
    in_own_netns()
    require("a second interface", add_interface)
    test("each interface is a device", both_are_devices)
    for kind in ("rc", "uc", "ud", "srq"):
        test("ibv_%s_pingpong, IPv4" % kind, pingpong, kind,
             "::ffff:" + ADDRESS)
        test("ibv_%s_pingpong -e, IPv6" % kind, pingpong, kind, ADDRESS6,
             "-e")
    for op in ("send", "write", "read", "atomic"):
        for conn in CONNECTIONS[op]:
            for what in ("bw", "lat"):
                program = "ib_%s_%s" % (op, what)
                test("%s -c %s" % (program, conn), perftest, program, conn)
    done()


main()
