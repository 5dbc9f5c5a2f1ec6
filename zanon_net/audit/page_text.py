# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The report as one page for a terminal."""

from collections.abc import Iterator, Mapping
from typing import Any

from zanon_net._text import table
from zanon_net.audit.result import AT_LEAST, BY_LENGTH, RISKS, Advice, Metric, Report
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
    details = [row for metric in report.metrics for row in _details(metric)]
    if details:
        yield "\nDetails\n"
        yield table(details, width)
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
    return span(metric.low, metric.high)


def span(low: float, high: float) -> str:
    """Returns two shares as a range, such as 1.0 to 2.5%."""
    return f"{100 * low:.1f} to {high:.1%}"


def _details(metric: Metric) -> Iterator[tuple[str, str]]:
    """Yields what a metric shows besides its figure."""
    if metric.parts.get("model"):
        log, model, *_rest = information_rows(metric)
        text = (
            f"the log has {log[1]} ({log[2]}), and {log[3]} of its sets are unique; users with"
            f" independent names, as in the model of tune: {model[1]} ({model[2]}), {model[3]}"
            f" unique, and {_nats(metric.parts['model']['one set'])} in the set of one user"
        )
        yield metric.name, text
    lengths = length_rows(metric)
    if lengths:
        shares = [f"{row[0]} {row[1]}" + f" ({row[2]})" * (row[2] != NONE) for row in lengths]
        yield metric.name, f"found again, by the length of epochs: {'; '.join(shares)}"


def information_rows(metric: Metric) -> list[tuple[str, str, str, str]]:
    """Returns the rows of `entropy`: users, entropy, its range, and the share of unique sets."""
    parts, figure = metric.parts, metric.figure
    model = parts.get("model")
    if figure is None or not model:
        return []
    draws = f"{model['least']:.2f} to {_nats(model['largest'])}"
    return [
        ("pseudonyms of the log", _nats(figure), f"at most {_nats(parts['most'])}",
         f"{parts['unique']:.1%}"),
        ("as many users with independent names", _nats(model["sets"]), draws,
         f"{model['unique']:.1%}"),
        ("one such user, as tune states it", _nats(model["one set"]), NONE, NONE),
        ("one such user without z", "unknown", NONE, NONE),
    ]  # fmt: skip


def _nats(value: float) -> str:
    return f"{value:.2f} nats"


def length_rows(metric: Metric) -> list[tuple[str, str, str, str, str]]:
    """Returns the rows of `link`: length of epochs, share that is found again, its interval, its
    baseline, and the sample."""
    rows = []
    for length, found in metric.parts.get(BY_LENGTH, {}).items():
        if AT_LEAST in found:
            rows.append((length, f"unknown, at least {found[AT_LEAST]:.1%}", NONE, NONE, NONE))
            continue
        shares = (found["share"], found["baseline"])
        share, baseline = (f"{share:.1%}" for share in shares)
        rows.append(
            (length, share, span(found["low"], found["high"]), baseline, f"{found['sample']:,}")
        )
    return rows


def _advice(report: Report) -> str:
    advice = report.advice
    if advice is None:
        return "No metric with a known remedy is above its threshold."
    effect = effect_words(advice) or "the log alone cannot show the effect"
    return f"{advice.setting}: {advice.why}; {effect}{rest_words(report)}."


def effect_words(advice: Advice) -> str:
    """Returns the fall of a metric with the advised setting, with intervals; empty if unknown."""
    if advice.before is None or advice.measured is None:
        return ""
    low, high = (f"{100 * (end or 0.0):.1f}" for end in (advice.effect_low, advice.effect_high))
    return (
        f"{advice.metric} falls from {advice.before:.1%} to {advice.measured:.1%}"
        f" ({span(advice.low or 0.0, advice.high or 0.0)}), by {100 * (advice.effect or 0.0):.1f}"
        f" percentage points ({low} to {high})"
    )


def rest_words(report: Report) -> str:
    """Returns words for a figure that stays above its threshold with the advised setting."""
    advice = report.advice
    limits = [one.threshold for one in report.metrics if advice and one.name == advice.metric]
    if advice is None or advice.measured is None or not limits or limits[0] is None:
        return ""
    return ", still above its threshold" if advice.measured > limits[0] else ""
