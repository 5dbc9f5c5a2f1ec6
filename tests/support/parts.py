# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Captures whose output is written in parts, and the accounts of those parts."""

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.capture_bytes import PCAP_NANOSECONDS, pcap_header, pcap_record
from support.packets import SECOND, START, Frame, Udp, merged, user

PROGRAM = [sys.executable, "-m", "zanon_net", "run"]
HOST = b"www.example.org"
Files = dict[str, bytes]


def flow(n: int, t_ns: int) -> list[Frame]:
    """A DNS lookup of its own user."""
    return Udp(user(n), ports=(1024 + n, 53), t_ns=t_ns).lookup(HOST).frames


def capture_of(frames: list[Frame]) -> bytes:
    return in_this_order(merged([frames]))


def in_this_order(frames: list[Frame]) -> bytes:
    return pcap_header("<", magic=PCAP_NANOSECONDS) + b"".join(
        pcap_record("<", frame.t_ns // SECOND, frame.t_ns % SECOND, frame.data) for frame in frames
    )


def files_in(folder: Path) -> Files:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def manifest_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "manifest.json").read_bytes()))


def records_in(name: str, content: bytes) -> int:
    if name.endswith(".parquet"):
        return int(pq.read_table(pa.BufferReader(content)).num_rows)
    return content.count(b"\n") - (not name.endswith(".jsonl"))


def check_accounts(folder: Path) -> dict[str, Any]:
    """Asserts that the manifest lists the files that exist, with their sizes and records, and no
    others; returns it."""
    manifest, files = manifest_of(folder), files_in(folder)
    listed = {file["file"]: file for file in manifest["outputs"]}
    assert set(listed) == set(files) - {"manifest.json"}
    counted: dict[str, int] = {}
    for name, file in listed.items():
        assert file["bytes"] == len(files[name])
        assert file["records"] == records_in(name, files[name])
        key = "tstat" if ".out/" in name else name.rpartition(".")[2]
        counted[key] = counted.get(key, 0) + file["records"]
    accounts = manifest["records"]
    assert accounts["closed"] == accounts["records"] + accounts["withheld"]
    for key in ("csv", "jsonl", "parquet", "tstat"):
        if key in accounts:
            account = accounts[key]
            assert account["written"] + account["left_out"] + account["lost"] == accounts["records"]
            assert account["written"] == counted.get(key, 0)
    return manifest


def many_lookups(path: Path) -> Path:
    """A capture of 20,000 lookups, 50 ms apart."""
    frames = [frame for n in range(20_000) for frame in flow(n, START + n * 50_000_000)]
    path.write_bytes(capture_of(frames))
    return path
