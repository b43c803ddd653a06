#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""One line on what the NICs of all processes in a --stats file did."""
import json
import sys


def total(devices, group, name):
    return sum(d.get(group, {}).get(name, 0) for d in devices)


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        processes = [json.loads(line) for line in f if line.strip()]
    devices = [d for p in processes for d in p["devices"]]
    print("%d processes, %d packets sent, %d payload bytes, "
          "%d retransmissions" % (
              len(processes), total(devices, "hca", "tx_pkts"),
              total(devices, "hca", "tx_payload_bytes"),
              total(devices, "hca", "req_retransmits")))


main()
