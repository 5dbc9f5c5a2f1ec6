# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The report as one page for a terminal."""

from collections.abc import Iterator, Mapping
from typing import Any

from zanon_net._text import table
from zanon_net.audit.result import RISKS, Metric, Report
from zanon_net.config.parse import format_duration

NONE = "-"
HEAD = ("verdict", "figure", "95 %", "baseline", "threshold")
RIGHT = (1, 2, 3, 4)  # the columns of numbers, after the verdict


def page_text(report: Report, width: int) -> str:
    """Returns the report as text, whose lines have at most `width` columns where words allow."""
    return "".join(_parts(report, width))


def _parts(report: Report, width: int) -> Iterator[str]:
    yield table(_head(report), width)
    yield f"\nThree risks, for the recipient {report.purpose}\n"
    yield table([(*HEAD, "metric"), *(_row(report, risk) for risk in RISKS)], width, right=RIGHT)
    yield "\nAll metrics\n"
    rows = [(*_cells(metric), sample(metric), metric.name) for metric in report.metrics]
    yield table([(*HEAD, "sample", "metric"), *rows], width, right=(*RIGHT, 5))
    yield "\nWhat would help most\n"
    yield table([(_advice(report),)], width)
    yield "\nNot checked, and limits of the figures\n"
    notes = [(metric.name, metric.note) for metric in report.metrics if metric.note]
    yield table([*report.left_out, *notes], width)


def _head(report: Report) -> list[tuple[str, str]]:
    facts, notes = report.facts, [("note", note) for note in report.notes]
    if "classes" in facts:
        return [("recipient", report.purpose), ("table", table_words(facts))]
    if "packets" in facts:
        return [
            ("recipient", report.purpose),
            ("promise", promise_words(report)),
            ("packets", packet_words(facts)),
            *notes,
        ]
    time = facts["time_range"]
    span = "no records" if time is None else f"{time['first'][:19]}Z to {time['last'][:19]}Z"
    release = (
        f"{facts['records']:,} records, {facts['coarse_records']:,} of them coarse;"
        f" {facts['names']:,} names; {facts['pseudonyms']:,} pseudonyms in"
        f" {facts['epochs']:,} epochs; {span}"
    )
    settings = (
        f"z = {facts['z']}, window {format_duration(facts['window_ns'])}, pseudonyms change"
        f" every {format_duration(facts['rotate_ns'])}, keys {words(facts['key_mode'])}"
    )
    rows = [
        ("recipient", recipient_words(report)),
        ("promise", promise_words(report)),
        ("release", release),
        ("settings", settings),
        *((name.lower(), text) for name, text in attribute_rows(facts)),
    ]
    if facts["weaker_than_preset"]:
        rows.append(("weaker", f"than its preset: {words(facts['weaker_than_preset'])}"))
    return [*rows, *notes]


def recipient_words(report: Report) -> str:
    """Returns the recipient, and the recipient that the run had, if they differ."""
    recipient = report.facts["made_for"]
    if recipient in (None, report.purpose):
        return report.purpose
    return f"{report.purpose}, but the run was made for: {words(recipient)}"


def attribute_rows(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns the row about attributes besides names, if the release has attributes."""
    if not facts["attributes"]:
        return []
    what = "each can help to identify a person, so it counts like a further name"
    return [("Attributes", f"{words(facts['attributes'])}; {what}")]


def packet_words(facts: Mapping[str, Any]) -> str:
    """Returns what is in captures, in words."""
    return f"{facts['packets']:,} packets in {facts['files']:,} captures, z = {facts['z']}"


def table_words(facts: Mapping[str, Any]) -> str:
    """Returns what is in a table, in words."""
    return (
        f"{facts['rows']:,} rows in {facts['classes']:,} classes, the smallest of"
        f" {facts['least_k']:,} rows; {facts['quasi_columns']} columns can identify,"
        f" {facts['sensitive_columns']} are sensitive, of {facts['columns']}"
    )


def promise_words(report: Report) -> str:
    """Returns the state of the promise, with the first places that break it."""
    if report.promise == "not checked":
        return "not checked, because this needs the raw traffic"
    places = [
        f"{one.check} in {one.file}" + ("" if one.row is None else f", row {one.row}")
        for one in report.violations[:10]
    ]
    return "; ".join([report.promise, *places])


def words(value: object) -> str:
    """Returns a value of a manifest for people."""
    if isinstance(value, list):
        return ", ".join(map(words, value))
    return "unknown" if value is None else str(value)


def _row(report: Report, risk: str) -> tuple[str, ...]:
    """Returns the row of the worst metric of a risk, with the attacker."""
    metrics = report.of_risk(risk)
    if not metrics:
        return (*[NONE] * len(RIGHT), NONE, f"{risk}: left out")
    return (*_cells(metrics[0]), f"{risk}: the attacker {metrics[0].attacker}")


def _cells(metric: Metric) -> tuple[str, ...]:
    numbers = (metric.baseline, metric.threshold)
    return (
        metric.verdict,
        number(metric, metric.figure),
        interval(metric),
        *(number(metric, value) for value in numbers),
    )


def number(metric: Metric, value: float | None) -> str:
    """Returns a figure of a metric with its unit."""
    if value is None:
        return NONE
    return f"{value:.1%}" if metric.unit == "share" else f"{value:.3g} {metric.unit}"


def sample(metric: Metric) -> str:
    """Returns the number of trials."""
    return f"{metric.sample:,}" if metric.sample else NONE


def interval(metric: Metric) -> str:
    """Returns the 95 % interval of a figure."""
    if metric.low is None or metric.high is None:
        return NONE
    return f"{metric.low:.1%} to {metric.high:.1%}".replace("% to", " to")


def _advice(report: Report) -> str:
    advice = report.advice
    if advice is None:
        return "No metric with a known remedy is above its threshold."
    effect = "the log alone cannot show the effect"
    if advice.measured is not None and advice.before is not None:
        effect = f"{advice.metric} falls from {advice.before:.1%} to {advice.measured:.1%}"
        effect += rest_words(report)
    return f"{advice.setting}: {advice.why}; {effect}."


def rest_words(report: Report) -> str:
    """Returns words for a figure that stays above its threshold with the advised setting."""
    advice = report.advice
    limits = [one.threshold for one in report.metrics if advice and one.name == advice.metric]
    if advice is None or advice.measured is None or not limits or limits[0] is None:
        return ""
    return ", still above its threshold" if advice.measured > limits[0] else ""
