#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""File names are unique in the whole tree, so that "rc_rsp.c:120" is
unambiguous in a log. Data (corpora, golden files, captures) is exempt."""
import os
import sys

from lint_lib import Report, tree_files

EVERYWHERE = {"meson.build", "README.md"}
NAMED = (".c", ".h", ".py", ".sh", ".md", ".1", ".S")


def main():
    root = sys.argv[1]
    report = Report("names")
    seen = {}
    for path in tree_files(root):
        name = os.path.basename(path)
        if not name.endswith(NAMED) or name in EVERYWHERE:
            continue
        report.saw()
        if seen.setdefault(name, path) != path:
            report.add(path, 1, "same name as " + seen[name])
    report.exit()


main()
