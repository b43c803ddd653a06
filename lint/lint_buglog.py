#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""tests/buglog.md has every row, and says the truth about each: a tested row is
named by a test, any other is not. What is open is printed, and is no finding."""
import os
import re
import sys

from lint_lib import Report, lines, read, tree_files

LOG = "tests/buglog.md"
# The rows by group. Numbers have gaps.
ROWS = {
    1: "1 2 4 5 7 8 10 11 13 14 16 17 19 20 22 23 25 26",
    2: "28 29 31 32 34 35 37 38 40 41 43 44 46 47 49",
    3: "50 52 53 55 56 58 59 61 62 64 65 67 68",
    4: "70 71 73 74",
    5: "76 77 79 80 82 83 85 86 88 89 91 92",
    6: "94 95 97 98 100 101 103 104 106 107 109 110 112 113 115 116 118",
    7: "119 121 122 124 125 127 128 130 131 133",
    8: "134 136 137 139 140 142 143 145 146 148 149 151 152 154",
    12: "193 194 196 197",
}
ROW = re.compile(r"^\| (B\d{3}) \| [^|]+ \| ([^|]+) \|$")
REASON = re.compile(r"^not here: .{10,}$")
SOURCES = (".c", ".h", ".py", ".pkt", ".sh", "meson.build")


def named_by_tests(root):
    names = set()
    for path in tree_files(root):
        if path.startswith("tests" + os.sep) and path.endswith(SOURCES):
            names |= set(re.findall(r"\bB\d{3}\b", read(root, path)))
    return names


def check_state(report, n, row, state, named):
    """The state as one word."""
    if state == "tested":
        if row not in named:
            report.add(LOG, n, "no test names " + row)
        return "tested"
    if state == "open" and row in named:
        report.add(LOG, n, "%s is tested: say so" % row)
    elif state != "open" and not REASON.match(state):
        report.add(LOG, n, "state of %s: %r" % (row, state))
    return state.split(":")[0]


def main():
    root = sys.argv[1]
    report = Report("buglog")
    named = named_by_tests(root)
    want = ["B%03d" % int(i) for g in ROWS.values() for i in g.split()]
    seen, count = [], {}
    for n, line in lines(root, LOG):
        m = ROW.match(line)
        if m:
            report.saw()
            seen.append(m.group(1))
            s = check_state(report, n, m.group(1), m.group(2), named)
            count.setdefault(s, []).append(m.group(1))
        elif line.startswith("| B"):
            report.add(LOG, n, "not a row: " + line)
    if seen != want:
        report.add(LOG, 1, "rows missing or out of order: %s" %
                   " ".join(sorted(set(want) ^ set(seen)) or ["order"]))
    print("buglog: " + ", ".join("%d %s" % (len(v), k)
                                 for k, v in sorted(count.items())))
    print("buglog: open: " + " ".join(count.get("open", ["none"])))
    report.exit()


main()
