# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The raw mode of the audit finds nothing in runs over random conversations."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenario.crowd import Scenario, scenarios, settings_of
from support.contract_runs import LIMITS, captures
from support.examples import examples

import zanon_net
from zanon_net import Config
from zanon_net.audit.raw import tshark
from zanon_net.audit.raw.check import check_files, read_captures
from zanon_net.audit.raw.findings import Finding

ZS = (1, 2, 5, 20)


def violations(scenario: Scenario, key_file: str) -> list[Finding]:
    """What the audit finds in a run over a scenario."""
    with tempfile.TemporaryDirectory() as folder:
        capture = captures(Path(folder), scenario.frames, 1)
        own = settings_of(scenario.rules) | LIMITS | {"key_file": key_file}
        own |= {"format": ("csv", "observations")}
        out = Path(folder) / "out"
        zanon_net.run(capture, Config().replace(**own), out=out)
        manifest = json.loads((out / "manifest.json").read_bytes())
        internal = scenario.rules.internal
        seen = read_captures(manifest, capture, internal=internal)
        return check_files(out, manifest, seen, key_file=Path(key_file)).violations


@settings(max_examples=examples(24, 8))
@given(scenario=scenarios, z=st.sampled_from(ZS), established=st.booleans())
def test_no_false_alarm(scenario: Scenario, z: int, established: bool, key_file: str) -> None:
    if tshark.find() is None:
        pytest.skip("tshark is not installed: `make test` installs it from Debian")
    rules = replace(scenario.rules, z=z, established=established)
    assert violations(replace(scenario, rules=rules), key_file) == []
