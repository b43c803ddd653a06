#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Every subcommand of softhca is in a manual page (its own, man/softhca-X.1, or
softhca.1), with every option that its --help lists.

    lint_manpages.py ROOT SOFTHCA
"""
import os
import re
import subprocess
import sys

from lint_lib import Report, read

EVERYWHERE = {"help", "usage"}  # said once, in softhca.1


def help_of(*cmd):
    return subprocess.run([*cmd, "--help"], check=True, capture_output=True,
                          text=True).stdout


def page_of(root, name):
    """The page that describes a command, its hyphens plain: (path, text)."""
    own = "man/softhca-%s.1" % name
    path = own if os.path.exists(os.path.join(root, own)) else "man/softhca.1"
    return path, read(root, path).replace("\\-", "-")


def main():
    root, softhca = sys.argv[1:3]
    report = Report("manpages")
    commands = re.findall(r"^  (\w+)  +\S", help_of(softhca), re.M)
    for name in commands:
        report.saw()
        path, text = page_of(root, name)
        if "softhca %s" % name not in text and \
                "softhca-%s" % name not in text:
            report.add(path, 1, "nothing about softhca " + name)
        options = re.findall(r"--([a-z][\w-]*)", help_of(softhca, name))
        for option in sorted(set(options) - EVERYWHERE):
            report.saw()
            if "--" + option not in text:
                report.add(path, 1, "%s: nothing about --%s" % (name, option))
    report.exit()


main()
