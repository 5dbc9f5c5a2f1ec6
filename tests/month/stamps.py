# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Packet times in MAC addresses, and the library that makes them the times of frames."""

import subprocess
from pathlib import Path

ADDRESSES = 12  # bytes of the two MAC addresses
_LOCAL = b"\x02\x00"  # before either half: the address of a single host, chosen locally


def stamped(frame: bytes, t_ns: int) -> bytes:
    """The frame with its packet time, in ns since the Unix epoch, in its two MAC addresses."""
    packed = t_ns.to_bytes(8, "big")
    return _LOCAL + packed[:4] + _LOCAL + packed[4:] + frame[ADDRESSES:]


def build_library(folder: Path) -> Path:
    """Compiles the library for LD_PRELOAD. It brings libpcap, so that it stands before it."""
    library = folder / "stamps.so"
    source = Path(__file__).with_suffix(".c")
    command = ["cc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-shared", "-fPIC", str(source)]
    libraries = ["-Wl,--no-as-needed", "-lpcap", "-ldl"]
    subprocess.run([*command, *libraries, "-o", str(library)], check=True)
    return library
