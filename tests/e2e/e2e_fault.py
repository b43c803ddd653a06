#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""`softhca run --fault`: every kind of work over a bad network ends with its
data right, and the counters say what the network did and what it cost."""
import re

import icrc_check
from e2e_lib import (HOST, Process, SOFTHCA, done, expect, finish_pair,
                     free_port, helper, isolate, run, test, tmp_path)

OPS = ("send", "write", "read", "atomic")
COUNTERS = ("drop", "dup", "reorder", "delay", "corrupt", "ce", "blackhole",
            "overrun")

# plan of the client's side; what it must have done, and nothing else; whether
# that costs retransmissions (if not, nobody may see a gap: an even delay keeps
# the order)
PLANS = (
    ("drop=1%,seed=1", ("drop",), True),
    ("drop=5%,seed=2", ("drop",), True),
    ("reorder=5%:200us,seed=3", ("reorder",), True),
    ("dup=5%:0-50us,seed=4", ("dup",), False),
    ("corrupt=2%,seed=5", ("corrupt",), True),
    ("delay=50us,ce=10%,seed=6", ("delay", "ce"), False),
    ("drop=0.5%,dup=2%,reorder=2%:100us,corrupt=1%,seed=7",
     ("drop", "dup", "reorder", "corrupt"), True),
)


def run_faulty(args, plan, limit_s=60, capture=None):
    """A pair of processes, the client with this plan or None."""
    port = free_port()
    server = Process([*args, "-p", port])
    server.wait_listening(port)
    client = Process([*args, "-p", port, HOST],
                     opts=["--fault", plan] if plan else (),
                     capture=capture)
    return finish_pair(server, client, limit_s=limit_s)


def ops(mode, n, size, plan):
    """fault_ops.c."""
    return run_faulty([helper("fault_ops"), "-m", mode, "-n", n, "-s", size],
                      plan)


def faults(stats):
    return {c: stats.get("fault_" + c, "rt") for c in COUNTERS}


def seconds(pair):
    m = re.search(r"took ([0-9.]+) s", pair.client.output())
    expect(m, "no time in\n" + pair.client.output())
    return float(m.group(1))


def cost(pair):
    """Packets sent again, both sides."""
    return pair.c.get("req_retransmits") + pair.s.get("req_retransmits")


def gaps(pair):
    """Times that a packet was missed, on both sides."""
    return sum(side.get(name) for side in (pair.c, pair.s)
               for name in ("req_seq_naks", "req_implied_naks"))


# ---- by rate ----

def work(mode, plan, does, resends):
    n, size = (150, 64) if mode == "atomic" else (8, 1 << 20)
    pair = ops(mode, n, size, plan)
    hit = faults(pair.c)
    for what in does:
        expect(hit[what] > 0, "no %s happened: %s" % (what, hit))
    for what in set(COUNTERS) - set(does):
        expect(hit[what] == 0, "%d %s happened" % (hit[what], what))
    expect(not any(faults(pair.s).values()), "the server has faults too")
    if resends:
        expect(cost(pair) > 0, "nothing was sent again")
    else:
        expect(gaps(pair) == 0, "%d gaps were seen" % gaps(pair))
    sent = pair.c.get("tx_pkts") + pair.s.get("tx_pkts")
    print("# %s: %d packets, %d sent again, %d timeouts, faults %s" % (
        mode, sent, cost(pair), pair.c.get("req_timeouts"),
        {k: v for k, v in hit.items() if v}))
    if "corrupt" in does:
        bad = (pair.c.get("rx_bad_icrc", "link") +
               pair.s.get("rx_bad_icrc", "link"))
        # What was damaged last may not have been looked at; and one in
        # 32,768 passes as an IPv4 ID that the socket hides.
        expect(hit["corrupt"] - 8 <= bad <= hit["corrupt"],
               "%d packets corrupted, %d found" % (hit["corrupt"], bad))


# ---- by rule ----

# work and how often, what is lost, what repairs it
LOST = (
    ("send", 2, "drop,dir=tx,op=RC_SEND_MIDDLE,nth=3",
     "c.req_seq_naks s.rsp_seq_naks"),
    ("send", 2, "drop,dir=tx,op=RC_SEND_LAST,nth=2", "c.req_timeouts"),
    # The NAK that would repair the first loss is lost too.
    ("send", 1, "drop,dir=tx,op=middle,nth=3;drop,dir=rx,op=nak,nth=1",
     "c.req_timeouts s.rsp_seq_naks"),
    ("write", 2, "drop,dir=tx,op=first,nth=1", "c.req_seq_naks"),
    ("read", 1, "drop,dir=rx,op=RC_READ_RESP_MIDDLE,nth=3",
     "c.req_implied_naks c.req_retransmits"),
    ("read", 1, "drop,dir=tx,op=read,nth=1", "c.req_retransmits"),
    ("atomic", 20, "drop,dir=rx,op=atomic_ack,nth=5", "s.rsp_atomic_replays"),
    ("atomic", 20, "drop,dir=tx,op=RC_CMP_SWAP,nth=2", "c.req_retransmits"),
)


def lost(mode, n, plan, why):
    """One packet is lost for each rule, and the work repairs it."""
    pair = ops(mode, n, 64 if mode == "atomic" else 1 << 18, plan)
    hit = faults(pair.c)
    expect(hit["drop"] == plan.count("drop"),
           "%d packets were dropped" % hit["drop"])
    for what in why.split():
        side, counter = what.split(".")
        times = {"c": pair.c, "s": pair.s}[side].get(counter)
        expect(times >= 1, "%s is %d" % (what, times))


def only_ack():
    """The one ACK of a one-packet WRITE is lost: the request comes twice."""
    pair = ops("write", 1, 64, "drop,dir=rx,op=ack,nth=1")
    for stats, name in ((pair.c, "req_timeouts"), (pair.s, "rsp_duplicates")):
        expect(stats.get(name) >= 1, "%s is 0" % name)
    expect(pair.s.get("rsp_write_msgs") == 1, "it was executed again")


def dead(plan, counter):
    """Nothing gets through in one direction: RETRY_EXC_ERR (the program
    checks the status)."""
    pair = ops("dead", 1, 4096, plan)
    hit = faults(pair.c)
    expect(hit[counter] >= 8, "%s: %s" % (counter, hit))
    expect(pair.c.get("req_timeouts") >= 8,
           "%d timeouts" % pair.c.get("req_timeouts"))


def delayed():
    """2 ms each way: a round trip of 4 ms at least, and no timeout."""
    pair = run_faulty(["ibv_rc_pingpong", "-g", 0, "-n", 50, "-s", 64],
                      "delay=2ms")
    m = re.search(r"= ([0-9.]+) usec/iter", pair.client.output())
    expect(m and float(m.group(1)) >= 4000, pair.client.output())
    expect(gaps(pair) == 0, "%d gaps were seen" % gaps(pair))
    expect(faults(pair.c)["delay"] >= 200, str(faults(pair.c)))


def captured():
    """The capture has what left, as damaged as it left, and what came."""
    path = tmp_path("fault.pcap")
    pair = run_faulty(["ibv_rc_pingpong", "-g", 0, "-n", 20],
                      "drop,dir=tx,op=send,nth=3;drop,dir=rx,op=send,nth=5;"
                      "corrupt,dir=tx,op=send,nth=10", capture=path)
    hit = faults(pair.c)
    expect((hit["drop"], hit["corrupt"]) == (2, 1), str(hit))
    packets = icrc_check.check_file(path)
    n = pair.c.get("tx_frames", "rt") + pair.c.get("rx_frames", "rt")
    expect(len(packets.bad) == 1, "%d bad packets" % len(packets.bad))
    expect(packets.good + 1 == n, "%d packets captured, %d were sent and "
           "received" % (packets.good + 1, n))


# ---- seeds ----

def dups(seed):
    """Duplicates cost no retransmission: 2,048 WRITE packets in each run,
    unless the machine stood still for longer than the timeout."""
    for _ in range(5):
        pair = ops("write", 8, 1 << 20,
                   "dup=10%%,op=write,dir=tx,seed=%d" % seed)
        if pair.c.get("req_timeouts") == 0:
            break
    expect(cost(pair) == 0, "%d packets sent again" % cost(pair))
    return faults(pair.c)["dup"]


def same_seed():
    a, b = dups(5), dups(5)
    expect(a > 0 and a == b, "%d and %d duplicates with one seed" % (a, b))
    others = [dups(s) for s in (6, 7, 8)]
    expect(any(n != a for n in others),
           "every seed makes %d duplicates" % a)


# ---- wrong plans ----

def wrong_plan():
    rc, text = run([SOFTHCA, "run", "--fault", "drop=1%,op=sent", "true"],
                   bare=True)
    expect(rc == 125, "status %d" % rc)
    expect("'sent' at character 12" in text and "send write" in text, text)
    rc, text = run(["ibv_devinfo"], env={"SOFTHCA_FAULT": "drop=1"})
    expect(rc != 0, "a device opens with a wrong plan:\n" + text)
    expect("'1' at character 6" in text, text)


def plan_of_several():
    rc, text = run([SOFTHCA, "run", "--fault", "drop=1%", "--fault",
                    "ce,op=send", "--fault", "seed=9", "printenv",
                    "SOFTHCA_FAULT"], bare=True)
    expect(rc == 0 and text == "drop=1%;ce,op=send;seed=9\n", text)


# ---- what loss costs ----

def throughput():
    """Printed, not judged: the machine is shared."""
    clean = seconds(ops("write", 64, 1 << 20, None))
    expect(clean > 0, "no time")
    for plan in ("drop=0.1%,seed=1", "drop=1%,seed=1"):
        pair = ops("write", 64, 1 << 20, plan)
        t = seconds(pair)
        print("# 64 MiB of WRITE, %s: %.1f Mb/s, %.3f of the clean run's "
              "%.1f Mb/s; %d packets sent again, %d timeouts" % (
                  plan, 536.9 / t, clean / t, 536.9 / clean, cost(pair),
                  pair.c.get("req_timeouts")))


def main():
    isolate()
    for plan, does, resends in PLANS:
        for mode in OPS:
            test("%s under %s" % (mode, plan), work, mode, plan, does,
                 resends)
    for mode, n, plan, why in LOST:
        test("%d of %s, %s" % (n, mode, plan), lost, mode, n, plan, why)
    test("the only ACK is lost", only_ack)
    test("nothing goes out", dead, "blackhole,dir=tx", "blackhole")
    test("no ACK comes in", dead, "drop,dir=rx,op=ack", "drop")
    test("2 ms each way", delayed)
    test("--capture under faults", captured)
    test("a seed repeats its run", same_seed)
    test("a wrong plan", wrong_plan)
    test("several --fault make one plan", plan_of_several)
    test("throughput under loss", throughput)
    done()


main()
