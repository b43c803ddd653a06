#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A process whose CPU is elsewhere: one-sided access to one that sleeps and
one that computes."""
from e2e_lib import done, helper, isolate, run_pair, test

STOCK = ["--rcvbuf", "stock"]


def onesided(mode):
    n, size = 200, 65536
    pair = run_pair([helper("onesided"), "-m", mode, "-n", n, "-s", size],
                    opts=STOCK)
    pair.no_loss()
    pair.moved("client", "server", n * size)
    pair.moved("server", "client", n * size)


def main():
    isolate()
    test("WRITE and READ into a process that sleeps", onesided, "sleep")
    test("WRITE and READ into a process that computes", onesided, "compute")
    done()


main()
