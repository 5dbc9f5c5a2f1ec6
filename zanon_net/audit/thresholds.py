# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Thresholds of each metric by recipient, and the judgement of a figure against its threshold."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from zanon_net._record import dataclass
from zanon_net.audit.result import (
    ABOVE,
    INFERENCE,
    LINKING,
    LOW,
    REPORTED,
    SINGLING,
    UNKNOWN,
    Metric,
    Verdict,
    rounded,
)

NORMAL_95 = 1.959963984540054
DIGITS = 9  # of a figure
SMALL = "the sample is too small to show that the figure is below the threshold"


def wilson(hits: float, trials: int) -> tuple[float, float]:
    """Returns the 95 % interval of a share. Hits may have fractions, because ties share a hit."""
    if trials == 0:
        return 0.0, 1.0
    share, z2 = hits / trials, NORMAL_95**2
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = NORMAL_95 / (1 + z2 / trials)
    half *= math.sqrt(max(0.0, share * (1 - share)) / trials + z2 / (4 * trials**2))
    low = 0.0 if hits == 0 else centre - half
    high = 1.0 if hits == trials else centre + half
    return max(0.0, low), min(1.0, high)


def fall(
    before: tuple[float, float, float], after: tuple[float, float, float]
) -> tuple[float, float, float]:
    """Returns the difference of two shares, and its 95 % interval (Newcombe 1998, method 10).

    before, after: share, and the ends of Wilson's interval. The interval is for independent
    samples; shares of equal targets differ less by chance.
    """
    (p, p_low, p_high), (q, q_low, q_high) = before, after
    low, high = math.hypot(p - p_low, q_high - q), math.hypot(p_high - p, q - q_low)
    return p - q, p - q - low, p - q + high


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the table of metrics.

    partner, public: thresholds; None: the figure is only reported. internal has a threshold only
    if `always` is true.
    over_baseline: the recipients for whom the baseline is added to the threshold.
    attacker: what the attacker knows and does, in words for people.
    is_census: true if the figure counts the whole release, so that its interval decides nothing.
    at_least: true if a larger figure is better.
    """

    risk: str
    attacker: str
    partner: float | None = None
    public: float | None = None
    always: bool = False
    over_baseline: Sequence[str] = ()
    is_census: bool = False
    at_least: bool = False
    unit: str = "share"

    def threshold(self, purpose: str, baseline: float | None) -> float | None:
        """Returns the threshold for a recipient, in the unit of the figure."""
        chosen = {"partner": self.partner, "public": self.public}.get(
            purpose, self.partner if self.always else None
        )
        if chosen is None or purpose not in self.over_baseline:
            return chosen
        return chosen + (baseline or 0.0)

    def yardstick(self, baseline: float | None) -> float | None:
        """Returns the threshold for partners, or else for the public."""
        found = self.threshold("partner", baseline)
        return self.threshold("public", baseline) if found is None else found


ROWS = {
    "k": Row(
        risk=SINGLING,
        attacker="knows all names of a user in an epoch",
        partner=0.20,
        public=0.05,
        is_census=True,
    ),
    "k_windows": Row(
        risk=SINGLING,
        attacker="knows all names of a user over a day, and joins pseudonyms of epochs",
        public=0.20,
        is_census=True,
    ),
    "prosecutor": Row(
        risk=SINGLING,
        attacker="knows all names of the user with the rarest names",
        is_census=True,
    ),
    "marketer": Row(
        risk=SINGLING,
        attacker="knows all names of every user",
        partner=0.2,
        public=0.09,
        is_census=True,
    ),
    "unicity": Row(
        risk=SINGLING,
        attacker="knows three random names of a user",
        partner=0.20,
        public=0.05,
    ),
    "reid": Row(
        risk=SINGLING,
        attacker="saw three visits of a user, to the minute",
        partner=0.20,
        public=0.09,
    ),
    "operator": Row(
        risk=SINGLING,
        attacker="runs the five largest names, and has their own logs",
        partner=0.05,
        public=0.006,
    ),
    "link": Row(
        risk=LINKING,
        attacker="compares names, sizes and hours of two epochs",
        partner=0.20,
        public=0.02,
        over_baseline=("public",),
    ),
    "bits": Row(
        risk=LINKING,
        attacker="knows the addresses of 256 hosts in the log",
        public=2.0,
        over_baseline=("public",),
        is_census=True,
        unit="bits",
    ),
    "compose": Row(
        risk=LINKING,
        attacker="has all outputs of the release",
        partner=0.0,
        public=0.0,
        always=True,
        is_census=True,
    ),
    "suppressed": Row(
        risk=INFERENCE,
        attacker="knows the usual sizes of each name's flows",
        partner=0.05,
        public=0.01,
        over_baseline=("partner", "public"),
    ),
    "disclosure": Row(
        risk=INFERENCE,
        attacker="saw three visits of a user, and wants a sensitive category",
        partner=0.10,
        public=0.02,
        over_baseline=("partner", "public"),
    ),
    "sensitive": Row(
        risk=INFERENCE,
        attacker="knows all names of a user who shows a sensitive name",
        partner=0.0,
        public=0.0,
        is_census=True,
    ),
    "order": Row(
        risk=INFERENCE,
        attacker="reads the end of a flow from the order of the records",
        partner=5.0,
        public=14.0,
        is_census=True,
        at_least=True,
        unit="s",
    ),
    "entropy": Row(
        risk=INFERENCE, attacker="counts the information in the released sets", unit="nats"
    ),
}
"""The metrics by their names, in the order of the report."""

TABLE_ROWS = {
    "rows_k": Row(
        risk=SINGLING,
        attacker="knows all quasi-identifiers of a person",
        partner=0.0,
        public=0.0,
        is_census=True,
    ),
    "rows_reid": Row(
        risk=SINGLING,
        attacker="guesses the person's row among all rows that fit",
        partner=0.20,
        public=0.09,
        is_census=True,
    ),
    "rows_l": Row(
        risk=INFERENCE,
        attacker="knows all quasi-identifiers of a person whose class has one sensitive value",
        partner=0.20,
        public=0.05,
        is_census=True,
    ),
    "rows_disclosure": Row(
        risk=INFERENCE,
        attacker="guesses the most frequent sensitive value of the person's class",
        partner=0.10,
        public=0.02,
        over_baseline=("partner", "public"),
        is_census=True,
    ),
}
"""The metrics of a table by their names."""

_EVERY = ROWS | TABLE_ROWS


def judged(
    name: str,
    purpose: str,
    figure: float,
    *,
    baseline: float | None = None,
    interval: tuple[float, float] | None = None,
    sample: int = 0,
    note: str = "",
    parts: Mapping[str, Any] | None = None,
    is_lower_bound: bool = False,
) -> Metric:
    """Returns a metric whose figure was measured.

    is_lower_bound: true if the figure cannot show that a risk is low.
    """
    row = _EVERY[name]
    figure = rounded(float(figure), DIGITS)
    baseline = rounded(baseline, DIGITS)
    threshold = row.threshold(purpose, baseline)
    low, high = (rounded(end, DIGITS) for end in interval or (None, None))
    verdict: Verdict = REPORTED
    if threshold is not None:
        is_above = figure < threshold if row.at_least else figure > threshold
        is_open = is_lower_bound or (not row.is_census and high is not None and high > threshold)
        verdict = ABOVE if is_above else UNKNOWN if is_open else LOW
        if verdict == UNKNOWN and not is_lower_bound:
            note = "; ".join([SMALL, note] if note else [SMALL])
    return Metric(
        name=name,
        risk=row.risk,
        attacker=row.attacker,
        verdict=verdict,
        figure=figure,
        low=low,
        high=high,
        baseline=baseline,
        threshold=threshold,
        yardstick=row.yardstick(baseline),
        sample=sample,
        unit=row.unit,
        note=note,
        parts=rounded(parts or {}, DIGITS),
    )


def share_of(
    name: str, purpose: str, hits: float, trials: int, baseline: float = 0.0, **more: Any
) -> Metric:
    """Returns a metric that is a share of trials, with Wilson's interval."""
    return judged(
        name,
        purpose,
        hits / trials if trials else 0.0,
        baseline=baseline,
        interval=wilson(hits, trials),
        sample=trials,
        **more,
    )


def unknown(name: str, purpose: str, note: str) -> Metric:
    """Returns a metric that the log alone cannot show; only reported if it has no threshold."""
    row = _EVERY[name]
    has_threshold = row.threshold(purpose, 0.0) is not None
    return Metric(
        name=name,
        risk=row.risk,
        attacker=row.attacker,
        verdict=UNKNOWN if has_threshold else REPORTED,
        threshold=None if purpose in row.over_baseline else row.threshold(purpose, None),
        unit=row.unit,
        note=note,
    )


def absent(name: str, note: str) -> Metric:
    """Returns a metric of an attack that this log gives nothing to work on."""
    row = _EVERY[name]
    return Metric(
        name=name, risk=row.risk, attacker=row.attacker, verdict=REPORTED, unit=row.unit, note=note
    )
