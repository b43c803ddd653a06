# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The kernel's Soft-RoCE as the other end, the short part: each operation, each
error, each program in one of its forms."""
from e2e_lib import test
from interop_errors import bad, good
from interop_lib import DIRECTIONS, FROM_GUEST, FROM_HOST, Ends
from interop_loss import MIB, lossy
from interop_port import add_tests as port_tests
from interop_programs import perftest, pingpong
from vm_lib import GUEST4


def programs(v4, v6):
    test("ibv_rc_pingpong from host", pingpong, v4, FROM_HOST, "rc", 4096,
         200, "-c")
    test("ibv_rc_pingpong -e from guest, IPv6", pingpong, v6, FROM_GUEST,
         "rc", 4096, 200, "-e", "-c")
    test("ibv_uc_pingpong from guest", pingpong, v4, FROM_GUEST, "uc", 1024,
         200, "-e")
    test("ibv_ud_pingpong from host, IPv6", pingpong, v6, FROM_HOST, "ud",
         1024, 200, "-e")
    test("ibv_srq_pingpong from host", pingpong, v4, FROM_HOST, "srq", 1024,
         100, "-e")
    test("ib_send_bw from guest", perftest, v4, FROM_GUEST, "ib_send_bw",
         500)
    test("ib_write_bw from host, 4 QPs", perftest, v4, FROM_HOST,
         "ib_write_bw", 200, qps=4)
    test("ib_read_bw from host, IPv6", perftest, v6, FROM_HOST,
         "ib_read_bw", 500)
    test("ib_atomic_bw from guest", perftest, v4, FROM_GUEST,
         "ib_atomic_bw", 200)


def run_all(guest):
    v4, v6 = Ends(guest), Ends(guest, ipv6=True)
    for direction in DIRECTIONS:
        test("each operation " + direction, good, v4, direction)
        test("each error " + direction, bad, v4, direction)
    programs(v4, v6)
    for direction in DIRECTIONS:
        test("1 %% of packets lost, %s" % direction, lossy, v4, direction,
             "loss 1%", ["send:%d:1" % MIB, "write:%d:1" % MIB,
                         "read:%d:1" % MIB, "fadd:8:50"])
    guest.set_mtu(4200)
    v4, v6 = Ends(guest), Ends(guest, ipv6=True)
    test("each operation from host, MTU 4096, IPv6", good, v6, FROM_HOST)
    test("ibv_ud_pingpong from guest, MTU 4096", pingpong, v4, FROM_GUEST,
         "ud", 4096, 200, "-e")
    test("ib_write_bw from guest, MTU 4096", perftest, v4, FROM_GUEST,
         "ib_write_bw", 200)
    port_tests(guest, [GUEST4])
