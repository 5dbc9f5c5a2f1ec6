# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The raw mode of the audit finds nothing in the logs of real captures of every kind, if they lie
beside this tree."""

import itertools
import json
from pathlib import Path

import pytest
from support.examples import EVERY_CASE

import zanon_net
from zanon_net import Config
from zanon_net.audit.raw import tshark
from zanon_net.audit.raw.check import check_files, rules_of
from zanon_net.audit.raw.exposures import collect
from zanon_net.audit.raw.packets import Read
from zanon_net.errors import FormatError

SETTINGS = list(itertools.product((1, 2, 5, 20), ("established", "any")))
ROOM = 1 << 30


def violations(capture: Path, packets: list[Read], z: int, evidence: str, out: Path) -> list[str]:
    """The checks that a run over a capture does not pass."""
    own = {"z": z, "evidence": evidence, "format": ("csv", "observations")}
    zanon_net.run([capture], Config().replace(**own), out=out)
    manifest = json.loads((out / "manifest.json").read_bytes())
    seen = collect(packets, rules_of(manifest), ROOM)
    found = check_files(out, manifest, seen).violations
    return [f"{capture.name}: {one.check}, {one.column}" for one in found]


def test_no_false_alarm(corpus: Path, tmp_path: Path) -> None:
    program = tshark.find()
    if program is None:
        pytest.skip("tshark is not installed: `make test` installs it from Debian")
    lines = (corpus / "truth.jsonl").read_text("utf-8").splitlines()
    captures = [corpus / name for name in sorted(json.loads(line)["path"] for line in lines)]
    found, checked = [], 0
    for number, capture in enumerate(captures[:: 1 if EVERY_CASE else 80]):
        packets = []
        for more in (0, 5):
            z, evidence = SETTINGS[(number + more) % len(SETTINGS)]
            out = tmp_path / f"{number}-{more}"
            try:
                packets = packets or list(tshark.read(program, capture))
                found += violations(capture, packets, z, evidence, out)
                checked += 1
            except FormatError:  # a few files are there to be refused
                continue
    assert not found
    assert checked > 10
