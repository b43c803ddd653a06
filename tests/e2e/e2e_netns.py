#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A second local interface, in a network namespace made for the test: all four
pingpongs and perftest over its addresses."""
from e2e_lib import (ADDRESS, ADDRESS6, add_interface, device_with, done,
                     expect, in_own_netns, require, run_pair, test)


def pingpong(kind, gid_text, *flags):
    device, gid = device_with(gid_text)
    size = 1024
    pair = run_pair(["ibv_%s_pingpong" % kind, "-d", device.name, "-g", gid,
                     "-n", 300, "-s", size, "-c", *flags], host=ADDRESS,
                    opts=["--rcvbuf", "stock"])
    pair.no_loss()
    pair.moved("client", "server", 300 * size)


def perftest(program):
    device, gid = device_with("::ffff:" + ADDRESS)
    pair = run_pair([program, "-F", "-d", device.name, "-x", gid,
                     "-n", 500, "-s", 4096], host=ADDRESS,
                    opts=["--rcvbuf", "stock"])
    pair.no_loss()
    pair.moved(*(("server", "client") if "read" in program else
                 ("client", "server")), 500 * 4096)


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
    for program in ("ib_send_bw", "ib_write_bw", "ib_read_bw"):
        test(program, perftest, program)
    done()


main()
