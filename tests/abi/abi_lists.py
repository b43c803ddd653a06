#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Our libraries export their lists and nothing else, need nothing but libc,
and serve what is known to be linked or looked up by programs.

Arguments: directory of the built libraries, directory src/shim."""
import os
import re
import sys

from abi_elf import check, done, dynamic, list_exports, readelf, symbols

GLIBC_MAX = (2, 34)
lib_dir, src_dir = sys.argv[1:3]
here = os.path.dirname(os.path.abspath(__file__))

# library -> (file, list)
VERSIONED = {
    "ibverbs": ("libibverbs.so.1", "verbs/symbols.list"),
    "mlx5": ("libmlx5.so.1", "stub/mlx5.list"),
    "mlx4": ("libmlx4.so.1", "stub/mlx4.list"),
    "efa": ("libefa.so.1", "stub/efa.list"),
    "mana": ("libmana.so.1", "stub/mana.list"),
    "hns": ("libhns.so.1", "stub/hns.list"),
}
PRELOAD = "libsofthca_path.so"


def lib(name):
    return os.path.join(lib_dir, name)


def glibc_newer(wanted):
    """Versions of glibc above the limit."""
    for name, version, _ in sorted(wanted):
        m = re.match(r"GLIBC_(\d+)\.(\d+)", version)
        if m and (int(m.group(1)), int(m.group(2))) > GLIBC_MAX:
            yield "%s@%s" % (name, version)


def how_linked(path):
    needed, soname, flags = dynamic(path)
    if set(needed) - {"libc.so.6"}:
        yield "needs %s" % needed
    base = os.path.basename(path)
    if base.endswith(".so.1") and soname != base:
        yield "soname %s" % soname
    for flag in ("NOW", "NODELETE"):
        if flag not in flags:
            yield "no -z %s" % flag.lower()
    if "TEXTREL" in readelf("-d", path):
        yield "text relocations"
    if re.search(r"GNU_STACK .* RWE", readelf("-l", path)):
        yield "executable stack"


def unresolved(wanted):
    """Strong references that libc does not answer have no version."""
    return ("wants %s" % n for n, v, bind in sorted(wanted)
            if not v and bind != "WEAK")


def difference(have, want):
    for s in sorted(want - have):
        yield "missing: %s@%s" % s
    for s in sorted(have - want):
        yield "extra: %s@%s" % s


exports = {}
for name, (file, listing) in VERSIONED.items():
    exported, wanted = symbols(lib(file))
    exports[name] = exported
    want = list_exports(os.path.join(src_dir, listing))
    check("%s exports its list" % file, difference(exported, want))
    check("%s needs libc only, of glibc 2.34 at most" % file,
          list(how_linked(lib(file))) + list(glibc_newer(wanted)) +
          list(unresolved(wanted)))
    check("%s has an unversioned link" % file,
          [] if os.path.realpath(lib(file[:-2])) ==
          os.path.realpath(lib(file)) else ["no link %s" % file[:-2]])

exported, wanted = symbols(lib(PRELOAD))
with open(os.path.join(src_dir, "path/path.map"), encoding="ascii") as f:
    body = re.search(r"global:(.*)local:", f.read(), re.S).group(1)
check("%s exports its map" % PRELOAD,
      difference(exported, {(n.strip(), "") for n in body.split(";")
                            if n.strip()}))
check("%s needs libc only, of glibc 2.34 at most" % PRELOAD,
      list(how_linked(lib(PRELOAD))) + list(glibc_newer(wanted)) +
      list(unresolved(wanted)))

needed = {}
with open(os.path.join(here, "needed.list"), encoding="ascii") as f:
    for line in f:
        w = line.split("#")[0].split()
        if w:
            needed.setdefault(w[0], set()).add(tuple(w[1].split("@")))
for name, names in needed.items():
    check("lib%s serves the programs that are known (%d names)" %
          (name, len(names)),
          ("missing: %s@%s" % s for s in sorted(names - exports[name])))
done()
