# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Capture formats as editcap writes them, read as what they were before."""

import os
import random
import shutil
import subprocess
import threading
from pathlib import Path

import pytest
from support.capture_bytes import Frames, pcap_header, pcap_record, read_all, read_bytes

from zanon_net import _core

SECOND_NS = 1_000_000_000
FORMATS = {
    "pcap": "pcap",
    "nsecpcap": "pcap",
    "modpcap": "pcap",
    "suse6_3pcap": "pcap",
    "rh6_1pcap": "pcap",
    "nokiapcap": "pcap",
    "pcapng": "pcapng",
    "snoop": "snoop",
}


def ethernet(generator: random.Random, loopback: bool) -> bytes:
    """Frames of a loopback interface begin with zeros, which longer record headers do, too."""
    addresses = bytes(12) if loopback else generator.randbytes(12)
    return addresses + b"\x08\x00" + generator.randbytes(generator.randrange(46, 300))


def write(path: Path, count: int, loopback: bool) -> Frames:
    generator = random.Random(count)
    frames = [ethernet(generator, loopback) for _ in range(count)]
    records = [(1_600_000_000 + i, 40_000 * i, data) for i, data in enumerate(frames)]
    path.write_bytes(
        pcap_header() + b"".join(pcap_record("<", *each, wire=len(each[2]) + 4) for each in records)
    )
    return [(s * SECOND_NS + us * 1000, len(data) + 4, 1, data) for s, us, data in records]


def convert(source: Path, format: str, *options: str) -> Path:
    program = shutil.which("editcap")
    if program is None:
        reason = "editcap is not installed: `make test` installs it from Debian, with tshark"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    target = source.with_suffix(f".{format}")
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    command = [program, *options, "-F", format, str(source), str(target)]
    subprocess.run(command, env=environment, capture_output=True, check=True)
    return target


@pytest.mark.parametrize("loopback", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3, 20])
@pytest.mark.parametrize("name", FORMATS)
def test_as_editcap_writes_it(name: str, count: int, loopback: bool, tmp_path: Path) -> None:
    frames = write(tmp_path / "original", count, loopback)
    path = convert(tmp_path / "original", name)
    with _core.Capture(str(path)) as capture:
        assert capture.format == FORMATS[name]
        assert read_all(capture) == (frames, None)


@pytest.mark.parametrize("name", FORMATS)
def test_any_portions_of_a_stream_give_the_same(name: str, tmp_path: Path) -> None:
    write(tmp_path / "original", 5, loopback=True)
    data = convert(tmp_path / "original", name).read_bytes()
    expected = read_bytes(data)
    for portion in (1, 7, 100):
        reading, writing = os.pipe()
        feeder = threading.Thread(target=feed, args=(writing, data, portion))
        feeder.start()
        with os.fdopen(reading, "rb"), _core.Capture(fd=reading, name="pipe") as capture:
            assert read_all(capture) == expected
        feeder.join()


def feed(fd: int, data: bytes, portion: int) -> None:
    for at in range(0, len(data), portion):
        os.write(fd, data[at : at + portion])
    os.close(fd)
