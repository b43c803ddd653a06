#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""No file over 1,200 lines, no function over 70.

Relies on the format (lint_format.py): the braces of a function, and only
those, stand alone in column 1. The length counts from brace to brace.
"""
import sys

from lint_lib import Report, lines, read, tree_files

FILE_LINES = 1200
FUNCTION_LINES = 70


def functions(root, path):
    """(first line, length) of each function body of a C file."""
    start = None
    for n, line in lines(root, path):
        if line == "{":
            start = n
        elif line == "}" and start is not None:
            yield start, n - start + 1
            start = None


def main():
    root = sys.argv[1]
    report = Report("sizes")
    for path in tree_files(root):
        if not path.endswith((".c", ".h", ".py", ".sh")):
            continue
        report.saw()
        n = read(root, path).count("\n")
        if n > FILE_LINES:
            report.add(path, n, "file has more than %d lines" % FILE_LINES)
        if not path.endswith((".c", ".h")):
            continue
        for first, length in functions(root, path):
            report.saw()
            if length > FUNCTION_LINES:
                report.add(path, first, "function of %d lines" % length)
    report.exit()


main()
