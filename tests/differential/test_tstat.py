# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Tstat's own logs of real captures against ours, column by column."""

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest
from support.engine import make_engine
from support.paths import ROOT

from zanon_net._core import OUTPUTS

pytestmark = pytest.mark.source

SCRIPT = ROOT / "bench" / "tstat_compare.py"

CORE, OTHER = 0.99, 0.97  # the least share of Tstat's flows that agree
FIRST_OTHER = "c_rtt_avg"  # the column behind the core set


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The comparison, which is a script of bench/."""
    monkeypatch.syspath_prepend(SCRIPT.parent)
    return importlib.import_module(SCRIPT.stem)


def test_headers_are_tstats(corpus: Path) -> None:
    logs = corpus / "tstat.jsonl"
    if not logs.exists():
        pytest.skip("Tstat's logs of the corpus are not beside this tree (../shared/corpus)")
    engine = make_engine(columns=("core", "e2e", "layer7", "options", "p2p"))
    ours = {log: engine.header(log).decode("ascii").rstrip("\n") for log in OUTPUTS[:3]}
    for line in logs.read_text("utf-8").splitlines():
        for log, rows in json.loads(line)["logs"].items():
            columns = 44 if log == "log_tcp_nocomplete" else None
            assert ours[log].split(" ") == rows[0].split(" ")[:columns], log


def test_logs_say_what_tstat_says(corpus: Path, script: ModuleType) -> None:
    logs = corpus / "tstat.jsonl"
    if not logs.exists():
        pytest.skip("Tstat's logs of the corpus are not beside this tree (../shared/corpus)")
    result = script.compare(corpus, logs)
    assert sum(result.flows[log, "(flow)"] for log, name in result.columns if name == "(flow)")
    low = []
    floor = {}
    for log, column in result.columns:
        if column == "(flow)":
            floor[log] = CORE
        elif column == FIRST_OTHER:
            floor[log] = OTHER
        share = result.share_decoded_alike(log, column)
        if share < floor[log]:
            low.append(f"{log} {column}: {share:.4f} < {floor[log]}")
    assert not low, "\n".join(low)
    assert not [item for item in result.differences if script.class_of(item) == "not explained"]
