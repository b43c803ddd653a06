# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Large messages over a bad link: netem in the guest, on both ways of the
wire. Everything arrives, the data is right, and the repairs are counted."""
import time

from e2e_lib import expect
from interop_lib import check_work, probe

MIB = 1 << 20
# 4.096 us * 2^15 = 134 ms: lost responses cost rxe a timeout each, and an
# emulated machine on a busy host is slow to answer.
TIMEOUT = ("-t", 15)


def signs(outcome):
    """How often the faults were met, as far as both NICs know of them."""
    ours = ("req_retransmits", "req_stale_acks", "rsp_duplicates",
            "rsp_seq_naks", "rx_drop_out_of_seq", "rx_drop_response")
    return sum(outcome.stats.get(name) for name in ours) + \
        outcome.rxe["duplicate_request"] + outcome.rxe["out_of_seq_request"]


def lossy(ends, direction, faults, cases, seen=True):
    """interop_probe's cases with these faults on RoCE packets, both ways."""
    begin = time.monotonic()
    with ends.guest.netem(outward=faults, inward=faults):
        outcome, requester, responder = probe(
            ends, direction, cases, limit_s=300, options=TIMEOUT)
    check_work(cases, requester, responder)
    n = signs(outcome)
    expect(n > 0 or not seen, "no counter shows that there were faults")
    print("# %s %s: %s; met %d times, %.1f s" % (
        faults, direction, " ".join(cases), n, time.monotonic() - begin),
        flush=True)
    return outcome
