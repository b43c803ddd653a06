# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Hosts of a test: network namespaces with one interface each, joined by a
veth pair or by a bridge. The calling test is in a namespace of its own."""
import ipaddress
import os
import subprocess
import time

import e2e_lib as e2e

IPV6_MTU_MIN = 1280  # Linux takes IPv6 off an interface that is below


def ip(*args):
    p = subprocess.run(["ip", *(str(a) for a in args)], check=False,
                       capture_output=True, text=True)
    e2e.expect(p.returncode == 0,
               "ip %s: %s" % (" ".join(map(str, args)), p.stderr))


class Host:
    """A namespace, held by an idle process, and its interface eth0."""

    def __init__(self, number, net=0):
        self.number = number
        self.port = None  # its end of the cable at a bridge
        self.address = {"v4": "10.77.%d.%d" % (net, number),
                        "v6": "fd77:0:0:%x::%x" % (net, number),
                        "ll": "fe80::77:%x:%x" % (net, number)}
        # It ends with us, however we end: then the pipe has no writer.
        self.keeper = subprocess.Popen(
            ["unshare", "-n", "cat"], stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL)
        self.prefix = ["nsenter", "--net=/proc/%d/ns/net" % self.keeper.pid]
        self._wait()
        self.sh("ip", "link", "set", "lo", "up")

    def _wait(self):
        outside = os.readlink("/proc/self/ns/net")
        end = time.monotonic() + 10
        while os.readlink("/proc/%d/ns/net" % self.keeper.pid) == outside:
            e2e.expect(self.keeper.poll() is None and time.monotonic() < end,
                       "no namespace")
            time.sleep(0.002)

    def sh(self, *args, check=True):
        """A command inside."""
        cmd = self.prefix + [str(a) for a in args]
        p = subprocess.run(cmd, check=False, capture_output=True, text=True)
        e2e.expect(p.returncode == 0 or not check, "%s: %s%s" % (
            " ".join(cmd), p.stdout, p.stderr))
        return p.stdout

    def take(self, interface):
        """An interface becomes this host's eth0."""
        ip("link", "set", interface, "netns", self.keeper.pid)
        self.sh("ip", "link", "set", interface, "name", "eth0")
        # No link-local address that comes when it likes.
        self.sh("ip", "link", "set", "eth0", "addrgenmode", "none")
        self.sh("ip", "addr", "add", self.address["v4"] + "/24", "dev", "eth0")
        self.sh("ip", "link", "set", "eth0", "up")

    def set_mtu(self, mtu):
        self.sh("ip", "link", "set", "eth0", "mtu", mtu)
        if self.port:  # or it would drop what is not segmented
            ip("link", "set", self.port, "mtu", mtu)
        if mtu < IPV6_MTU_MIN:
            return
        self.sh("ip", "link", "set", "eth0", "addrgenmode", "none")
        for family in ("v6", "ll"):
            self.sh("ip", "-6", "addr", "replace", self.address[family] +
                    "/64", "dev", "eth0", "nodad")

    def gid(self, family):
        a = self.address[family]
        return "::ffff:" + a if family == "v4" else \
            str(ipaddress.ip_address(a))

    def device(self, family=None):
        """Its device over eth0 (of the newest state), and a GID's index."""
        gid = self.gid(family or "v4")
        for d in e2e.devices(prefix=self.prefix):
            for index, text in d.gids.items():
                if text == gid:
                    return d, index
        raise e2e.Failed("host %d: no device has the GID %s" % (
            self.number, gid))

    def gone(self):
        """The namespace goes when nobody is in it any more."""
        self.keeper.kill()
        self.keeper.wait()


def veth_pair(net=0):
    """Two hosts with a cable between them."""
    hosts = [Host(1, net), Host(2, net)]
    ip("link", "add", "ve1", "type", "veth", "peer", "name", "ve2")
    for h in hosts:
        h.take("ve%d" % h.number)
    return hosts


def bridged(n, net=0):
    """n hosts on a bridge, which is in our own namespace."""
    name = "br%d" % net
    ip("link", "add", name, "type", "bridge")
    ip("link", "set", name, "up")
    hosts = []
    for number in range(1, n + 1):
        port = "%s.%d" % (name, number)
        h = Host(number, net)
        ip("link", "add", port, "type", "veth", "peer", "name", "ve")
        ip("link", "set", port, "master", name, "up")
        h.take("ve")
        h.port = port
        hosts.append(h)
    return hosts


def start(server, client, family, args, client_args=None, opts=(),
          captures=(None, None)):
    """Starts `args` on the server and `client_args`, by default the same, on
    the client. They find each other over IPv4 (or whatever the interface
    has): the program's own TCP connection is none of ours."""
    port = e2e.free_port()
    procs = []
    for host, more, tail, capture in (
            (server, args, [], captures[0]),
            (client, client_args or args, [server.address["v4"]],
             captures[1])):
        d, gid = host.device(family)
        flag = "-x" if args[0].startswith("ib_") else "-g"
        procs.append(e2e.Process(
            [more[0], "-d", d.name, flag, gid, *more[1:], "-p", port, *tail],
            prefix=host.prefix, opts=opts, capture=capture))
        if not tail:
            procs[0].wait_listening(port)
    return procs


def run(server, client, family, args, **kwargs):
    limit_s = kwargs.pop("limit_s", e2e.LIMIT_S)
    return e2e.finish_pair(*start(server, client, family, args, **kwargs),
                           limit_s=limit_s)
