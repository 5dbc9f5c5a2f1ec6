# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Capabilities that a program's file permits, as the one in the container does."""

import os
import subprocess
import sys

import pytest

NET_RAW, IPC_LOCK, SYS_ADMIN = 1 << 13, 1 << 14, 1 << 21

# Leaves what is permitted and nothing in force, as the kernel does that starts such a file.
PROGRAM = """
import ctypes, sys
from pathlib import Path
from zanon_net.pipeline.hardening import harden
from zanon_net.system import capabilities as c
sets = (c._Half * 2)(c._Half(0, int(sys.argv[1]), 0))
assert ctypes.CDLL(None).capset(ctypes.byref(c._Header(c._VERSION, 0)), sets) == 0
harden()
lines = Path("/proc/thread-self/status").read_text().splitlines()
print(*(int(line.split()[1], 16) for line in lines if line[:6] in ("CapPrm", "CapEff")))
"""


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs root on Linux")
@pytest.mark.parametrize(
    ("permitted", "in_force"),
    [
        (0, 0),
        (NET_RAW, NET_RAW),
        (NET_RAW | IPC_LOCK, NET_RAW | IPC_LOCK),
        (SYS_ADMIN | IPC_LOCK, IPC_LOCK),  # nothing else is used
    ],
)
def test_what_is_permitted_is_used(permitted: int, in_force: int) -> None:
    command = [sys.executable, "-c", PROGRAM, str(permitted)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(permitted), str(in_force)]
