# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The kernel's Soft-RoCE as the other end, all of it: IPv4 and IPv6, MTU 1024
and 4096, both directions, every fault that netem knows."""
from e2e_lib import test
from interop_errors import bad, good
from interop_lib import DIRECTIONS, Ends, check_icrcs, check_work, probe
from interop_loss import MIB, lossy
from interop_port import CONTROL4, LOOPBACK4
from interop_port import add_tests as port_tests
from interop_programs import PERF_SIZE, perftest, pingpong
from vm_lib import GUEST4

LARGE = ["send:%d:2" % MIB, "write:%d:2" % MIB, "write_imm:%d:2" % MIB,
         "read:%d:2" % MIB, "fadd:8:100", "cas:8:100"]
SIZES = (1, 2, 3, 4, 255, 1023, 1024, 1025, 4095, 4096, 4097, 16000)
FAULTS = ("loss 0.1%", "loss 1%", "loss 5%", "duplicate 5%",
          "delay 2ms reorder 90% 50%", "corrupt 2%",
          "loss 1% duplicate 1% corrupt 1%")
# Each packet has a delay of its own, longer than a window takes to send: what
# arrives is shuffled, and of a window one or two packets are in order. rxe,
# which takes one NAK to heart between two timeouts, needs a timeout for each
# of them: 2,048 packets would take it some 200 s.
SHUFFLED = "delay 2ms 1ms loss 1% corrupt 1%"
SMALL = ["send:16384:2", "write:16384:2", "read:16384:2", "fadd:8:50"]


def sizes(ends, direction):
    """Every length around the edges of packets and of padding."""
    with ends.guest.capture() as path:
        for n in SIZES:
            cases = ["%s:%d:4" % (op, n) for op in
                     ("send", "send_imm", "write", "write_imm", "read")]
            outcome, requester, responder = probe(ends, direction, cases)
            outcome.clean()
            check_work(cases, requester, responder)
    check_icrcs(path, 100)


def pingpongs(ends, direction, label, mtu):
    for kind in ("rc", "uc", "ud", "srq"):
        for flags in ((), ("-e",)):
            size = mtu if kind == "ud" else 2 * mtu + 1
            test("ibv_%s_pingpong %s %s, %s" % (
                kind, " ".join(flags), direction, label),
                pingpong, ends, direction, kind, size, 200, *flags)


def perftests(ends, direction, label):
    def add(program, iters, *flags, **kwargs):
        words = [program, *flags, *("%s=%s" % x for x in kwargs.items())]
        test("%s %s, %s" % (" ".join(map(str, words)), direction, label),
             perftest, ends, direction, program, iters, *flags, **kwargs)
    for op in ("send", "write", "read"):
        add("ib_%s_bw" % op, 500)
        add("ib_%s_bw" % op, 100, qps=4, size=PERF_SIZE // 4)
        add("ib_%s_lat" % op, 200, size=2)
        add("ib_%s_lat" % op, 100, size=PERF_SIZE)
    add("ib_send_lat", 200, "-e", size=64)
    for kind in ("FETCH_AND_ADD", "CMP_AND_SWAP"):
        add("ib_atomic_bw", 200, "-A", kind)
        add("ib_atomic_lat", 200, "-A", kind)
    for op in ("send", "write"):
        add("ib_%s_lat" % op, 200, conn="UC", size=2)
    add("ib_send_lat", 200, conn="UD", size=1024)


def clean(guest):
    for mtu, netdev_mtu in ((1024, 1500), (4096, 4200)):
        guest.set_mtu(netdev_mtu)
        for ipv6 in (False, True):
            ends = Ends(guest, ipv6)
            for direction in DIRECTIONS:
                label = "MTU %d, IPv%d" % (mtu, 6 if ipv6 else 4)
                tail = " %s, %s" % (direction, label)
                test("each operation" + tail, good, ends, direction)
                test("each size" + tail, sizes, ends, direction)
                test("each error" + tail, bad, ends, direction)
                pingpongs(ends, direction, label, mtu)
                perftests(ends, direction, label)
    # Below what the netdev allows.
    for code, mtu in ((1, 256), (2, 512), (4, 2048)):
        for direction in DIRECTIONS:
            test("each operation %s, MTU %d" % (direction, mtu), good,
                 Ends(guest), direction, "-m", code)


def bad_links(guest):
    for netdev_mtu in (1500, 4200):
        guest.set_mtu(netdev_mtu)
        ends = Ends(guest)
        for faults in FAULTS:
            for direction in DIRECTIONS:
                test("%s %s, netdev MTU %d" % (faults, direction, netdev_mtu),
                     lossy, ends, direction, faults, LARGE,
                     seen="0.1%" not in faults)
        for direction in DIRECTIONS:
            test("%s %s, netdev MTU %d" % (SHUFFLED, direction, netdev_mtu),
                 lossy, ends, direction, SHUFFLED, SMALL)


def run_all(guest):
    clean(guest)
    bad_links(guest)
    port_tests(guest, [GUEST4, CONTROL4, LOOPBACK4])
