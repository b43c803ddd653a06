#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Every byte of every operation, in sizes around each boundary (bug log B131):
every_byte.c, by transport and path MTU. E2E_LONG=1: all sizes up to 8 MiB."""
import os
import re
import subprocess
import tempfile

from e2e_lib import SOFTHCA, device_with, done, expect, helper, isolate, test

LONG = bool(os.environ.get("E2E_LONG"))
LIMIT_S = 200


def every_byte(transport, mtu, largest, *more):
    device, gid = device_with("::ffff:127.0.0.1")
    with tempfile.NamedTemporaryFile("r", prefix="softhca-bytes-") as stats:
        r = subprocess.run(
            [SOFTHCA, "run", "--stats", stats.name, helper("every_byte"),
             "-d", device.name, "-g", str(gid), "-t", transport,
             "-m", str(mtu), "-s", str(largest), *more],
            capture_output=True, text=True, check=False, timeout=LIMIT_S)
        counted = stats.read()
    expect(r.returncode == 0, r.stdout + r.stderr)
    m = re.search(r"^ok (\d+) cases", r.stdout, re.M)
    expect(m and int(m.group(1)) > 50, r.stdout)
    sent = re.search(r'"req_send_msgs": *(\d+)', counted)
    expect(sent and int(sent.group(1)) * 8 > int(m.group(1)), counted)


def main():
    isolate()
    for transport in ("RC", "UC", "UD"):
        for mtu in (256, 1024, 4096) if LONG else (1024,):
            more = ("-x",) if LONG else ()
            largest = 8 << 20 if LONG else 65537
            test("%s, MTU %d, to %d bytes" % (transport, mtu, largest),
                 every_byte, transport, mtu, largest, *more)
    if not LONG:
        test("RC, MTU 4096, to 8 MiB", every_byte, "RC", 4096, 8 << 20)
    done()


main()
