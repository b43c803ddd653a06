#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Several hosts: network namespaces joined by veth pairs and by a bridge, with
every netdev MTU, address family and kind of offload; what arrived is counted on
both sides, with the stock receive buffer. A sender does not see the receiver's
socket here, so nothing holds it back but RC's own bound.

UC and UD may lose when the receiver is slow, as on a NIC without flow control;
then the receiver's kernel must have counted it. Programs that wait for each
message (pingpong) must lose nothing.

Runs a part of the matrix; with E2E_LONG in the environment all of it."""
import os
import subprocess

import icrc_check
import netns_hosts
from e2e_lib import (Failed, Skip, done, expect, finish_pair, helper,
                     in_own_netns, need, require, test, tmp_path)
from netns_hosts import bridged, run, start, veth_pair

FULL = bool(os.environ.get("E2E_LONG"))
STOCK = ["--rcvbuf", "stock"]
# An ACK timeout (1 s) beyond what a busy machine's scheduler takes: a loss
# still shows, as a retransmission.
FAST = ["-F", "-u", "18"]
# netdev MTU -> active_mtu: room for 40 bytes of IPv6 and the longest transport
# header.
ACTIVE = {576: 256, 1450: 1024, 1500: 1024, 4200: 4096, 9000: 4096}
OFFLOADS = {"offload": [], "--no-offload": ["--no-offload"],
            "netdev without offload": []}
FEATURES = ("tx-udp-segmentation", "gso", "tso", "gro")

pairs = []  # of hosts; the first one is what most tests use


def opts_for(offload):
    return STOCK + OFFLOADS[offload]


def set_offload(hosts, offload):
    """The veth itself: whether segments cross it unmerged."""
    state = "off" if offload == "netdev without offload" else "on"
    for h in hosts:
        for feature in FEATURES:
            h.sh("ethtool", "-K", "eth0", feature, state)


def set_mtu(hosts, mtu):
    for h in hosts:
        h.set_mtu(mtu)


# ---- programs ----

def none_lost(pair):
    """Every frame that one side handed over the other one received."""
    for a, b in ((pair.s, pair.c), (pair.c, pair.s)):
        tx, rx = a.get("tx_frames", "link"), b.get("rx_frames", "link")
        expect(tx == rx, "%d frames sent, %d received\nserver: %s\n"
               "client: %s" % (tx, rx, pair.s.text(), pair.c.text()))


def pingpong(hosts, family, opts, kind, size, iters):
    args = ["ibv_%s_pingpong" % kind, "-s", size, "-n", iters, "-c"]
    if kind != "ud":
        args += ["-m", min(1024, hosts[0].device()[0].active_mtu)]
    pair = run(*hosts, family, args, opts=opts)
    pair.no_loss()
    if kind != "rc":
        none_lost(pair)  # of RC the last ACK may find nobody
    for way in (("client", "server"), ("server", "client")):
        pair.moved(*way, size * iters)


def moves(pair, program, n_bytes):
    if "read" in program:
        pair.moved("server", "client", n_bytes)
    elif "atomic" not in program:
        pair.moved("client", "server", n_bytes)


def perftest(hosts, family, opts, program, size, iters, *flags):
    args = [program, *FAST, "-n", iters, *flags]
    if "atomic" not in program:
        args += ["-s", size]
    pair = run(*hosts, family, args, opts=opts)
    pair.no_wire_loss()
    # ib_send_bw's server may be late to post receives: RNR NAKs, which are the
    # only reason to send again.
    if "send" not in program or not pair.c.get("req_rnr_naks"):
        pair.no_loss()
    moves(pair, program, size * iters)
    if "atomic" in program:
        for stats, name in ((pair.s, "rsp_atomic_msgs"),
                            (pair.c, "req_atomic_msgs")):
            expect(stats.get(name) >= iters, "%s is %d" % (
                name, stats.get(name)))


def uc_stream(hosts, family, opts):
    """WRITEs at full speed, which nothing holds back: what arrives depends on
    the scheduler. The sender completes all, nothing arrives wrong, and no more
    is said to be dropped than is missing."""
    size, iters = 65536, 200
    pair = run(*hosts, family, ["ib_write_bw", "-F", "-c", "UC", "-n", iters,
                                "-s", size], opts=opts)
    pair.none_of([("link", "rx_bad_icrc"), ("link", "tx_errors")])
    expect(pair.c.get("tx_payload_bytes") >= size * iters, "not all was sent")
    lost = pair.c.get("tx_frames", "link") - pair.s.get("rx_frames", "link")
    dropped = pair.s.get("rx_overflow", "link")
    # SO_RXQ_OVFL comes with a later datagram; the last drops show nowhere.
    expect(lost >= dropped, "%d frames are missing, %d were dropped" % (
        lost, dropped))
    print("# %d of %d frames lost, %d of them counted by the kernel" % (
        lost, pair.c.get("tx_frames", "link"), dropped))


def everything_at_once(hosts, family, opts):
    """SENDs, WRITEs and READs both ways on 16 QPs, the data compared. Requests
    and READ responses have bounds of their own that do not share the buffer:
    a receiver that stalls may lose here, and RC repairs it."""
    pair = run(*hosts, family, [helper("many_qps"), "-q", 16, "-s", 131072],
               opts=opts)
    pair.none_of([("link", "rx_bad_icrc"), ("link", "tx_errors")])
    for way in (("client", "server"), ("server", "client")):
        pair.moved(*way, 3 * 16 * 131072)
    print("# %d retransmissions, %d datagrams dropped" % tuple(
        pair.s.get(n, g) + pair.c.get(n, g) for g, n in (
            ("hca", "req_retransmits"), ("link", "rx_overflow"))))


# ---- the matrix ----

def has(family, mtu):
    return family == "v4" or mtu >= netns_hosts.IPV6_MTU_MIN


def programs(mtu):
    """(name, function, arguments) of all that run for each line."""
    ud = ACTIVE[mtu]
    out = [("ibv_%s_pingpong -s %d" % (kind, size), pingpong, (kind, size, n))
           for kind, size, n in (("rc", 4096, 200), ("rc", 1 << 20, 20),
                                 ("uc", 4096, 200), ("ud", ud, 200))]
    for op in ("send", "write", "read"):
        for size, iters in ((2, 1000), (65536, 300)):
            out.append(("ib_%s_bw -s %d" % (op, size), perftest,
                        ("ib_%s_bw" % op, size, iters)))
        out.append(("ib_%s_lat -s 65536" % op, perftest,
                    ("ib_%s_lat" % op, 65536, 50)))
    out.append(("ib_read_bw -b", perftest, ("ib_read_bw", 65536, 200, "-b")))
    out.append(("ib_atomic_bw", perftest, ("ib_atomic_bw", 8, 500)))
    out.append(("ib_write_bw -c UC", uc_stream, ()))
    out.append(("many_qps", everything_at_once, ()))
    return out


SHORT_LINES = (("v4", 576, "--no-offload"),
               ("v6", 1450, "netdev without offload"),
               ("ll", 1500, "offload"), ("v4", 4200, "offload"),
               ("v6", 9000, "offload"))
# What each line of the short part runs: by turns, so that all come up.
SHORT_PROGRAMS = (
    ("ibv_rc_pingpong -s 4096", "ib_write_bw -s 65536"),
    ("ibv_uc_pingpong -s 4096", "ib_read_bw -s 65536"),
    ("ibv_ud_pingpong -s 1024", "ib_atomic_bw"),
    ("ibv_rc_pingpong -s 1048576", "ib_send_bw -s 65536"),
    ("ib_write_bw -c UC", "ib_read_bw -b", "ib_send_bw -s 2",
     "many_qps"))


def lines():
    if not FULL:
        return SHORT_LINES
    return [(family, mtu, offload) for mtu in ACTIVE for offload in OFFLOADS
            for family in ("v4", "v6", "ll") if has(family, mtu)]


def active_mtus():
    """active_mtu follows the netdev while it is up; below IPv6's minimum its
    addresses go, and IPv4's stay."""
    hosts = pairs[0]
    for mtu, active in ACTIVE.items():
        set_mtu(hosts, mtu)
        d, _ = hosts[0].device()
        expect(d.active_mtu == active, "netdev %d: active_mtu %d, not %d" % (
            mtu, d.active_mtu, active))
        for family in ("v6", "ll"):
            there = hosts[0].gid(family) in d.gids.values()
            expect(there == has(family, mtu), "netdev %d: GIDs %s" % (
                mtu, d.gids))


def matrix():
    for n, (family, mtu, offload) in enumerate(lines()):
        try:
            set_mtu(pairs[0], mtu)
            set_offload(pairs[0], offload)
        except Failed as e:
            test("%s, MTU %d, %s" % (family, mtu, offload), fail, str(e))
            continue
        for name, function, args in programs(mtu):
            if FULL or name in SHORT_PROGRAMS[n % len(SHORT_PROGRAMS)]:
                test("%s, MTU %d, %s: %s" % (family, mtu, offload, name),
                     function, pairs[0], family, opts_for(offload), *args)


def fail(text):
    raise Failed(text)


# ---- MTUs that do not fit ----

def beyond_active_mtu():
    """As on a NIC: a path MTU above the port's is EINVAL at RTR."""
    hosts = pairs[0]
    set_mtu(hosts, 1500)
    server, client = start(*hosts, "v4", ["ibv_rc_pingpong"], client_args=[
        "ibv_rc_pingpong", "-m", 4096], opts=STOCK)
    rc = client.wait()
    server.kill()
    expect(rc != 0 and "Failed to modify QP to RTR" in client.output(),
           client.output())


def path_mtus_differ():
    """1024 here, 4096 there: the responder refuses what is too long."""
    hosts = pairs[0]
    set_mtu(hosts, 9000)
    server, client = start(
        *hosts, "v4", ["ibv_rc_pingpong", "-s", 8192, "-m", 1024],
        client_args=["ibv_rc_pingpong", "-s", 8192, "-m", 4096], opts=STOCK)
    rc = client.wait()
    server.kill()
    expect(rc != 0, "it worked")
    expect("remote invalid request" in client.output(), client.output())


def netdevs_differ():
    """What one netdev sends is too long for the other: it never arrives (if
    sent singly: a veth lets what is to be segmented pass)."""
    hosts = pairs[0]
    hosts[0].set_mtu(1500)
    hosts[1].set_mtu(9000)
    server, client = start(
        *hosts, "v4", ["ibv_rc_pingpong", "-s", 8192, "-m", 1024],
        client_args=["ibv_rc_pingpong", "-s", 8192, "-m", 4096],
        opts=opts_for("--no-offload"))
    rc = client.wait()
    server.kill()
    expect(rc != 0, "it worked")
    expect("transport retries exceeded" in client.output(),
           client.output())
    # A path MTU that both have works over the same pair.
    pingpong(hosts, "v4", STOCK, "rc", 4096, 100)


# ---- captures ----

def capture(family):
    need("tshark")
    hosts = pairs[0]
    set_mtu(hosts, 1500)
    paths = (tmp_path("server.pcap"), tmp_path("client.pcap"))
    run(*hosts, family, ["ib_send_bw", *FAST, "-n", 50, "-s", 10001],
        opts=STOCK, captures=paths).no_loss()
    for path in paths:
        packets = icrc_check.check_file(path)
        expect(packets.good >= 50 and not packets.bad, "%d good, bad: %s" % (
            packets.good, packets.bad[:10]))
    for query, empty in (("_ws.malformed", True), ("infiniband", False)):
        out = subprocess.run(
            ["tshark", "-r", paths[1], "--disable-protocol", "rpcordma", "-Y",
             query], capture_output=True, text=True, check=False)
        expect(out.returncode == 0, out.stderr)
        expect((out.stdout == "") == empty, "%s: %s" % (query, out.stdout))


# ---- more hosts ----

def same_addresses():
    """Two pairs with equal addresses at once (B148); and all four hosts'
    devices on one port number each, which a namespace of its own allows."""
    other = veth_pair()
    pairs.append(other)
    set_mtu(pairs[0] + other, 1500)
    expect(pairs[0][0].address == other[0].address, "not the same")
    procs = [start(*hosts, family, ["ib_write_bw", *FAST, "-n", 300, "-s",
                                    65536], opts=STOCK)
             for hosts in (pairs[0], other) for family in ("v4", "v6")]
    for server, client in procs:
        pair = finish_pair(server, client)
        pair.no_loss()
        # Exactly once: what belongs to one pair never shows in the other.
        for s in (pair.c.get("tx_payload_bytes"),
                  pair.s.get("rx_payload_bytes")):
            expect(s == 300 * 65536, "%d payload bytes" % s)


bridge = []


def make_bridge():
    bridge.extend(bridged(4, net=1))
    set_mtu(bridge, 1500)


def bridge_ways():
    """Each of the six ways over the bridge."""
    for i, server in enumerate(bridge):
        for client in bridge[i + 1:]:
            pingpong((server, client), "v6" if i % 2 else "v4", STOCK, "rc",
                     4096, 50)


def bridge_ring():
    """Everybody serves the next one, all at once, each a family of its own
    kind; every program is one process and one slot."""
    procs = [start(bridge[i], bridge[(i + 1) % 4], family,
                   ["ib_send_bw", *FAST, "-n", 300, "-s", 65536], opts=STOCK)
             for i, family in enumerate(("v4", "v6", "ll", "v4"))]
    for server, client in procs:
        pair = finish_pair(server, client)
        pair.no_loss()
        pair.moved("client", "server", 300 * 65536)


def bridge_onto_one():
    """Three hosts write to one, to a process each: each has a buffer."""
    procs = [start(bridge[0], client, "v4",
                   ["ib_write_bw", *FAST, "-n", 300, "-s", 65536], opts=STOCK)
             for client in bridge[1:]]
    for server, client in procs:
        pair = finish_pair(server, client)
        pair.no_loss()
        pair.moved("client", "server", 300 * 65536)


def make_pair():
    need("ip", "nsenter", "ethtool")
    try:
        pairs.append(veth_pair())
    except Failed as e:
        raise Skip("no veth: %s" % e) from None


def main():
    in_own_netns()
    require("two namespaces and a cable", make_pair)
    test("active_mtu follows the netdev", active_mtus)
    matrix()
    set_offload(pairs[0], "offload")
    test("a path MTU above the port's", beyond_active_mtu)
    test("path MTUs that differ", path_mtus_differ)
    test("netdev MTUs that differ", netdevs_differ)
    for family in ("v4", "v6"):
        test("capture, " + family, capture, family)
    test("two pairs with the same addresses at once", same_addresses)
    test("a bridge of four", make_bridge)
    test("a bridge: every way", bridge_ways)
    test("a bridge: a ring at once", bridge_ring)
    test("a bridge: three onto one", bridge_onto_one)


try:
    main()
finally:
    for host in sum(pairs, []) + bridge:
        host.gone()
done()
