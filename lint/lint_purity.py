#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The machines are pure: base, wire, core, fabric and sim call nothing but
each other (downwards) and mem*, str*, abort; and hold no mutable globals.

    lint_purity.py ROOT NM OBJDUMP LAYER=ARCHIVE...     lowest layer first
"""
import re
import subprocess
import sys

from lint_lib import Report

ALLOWED = re.compile(
    r"^(mem\w+|str\w+|abort|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_"
    r"|__(asan|ubsan|tsan|sanitizer|gcov)_\w+)$")
# __cpu_*: what instructions the machine has, found by the compiler's runtime.
ALLOWED_IN = {"base": re.compile(r"^(libdeflate_\w+|__cpu_(model|features2))$")}
MUTABLE = re.compile(r"^(\.t?data(\..*)?|\.t?bss(\..*)?|\*COM\*)$")
CONSTANT = re.compile(r"^\.data\.rel\.ro(\..*)?$")
SANITIZER = re.compile(r"(asan|ubsan|tsan|gcov|\.LASAN)")


def run(*cmd):
    return subprocess.run(cmd, check=True, capture_output=True,
                          text=True).stdout


def undefined(nm, archive):
    """(object, symbol) of each undefined symbol."""
    for line in run(nm, "-A", "--undefined-only", archive).splitlines():
        place, symbol = line.rsplit(None, 1)
        yield place.split(":")[1], symbol


def defined(nm, archive):
    out = run(nm, "--defined-only", "--extern-only", archive)
    return {line.split()[2] for line in out.splitlines()
            if len(line.split()) == 3}


def globals_of(objdump, archive):
    """(object, symbol, section) of each data object."""
    member = "?"
    for line in run(objdump, "-t", archive).splitlines():
        m = re.match(r"^(\S+):\s+file format", line)
        if m:
            member = m.group(1)
        m = re.match(r"^[0-9a-f]+ .{6}O (\S+)\s+[0-9a-f]+\s+(?:\.hidden )?"
                     r"(\S+)$", line)
        if m:
            yield member, m.group(2), m.group(1)


def main():
    nm, objdump = sys.argv[2:4]
    report = Report("purity")
    known = set()
    for arg in sys.argv[4:]:
        layer, archive = arg.split("=", 1)
        known |= defined(nm, archive)
        extra = ALLOWED_IN.get(layer, re.compile(r"(?!)"))
        for member, symbol in undefined(nm, archive):
            report.saw()
            if symbol not in known and not ALLOWED.match(symbol) and \
                    not extra.match(symbol):
                report.add("%s/%s" % (layer, member), 0,
                           "calls %s" % symbol)
        for member, symbol, section in globals_of(objdump, archive):
            report.saw()
            if MUTABLE.match(section) and not CONSTANT.match(section) and \
                    not SANITIZER.search(symbol):
                report.add("%s/%s" % (layer, member), 0,
                           "mutable global %s (%s)" % (symbol, section))
    report.exit()


main()
