#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a program sees before it moves a byte: ibv_devices, ibv_devinfo; and
the two-numbers example, as a learner would run it."""
import os
import re

from e2e_lib import (HELPERS, Process, devices, done, expect, finish_pair,
                     free_port, run, test)

EXAMPLES = os.environ.get("EXAMPLES", os.path.join(HELPERS, "../../examples"))


def ibv_devices():
    rc, text = run(["ibv_devices"])
    expect(rc == 0, text)
    for d in devices():
        m = re.search(r"^\s+%s\s+([0-9a-f]{16})$" % d.name, text, re.M)
        expect(m, "no line for %s:\n%s" % (d.name, text))
        expect(int(m.group(1), 16) != 0, "node GUID is zero:\n" + text)


def ibv_devinfo():
    rc, text = run(["ibv_devinfo", "-v"])
    expect(rc == 0, text)
    for line in (r"link_layer:\s+Ethernet", r"state:\s+PORT_ACTIVE",
                 r"transport:\s+InfiniBand", r"max_qp:\s+[1-9]",
                 r"node_guid:\s+[0-9a-f:]+", r"active_mtu:\s+[1-9]"):
        expect(re.search(line, text), "nothing like '%s' in\n%s" % (line,
                                                                    text))
    for d in devices():
        expect(0 in d.gids, "%s: GID index 0 is not usable\n%s" % (
            d.name, text))
        for gid in d.gids.values():
            expect(gid != "::", "a GID is zero:\n" + text)


def loopback_is_a_device():
    gids = [g for d in devices() for g in d.gids.values()]
    expect("::ffff:127.0.0.1" in gids, "127.0.0.1 has no device: %s" % gids)


def sum_example(*flags):
    port = free_port()
    server = Process([os.path.join(EXAMPLES, "sum_server"), "-n", 1,
                      "-p", port, *flags], opts=["--rcvbuf", "stock"])
    server.wait_listening(port)
    client = Process([os.path.join(EXAMPLES, "sum_client"), "-p", port,
                      *flags, "127.0.0.1", 20, 22],
                     opts=["--rcvbuf", "stock"])
    pair = finish_pair(server, client)
    expect("20 + 22 = 42" in client.output(), client.output())
    pair.no_loss()
    pair.moved("client", "server", 16)
    pair.moved("server", "client", 8)
    for side in (pair.s, pair.c):
        expect(side.get("comp_events", "rt") >= 1, "no completion event")


def sum_with_every_gid():
    for d in devices():
        for index in d.gids:
            sum_example("-d", d.name, "-g", index)


def sum_without_server():
    rc, text = run([os.path.join(EXAMPLES, "sum_client"), "-p", free_port(),
                    "127.0.0.1", 1, 2])
    expect(rc == 1 and "Connection refused" in text, text)


def main():
    test("ibv_devices", ibv_devices)
    test("ibv_devinfo -v", ibv_devinfo)
    test("127.0.0.1 has a device", loopback_is_a_device)
    test("sum_server and sum_client", sum_example)
    test("sum with every GID", sum_with_every_gid)
    test("sum_client without a server", sum_without_server)
    done()


main()
