# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A run that the raw mode of the audit checks, and copies of its output that tests change."""

import csv
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import zanon_net
from support.cli import DEMO
from support.examples import EVERY_CASE
from support.wire import ethernet, ipv4, tcp
from zanon_net import Config
from zanon_net.audit.raw import tshark
from zanon_net.audit.raw.check import RawResult, check_files, read_captures
from zanon_net.audit.raw.exposures import Exposures
from zanon_net.audit.raw.networks import text_of
from zanon_net.audit.raw.packets import ACK
from zanon_net.keys import new_key

Z = 3
WINDOW_NS = 600 * 10**9
FRAMES = 5000 if EVERY_CASE else 2500
Line = dict[str, Any]


@dataclass(frozen=True)
class Checked:
    """A run, and the exposures in its capture."""

    folder: Path
    seen: Exposures

    @property
    def manifest(self) -> Line:
        manifest: Line = json.loads((self.folder / "manifest.json").read_bytes())
        return manifest

    def check(self, folder: Path, **options: Any) -> RawResult:
        manifest = json.loads((folder / "manifest.json").read_bytes())
        return check_files(folder, manifest, self.seen, **options)


def shortened(target: Path, more: int) -> Path:
    """The first frames of the demo, behind packets of a server whose connection began before."""
    data, at = DEMO.read_bytes(), 24
    for _ in range(FRAMES):
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    segment = tcp(b"text", ports=(9999, 40000), flags=ACK)
    frame = ethernet(ipv4(segment, addresses=("198.51.100.1", "192.168.200.1")))
    head = data[24:32] + len(frame).to_bytes(4, "little") * 2
    target.write_bytes(data[:24] + (head + frame) * more + data[24:at])
    return target


def run(folder: Path, *, more: int = 0, **settings: Any) -> Checked:
    """Runs the first frames of the demo, and reads them for the audit."""
    if tshark.find() is None:
        pytest.skip("tshark is not installed: `make test` installs it from Debian")
    capture = shortened(folder / "capture.pcap", more)
    key = folder / "key"
    new_key(key)
    own = {"z": Z, "window": "10m", "rotate": "10m", "format": ("csv", "observations", "parquet")}
    config = Config().replace(**(own | {"key_file": str(key)} | settings))
    zanon_net.run([capture], config, out=folder / "out")
    manifest = json.loads((folder / "out" / "manifest.json").read_bytes())
    return Checked(folder / "out", read_captures(manifest, [capture]))


class Copy:
    """A copy of an output that a test changes. Numbers of lines in its manifest follow."""

    def __init__(self, checked: Checked, folder: Path) -> None:
        self.folder, self.seen = folder, checked.seen
        shutil.copytree(checked.folder, folder)

    def manifest(self, change: Callable[[Line], None]) -> None:
        path = self.folder / "manifest.json"
        manifest = json.loads(path.read_bytes())
        change(manifest)
        path.write_text(json.dumps(manifest))

    def observations(self) -> list[Line]:
        text = (self.folder / "observations.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def write_observations(self, lines: list[Line]) -> None:
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        (self.folder / "observations.jsonl").write_text(text)

        def follow(manifest: Line) -> None:
            for one in manifest["outputs"]:
                if one["file"] == "observations.jsonl":
                    one["records"] = len(lines)

        self.manifest(follow)

    def rows(self) -> list[dict[str, str]]:
        with (self.folder / "flows.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    def edit(self, wanted: Callable[[Line], bool], **cells: str) -> None:
        """Changes cells of the first row of flows.csv that is wanted."""
        rows = self.rows()
        next(row for row in rows if wanted(row)).update(cells)
        with (self.folder / "flows.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def is_coarse(row: Line) -> bool:
    return (
        row["name_status"] == "suppressed" and row["proto"] == "6" and row["name_source"] == "tls"
    )


def is_exact(row: Line) -> bool:
    return row["name_status"] == "released" and row["complete"] == "1" and row["proto"] == "6"


def a_client(seen: Exposures) -> str:
    return next(text_of(flow.ends[flow.client][0]) for flow in seen.flows if flow.internal[0])
