# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Our own stack inside the guest, beside the kernel's rdma_rxe: who owns UDP
port 4791 there. rxe's sockets hold it on every address of its network
namespace, so ours says so, and works in another one or once rxe is gone."""
import e2e_lib
from e2e_lib import expect, test
from vm_lib import GUEST4

TCP_PORT = 18515
# Beside GUEST4, which rxe0 is on: an interface without one, and loopback.
CONTROL4 = "10.0.2.15"
LOOPBACK4 = "127.0.0.1"


def start(guest, address, tail=(), prefix=()):
    """ibv_rc_pingpong with our libibverbs, on the device with this address."""
    rc, text = guest.run(" ".join([*prefix, "softhca run ibv_devinfo -v"]))
    expect(rc == 0, text)
    device, gid = e2e_lib.device_with("::ffff:" + address,
                                      e2e_lib.parse_devices(text))
    return guest.start([*prefix, "softhca", "run", "ibv_rc_pingpong", "-d",
                        device.name, "-g", gid, "-n", 100, "-c", *tail])


def pair(guest, address):
    """(status, output) of a server and a client at this address, beside rxe;
    the server is ended when the client fails."""
    server = start(guest, address)
    server.wait_listening(TCP_PORT)
    client = start(guest, address, [address])
    try:
        rc = client.wait(30)
        if rc == 0:
            rc = server.wait(10)
    finally:
        client.kill()
        server.kill()
    return rc, server.output() + client.output()


def refused(guest, address):
    rc, text = pair(guest, address)
    expect(rc != 0, "it worked:\n" + text)
    for words in ("Failed to modify QP to RTR",
                  "UDP port 4791 of %s is held by the kernel" % address,
                  "rdma_rxe"):
        expect(words in text, "expected '%s' in:\n%s" % (words, text))


NAMESPACE = r"""
set -e
ip link set lo up
softhca run ibv_rc_pingpong -g 0 -n 100 -c &
until grep -q ':4853 [0-9A-F:]* 0A ' /proc/net/tcp*; do usleep 10000; done
softhca run ibv_rc_pingpong -g 0 -n 100 -c 127.0.0.1
wait $!
"""


def other_namespace(guest):
    """What the message proposes."""
    rc, text = guest.run("unshare -n sh -c '%s'" % NAMESPACE.replace(
        "'", "'\\''"), 30)
    expect(rc == 0 and text.count("100 iters") == 2, "status %d\n%s" % (
        rc, text))


def without_rxe(guest):
    """... and the other proposal. rxe0 is not there afterwards."""
    guest.must("rdma link delete rxe0 && rmmod rdma_rxe")
    rc, text = pair(guest, GUEST4)
    expect(rc == 0 and text.count("100 iters") == 2, "status %d\n%s" % (
        rc, text))


def add_tests(guest, addresses):
    """The last ones of a test program: rxe0 is gone then."""
    for address in addresses:
        test("our stack beside rxe: %s is held" % address, refused, guest,
             address)
    test("our stack beside rxe: another namespace", other_namespace, guest)
    test("our stack after rxe", without_rxe, guest)
