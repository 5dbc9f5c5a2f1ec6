# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""tshark as a second reader of frames that the tests make."""

import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

Rows = list[dict[str, str]]
Tshark = Callable[[Sequence[bytes], int, Mapping[str, str]], Rows]

# One frame at a time: no reassembly, no memory of earlier frames.
PREFERENCES = ["tcp.desegment_tcp_streams:FALSE", "tcp.analyze_sequence_numbers:FALSE"]
PREFERENCES += [
    "ip.defragment:FALSE",
    "ipv6.defragment:FALSE",
    "tcp.relative_sequence_numbers:FALSE",
]


def write_pcap(path: Path, frames: Sequence[bytes], link: int) -> None:
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0x40000, link))
        for second, frame in enumerate(frames):
            file.write(struct.pack("<IIII", second, 0, len(frame), len(frame)) + frame)


@pytest.fixture(scope="session")
def tshark(tmp_path_factory: pytest.TempPathFactory) -> Tshark:
    """A function from frames, their link type and fields (name -> tshark's) to a row a frame."""
    program = shutil.which("tshark")
    if program is None:
        reason = "tshark is not installed: `make test` installs it from Debian"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    home = tmp_path_factory.mktemp("tshark")
    # Python itself may run under a preloaded sanitizer, and a person may have preferences.
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    environment |= {"HOME": str(home), "XDG_CONFIG_HOME": str(home)}

    def read(frames: Sequence[bytes], link: int, fields: Mapping[str, str]) -> Rows:
        path = home / "frames.pcap"
        write_pcap(path, frames, link)
        command = [program, "-n", "-r", str(path), "-T", "fields", "-E", "occurrence=l"]
        command += [word for preference in PREFERENCES for word in ("-o", preference)]
        command += [word for field in fields.values() for word in ("-e", field)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        rows = [line.split("\t") for line in done.stdout.split("\n")[:-1]]
        assert len(rows) == len(frames)
        return [dict(zip(fields, row, strict=True)) for row in rows]

    return read
