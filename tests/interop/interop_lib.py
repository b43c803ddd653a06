# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Pairs of programs, one under `softhca run` and one on the guest's rxe0, in
either direction; what the counters of both NICs must say."""
import icrc_check
from e2e_lib import (Failed, Process, device_with, expect, free_port,
                     helper)
from vm_lib import GUEST4, GUEST6, HOST4, HOST6

STOCK = ("--rcvbuf", "stock")
# Who is the client: it is the one that starts things.
FROM_HOST, FROM_GUEST = "from host", "from guest"
DIRECTIONS = (FROM_HOST, FROM_GUEST)

# What must be zero on a clean link, in our counters ...
OURS_CLEAN = (("hca", "req_retransmits"), ("hca", "req_timeouts"),
              ("hca", "req_seq_naks"), ("hca", "rsp_seq_naks"),
              ("link", "rx_bad_icrc"), ("link", "rx_overflow"))
# ... and in rxe's: gaps, and repetitions of ours. What rxe repeats itself is no
# sign of a loss: its timer goes on over an ACK, and when it fires it counts
# against whatever is outstanding at that moment.
RXE_CLEAN = ("duplicate_request", "out_of_seq_request", "rcvd_seq_err",
             "retry_exceeded_err")
# With these the programs themselves bring repetitions about.
BY_RETRY = ("req_retransmits", "req_timeouts", "duplicate_request")
# How often an end of a clean link may be slower than its peer's ACK timeout.
TRIES = 3


class Slow(Failed):
    """Sent again, and by a timeout, with no sign of a loss: on a busy host
    one end may answer later than the timeout of a program that has no option
    for it (67 ms). What rxe repeats meanwhile may even fill our buffer."""


class Ends:
    """Both ends of the wire, for one IP version."""

    def __init__(self, guest, ipv6=False):
        self.guest = guest
        host, other = (HOST6, GUEST6) if ipv6 else ("::ffff:" + HOST4, GUEST4)
        self.device, self.gid = device_with(host)
        self.guest_gid = guest.gids[other]


class Outcome:
    """A pair that ended well: our counters, and what rxe's grew by."""

    def __init__(self, host, guest_process, grown):
        self.output = host.output()
        self.guest_output = guest_process.output()
        self.stats = host.stats()
        self.rxe = grown

    def clean(self, may_retry=False):
        """Nothing was lost and nothing of ours sent again. may_retry: for a
        program that runs into RNR, or that spins in the guest and so keeps
        its ACKs back for longer than its own timeout."""
        seen = {name: self.stats.get(name, group) for group, name in OURS_CLEAN}
        seen.update((name, self.rxe[name]) for name in RXE_CLEAN)
        repeats = self.stats.get("rsp_duplicates")
        for name, n in seen.items():
            expect(n == 0 or name in BY_RETRY or
                   name == "rx_overflow" and repeats, "%s is %d" % (name, n))
        if seen["rx_overflow"]:
            raise Slow("%d overflows, %d duplicates came" % (
                seen["rx_overflow"], repeats))
        again = {name: seen[name] for name in BY_RETRY if seen[name]}
        if again and not may_retry:
            raise (Slow if "req_timeouts" in again else Failed)(str(again))

    def moved(self, sent=0, received=0):
        """At least so many payload bytes left us and came to us."""
        for name, least in (("tx_payload_bytes", sent),
                            ("rx_payload_bytes", received)):
            n = self.stats.get(name)
            expect(n >= least, "%s is %d, not %d" % (name, n, least))


def run(ends, direction, args, gid_option="-g", limit_s=60, opts=STOCK,
        capture=None, guest_args=(), client_tail=()):
    """Runs `args -p PORT` at one end and `args -p PORT ADDRESS` at the other.
    Both must end with status 0."""
    port = free_port()
    guest = ends.guest
    on_host = [*args, "-d", ends.device.name, gid_option, ends.gid, "-p", port]
    in_guest = [args[0].split("/")[-1], *args[1:], *guest_args, "-d", "rxe0",
                gid_option, ends.guest_gid, "-p", port]
    before = guest.counters()
    if direction == FROM_HOST:
        server = other = guest.start(in_guest)
        server.wait_listening(port)
        client = host = Process([*on_host, GUEST4, *client_tail], opts=opts,
                                capture=capture)
    else:
        server = host = Process(on_host, opts=opts, capture=capture)
        server.wait_listening(port)
        client = other = guest.start([*in_guest, HOST4, *client_tail])
    try:
        rc = client.wait(limit_s)
        rc_server = server.wait(20) if rc == 0 else None
    finally:
        client.kill()
        server.kill()
    expect(rc == 0 and rc_server == 0,
           "%s %s\nclient: status %s\n%s\nserver: status %s\n%s" % (
               " ".join(map(str, args)), direction, rc, client.output(),
               rc_server, server.output()))
    after = guest.counters()
    return Outcome(host, other, {k: after[k] - before[k] for k in after})


def run_clean(ends, direction, args, may_retry=False, **kwargs):
    """As run(), over a clean link: see Outcome.clean(). Where one end was slow
    it runs again; a fault of a timer would show each time."""
    slow = None
    for _ in range(TRIES):
        outcome = run(ends, direction, args, **kwargs)
        try:
            outcome.clean(may_retry)
            return outcome
        except Slow as e:
            slow = e
        print("# too slow: %s" % slow, flush=True)
    raise slow


def probe(ends, direction, cases, options=(), **kwargs):
    """Runs interop_probe's cases, each NAME[:LEN[:COUNT]]. Gives the Outcome, and
    two dicts from case to its list of lines: the requester's and the
    responder's."""
    outcome = run(ends, direction, [helper("interop_probe"), *options],
                  client_tail=cases, **kwargs)
    ours, theirs = by_case(outcome.output), by_case(outcome.guest_output)
    if direction == FROM_HOST:
        return outcome, ours, theirs
    return outcome, theirs, ours


def by_case(text):
    """{case: lines} of interop_probe's output."""
    found = {}
    for line in text.splitlines():
        if line.startswith("case "):
            lines = found.setdefault(line.split()[1], [])
        elif found:
            lines.append(line)
    return found


def check_work(cases, requester, responder):
    """Cases given as NAME:LEN:COUNT: all WRs succeeded, all data is right."""
    for case in cases:
        name, _, count = case.split(":")
        sent = sum(line.startswith("send ") and line.endswith(" SUCCESS")
                   for line in requester[name])
        expect(sent == int(count) and "memory good" in requester[name] and
               "memory good" in responder[name],
               "%s: the requester reports\n  %s\nthe responder\n  %s" % (
                   case, "; ".join(requester[name]),
                   "; ".join(responder[name])))


def check_icrcs(path, least):
    """Every RoCE packet of a capture has the right ICRC, and there are at
    least so many."""
    packets = icrc_check.check_file(path)
    expect(not packets.bad, "%d packets with a wrong ICRC, the first is number"
           " %s" % (len(packets.bad), packets.bad[:1]))
    expect(packets.good >= least, "%d packets captured, not %d" % (
        packets.good, least))
