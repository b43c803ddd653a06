#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""As uid 65534 with no capability at all, from an installed copy."""
import os
import re
import subprocess

from e2e_lib import (Skip, done, expect, in_own_netns, need, run, run_pair,
                     test, tmp_dir)

BUILD = os.environ.get("BUILD", "build")
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
          "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]


def installed_copy():
    """Installs into a directory that everybody can read; the command there.
    That the build directory is not used is seen by nobody not reading it."""
    root = os.path.join(tmp_dir(), "root")
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild",
                    "--quiet", "--destdir", root], check=True,
                   capture_output=True)
    for base, _, files in os.walk(root):
        if "softhca" in files and os.path.basename(base) == "bin":
            return os.path.join(base, "softhca")
    raise AssertionError("no softhca in the installed copy")


def as_nobody():
    need("setpriv")
    if os.getuid():
        raise Skip("only root can become uid 65534")
    return NOBODY


def no_capability():
    _, text = run(["grep", "-E", "Uid|CapEff", "/proc/self/status"],
                  prefix=as_nobody(), softhca=SOFTHCA)
    cap = re.search(r"CapEff:\s*(\w+)", text)
    expect(cap and int(cap.group(1), 16) == 0, text)
    expect(re.search(r"Uid:\s*65534\s+65534", text), text)
    print("# CapEff=%d" % int(cap.group(1), 16))


def pair_as_nobody(args, n_bytes):
    pair = run_pair(args, prefix=as_nobody(), softhca=SOFTHCA,
                    opts=["--rcvbuf", "stock"])
    pair.no_loss()
    pair.moved("client", "server", n_bytes)


# Port 4791 of an address belongs to one user: away from everybody else's.
in_own_netns()
SOFTHCA = installed_copy()


def main():
    os.chmod(tmp_dir(), 0o1777)
    test("no capability", no_capability)
    test("ibv_devinfo", lambda: expect(
        run(["ibv_devinfo"], prefix=as_nobody(), softhca=SOFTHCA)[0] == 0,
        "ibv_devinfo failed"))
    test("ibv_rc_pingpong", pair_as_nobody,
         ["ibv_rc_pingpong", "-g", 0, "-n", 1000], 4096000)
    test("ib_write_bw", pair_as_nobody,
         ["ib_write_bw", "-F", "-n", 1000], 65536000)
    done()


main()
