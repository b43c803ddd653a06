# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Large messages over a bad link: netem in the guest, on both ways of the
wire. Everything arrives, the data is right, and the repairs are counted."""
import time

from e2e_lib import expect
from interop_lib import FROM_HOST, check_work, probe

MIB = 1 << 20
# 4.096 us * 2^15 = 134 ms: lost responses cost rxe a timeout each, and an
# emulated machine on a busy host is slow to answer.
TIMEOUT = ("-t", 15)


def repairs(outcome, direction):
    """Packets that had to be sent again, as far as we know of them."""
    names = ("req_retransmits",) if direction == FROM_HOST else (
        "rsp_duplicates", "rsp_seq_naks", "rx_drop_out_of_seq")
    return sum(outcome.stats.get(name) for name in names)


def lossy(ends, direction, faults, cases, repaired=True):
    """interop_probe's cases with these faults on RoCE packets, both ways."""
    begin = time.monotonic()
    with ends.guest.netem(outward=faults, inward=faults):
        outcome, requester, responder = probe(
            ends, direction, cases, limit_s=300, options=TIMEOUT)
    check_work(cases, requester, responder)
    n = repairs(outcome, direction)
    expect(n > 0 or not repaired, "no repair was counted: were there faults?")
    print("# %s %s: %s; %d repairs, %.1f s" % (
        faults, direction, " ".join(cases), n, time.monotonic() - begin),
        flush=True)
    return outcome
