#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""User memory is the program's: it writes while the NIC reads, polls while the
NIC writes, and unmaps while either goes on."""
from e2e_lib import device_with, done, expect, helper, isolate, run_pair, test

STOCK = ["--rcvbuf", "stock"]


def read_of_changing_memory():
    """For 10 s the client reads what a thread of the server keeps writing:
    every packet's ICRC must cover the bytes that were sent."""
    pair = run_pair([helper("live_read"), "-t", 10], opts=STOCK)
    pair.no_loss()
    n = pair.c.get("req_read_msgs")
    expect(n >= 1000, "only %d reads" % n)
    pair.moved("server", "client", n * 65536)


def last_byte():
    """100,000 writes of 64 KiB; the target polls the last byte only and then
    finds all others there."""
    rounds, size = 100000, 65536
    device, gid = device_with("::ffff:127.0.0.1")  # the largest MTU
    pair = run_pair([helper("last_byte"), "-n", rounds, "-s", size,
                     "-d", device.name, "-g", gid],
                    opts=STOCK, limit_s=150)
    pair.no_loss()
    pair.moved("client", "server", rounds * size)


def unmap(case, *flags):
    """See unmap.c; it checks statuses and its own SIGSEGV handler itself."""
    pair = run_pair([helper("unmap"), "-m", case, *flags])
    for p in (pair.client, pair.server):
        expect("own handler works" in p.output(), p.output())


def main():
    isolate()
    test("READ of memory that a thread writes, 10 s",
         read_of_changing_memory)
    test("the last byte of 64 KiB implies the others", last_byte)
    for case in ("read_remote", "read_local", "write_remote", "write_local",
                 "recv", "send"):
        test("munmap during %s" % case, unmap, case)
    test("munmap during read_remote, handler set late", unmap,
         "read_remote", "-l")
    done()


main()
