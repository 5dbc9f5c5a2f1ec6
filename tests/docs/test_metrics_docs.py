# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The page of metrics, the dashboard and the alerts name the metrics that there are."""

import json
import re

import pytest
from support.paths import ROOT

from zanon_net.pipeline.counter_metrics import COUNTER_METRICS
from zanon_net.pipeline.metrics import METRICS
from zanon_net.pipeline.metrics_export import AGE_NAME

pytestmark = pytest.mark.source

PACKAGING = ROOT / "packaging"
NAMES = {metric.full_name for metric in METRICS} | {AGE_NAME}


def named_in(text: str) -> set[str]:
    return set(re.findall(r"\bzanon_(?!net\b)[a-z_]+\b", text))


def test_the_table_is_the_programs() -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text("utf-8")
    rows = re.findall(r"^\| `(zanon_\w+)` \| (\w+) \| (?:`(\w+)` )?\| [^|]+ \|$", page, re.M)
    expected = [(metric.full_name, metric.kind, metric.label) for metric in METRICS]
    assert rows == [*expected, (AGE_NAME, "gauge", "")]


def test_the_counters_table_is_the_programs() -> None:
    page = (ROOT / "docs" / "reference" / "counter.md").read_text("utf-8")
    rows = re.findall(r"^\| `(zanon_\w+)` \| (\w+) \| (?:`(\w+)` )?\| [^|]+ \|$", page, re.M)
    expected = [(metric.full_name, metric.kind, metric.label) for metric in COUNTER_METRICS]
    assert rows == [*expected, (AGE_NAME, "gauge", "")]


def test_the_dashboard_shows_what_there_is() -> None:
    dashboard = json.loads((PACKAGING / "grafana-dashboard.json").read_text("utf-8"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(dashboard["panels"]) == 6
    assert all(named_in(query) and named_in(query) <= NAMES for query in queries)


def test_alerts_are_on_what_there_is_and_are_explained() -> None:
    alerts = (PACKAGING / "alerts.yml").read_text("utf-8")
    page = (ROOT / "docs" / "howto" / "operating.md").read_text("utf-8")
    assert named_in(alerts) - NAMES == set()
    names = re.findall(r"- alert: (\w+)", alerts)
    assert names
    assert re.findall(r"^\| `(Zanon\w+)` \|", page, re.M) == names
