# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The raw mode of the audit finds nothing in the logs of real captures of every kind, if they lie
beside this tree."""

import json
from pathlib import Path

import pytest
from support.audit_runs import SETTINGS, checked_run
from support.examples import EVERY_CASE

from zanon_net.audit.raw import tshark
from zanon_net.audit.raw.packets import Read
from zanon_net.errors import FormatError


def test_no_false_alarm(corpus: Path, tmp_path: Path) -> None:
    program = tshark.find()
    if program is None:
        pytest.skip("tshark is not installed: `make test` installs it from Debian")
    lines = (corpus / "truth.jsonl").read_text("utf-8").splitlines()
    captures = [corpus / name for name in sorted(json.loads(line)["path"] for line in lines)]
    found, checked = [], 0
    for number, capture in enumerate(captures[:: 1 if EVERY_CASE else 80]):
        packets: list[Read] = []
        for more in (0, 5):
            z, evidence = SETTINGS[(number + more) % len(SETTINGS)]
            out = tmp_path / f"{number}-{more}"
            try:
                packets = packets or list(tshark.read(program, capture))
                result = checked_run(capture, packets, z, evidence, out)
                found += [f"{capture.name}: {one.check}, {one.column}" for one in result.violations]
                checked += 1
            except FormatError:  # a few files are there to be refused
                continue
    assert not found
    assert checked > 10
