# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What `make bench` measures: the rows. Each is measured once a round and
gives a few numbers by name ("gbps", "us", "ops"); "KEY/NAME" refers to one."""
import os
import subprocess
import time

import bench_run as run
import e2e_lib
import netns_hosts
from bench_run import Absent, Broken, Side

KIB, MIB = 1 << 10, 1 << 20
LIMIT_S = 25  # of one measurement; a usual one takes a second
N_MAX = 2000000


class Path:
    """A way between a server and a client, and how ours is told to take it."""

    def __init__(self, server, client, opts, devices):
        self.server = server
        self.client = client
        self.opts = opts
        self.devices = devices  # (name, GID index) of server, client


class Bench:
    """The machine: CPUs, namespaces, devices, and how long things may take."""

    def __init__(self, build, cpus, target_s):
        self.build = build
        self.softhca = os.path.join(build, "tools", "softhca")
        self.cpus = cpus
        self.target_s = target_s
        self.iterations = {}  # row's key -> so many take target_s
        self.server = Side({cpus[0]})
        self.client = Side({cpus[1]})
        self._paths = {}
        self._hosts = {}
        text = subprocess.run([self.softhca, "run", "--help"], check=False,
                              capture_output=True, text=True).stdout
        self.has_link = "--link" in text
        self.has_one_sided = "--no-one-sided" in text

    def exe(self, name):
        return os.path.join(self.build, "bench", name)

    # -- ways --

    def path(self, name):
        if name not in self._paths:
            self._paths[name] = self._make_path(name)
        return self._paths[name]

    def _make_path(self, name):
        if name.startswith("veth"):
            hosts = self.hosts(name)
            sides = [Side(s.cpus, h.prefix, h.address["v4"])
                     for s, h in zip((self.server, self.client), hosts)]
            return Path(*sides, [], [
                (d.name, gid) for d, gid in (h.device() for h in hosts)])
        # "host" is what a user gets: the best way that there is.
        d, gid = e2e_lib.device_with("::ffff:127.0.0.1")
        opts = []
        if name == "udp":
            opts = [*(["--link", "udp"] if self.has_link else []),
                    *(["--no-one-sided"] if self.has_one_sided else [])]
        return Path(self.server, self.client, opts, [(d.name, gid)] * 2)

    def hosts(self, name):
        """Two namespaces and a cable of the MTU in the name."""
        if name not in self._hosts:
            if os.environ.get("BENCH_NETNS") != "1":
                raise Absent("no network namespaces (root, or unprivileged "
                             "user namespaces)")
            net = len(self._hosts)
            try:
                hosts = netns_hosts.veth_pair(net)
                for h in hosts:
                    h.set_mtu(int(name[4:]))
            except e2e_lib.Failed as e:
                raise Absent("no veth: " + str(e).strip()) from None
            self._hosts[name] = hosts
        return self._hosts[name]

    def close(self):
        for hosts in self._hosts.values():
            for h in hosts:
                h.gone()

    # -- iterations --

    def n_for(self, key, first):
        return self.iterations.get(key, first)

    def learn(self, key, ops, sides=1, least=50):
        """ops a second, of so many sides that do n each: next time it takes
        about target_s."""
        n = int(ops * self.target_s / sides)
        self.iterations[key] = max(least, min(N_MAX, n))


class Row:
    def __init__(self, key, title, shown, measure, quick=False):
        self.key = key
        self.title = title
        self.shown = shown  # the name of the number that tables show
        self.measure = measure  # (bench, row) -> {name: number}
        self.quick = quick
        self.values = []  # a dict or None for each round
        self.trouble = None  # why there is none
        self.failures = 0
        self.losses = 0  # rounds in which something was sent again
        self.through_udp = 0  # rounds in which datagrams were sent

    def series(self, name=None):
        return [v.get(name or self.shown) if v else None for v in self.values]


# ---- ours ----

LOSSES = ("req_retransmits", "req_timeouts")


def stats_files():
    return e2e_lib.tmp_path("s.json"), e2e_lib.tmp_path("c.json")


def ours(bench, opts, stats, args, prefix=()):
    return [*prefix, bench.softhca, "run", "--stats", stats, *opts, *args]


def look_at_counters(row, done):
    """Was something lost, and did it go through UDP?"""
    both = [p.stats() for p in (done.server, done.client)]
    if any(s.get(name) for name in LOSSES for s in both):
        row.losses += 1
    if sum(s.get("tx_frames", "link") for s in both) > 100:
        row.through_udp += 1


def costs(done, msgs):
    """CPU time of both sides, in ns a message; start and end are in it."""
    found = {}
    for name, p in (("server", done.server), ("client", done.client)):
        u = p.usage
        found[name + "_cpu_ns"] = (u.ru_utime + u.ru_stime) * 1e9 / msgs
        found[name + "_switches"] = (u.ru_nvcsw + u.ru_nivcsw) / msgs
    return found


def perftest_cmds(bench, path, program, args, prefix=()):
    port = e2e_lib.free_port()
    stats = stats_files()
    cmds = []
    for i in range(2):
        d, gid = path.devices[i]
        cmds.append(ours(bench, path.opts, stats[i],
                         [program, "-F", "-d", d, "-x", gid, "-p", port,
                          *args], prefix))
    return cmds[0], [*cmds[1], path.server.address], port, stats


def perftest(bench, path, program, args, prefix=()):
    run.need(program)
    server, client, port, stats = perftest_cmds(bench, path, program, args,
                                                prefix)
    return run.run_pair(path.server, path.client, server, client, port,
                        LIMIT_S, stats=stats)


def bandwidth(way, op, size, flags=(), qps=1, refused=()):
    """ib_OP_bw; both directions are added up by -b."""
    def measure(bench, row):
        path = bench.path(way)
        first = max(5, min(5000, 64 * MIB // (size * qps)))
        least = min(50, first)
        n = bench.n_for(row.key, first)
        args = ["-s", size, "-n", n, "-N", "--report_gbits", *flags]
        if qps > 1:
            args += ["-q", qps]
        prefix = [os.path.join(bench.build, "tests", "e2e", "refuse"),
                  *refused, "--"] if refused else []
        done = perftest(bench, path, "ib_%s_bw" % op, args, prefix)
        gbps, ops = run.perftest_bw(done.client.output())
        if ops <= 0:
            ops = gbps * 1e9 / 8 / size
        bench.learn(row.key, ops, qps * (2 if "-b" in flags else 1), least)
        look_at_counters(row, done)
        return dict(costs(done, n * qps), gbps=gbps, ops=ops)
    return measure


def latency(way, op, size, flags=()):
    def measure(bench, row):
        path = bench.path(way)
        n = bench.n_for(row.key, 2000)
        done = perftest(bench, path, "ib_%s_lat" % op,
                        ["-s", size, "-n", n, *flags])
        us, us_99 = run.perftest_lat(done.client.output())
        bench.learn(row.key, 1e6 / us / (1 if op == "read" else 2))
        look_at_counters(row, done)
        return dict(costs(done, n), us=us, us_99=us_99)
    return measure


def target(way, mode, size, wset_kib):
    """bench/target.c: one-sided work into a process that does other things."""
    def measure(bench, row):
        path = bench.path(way)
        port = e2e_lib.free_port()
        stats = stats_files()
        args = [bench.exe("target"), "-g", path.devices[0][1], "-d",
                path.devices[0][0], "-p", port, "-m", mode, "-s", size, "-n",
                wset_kib]
        done = run.run_pair(
            path.server, path.client, ours(bench, path.opts, stats[0], args),
            ours(bench, path.opts, stats[1], [*args, path.server.address]),
            port, LIMIT_S, stats=stats)
        look_at_counters(row, done)
        s = run.json_lines(done.server.output())
        c = run.json_lines(done.client.output())
        if not s or not c:
            raise Broken("no result: " + done.server.said())
        return {"gbps": c[0]["gbps"],
                "target_own_ms": s[0]["own_cpu_ms"],
                "target_other_ms": s[0]["other_cpu_ms"],
                "target_other_switches": s[0]["other_switches"],
                "target_cpu_ns_msg": (s[0]["own_cpu_ms"] +
                                      s[0]["other_cpu_ms"]) * 1e6 /
                max(1, s[0]["msgs"])}
    return measure


def pairs(way, count):
    """ib_send_lat by many pairs at once: all their round trips a second."""
    def measure(bench, row):
        path = bench.path(way)
        run.need("ib_send_lat")
        until = time.monotonic() + LIMIT_S
        seconds = 2
        servers, clients = [], []
        cmds = [perftest_cmds(bench, path, "ib_send_lat",
                              ["-s", 128, "-D", seconds])
                for _ in range(count)]
        try:
            for server, _, port, stats in cmds:
                servers.append(run.Proc(server, path.server.cpus,
                                        prefix=path.server.prefix,
                                        stats=stats[0]))
            for p, (_, _, port, _) in zip(servers, cmds):
                p.wait_listening(port, until)
            for _, client, _, stats in cmds:
                clients.append(run.Proc(client, path.client.cpus,
                                        prefix=path.client.prefix,
                                        stats=stats[1]))
        except BaseException:
            run.end_all(servers + clients)
            raise
        run.finish(servers, clients, until)
        for s, c in zip(servers, clients):
            look_at_counters(row, run.Done(s, c))
        return {"ops": sum(run.perftest_tps(c.output()) for c in clients)}
    return measure


# ---- peers ----

def ucx(tls, test, size, device=None):
    def measure(bench, row):
        run.need("ucx_perftest")
        n = bench.n_for(row.key, 2000)
        port = e2e_lib.free_port()
        env = {"UCX_TLS": tls, "UCX_LOG_LEVEL": "error"}
        if device:
            env["UCX_NET_DEVICES"] = device
        cmd = ["ucx_perftest", "-p", port]
        done = run.run_pair(
            bench.server, bench.client, cmd,
            [*cmd, "-t", test, "-s", size, "-n", n, "-w", n // 10 + 1, "-f",
             bench.server.address], port, LIMIT_S, env=env)
        found = run.ucx(done.client.output())
        bench.learn(row.key, found["ops"])
        return dict(found, **costs(done, n))
    return measure


def libfabric(provider, size):
    def measure(bench, row):
        run.need("fi_pingpong")
        n = bench.n_for(row.key, 500)
        port = e2e_lib.free_port()
        cmd = ["fi_pingpong", "-p", provider, "-e", "rdm", "-I", n, "-S",
               size]
        done = run.run_pair(bench.server, bench.client, [*cmd, "-B", port],
                            [*cmd, "-P", port, bench.server.address], port,
                            LIMIT_S)
        us = run.fi_pingpong(done.client.output())
        bench.learn(row.key, 1e6 / us / 2)
        return dict(costs(done, n), us=us, gbps=size * 8 / us / 1e3)
    return measure


def iperf3(way, udp_bytes=0):
    def measure(bench, row):
        run.need("iperf3")
        path = bench.path(way) if way.startswith("veth") else bench
        port = e2e_lib.free_port()
        args = ["-u", "-b", 0, "-l", udp_bytes] if udp_bytes else []
        done = run.run_pair(
            path.server, path.client, ["iperf3", "-s", "-1", "-p", port],
            ["iperf3", "-c", path.server.address, "-p", port, "-t", 1, "-J",
             *args], port, LIMIT_S)
        return dict(costs(done, 1), gbps=run.iperf3(done.client.output()))
    return measure


def probe(what, way=None):
    def measure(bench, row):
        cmd = [bench.exe("probe"), "-c", "%d,%d" % bench.cpus, "-t",
               int(bench.target_s * 500)]
        prefix = []
        if way:
            hosts = bench.hosts(way)
            prefix = hosts[1].prefix
            cmd += ["-N", "/proc/%d/ns/net" % hosts[0].keeper.pid,
                    "-a", hosts[1].address["v4"],
                    "-b", hosts[0].address["v4"]]
        found = {}
        text = run.run_alone([*cmd, what], set(bench.cpus), LIMIT_S, prefix)
        for d in run.json_lines(text):
            if "error" in d:
                raise Broken("%s: %s" % (d["what"], d["error"]))
            head = d["what"][3:] + "_" if d["what"].startswith("vm_") else ""
            for name in ("gbps", "us"):
                if name in d:
                    found[head + name] = d[name]
        return found
    return measure


# ---- the list ----

def size_name(n):
    return "%d MiB" % (n // MIB) if n >= MIB else \
        "%d KiB" % (n // KIB) if n >= KIB else "%d B" % n


SIZES = (64, 4 * KIB, 64 * KIB, MIB, 8 * MIB)


def limit_rows():
    for size in SIZES:
        yield Row("limit.memcpy.%d" % size, "memcpy, %s" % size_name(size),
                  "gbps", probe("memcpy:%d:%d" % (size, size)),
                  size == 64 * KIB)
        yield Row("limit.vm.%d" % size,
                  "process_vm_writev, %s" % size_name(size), "write_gbps",
                  probe("vm:%d:%d" % (size, size)), size == 64 * KIB)
    yield Row("limit.vm.128", "process_vm_writev, 128 B", "write_us",
              probe("vm:128:128"), True)
    for what, title in (("memcpy", "memcpy"), ("vm", "process_vm_writev")):
        yield Row("limit.%s.65536.cold" % what,
                  title + ", 64 KiB out of 64 MiB",
                  "gbps" if what == "memcpy" else "write_gbps",
                  probe("%s:65536:%d" % (what, 64 * MIB)))
    yield Row("limit.line", "a cache line from CPU to CPU", "us",
              probe("line"), True)
    yield Row("limit.udp.lo", "UDP on loopback, 4,148 B, both offloads",
              "gbps", probe("udp:4148:1"), True)
    yield Row("limit.udp.lo.plain", "UDP on loopback, 4,148 B, no offload",
              "gbps", probe("udp:4148:0"))
    yield Row("limit.pingpong.lo", "UDP on loopback, 128 B, one way, polling",
              "us", probe("pingpong:128"), True)
    for mtu in (1500, 9000):
        way = "veth%d" % mtu
        yield Row("limit.udp." + way,
                  "UDP on veth, MTU %d, both offloads" % mtu, "gbps",
                  probe("udp:%d:1" % (mtu - 28), way), mtu == 1500)
        yield Row("limit.pingpong." + way,
                  "UDP on veth, MTU %d, 128 B, one way, polling" % mtu, "us",
                  probe("pingpong:128", way))


def host_rows():
    for op in ("write", "read", "send"):
        name = op.upper()
        for size in SIZES:
            yield Row("host.%s.%d" % (op, size),
                      "%s, %s" % (name, size_name(size)), "gbps",
                      bandwidth("host", op, size), size == 64 * KIB)
        yield Row("host.%s.q16" % op, name + ", 64 KiB, 16 QPs", "gbps",
                  bandwidth("host", op, 64 * KIB, qps=16))
        yield Row("host.%s.both" % op, name + ", 64 KiB, both directions",
                  "gbps", bandwidth("host", op, 64 * KIB, ["-b"]))
        if op != "write":  # perftest's WRITEs have no events
            yield Row("host.%s.events" % op, name + ", 64 KiB, events",
                      "gbps", bandwidth("host", op, 64 * KIB, ["-e"]))
        yield Row("host.%s.cold" % op,
                  name + ", 4 MiB, 16 QPs: 64 MiB at each end", "gbps",
                  bandwidth("host", op, 4 * MIB, qps=16))
        yield Row("host.%s.refused" % op,
                  name + ", 64 KiB, process_vm_* refused", "gbps",
                  bandwidth("host", op, 64 * KIB, refused=(
                      "process_vm_readv", "process_vm_writev")))
    for op in ("send", "write", "read"):
        yield Row("host.%s_lat.128" % op, "%s, 128 B" % op.upper(), "us",
                  latency("host", op, 128), op != "read")
    yield Row("host.send_lat.events", "SEND, 128 B, events", "us",
              latency("host", "send", 128, ["-e"]))
    yield Row("host.send_lat.65536", "SEND, 64 KiB", "us",
              latency("host", "send", 64 * KIB))
    yield Row("host.rate.8", "SEND, 8 B, inline", "ops",
              bandwidth("host", "send", 8, ["-I", 8]), True)
    for how in ("poll", "sleep", "compute"):
        yield Row("host.target.write." + how,
                  "WRITE, 64 KiB, target %s" % HOW[how], "gbps",
                  target("host", "write:" + how, 64 * KIB, 64), True)
    yield Row("host.target.read.sleep", "READ, 64 KiB, target asleep", "gbps",
              target("host", "read:sleep", 64 * KIB, 64))
    yield Row("host.target.write.cold",
              "WRITE, 64 KiB out of 64 MiB, target asleep", "gbps",
              target("host", "write:sleep", 64 * KIB, 64 * KIB))
    for n in (1, 4, 16):
        yield Row("host.pairs.%d" % n,
                  "SEND, 128 B, %d pair%s at once" % (n, "s" * (n > 1)),
                  "ops", pairs("host", n), n < 16)


HOW = {"poll": "polling", "sleep": "asleep", "compute": "computing"}


def udp_rows():
    for op in ("write", "read", "send"):
        name = op.upper()
        for size in (4 * KIB, 64 * KIB, MIB):
            yield Row("udp.%s.%d" % (op, size),
                      "%s, %s" % (name, size_name(size)), "gbps",
                      bandwidth("udp", op, size), size == 64 * KIB)
        yield Row("udp.%s_lat.128" % op, "%s, 128 B" % name, "us",
                  latency("udp", op, 128), op != "read")
    yield Row("udp.write.q16", "WRITE, 64 KiB, 16 QPs", "gbps",
              bandwidth("udp", "write", 64 * KIB, qps=16))
    yield Row("udp.write.both", "WRITE, 64 KiB, both directions", "gbps",
              bandwidth("udp", "write", 64 * KIB, ["-b"]))
    yield Row("udp.send.events", "SEND, 64 KiB, events", "gbps",
              bandwidth("udp", "send", 64 * KIB, ["-e"]))
    yield Row("udp.send_lat.events", "SEND, 128 B, events", "us",
              latency("udp", "send", 128, ["-e"]))
    yield Row("udp.rate.8", "SEND, 8 B, inline", "ops",
              bandwidth("udp", "send", 8, ["-I", 8]))
    for how in ("poll", "sleep", "compute"):
        yield Row("udp.target.write." + how,
                  "WRITE, 64 KiB, target %s" % HOW[how], "gbps",
                  target("udp", "write:" + how, 64 * KIB, 64))
    for n in (1, 4, 16):
        yield Row("udp.pairs.%d" % n,
                  "SEND, 128 B, %d pair%s at once" % (n, "s" * (n > 1)),
                  "ops", pairs("udp", n))
    for mtu in (1500, 9000):
        way = "veth%d" % mtu
        for op in ("write", "read", "send"):
            yield Row("%s.%s.65536" % (way, op),
                      "%s, 64 KiB" % op.upper(), "gbps",
                      bandwidth(way, op, 64 * KIB), op == "write")
        for op in ("send", "write"):
            yield Row("%s.%s_lat.128" % (way, op), "%s, 128 B" % op.upper(),
                      "us", latency(way, op, 128))


def peer_rows():
    for tls, name, device in (("sm,self", "shm", None),
                              ("tcp,self", "tcp", "lo")):
        def add(key, title, shown, test, size, quick=False):
            return Row("ucx.%s.%s" % (name, key),
                       "UCX %s, %s" % (name, title), shown,
                       ucx(tls, test, size, device), quick)
        yield add("tag_lat.128", "tag, 128 B", "us", "tag_lat", 128, True)
        yield add("tag.65536", "tag, 64 KiB", "gbps", "tag_bw", 64 * KIB,
                  name == "shm")
        yield add("tag.8", "tag, 8 B", "ops", "tag_bw", 8, name == "shm")
        if name == "shm":
            yield add("tag.1048576", "tag, 1 MiB", "gbps", "tag_bw", MIB)
            yield add("put.65536", "put, 64 KiB", "gbps", "ucp_put_bw",
                      64 * KIB)
            yield add("get.65536", "get, 64 KiB", "gbps", "ucp_get",
                      64 * KIB)
            yield add("put_lat.128", "put, 128 B", "us", "ucp_put_lat", 128)
    for provider in ("shm", "tcp"):
        yield Row("fi.%s.128" % provider,
                  "libfabric %s, 128 B there and back" % provider, "us",
                  libfabric(provider, 128), provider == "shm")
        yield Row("fi.%s.65536" % provider,
                  "libfabric %s, 64 KiB there and back" % provider, "gbps",
                  libfabric(provider, 64 * KIB))
    for way, udp_bytes in (("lo", 4096), ("veth1500", 1472),
                           ("veth9000", 8972)):
        yield Row("iperf3.tcp." + way, "iperf3 TCP, %s" % way, "gbps",
                  iperf3(way), way != "veth9000")
        yield Row("iperf3.udp." + way,
                  "iperf3 UDP, %s, %d B" % (way, udp_bytes), "gbps",
                  iperf3(way, udp_bytes))


def all_rows():
    """Ours and theirs in turn, so that both meet the same machine."""
    kinds = [list(host_rows()), list(peer_rows()), list(udp_rows()),
             list(limit_rows())]
    longest = max(len(k) for k in kinds)
    placed = []
    for k in kinds:
        for i, row in enumerate(k):
            placed.append((i * longest / len(k), row))
    placed.sort(key=lambda p: p[0])
    return [row for _, row in placed]
