#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Makes a linker version script and C stubs out of a list of exports.

A list has nodes and under each the names that it holds:

    [NODE]            or  [NODE < PARENT]
    name kind

kind: what a call answers.
    real   defined in our sources
    also   an older node of a name that another node has, same function; a
           real one is exported by its source (ABI_ALSO, ABI_DEFAULT: abi.h)
    int    EOPNOTSUPP        neg   -EOPNOTSUPP
    fd     -1 with errno     ptr   NULL with errno
    zero   0                 false 0 (bool)      void  nothing
"""

import argparse
import sys

BODIES = {
    "int": ("int", "return EOPNOTSUPP;"),
    "neg": ("int", "return -EOPNOTSUPP;"),
    "fd": ("long", "errno = EOPNOTSUPP;\n\treturn -1;"),
    "ptr": ("void *", "errno = EOPNOTSUPP;\n\treturn NULL;"),
    "zero": ("int", "return 0;"),
    "false": ("_Bool", "return 0;"),
    "void": ("void", None),
}


def parse(path):
    """[(node, parent or None, [(name, kind)])] in file order."""
    nodes = []
    with open(path, encoding="ascii") as f:
        for number, line in enumerate(f, 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            if line.startswith("["):
                node, _, parent = line.strip("[]").partition("<")
                nodes.append((node.strip(), parent.strip() or None, []))
                continue
            words = line.split()
            if len(words) != 2 or not nodes:
                sys.exit(f"{path}:{number}: want 'name kind' under a [NODE]")
            if words[1] not in BODIES and words[1] not in ("real", "also"):
                sys.exit(f"{path}:{number}: unknown kind {words[1]}")
            nodes[-1][2].append((words[0], words[1]))
    return nodes


def version_script(nodes):
    out = []
    local = "\tlocal:\n\t\t*;\n"
    for node, parent, names in nodes:
        out.append(f"{node} {{\n")
        if names:
            out.append("\tglobal:\n")
            out.extend(f"\t\t{n};\n" for n, _ in names)
        out.append(local)
        local = ""
        out.append(f"}} {parent};\n" if parent else "};\n")
    return "".join(out)


def stub(name, kind):
    ret, body = BODIES[kind]
    sep = "" if ret.endswith("*") else " "
    body = f"\t{body}\n" if body else ""
    return (f"\nABI_EXPORT {ret}{sep}{name}(void);\n"
            f"{ret}{sep}{name}(void)\n{{\n{body}}}\n")


def twins(nodes, stubs):
    """The macros that put one stub into several nodes."""
    several = {n for _, _, names in nodes for n, k in names if k == "also"}
    for node, _, names in nodes:
        for name, kind in names:
            if name not in stubs or name not in several:
                continue
            macro = "ABI_ALSO" if kind == "also" else "ABI_DEFAULT"
            twin = f"{name}_{node}".replace(".", "_")
            yield f'\n{macro}({name}, {twin}, "{node}")\n'


def c_stubs(nodes, source):
    out = ["/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */\n",
           f"/* Made by gen_abi.py from {source}: answers for what is not "
           "built. Arguments\n * are the caller's to push and to pop. */\n",
           '#include "shim/abi.h"\n\n#include <errno.h>\n#include <stddef.h>\n']
    stubs = {}
    for _, _, names in nodes:
        for name, kind in names:
            if kind in BODIES:
                stubs[name] = kind
                out.append(stub(name, kind))
    out.extend(twins(nodes, stubs))
    out.append("\n/* a translation unit is never empty */\n"
               "extern int abi_stubs_end;\n")
    return "".join(out)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("list")
    p.add_argument("--map", required=True)
    p.add_argument("--stubs", required=True)
    a = p.parse_args()
    nodes = parse(a.list)
    with open(a.map, "w", encoding="ascii") as f:
        f.write(version_script(nodes))
    with open(a.stubs, "w", encoding="ascii") as f:
        f.write(c_stubs(nodes, a.list.rsplit("/", 1)[-1]))


if __name__ == "__main__":
    main()
