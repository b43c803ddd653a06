#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Recomputes the ICRC of every RoCEv2 packet of a pcap file, with nothing but
the standard library.

    icrc_check.py FILE...

The ICRC [IBA 9.4.1, A17.3.3] is the Ethernet CRC-32 over eight bytes of ones
(a masked LRH), the IP header, the UDP header, the transport packet and its pad,
with the fields that change on the way set to ones: TOS, TTL and checksum of
IPv4; traffic class, flow label and hop limit of IPv6; the UDP checksum; byte 4
of the BTH. It ends the UDP payload, least significant byte first.
"""
import struct
import sys
import zlib

ROCEV2_PORT = 4791
ETHERNET = 1


class Packets:
    """What a file holds: how many right ones, which wrong ones (from 1)."""

    def __init__(self):
        self.good = 0
        self.bad = []
        self.other = 0


def records(path):
    """The frames of a pcap file (either byte order, us or ns)."""
    for _, frame in timed_records(path):
        yield frame


def timed_records(path):
    """The same with their times: (seconds, frame)."""
    with open(path, "rb") as f:
        data = f.read()
    magic = data[:4]
    order = "<" if magic in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    unit = {0xa1b2c3d4: 1e-6, 0xa1b23c4d: 1e-9}.get(
        struct.unpack(order + "I", magic)[0])
    if unit is None:
        raise ValueError(path + ": not a pcap file")
    if struct.unpack_from(order + "I", data, 20)[0] != ETHERNET:
        raise ValueError(path + ": link type is not Ethernet")
    at = 24
    while at < len(data):
        sec, part, have, full = struct.unpack_from(order + "IIII", data, at)
        if have != full or at + 16 + have > len(data):
            raise ValueError(path + ": a packet was cut short")
        yield sec + part * unit, data[at + 16:at + 16 + have]
        at += 16 + have


def ip_and_udp(frame):
    """(masked IP header, UDP datagram) of a RoCEv2 frame, or None."""
    at = 12
    ethertype = struct.unpack_from(">H", frame, at)[0]
    if ethertype == 0x8100:
        at += 4
        ethertype = struct.unpack_from(">H", frame, at)[0]
    ip = bytearray(frame[at + 2:])
    if ethertype == 0x0800 and ip[9] == 17:
        n = (ip[0] & 15) * 4
        total = struct.unpack_from(">H", ip, 2)[0]
        header, datagram = ip[:n], ip[n:total]
        header[1] = header[8] = header[10] = header[11] = 0xff
    elif ethertype == 0x86dd and ip[6] == 17:
        payload = struct.unpack_from(">H", ip, 4)[0]
        header, datagram = ip[:40], ip[40:40 + payload]
        header[0] |= 0x0f
        header[1] = header[2] = header[3] = header[7] = 0xff
    else:
        return None
    if struct.unpack_from(">H", datagram, 2)[0] != ROCEV2_PORT:
        return None
    return header, datagram


def icrc_of(header, datagram):
    """The ICRC that should end this datagram."""
    masked = bytearray(datagram[:-4])
    masked[6] = masked[7] = 0xff
    masked[8 + 4] = 0xff
    return zlib.crc32(b"\xff" * 8 + bytes(header) + bytes(masked))


def check_file(path):
    packets = Packets()
    for number, frame in enumerate(records(path), 1):
        parts = ip_and_udp(frame)
        if parts is None:
            packets.other += 1
            continue
        header, datagram = parts
        stored = struct.unpack("<I", datagram[-4:])[0]
        if len(datagram) >= 8 + 12 + 4 and \
                stored == icrc_of(header, datagram):
            packets.good += 1
        else:
            packets.bad.append(number)
    return packets


def main():
    wrong = 0
    for path in sys.argv[1:]:
        packets = check_file(path)
        wrong += len(packets.bad)
        print("%s: %d good, %d bad, %d other" % (
            path, packets.good, len(packets.bad), packets.other))
    return 1 if wrong or len(sys.argv) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
