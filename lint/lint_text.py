#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Every file names its licence in an SPDX line at the top; nothing is left
"to do"; no white space at line ends."""
import re
import sys

from lint_lib import Report, lines, tree_files

SPDX = "SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only"
WITH_SPDX = (".c", ".h", ".py", ".sh", ".S", ".md", ".1", ".map",
             "meson.build", "Makefile", ".ci/run", "meson_options.txt")
WITH_TEXT = WITH_SPDX + (".txt", ".clang-format")
# Written apart, so that this file passes.
LEFT = re.compile(r"\b(TO" "DO|FIX" "ME|XX" "X|HA" "CK)\\b")


def has_spdx(root, path):
    return any(SPDX in line for n, line in lines(root, path) if n <= 2)


def main():
    root = sys.argv[1]
    report = Report("text")
    for path in tree_files(root):
        if not path.endswith(WITH_TEXT):
            continue
        report.saw()
        if path.endswith(WITH_SPDX) and not has_spdx(root, path):
            report.add(path, 1, "no SPDX line")
        for n, line in lines(root, path):
            if LEFT.search(line):
                report.add(path, n, "left to do: " + line.strip())
            if path.endswith(WITH_SPDX) and line != line.rstrip(" \t\r"):
                report.add(path, n, "white space at the end")
    report.exit()


main()
