#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Packets that went through a NAT: their ICRC cannot be right, since it covers
addresses and ports. They are counted, and --verbose names the reason once."""
import os
import re
import socket
import struct
import subprocess
import time

os.environ["SOFTHCA_LINK"] = "udp"  # both ends are on this host

from e2e_lib import (HOST, Skip, device_with, done, expect, finish_pair,
                     in_own_netns, need, start_pair, test)
from icrc_check import icrc_of

OTHER = "10.99.1.1"
STRANGER = "127.0.0.9"
PINGPONG = ["ibv_rc_pingpong", "-g", 0, "-s", 1024]
ROUNDS = 10000
NAT_WORDS = "packets with a wrong ICRC are dropped (rx_bad_icrc)"
SRC_WORDS = "packets whose addresses are not those of the QP's path are dropped"


def payload(src, sport, dst, qpn):
    """A SEND ONLY of nothing with the ICRC that it has without a NAT."""
    bth = struct.pack(">BBHII", 0x04, 0, 0xffff, qpn, 0)
    length = 8 + len(bth) + 4
    header = struct.pack(">BBHHHBBH4s4s", 0x45, 0xff, 20 + length, 0, 0x4000,
                         0xff, 17, 0xffff, socket.inet_aton(src),
                         socket.inet_aton(dst))
    udp = struct.pack(">HHHH", sport, 4791, length, 0xffff)
    return bth + struct.pack("<I", icrc_of(header, udp + bth + bytes(4)))


def stranger():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, 10, 3)  # IP_MTU_DISCOVER: DF, ID 0
    s.bind((STRANGER, 0))
    return s


def crafted(src, counter, group, words):
    """Packets for the client's QP that say to be from src come from a
    stranger, while the pair runs; the pair takes no notice of them."""
    # A line at a time: the QPN is wanted while the pair runs.
    server, client = start_pair([*PINGPONG, "-n", ROUNDS],
                                prefix=["stdbuf", "-oL"],
                                opts=["--verbose", "--rcvbuf", "stock"])
    try:
        client.wait_text("remote address")
        qpn = int(re.search(r"local address.*QPN (0x\w+)",
                            client.output()).group(1), 16)
        with stranger() as s:
            data = payload(src, s.getsockname()[1], HOST, qpn)
            while client.running():
                s.sendto(data, (HOST, 4791))
                time.sleep(0.002)
    finally:
        pair = finish_pair(server, client)
    n = pair.c.get(counter, group)
    expect(n > 0, "%s is 0: %s" % (counter, pair.c.text()))
    text = client.output()
    expect(text.count(words) == 1, "'%s' was said %d times:\n%s" % (
        words, text.count(words), text))
    pair.moved("client", "server", ROUNDS * 1024)


def through_nat():
    """The answers to the client come from another address: RETRY_EXC_ERR."""
    need("iptables")
    subprocess.run(["ip", "addr", "add", OTHER + "/32", "dev", "lo"],
                   check=True)
    rule = ["iptables", "-t", "nat", "-A", "POSTROUTING", "-p", "udp",
            "-d", HOST, "--dport", "4791", "-j", "SNAT", "--to", "10.99.1.9"]
    made = subprocess.run(rule, check=False, capture_output=True, text=True)
    if made.returncode:
        raise Skip("no NAT here: " + made.stderr.strip().split("\n")[-1])
    _, gid = device_with("::ffff:" + OTHER)
    server, client = start_pair([*PINGPONG, "-n", 10], opts=["--verbose"],
                                server_opts=["-g", gid])
    try:
        rc = client.wait(60)
    finally:
        client.kill()
        server.kill()
    text = client.output()
    expect(rc > 0 and
           "status transport retries exceeded (12)" in text, text)
    expect(text.count(NAT_WORDS) == 1 and "NAT" in text, text)
    expect(client.stats().get("rx_bad_icrc", "link") > 0,
           client.stats().text())


def main():
    test("the source was changed, the ICRC was not", crafted, HOST,
         "rx_bad_icrc", "link", NAT_WORDS)
    test("another source with its own ICRC", crafted, STRANGER,
         "rx_drop_src", "hca", SRC_WORDS)
    test("the kernel's NAT", through_nat)
    done()


in_own_netns()
main()
