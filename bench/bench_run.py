# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs one measurement: a server and a client, each on its CPU, bounded in
time, and what both cost. Knows how the output of each program is read."""
import contextlib
import ctypes
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "..", "tests", "e2e"))
import e2e_lib  # noqa: E402

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


class Broken(Exception):
    """A program failed, or did not end in time."""


class Absent(Exception):
    """This machine or this build cannot measure it; the argument says why."""


class Proc:
    """A process of its own session, pinned. It ends when we end."""

    def __init__(self, cmd, cpus, env=None, prefix=(), stats=False):
        self.cmd = [str(c) for c in [*prefix, *cmd]]
        self.out_path = e2e_lib.tmp_path("out")
        self.usage = None
        self.rc = None

        parent = os.getpid()

        def prepare():
            os.sched_setaffinity(0, cpus)
            _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # it ended before it was set
                os._exit(1)
        with open(self.out_path, "wb") as out:
            self.popen = subprocess.Popen(
                self.cmd, stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=prepare,
                env=dict(os.environ, LC_ALL="C", **(env or {})))
        self.pid = self.popen.pid
        self.stats_path = stats

    def output(self):
        with open(self.out_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def _reap(self, flags=0):
        if self.rc is not None:
            return True
        pid, status, usage = os.wait4(self.pid, flags)
        if pid == 0:
            return False
        self.rc = self.popen.returncode = os.waitstatus_to_exitcode(status)
        self.usage = usage
        return True

    def running(self):
        return not self._reap(os.WNOHANG)

    def wait(self, until):
        """Until a time of time.monotonic(). True: it has ended."""
        if self.rc is None:
            fd = os.pidfd_open(self.pid)
            try:
                select.select([fd], [], [], max(0, until - time.monotonic()))
            finally:
                os.close(fd)
        return self._reap(os.WNOHANG)

    def kill(self):
        """Whatever it started in its session goes too."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._reap()

    def wait_listening(self, port, until):
        while not e2e_lib.listening(port, self.pid):
            if not self.running():
                raise Broken("server ended early: " + self.said())
            if time.monotonic() > until:
                raise Broken("server does not listen")
            time.sleep(0.003)

    def said(self):
        """The end of its output, for a message."""
        lines = [line.strip() for line in self.output().splitlines()
                 if line.strip(" -=")]
        return "%s: status %s: %s" % (os.path.basename(self.cmd[0]), self.rc,
                                      " / ".join(lines[-3:])[-300:])

    def stats(self):
        return e2e_lib.Stats(self.stats_path) if self.stats_path else None


class Side:
    """Where one end of a pair runs: which CPUs, behind which command."""

    def __init__(self, cpus, prefix=(), address="127.0.0.1"):
        self.cpus = cpus
        self.prefix = list(prefix)
        self.address = address


class Done:
    """Two processes that ended well."""

    def __init__(self, server, client):
        self.server = server
        self.client = client


def end_all(procs):
    for p in procs:
        p.kill()


def finish(servers, clients, until):
    """Waits for all; all must end with status 0."""
    try:
        for p in clients + servers:
            if not p.wait(until):
                raise Broken("not done in time: %s; %s" % (
                    " ".join(p.cmd)[-200:], p.said()))
            if p.rc != 0:
                raise Broken(p.said())
    finally:
        end_all(clients + servers)


def start_pair(server, client, server_cmd, client_cmd, port, until, **kwargs):
    s = Proc(server_cmd, server.cpus, prefix=server.prefix,
             stats=kwargs.get("stats", (None, None))[0],
             env=kwargs.get("env"))
    try:
        s.wait_listening(port, until)
        c = Proc(client_cmd, client.cpus, prefix=client.prefix,
                 stats=kwargs.get("stats", (None, None))[1],
                 env=kwargs.get("env"))
    except BaseException:
        s.kill()
        raise
    return s, c


def run_pair(server, client, server_cmd, client_cmd, port, limit_s, **kwargs):
    until = time.monotonic() + limit_s
    s, c = start_pair(server, client, server_cmd, client_cmd, port, until,
                      **kwargs)
    finish([s], [c], until)
    return Done(s, c)


def run_alone(cmd, cpus, limit_s, prefix=(), env=None):
    p = Proc(cmd, cpus, env=env, prefix=prefix)
    finish([], [p], time.monotonic() + limit_s)
    return p.output()


def need(program):
    if not shutil.which(program):
        raise Absent("no " + program)


# ---- reading ----

def numbers_after(text, head, count):
    """The first line of so many numbers after the last head."""
    _, found, rest = text.rpartition(head)
    for line in rest.splitlines()[1:] if found else ():
        try:
            n = [float(x) for x in line.split()]
        except ValueError:
            continue
        if len(n) >= count:
            return n
    raise Broken("no result in: " + text[-400:])


def perftest_bw(text):
    """Gb/s, messages a second."""
    n = numbers_after(text, "BW average", 5)
    return n[3], n[4] * 1e6


def perftest_lat(text):
    """Median, 99th percentile, in us."""
    n = numbers_after(text, "t_typical", 9)
    return n[4], n[7]


def perftest_tps(text):
    """Round trips a second, of a run with -D."""
    return numbers_after(text, "tps average", 4)[3]


def ucx(text):
    """Of `ucx_perftest -f`: median us, Gb/s, messages a second."""
    rows = [line.split() for line in text.splitlines()
            if re.match(r"^\s+\d+(\s+[\d.]+){7}\s*$", line)]
    if not rows:
        raise Broken("no result in: " + text[-300:])
    n = [float(x) for x in rows[-1]]
    return {"us": n[1], "gbps": n[5] * 2 ** 20 * 8 / 1e9, "ops": n[7]}


def fi_pingpong(text):
    """us a transfer. Its counts are written like 5k and 1.2m."""
    _, found, rest = text.rpartition("usec/xfer")
    for line in rest.splitlines()[1:] if found else ():
        word = line.split()
        if len(word) == 8:
            return float(word[6])
    raise Broken("no result in: " + text[-400:])


def iperf3(text):
    """What the receiver saw, in Gb/s."""
    try:
        d = json.loads(text[text.index("{"):])  # warnings come first
        if "error" in d:
            raise Broken("iperf3: " + d["error"])
        return d["end"]["sum_received"]["bits_per_second"] / 1e9
    except (ValueError, KeyError):
        raise Broken("no result in: " + text[-300:]) from None


def json_lines(text):
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
    return found
