#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Runs `meson test` and says what it came to.

    run_tests.py BUILD [BUILD...] [--suite S]... [--allowed-skips FILE]
                 [--timeout-multiplier N]

Counts single tests: the lines of a TAP program, the functions of a cmocka
program, one for any other program. A program that fails without a failed
line of its own (a crash, a timeout) counts as one failure. Prints the time of
each suite and, as the last line, "N passed, N failed, N skipped". The exit
status is 0 when nothing failed and, with --allowed-skips, nothing was skipped
that the file does not allow.
"""
import argparse
import collections
import fnmatch
import json
import os
import re
import subprocess
import sys

TAP_LINE = re.compile(
    r"^(not )?ok\b\s*\d*\s*(?:-\s*)?([^#\n]*)(?:#\s*(\w+)([^\n]*))?", re.M)
CMOCKA_LINE = re.compile(r"^\[\s+(OK|FAILED|SKIPPED)\s+\] (\w+)\s*$", re.M)
GOOD = {"OK", "EXPECTEDFAIL"}


class Tally:
    """What one test program, or a sum of them, came to."""

    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []
        self.seconds = 0.0

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.seconds += other.seconds

    def closing(self):
        return "%d passed, %d failed, %d skipped" % (
            self.passed, len(self.failed), len(self.skipped))


def tap_lines(text):
    """(outcome, name) of each line of a TAP program's output. cmocka writes a
    skipped test as "not ok 4 # SKIP name"."""
    for bad, name, directive, rest in TAP_LINE.findall(text):
        if directive.lower() == "skip":
            yield "skip", name.strip() or rest.strip()
        elif bad:
            yield "fail", name.strip()
        else:
            yield "pass", name.strip()


def cmocka_lines(text):
    outcome = {"OK": "pass", "FAILED": "fail", "SKIPPED": "skip"}
    seen = set()
    for word, name in CMOCKA_LINE.findall(text):
        # cmocka lists what failed once more at the end.
        if (word, name) not in seen:
            seen.add((word, name))
            yield outcome[word], name


def plain_name(entry):
    """Meson writes "project:suite / name" or just "name"."""
    return entry["name"].split(" / ")[-1]


def suites_of(build):
    """test name -> suite, as meson.build has them."""
    out = subprocess.run(["meson", "introspect", "--tests", build],
                         check=True, capture_output=True, text=True).stdout
    return {t["name"]: t["suite"][0].split(":")[-1]
            for t in json.loads(out)}


def count_program(entry, suite):
    """The Tally of one entry of meson's testlog."""
    t = Tally()
    t.seconds = entry["duration"]
    name = "%s/%s" % (suite, plain_name(entry))
    text = entry.get("stdout", "")
    lines = []
    if re.search(r"^(TAP version|1\.\.\d+)", text, re.M):
        lines = list(tap_lines(text))
    elif "[==========]" in text + entry.get("stderr", ""):
        lines = list(cmocka_lines(text + "\n" + entry.get("stderr", "")))
    for outcome, what in lines:
        full = "%s: %s" % (name, what)
        if outcome == "pass":
            t.passed += 1
        elif outcome == "fail":
            t.failed.append(full)
        else:
            t.skipped.append(full)
    result = entry["result"]
    if t.skipped and not t.failed and entry["returncode"] == 0:
        result = "OK"  # meson takes cmocka's way of skipping for a failure
    if result == "SKIP" and not t.skipped:
        t.skipped.append(name)
    elif result in GOOD and not lines:
        t.passed += 1
    elif result not in GOOD | {"SKIP"} and not t.failed:
        t.failed.append("%s: %s" % (name, result.lower()))
    return t


def run_meson(build, suites, multiplier):
    """Runs the tests of one build directory; returns the log's entries."""
    log = os.path.join(build, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.unlink(log)
    cmd = ["meson", "test", "-C", build, "--no-rebuild", "--print-errorlogs"]
    for s in suites:
        cmd += ["--suite", s]
    if multiplier:
        cmd += ["--timeout-multiplier", multiplier]
    rc = subprocess.run(cmd, check=False).returncode
    if not os.path.exists(log):
        sys.exit("run_tests: meson test left no log (exit status %d)" % rc)
    with open(log, encoding="utf-8") as f:
        entries = [json.loads(line) for line in f if line.strip()]
    if not entries:
        sys.exit("run_tests: no tests ran")
    return entries


def print_suites(suites):
    width = max(len(s) for s in suites)
    print("\n%-*s  passed  failed  skipped   seconds" % (width, "suite"))
    for name, t in suites.items():
        print("%-*s  %6d  %6d  %7d  %8.1f" % (
            width, name, t.passed, len(t.failed), len(t.skipped), t.seconds))


def allowed_patterns(path):
    with open(path, encoding="utf-8") as f:
        lines = [line.split("#")[0].strip() for line in f]
    return [line for line in lines if line]


def forbidden_skips(skipped, path):
    patterns = allowed_patterns(path)
    return [s for s in skipped
            if not any(fnmatch.fnmatchcase(s, p) for p in patterns)]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("build", nargs="+")
    ap.add_argument("--suite", action="append", default=[])
    ap.add_argument("--allowed-skips")
    ap.add_argument("--timeout-multiplier")
    args = ap.parse_args()

    total = Tally()
    suites = collections.OrderedDict()
    for build in args.build:
        suite_of = suites_of(build)
        for entry in run_meson(build, args.suite, args.timeout_multiplier):
            suite = suite_of[plain_name(entry)]
            t = count_program(entry, suite)
            suites.setdefault(suite, Tally()).add(t)
            total.add(t)

    print_suites(suites)
    for name in total.failed:
        print("failed:  " + name)
    for name in total.skipped:
        print("skipped: " + name)
    bad = []
    if args.allowed_skips:
        bad = forbidden_skips(total.skipped, args.allowed_skips)
        for name in bad:
            print("skipped, but not allowed to be: " + name)
    closing = total.closing()
    with open(os.path.join(args.build[0], "closing_line.txt"), "w",
              encoding="ascii") as f:
        f.write(closing + "\n")
    print(closing, flush=True)
    return 1 if total.failed or bad else 0


if __name__ == "__main__":
    sys.exit(main())
