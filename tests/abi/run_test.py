#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""`softhca run` as a command: environment, files, exit statuses, complaints.

Argument: the softhca command."""
import os
import shutil
import struct
import subprocess
import sys
import tempfile

from abi_elf import check, done

SOFTHCA = os.path.abspath(sys.argv[1])
tmp = tempfile.mkdtemp(prefix="softhca-run-")
os.chdir(tmp)


def softhca(*args, env=None):
    full = dict(os.environ, **(env or {}))
    full.setdefault("LC_ALL", "C")
    return subprocess.run([SOFTHCA] + list(args), capture_output=True,
                          text=True, env=full, check=False, timeout=30)


def variables(*options, env=None):
    """The environment that the program gets."""
    r = softhca("run", *options, "env", env=env)
    return dict(line.split("=", 1) for line in r.stdout.splitlines()
                if "=" in line)


def differ(**pairs):
    """'name is x, want y' for each name=(x, y) that differs."""
    return ["%s is %r, want %r" % (k, a, b)
            for k, (a, b) in pairs.items() if a != b]


def options():
    e = variables("-v", "--no-offload", "--icrc", "strict", "--rcvbuf",
                  "stock", "--umem=kernel", "--seed", "0x7")
    want = {"SOFTHCA_VERBOSE": "1", "SOFTHCA_OFFLOAD": "0",
            "SOFTHCA_ICRC": "strict", "SOFTHCA_RCVBUF": "stock",
            "SOFTHCA_UMEM": "kernel", "SOFTHCA_SEED": "0x7"}
    return differ(**{k: (e.get(k), v) for k, v in want.items()})


def libraries():
    e = variables(env={"LD_LIBRARY_PATH": "/nowhere"})
    path = e["LD_LIBRARY_PATH"].split(":")
    problems = differ(rest=(path[1:], ["/nowhere"]),
                      preload=(os.path.dirname(e["LD_PRELOAD"]), path[0]))
    if not os.path.exists(os.path.join(path[0], "libibverbs.so.1")):
        problems.append("no libibverbs.so.1 in %s" % path[0])
    e = variables("--no-preload")
    return problems + differ(without=(e.get("LD_PRELOAD"), None))


def program_options():
    """What follows the program is the program's."""
    r = softhca("run", "echo", "--icrc", "x", "-v")
    return differ(out=(r.stdout, "--icrc x -v\n"))


def statuses():
    with open("text", "w", encoding="ascii") as f:
        f.write("no program\n")
    return differ(
        program=(softhca("run", "sh", "-c", "exit 7").returncode, 7),
        missing=(softhca("run", "no-such-program").returncode, 127),
        not_executable=(softhca("run", "./text").returncode, 126),
        no_program=(softhca("run").returncode, 125),
        option=(softhca("run", "--nonsense", "true").returncode, 125),
        command=(softhca("nonsense").returncode, 125),
        nothing=(softhca().returncode, 125),
        signal=(softhca("run", "sh", "-c", "kill -9 $$").returncode, -9))


def bad_values():
    problems = []
    for option in (["--icrc", "lax"], ["--rcvbuf", "many"],
                   ["--rcvbuf", "-1"], ["--rcvbuf", "99999999999"],
                   ["--umem", "magic"], ["--seed", ""], ["--seed", "12x"]):
        r = softhca("run", *option, "true")
        if r.returncode != 125 or option[0] not in r.stderr:
            problems.append("%s: %d %s" % (option, r.returncode, r.stderr))
    return problems


def stats_file():
    """Emptied, absolute for a program that goes elsewhere."""
    with open("stats", "w", encoding="ascii") as f:
        f.write("old\n")
    e = variables("--stats", "stats")
    r = softhca("run", "--stats", "no/such/dir", "true")
    return differ(path=(e["SOFTHCA_STATS"], os.path.join(tmp, "stats")),
                  size=(os.path.getsize("stats"), 0),
                  status=(r.returncode, 125),
                  named=("no/such/dir" in r.stderr, True))


def capture_file():
    variables("--capture", "x.pcap")
    with open("x.pcap", "rb") as f:
        head = f.read()
    return differ(head=(head, struct.pack("=IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0,
                                          65535, 1)))


def tree():
    """One entry a device, private to the user, kept in place."""
    e = variables()
    root = e["SOFTHCA_SYSFS"]
    names = [line.split()[0] for line in softhca("devices").stdout.split("\n")
             if line and not line.startswith(" ")]
    ls = softhca("run", "ls", "/sys/class/infiniband").stdout.split()
    mode = os.stat(root).st_mode
    return differ(again=(variables()["SOFTHCA_SYSFS"], root),
                  devices=(set(names) - set(ls), set()),
                  writable=(mode & 0o022, 0),
                  owner=(os.stat(root).st_uid, os.geteuid()))


def foreign_tree():
    """A directory that others may write to is not used."""
    run = os.path.join(tmp, "xdg")
    os.mkdir(run, 0o700)
    os.chmod(run, 0o777)
    root = variables(env={"XDG_RUNTIME_DIR": run})["SOFTHCA_SYSFS"]
    problems = differ(used=(root.startswith(run), False))
    os.chmod(run, 0o700)
    root = variables(env={"XDG_RUNTIME_DIR": run})["SOFTHCA_SYSFS"]
    return problems + differ(used=(root.startswith(run), True))


def words():
    v = softhca("--version")
    return differ(version=(v.stdout.split()[:1], ["softhca"]),
                  help=("devices" in softhca("--help").stdout, True),
                  run_help=("--capture" in softhca("run", "--help").stdout,
                            True))


def moved():
    """A copy of the installation works where it is, and misses its
    libraries with a word."""
    os.makedirs("copy/bin")
    shutil.copy(SOFTHCA, "copy/bin/softhca")
    r = subprocess.run(["copy/bin/softhca", "run", "true"], text=True,
                       capture_output=True, check=False)
    problems = differ(without=(r.returncode, 125),
                      word=("lib/softhca" in r.stderr, True))
    libs = variables()["LD_LIBRARY_PATH"].split(":")[0]
    os.makedirs("copy/lib/softhca")
    for name in os.listdir(libs):
        if ".so" in name and os.path.isfile(os.path.join(libs, name)):
            shutil.copy(os.path.join(libs, name), "copy/lib/softhca")
    r = subprocess.run(["copy/bin/softhca", "run", "env"], text=True,
                       capture_output=True, check=False)
    return problems + differ(
        found=("LD_LIBRARY_PATH=%s/copy/lib/softhca" % tmp in r.stdout, True))


for test in (options, libraries, program_options, statuses, bad_values,
             stats_file, capture_file, tree, foreign_tree, words, moved):
    check("softhca run: " + test.__name__, test())
shutil.rmtree(tmp)
done()
