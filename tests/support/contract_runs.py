# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Whole runs, as the command makes them, over scenarios for the contract's model."""

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

from oracle.rules import Rules
from scenario.crowd import Scenario, settings_of

import zanon_net
from support.capture_bytes import PCAP_NANOSECONDS, pcap_header, pcap_record
from support.packets import SECOND, Frame
from zanon_net import Config

LIMITS = {"max_flows": 4096, "max_tuples": 1 << 16, "max_attributes": 1 << 14}
COLUMNS = ("core", "e2e", "p2p", "options", "layer7")


def columns_of(rules: Rules) -> tuple[str, ...]:
    """Every set of columns that may go with the rules."""
    exact = rules.purpose != "public"
    return tuple(name for name in COLUMNS if exact or name not in ("e2e", "options"))


def write(path: Path, frames: list[Frame]) -> Path:
    records = (pcap_record("<", *divmod(f.t_ns, SECOND), f.data) for f in frames)
    path.write_bytes(pcap_header(magic=PCAP_NANOSECONDS) + b"".join(records))
    return path


def captures(folder: Path, frames: list[Frame], number: int) -> list[Path]:
    """Splits frames over at most `number` captures, each later than the one before; returns them
    last first."""
    size = -(-len(frames) // number)
    starts = [0]
    for n in range(size, len(frames), size):
        if frames[n].t_ns > frames[starts[-1]].t_ns:
            starts.append(n)
    parts = pairwise([*starts, len(frames)])
    return [write(folder / f"{a}.pcap", frames[a:b]) for a, b in parts][::-1]


def run_files(scenario: Scenario, key_file: str, sources: int = 1, **more: Any) -> dict[str, bytes]:
    """The files of a run."""
    with tempfile.TemporaryDirectory() as folder:
        capture = captures(Path(folder), scenario.frames, sources)
        settings = settings_of(scenario.rules) | LIMITS | {"key_file": key_file}
        settings |= {"format": ("jsonl", "observations")}
        settings |= {"columns": columns_of(scenario.rules)} | more
        out = Path(folder) / "out"
        zanon_net.run(capture, Config().replace(**settings), out=out)
        return {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()}
