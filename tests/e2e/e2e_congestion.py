#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Congestion control in real time: marks on the way make the receiver send
CNPs, the sender's rate falls and comes back, and both ends count the same."""
import icrc_check
from e2e_lib import (HOST, Process, done, expect, finish_pair, free_port,
                     helper, isolate, run, test, tmp_path)

LINE_BPS = 400_000_000
# Fast to recover, so that a test sees it: a stage each 2 ms.
CC = ("paper,line_rate_bps=%d,ai_rate_bps=20000000,hai_rate_bps=40000000,"
      "time_reset_ns=2000000" % LINE_BPS)
CNP = 0x81
UDP = {"SOFTHCA_LINK": "udp"}


def work(mode, cc, plan=None, mib=8, capture=None):
    """fault_ops.c: the client, which has the plan, moves `mib` MiB; both
    processes check every byte."""
    port = free_port()
    args = [helper("fault_ops"), "-m", mode, "-n", mib, "-s", 1 << 20]
    opts = ["--cc", cc]
    server = Process([*args, "-p", port], opts=opts, env=UDP)
    server.wait_listening(port)
    client = Process([*args, "-p", port, HOST], env=UDP, capture=capture,
                     opts=opts + (["--fault", plan] if plan else []))
    return finish_pair(server, client, limit_s=60)


def counts(sender, receiver, marks):
    """Who marked, who notified, who slowed."""
    expect(marks > 20, "only %d packets were marked" % marks)
    expect(receiver.get("np_ecn_marked") == marks,
           "%d marks were made, %d seen" % (
               marks, receiver.get("np_ecn_marked")))
    cnps = receiver.get("np_cnp_sent")
    expect(0 < cnps <= marks, "%d CNPs for %d marks" % (cnps, marks))
    # The last one may be on its way when the sender leaves.
    expect(cnps - 1 <= sender.get("rp_cnp_handled") <= cnps,
           "%d CNPs sent, %d handled" % (cnps, sender.get("rp_cnp_handled")))
    expect(sender.get("rp_rate_cuts") > 0, "no cut")
    expect(sender.get("req_paced") > 0, "nothing waited")
    print("# %d marks, %d CNPs, %d cuts, %d waits" % (
        marks, cnps, sender.get("rp_rate_cuts"), sender.get("req_paced")))


def writer():
    """5 % of a WRITE's packets are marked: the writer slows down."""
    pair = work("write", CC, "ce=5%,dir=tx,op=write,seed=1")
    counts(pair.c, pair.s, pair.c.get("fault_ce", "rt"))


def reader():
    """The marks are on READ responses: the responder slows down."""
    pair = work("read", CC, "ce=5%,dir=rx,op=read_resp,seed=1")
    counts(pair.s, pair.c, pair.c.get("fault_ce", "rt"))


def rates(path, ms):
    """Bits of WRITE payload packets sent in each `ms` of the capture."""
    bins, start = {}, None
    for when, frame in icrc_check.timed_records(path):
        bth = icrc_check.ip_and_udp(frame)[1][8:]
        if not 0x06 <= bth[0] <= 0x0b:
            continue
        start = when if start is None else start
        k = int((when - start) * 1000 / ms)
        bins[k] = bins.get(k, 0) + 8 * len(frame)
    return [bins.get(k, 0) * 1000 / ms for k in range(max(bins))]


def falls_and_recovers():
    """300 marks, then none: the rate goes down, and up again afterwards."""
    path = tmp_path("cc.pcap")
    pair = work("write", CC, "ce=20%,dir=tx,op=write,count=300,seed=3",
                mib=32, capture=path)
    counts(pair.c, pair.s, pair.c.get("fault_ce", "rt"))
    r = rates(path, 25)
    low = min(r[:4])
    high = sorted(r[-5:])[2]
    print("# Mb/s in 25 ms each: %s" % " ".join("%.0f" % (x / 1e6) for x in r))
    expect(low < 0.4 * LINE_BPS, "the rate fell to %.0f Mb/s" % (low / 1e6))
    expect(high > 3 * low, "it came back to %.0f of %.0f Mb/s" % (
        high / 1e6, LINE_BPS / 1e6))


def wire():
    """CNPs on the wire: opcode 0x81, BECN, 16 zero bytes, DSCP 48, not ECN
    capable, ICRC right."""
    path = tmp_path("cnp.pcap")
    work("write", CC, "ce=5%,dir=tx,op=write,seed=1", capture=path)
    packets = icrc_check.check_file(path)
    expect(not packets.bad, "%d bad ICRCs" % len(packets.bad))
    n = 0
    for _, frame in icrc_check.timed_records(path):
        bth = icrc_check.ip_and_udp(frame)[1][8:]
        if bth[0] != CNP:
            continue
        n += 1
        expect(bth[4] == 0x40, "FECN, BECN: %#x" % bth[4])
        expect(len(bth) == 12 + 16 + 4 and not any(bth[12:28]), bth.hex())
        expect(frame[15] == 48 << 2, "TOS %#x" % frame[15])
    expect(n > 0, "no CNP was captured")


def none():
    """Without congestion control marks are counted and nobody slows."""
    pair = work("write", "none", "ce=5%,dir=tx,op=write,seed=1")
    marks = pair.c.get("fault_ce", "rt")
    expect(pair.s.get("np_ecn_marked") == marks > 20, "%d marks" % marks)
    expect(pair.s.get("np_cnp_sent") == 0, "CNPs were sent")
    expect(pair.c.get("req_paced") == 0, "somebody waited")


def wrong():
    rc, text = run(["true"], opts=["--cc", "connectx,line_rate=1"])
    expect(rc == 125 and "character 10" in text, "%d: %s" % (rc, text))


def main():
    isolate()
    test("a writer is slowed", writer)
    test("a reader's responder is slowed", reader)
    test("the rate falls and recovers", falls_and_recovers)
    test("CNPs on the wire", wire)
    test("no congestion control", none)
    test("a wrong --cc", wrong)
    done()


main()
