# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Results of an audit: metrics, violations, and the report that has both."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Literal

from zanon_net._record import dataclass

SCHEMA = 1
EXIT_PROMISE, EXIT_RISK = 3, 4
Verdict = Literal["low", "above", "unknown", "reported"]
LOW: Final = "low"
ABOVE: Final = "above"
UNKNOWN: Final = "unknown"
UNWANTED = "left out by --check or --skip"
REPORTED: Final = "reported"
SINGLING, LINKING, INFERENCE = "singling out", "linking", "inference"
RISKS = (SINGLING, LINKING, INFERENCE)
"""The three risks of the Article 29 Working Party's opinion 05/2014."""
BY_LENGTH, AT_LEAST = "by length of epochs", "at least"
"""Keys of `parts`: shares by the length of epochs, and the lower bound of an unknown share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """Success of an attack on the log, and its judgement.

    name: word of the tables in the documents. risk: one of RISKS. attacker: what the attacker knows
    and does.
    figure: share of successes, or a number of `unit`; None if it could not be measured.
    low, high: 95 % interval of the figure (Wilson); None if the figure has no sample.
    baseline: success of a guess without the log. threshold: the largest figure (`order`: the
    smallest) for the recipient; None: the figure is only reported.
    yardstick: threshold of another recipient, which orders figures that are only reported.
    sample: number of trials. note: the reason of an unknown figure, or a limit of the figure.
    parts: further figures by their names, such as a figure for each number of windows.
    """

    name: str
    risk: str
    attacker: str
    verdict: Verdict
    figure: float | None = None
    low: float | None = None
    high: float | None = None
    baseline: float | None = None
    threshold: float | None = None
    yardstick: float | None = None
    sample: int = 0
    unit: str = "share"
    note: str = ""
    parts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gain(self) -> float | None:
        """The figure beyond the baseline, as a share of the largest gain (Giomi et al.)."""
        if self.figure is None or self.baseline is None or self.unit != "share":
            return None
        return (self.figure - self.baseline) / (1 - self.baseline) if self.baseline < 1 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Returns the metric for JSON."""
        numbers = {
            name: rounded(getattr(self, name))
            for name in ("figure", "low", "high", "baseline", "threshold")
        }
        return {
            "name": self.name,
            "risk": self.risk,
            "verdict": self.verdict,
            "unit": self.unit,
            **numbers,
            "gain": rounded(self.gain),
            "sample": self.sample,
            "attacker": self.attacker,
            "note": self.note,
            "parts": rounded(self.parts),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A place of the release that breaks the promise.

    check: name of the check. file, row, column: the place; row is the number of the line or row in
    the file, from 1 on. measured, needed: such as 7 users of 20. It has no data of the log.
    """

    check: str
    file: str
    row: int | None
    column: str
    measured: float | None
    needed: float | None

    def to_dict(self) -> dict[str, Any]:
        """Returns the violation for JSON."""
        names = ("check", "file", "row", "column", "measured", "needed")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The setting that would help most.

    setting: as on a command line. why: the metric and its figure. before: figure of the metric.
    measured, low, high: figure with the setting, and its 95 % interval; None: the log alone cannot
    show it. effect, effect_low, effect_high: fall of the figure, and its 95 % interval.
    """

    setting: str
    metric: str
    why: str
    before: float | None = None
    measured: float | None = None
    low: float | None = None
    high: float | None = None
    effect: float | None = None
    effect_low: float | None = None
    effect_high: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Returns the advice for JSON."""
        names = ("before", "measured", "low", "high", "effect", "effect_low", "effect_high")
        numbers = {name: rounded(getattr(self, name)) for name in names}
        return {"setting": self.setting, "metric": self.metric, "why": self.why, **numbers}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Result of an audit.

    purpose: recipient of the log: internal, partner or public. promise: "kept", "broken", or "not
    checked". facts: counts and settings of the release. left_out: each check that was not done,
    with the reason.
    """

    purpose: str
    promise: str
    facts: Mapping[str, Any]
    metrics: Sequence[Metric]
    violations: Sequence[Violation] = ()
    advice: Advice | None = None
    left_out: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()

    @property
    def exit_code(self) -> int:
        """0 passed, 3 the promise was broken, 4 a risk is above the threshold of the recipient.

        A metric that is unknown counts as above for partner and public.
        """
        if self.promise == "broken" or self.violations:
            return EXIT_PROMISE
        bad = {ABOVE} if self.purpose == "internal" else {ABOVE, UNKNOWN}
        return EXIT_RISK if any(metric.verdict in bad for metric in self.metrics) else 0

    def of_risk(self, risk: str) -> list[Metric]:
        """Returns the metrics of a risk, the worst first."""
        order = (ABOVE, UNKNOWN, LOW, REPORTED)
        metrics = [metric for metric in self.metrics if metric.risk == risk]
        return sorted(
            metrics,
            key=lambda one: (order.index(one.verdict), one.figure is None, -excess(one)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns the report for JSON."""
        return {
            "schema": SCHEMA,
            "for": self.purpose,
            "promise": self.promise,
            "exit_code": self.exit_code,
            "release": dict(self.facts),
            "risks": {
                risk: next((metric.name for metric in self.of_risk(risk)), None) for risk in RISKS
            },
            "metrics": [metric.to_dict() for metric in self.metrics],
            "violations": [violation.to_dict() for violation in self.violations],
            "advice": None if self.advice is None else self.advice.to_dict(),
            "left_out": [{"check": name, "reason": reason} for name, reason in self.left_out],
            "notes": list(self.notes),
        }

    def text(self, width: int = 80) -> str:
        """Returns the report as one page for a terminal of `width` columns."""
        from zanon_net.audit.page_text import page_text

        return page_text(self, width)


def excess(metric: Metric) -> float:
    """Returns how far a figure is above its threshold, as a share of the threshold's rest.

    A figure that is only reported is compared with the threshold of another recipient. A figure
    without any threshold comes last.
    """
    threshold = metric.yardstick if metric.threshold is None else metric.threshold
    if metric.figure is None or threshold is None:
        return -math.inf
    if metric.unit == "s":  # the larger, the better
        return (threshold - metric.figure) / max(threshold, 1e-9)
    scale = 1.0 if metric.unit == "share" else 32.0
    return (metric.figure - threshold) / max(scale - threshold, 1e-9)


def rounded(value: Any, digits: int = 6) -> Any:
    """Returns a number, or the numbers of a mapping, rounded to a number of digits.

    Threads add in any order, which changes the last digits of a sum.
    """
    if isinstance(value, Mapping):
        return {key: rounded(one, digits) for key, one in value.items()}
    return round(value, digits) if isinstance(value, float) else value
