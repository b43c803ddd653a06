#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Addresses and links that come and go while a device is open."""
import subprocess
import time

import e2e_lib as e2e
from e2e_lib import expect, test


def ip(*args):
    subprocess.run(["ip", *args], check=True)



class Watch:
    """ibv_asyncwatch on one device; next() waits for the next line."""

    def __init__(self, device):
        self.process = e2e.Process(["ibv_asyncwatch", "-d", device])
        self.process.wait_text("async event FD")
        self.seen = len(self.lines())

    def lines(self):
        return [line for line in self.process.output().splitlines()
                if "event_type" in line]

    def next(self, what):
        def there():
            return len(self.lines()) > self.seen
        self.process.wait_for(there, 5)
        line = self.lines()[self.seen]
        self.seen += 1
        expect(what in line.lower(), "expected %s, got: %s" % (what, line))

    def quiet(self):
        time.sleep(0.2)
        expect(len(self.lines()) == self.seen,
               "unexpected: " + "\n".join(self.lines()[self.seen:]))


def interface(name, *addrs):
    """One end of a veth pair; the other only gives it a carrier."""
    ip("link", "add", name, "type", "veth", "peer", "name", name + "p")
    for end in (name, name + "p"):
        # No link-local address that comes when it likes.
        ip("link", "set", end, "addrgenmode", "none")
    for a in addrs:
        ip("addr", "add", a, "dev", name)
    ip("link", "set", name + "p", "up")
    ip("link", "set", name, "up")


def device_of(gid_text):
    return e2e.device_with(gid_text)[0].name


def addresses():
    interface("d0", "10.9.0.1/24", "10.9.0.2/24")
    w = Watch(device_of("::ffff:10.9.0.1"))
    w.quiet()
    ip("addr", "add", "10.9.0.3/24", "dev", "d0")
    w.next("gid")
    ip("addr", "del", "10.9.0.2/24", "dev", "d0")
    w.next("gid")
    w.quiet()
    w.process.kill()


def link_down_and_up():
    interface("d1", "10.9.1.1/24")
    w = Watch(device_of("::ffff:10.9.1.1"))
    ip("link", "set", "d1", "down")
    w.next("port_err")
    ip("link", "set", "d1", "up")
    w.next("port_active")
    w.quiet()
    w.process.kill()


def renamed_and_deleted():
    interface("d2", "10.9.2.1/24")
    w = Watch(device_of("::ffff:10.9.2.1"))
    ip("link", "set", "d2", "down")
    w.next("port_err")
    ip("link", "set", "d2", "name", "d2new")
    ip("link", "set", "d2new", "up")
    w.next("port_active")
    ip("link", "del", "d2new")
    # Both at once, in no promised order.
    w.process.wait_for(lambda: len(w.lines()) >= w.seen + 2, 5)
    text = "\n".join(w.lines()[w.seen:]).lower()
    expect("gid" in text and "port_err" in text, text)
    w.process.kill()


def traffic_goes_on_over_a_change():
    """Another address of the interface comes and goes under a running QP."""
    interface("d3", "10.9.3.1/24")
    device, gid = e2e.device_with("::ffff:10.9.3.1")
    server, client = e2e.start_pair(
        ["ibv_rc_pingpong", "-d", device.name, "-g", gid, "-n", 2000,
         "-c"], host="10.9.3.1")
    for _ in range(5):
        ip("addr", "add", "10.9.3.9/24", "dev", "d3")
        ip("addr", "del", "10.9.3.9/24", "dev", "d3")
    e2e.finish_pair(server, client).no_loss()


# Processes of one host need no interface for their frames otherwise.
ON_THE_WIRE = {"SOFTHCA_LINK": "udp"}


def endless(name, address):
    """A pair over an interface of its own that does not end by itself."""
    interface(name, address + "/24")
    device, gid = e2e.device_with("::ffff:" + address)
    pair = e2e.start_pair(["ibv_rc_pingpong", "-d", device.name, "-g", gid,
                           "-n", 1000000000, "-c"], host=address,
                          env=ON_THE_WIRE)
    time.sleep(0.3)
    expect(all(p.running() for p in pair), "it ended early")
    return pair


def renamed_under_a_qp():
    """Down, renamed and up again within the retries: it all goes on."""
    interface("d4", "10.9.4.1/24")
    device, gid = e2e.device_with("::ffff:10.9.4.1")
    server, client = e2e.start_pair(
        [e2e.helper("stream"), "-d", device.name, "-g", gid, "-t", 2, "-m",
         "poll", "-T", 18], host="10.9.4.1", env=ON_THE_WIRE)
    client.wait_text("done")
    ip("link", "set", "d4", "down")
    ip("link", "set", "d4", "name", "d4new")
    ip("link", "set", "d4new", "up")
    at = time.monotonic()
    pair = e2e.finish_pair(server, client)
    last = client.output().rsplit("at ", 1)[1].split()[0]
    expect(float(last) > at + 0.5, "nothing was done afterwards")
    pair.none_of([("link", "rx_bad_icrc")])


def goes_under_a_qp(name, address, *command):
    """RETRY_EXC_ERR, in the time that timeout and retry_cnt say: 8 times 67 ms
    to 268 ms, at the end whose message it is; the other waits for it."""
    pair = endless(name, address)
    try:
        ip(*command)
        begin = time.monotonic()
        while all(p.running() for p in pair):
            expect(time.monotonic() < begin + 5, "both go on")
            time.sleep(0.01)
        for p in pair:
            expect(p.running() or "transport retries exceeded" in p.output(),
                   p.output())
    finally:
        for p in pair:
            p.kill()


try:
    e2e.in_own_netns()
    e2e.need("ibv_asyncwatch", "ibv_rc_pingpong")
except e2e.Skip as why:
    print("1..0 # SKIP %s" % why)
    raise SystemExit(0)
test("addresses come and go: GID_CHANGE", addresses)
test("link down and up: PORT_ERR, PORT_ACTIVE", link_down_and_up)
test("renamed, deleted", renamed_and_deleted)
test("traffic goes on over a change", traffic_goes_on_over_a_change)
test("renamed under a QP: it goes on", renamed_under_a_qp)
test("the address is removed under a QP", goes_under_a_qp, "d5", "10.9.5.1",
     "addr", "del", "10.9.5.1/24", "dev", "d5")
test("the interface is deleted under a QP", goes_under_a_qp, "d6", "10.9.6.1",
     "link", "del", "d6")
e2e.done()
