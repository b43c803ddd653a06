# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Debian's own programs at both ends: pingpongs and perftest, with the payload
and the clean link asserted from the counters."""
from e2e_lib import expect
from interop_lib import FROM_HOST, run_clean

# Long enough that an emulated machine on a busy host is not taken for a loss:
# 4.096 us * 2^17 = 0.5 s.
PERF_TIMEOUT = ("-u", 17)
# rxe does not bound what it sends to the receiver's buffer; this many bytes
# of a program's own fit into the stock one.
PERF_DEPTH = ("-t", 4)
PERF_SIZE = 16384
SRQ_QPS = 4


def pingpong(ends, direction, kind, size, iters, *flags):
    """One of ibverbs-utils'; each side sends all of its messages."""
    args = ["ibv_%s_pingpong" % kind, "-s", size, "-n", iters, *flags]
    if kind == "srq":
        args += ["-q", SRQ_QPS]
    outcome = run_clean(ends, direction, args, may_retry="-e" not in flags)
    outcome.moved(sent=iters * size, received=iters * size)


def perftest(ends, direction, program, iters, *flags, size=PERF_SIZE, conn="RC",
             qps=1):
    """Which way the payload goes is the operation's nature, and who the client
    is. Latency programs of SEND and WRITE are ping-pongs."""
    op, kind = program.split("_")[1:]
    args = [program, "-F", "-n", iters, *flags]
    if op != "atomic":
        args += ["-s", size]
    if op in ("read", "atomic"):
        # Each side takes what the other says, and rxe would say 128.
        args += ["-o", 16]
    if conn == "RC":
        args += PERF_TIMEOUT
    else:
        args += ["-c", conn]
    if kind == "bw":
        args += PERF_DEPTH
        if qps > 1:
            args += ["-q", qps]
    outcome = run_clean(ends, direction, args, gid_option="-x",
                        may_retry=op == "send" and conn == "RC")
    if op == "atomic":
        # The originals come as responses of 8 bytes that are no payload.
        side = "req" if direction == FROM_HOST else "rsp"
        n = outcome.stats.get(side + "_atomic_msgs")
        expect(n >= iters, "%s_atomic_msgs is %d" % (side, n))
        return
    n_bytes = iters * qps * size
    to_server = n_bytes if op != "read" else 0
    to_client = n_bytes if op == "read" or kind == "lat" and \
        op != "read" else 0
    if direction == FROM_HOST:
        outcome.moved(sent=to_server, received=to_client)
    else:
        outcome.moved(sent=to_client, received=to_server)
