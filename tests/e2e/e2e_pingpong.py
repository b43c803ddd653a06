#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""ibverbs-utils' pingpongs, unmodified: four transports, polling and events,
every listed GID, with data check, from one byte to 1 MiB."""
from e2e_lib import (Failed, Process, devices, done, expect, free_port,
                     isolate, run_pair, test)

STOCK = ["--rcvbuf", "stock"]
ITERS = {1: 500, 1024: 500, 4096: 500, 1 << 20: 50}


def pingpong(kind, device, gid, size, *flags):
    """One pair; both sides must have sent all of their messages' bytes."""
    iters = ITERS.get(size, 500)
    args = ["ibv_%s_pingpong" % kind, "-d", device.name, "-g", gid,
            "-s", size, "-n", iters, *flags]
    if kind == "srq":
        args += ["-q", 4]  # which share the iterations
    pair = run_pair(args, opts=STOCK)
    pair.no_loss()
    n_bytes = iters * size
    pair.moved("server", "client", n_bytes)
    pair.moved("client", "server", n_bytes)


def label(kind, device, gid, size, flags):
    return "%s_pingpong -d %s -g %s -s %d %s" % (
        kind, device.name, gid, size, " ".join(flags))


def add(kind, device, gid, size, *flags):
    test(label(kind, device, gid, size, flags).rstrip(), pingpong, kind,
         device, gid, size, *flags)


def without_gid(device):
    """As on a RoCE NIC: the address handle needs a GID, so the QP does not
    get to RTR; and softhca says which index would do."""
    port = free_port()
    args = ["ibv_rc_pingpong", "-d", device.name, "-p", port]
    server = Process(args)
    server.wait_listening(port)
    client = Process(args + ["127.0.0.1"])
    try:
        rc = client.wait(20)
        server.wait(20)
    finally:
        client.kill()
        server.kill()
    text = client.output() + server.output()
    expect(rc != 0, "it worked without -g")
    if "Failed to modify QP to RTR" not in text:
        raise Failed("not the failure of a RoCE NIC:\n" + text)
    says = [line for line in text.splitlines()
            if line.startswith("softhca:") and "-g 0" in line]
    expect(says, "stderr does not say which -g to use:\n" + text)


def main():
    isolate()
    first = True
    for device in devices():
        for gid in device.gids:
            for kind in ("rc", "uc", "ud", "srq"):
                size = device.active_mtu if kind == "ud" else 4096
                add(kind, device, gid, size, "-c")
                add(kind, device, gid, size, "-c", "-e")
            if not first:
                continue
            # All sizes and both ways to wait once, on the first GID.
            first = False
            for kind in ("rc", "uc", "srq"):
                for size in (1, 4096, 1 << 20):
                    add(kind, device, gid, size, "-c")
                    add(kind, device, gid, size, "-c", "-e")
            for size in (1, 1024, device.active_mtu):
                add("ud", device, gid, size, "-c")
                add("ud", device, gid, size, "-c", "-e")
            add("rc", device, gid, 1 << 20, "-m", "256")
            add("rc", device, gid, 4096, "-c", "-N")  # ibv_wr_*
            add("rc", device, gid, 4096, "-c", "-o")  # on-demand paging
        test("rc_pingpong -d %s without -g" % device.name, without_gid,
             device)
    done()


main()
