#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Every C file is as clang-format (.clang-format) leaves it. Exit status 77
(skipped) without clang-format."""
import os
import shutil
import subprocess
import sys

from lint_lib import Report, c_files, read


def main():
    root = sys.argv[1]
    tool = shutil.which("clang-format")
    if not tool:
        print("format: no clang-format")
        sys.exit(77)
    report = Report("format")
    for path in c_files(root):
        report.saw()
        out = subprocess.run(
            [tool, "--style=file", os.path.join(root, path)],
            capture_output=True, text=True, check=True).stdout
        if out != read(root, path):
            report.add(path, 1, "not clang-formatted")
    report.exit()


main()
