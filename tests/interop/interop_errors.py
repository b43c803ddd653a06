# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What both sides must report, case by case of interop_cases.c, and which NAKs
must be on the wire. Where rdma_rxe reports something else than the
specification has it, both are here."""
import struct

import icrc_check
from e2e_lib import expect
from interop_lib import FROM_HOST, check_icrcs, probe
from vm_lib import MAC

OURS, RXE = "ours", "rxe"
ACCESS = "event access violation at a QP"
REQUEST = "event invalid request at a QP"
GOOD_CASES = ("send", "send_imm", "write", "write_imm", "read", "fadd", "cas",
              "uc_send", "uc_send_imm", "uc_write", "uc_write_imm",
              "ud_send", "ud_send_imm", "rnr_waits", "rnr_imm_waits")

# case: (index of the WR that fails, its status, our event as the responder;
# rxe raises none)
REFUSED = {
    "write_rkey": (1, "REM_ACCESS_ERR", ACCESS),
    "write_behind": (1, "REM_ACCESS_ERR", ACCESS),
    "write_before": (1, "REM_ACCESS_ERR", ACCESS),
    "read_rkey": (1, "REM_ACCESS_ERR", ACCESS),
    "read_behind": (1, "REM_ACCESS_ERR", ACCESS),
    "fadd_rkey": (1, "REM_ACCESS_ERR", ACCESS),
    "fadd_behind": (1, "REM_ACCESS_ERR", ACCESS),
    "write_imm_rkey": (1, "REM_ACCESS_ERR", ACCESS),
    "write_perm": (0, "REM_ACCESS_ERR", ACCESS),
    "read_perm": (0, "REM_ACCESS_ERR", ACCESS),
    "fadd_perm": (0, "REM_ACCESS_ERR", ACCESS),
    "cas_perm": (0, "REM_ACCESS_ERR", ACCESS),
    "write_pd": (0, "REM_ACCESS_ERR", ACCESS),
    "read_pd": (0, "REM_ACCESS_ERR", ACCESS),
    "write_stale": (0, "REM_ACCESS_ERR", ACCESS),
    "write_qp_perm": (0, "REM_INV_REQ_ERR", REQUEST),
    "read_qp_perm": (0, "REM_INV_REQ_ERR", REQUEST),
    "fadd_qp_perm": (0, "REM_INV_REQ_ERR", REQUEST),
}

# case: responder: (requester's status, status of the responder's receive).
# rxe calls everything that is wrong with a receive an operational error.
NO_PLACE = {
    "send_long": {OURS: ("REM_INV_REQ_ERR", "LOC_LEN_ERR"),
                  RXE: ("REM_OP_ERR", "LOC_QP_OP_ERR")},
    "send_long_one": {OURS: ("REM_INV_REQ_ERR", "LOC_LEN_ERR"),
                      RXE: ("REM_OP_ERR", "LOC_QP_OP_ERR")},
    "recv_lkey": {OURS: ("REM_OP_ERR", "LOC_PROT_ERR"),
                  RXE: ("REM_OP_ERR", "LOC_QP_OP_ERR")},
    "recv_no_write": {OURS: ("REM_OP_ERR", "LOC_PROT_ERR"),
                      RXE: ("REM_OP_ERR", "LOC_QP_OP_ERR")},
}

# One side only: rxe refuses to post an unaligned atomic, loses track when a
# local error comes ahead of an ACK, and fails a UC QP whose receive is short.
ONLY_FROM_HOST = ("fadd_unaligned", "send_lkey")
ONLY_FROM_GUEST = ("uc_send_long",)
BOTH = ("rnr_ends", "rnr_ends_at_0", "no_peer_send", "no_peer_read",
        "uc_write_rkey", "ud_qkey")


def sends(bad_at, status, count=3):
    """The requester's lines when WR number bad_at fails."""
    lines = ["send %d SUCCESS" % k for k in range(bad_at)]
    lines.append("send %d %s" % (bad_at, status))
    lines += ["send %d WR_FLUSH_ERR" % k for k in range(bad_at + 1, count)]
    return lines + ["qp ERR", "memory good"]


def all_sent(count):
    return ["send %d SUCCESS" % k for k in range(count)] + [
        "qp RTS", "memory good"]


def received(count, length, imm=False):
    """The responder's lines when count messages came."""
    tail = " imm 11223344" if imm else ""
    return ["recv %d SUCCESS %d%s" % (k, length, tail)
            for k in range(count)] + ["qp RTS", "memory good"]


def expect_good(name):
    """(requester's lines, responder's) of a case where all works."""
    with_recv = "send" in name or "imm" in name or name == "rnr_waits"
    length = 940 if name.startswith("ud_") else 3000
    return all_sent(4), received(4 if with_recv else 0, length, "imm" in name)


def expect_refused(name, responder, mtu):
    bad_at, status, event = REFUSED[name]
    lines = [event] if responder == OURS else []
    if name == "write_imm_rkey":
        # In a single packet, rxe has taken the receive before it looks at
        # the key.
        taken = responder == RXE and mtu >= 3000
        lines = ["recv 0 SUCCESS 3000 imm 11223344",
                 "recv 1 " + ("REM_ACCESS_ERR" if taken else "WR_FLUSH_ERR"),
                 "recv 2 WR_FLUSH_ERR"] + lines
    return sends(bad_at, status), lines + ["qp ERR", "memory good"]


def expect_no_place(name, responder):
    status, recv_status = NO_PLACE[name][responder]
    return sends(0, status), ["recv 0 " + recv_status, "recv 1 WR_FLUSH_ERR",
                              "recv 2 WR_FLUSH_ERR", "qp ERR", "memory good"]


OTHERS = {
    "fadd_unaligned": (sends(1, "REM_INV_REQ_ERR"), ["qp ERR", "memory good"]),
    "send_lkey": (sends(1, "LOC_PROT_ERR"), received(1, 3000)),
    "uc_send_long": (all_sent(3), ["qp RTS", "memory good"]),
    "rnr_ends": (sends(1, "RNR_RETRY_EXC_ERR"), received(1, 3000)),
    "rnr_ends_at_0": (sends(1, "RNR_RETRY_EXC_ERR"), received(1, 3000)),
    "no_peer_send": (sends(0, "RETRY_EXC_ERR"), ["qp RESET", "memory good"]),
    "no_peer_read": (sends(0, "RETRY_EXC_ERR"), ["qp RESET", "memory good"]),
    "uc_write_rkey": (all_sent(3), ["qp RTS", "memory good"]),
    "ud_qkey": (all_sent(3), received(2, 940)),
}


def expectation(name, responder, mtu=1024):
    if name in GOOD_CASES:
        return expect_good(name)
    if name in REFUSED:
        return expect_refused(name, responder, mtu)
    if name in NO_PLACE:
        return expect_no_place(name, responder)
    return OTHERS[name]


def error_cases(direction):
    only = ONLY_FROM_HOST if direction == FROM_HOST else ONLY_FROM_GUEST
    return [*REFUSED, *NO_PLACE, *BOTH, *only]


def check_lines(name, side, got, want):
    expect(got == want, "%s: the %s reports\n  %s\nand should report\n  %s" % (
        name, side, "; ".join(got), "; ".join(want)))


def check_cases(ends, direction, names, **kwargs):
    """Runs these cases; each must report exactly what it should."""
    outcome, requester, responder = probe(ends, direction, names, **kwargs)
    for name in names:
        want = expectation(name, RXE if direction == FROM_HOST else OURS,
                           ends.device.active_mtu)
        check_lines(name, "requester", requester[name], want[0])
        check_lines(name, "responder", responder[name], want[1])
    return outcome


# ---- NAKs on the wire ----

RC_ACK = 0x11
NAKS = {0x61: "invalid request", 0x62: "remote access error",
        0x63: "remote operational error"}


def naks_in(path):
    """{True: those from the guest, False: those from us}: counts by syndrome
    of the NAKs in a capture; all RNR NAKs are 0x20."""
    found = {True: {}, False: {}}
    for frame in icrc_check.records(path):
        parts = icrc_check.ip_and_udp(frame)
        if parts is None or parts[1][8] != RC_ACK:
            continue
        syndrome = struct.unpack_from(">I", parts[1], 8 + 12)[0] >> 24
        kind = syndrome & 0x60
        if kind:
            count = found[frame[6:12] == bytes.fromhex(MAC.replace(":", ""))]
            key = syndrome if kind == 0x60 else kind
            count[key] = count.get(key, 0) + 1
    return found


def check_naks(path, direction):
    """The capture of all error cases holds exactly the NAKs that refuse them,
    all from the responder."""
    by_guest = direction == FROM_HOST
    responder = RXE if by_guest else OURS
    found = naks_in(path)
    expect(not found[not by_guest], "NAKs from the requester")
    want = {code: 0 for code in NAKS}
    for name in error_cases(direction):
        statuses = " ".join(expectation(name, responder)[0])
        for code, status in ((0x61, "REM_INV_REQ_ERR"),
                             (0x62, "REM_ACCESS_ERR"), (0x63, "REM_OP_ERR")):
            want[code] += status in statuses
    for code, text in NAKS.items():
        n = found[by_guest].get(code, 0)
        expect(n == want[code], "%d NAKs of %s, not %d" % (
            n, text, want[code]))
    # 1 + rnr_retry times, and once.
    expect(found[by_guest].get(0x20, 0) >= 4, "RNR NAKs: %s" % found)


def check_counters(outcome, direction):
    """Our side's own count of the same."""
    responder = RXE if direction == FROM_HOST else OURS
    lines = [" ".join(expectation(name, responder)[0])
             for name in error_cases(direction)]
    wants = [(status, sum(status in line for line in lines)) for status in
             ("REM_ACCESS_ERR", "REM_INV_REQ_ERR", "REM_OP_ERR")]
    if direction == FROM_HOST:
        n = outcome.stats.get("req_remote_errors")
        expect(n == sum(w for _, w in wants), "req_remote_errors is %d, %s" % (
            n, wants))
    else:
        names = ("rsp_access_naks", "rsp_inv_req_naks", "rsp_op_naks")
        for name, (status, want) in zip(names, wants):
            n = outcome.stats.get(name)
            expect(n == want, "%s is %d, not %d" % (name, n, want))


def good(ends, direction, *options):
    """Each operation of each transport in one direction; the ICRCs too."""
    with ends.guest.capture() as path:
        check_cases(ends, direction, GOOD_CASES, options=options)
    check_icrcs(path, 100)


def bad(ends, direction):
    """Each error in one direction, seen from all sides."""
    with ends.guest.capture() as path:
        outcome = check_cases(ends, direction, error_cases(direction))
    check_icrcs(path, 100)
    check_naks(path, direction)
    check_counters(outcome, direction)
