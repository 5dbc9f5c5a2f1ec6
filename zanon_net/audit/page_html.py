# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The report of an audit as one page of HTML that people read, print and sign.

The page has figures and closed lists of words: no name, address or pseudonym. Its words follow
opinion 05/2014 of the Article 29 Working Party (singling out, linking, inference), guidelines
01/2025 of the EDPB on pseudonymisation, and the judgment EDPS v SRB (C-413/23 P).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from zanon_net._version import __version__
from zanon_net.audit.page_charts import chart_sections
from zanon_net.audit.page_text import (
    attribute_rows,
    effect_words,
    interval,
    number,
    packet_words,
    promise_words,
    rest_words,
    sample,
    table_words,
    words,
)
from zanon_net.audit.result import (
    ABOVE,
    EXIT_PROMISE,
    INFERENCE,
    LINKING,
    LOW,
    REPORTED,
    RISKS,
    SINGLING,
    UNKNOWN,
    UNWANTED,
    Metric,
    Report,
)
from zanon_net.config.audit_rows import CHECKS
from zanon_net.config.parse import format_duration
from zanon_net.report.page import page
from zanon_net.report.parts import Contents, Section, Table

FOOTER = "This page has counts and figures. It has no name, no address and no pseudonym."
RECIPIENTS = {
    "internal": "people of the organisation that made the release, under its rules",
    "partner": "a partner who is bound by a contract and may have other logs",
    "public": "anybody, with any other data and for any time",
}
THRESHOLDS = {
    "internal": " Only compose has a threshold: all other figures are for the reader to judge.",
    "partner": " A figure that is unknown counts as above its threshold.",
    "public": " A figure that is unknown counts as above its threshold.",
}
MEANING = {
    SINGLING: "Can a reader isolate the records of one person?",
    LINKING: "Can a reader join records of one person, or records and an address?",
    INFERENCE: "Can a reader conclude what a record does not state?",
}
VERDICTS = {
    LOW: "low",
    ABOVE: "above its threshold",
    UNKNOWN: "unknown",
    REPORTED: "no threshold",
}
MARKS = (
    (VERDICTS[LOW], "good"),
    (VERDICTS[ABOVE], "bad"),
    (VERDICTS[UNKNOWN], "bad"),
)
KEYS = {
    "ephemeral": "The manifest states that keys were random, were in the memory of the run only,"
    " and were replaced every {}. No key of a finished run is left that could undo its pseudonyms.",
    "derived": "The manifest states that keys were derived from a key file, and replaced every {}."
    " Whoever has the file can undo the pseudonyms: keep it apart from the release, and destroy it"
    " when it is not needed.",
}
UNKNOWN_KEYS = "No manifest states how keys were made. They were replaced every {}."
PARAMETERS = {
    "evidence": "Evidence that a user is real",
    "pseudonym_kind": "Pseudonyms",
    "key_mode": "Keys",
    "made_for": "Recipient that the run was made for",
}
FIGURES = ("figure", "95 % interval", "without the release", "threshold", "verdict")
STATES = {
    "kept": "The audit compared the release with the raw data, and found the promise kept.",
    "broken": "The audit compared the release with the raw data. The promise counts as broken,"
    " because of the places below.",
}
UNCHECKED = "This is the statement of the operator. State: {}."
MANY = 10


def audit_page(report: Report) -> bytes:
    """Returns the report as a whole page, in UTF-8."""
    return page(contents_of(report))


def contents_of(report: Report) -> Contents:
    """Returns the parts of the page."""
    return Contents(
        title=f"Audit of a {_kind(report)} for {RECIPIENTS[report.purpose]}",
        period=_period(report.facts),
        is_good=report.exit_code == 0,
        state=_state(report),
        tiles=[_tile(report, risk) for risk in RISKS],
        notes=list(report.notes),
        sections=[section for section in _sections(report) if section is not None],
        version=__version__,
        footer=FOOTER,
    )


def _kind(report: Report) -> str:
    return "table" if "classes" in report.facts else "release"


def _period(facts: Mapping[str, Any]) -> str:
    time = facts.get("time_range")
    if time is None:
        return "a table" if "classes" in facts else "no records"
    first, last = (time[end][:16].replace("T", " ") for end in ("first", "last"))
    return f"{first} to {last} UTC"


def _state(report: Report) -> str:
    if report.exit_code == EXIT_PROMISE:
        return "Not passed: the release breaks its promise."
    above = sum(metric.verdict == ABOVE for metric in report.metrics)
    unknown = sum(metric.verdict == UNKNOWN for metric in report.metrics)
    checked = {"kept": "The promise is kept.", "not checked": "The promise was not checked."}
    if _kind(report) == "table":
        checked = {"not checked": ""}
    left_out = sum(reason == UNWANTED for _name, reason in report.left_out)
    rest = checked[report.promise]
    if left_out:
        were = "was" if left_out == 1 else "were"
        rest += f" {left_out} of the figures and checks {were} left out."
    if report.exit_code == 0:
        return f"Passed: no figure is above its threshold. {rest}".strip()
    figures = (
        "1 figure is above its threshold"
        if above == 1
        else (f"{above} figures are above their thresholds")
    )
    more = f"{unknown} {'is' if unknown == 1 else 'are'} unknown, which counts as above"
    return f"Not passed: {figures}, and {more}. {rest}".strip()


def _tile(report: Report, risk: str) -> tuple[str, str, str]:
    metrics = report.of_risk(risk)
    if not metrics:
        return (risk.capitalize(), "-", "left out")
    worst = metrics[0]
    if worst.threshold is None:
        about = f"{worst.name}: {VERDICTS[worst.verdict]}"
        figure = "unknown" if worst.figure is None else number(worst, worst.figure)
        return (risk.capitalize(), figure, about)
    most = "at least" if worst.unit == "s" else "at most"
    limit = f"{most} {number(worst, worst.threshold)}"
    figure = number(worst, worst.figure) if worst.figure is not None else "unknown"
    return (risk.capitalize(), figure, f"{worst.name}: {VERDICTS[worst.verdict]}; {limit}")


def _sections(report: Report) -> Iterator[Section | None]:
    is_table = _kind(report) == "table"
    if is_table:
        yield Section("What is in the table", [f"{table_words(report.facts)}.".capitalize()])
    elif "packets" in report.facts:
        yield Section("What is in the release", [f"{packet_words(report.facts)}.".capitalize()])
    else:
        yield _release(report)
    if not is_table:
        yield _promise(report)
        yield _places(report)
    yield Section("Three risks", ["The worst figure of each risk decides."], table=_risks(report))
    yield Section("Who receives it", _recipient(report))
    yield None if is_table else Section("How keys are handled", _keys(report.facts))
    yield Section("What would help most", [_advice(report)])
    yield Section("All figures", table=_figures(report))
    yield from chart_sections({metric.name: metric for metric in report.metrics})
    yield _left_out(report)
    yield Section(
        "Decision",
        [f"The {_kind(report)} may go to the recipient above, under these conditions:"],
        blanks=("Conditions", "Place and date", "Name and role", "Signature"),
    )


def _release(report: Report) -> Section:
    facts = report.facts
    rows = [
        ("Records", f"{facts['records']:,}"),
        ("Records with a name", f"{facts['records_with_a_name']:,}"),
        ("Coarse records, without a name", f"{facts['coarse_records']:,}"),
        ("Records of flows that could not be read", f"{facts['unread_records']:,}"),
        ("Names", f"{facts['names']:,}"),
        *attribute_rows(facts),
        ("Pseudonyms", f"{facts['pseudonyms']:,} in {_count(facts, 'epochs')}"),
        (
            "Files",
            f"{_count(facts, 'files')} in {_count(facts, 'folders')}: {words(facts['formats'])}",
        ),
    ]
    return Section("What is in the release", table=Table(("", ""), rows, is_words=True))


def _count(facts: Mapping[str, Any], things: str) -> str:
    """Returns a number with its noun."""
    count = facts[things]
    return f"{count:,} {things.removesuffix('s') if count == 1 else things}"


def _promise(report: Report) -> Section:
    facts = report.facts
    z, window = facts["z"], format_duration(facts["window_ns"])
    what = "name and each attribute" if facts.get("attributes") else "name"
    promise = (
        f"The promise: each {what} in the release was exposed by at least {z} users within"
        f" {window} before it was shown. Names of fewer users are withheld. The promise is about"
        " single names, not about combinations of names."
    )
    if z == 1:
        promise = "There is no promise about names: with z = 1, a name of a single user is shown."
    text = [promise, STATES.get(report.promise, UNCHECKED.format(promise_words(report)))]
    if report.promise == "kept" and any(name in CHECKS for name, _reason in report.left_out):
        text.append("Some parts of the promise were not checked; the end of this page lists them.")
    if facts.get("exact") not in (None, False):
        text.append(
            "Records of withheld names state exact times and sizes (--exact), which can disclose"
            " the names."
        )
    rows = [
        ("Users that share a name (z)", f"{z:,}"),
        ("Window", window),
        ("Change of pseudonyms", f"every {format_duration(facts['rotate_ns'])}"),
    ]
    for name, title in PARAMETERS.items():
        if name in facts:
            rows.append((title, words(facts[name])))
    if facts.get("weaker_than_preset"):
        rows.append(("Weaker than the preset", words(facts["weaker_than_preset"])))
    table = Table(("", ""), rows, is_words=True)
    return Section("The promise and its parameters", text, table=table)


def _places(report: Report) -> Section | None:
    """Returns the first places that break the promise."""
    if not report.violations:
        return None
    rows = [
        (
            one.check,
            one.file,
            str(one.row or "-"),
            one.column,
            words(one.measured),
            words(one.needed),
        )
        for one in report.violations[:MANY]
    ]
    columns = ("check", "file", "row", "column", "measured", "needed")
    text = f"The first {len(rows)} of {len(report.violations):,} places."
    return Section("Places that break the promise", [text], table=Table(columns, rows))


def _risks(report: Report) -> Table:
    rows = []
    for risk in RISKS:
        for metric in report.of_risk(risk)[:1]:
            about = f"{risk.capitalize()}. {MEANING[risk]} The attacker {metric.attacker}."
            rows.append((about, *_numbers(metric)))
    return Table(("risk and attacker", *FIGURES), rows, marks=MARKS)


def _figures(report: Report) -> Table:
    rows = [(f"{one.name}: {one.attacker}", sample(one), *_numbers(one)) for one in report.metrics]
    return Table(("figure and attacker", "sample", *FIGURES), rows, marks=MARKS)


def _numbers(metric: Metric) -> tuple[str, ...]:
    return (
        number(metric, metric.figure),
        interval(metric),
        number(metric, metric.baseline),
        number(metric, metric.threshold),
        VERDICTS[metric.verdict],
    )


def _recipient(report: Report) -> list[str]:
    sources = "the raw traffic or the keys exist"
    if _kind(report) == "table":
        sources = "the original table exists"
    return [
        f"The thresholds are those for {RECIPIENTS[report.purpose]}.{THRESHOLDS[report.purpose]}",
        (
            "Data can be personal for one holder and not for another. This depends on the means"
            " that a holder is reasonably likely to use to identify a person (EDPS v SRB,"
            " C-413/23 P). So a release can be anonymous for one recipient and pseudonymous for"
            " another. For the operator who made the release, it stays personal data as long as"
            f" {sources}."
        ),
    ]


def _keys(facts: Mapping[str, Any]) -> list[str]:
    rotate = format_duration(facts["rotate_ns"])
    modes = facts.get("key_mode")
    modes = list(dict.fromkeys(modes)) if isinstance(modes, list) else [modes]
    return [
        *(KEYS.get(str(mode), UNKNOWN_KEYS).format(rotate) for mode in modes),
        (
            "Under guidelines 01/2025 of the EDPB, keys and raw traffic are the additional"
            " information that must be kept apart from pseudonymised data."
        ),
    ]


def _advice(report: Report) -> str:
    advice = report.advice
    if advice is None:
        return "No figure with a known remedy is above its threshold."
    attackers = {metric.name: metric.attacker for metric in report.metrics}
    effect = effect_words(advice)
    if not effect:
        return f"{advice.setting}, because {advice.why}. The release alone cannot show the effect."
    return (
        f"{advice.setting}, because {advice.why} (the attacker {attackers[advice.metric]})."
        f" Measured on this release, {effect}{rest_words(report)}. Ranges are 95 % intervals."
    )


def _left_out(report: Report) -> Section:
    notes = [(metric.name, metric.note) for metric in report.metrics if metric.note]
    rows = [*report.left_out, *notes]
    text = [] if rows else ["Everything was checked."]
    return Section(
        "Not checked, and limits of the figures",
        text,
        table=Table(("", ""), rows, is_words=True) if rows else None,
    )
