#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The kernel's Soft-RoCE in a virtual machine as the other end: a short part,
or with INTEROP=full in the environment everything."""
import os

import interop_full
import interop_short
import vm_lib
from e2e_lib import done


def main():
    guest = vm_lib.guest()
    if os.environ.get("INTEROP") == "full":
        interop_full.run_all(guest)
    else:
        interop_short.run_all(guest)
    done()


main()
