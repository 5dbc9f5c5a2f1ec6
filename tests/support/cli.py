# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The command, called in this process or in one of its own."""

import json
import os
import sys
from pathlib import Path

import pytest

import zanon_net
from support.paths import ROOT
from zanon_net.cli import main

DEMO = ROOT / "pcaps" / "demo.pcap"
TRUTH = DEMO.with_name("demo.truth.jsonl")
# Child processes import the package that this one uses.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(zanon_net.__file__).parents[1])}
COMMAND = (sys.executable, "-m", "zanon_net")
Captured = pytest.CaptureFixture[str]
LIMITING = """
import os, resource, sys
import zanon_net.cli.entry
octets = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (octets, octets))
os.execv(sys.argv[2], sys.argv[2:])
"""


def limited(octets: int, *command: str) -> list[str]:
    """The command under a limit on the size of files, in bytes."""
    return [sys.executable, "-c", LIMITING, str(octets), *command]


def run_main(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def manifest_of(folder: str) -> dict[str, object]:
    manifest: dict[str, object] = json.loads(Path(folder, "manifest.json").read_bytes())
    return manifest
