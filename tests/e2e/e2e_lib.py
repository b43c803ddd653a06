# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs real programs under `softhca run` and reads what their NICs counted.

A test file calls test() for each thing to check and done() at the end; the
output is TAP. Everything started here is bounded in time and is ended by its
own process group. The environment names what is under test:

    SOFTHCA   the softhca command       HELPERS   our test programs' directory
"""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOFTHCA = os.environ.get("SOFTHCA", "build/tools/softhca")
HELPERS = os.environ.get("HELPERS", "build/tests/e2e")
HOST = "127.0.0.1"
LIMIT_S = 60
# What a test means by "stock": Linux's 212,992 bytes, whatever this host's
# default is. The kernel doubles what it is asked for.
STOCK_RCVBUF = "106496"

# Most tests are about packets; e2e_onesided.py is about what needs none.
os.environ.setdefault("SOFTHCA_ONE_SIDED", "0")

_tmp = tempfile.TemporaryDirectory(prefix="softhca-e2e-")
os.chmod(_tmp.name, 0o755)
_serial = [0]
_next_port = [19000 + os.getpid() % 1000 * 10]


class Skip(Exception):
    """This machine cannot do it; the argument says why."""


class Failed(Exception):
    """What was expected did not happen."""


def expect(condition, text):
    if not condition:
        raise Failed(text)


# ---- TAP ----

_results = []


def test(name, function, *args, **kwargs):
    """One line of TAP: ok when the function returns."""
    begin = time.monotonic()
    try:
        function(*args, **kwargs)
        line = "ok %d - %s" % (len(_results) + 1, name)
        good = True
    except Skip as e:
        line = "ok %d - %s # SKIP %s" % (len(_results) + 1, name, e)
        good = True
    except Failed as e:
        text = str(e).rstrip().replace("\n", "\n# ")
        line = "not ok %d - %s\n# %s" % (len(_results) + 1, name, text)
        good = False
        # Meson shows stderr of a program that fails.
        print("%s\n%s" % (name, e), file=sys.stderr)
    _results.append(good)
    print(line)
    print("# %.2f s" % (time.monotonic() - begin), flush=True)


def require(name, function):
    """As test(), for what all further tests need: without it the file ends."""
    n = len(_results)
    skipped = []

    def watched():
        try:
            function()
        except Skip:
            skipped.append(True)
            raise
    test(name, watched)
    if skipped or not _results[n]:
        done()


def done():
    """The plan, and the exit status."""
    print("1..%d" % len(_results))
    sys.exit(0 if _results and all(_results) else 1)


# ---- processes ----

def tmp_path(stem):
    _serial[0] += 1
    return os.path.join(_tmp.name, "%03d-%s" % (_serial[0], stem))


def tmp_dir():
    return _tmp.name


def listening(port, pid="self"):
    """Does somebody in pid's network namespace listen on this TCP port?"""
    pattern = re.compile(r"^ *\d+: [0-9A-F]+:%04X \S+ 0A " % port, re.M)
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            with open("/proc/%s/net/%s" % (pid, table),
                      encoding="ascii") as f:
                if pattern.search(f.read()):
                    return True
    return False


def free_port():
    """A TCP port that nobody listens on, another one at each call."""
    while True:
        _next_port[0] += 1
        if not listening(_next_port[0]):
            return _next_port[0]


class Stats:
    """The lines of a --stats file: one process each, with its devices."""

    def __init__(self, path):
        self.processes = []
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                self.processes = [json.loads(line) for line in f
                                  if line.strip()]

    def get(self, name, group="hca"):
        """Sum over the devices; a counter that does not exist is an error."""
        devices = [d for p in self.processes for d in p["devices"]]
        expect(devices, "the --stats file names no device")
        return sum(d[group][name] for d in devices)

    def text(self):
        """All counters that are not 0."""
        return " ".join("%s.%s=%d" % (group, name, value)
                        for p in self.processes for d in p["devices"]
                        for group in ("hca", "link", "rt")
                        for name, value in d[group].items() if value)


class Process:
    """A program under softhca run (or bare), its output, its counters."""

    def __init__(self, args, opts=(), bare=False, prefix=(), env=None,
                 softhca=None, capture=None):
        self.name = os.path.basename(str(args[0]))
        self.stats_path = tmp_path(self.name + ".json")
        self.capture_path = capture
        self.out_path = tmp_path(self.name + ".out")
        cmd = list(prefix)
        if not bare:
            cmd += [softhca or SOFTHCA, "run", "--stats", self.stats_path]
            if capture:
                cmd += ["--capture", capture]
            cmd += [STOCK_RCVBUF if o == "stock" else o for o in opts]
        cmd += [str(a) for a in args]
        self.cmd = cmd
        with open(self.out_path, "wb") as out:
            self.popen = subprocess.Popen(
                cmd, stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, start_new_session=True,
                env=dict(os.environ, **(env or {})))

    def output(self):
        with open(self.out_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def running(self):
        return self.popen.poll() is None

    def wait(self, limit_s=LIMIT_S):
        """The exit status; a program that is not done by then has failed."""
        try:
            return self.popen.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed("%s: not done after %d s\n%s" % (
                " ".join(self.cmd), limit_s, self.output())) from None

    def wait_for(self, what, limit_s=10):
        """Waits until what() is true."""
        end = time.monotonic() + limit_s
        while not what():
            if not self.running():
                raise Failed("%s: ended early (%d)\n%s" % (
                    " ".join(self.cmd), self.popen.returncode, self.output()))
            if time.monotonic() > end:
                self.kill()
                raise Failed("%s: not ready after %d s\n%s" % (
                    " ".join(self.cmd), limit_s, self.output()))
            time.sleep(0.005)

    def wait_text(self, text, limit_s=10):
        self.wait_for(lambda: text in self.output(), limit_s)

    def wait_listening(self, port):
        self.wait_for(lambda: listening(port, self.popen.pid))

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()

    def stats(self):
        return Stats(self.stats_path)


class Pair:
    """A server and a client that ended well, and their counters."""

    def __init__(self, server, client):
        self.server = server
        self.client = client
        self.s = server.stats()
        self.c = client.stats()

    LOSS = (("hca", "req_retransmits"), ("hca", "req_timeouts"),
            ("hca", "req_rnr_naks"), ("hca", "req_seq_naks"),
            ("link", "rx_bad_icrc"), ("link", "rx_overflow"))

    def none_of(self, counters):
        for side, stats in (("server", self.s), ("client", self.c)):
            for group, name in counters:
                n = stats.get(name, group)
                expect(n == 0, "%s: %s.%s is %d\nserver: %s\nclient: %s" % (
                    side, group, name, n, self.s.text(), self.c.text()))

    def no_loss(self):
        """Nothing was lost or sent again, on neither side."""
        self.none_of(self.LOSS)

    def no_wire_loss(self):
        """The same where the program itself may be late with its receives."""
        self.none_of([c for c in self.LOSS if c[1] not in
                      ("req_retransmits", "req_rnr_naks")])

    def moved(self, sender, receiver, n_bytes):
        """At least so many payload bytes went from one to the other."""
        stats = {"server": self.s, "client": self.c}
        tx = stats[sender].get("tx_payload_bytes")
        rx = stats[receiver].get("rx_payload_bytes")
        expect(tx >= n_bytes, "%s sent %d payload bytes, not %d" % (
            sender, tx, n_bytes))
        expect(rx >= n_bytes, "%s received %d payload bytes, not %d" % (
            receiver, rx, n_bytes))


def start_pair(args, port_opt="-p", server_opts=(), client_opts=(), host=HOST,
               **kwargs):
    """Starts `args -p PORT` and, once it listens, `args -p PORT HOST`."""
    port = free_port()
    prefix = kwargs.pop("prefix", ())
    captures = kwargs.pop("captures", (None, None))
    server = Process([*args, port_opt, port, *server_opts], prefix=prefix,
                     capture=captures[0], **kwargs)
    server.wait_listening(port)
    client = Process([*args, port_opt, port, *client_opts, host],
                     prefix=prefix, capture=captures[1], **kwargs)
    return server, client


def finish_pair(server, client, limit_s=LIMIT_S):
    """Waits for both; both must end with status 0."""
    try:
        rc = client.wait(limit_s)
        rc_server = server.wait(10) if rc == 0 else None
    finally:
        client.kill()
        server.kill()
    expect(rc == 0 and rc_server == 0,
           "%s\nclient: status %s\n%s\nserver: status %s\n%s" % (
               " ".join(client.cmd), rc, client.output(), rc_server,
               server.output()))
    return Pair(server, client)


def run_pair(args, limit_s=LIMIT_S, **kwargs):
    return finish_pair(*start_pair(args, **kwargs), limit_s=limit_s)


def run(args, **kwargs):
    """One program to its end: (status, output)."""
    p = Process(args, **kwargs)
    rc = p.wait(20)
    return rc, p.output()


def need(*programs):
    for p in programs:
        if not shutil.which(p, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            raise Skip("no " + p)


def helper(name):
    return os.path.join(HELPERS, name)


# ---- devices ----

class Device:
    def __init__(self, name):
        self.name = name
        self.gids = {}
        self.active_mtu = 0

    def gid_of(self, family):
        """Index of the first GID of "v4" or "v6", or None."""
        for index, gid in self.gids.items():
            if gid.startswith("::ffff:") == (family == "v4"):
                return index
        return None


def parse_devices(text):
    """The devices in the output of ibv_devinfo -v."""
    found = []
    for line in text.splitlines():
        m = re.match(r"hca_id:\s*(\S+)", line)
        if m:
            found.append(Device(m.group(1)))
        m = re.match(r"\s*GID\[\s*(\d+)\]:\s*(\S+?),?(\s|$)", line)
        if m:
            found[-1].gids[int(m.group(1))] = m.group(2)
        m = re.match(r"\s*active_mtu:\s*(\d+)", line)
        if m:
            found[-1].active_mtu = int(m.group(1))
    expect(found, "ibv_devinfo -v lists no device:\n" + text)
    return found


def devices(**kwargs):
    """What ibv_devinfo -v lists."""
    rc, text = run(["ibv_devinfo", "-v"], **kwargs)
    expect(rc == 0, "ibv_devinfo -v: status %d\n%s" % (rc, text))
    return parse_devices(text)


def device_with(gid_text, among=None):
    """The device that has this GID, and the GID's index."""
    for d in among or devices():
        for index, gid in d.gids.items():
            if gid == gid_text:
                return d, index
    raise Failed("no device has the GID " + gid_text)


# ---- a network namespace of our own ----

ADDRESS = "10.99.0.1"
ADDRESS6 = "fd99::1"


def _ip(words):
    return subprocess.run(["ip"] + words.split(), check=False,
                          capture_output=True, text=True)


def add_interface():
    """A second interface beside loopback: a dummy, or one end of a veth pair
    where the kernel has no dummies."""
    if _ip("link add shca-test type dummy").returncode:
        if _ip("link add shca-test type veth peer name shca-peer").returncode:
            raise Skip("the kernel makes neither dummy nor veth interfaces")
        _ip("link set shca-peer addrgenmode none")
        _ip("link set shca-peer up")
    for words in ("addr add %s/24 dev shca-test" % ADDRESS,
                  "-6 addr add %s/64 dev shca-test nodad" % ADDRESS6,
                  "link set shca-test up"):
        done_ip = _ip(words)
        expect(done_ip.returncode == 0, words + ": " + done_ip.stderr)


def _netns_command():
    """How to start a program in a new network namespace, or Skip."""
    need("unshare", "ip")
    cmd = ["unshare", "-rn"] if os.getuid() else ["unshare", "-n"]
    if subprocess.run(cmd + ["true"], check=False,
                      capture_output=True).returncode:
        raise Skip("no network namespaces (" + " ".join(cmd) + ")")
    return cmd


def inside_own_netns():
    return os.environ.get("E2E_NETNS") == "1"


def _again(cmd):
    """This test file once more, behind cmd."""
    os.environ["E2E_NETNS"] = "1"
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    sys.stdout.flush()
    os.execvp(cmd[0], cmd + [sys.executable] + sys.argv)


def in_own_netns():
    """Runs the calling test file again inside a new network namespace with
    loopback up, and returns when inside: nobody else's sockets, addresses or
    processes are there. Ends the file as skipped where none can be made."""
    if inside_own_netns():
        _ip("link set lo up")
        return
    try:
        cmd = _netns_command()
    except Skip:
        require("a network namespace of its own", _netns_command)
    _again(cmd)


def isolate():
    """The same, with a second interface, for tests that run anywhere but
    should not meet the machine's other users of port 4791 (another run of the
    tests, say). Where no namespace can be made they run where they are."""
    if inside_own_netns():
        _ip("link set lo up")
        with contextlib.suppress(Skip):
            add_interface()
        return
    with contextlib.suppress(Skip):
        _again(_netns_command())
