#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""perftest's options: each that a tool's --help offers, with each transport.

What is run is a table of --help's options times tools times transports. A
combination that the tool itself refuses, by its own words and without our
doing, is listed at the end and is no failure; all others must move the
payload, as our counters on the server's side say. E2E_LONG runs the whole
table, else a short part of it."""
import os
import re
import subprocess

from e2e_lib import (HOST, Failed, Process, done, expect, free_port, isolate,
                     test)

LONG = "E2E_LONG" in os.environ
ITERS = 200
SIZE = 1024
TOOLS = ["ib_%s_%s" % (op, kind) for op in ("send", "write", "read", "atomic")
         for kind in ("bw", "lat")]
TRANSPORTS = ["RC", "UC", "UD", "XRC"]

# Option of --help -> arguments that use it. What is not here is named at the
# end.
USES = {
    "--all": ["-a", "-n", "20"],
    "--bidirectional": ["-b"],
    "--duration": ["-D", "3"],
    "--events": ["-e"],
    "--vector": ["-e", "-X", "3"],
    "--CPU-freq": ["-F"],
    # As many as a stock receive buffer holds: nothing holds back a group.
    "--mcg": ["-n", "80", "-g", "-M", "0:0:0:0:0:0:0:0:0:0:255:255:239:1:2:3"],
    "--inline_size": ["-I", "64", "-s", "64"],
    "--post_list": ["-l", "16", "-n", "320"],
    "--recv_post_list": ["--recv_post_list=16", "-n", "320"],
    "--hop_limit": ["-L", "9"],
    "--mtu": ["-m", "512"],
    "--iters": ["-n", "57"],
    "--noPeak": ["-N"],
    "--qp": ["-q", "16"],
    "--cq-mod": ["-Q", "10"],
    "--rx-depth": ["-r", "64"],
    "--size": ["-s", "2000"],
    "--sl": ["-S", "3"],
    "--tx-depth": ["-t", "1"],
    "--qp-timeout": ["-u", "16"],
    "--gid-index": ["-x", "1"],
    "--use-srq": ["--use-srq"],
    "--mr_per_qp": ["--mr_per_qp", "-q", "4"],
    "--odp": ["--odp"],
    "--use_old_post_send": ["--use_old_post_send"],
    "--perform_warm_up": ["--perform_warm_up"],
    "--pkey_index": ["--pkey_index=0"],
    "--report-both": ["-b", "--report-both"],
    "--report_gbits": ["--report_gbits"],
    "--reversed": ["--reversed"],
    "--tclass": ["--tclass=96"],
    "--disable_pcie_relaxed": ["--disable_pcie_relaxed"],
    "--outs": ["-o", "2"],
    "--atomic_type": ["-A", "CMP_AND_SWAP"],
    "--report-histogram": ["-H"],
    "--report-unsorted": ["-U"],
    "--report-cycles": ["-C"],
    "--dont_xchg_versions": ["--dont_xchg_versions"],
    "--ipv6": ["--ipv6"],
    "--latency_gap": ["--latency_gap=10"],
}
SHORT = {
    "ib_send_bw": {"RC": ["--all", "--events", "--qp", "--post_list"],
                   "XRC": ["--size", "--qp"], "UC": ["--tx-depth"],
                   "UD": ["--mcg", "--inline_size"]},
    "ib_write_lat": {"XRC": ["--size"]},
    "ib_read_bw": {"XRC": ["--size"]},
    "ib_atomic_lat": {"XRC": ["--atomic_type"]},
}
# A tool's own words for what it does not do.
REFUSALS = re.compile(
    r"(not supported|not compatible|only valid|does not support|"
    r"doesn't support|not available|"
    r"isn't supported|can't be|cannot be|can not|cannot run|only for|"
    r"only on|only in|works only|is only|must be|should be|Invalid|invalid|"
    r"not allowed|not possible|unrecognized|Unsupported|"
    r"Please use|support only|Only|incompatib|Incompatib|cannot)")

refused = []


def options_of(tool):
    """The long options of --help."""
    r = subprocess.run([tool, "--help"], capture_output=True, text=True,
                       check=False, timeout=20)
    return set(re.findall(r"^\s+(?:-\w, )?(--[\w-]+)", r.stdout + r.stderr,
                          re.M))


def connection(tool, transport):
    """-c as the tool wants it; None: the tool has no such transport."""
    if transport == "UC" and ("read" in tool or "atomic" in tool):
        return None
    if transport == "UD" and "send" not in tool:
        return None
    return [] if transport == "RC" else ["-c", transport]


def payload(server):
    return (server.stats().get("rsp_msg_bytes") +
            8 * server.stats().get("rsp_atomic_msgs"))


def use(tool, transport, option):
    extra = USES[option]
    port = free_port()
    args = [tool, "-F", "-p", port, *connection(tool, transport)]
    if "-n" not in extra and "-D" not in extra:
        args += ["-n", ITERS]
    if "-s" not in extra and "-a" not in extra and "atomic" not in tool:
        args += ["-s", SIZE]
    args += extra
    server = Process(args)
    try:
        server.wait_listening(port)
    except Failed as e:
        refusal(e, tool, transport, option)
        return
    client = Process([*args, HOST])
    try:
        rc = client.wait(60)
        rc_server = server.wait(20) if rc == 0 else None
    finally:
        server.kill()
        client.kill()
    if rc == 0 and rc_server == 0:
        expect(payload(server) + payload(client) > 0, "no payload moved")
        return
    refusal(client.output() + server.output(), tool, transport, option)


def refusal(text, tool, transport, option):
    """Raises unless the tool says itself that it does not do this."""
    words = [line for line in str(text).splitlines() if REFUSALS.search(line)]
    if not words or "softhca:" in str(text):
        raise Failed(str(text))
    refused.append("%s -c %s %s: %s" % (tool, transport, option,
                                        words[0].strip()))


def main():
    isolate()
    unknown = set()
    for tool in TOOLS:
        offered = options_of(tool)
        unknown |= offered - set(USES)
        for option in sorted(offered & set(USES)):
            for transport in TRANSPORTS:
                if not LONG and option not in SHORT.get(tool, {}).get(
                        transport, ()):
                    continue
                if connection(tool, transport) is not None:
                    test("%s -c %s %s" % (tool, transport, option), use,
                         tool, transport, option)
    for line in refused:
        print("# refused by the tool: " + line)
    print("# not in the table: " + " ".join(sorted(unknown)))
    done()


main()
