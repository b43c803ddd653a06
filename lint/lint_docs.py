#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What the documents name exists: functions `f()`, files, and the documents that
comments refer to."""
import os
import re
import sys

from lint_lib import Report, lines, read, tree_files

FUNCTION = re.compile(r"`(\w+)\(\)`")
FILE = re.compile(r"(?<![\w>*])`?([\w./*-]+\.(?:c|h|py|sh|md))\b`?")
DOC_IN_CODE = re.compile(r"\b(docs/[\w/-]+\.md|[A-Z]{4,}\.md)\b")
# Functions that belong to others.
FOREIGN = re.compile(r"^(ibv|rdma)_\w+$")


def known_words(root, files):
    words = set()
    for path in files:
        if path.endswith((".c", ".h", ".S", ".py")):
            words |= set(re.findall(r"\w+", read(root, path)))
    return words


def check_document(root, report, path, words, files):
    names = {os.path.basename(f) for f in files}
    for n, line in lines(root, path):
        for f in FUNCTION.findall(line):
            report.saw()
            if f not in words and not FOREIGN.match(f):
                report.add(path, n, "no function %s()" % f)
        for f in FILE.findall(line):
            report.saw()
            if "*" not in f and os.path.basename(f) not in names:
                report.add(path, n, "no file " + f)


def main():
    root = sys.argv[1]
    report = Report("docs")
    files = tree_files(root)
    words = known_words(root, files)
    for path in files:
        if path.endswith(".md"):
            check_document(root, report, path, words, files)
        elif path.endswith((".c", ".h", ".py", ".sh", "meson.build")):
            for n, line in lines(root, path):
                for doc in DOC_IN_CODE.findall(line):
                    report.saw()
                    if doc not in files:
                        report.add(path, n, "no document " + doc)
    report.exit()


main()
