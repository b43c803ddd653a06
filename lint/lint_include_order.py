#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""A .c file with a header of its own includes that first, so that the header
is seen to need nothing before it."""
import os
import sys

from lint_lib import Report, c_files, includes


def main():
    root = sys.argv[1]
    report = Report("include order")
    headers = {f[len("src/"):] for f in c_files(root, "src")
               if f.endswith(".h")}
    for path in c_files(root, "src"):
        own = os.path.splitext(path)[0][len("src/"):] + ".h"
        if not path.endswith(".c") or own not in headers:
            continue
        report.saw()
        first = next(iter(includes(root, path)), (1, "", ""))
        if first[2] != own:
            report.add(path, first[0], 'first include is not "%s"' % own)
    report.exit()


main()
