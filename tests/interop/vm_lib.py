# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A small virtual machine with Debian's kernel, whose Soft-RoCE (rdma_rxe) is
the other end.

The test runs in a network namespace of its own, which has no name and goes
with its last process; the guest hangs on a tap device in it:

    host  TAP   10.77.0.1 fd77::1   ---   wire  10.77.0.2 fd77::2   guest, rxe0

Commands reach the guest on a second interface, which qemu's built-in network
forwards from the namespace's loopback, so that faults on the wire leave them
alone. The environment names:

    GUEST_DIR    where the image is made and kept (guest_image.sh)
    GUEST_BIN    the directory of guest_agent and interop_probe
"""
import atexit
import contextlib
import fcntl
import json
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import e2e_lib
from e2e_lib import Failed, Skip, expect, need, tmp_path

HERE = os.path.dirname(os.path.abspath(__file__))
GUEST_DIR = os.environ.get("GUEST_DIR", "build/tests/interop/guest")
GUEST_BIN = os.environ.get("GUEST_BIN", "build/tests/interop")
HOST4, HOST6 = "10.77.0.1", "fd77::1"
GUEST4, GUEST6 = "10.77.0.2", "fd77::2"
MAC = "52:54:00:77:00:02"
TAP = "tap0"
AGENT_PORT = 5000
MAX_MTU = 4200
BOOT_LIMIT_S = 120
IMAGE_LIMIT_S = 600
# As fast as any CPU model under TCG, and it has the CRC instructions.
TCG_CPU = "Westmere"


# ---- the image ----

def newc_file(name, mode, data):
    """One member of a "newc" cpio archive."""
    fields = [0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
    head = b"070701" + b"".join(b"%08X" % f for f in fields) + \
        name.encode() + b"\0"
    return head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)


def make_base():
    """Debian's part of the image: made once, then kept."""
    os.makedirs(GUEST_DIR, exist_ok=True)
    with open(os.path.join(GUEST_DIR, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = subprocess.run(
            [os.path.join(HERE, "guest_image.sh"),
             os.path.abspath(GUEST_DIR)], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=IMAGE_LIMIT_S,
            check=False)
    if made.returncode == 77:
        raise Skip(made.stderr.strip().splitlines()[-1])
    expect(made.returncode == 0, "guest_image.sh: status %d\n%s%s" % (
        made.returncode, made.stdout, made.stderr))


def shim_dir():
    """Where our libibverbs.so.1 is: installed, or in a build directory."""
    tools = os.path.dirname(os.path.realpath(e2e_lib.SOFTHCA))
    for place in ("../lib/softhca", "../src/shim"):
        path = os.path.join(tools, place)
        if os.path.isdir(path):
            return path
    raise Failed("no libibverbs.so.1 beside " + tools)


def make_initramfs():
    """Debian's part and our own, which is as new as the build."""
    path = tmp_path("initramfs")
    shim = shim_dir()
    with open(path, "wb") as out:
        with open(os.path.join(GUEST_DIR, "base.cpio"), "rb") as base:
            out.write(base.read())
        out.write(newc_file("usr/lib/softhca", 0o040755, b""))
        for name, source in (
                ("init", os.path.join(HERE, "guest_init.sh")),
                ("guest_agent", os.path.join(GUEST_BIN, "guest_agent")),
                ("usr/bin/interop_probe",
                 os.path.join(GUEST_BIN, "interop_probe")),
                ("usr/bin/softhca", e2e_lib.SOFTHCA),
                ("usr/lib/softhca/libibverbs.so.1",
                 os.path.join(shim, "libibverbs.so.1")),
                ("usr/lib/softhca/libsofthca_path.so",
                 os.path.join(shim, "libsofthca_path.so"))):
            with open(source, "rb") as f:
                out.write(newc_file(name, 0o100755, f.read()))
        out.write(newc_file("TRAILER!!!", 0, b""))
    return path


# ---- programs in the guest ----

class GuestProcess:
    """A command in the guest; looks like e2e_lib.Process."""

    def __init__(self, guest, args):
        self.guest = guest
        self.cmd = [str(a) for a in args]
        self.data = bytearray()
        self.sock = socket.create_connection(("127.0.0.1", AGENT_PORT), 20)
        self.sock.settimeout(None)
        self.sock.sendall(" ".join(self.cmd).encode() + b"\0")
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        with contextlib.suppress(OSError):
            while True:
                piece = self.sock.recv(65536)
                if not piece:
                    break
                self.data += piece

    def output(self):
        text = bytes(self.data).split(b"\0")[0]
        return text.decode(errors="replace")

    def status(self):
        """The exit status, None while it runs, -1 when it was killed."""
        if self.reader.is_alive():
            return None
        parts = bytes(self.data).split(b"\0")
        return int(parts[1]) if len(parts) == 2 and parts[1] else -1

    def running(self):
        return self.status() is None

    def wait(self, limit_s=e2e_lib.LIMIT_S):
        self.reader.join(limit_s)
        if self.reader.is_alive():
            self.kill()
            raise Failed("guest: %s: not done after %d s\n%s" % (
                " ".join(self.cmd), limit_s, self.output()))
        return self.status()

    def wait_listening(self, port):
        """A line of /proc/net/tcp: local address:port, remote, state 0A."""
        self.guest.run(
            "until grep -q ':%04X [0-9A-F:]* 0A ' /proc/net/tcp*; "
            "do usleep 10000; done" % port, 20)

    def kill(self):
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.reader.join(10)
        self.sock.close()


# ---- the machine ----

def address_of(gid):
    """The IP address that a RoCE GID, as sysfs writes it, stands for."""
    raw = bytes.fromhex(gid.replace(":", ""))
    if raw[:12] == b"\0" * 10 + b"\xff\xff":
        return socket.inet_ntop(socket.AF_INET, raw[12:])
    return socket.inet_ntop(socket.AF_INET6, raw)


class Guest:
    """The running machine. One a test program."""

    def __init__(self, initramfs, mtu):
        self.console = tmp_path("console")
        self.qemu = subprocess.Popen(
            self._command(initramfs, mtu), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        atexit.register(self.stop)
        self._wait_ready()
        self.qmp("qmp_capabilities")
        self.gids = self._gids()

    def _command(self, initramfs, mtu):
        append = (
            "console=ttyS0 quiet panic=-1 mitigations=off nokaslr "
            "net.ifnames=0 audit=0 guest.mac=%s guest.ip4=%s/24 "
            "guest.ip6=%s/64 guest.mtu=%d guest.port=%d" % (
                MAC, GUEST4, GUEST6, mtu, AGENT_PORT))
        # Without offloads each packet on the wire is a packet in a capture.
        off = "".join("," + o + "=off" for o in (
            "csum", "guest_csum", "gso", "guest_tso4", "guest_tso6",
            "guest_ufo", "host_tso4", "host_tso6", "host_ufo"))
        return [
            # It must not outlive this process, whatever ends that.
            "setpriv", "--pdeathsig", "KILL",
            "qemu-system-x86_64", "-no-user-config", "-nodefaults",
            "-machine", "pc,graphics=off", "-display", "none",
            "-accel", "tcg,thread=multi,tb-size=256", "-cpu", TCG_CPU,
            "-smp", "2", "-m", "1024", "-no-reboot", "-qmp", "stdio",
            "-serial", "file:" + self.console,
            "-netdev", "tap,id=wire,ifname=%s,script=no,downscript=no,"
            "vnet_hdr=off" % TAP,
            "-device", "virtio-net-pci,netdev=wire,mac=%s,romfile=,"
            "host_mtu=%d%s" % (MAC, MAX_MTU, off),
            "-netdev", "user,id=control,restrict=on,hostfwd=tcp:127.0.0.1:"
            "%d-:%d" % (AGENT_PORT, AGENT_PORT),
            "-device", "virtio-net-pci,netdev=control,romfile=",
            "-device", "virtio-rng-pci",
            "-kernel", os.path.join(GUEST_DIR, "vmlinuz"),
            "-initrd", initramfs, "-append", append]

    def _console_text(self):
        if not os.path.exists(self.console):
            return ""
        with open(self.console, encoding="utf-8", errors="replace") as f:
            return f.read()

    def _wait_ready(self):
        end = time.monotonic() + BOOT_LIMIT_S
        while "guest: ready" not in self._console_text():
            if self.qemu.poll() is not None:
                raise Failed("qemu ended: %s\n%s" % (
                    self.qemu.stdout.read(), self._console_text()))
            expect(time.monotonic() < end, "the guest is not ready after "
                   "%d s:\n%s" % (BOOT_LIMIT_S, self._console_text()))
            time.sleep(0.05)
        expect(self.run("true")[0] == 0, "the guest's agent does not work:\n" +
               self._console_text())

    def _gids(self):
        """{address text: index} of rxe0. The kernel fills its table from a
        work queue."""
        end = time.monotonic() + 20
        while True:
            _, text = self.run(
                "cd /sys/class/infiniband/rxe0/ports/1/gids; "
                "for i in 0 1 2 3 4 5; do echo $i $(cat $i); done")
            gids = {address_of(gid): int(index)
                    for index, gid in re.findall(r"(\d+) (\S+)", text)}
            if GUEST4 in gids and GUEST6 in gids:
                return gids
            expect(time.monotonic() < end, "rxe0's GIDs:\n" + text)
            time.sleep(0.1)

    def stop(self):
        self.qemu.kill()
        self.qemu.wait()

    def start(self, args):
        return GuestProcess(self, args)

    def run(self, command, limit_s=20):
        """A shell command to its end: (status, output)."""
        p = GuestProcess(self, [command])
        rc = p.wait(limit_s)
        return rc, p.output()

    def must(self, command, limit_s=20):
        """A command that has to work; its output."""
        rc, text = self.run(command, limit_s)
        expect(rc == 0, "guest: %s: status %d\n%s" % (command, rc, text))
        return text

    def qmp(self, command, **arguments):
        """One request to qemu; events and the greeting are skipped."""
        self.qemu.stdin.write(json.dumps(
            {"execute": command, "arguments": arguments}) + "\n")
        self.qemu.stdin.flush()
        while True:
            answer = json.loads(self.qemu.stdout.readline())
            if "error" in answer:
                raise Failed("qemu: %s: %s" % (command, answer["error"]))
            if "return" in answer:
                return answer["return"]

    @contextlib.contextmanager
    def capture(self):
        """Everything on the wire, taken by qemu itself so that nothing is
        missed; gives the pcap file's path."""
        path = tmp_path("wire.pcap")
        self.qmp("object-add", **{"qom-type": "filter-dump", "id": "dump",
                                  "netdev": "wire", "file": path})
        try:
            yield path
        finally:
            self.qmp("object-del", id="dump")

    def set_mtu(self, mtu):
        """Both ends of the wire; rxe0 and our devices follow."""
        subprocess.run(["ip", "link", "set", TAP, "mtu", str(mtu)],
                       check=True)
        self.must("ip link set wire mtu %d" % mtu)

    def counters(self):
        """rxe0's own counters."""
        text = self.must("cd /sys/class/infiniband/rxe0/ports/1/hw_counters;"
                         " grep . *")
        return {name: int(n) for name, n in
                re.findall(r"(\w+):(\d+)", text)}

    @contextlib.contextmanager
    def netem(self, outward="", inward=""):
        """Faults, in netem's words, on RoCE packets that leave the guest
        and on those that come in."""
        setup = ["modprobe -a sch_prio sch_netem cls_u32"]
        if outward:
            setup += _netem_on("wire", outward)
        if inward:
            setup += ["modprobe ifb numifbs=1", "ip link set ifb0 up",
                      "tc qdisc add dev wire ingress",
                      "tc filter add dev wire parent ffff: u32 match u32 0 0 "
                      "action mirred egress redirect dev ifb0"]
            setup += _netem_on("ifb0", inward)
        self.must(" && ".join(setup))
        try:
            yield
        finally:
            self.must("tc qdisc del dev wire root 2>&-; "
                      "tc qdisc del dev wire ingress 2>&-; "
                      "rmmod ifb 2>&-; tc qdisc show")


def _netem_on(device, faults):
    """Commands that put netem in front of UDP packets to port 4791. The
    fourth band gets nothing unless a filter says so."""
    add = "tc qdisc add dev %s " % device
    commands = [add + "root handle 1: prio bands 4",
                add + "parent 1:4 handle 40: netem limit 100000 " + faults]
    for n, (protocol, match) in enumerate((("ip", "ip"), ("ipv6", "ip6"))):
        commands.append(
            "tc filter add dev %s parent 1: protocol %s prio %d u32 "
            "match %s dport 4791 0xffff flowid 1:4" % (
                device, protocol, n + 1, match))
    return commands


# ---- the wire's host end ----

def make_wire(mtu):
    for cmd in ("tuntap add dev %s mode tap" % TAP,
                "addr add %s/24 dev %s" % (HOST4, TAP),
                "link set %s mtu %d txqueuelen 10000 up" % (TAP, mtu),
                "addr add %s/64 dev %s nodad" % (HOST6, TAP)):
        p = subprocess.run(["ip"] + cmd.split(), check=False,
                           capture_output=True, text=True)
        if p.returncode:
            raise Skip("ip %s: %s" % (cmd, p.stderr.strip()))


def guest(mtu=1500):
    """Boots the machine, in a new namespace; called before anything else of
    a test program. Where there can be none, the one skipped test says so."""
    try:
        if platform.machine() != "x86_64":
            raise Skip("the guest is an x86-64 one")
        need("qemu-system-x86_64", "setpriv", "ip")
        if not e2e_lib.inside_own_netns():
            make_base()  # the new namespace has no way to the mirrors
        e2e_lib.in_own_netns()
        make_wire(mtu)
        # The namespace's root is not the one who owns /tmp/softhca-0.
        os.environ["XDG_RUNTIME_DIR"] = e2e_lib.tmp_dir()
    except Skip as e:
        skip_all(e)
    return Guest(make_initramfs(), mtu)


def skip_all(reason):
    def skipped():
        raise reason
    e2e_lib.test("a virtual machine with rdma_rxe", skipped)
    e2e_lib.done()
