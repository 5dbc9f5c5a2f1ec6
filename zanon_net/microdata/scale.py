# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers of a column as intervals of one width, in order.

Any run of neighbouring intervals can be written as one range, such as 30-59. So classes can split
at a median, wherever it lies (LeFevre et al., "Mondrian multidimensional k-anonymity", ICDE 2006).
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from zanon_net._core import intervals
from zanon_net.config.parse import as_int, reject, shown
from zanon_net.errors import ConfigError
from zanon_net.microdata.arrow import ROOT
from zanon_net.microdata.values import dictionary_of

INTERVAL_MAX = 1 << 62  # its number; the core's numbers end at 2^63
DECIMALS_MAX = 15
UNITS_MAX = 2**53 - 1
OUTLIERS = 0.01  # most of the rows that can be far from the others
GAP = 0.2  # part of the whole range between these rows and the others

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_RANGES = (
    re.compile(r"(?P<low>[0-9]+)-(?P<last>[0-9]+)"),
    re.compile(r"\[(?P<low>-?[0-9.]+),(?P<end>-?[0-9.]+)\)"),
    re.compile(r"<(?P<end>-?[0-9.]+)"),
    re.compile(r"(?P<low>-?[0-9.]+)\+"),
    re.compile(r"(?P<only>-?[0-9.]+)"),
)


@dataclass(frozen=True)
class Step:
    """A width of intervals: units x 10^-decimals. whole: true for whole numbers, written
    "30-39"."""

    units: int
    decimals: int
    whole: bool

    @property
    def width(self) -> float:
        """The width for the core, which computes units and decimals from it."""
        return self.units if not self.decimals else float(f"{self.units}e-{self.decimals}")

    def edge(self, interval: int) -> str:
        """Returns the lower edge of an interval."""
        sign, digits = "-" if interval < 0 else "", str(abs(interval) * self.units)
        if not self.decimals:
            return sign + digits
        digits = digits.rjust(self.decimals + 1, "0")
        head, tail = digits[: -self.decimals], digits[-self.decimals :].rstrip("0")
        return sign + head + (f".{tail}" if tail else "")

    def text(self, first: int, end: int) -> str:
        """Returns the text of the values from the lower edge of interval `first` to below the edge
        of `end`."""
        if self.whole and (end - first) * self.units == 1:
            return self.edge(first)
        if self.whole and first >= 0:
            return f"{self.edge(first)}-{end * self.units - 1}"
        return f"[{self.edge(first)},{self.edge(end)})"

    def of(self, words: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Returns the interval of each text, and true if the text is a number with an interval."""
        return intervals([word.encode() for word in words], self.width, self.whole)


def step_of(name: str, width: object) -> Step:
    """Returns a width. An int means whole numbers, a float means all numbers."""
    whole = as_int(width)
    if whole is not None:
        if not 1 <= whole <= UNITS_MAX:
            reject(name, f"must be a width above 0 and below 2^53, not {shown(whole)}")
        return Step(whole, 0, whole=True)
    if isinstance(width, bool) or not isinstance(width, float):
        reject(name, f"must be a number, not {shown(width)}")
    sign, digits, exponent = Decimal(repr(width)).normalize().as_tuple()
    if not isinstance(exponent, int) or sign or digits == (0,):
        reject(name, f"must be a width above 0, not {shown(width)}")
    units = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
    if exponent < -DECIMALS_MAX or units > UNITS_MAX:
        reject(name, f"must have at most {DECIMALS_MAX} decimals and be below 2^53")
    return Step(units, max(-exponent, 0), whole=False)


@dataclass(frozen=True)
class End:
    """An outermost interval. cut: true if numbers beyond it are in it, too."""

    interval: int
    cut: bool = False


def check_interval(number: int) -> None:
    """Raises ConfigError for the number of an interval at which the core may have met its limit."""
    if abs(number) >= INTERVAL_MAX:
        raise ConfigError("a number is beyond what intervals of this width can hold")


@dataclass(frozen=True, eq=False)
class Scale:
    """Intervals of a column's numbers, in order.

    Its codes are the places of the intervals that occur, then the code of a missing value, and then
    the code of the root, which is any other value.

    step: width of the intervals. first, last: outermost intervals. occurring: the intervals that
        occur in the column, in order. missing: true if values are missing. exact: true if a single
        interval is written as one number.
    """

    step: Step
    first: End
    last: End
    occurring: Ints
    missing: bool
    exact: bool = False

    @property
    def nodes(self) -> int:
        """Number of codes."""
        return len(self.occurring) + 2

    @property
    def kind(self) -> str:
        """The values that have a code, for messages."""
        return "whole numbers" if self.step.whole else "numbers"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Oddities of a hierarchy; a scale has no oddities."""
        return ()

    def codes(self, values: Any) -> Ints:
        """Returns the code of each value of a column; -1 if it is no number of the scale.

        values: of the column that the scale was made of, or of another.
        """
        indices, words = dictionary_of(values)
        found, are_numbers = self.step.of(words)
        found = np.clip(found, self.first.interval, self.last.interval)
        place = np.searchsorted(self.occurring, found)
        place = np.minimum(place, max(0, len(self.occurring) - 1))
        is_there = are_numbers.copy()
        if len(self.occurring):
            is_there &= self.occurring[place] == found
        else:
            is_there[:] = False
        of_word = np.append(np.where(is_there, place, -1), len(self.occurring))
        return np.asarray(of_word[indices], np.int64)  # a missing value's index is -1

    def label(self, low: int, high: int) -> str:
        """Returns the text of the intervals from number `low` to number `high`."""
        first, last = self.first, self.last
        is_low, is_high = low == first.interval, high == last.interval
        is_open = first.cut and last.cut
        if is_low and is_high and (low < high or is_open):
            return ROOT
        if is_high and last.cut:
            return f"{self.step.edge(low)}+"
        if is_low and first.cut:
            return f"<{self.step.edge(high + 1)}"
        if self.exact and low == high:
            return self.step.edge(low)
        return self.step.text(low, high + 1)

    def loss(self, low: Ints, high: Ints) -> Floats:
        """Returns the loss of ranges, as of a hierarchy whose leaves are the intervals and the
        missing value: (leaves - 1) / (leaves of the whole - 1). All intervals are the root."""
        first, last = self.first.interval, self.last.interval
        found = (high - low).astype(np.float64) / max(1, last - first + int(self.missing))
        return np.where((low == first) & (high == last) & (low < high), 1.0, found)

    def read(self, text: str | None) -> tuple[int, int] | None:
        """Returns the (first, last) interval of a text that `label` may have written, or None.

        The root and a missing value are no ranges. An exact scale reads ranges of any width.
        """
        match = next(filter(None, (form.fullmatch(text or "") for form in _RANGES)), None)
        if match is None:
            return None
        found = {name: text for name, text in match.groupdict().items() if text is not None}
        try:
            if "only" in found:
                only = self._edge(found["only"], exactly=True)
                single = self.exact or (self.step.whole and self.step.units == 1)
                return (only, only) if single and only is not None else None
            low: int | None = self.first.interval
            end: int | None = self.last.interval + 1
            if "low" in found:
                low = self._edge(found["low"])
            if "last" in found:
                end = self._edge(str(int(found["last"]) + 1))
            elif "end" in found:
                end = self._edge(found["end"])
        except ArithmeticError:
            return None
        if low is None or end is None or low >= end:
            return None
        return (low, end - 1) if self.exact or self.label(low, end - 1) == text else None

    def _edge(self, text: str, *, exactly: bool = False) -> int | None:
        """Returns the interval whose lower edge is a number, or None.

        exactly: False returns the next interval of an exact scale, whose intervals are points.
        """
        interval = Decimal(text).scaleb(self.step.decimals) / self.step.units
        if self.exact and not exactly:
            return math.ceil(interval)
        return int(interval) if interval == int(interval) else None

    def losses(self, written: Sequence[str | None]) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Returns the loss of each value as it is written, and true for values that the scale
        writes."""
        found = [self.read(text) for text in written]
        special = [0.0 if text is None else 1.0 if text == ROOT else None for text in written]
        known = [a is not None or b is not None for a, b in zip(found, special, strict=True)]
        ranges = np.array([span or (0, 0) for span in found], np.int64).reshape(-1, 2)
        loss = np.minimum(self.loss(ranges[:, 0], ranges[:, 1]), 1.0)
        for place, value in enumerate(special):
            loss[place] = loss[place] if value is None else value
        return loss, np.array(known, np.bool_)

    def outliers(self, codes: Ints) -> Iterator[tuple[str, int]]:
        """Yields ("below" or "above", rows) if a few rows are far from all others.

        codes: of the rows of a column.
        """
        count = np.bincount(codes[codes >= 0], minlength=self.nodes)[: len(self.occurring)]
        rows, whole = int(count.sum()), self.last.interval - self.first.interval
        gaps = np.diff(self.occurring) >= GAP * max(1, whole)
        if rows < 20 or not gaps.any():
            return
        most = max(1, int(OUTLIERS * rows))
        before = np.cumsum(count)[:-1]
        below, above = gaps & (before <= most), gaps & (rows - before <= most)
        if below.any() and not self.first.cut:
            yield "below", int(before[below].max())
        if above.any() and not self.last.cut:
            yield "above", int((rows - before[above]).max())


def scale_of(
    step: Step, first: End, last: End, occurring: Ints, *, missing: bool, exact: bool = False
) -> Scale:
    """Returns the scale of intervals. Raises ConfigError for intervals that are too far out."""
    check_interval(first.interval)
    check_interval(last.interval)
    occurring = np.unique(np.clip(occurring, first.interval, last.interval))
    return Scale(step, first, last, occurring, missing, exact)
