#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""One receive buffer and several who fill it, between hosts (network
namespaces), where no sender sees how full it is. Its owner is stopped again
and again for long enough that all that may be in flight comes to lie in it.

docs/adr/0005-bounded-in-flight.md."""
import os
import signal
import time

import e2e_lib
from e2e_lib import (Failed, Process, Skip, done, expect, helper,
                     in_own_netns, need, require, test)
from netns_hosts import bridged

LONG = os.environ.get("E2E_LONG") == "1"
SECONDS = 8 if LONG else 2
STOP_S = 0.05
PAUSE_S = 0.1
# 4.3 s: no timeout but for a loss.
OPTIONS = ["-t", SECONDS, "-s", 65536, "-T", 20]
# Each packet a datagram of its own, as expensive for the buffer as can be.
OPTS = ["--rcvbuf", "stock", "--no-offload"]
hosts = []


def program(host, args):
    device, gid = host.device("v4")
    return Process([helper("onto_one"), "-d", device.name, "-g", gid, *OPTIONS,
                    *args], prefix=host.prefix, opts=OPTS)


def stop_and_go(server):
    end = time.monotonic() + SECONDS - 0.5
    n = 0
    while time.monotonic() < end:
        os.killpg(server.popen.pid, signal.SIGSTOP)
        time.sleep(STOP_S)
        os.killpg(server.popen.pid, signal.SIGCONT)
        time.sleep(PAUSE_S)
        n += 1
    return n


def onto_one(n, *mode):
    """A server and n clients on other hosts: how often the server stopped,
    and the counters of both kinds."""
    ports = [e2e_lib.free_port() for _ in range(n)]
    expect(ports[-1] == ports[0] + n - 1, "ports in use: %s" % ports)
    server = program(hosts[0], ["-p", ports[0], "-n", n, *mode])
    clients = []
    try:
        for host, port in zip(hosts[1:], ports):
            server.wait_listening(port)
            clients.append(program(host, ["-p", port, *mode,
                                          hosts[0].address["v4"]]))
        time.sleep(0.5)
        stops = stop_and_go(server)
        programs = [*clients, server]
        statuses = [p.wait(60) for p in programs]
        expect(not any(statuses), "status %s\n%s" % (
            statuses, "\n".join(p.output() for p in programs)))
    finally:
        for p in [*clients, server]:
            p.kill()
    return stops, server.stats(), [c.stats() for c in clients]


def nothing_lost(n, *mode):
    stops, server, clients = onto_one(n, *mode)
    for s in [server, *clients]:
        for group, name in e2e_lib.Pair.LOSS:
            expect(s.get(name, group) == 0, "%s is %d\n%s" % (
                name, s.get(name, group), s.text()))
    print("# %d stops, %d MB written, %d MB read" % (
        stops, sum(c.get("tx_payload_bytes") for c in clients) >> 20,
        server.get("req_msg_bytes") >> 20))


def learned(n, *mode):
    """Together they have more in flight than fits. The first stops cost
    datagrams; then the clients know."""
    stops, server, clients = onto_one(n, *mode)
    drops = server.get("rx_overflow", "link")
    cuts = sum(s.get("req_budget_cuts") for s in [server, *clients])
    print("# %d stops: %d datagrams dropped, %d cuts, %d timeouts, %d MB" % (
        stops, drops, cuts,
        sum(c.get("req_timeouts") for c in clients),
        sum(c.get("tx_payload_bytes") for c in clients) >> 20))
    # Three that never learn lose 100 at each stop.
    expect(drops <= 30 * stops, "%d datagrams dropped at %d stops, %d cuts" % (
        drops, stops, cuts))


def make_hosts():
    need("ip", "nsenter")
    try:
        hosts.extend(bridged(6))
    except Failed as e:
        raise Skip("no bridge: %s" % e) from None
    for h in hosts:
        h.set_mtu(9000)


def main():
    in_own_netns()
    require("a bridge of six hosts", make_hosts)
    test("WRITEs to a process and READs by it", nothing_lost, 1, "-m", "reads")
    test("3 hosts onto one process", learned, 3)
    if LONG:
        test("WRITEs to a process", nothing_lost, 1)
        test("5 hosts onto one process", learned, 5)
        test("3 hosts onto one process, and READs by it", learned, 3, "-m",
             "reads")


try:
    main()
finally:
    for each in hosts:
        each.gone()
done()
