#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A second local interface, in a network namespace made for the test: all four
pingpongs and perftest over its addresses."""
import subprocess

from e2e_lib import (Skip, device_with, done, expect, in_own_netns, require,
                     run_pair, test)

ADDRESS = "10.99.0.1"
ADDRESS6 = "fd99::1"


def add_interface():
    """A dummy, or one end of a veth pair where the kernel has no dummies."""
    kinds = ("link add shca-test type dummy",
             "link add shca-test type veth peer name shca-peer")
    for cmd in kinds:
        if subprocess.run(["ip"] + cmd.split(), check=False,
                          capture_output=True).returncode == 0:
            break
    else:
        raise Skip("the kernel makes neither dummy nor veth interfaces")
    if cmd == kinds[1]:
        for what in ("addrgenmode none", "up"):
            subprocess.run(["ip", "link", "set", "shca-peer"] + what.split(),
                           check=True)
    for cmd in ("addr add %s/24 dev shca-test" % ADDRESS,
                "-6 addr add %s/64 dev shca-test nodad" % ADDRESS6,
                "link set shca-test up"):
        subprocess.run(["ip"] + cmd.split(), check=True)


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
