#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""`softhca sim`: each shipped scenario shows what it says it shows; a seed
repeats its run to the byte; errors in a file name the place."""
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile

SOFTHCA, SCENARIOS = sys.argv[1:3]
LIMIT_S = 60
failed = 0
number = 0
tmp = tempfile.TemporaryDirectory()


def test(name, function, *args):
    global failed, number
    number += 1
    try:
        function(*args)
        print("ok %d - %s" % (number, name), flush=True)
    except (AssertionError, OSError, KeyError, ValueError,
            subprocess.SubprocessError) as e:
        failed += 1
        print("not ok %d - %s" % (number, name))
        print("# %s: %s" % (type(e).__name__, e), flush=True)


def sim(path, *args, status=0):
    p = subprocess.run([SOFTHCA, "sim", path, *args], capture_output=True,
                       text=True, timeout=LIMIT_S)
    assert p.returncode == status, "status %d: %s" % (p.returncode, p.stderr)
    return p.stdout + p.stderr


class Result:
    """One scenario's JSON and samples."""

    def __init__(self, name, *args):
        self.json_path = os.path.join(tmp.name, name + ".json")
        self.csv_path = os.path.join(tmp.name, name + ".csv")
        self.text = sim(os.path.join(SCENARIOS, name + ".yaml"), "--json",
                        self.json_path, "--csv", self.csv_path, *args)
        with open(self.json_path, encoding="utf-8") as f:
            self.json = json.load(f)
        with open(self.csv_path, encoding="utf-8") as f:
            self.rows = list(csv.DictReader(f))
        self.flows = {f["name"]: f for f in self.json["flows"]}
        self.switches = {s["name"]: s for s in self.json["switches"]}
        self.hosts = {h["name"]: h for h in self.json["hosts"]}
        assert not any(f["failed"] for f in self.json["flows"]), "failed"

    def column(self, name, since_us=0):
        return [float(r[name]) for r in self.rows
                if float(r["time_us"]) >= since_us]

    def sum(self, what, of):
        return sum(x[what] for x in self.json[of])


def within(x, low, high):
    assert low <= x <= high, "%s is not in %s..%s" % (x, low, high)


def mean(values):
    return sum(values) / len(values)


def bottleneck():
    r = Result("bottleneck")
    within(r.switches["s1"]["used_bytes"], 937500 - 1024, 937500 + 1024)


def bottleneck_dcqcn():
    r = Result("bottleneck-dcqcn")
    within(mean(r.column("sent_Gbps:sender", 40000)), 21.5, 24)
    within(max(r.column("queue_KB:s1>receiver", 40000)), 5, 250)
    assert r.sum("NO_HEADROOM", "switches") == 0
    assert r.hosts["receiver"]["np_cnp_sent"] == \
        r.hosts["sender"]["rp_cnp_handled"] > 10


def incast():
    r = Result("incast")
    assert len(r.flows) == 20
    late = r.column("queue_KB:tor>receiver", 30000)
    within(mean(late), 20, 250)
    assert r.sum("NO_HEADROOM", "switches") == 0
    assert r.sum("req_retransmits", "hosts") == 0


def victim():
    """The victim's path has 40 - 8 Gb/s to spare; PFC leaves it a share of
    the jam's, DCQCN gives it most of what is free."""
    jam = Result("pfc-victim").flows["victim:v-q"]["gbps"]
    free = Result("pfc-victim-dcqcn").flows["victim:v-q"]["gbps"]
    within(jam, 4, 12)
    within(free, 25, 38)


def parking_lot():
    """PFC alone gives a, who comes through one switch more, less than each
    of b1..b4; with DCQCN all have a fifth."""
    names = ["jam:a-r"] + ["jam:b%d-r" % i for i in range(1, 5)]
    pfc = Result("pfc-victim").flows
    assert pfc["jam:a-r"]["gbps"] < 0.9 * pfc["jam:b1-r"]["gbps"]
    got = [Result("pfc-victim-dcqcn").flows[n]["gbps"] for n in names]
    assert min(got) > 0.85 * max(got), got


def deadlock():
    r = Result("pfc-deadlock")
    assert r.sum("storms", "switches") >= 5
    assert all(f["completed"] > 0 for f in r.json["flows"])
    with open(os.path.join(SCENARIOS, "pfc-deadlock.yaml"),
              encoding="utf-8") as f:
        text = f.read().replace(", watchdog: 2ms", "")
    path = os.path.join(tmp.name, "no-watchdog.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    sim(path, "--json", path + ".json")
    with open(path + ".json", encoding="utf-8") as f:
        stuck = json.load(f)
    assert not any(f["completed"] for f in stuck["flows"]), "no deadlock"
    assert sum(s["used_bytes"] for s in stuck["switches"]) > 50000


def lossy():
    r = Result("lossy")
    assert r.json["lost"] > 20
    assert r.hosts["a"]["req_seq_naks"] > 0
    assert r.hosts["a"]["req_retransmits"] > r.json["lost"]
    within(r.flows["a-b"]["gbps"], 18, 24)


def fairness():
    r = Result("fairness")
    last = [mean(r.column("sent_Gbps:h%d" % i, 120000)) for i in range(1, 5)]
    index = sum(last) ** 2 / (4 * sum(x * x for x in last))
    assert index > 0.98, "Jain's index is %.4f: %s" % (index, last)
    within(sum(last), 35, 37.1)


def rnr():
    r = Result("rnr")
    assert r.hosts["a"]["req_rnr_naks"] > 5
    assert r.hosts["c"]["req_rnr_naks"] == 0
    assert r.sum("marked", "switches") == r.sum("xoff_sent", "switches") == 0
    assert r.flows["late:a-b"]["gbps"] < 0.2 * r.flows["ready:c-d"]["gbps"]


def slow_receiver():
    r = Result("slow-receiver")
    # 1,106 bytes at 16 Gb/s and 50 ns a frame.
    within(r.flows["a-b"]["gbps"], 12, 1024 * 8 / (553 + 50) + 0.2)
    assert r.switches["s1"]["xoff_received"] > 10
    assert r.switches["s1"]["marked"] == 0
    assert r.sum("req_retransmits", "hosts") == 0
    assert r.json["processing"] > 0


def posting_rate():
    r = Result("posting-rate")
    f = r.flows["a-b"]
    within(f["posted"], 199, 202)
    within(f["gbps"], 22, 1024 / 1106 * 25)
    assert f["completed"] < 0.5 * f["posted"]
    assert f["max_ns"] > 1000000


def repeats():
    """Same seed and file: every byte; another seed: not."""
    path = os.path.join(SCENARIOS, "incast.yaml")
    first, again = sim(path), sim(path)
    assert first == again, "two runs differ"
    assert sim(path, "--seed", "2") != first, "the seed does nothing"
    for word in ("seed=1", "kmin", "alpha_keep=1020", "rate_bps=40000000000"):
        assert word in first or word == "kmin", word
    a, b = Result("rnr"), None
    with open(a.csv_path, "rb") as f:
        before = f.read()
    b = Result("rnr")
    with open(b.csv_path, "rb") as f:
        assert f.read() == before, "two CSVs differ"


def picture():
    path = os.path.join(tmp.name, "p.svg")
    sim(os.path.join(SCENARIOS, "bottleneck.yaml"), "--plot", path)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    assert "<svg" in text and "s1>receiver" in text, "no picture"


GOOD = """name: x
duration: 10us
hosts:
  - {name: a}
  - {name: b}
switches:
  - {name: s}
cables:
  - {from: "[ab]", to: s, rate: 10G}
flows:
  - {from: a, to: b, op: write, size: 4KiB}
"""
BAD = (
    ("duration: 10us", "duration: 10", 2, "a time, as 10us"),
    ("{name: b}", "{nam: b}", 5, "'nam' is not known here"),
    ("rate: 10G", "rate: fast", 9, "a rate, as 100G"),
    ("to: s,", "to: t,", 9, "nothing is called"),
    ("rate: 10G", "rate: 10G, fault: drop=1", 9, "character 6"),
    ("op: write", "op: push", 11, "send, write, read or fetch_add"),
    ("size: 4KiB", "size: 5GiB", 11, "a size below 4 GiB"),
    ("size: 4KiB", "size: 4KiB, prio: 8", 11, "prio is 0 to 7"),
    ("{name: a}", "{name: a, cc: tcp}", 4, "a preset"),
    ("{name: a}", "{name: b}", 5, "a second 'b'"),
    ("name: x\n", "name: [x\n", 2, ""),
    ("{name: s}", "{name: s, ecn: {kmin: 5}, lossless: 9}", 7, "0 to 7"),
)


def wrong():
    for old, new, line, says in BAD:
        path = os.path.join(tmp.name, "bad.yaml")
        with open(path, "w", encoding="utf-8") as f:
            f.write(GOOD.replace(old, new, 1))
        out = sim(path, status=125)
        assert "bad.yaml:%d: " % line in out and says in out, (new, out)
    path = os.path.join(tmp.name, "lonely.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(GOOD.replace("[ab]", "a"))
    assert "no cable" in sim(path, status=125)
    assert "cannot be read" in sim("/nonexistent.yaml", status=125)


def interrupted():
    path = os.path.join(tmp.name, "long.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(GOOD.replace("10us", "500s"))
    p = subprocess.Popen([SOFTHCA, "sim", path], text=True,
                         stdout=subprocess.PIPE)
    while not p.stdout.readline().startswith("# flow"):
        pass
    p.send_signal(signal.SIGINT)
    try:
        out = p.communicate(timeout=LIMIT_S)[0]
    finally:
        p.kill()
    assert "interrupted" in out and "messages done" in out, out


TESTS = (
    ("25 Gb/s behind 100", bottleneck),
    ("the same with DCQCN", bottleneck_dcqcn),
    ("20 to 1", incast),
    ("a victim of PFC, and its rescue", victim),
    ("parking lot", parking_lot),
    ("PFC deadlock and the watchdog", deadlock),
    ("go-back-N", lossy),
    ("flows that start apart", fairness),
    ("RNR is no congestion", rnr),
    ("a slow receiver", slow_receiver),
    ("posting and sending", posting_rate),
    ("a seed repeats its run", repeats),
    ("a picture", picture),
    ("errors name the place", wrong),
    ("a partial report", interrupted),
)

for name_, function_ in TESTS:
    test(name_, function_)
print("1..%d" % number)
sys.exit(failed != 0)
