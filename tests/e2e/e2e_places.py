#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Where people run programs: as containers, sandboxes and small machines are.
Each place is a prefix in front of `softhca run`; each thing that is refused is
said at --verbose."""
import os
import subprocess

from e2e_lib import (HOST, SOFTHCA, Process, Skip, device_with, done, expect,
                     free_port, helper, in_own_netns, need, run_pair, test,
                     tmp_dir)

VERBOSE = ["--verbose", "--rcvbuf", "stock"]
RC = ["ibv_rc_pingpong", "-c", "-g", 0, "-n", 100, "-s", 4096]
UD = ["ibv_ud_pingpong", "-c", "-g", 0, "-n", 50, "-s", 1024]
PERF = ["ib_write_bw", "-F", "-n", 200, "-s", 8192]
STEERING_WORDS = "SO_ATTACH_REUSEPORT_CBPF refused): one process per address"
RC_BYTES, UD_BYTES, PERF_BYTES = 100 * 4096, 50 * 1024, 200 * 8192


# ---- one place ----

def words_of(pair):
    return pair.server.output(), pair.client.output()


def said(pair, *words):
    for text in words_of(pair):
        for w in words:
            expect(w in text, "'%s' was not said:\n%s" % (w, text))


def works(prefix=(), words=(), programs=(RC, UD, PERF), opts=(), env=None):
    """The programs run there, lossless, and say the words."""
    sent = {id(RC): RC_BYTES, id(UD): UD_BYTES, id(PERF): PERF_BYTES}
    for args in programs:
        pair = run_pair(args, prefix=list(prefix), opts=[*VERBOSE, *opts],
                        env=env)
        pair.no_loss()
        pair.moved("client", "server", sent[id(args)])
        said(pair, *words)
    return pair


def can(*cmd):
    return subprocess.run([*cmd, "true"], check=False,
                          capture_output=True).returncode == 0


def in_mounts(script):
    """A prefix: a mount namespace in which this was done."""
    need("unshare", "mount")
    prefix = ["unshare", "-m", "sh", "-ec", script + '; exec "$@"', "sh"]
    if not can(*prefix):
        raise Skip("cannot mount here")
    return prefix


def readonly(more="true"):
    """The root is, but the test's own directory (for --stats)."""
    keep = tmp_dir()
    return in_mounts(
        "mount --bind /tmp /tmp; mount -o bind,remount,ro /tmp; "
        "mount --bind %s %s; mount -o bind,remount,rw %s; "
        "mount -o bind,remount,ro /; %s" % (keep, keep, keep, more))


def readonly_root():
    works(readonly(),
        ["/tmp/softhca-%d: Read-only file system" % os.getuid()],
        programs=[RC, UD], env={"XDG_RUNTIME_DIR": ""})


def readonly_everywhere():
    works(readonly("mount -t tmpfs -o ro,size=4k none /dev/shm"),
        ["no directory for a tree like /sys/class/infiniband"],
        programs=[RC], env={"XDG_RUNTIME_DIR": ""})


def no_home():
    works(["env", "-u", "HOME", "-u", "XDG_RUNTIME_DIR", "-u",
           "XDG_CONFIG_HOME"], programs=[RC, UD])


def nameless_uid():
    need("setpriv")
    if os.getuid():
        raise Skip("only root can become another uid")
    uid = 54321
    stats = os.path.join(tmp_dir(), "nameless")
    os.makedirs(stats, exist_ok=True)
    os.chmod(tmp_dir(), 0o1777)
    prefix = ["setpriv", "--reuid=%d" % uid, "--regid=%d" % uid,
              "--clear-groups", "env", "XDG_RUNTIME_DIR=", "HOME=/nowhere"]
    if subprocess.run([*prefix, "test", "-x", SOFTHCA],
                      check=False).returncode:
        raise Skip("uid %d cannot read the build directory" % uid)
    works(prefix, programs=[RC, UD])


def small_shm():
    works(in_mounts("mount -t tmpfs -o size=64m none /dev/shm"),
          programs=[RC, UD])


def few_files():
    need("prlimit")
    works(["prlimit", "--nofile=256:256"], programs=[RC, UD, PERF])


def too_few_files():
    """Not enough for a device: the program ends, and why is said."""
    need("prlimit")
    for n in (12, 20):
        p = Process(RC, prefix=["prlimit", "--nofile=%d:%d" % (n, n)])
        rc = p.wait(20)
        expect(rc > 0, "nofile %d: status %d\n%s" % (n, rc, p.output()))
        expect("softhca: shca0: " in p.output() and
               "Too many open files" in p.output(),
               "nofile %d does not say why:\n%s" % (n, p.output()))


def one_cpu():
    need("taskset")
    cpu = min(os.sched_getaffinity(0))
    works(["taskset", "-c", str(cpu)])


# ---- what is refused ----

def refused(*what):
    prefix = [helper("refuse"), *what, "--"]
    if not can(*prefix):
        raise Skip("no seccomp filters")
    return prefix


def without(what, words=(), programs=(RC, UD, PERF), opts=()):
    """Refused with EPERM and with ENOSYS."""
    works(refused(*what), words, programs, opts)
    works(refused("ENOSYS", *what), words, [RC], opts)


def no_segments():
    pair = works(refused("UDP_SEGMENT"), ["UDP_SEGMENT was refused"],
                 [RC, UD, PERF])
    for stats in (pair.s, pair.c):
        expect(stats.get("tx_messages", "link") ==
               stats.get("tx_frames", "link"), "segments: " + stats.text())


def steering_two_addresses():
    """One process on each of two addresses: whatever their slots, each gets
    what is sent to its own."""
    other = "10.99.1.1"
    subprocess.run(["ip", "addr", "add", other + "/32", "dev", "lo"],
                   check=True)
    _, gid = device_with("::ffff:" + other)
    _, gid_lo = device_with("::ffff:" + HOST)
    pair = run_pair(RC, prefix=refused("SO_ATTACH_REUSEPORT_CBPF"),
                    opts=VERBOSE, server_opts=["-g", gid],
                    client_opts=["-g", gid_lo])
    pair.no_loss()
    pair.moved("client", "server", RC_BYTES)
    said(pair, STEERING_WORDS)


def steering_shared():
    """Two on one address: the second is told, and fails at once."""
    prefix = refused("SO_ATTACH_REUSEPORT_CBPF")
    port = free_port()
    server = Process([*RC, "-p", port], prefix=prefix, opts=VERBOSE)
    server.wait_listening(port)
    client = Process([*RC, "-p", port, HOST], prefix=prefix, opts=VERBOSE)
    try:
        rc = client.wait(20)
    finally:
        client.kill()
        server.kill()
    text = client.output() + server.output()
    expect(rc > 0, "status %d\n%s" % (rc, text))
    for w in (STEERING_WORDS,
              "belongs to another process; sharing it needs "
              "SO_ATTACH_REUSEPORT_CBPF"):
        expect(w in text, "'%s' was not said:\n%s" % (w, text))


def main():
    test("read-only root", readonly_root)
    test("read-only everywhere", readonly_everywhere)
    test("no HOME", no_home)
    test("a uid without a passwd entry", nameless_uid)
    test("a /dev/shm of 64 MiB", small_shm)
    test("256 files", few_files)
    test("too few files", too_few_files)
    test("one CPU", one_cpu)
    vm = ("process_vm_readv", "process_vm_writev")
    for name in vm:
        test(name + " refused", without, [name],
             ["process_vm_readv and _writev were refused"], [RC])
    test("both refused, --umem kernel", without, vm,
         ["registered memory is reached through pipes"],
         opts=["--umem", "kernel"])
    test("--umem kernel", works, (),
         ["registered memory is reached by process_vm_readv and _writev"],
         [RC], ["--umem", "kernel"])
    test("memfd_create refused", without, ["memfd_create"], (), [RC])
    test("UDP_SEGMENT refused", no_segments)
    test("UDP_GRO refused", without, ["UDP_GRO"], ["UDP_GRO was refused"])
    test("SO_NO_CHECK refused", without, ["SO_NO_CHECK"], (), [RC])
    test("IPv6 refused", without, ["AF_INET6"], ["no IPv6 here"],
         [RC, UD])
    test("SO_ATTACH_REUSEPORT_CBPF refused: two on one address",
         steering_shared)
    test("SO_ATTACH_REUSEPORT_CBPF refused: two addresses",
         steering_two_addresses)
    done()


# Addresses, ports and port groups are nobody else's there.
in_own_netns()
main()
