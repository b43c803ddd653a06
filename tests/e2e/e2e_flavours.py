#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Programs as their developers build and watch them: with sanitizers, under
valgrind and gdb. The program is one of ours, compiled here with plain cc."""
import os
import subprocess

from e2e_lib import (Skip, done, expect, in_own_netns, need, run_pair, test,
                     tmp_dir)

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = [os.path.join(HERE, f) for f in ("onesided.c", "pairlib.c")]
SIZE, ROUNDS = 2000, 20


def build(name, *flags, cc="cc"):
    """The program of this flavour; skipped where it cannot be made or does
    not start (a kernel whose address space the runtime does not know)."""
    need(cc)
    path = os.path.join(tmp_dir(), name)
    made = subprocess.run(
        [cc, "-g", "-O1", *flags, "-o", path, *SOURCES, "-libverbs"],
        check=False, capture_output=True, text=True)
    if made.returncode:
        raise Skip("%s %s: %s" % (cc, " ".join(flags),
                                  made.stderr.strip().split("\n")[-1]))
    hello = path + "-starts"
    subprocess.run([cc, *flags, "-x", "c", "-o", hello, "-"], check=True,
                   input="int main(void) { return 0; }", text=True)
    if subprocess.run([hello], check=False, capture_output=True).returncode:
        raise Skip("no program built with %s starts here" % " ".join(flags))
    return path


def pair_of(cmd, opts=(), env=None):
    """WRITEs and READs that the program checks itself; our counters say that
    they went through a QP. Returns what both wrote."""
    pair = run_pair([*cmd, "-m", "sleep", "-n", ROUNDS, "-s", SIZE],
                    opts=["--verbose", *opts], env=env)
    pair.moved("client", "server", ROUNDS * SIZE)
    pair.moved("server", "client", ROUNDS * SIZE)
    return pair.server.output(), pair.client.output()


def sanitized(kind, cc, runtime, opts=()):
    path = build("one-%s-%s" % (cc, kind), "-fsanitize=" + kind, cc=cc)
    env = {"ASAN_OPTIONS": "exitcode=66", "TSAN_OPTIONS": "exitcode=66",
           "UBSAN_OPTIONS": "halt_on_error=1"}
    for text in pair_of([path], opts, env):
        expect("Sanitizer" not in text and "runtime error" not in text, text)
        if runtime and "--no-preload" not in opts:
            expect(runtime in text and "goes in front" in text, text)


def valgrind():
    need("valgrind")
    path = build("one-valgrind")
    for text in pair_of(["valgrind", "--error-exitcode=9", path]):
        expect("ERROR SUMMARY: 0 errors" in text, text)


def gdb():
    need("gdb")
    path = build("one-gdb")
    cmd = ["gdb", "-batch", "-nx", "-return-child-result", "-ex", "run"]
    probe = subprocess.run([*cmd, "--args", "true"], check=False,
                           capture_output=True, text=True)
    if probe.returncode:
        raise Skip("gdb cannot run a program here")
    for text in pair_of([*cmd, "--args", path]):
        expect("exited normally" in text, text)


def main():
    test("address sanitizer", sanitized, "address", "cc", "libasan")
    test("address sanitizer, nothing preloaded", sanitized, "address", "cc",
         None, ["--no-preload"])
    test("undefined-behaviour sanitizer", sanitized, "undefined", "cc", None)
    test("thread sanitizer", sanitized, "thread", "cc", "libtsan")
    test("address sanitizer of clang", sanitized, "address", "clang", None)
    test("valgrind", valgrind)
    test("gdb", gdb)
    done()


in_own_netns()
main()
