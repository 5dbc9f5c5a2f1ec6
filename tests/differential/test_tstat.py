# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Tstat's own logs of real captures against ours, column by column."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.source

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "tstat_compare.py"

CORE, OTHER = 0.99, 0.97  # the least share of Tstat's flows that agree
FIRST_OTHER = "http_req_cnt"  # the column behind the core set
NOT_MEASURED = {
    "http_req_cnt": 0.6,
    "http_res_cnt": 0.6,
    "http_res": 0.6,
    "c_pkts_push": 0.0,
    "s_pkts_push": 0.0,
    "s_tls_SCN": 0.95,
    "c_npnalpn": 0.9,
    "tls_session_stat": 0.9,
    "c_last_handshakeT": 0.85,
    "s_last_handshakeT": 0.85,
    "c_appdataT": 0.85,
    "s_appdataT": 0.85,
    "c_appdataB": 0.85,
    "s_appdataB": 0.85,
    "c_TLSvers": 0.8,
    "s_TLSvers": 0.8,
    "c_type": 0.975,
    "s_type": 0.98,
    "fqdn": 0.85,
}
"""What is not yet as Tstat has it, and the share that agrees all the same."""


def load_script() -> ModuleType:
    """The comparison, which is a script of bench/."""
    spec = importlib.util.spec_from_file_location("tstat_compare", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_logs_say_what_tstat_says(corpus: Path) -> None:
    logs = corpus / "tstat.jsonl"
    if not logs.exists():
        pytest.skip("Tstat's logs of the corpus are not beside this tree (../shared/corpus)")
    result = load_script().compare(corpus, logs)
    assert sum(result.flows[log, "(flow)"] for log, name in result.columns if name == "(flow)")
    low = []
    floor = {}
    for log, column in result.columns:
        if column == "(flow)":
            floor[log] = CORE
        elif column == FIRST_OTHER:
            floor[log] = OTHER
        least = NOT_MEASURED.get(column, floor[log])
        if result.share(log, column) < least:
            low.append(f"{log} {column}: {result.share(log, column):.4f} < {least}")
    assert not low, "\n".join(low)
