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
OF_RUNS = {metric.full_name for metric in METRICS} | {AGE_NAME}
OF_COUNTERS = {metric.full_name for metric in COUNTER_METRICS} | {AGE_NAME}


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
    """Each panel is about runs, or about counters below the row of that name."""
    dashboard = json.loads((PACKAGING / "grafana-dashboard.json").read_text("utf-8"))
    panels = dashboard["panels"]
    (row,) = (number for number, panel in enumerate(panels) if panel["type"] == "row")
    assert (row, len(panels[row:])) == (6, 5)
    assert len({panel["id"] for panel in panels}) == len(panels)
    for number, panel in enumerate(panels):
        names = OF_RUNS if number < row else OF_COUNTERS
        queries = [target["expr"] for target in panel.get("targets", [])]
        assert queries or number == row
        assert all(named_in(query) and named_in(query) <= names for query in queries)


def test_alerts_are_on_what_there_is_and_are_explained() -> None:
    alerts = (PACKAGING / "alerts.yml").read_text("utf-8")
    page = (ROOT / "docs" / "howto" / "operating.md").read_text("utf-8")
    assert named_in(alerts) <= OF_RUNS | OF_COUNTERS
    names = re.findall(r"- alert: (\w+)", alerts)
    assert names
    assert re.findall(r"^\| `(Zanon\w+)` \|", page, re.M) == names
