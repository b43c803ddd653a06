#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Every C file is as clang-format (.clang-format) leaves it. Exit status 77
(skipped) without clang-format."""
import os
import re
import shutil
import subprocess
import sys

from lint_lib import Report, c_files

COMPLAINT = re.compile(r"^(.+?):(\d+):\d+: (?:warning|error):", re.M)


def main():
    root = sys.argv[1]
    tool = shutil.which("clang-format")
    if not tool:
        print("format: no clang-format")
        sys.exit(77)
    report = Report("format")
    files = c_files(root)
    report.saw(len(files))
    out = subprocess.run(
        [tool, "--style=file", "--dry-run"] +
        [os.path.join(root, f) for f in files],
        capture_output=True, text=True, check=True).stderr
    for path, line in sorted(set(COMPLAINT.findall(out))):
        report.add(os.path.relpath(path, root), int(line),
                   "not clang-formatted")
    report.exit()


main()
