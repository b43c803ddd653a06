#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Instructions of the core's hot paths, counted by callgrind, against budgets.

    bench_instructions.py PROGRAM BUILD_FLAVOUR BUDGETS [--update]

PROGRAM is instructions.c. BUDGETS has a line "FUNCTION NUMBER" for each path
and, first, the flavour of build (compiler, machine, optimisation) that the
numbers are for: elsewhere the test is skipped. A path that takes more than
SLACK above its budget fails, and so does one that takes much less: the budget
is then to be lowered, with --update.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SLACK = 0.03
FAR_BELOW = 0.10


def skip_all(reason):
    print("TAP version 13\n1..0 # SKIP " + reason)
    sys.exit(0)


def read_budgets(path):
    """(flavour, {name: instructions})."""
    flavour, found = None, {}
    with open(path, encoding="ascii") as f:
        for line in f:
            word = line.split("#")[0].split()
            if word[:1] == ["for"]:
                flavour = " ".join(word[1:])
            elif len(word) == 2:
                found[word[0]] = float(word[1])
    return flavour, found


def inclusive(path):
    """{function measured_*: instructions, with those of what it calls}."""
    found, current, call = {}, None, False
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            m = re.match(r"fn=(\S+)", line)
            if m:
                current = m[1].split("'")[0]
            elif line.startswith("calls="):
                call = True
            elif re.match(r"[\d+*-]", line):
                cost = line.split()
                if current and current.startswith("measured_") and \
                        len(cost) > 1:
                    name = current[len("measured_"):]
                    found[name] = found.get(name, 0) + int(cost[1])
                call = False
    assert not call
    return found


def count(program):
    """{path: instructions an operation}."""
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, "callgrind.out")
        p = subprocess.run(
            ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out,
             "--compress-strings=no", "--compress-pos=no",
             "--toggle-collect=measured_*", program],
            check=False, capture_output=True, text=True, timeout=100)
        ops = re.search(r"^operations (\d+)$", p.stdout, re.M)
        if p.returncode or not ops:
            sys.exit("status %d: %s%s" % (p.returncode, p.stdout, p.stderr))
        return {name: n / int(ops[1]) for name, n in inclusive(out).items()}


def judge(name, n, budget):
    """What is wrong, or nothing."""
    if n is None:
        return "is not measured any more"
    if budget is None:
        return "%.1f instructions, and no budget" % n
    if n > budget * (1 + SLACK):
        return ("%.1f instructions, the budget is %.1f; worth it? ninja -C "
                "BUILD instruction-budgets" % (n, budget))
    if n < budget * (1 - FAR_BELOW):
        return ("%.1f instructions, far below the budget of %.1f: lower it "
                "(ninja -C BUILD instruction-budgets)" % (n, budget))
    return None


def update(path, flavour, counts):
    with open(path, encoding="ascii") as f:
        head = [line for line in f if line.startswith("#")]
    with open(path, "w", encoding="ascii") as f:
        f.writelines(head)
        f.write("for %s\n" % flavour)
        for name, n in sorted(counts.items()):
            f.write("%-20s %7.1f\n" % (name, n))


def main():
    program, flavour, path = sys.argv[1:4]
    if not shutil.which("valgrind"):
        skip_all("no valgrind")
    if "--update" in sys.argv:
        update(path, flavour, count(program))
        return
    wanted, budgets = read_budgets(path)
    if wanted != flavour:
        skip_all("budgets are for %s, this is %s" % (wanted, flavour))
    counts = count(program)
    names = sorted(set(budgets) | set(counts))
    failed = 0
    for i, name in enumerate(names, 1):
        trouble = judge(name, counts.get(name), budgets.get(name))
        failed += trouble is not None
        print("%sok %d - %s%s" % ("not " if trouble else "", i, name,
                                  "\n# " + trouble if trouble else ""))
        if trouble:
            print("%s: %s" % (name, trouble), file=sys.stderr)
        elif name in counts:
            print("# %.1f instructions" % counts[name])
    print("1..%d" % len(names))
    sys.exit(1 if failed else 0)


main()
