# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The charts on the page of an audit, each next to a table with the same figures."""

from collections.abc import Iterator, Mapping, Sequence

from zanon_net.audit.page_text import information_rows, length_rows
from zanon_net.audit.result import AT_LEAST, BY_LENGTH, Metric
from zanon_net.report.parts import Bars, Cells, Section, Table


def chart_sections(metrics: Mapping[str, Metric]) -> Iterator[Section | None]:
    """Yields a section for each chart; None for a chart without figures."""
    yield _classes(metrics.get("k"), "Pseudonyms", "pseudonyms", "sets of released names")
    yield _classes(metrics.get("rows_k"), "Rows", "rows", "quasi-identifiers")
    yield _grid(
        metrics.get("unicity"),
        "Pseudonyms that are unique by known points",
        "Share of pseudonyms that no other pseudonym shares p random points with.",
        "p = {}",
    )
    yield _shares(
        metrics.get("k_windows"),
        "Uniqueness over several windows",
        "Share of users whose released names are unique if an attacker joins N windows.",
        "N = {}",
    )
    yield _reid(metrics.get("reid"))
    yield _lengths(metrics.get("link"))
    yield _shares(
        metrics.get("suppressed"),
        "Suppressed names that can be guessed, by popularity",
        "Decile 1 has the most popular names.",
        "{}",
    )
    yield _information(metrics.get("entropy"))


def _classes(metric: Metric | None, title: str, things: str, shared: str) -> Section | None:
    sizes = None if metric is None else metric.parts.get(f"{things} by power of 2 of k")
    if not sizes:
        return None
    rows = [(_range(int(power)), int(count), f"{int(count):,}") for power, count in sizes.items()]
    title = f"{title} by the size of their class"
    return Section(
        title,
        [f"k is the number of {things} with equal {shared}."],
        chart=Bars(title, [(f"k {label}", value, text) for label, value, text in rows]),
        table=Table(("k", things), [(label, text) for label, _value, text in rows]),
    )


def _range(power: int) -> str:
    low, high = 1 << power, (2 << power) - 1
    return f"= {low}" if low == high else f"from {low} to {high}"


def _shares(metric: Metric | None, title: str, text: str, label: str) -> Section | None:
    shares = {} if metric is None else metric.parts
    rows = [(label.format(key), share) for key, share in shares.items() if isinstance(share, float)]
    if not rows:
        return None
    return Section(
        title,
        [text],
        chart=Bars(title, [(key, round(share * 1000), f"{share:.1%}") for key, share in rows]),
        table=Table(("", "share"), [(key, f"{share:.1%}") for key, share in rows]),
    )


def _grid(metric: Metric | None, title: str, text: str, column: str) -> Section | None:
    kinds = {} if metric is None else metric.parts
    rows = [(kind, list(shares.values())) for kind, shares in kinds.items()]
    if not rows:
        return None
    columns = [column.format(key) for key in next(iter(kinds.values()))]
    return _cells(title, text, columns, rows)


def _reid(metric: Metric | None) -> Section | None:
    parts = {} if metric is None else metric.parts
    spans: list[str] = []
    rows: dict[str, list[float]] = {}
    for key, figures in parts.items():
        visits, _comma, span = key.partition(", ")
        if span:
            rows.setdefault(visits, []).append(figures["@1"])
            spans += [] if span in spans else [span]
    if not rows:
        return None
    return _cells(
        "Targets that are found by visits that were seen",
        "Share of targets whose pseudonym fits the known visits best. Columns: the error of the"
        " known times.",
        spans,
        list(rows.items()),
    )


def _cells(
    title: str, text: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[float]]]
) -> Section:
    shown = [(label, *(f"{share:.1%}" for share in shares)) for label, shares in rows]
    return Section(
        title,
        [text],
        chart=Cells(title, columns, rows),
        table=Table(("", *columns), shown),
    )


def _lengths(metric: Metric | None) -> Section | None:
    found = {} if metric is None else metric.parts.get(BY_LENGTH, {})
    if metric is None or not found:
        return None
    title = "Pseudonyms that are found again, by the length of epochs"
    rows = length_rows(metric)
    ends = [(one.get("share", 0.0), one.get("low", 0.0), one.get("high", 0.0))
            for one in found.values()]  # fmt: skip
    bars = [
        (f"every {length}", round(1000 * share), text)
        for (length, text, *_rest), (share, _low, _high) in zip(rows, ends, strict=True)
    ]
    text = (
        "Share of pseudonyms that an attacker finds again after the change of pseudonyms, if"
        " pseudonyms changed after the time on the left. Lines are 95 % intervals."
    )
    if any(AT_LEAST in one for one in found.values()):
        text += (
            " Without the key file, the log shows the share only for times that are shorter than"
            " its own. A longer time shows more of each user, so it is expected to link more."
        )
    return Section(
        title,
        [text],
        chart=Bars(
            title, bars, ranges=[(round(1000 * low), round(1000 * high)) for _s, low, high in ends]
        ),
        table=Table(("time", "found again", "95 % interval", "guess", "sample"), rows),
    )


def _information(metric: Metric | None) -> Section | None:
    rows = [] if metric is None else information_rows(metric)
    if not rows:
        return None
    text = (
        "Entropy says how much the sets of released names differ between users. The model of"
        " zanon-net tune, which proposes z, takes names as independent. If the log has fewer unique"
        " sets than the model, the model errs to the safe side. If the log has more, the z that"
        " tune proposes may be too small for this log."
    )
    return Section(
        "Information in the released sets, and in the model of tune",
        [text],
        table=Table(("", "entropy", "range", "unique sets"), rows),
    )
