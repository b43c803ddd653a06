#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The layer rule: who may include whom (ARCHITECTURE.md, "Layers")."""
import sys

from lint_lib import Report, c_files, includes

# layer -> the layers that its files may include from, itself apart.
MAY_USE = {
    "base": set(),
    "wire": {"base"},
    "core": {"base", "wire"},
    "fabric": {"base", "wire"},
    "link": {"base", "wire"},
    "sim": {"base", "wire", "core", "fabric"},
    "rt": {"base", "wire", "core", "fabric", "link"},
    "shim": {"base", "wire", "core", "rt"},
    "tools": {"base", "wire", "core", "fabric", "link", "rt", "sim"},
}

# What a driver (rt, sim) and a tool may see of the core: its outside.
CORE_OUTSIDE = {"core/hca.h", "core/types.h", "core/counters.h",
                "core/verbs.h", "core/cm/cm.h"}
# And the shim: types and pure helpers.
SHIM_MAY_SEE = CORE_OUTSIDE | {"wire/net.h"}

# The machines see no operating system: these headers of libc and no others.
MACHINES = {"base", "wire", "core", "fabric", "sim"}
PURE_HEADERS = {"errno.h", "inttypes.h", "limits.h", "stdalign.h",
                "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h",
                "stdlib.h", "string.h"}
EXTRA_HEADERS = {"base": {"libdeflate.h", "immintrin.h"}}


def layer_of(path):
    parts = path.split("/")
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    return "tools" if parts[0] == "tools" else None


def target_layer(name):
    top = name.split("/")[0]
    return top if "/" in name and top in MAY_USE else None


def check_ours(layer, name):
    """Why `layer` must not include our header `name`, or None."""
    other = target_layer(name)
    if other is None:
        return "include of our own header without its layer's path"
    if other == layer:
        return None
    if other not in MAY_USE[layer]:
        return "%s must not include from %s" % (layer, other)
    if other == "core" and layer in ("rt", "sim", "tools") and \
            name not in CORE_OUTSIDE:
        return "%s may see only the core's outside, not %s" % (layer, name)
    if layer == "shim" and other in ("core", "wire") and \
            name not in SHIM_MAY_SEE:
        return "shim translates; it must not see %s" % name
    return None


def check_system(layer, name):
    if layer not in MACHINES:
        return None
    if name in PURE_HEADERS | EXTRA_HEADERS.get(layer, set()):
        return None
    return "%s sees no operating system: <%s>" % (layer, name)


def main():
    root = sys.argv[1]
    report = Report("layers")
    for path in c_files(root, "src", "tools"):
        layer = layer_of(path)
        if layer not in MAY_USE:
            report.add(path, 1, "a file outside the layers")
            continue
        for n, quote, name in includes(root, path):
            report.saw()
            check = check_ours if quote == '"' else check_system
            why = check(layer, name)
            if why:
                report.add(path, n, why)
    report.exit()


main()
