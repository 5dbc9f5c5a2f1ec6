# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Generalization of a column for which a plan has none, from its values."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from zanon_net.errors import ConfigError
from zanon_net.microdata.hierarchy import DAY_TO_YEAR, Dates, Flat, Hierarchy, Round, are_dates
from zanon_net.microdata.scale import DECIMALS_MAX, End, Scale, Step, scale_of
from zanon_net.microdata.values import dictionary_of, distinct_texts

CODES_MAX = 10  # different whole numbers that can be codes of categories
ROWS_OF_CODE = 2  # rows that a code has on average, at least
RANGE_MAX = 1 << 14  # whole numbers that get a tree of intervals
_WHOLE = re.compile("-?[1-9][0-9]{0,15}|0")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,15})(\.[0-9]{1,15})?([eE][+-]?[0-9]{1,2})?")
_NUMBER_MAX = Decimal(10) ** 17


@dataclass(frozen=True)
class Numbers:
    """Numbers as a scale of the smallest intervals that keep them apart."""

    def scale(self, values: Any) -> Scale:
        """Returns the scale of a column's numbers."""
        texts, missing = distinct_texts(values)
        step = Step(1, 0, whole=True)
        if not all(map(_WHOLE.fullmatch, texts)):
            step = Step(1, max(map(_decimals, texts)), whole=False)
        found, _are_numbers = step.of(texts)
        ends = End(int(found.min(initial=0))), End(int(found.max(initial=0)))
        if len(found):
            ends = End(int(found.min())), End(int(found.max()))
        return scale_of(step, *ends, found, missing=missing, exact=True)

    def hierarchy(self, values: Any) -> Hierarchy:
        """Returns ranges of whole numbers that are not too far apart, else the values and `*`."""
        texts, _missing = distinct_texts(values)
        if all(map(_WHOLE.fullmatch, texts)):
            numbers = list(map(int, texts))
            if max(numbers) - min(numbers) < RANGE_MAX:
                return Round(1).hierarchy(values)
        return Flat().hierarchy(values)


def _decimals(text: str) -> int:
    exponent = Decimal(text).normalize().as_tuple().exponent
    return max(0, -int(exponent))


def _is_number(text: str) -> bool:
    """Returns true for a number that a scale can hold."""
    if not _NUMBER.fullmatch(text):
        return False
    decimals = _decimals(text)
    return decimals <= DECIMALS_MAX and abs(Decimal(text)).scaleb(decimals) < _NUMBER_MAX


def _are_numbers(texts: Sequence[str]) -> bool:
    """Returns true if all texts are numbers of one scale, and there is one."""
    if not texts or not all(map(_is_number, texts)):
        return False
    most = max(map(_decimals, texts))
    return all(abs(Decimal(text)).scaleb(most) < _NUMBER_MAX for text in texts)


@dataclass(frozen=True)
class Guess:
    """Generalization that follows from a column's values.

    Dates become their parts, other numbers a scale, and a few whole numbers that many rows share
    are taken for codes of categories. All other values are below one root, `*`.

    parts: as of Dates.
    """

    parts: Sequence[str] = DAY_TO_YEAR

    def of(self, values: Any, name: str) -> tuple[Dates | Flat | Numbers, str]:
        """Returns (the generalization of a column, a note about it or an empty text)."""
        indices, words = dictionary_of(values)
        listed = [words[i] for i in np.unique(indices) if i >= 0]
        if are_dates(listed):
            known = f"dates are written as {', '.join(self.parts)}; --dates changes the parts"
            return Dates(self.parts), f"column {name!r}: {known}"
        if not _are_numbers(listed):
            return Flat(), ""
        rows = int((indices >= 0).sum())
        is_coded = len(listed) <= CODES_MAX and rows >= ROWS_OF_CODE * len(listed)
        if is_coded and all(map(_WHOLE.fullmatch, listed)):
            known = f"{len(listed)} different whole numbers are taken as categories"
            return Flat(), f"column {name!r}: {known}; --round {name}=1 takes them as numbers"
        known = "numbers are written as ranges; a --hierarchy makes them categories"
        return Numbers(), f"column {name!r}: {known}"

    def hierarchy(self, values: Any = None) -> Any:
        """Returns the hierarchy of a column's values."""
        if values is None:
            raise ConfigError("a guess needs a table's values; a stream needs a hierarchy's file")
        return self.of(values, "")[0].hierarchy(values)
