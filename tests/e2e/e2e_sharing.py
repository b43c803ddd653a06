#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Port 4791 is shared by all processes of a user (docs/port-sharing.md): ten
of them in five pairs, one of which stops or dies; another user has the port.

E2E_LONG=1 (make test-full) measures for longer.
"""
import os
import re
import signal
import time

from e2e_lib import (HOST, Process, Skip, device_with, done, expect,
                     finish_pair, helper, in_own_netns, need, run_pair,
                     start_pair, test)

LONG = os.environ.get("E2E_LONG") == "1"
STOCK = ["--rcvbuf", "stock"]
# A WR lasts through whatever this machine's load does to a process: 17 s.
PATIENT = ["-T", 20, "-R", 3, "-s", 16384]
WINDOW_S = 3 if LONG else 1
ROUNDS = 5 if LONG else 2


def counts(process):
    return [(float(at), int(n)) for at, n in re.findall(
        r"^at ([0-9.]+) done (\d+)", process.output(), re.M)]


def rate(process, begin, end):
    """Messages a second between two times; 0 when it said nothing."""
    seen = [c for c in counts(process) if begin <= c[0] <= end]
    if len(seen) < 2:
        return 0.0
    return (seen[-1][1] - seen[0][1]) / (seen[-1][0] - seen[0][0])


class FivePairs:
    """Ten processes; the first pair is the one that something happens to."""

    def __init__(self, seconds, mode="poll"):
        self.pairs = []
        try:
            for _ in range(5):
                self.pairs.append(start_pair(
                    [helper("stream"), "-t", seconds, "-m", mode, *PATIENT],
                    opts=STOCK))
            for _, client in self.pairs:
                client.wait_text("done", 30)
        except BaseException:
            self.kill()
            raise

    def others(self):
        return self.pairs[1:]

    def others_rate(self, begin, end):
        rates = [rate(client, begin, end) for _, client in self.others()]
        expect(all(rates), "a pair stood still: %s" % rates)
        return sum(rates)

    def finish_others(self):
        """All other eight: well, and nothing was sent twice."""
        for server, client in self.others():
            pair = finish_pair(server, client)
            pair.no_loss()
            expect(pair.c.get("req_write_msgs") > 100, pair.c.text())

    def kill(self):
        for server, client in self.pairs:
            client.kill()
            server.kill()


def window():
    begin = time.monotonic()
    time.sleep(WINDOW_S)
    return begin, time.monotonic()


def one_stops():
    """Rounds of all running and one server stopped, so that what else goes on
    on this machine is the same for both. The four other pairs must not be
    slower; its share of the CPU makes them faster."""
    five = FivePairs(2 * ROUNDS * WINDOW_S + 3)
    try:
        stopped = five.pairs[0][0]
        windows = {"with": [], "without": []}
        for _ in range(ROUNDS):
            windows["with"].append(window())
            os.killpg(stopped.popen.pid, signal.SIGSTOP)
            windows["without"].append(window())
            quiet = windows["without"][-1]
            os.killpg(stopped.popen.pid, signal.SIGCONT)
            # Done before the stop, polled and printed a little later.
            expect(rate(five.pairs[0][1], quiet[0] + 0.3, quiet[1]) == 0,
                   "the stopped server answered")
        # Who comes meanwhile asks one that answers.
        os.killpg(stopped.popen.pid, signal.SIGSTOP)
        run_pair([helper("stream"), "-t", 0, *PATIENT], opts=STOCK).no_loss()
        os.killpg(stopped.popen.pid, signal.SIGCONT)
        five.finish_others()
        server, client = five.pairs[0]
        finish_pair(server, client)
        r = {what: sum(five.others_rate(*w) for w in list_of) / ROUNDS
             for what, list_of in windows.items()}
        print("# %.0f messages/s with it, %.0f while it is stopped" % (
            r["with"], r["without"]))
        expect(r["without"] > 0.7 * r["with"], str(r))
    finally:
        five.kill()


def one_is_killed(role):
    """Server or client of a pair dies in the middle; the other eight do not
    notice, and a newcomer takes its place while they go on."""
    five = FivePairs(20 if LONG else 4)
    try:
        server, client = five.pairs[0]
        victim = server if role == "server" else client
        victim.popen.send_signal(signal.SIGKILL)
        newcomer = run_pair(
            [helper("stream"), "-t", 1, "-m", "poll", *PATIENT], opts=STOCK)
        newcomer.no_loss()
        for _, other in five.others():
            expect(other.running(), "the others were done too early")
        five.finish_others()
    finally:
        five.kill()


def many_die_and_come():
    """One after the other, while a pair works."""
    server, client = start_pair(
        [helper("stream"), "-t", 20 if LONG else 4, "-m", "poll", *PATIENT],
        opts=STOCK)
    client.wait_text("done")
    n = 0
    try:
        while client.running():
            s, c = start_pair([helper("stream"), "-t", 60, *PATIENT],
                              opts=STOCK)
            c.wait_text("done")
            for p in ((s, c) if n % 2 else (c, s)):
                p.kill()
            n += 1
    finally:
        pair = finish_pair(server, client)
    pair.no_loss()
    expect(n > 1, "only %d pairs came" % n)
    print("# %d pairs came and died" % n)


# ---- somebody else ----

HOLDER = """
import os, socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if sys.argv[1] == "share":
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
s.bind((sys.argv[2], 4791))
print("bound", flush=True)
time.sleep(60)
"""


def refused(holder_prefix, how, words):
    """Somebody has UDP port 4791: bringing a QP to RTR fails with words."""
    holder = Process(["python3", "-c", HOLDER, how, HOST], bare=True,
                     prefix=holder_prefix)
    try:
        holder.wait_text("bound")
        server, client = start_pair(["ibv_rc_pingpong", "-g", "0"],
                                    opts=STOCK)
        try:
            rc = client.wait(20)
            # Which of the two comes to RTR first says it.
            text = server.output() + client.output()
        finally:
            client.kill()
            server.kill()
        expect(rc != 0, "it worked")
        for word in words:
            expect(word in text, "expected '%s' in:\n%s" % (word, text))
        # Another address is not taken.
        device, gid = device_with("::1")
        run_pair(["ibv_rc_pingpong", "-d", device.name, "-g", gid, "-n", 100],
                 opts=STOCK).no_loss()
    finally:
        holder.kill()
    run_pair(["ibv_rc_pingpong", "-g", 0, "-n", 100], opts=STOCK).no_loss()


def another_user(how):
    need("setpriv", "python3")
    if os.getuid():
        raise Skip("only root can become another user")
    refused(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"],
            how, ["4791", "belongs to user 65534"])


def same_user():
    refused([], "alone", ["4791", "of this user"])


def main():
    in_own_netns()
    test("one of ten is stopped", one_stops)
    test("one of ten is killed: a server", one_is_killed, "server")
    test("one of ten is killed: a client", one_is_killed, "client")
    test("others come and die", many_die_and_come)
    test("another user has the port", another_user, "alone")
    test("another user has the port and would share it", another_user,
         "share")
    test("another program of this user has the port", same_user)
    done()


main()
