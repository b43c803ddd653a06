# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What readelf says about a library, and TAP."""
import re
import subprocess
import sys

_count = 0
_failed = 0


def check(name, problems):
    """One line of TAP; problems: a list of texts, empty when all is well."""
    global _count, _failed
    _count += 1
    problems = list(problems)
    _failed += bool(problems)
    print("%s %d - %s" % ("not ok" if problems else "ok", _count, name))
    for p in problems[:40]:
        print("# " + p)


def skip(name, why):
    global _count
    _count += 1
    print("ok %d - %s # SKIP %s" % (_count, name, why))


def done():
    print("1..%d" % _count)
    sys.exit(1 if _failed else 0)


def readelf(*args):
    return subprocess.run(["readelf", "-W"] + list(args), check=True,
                          capture_output=True, text=True).stdout


def dynamic(path):
    """(needed libraries, soname or None, set of flags)"""
    text = readelf("-d", path)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
    soname = re.search(r"\(SONAME\).*\[(.*)\]", text)
    flags = set()
    for m in re.finditer(r"\(FLAGS(?:_1)?\)\s+(?:Flags:)?(.*)", text):
        flags.update(m.group(1).split())
    return needed, soname.group(1) if soname else None, flags


def symbols(path):
    """(exported, wanted): sets of (name, version or '')."""
    exported, wanted = set(), set()
    for line in readelf("--dyn-syms", path).splitlines():
        w = line.split()
        if len(w) < 8 or not w[0].rstrip(":").isdigit():
            continue
        kind, bind, index, name = w[3], w[4], w[6], w[7]
        if bind == "LOCAL":
            continue
        name, _, version = name.replace("@@", "@").partition("@")
        if index == "UND":
            wanted.add((name, version, bind))
        elif kind != "OBJECT" or index != "ABS":  # not a node's own symbol
            exported.add((name, version))
    return exported, wanted


def list_exports(path):
    """{(name, node)} of a list of exports (see src/shim/gen_abi.py)."""
    names, node = set(), None
    with open(path, encoding="ascii") as f:
        for line in f:
            line = line.split("#")[0].strip()
            if line.startswith("["):
                node = line.strip("[]").split("<")[0].strip()
            elif line:
                names.add((line.split()[0], node))
    return names
