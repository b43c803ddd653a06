# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What the lints share: the tree's files, and how findings are reported.

A lint is a program that gets the source root as its first argument, prints
one line "file:line: what" a finding and exits with 1 when there was any.
"""
import os
import re
import sys

# Only what a checkout holds: no build directories, no captures.
SKIP_DIRS = {".git", "out", "__pycache__"}


def tree_files(root):
    """Paths relative to root of all source files of the tree, sorted."""
    found = []
    for base, dirs, files in os.walk(root):
        dirs[:] = sorted(d for d in dirs if d not in SKIP_DIRS and
                         not os.path.exists(os.path.join(base, d,
                                                         "build.ninja")))
        for name in files:
            if not name.endswith((".pyc", ".pcap")):
                found.append(os.path.relpath(os.path.join(base, name), root))
    return sorted(found)


def c_files(root, *tops):
    """The .c and .h files under these top directories (all when none)."""
    return [f for f in tree_files(root) if f.endswith((".c", ".h")) and
            (not tops or f.split(os.sep)[0] in tops)]


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


def lines(root, path):
    """(number, line) of each line of a file."""
    return enumerate(read(root, path).split("\n"), 1)


INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


def includes(root, path):
    """(line number, '"' or '<', file) of each include directive."""
    for n, line in lines(root, path):
        m = INCLUDE.match(line)
        if m:
            yield n, m.group(1), m.group(2)


class Report:
    """Findings of one lint; what it looked at, so that nothing is not
    mistaken for all well."""

    def __init__(self, what):
        self.what = what
        self.looked = 0
        self.findings = 0

    def saw(self, n=1):
        self.looked += n

    def add(self, path, line, text):
        self.findings += 1
        print("%s:%d: %s" % (path, line, text))

    def exit(self):
        print("%s: %d looked at, %d findings" % (
            self.what, self.looked, self.findings))
        if self.looked == 0:
            print("%s: nothing to look at" % self.what)
            sys.exit(1)
        sys.exit(1 if self.findings else 0)
