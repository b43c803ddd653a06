# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""From rows to a table, a file of JSON and a picture."""
import json
import os
import re
import shutil
import statistics
import subprocess

from bench_rows import KIB, MIB, SIZES, size_name

# ---- numbers ----


def fmt(x, unit):
    if x is None:
        return "-"
    if unit == "ops":
        return "%.3g M/s" % (x / 1e6)
    if unit == "us":
        return "%.2f us" % x if x >= 0.1 else "%.0f ns" % (x * 1e3)
    return "%.1f Gb/s" % x


def unit_of(name):
    return "us" if name.endswith("us") else \
        "ops" if name == "ops" else "gbps"


class Results:
    def __init__(self, rows, idle):
        self.rows = {r.key: r for r in rows}
        self.idle = idle

    def series(self, ref):
        key, _, name = ref.partition("/")
        row = self.rows.get(key)
        return row.series(name or None) if row else []

    def median(self, ref):
        found = [x for x in self.series(ref) if x is not None]
        return statistics.median(found) if found else None

    def ratio(self, ref, other):
        """The median of the rounds' ratios, or None."""
        found = [a / b for a, b in zip(self.series(ref), self.series(other))
                 if a is not None and b]
        return statistics.median(found) if found else None

    def why(self, ref):
        row = self.rows.get(ref.partition("/")[0])
        if row is None:
            return "not in this run"
        return row.trouble or "no value"


def spread(series):
    found = sorted(x for x in series if x is not None)
    if not found:
        return None
    if len(found) == 1:
        return found * 5
    q1, q2, q3 = statistics.quantiles(found, n=4, method="inclusive")
    return found[0], q1, q2, q3, found[-1]


# ---- the targets of the project ----

class Than:
    """A bound in the unit of the row."""

    def __init__(self, bound, at_least):
        self.bound = bound
        self.at_least = at_least

    def judge(self, results, ref):
        x = results.median(ref)
        text = "%s %s" % (">=" if self.at_least else "<", fmt(
            self.bound, unit_of(ref.partition("/")[2] or
                                results.rows[ref].shown)
            if ref.partition("/")[0] in results.rows else "gbps"))
        if x is None:
            return text, None, results.why(ref)
        good = x >= self.bound if self.at_least else x < self.bound
        return text, good, "%.2f x" % (x / self.bound)


class Times:
    """A bound as a multiple of another row, in the same round."""

    def __init__(self, factor, other, name, at_least=True, quiet=None):
        self.factor = factor
        self.other = other
        self.name = name
        self.at_least = at_least
        self.quiet = quiet  # a number that must be (almost) 0, too

    def judge(self, results, ref):
        text = "%s %g x %s" % (">=" if self.at_least else "<=", self.factor,
                               self.name)
        ratio = results.ratio(ref, self.other)
        if ratio is None:
            bad = ref if results.median(ref) is None else self.other
            return text, None, "%s: %s" % (bad, results.why(bad))
        shown = round(ratio, 2)
        good = shown >= self.factor if self.at_least else \
            shown <= self.factor
        said = "%.2f x" % ratio
        if self.quiet:
            ref2, most, what = self.quiet
            x = results.median(ref2)
            good = good and x is not None and x <= most
            said += ", %s: %s" % (what, "-" if x is None else "%.1f" % x)
        return text, good, said


class NotBuilt:
    def __init__(self, text, why):
        self.text = text
        self.why = why

    def judge(self, results, ref):
        return self.text, None, self.why


class Idle:
    """A number of the idle QPs, at most so much."""

    def __init__(self, key, name, most, text):
        self.key = key
        self.name = name
        self.most = most
        self.text = text

    def judge(self, results, ref):
        d = results.idle.get(self.key)
        if not isinstance(d, dict):
            return self.text, None, d or "not in this run"
        return self.text, d[self.name] <= self.most, "%g" % d[self.name]


VM = "limit.vm.65536/"
TARGETS = (
    ("same host", "WRITE 64 KiB", "host.write.65536", Than(96, True),
     Times(0.95, VM + "write_gbps", "process_vm_writev")),
    ("same host", "READ 64 KiB", "host.read.65536", Than(91, True),
     Times(0.95, VM + "read_gbps", "process_vm_readv")),
    ("same host", "WRITE 64 KiB into alloc_dm memory", None, None,
     NotBuilt(">= 2 x process_vm_writev", "no row measures device memory yet")),
    ("same host", "SEND 64 KiB", "host.send.65536", Than(71, True),
     Times(0.9, VM + "write_gbps", "process_vm_writev")),
    ("same host", "WRITE, target asleep", "host.target.write.sleep",
     Times(0.9, "host.target.write.poll", "target polling"),
     Times(1.0, "host.target.write.poll", "target polling",
           quiet=("host.target.write.sleep/target_other_ms", 1,
                  "ms of the target's threads"))),
    ("same host", "WRITE, target computing", "host.target.write.compute",
     Times(0.9, "host.target.write.poll", "target polling"),
     Times(1.0, "host.target.write.poll", "target polling",
           quiet=("host.target.write.compute/target_other_ms", 1,
                  "ms of the target's NIC thread"))),
    ("same host", "SEND 128 B, both polling", "host.send_lat.128",
     Than(5, False), Times(1, "fi.shm.128", "libfabric shm", False)),
    ("same host", "WRITE 128 B (ib_write_lat)", "host.write_lat.128",
     Than(5, False),
     Times(1.5, "limit.vm.128/write_us", "process_vm_writev", False)),
    ("same host", "SEND 8 B, inline, 1 QP", "host.rate.8", Than(3e6, True),
     Times(1, "ucx.shm.tag.8", "UCX shm tag")),
    ("UDP on loopback", "WRITE 64 KiB", "udp.write.65536",
     Times(1, "iperf3.tcp.lo", "iperf3 TCP"),
     Times(0.6, "limit.udp.lo", "raw UDP, both offloads")),
    ("UDP on loopback", "ib_send_lat 128 B", "udp.send_lat.128",
     Times(1.5, "limit.pingpong.lo", "raw UDP", False),
     Times(1.2, "limit.pingpong.lo", "raw UDP", False)),
    ("UDP on loopback", "ib_write_lat 128 B", "udp.write_lat.128",
     Times(3, "limit.pingpong.lo", "raw UDP", False),
     Times(2, "limit.pingpong.lo", "raw UDP", False)),
    ("veth, MTU 1500", "WRITE 64 KiB", "veth1500.write.65536",
     Times(1, "iperf3.tcp.veth1500", "iperf3 TCP"),
     Times(1.5, "iperf3.tcp.veth1500", "iperf3 TCP")),
    ("veth, MTU 9000", "WRITE 64 KiB", "veth9000.write.65536",
     Times(1, "iperf3.tcp.veth9000", "iperf3 TCP"),
     Times(1.5, "iperf3.tcp.veth9000", "iperf3 TCP")),
    ("4 pairs, same host", "total, polling", "host.pairs.4",
     Times(0.8, "host.pairs.1", "one pair"),
     Times(1, "host.pairs.1", "one pair")),
    ("16 pairs, same host", "total, polling", "host.pairs.16",
     Times(0.6, "host.pairs.1", "one pair"),
     Times(1, "host.pairs.1", "one pair")),
    ("4 pairs, UDP", "total, polling", "udp.pairs.4",
     Times(0.8, "udp.pairs.1", "one pair"),
     Times(1, "udp.pairs.1", "one pair")),
    ("16 pairs, UDP", "total, polling", "udp.pairs.16",
     Times(0.6, "udp.pairs.1", "one pair"),
     Times(1, "udp.pairs.1", "one pair")),
)


def idle_targets(way, title):
    return (
        ("idle, " + title, "context switches in 10 s", None,
         Idle("idle.%s.100" % way, "switches", 0, "none, 100 QPs"),
         Idle("idle.%s.10000" % way, "switches", 0, "none, 10,000 QPs")),
        ("memory, " + title, "resident bytes of an idle RC QP, rings and all",
         None,
         Idle("idle.%s.10000" % way, "bytes_a_qp", 16 * KIB, "<= 16 KiB"),
         Idle("idle.%s.10000" % way, "bytes_a_qp", 4 * KIB, "<= 4 KiB")),
        ("memory, " + title, "seconds to connect 10,000 RC QPs", None,
         Idle("idle.%s.10000" % way, "connect_s", 20, "< 20 s"),
         Idle("idle.%s.10000" % way, "connect_s", 5, "< 5 s")),
    )


def judge_all(results):
    """A dict for each row of the issue's table."""
    found = []
    for path, what, ref, must, aim in (
            *TARGETS, *idle_targets("host", "same host"),
            *idle_targets("udp", "UDP")):
        d = {"path": path, "what": what, "measured": "-"}
        if ref:
            row = results.rows.get(ref)
            d["measured"] = fmt(results.median(ref),
                                unit_of(row.shown) if row else "gbps")
        for name, bound in (("must", must), ("aim", aim)):
            text, good, said = bound.judge(results, ref) if bound else \
                ("-", None, "")
            d[name] = text
            d[name + "_ratio"] = said
            d[name + "_verdict"] = "-" if not bound else \
                "not measured" if good is None else \
                "met" if good else "MISS"
        found.append(d)
    return found


# ---- what a row is compared with ----

def references(key):
    """(name, row) of the limit, and of the best peer."""
    m = re.match(r"host\.(write|read|send)\.(\d+|q16|both|events|refused|cold"
                 r")$", key)
    if m:
        size = int(m[2]) if m[2].isdigit() else 64 * KIB
        kind = "read" if m[1] == "read" else "write"
        limit = ("process_vm_%sv" % kind, "limit.vm.%d/%s_gbps" % (size, kind))
        if m[2] == "cold":
            limit = (limit[0] + ", 64 MiB",
                     "limit.vm.65536.cold/%s_gbps" % kind)
        peer = {"write": ("UCX put", "ucx.shm.put.65536"),
                "read": ("UCX get", "ucx.shm.get.65536"),
                "send": ("UCX tag", "ucx.shm.tag.65536")}[m[1]]
        if size == MIB and m[1] == "send":
            peer = ("UCX tag", "ucx.shm.tag.1048576")
        elif size != 64 * KIB:
            peer = None
        return limit, peer
    table = {
        "host.send_lat.128": (("cache line", "limit.line"),
                              ("libfabric shm", "fi.shm.128")),
        "host.write_lat.128": (("process_vm_writev", "limit.vm.128/write_us"),
                               ("UCX put", "ucx.shm.put_lat.128")),
        "host.read_lat.128": (("process_vm_readv", "limit.vm.128/read_us"),
                              None),
        "host.rate.8": (None, ("UCX tag", "ucx.shm.tag.8")),
        "host.target.write.cold": (("process_vm_writev, 64 MiB",
                                    "limit.vm.65536.cold/write_gbps"), None),
        "host.target.read.sleep": (("process_vm_readv", VM + "read_gbps"),
                                   None),
        "udp.rate.8": (None, ("UCX tcp tag", "ucx.tcp.tag.8")),
    }
    if key in table:
        return table[key]
    if key.startswith("host.target.write"):
        return ("process_vm_writev", VM + "write_gbps"), None
    m = re.match(r"(udp|veth\d+)\.(\w+)", key)
    if not m or ".pairs" in key:
        return None, None
    way = "lo" if m[1] == "udp" else m[1]
    if m[2].endswith("_lat"):
        return ("raw UDP", "limit.pingpong." + way), \
            (("UCX tcp tag", "ucx.tcp.tag_lat.128") if way == "lo" else None)
    return ("raw UDP", "limit.udp." + way), \
        ("iperf3 TCP", "iperf3.tcp." + way)


def compared(results, key, ref):
    if not ref:
        return ""
    ratio = results.ratio(key, ref[1])
    return "-" if ratio is None else "%.2f x %s" % (ratio, ref[0])


# ---- Markdown ----

def table(head, rows):
    text = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for r in rows:
        text.append("| " + " | ".join(
            str(c).replace("|", "/").replace("\n", " ") for c in r) + " |")
    return "\n".join(text) + "\n"


SECTIONS = (
    ("Same host", ("host.",)), ("UDP on loopback", ("udp.",)),
    ("veth, MTU 1500", ("veth1500.",)), ("veth, MTU 9000", ("veth9000.",)),
    ("Peers", ("ucx.", "fi.", "iperf3.")), ("Limits", ("limit.",)))


def section(results, title, heads):
    lines = []
    for row in results.rows.values():
        if not row.key.startswith(heads):
            continue
        s = spread(row.series())
        unit = unit_of(row.shown)
        limit, peer = references(row.key)
        if s is None:
            lines.append([row.title, row.trouble or "-", "", "", "", "", ""])
            continue
        mark = " *" if row.losses else ""
        lines.append([row.title, fmt(s[2], unit) + mark, fmt(s[0], unit),
                      fmt(s[1], unit), fmt(s[3], unit),
                      compared(results, row.key, limit),
                      compared(results, row.key, peer)])
    if not lines:
        return ""
    return "\n## %s\n\n%s" % (title, table(
        ["what", "median", "min", "quartile 1", "quartile 3", "of the limit",
         "of a peer"], lines))


def targets_text(judged):
    return "## Targets\n\n" + table(
        ["path", "what", "measured", "must", "", "", "aim", "", ""],
        [[d["path"], d["what"], d["measured"], d["must"], d["must_ratio"],
          bold(d["must_verdict"]), d["aim"], d["aim_ratio"],
          bold(d["aim_verdict"])] for d in judged])


def bold(verdict):
    return "**MISS**" if verdict == "MISS" else verdict


def number(x):
    if x is None:
        return "-"
    return "{:,.0f}".format(x) if x >= 100 else "%.3g" % x


def per(x, n):
    return None if x is None else x / n


def costs_text(cases, tool):
    if not cases:
        return ""
    lines = []
    for c in cases:
        if c.found is None:
            lines.append([c.title, size_name(c.size), c.trouble] +
                         [""] * 6)
            continue
        both = [["%s / %s" % (number(c.found.get("active_" + n)),
                              number(c.found.get("passive_" + n)))]
                for n in ("syscalls", "switches", "wakeups", "cpu_ns")]
        per_kib = "%s / %s" % tuple(
            number(per(c.found.get(s + "_cpu_ns"), c.size / KIB))
            for s in ("active", "passive"))
        lines.append([c.title, size_name(c.size), c.copies,
                      *(b[0] for b in both), per_kib])
    note = "" if tool == "perf" else (
        "Counted by %s; all columns need perf and its tracepoints (root, or "
        "kernel.perf_event_paranoid -1).\n\n" % (tool or "getrusage alone"))
    return ("\n## What a message costs, beside TCP\n\nActive side / passive "
            "side, per message. Copies are of each byte, by analysis of the "
            "path; the rest is counted.\n\n" + note + table(
                ["what", "message", "copies of a byte", "system calls",
                 "context switches", "wake-ups made", "CPU, ns",
                 "CPU, ns a KiB"], lines))


def idle_text(idle):
    if not idle:
        return ""
    lines = []
    for key, d in idle.items():
        if isinstance(d, dict):
            lines.append([key, d["switches"], "%.2f" % d["connect_s"],
                          d["bytes_a_qp"]])
        else:
            lines.append([key, d, "", ""])
    return "\n## QPs that do nothing\n\n" + table(
        ["what", "context switches in 10 s", "seconds to connect",
         "resident bytes a QP"], lines)


def checks_text(checks):
    if not checks:
        return ""
    return "\n## Data\n\nPrograms that compare every byte, on the same " \
        "paths.\n\n" + table(["program", "result"], [
            [name, trouble or "right"] for name, trouble in checks])


def troubles_text(results):
    lines = [[r.key, r.trouble, r.failures] for r in results.rows.values()
             if r.trouble]
    lost = [r.key for r in results.rows.values() if r.losses]
    text = ""
    if lines:
        text += "\n## Not measured, or failed\n\n" + table(
            ["row", "why", "times"], lines)
    if lost:
        text += "\n\\* Something was sent again in at least one round: " + \
            ", ".join(lost) + ".\n"
    return text


def head_text(machine):
    text = "<!-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only -->\n"
    text += "# Benchmark of softhca\n\n"
    if machine["quick"]:
        text += "**A quick run: few rounds, short ones. Not for the " \
            "record.**\n\n"
    text += table(["", ""], [[k, v] for k, v in machine.items()])
    return text + "\nHow to read it: docs/benchmarks.md.\n\n"


def markdown(machine, results, judged, cases, tool, checks):
    text = head_text(machine) + targets_text(judged)
    for title, heads in SECTIONS:
        text += section(results, title, heads)
    return text + costs_text(cases, tool) + idle_text(results.idle) + \
        checks_text(checks) + troubles_text(results)


# ---- the picture ----

CURVES = (("process_vm_writev", "limit.vm.%d/write_gbps"),
          ("WRITE, same host", "host.write.%d"),
          ("READ, same host", "host.read.%d"),
          ("SEND, same host", "host.send.%d"),
          ("WRITE, UDP on loopback", "udp.write.%d"))
LINES = (("raw UDP, offloads", "limit.udp.lo"),
         ("iperf3 TCP, loopback", "iperf3.tcp.lo"))
BARS = (("a cache line", "limit.line"),
        ("UCX shm tag", "ucx.shm.tag_lat.128"),
        ("libfabric shm", "fi.shm.128"),
        ("SEND, same host", "host.send_lat.128"),
        ("WRITE, same host", "host.write_lat.128"),
        ("process_vm_writev", "limit.vm.128/write_us"),
        ("raw UDP", "limit.pingpong.lo"),
        ("SEND, UDP", "udp.send_lat.128"),
        ("WRITE, UDP", "udp.write_lat.128"),
        ("UCX tcp tag", "ucx.tcp.tag_lat.128"),
        ("libfabric tcp", "fi.tcp.128"))


def curve_data(results):
    """Gnuplot's data blocks, and what to plot of them."""
    blocks, plots = [], []
    for i, (name, pattern) in enumerate(CURVES):
        points = [(s, spread(results.series(pattern % s))) for s in SIZES]
        points = [(s, q) for s, q in points if q]
        if not points:
            continue
        blocks.append("$c%d << EOD\n%s\nEOD\n" % (i, "\n".join(
            "%d %g %g %g" % (s, q[2], q[1], q[3]) for s, q in points)))
        plots.append("$c%d using 1:2:3:4 with yerrorlines lw 2 pt 7 ps 0.5 "
                     "title '%s'" % (i, name))
    for name, key in LINES:
        x = results.median(key)
        if x is not None:
            plots.append("%g with lines lw 1 dt 2 title '%s'" % (x, name))
    return blocks, plots


def bar_data(results):
    lines = []
    for name, ref in BARS:
        x = results.median(ref)
        if x is not None:
            lines.append('%d %g "%s"' % (len(lines), x, name))
    return lines


def gnuplot_text(results, terminal, path):
    blocks, plots = curve_data(results)
    bars = bar_data(results)
    text = "set terminal %s\nset output '%s'\n" % (terminal, path)
    text += "".join(blocks)
    if bars:
        text += "$bars << EOD\n%s\nEOD\n" % "\n".join(bars)
    text += "set multiplot layout 1,2\n"
    if plots:
        text += ("set logscale x 2\nset xrange [32:16777216]\nset xlabel 'message, bytes'\n"
                 "set ylabel 'Gb/s'\nset yrange [0:*]\nset grid\n"
                 "set format x '%.0b%B'\n"
                 "set key top left\nset title 'Bandwidth, one QP, polling'\n"
                 "plot " + ", ".join(plots) + "\nunset logscale x\n"
                 "set format x '%h'\n")
    if bars:
        text += ("set title '128 B, one way: median'\nset xlabel 'us'\n"
                 "unset ylabel\nset logscale x\nset xrange [0.01:1000]\n"
                 "set yrange [%d:-1]\nset boxwidth 0.6\n"
                 "set style fill solid 0.7\nunset key\n"
                 "plot $bars using ($2/2):0:($2/2):(0.3):ytic(3) with "
                 "boxxyerror lc rgb '#4477aa', '' using 2:0:"
                 "(sprintf(' %%.2f', $2)) with labels left\n" % len(bars))
    return text + "unset multiplot\n"


def picture(results, out):
    """The files written; none without gnuplot."""
    made = []
    if not shutil.which("gnuplot"):
        return made
    for kind, terminal in (
            ("svg", "svg noenhanced size 1200,520 background rgb 'white'"),
            ("png", "pngcairo noenhanced size 1200,520")):
        path = os.path.join(out, "benchmark." + kind)
        p = subprocess.run(["gnuplot"], check=False, capture_output=True,
                           text=True, timeout=60,
                           input=gnuplot_text(results, terminal, path))
        if p.returncode == 0 and os.path.exists(path):
            made.append(path)
        else:
            print("gnuplot: " + p.stderr.strip()[-300:])
    return made


# ---- all of it ----

def as_json(machine, results, judged, cases, checks):
    return {"machine": machine, "targets": judged,
            "rows": {r.key: {"title": r.title, "shown": r.shown,
                             "values": r.values, "trouble": r.trouble,
                             "rounds_with_loss": r.losses,
                             "rounds_through_udp": r.through_udp}
                     for r in results.rows.values()},
            "costs": {c.key: c.found or c.trouble for c in cases},
            "idle": results.idle,
            "checks": [{"name": n, "trouble": t} for n, t in checks]}


def write_all(out, machine, results, cases, tool, checks):
    os.makedirs(out, exist_ok=True)
    judged = judge_all(results)
    text = markdown(machine, results, judged, cases, tool, checks)
    paths = [os.path.join(out, "benchmark." + k) for k in ("md", "json")]
    with open(paths[0], "w", encoding="utf-8") as f:
        f.write(text)
    with open(paths[1], "w", encoding="utf-8") as f:
        json.dump(as_json(machine, results, judged, cases, checks), f,
                  indent=1)
        f.write("\n")
    return judged, paths + picture(results, out)
