#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Each header compiles alone, and has a guard of its own name.

    lint_headers.py ROOT CC
"""
import os
import re
import subprocess
import sys

from lint_lib import Report, c_files, read


def compiles(root, cc, path):
    """The compiler's complaint, or an empty string."""
    cmd = cc.split() + ["-std=gnu11", "-Wall", "-Wextra", "-Werror",
                        "-fsyntax-only", "-I", os.path.join(root, "src"),
                        "-I", root, "-I", os.path.join(root, "tools"),
                        "-x", "c", "-"]
    text = '#include "%s"\n' % os.path.join(root, path)
    return subprocess.run(cmd, input=text, capture_output=True, text=True,
                          check=False).stderr


def main():
    root, cc = sys.argv[1:3]
    report = Report("headers")
    guards = {}
    for path in c_files(root, "src", "tools", "tests"):
        if not path.endswith(".h"):
            continue
        report.saw()
        err = compiles(root, cc, path)
        if err:
            report.add(path, 1, "does not compile alone:\n" + err)
        m = re.search(r"^#ifndef (SOFTHCA_\w+_H)\n#define \1$",
                      read(root, path), re.M)
        if not m:
            report.add(path, 1, "no guard SOFTHCA_..._H")
        elif guards.setdefault(m.group(1), path) != path:
            report.add(path, 1, "guard %s is also %s's" % (
                m.group(1), guards[m.group(1)]))
    report.exit()


main()
