# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Hierarchies of a column's values, from files and by rules: intervals, prefixes, dates.

A value is its text: a number as Arrow writes it. A missing value is None, and an empty text is a
missing value, as in CSV.
"""

import datetime
import ipaddress
import itertools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from zanon_net._core import Taxonomy
from zanon_net.config.parse import as_int, reject, shown
from zanon_net.errors import ConfigError
from zanon_net.microdata.arrow import ROOT
from zanon_net.microdata.scale import UNITS_MAX, End, Scale, Step, check_interval, scale_of, step_of
from zanon_net.microdata.values import Codes, bytes_of, dictionary_of, distinct_texts, text_of
from zanon_net.output.new_file import write_files
from zanon_net.rows.hierarchy_file import read_taxonomy

NODES_MAX = 65_535  # as ZN_TAXONOMY_NODES_MAX
INTERVALS_MAX = 1 << 15  # with all levels above them, less than NODES_MAX
DATE_PARTS = ("day", "month", "quarter", "year", "decade")
DAY_TO_YEAR = ("day", "month", "year")

Number = int | float
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_DATE = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"([Tt ]([01][0-9]|2[0-3])(:[0-5][0-9](:[0-5][0-9]([.,][0-9]+)?)?)?"
    r"( ?([Zz]|UTC|[+-][0-9]{2}(:?[0-9]{2})?))?)?"
)
_BREAK = re.compile("[\r\n]")


@dataclass(frozen=True, eq=False, kw_only=True)
class Hierarchy:
    """The generalization hierarchy of one column: `read`, or made by a rule such as `Round`.

    Nodes are numbered by levels, the leaves first and the root last.

    labels: the text of each node; None: a missing value.
    parent, level, leaves_below: of each node; the root's parent is itself.
    loss: of each node, when it replaces a value: (leaves below - 1) / (leaves - 1), 0 to 1.
    ancestors: of each node at each level (the first index); the node itself if it is not below that
        level.
    leaves, nodes, levels: their numbers.
    taxonomy: the hierarchy for the core.
    kind: the values that have a leaf, for messages: "values of its file", "numbers", "whole
        numbers".
    warnings: oddities of it that are no errors.
    leaf_of: the leaf of each value if a rule maps the values to leaves; None: the values are the
        leaves.
    """

    labels: tuple[str | None, ...]
    parent: Codes
    level: Codes
    leaves_below: Codes
    loss: npt.NDArray[np.float64]
    ancestors: Codes
    leaves: int
    nodes: int
    levels: int
    taxonomy: Taxonomy
    kind: str
    warnings: tuple[str, ...] = ()
    leaf_of: Mapping[str, str] | None = None

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, delimiter: str = ";") -> "Hierarchy":
        """Reads the hierarchy in a file of ARX's form: CSV without a header, a line a value, from
        the value to the root, such as `*`.

        delimiter: an ASCII character, or the word tab.

        Raises FormatError with the line for a file that is no hierarchy, CapacityError for a file
        that is too large, ZanonError for a file that cannot be read.
        """
        taxonomy, warnings = read_taxonomy(path, delimiter)
        return cls._of(taxonomy, "values of its file", warnings)

    @classmethod
    def from_lines(
        cls, lines: Iterable[Sequence[str | None]], *, in_order: bool = False
    ) -> "Hierarchy":
        """Returns the hierarchy of lines, each from a value to the root.

        in_order: leaves are numbered in the order of the lines, not of their bytes.

        Raises FormatError and CapacityError as `read`.
        """
        return cls._of(Taxonomy(map(_encoded, lines), in_order), "values of its lines")

    @classmethod
    def _of(
        cls,
        taxonomy: Taxonomy,
        kind: str,
        warnings: Sequence[str] = (),
        leaf_of: Mapping[str, str] | None = None,
    ) -> "Hierarchy":
        parent, level, below, loss = taxonomy.arrays()
        ancestors = taxonomy.ancestors()
        for array in (parent, level, below, loss, ancestors):
            array.setflags(write=False)
        return cls(
            labels=tuple(label.decode() or None for label in taxonomy.labels()),
            parent=parent,
            level=level,
            leaves_below=below,
            loss=loss,
            ancestors=ancestors,
            leaves=taxonomy.leaves,
            nodes=taxonomy.nodes,
            levels=taxonomy.levels,
            taxonomy=taxonomy,
            kind=kind,
            warnings=tuple(warnings),
            leaf_of=leaf_of,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Hierarchy._of, (self.taxonomy, self.kind, self.warnings, self.leaf_of)

    def hierarchy(self, values: Any = None) -> "Hierarchy":
        """Returns itself, for any column."""
        return self

    def codes(self, values: Any) -> Codes:
        """Returns the leaf of each value; -1 if there is no leaf.

        values: an Arrow array or chunked array, a NumPy array or a sequence.
        """
        indices, words = dictionary_of(values)
        if self.leaf_of is not None:
            words = [self.leaf_of.get(word, word) for word in words]
        leaves = self.taxonomy.find([*map(bytes_of, words), None])
        return leaves[indices]  # a missing value's index is -1

    def common(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Codes:
        """Returns the lowest node that is, or is above, both a[i] and b[i], for nodes a and b."""
        return self.taxonomy.common(a, b)

    def to_bytes(self, delimiter: str = ";") -> bytes:
        """Returns the file of the hierarchy, as `read` takes it. Raises ConfigError for a line
        break."""
        part = "\t" if delimiter == "tab" else delimiter
        cells = [_cell("" if label is None else label, part) for label in self.labels]
        lines = self.ancestors[:, : self.leaves].T
        return "".join(part.join(cells[node] for node in line) + "\n" for line in lines).encode()

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes a new file, which appears when it is whole. Raises ConfigError if the name is
        taken, OutputError if the system refuses."""
        write_files({Path(path): self.to_bytes()})


# ---- lines of a hierarchy ------------------------------------------------------------------------


def _encoded(line: Sequence[str | None]) -> list[bytes]:
    return [(label or "").encode() for label in line]


def _cell(label: str, delimiter: str) -> str:
    if _BREAK.search(label):
        raise ConfigError("a value has a line break, which a hierarchy's file cannot hold")
    if label and (delimiter in label or '"' in label or label != label.strip()):
        return '"' + label.replace('"', '""') + '"'
    return label


def _of_columns(columns: Sequence[Sequence[str]], *, missing: bool) -> Hierarchy:
    """Returns the hierarchy of distinct values and of a missing value.

    columns: the values, and their labels on each level above, without the root. If the values are
        too many, their labels on the first level above become the leaves.

    Without any value the hierarchy has only the missing value. Raises ConfigError if even the
    labels are too many.
    """
    count = sum(len(set(column)) for column in columns) + 1 + missing
    leaf_of = None
    if count > NODES_MAX and len(columns) > 1:
        leaf_of = dict(zip(*columns[:2], strict=True))
        distinct = {line[0]: line for line in zip(*columns[1:], strict=True)}
        columns = list(zip(*distinct.values(), strict=True))
        count = sum(len(set(column)) for column in columns) + 1 + missing
    if count > NODES_MAX:
        raise ConfigError(
            f"it has {len(set(columns[0])):,} different values, and a hierarchy has at most"
            f" {NODES_MAX:,}; shorten the values, or group them with --dates or --round"
        )
    lines = [[*line, ROOT] for line in zip(*columns, strict=True)]
    if missing or not lines:
        lines = [*lines, [*[""] * max(1, len(columns)), ROOT]]
    kind = "values of the table it was made of"
    return Hierarchy._of(Taxonomy(map(_encoded, lines)), kind, (), leaf_of)


def _needed(values: Any, rule: str) -> Any:
    if values is None:
        raise ConfigError(f"{rule} is made of a table's values; a stream needs a hierarchy's file")
    return values


def _sequence(name: str, given: object) -> Sequence[Any]:
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        reject(name, "must be a sequence, and not empty")
    return given


# ---- numbers ------------------------------------------------------------------------------------


def read_number(name: str, text: str) -> Number:
    """Reads a number of an option: an int without a point, else a float. Raises ConfigError."""
    if _WHOLE.fullmatch(text):
        return int(text)
    if not _NUMBER.fullmatch(text) or float(text) in (float("inf"), -float("inf")):
        reject(name, f"must be a number, not {shown(text)}")
    return float(text)


def read_range(name: str, text: str) -> tuple[Number | None, Number | None]:
    """Reads (low, high) from LOW..HIGH, ..HIGH or LOW.., the forms of --clip. Raises
    ConfigError."""
    low, dots, high = text.partition("..")
    if not dots or not (low or high):
        reject(name, "must be LOW..HIGH, LOW.. or ..HIGH")
    return (
        read_number(name, low) if low else None,
        read_number(name, high) if high else None,
    )


def _limit(name: str, value: object) -> None:
    is_number = as_int(value) is not None or isinstance(value, float)
    if not is_number or value != value or abs(value) > UNITS_MAX:  # type: ignore[arg-type]
        reject(name, f"must be a number between -2^53 and 2^53, not {shown(value)}")


@dataclass(frozen=True)
class Round:
    """Numbers as intervals of one width, whose lower edges are its multiples.

    Each level above has intervals twice as wide, up to the root.

    width: an int for a column of whole numbers, written "30-39" (a negative lower edge: "[-10,0)";
        width 1: "37"), which has no place for other numbers. A float for numbers of any kind,
        written "[0.5,1)". At most 15 decimals.
    low, high: numbers beyond them join their intervals, which are written "<30" or "90+". A stream
        needs both; for a table the default is the range of its numbers.

    A wrong value raises ConfigError with a text that begins with its name.
    """

    width: Number
    low: Number | None = None
    high: Number | None = None

    def __post_init__(self) -> None:
        step_of("width", self.width)
        for name, limit in (("low", self.low), ("high", self.high)):
            if limit is not None:
                _limit(name, limit)
        if self.low is not None and self.high is not None and self.low > self.high:
            reject("low", f"{shown(self.low)} is above high, {shown(self.high)}")

    def hierarchy(self, values: Any = None) -> Hierarchy:
        """Returns the intervals of a column's numbers; without a column, of low to high and a
        missing value.

        Raises ConfigError if there are no intervals, or too many.
        """
        step = step_of("width", self.width)
        if values is None:
            low, high = self._limits(step)
            if low is None or high is None:
                raise ConfigError("a stream's numbers need both ends of their range, LOW..HIGH")
            return _rounded(step, End(low, cut=True), End(high, cut=True), missing=True)
        texts, missing = distinct_texts(values)
        if not texts:
            return _of_columns([], missing=True)
        found, are_numbers = step.of(texts)
        if not are_numbers.any():
            raise ConfigError(f"not one of its values is among the {_kind_of(step)}")
        found = found[are_numbers]
        ends = self._ends(step, int(found.min()), int(found.max()))
        return _rounded(step, *ends, missing=missing)

    def scale(self, values: Any = None) -> Scale:
        """Returns the intervals of a column's numbers in order; without a column, from low to high.

        Raises ConfigError if no value is a number, or without a column and both ends.
        """
        step = step_of("width", self.width)
        low, high = self._limits(step)
        if values is None:
            if low is None or high is None:
                raise ConfigError("a stream's numbers need both ends of their range, LOW..HIGH")
            ends = End(low, cut=True), End(high, cut=True)
            return scale_of(step, *ends, np.zeros(0, np.int64), missing=True)
        texts, missing = distinct_texts(values)
        found, are_numbers = step.of(texts)
        found = found[are_numbers]
        if texts and not len(found):
            raise ConfigError(f"not one of its values is among the {_kind_of(step)}")
        least, most = (int(found.min()), int(found.max())) if len(found) else (0, 0)
        return scale_of(step, *self._ends(step, least, most), found, missing=missing)

    def _limits(self, step: Step) -> tuple[int | None, int | None]:
        """Returns the intervals of low and high."""
        every = Step(step.units, step.decimals, whole=False)
        return tuple(  # type: ignore[return-value]
            None if limit is None else int(every.of([str(text_of(limit))])[0][0])
            for limit in (self.low, self.high)
        )

    def _ends(self, step: Step, least: int, most: int) -> tuple[End, End]:
        """Returns the outermost intervals of numbers from interval `least` to `most`."""
        low, high = self._limits(step)
        first = End(least) if low is None or low < least else End(low, cut=True)
        last = End(most) if high is None or high > most else End(high, cut=True)
        if first.interval <= last.interval:
            return first, last
        # All numbers are beyond one end, and join its interval.
        only = low if low is not None and low > most else last.interval
        return End(only, cut=first.cut), End(only, cut=last.cut)


def _kind_of(step: Step) -> str:
    """Returns the name of numbers that have an interval."""
    return "whole numbers" if step.whole else "numbers"


def _rounded(step: Step, first: End, last: End, *, missing: bool) -> Hierarchy:
    """Returns the hierarchy of the intervals from `first` to `last`; widths double with each
    level."""
    start, end = first.interval, last.interval
    check_interval(start)
    check_interval(end)
    if end - start >= INTERVALS_MAX:
        raise ConfigError(
            f"a width of {step.edge(1)} makes more than {INTERVALS_MAX:,} intervals; take a larger"
            " one, or cut the range (--clip)"
        )
    levels: list[list[str]] = []
    while True:
        shift = len(levels)
        low, high = start >> shift, end >> shift
        if low == high and levels:
            break
        labels = {k: step.text(k << shift, (k + 1) << shift) for k in range(low, high + 1)}
        if last.cut:
            labels[high] = f"{step.edge(high << shift)}+"
        if first.cut:
            labels[low] = f"<{step.edge((low + 1) << shift)}"
        if first.cut and last.cut and low == high:
            labels[low] = ROOT
        levels.append([labels[i >> shift] for i in range(start, end + 1)])
        if low == high or (low, high) == (-1, 0):  # 0 stays an edge of all wider intervals
            break
    lines = [[*line, ROOT] for line in zip(*levels, strict=True)]
    if missing:
        lines.append([*[""] * len(levels), ROOT])
    taxonomy = Taxonomy(map(_encoded, lines), True, step.width, start, step.whole)
    return Hierarchy._of(taxonomy, _kind_of(step))


@dataclass(frozen=True)
class Intervals:
    """Numbers, and above each the intervals that contain it, wider from level to level.

    widths: each a multiple of the one before; ints for whole numbers, floats for all, as `Round`
    has them.

    A wrong value raises ConfigError with a text that begins with its name.
    """

    widths: Sequence[Number]

    def __post_init__(self) -> None:
        for narrow, wide in itertools.pairwise(self._steps()):
            finer = narrow.units * 10**wide.decimals
            if narrow.whole is not wide.whole:
                reject("widths", "must be all with a point, or all without")
            if (wide.units * 10**narrow.decimals) % finer or wide == narrow:
                reject("widths", "each must be a multiple of the one before, so that levels nest")

    def _steps(self) -> list[Step]:
        return [step_of("widths", width) for width in _sequence("widths", self.widths)]

    def hierarchy(self, values: Any = None) -> Hierarchy:
        """Returns the hierarchy of a column's values. Raises ConfigError if not all are numbers."""
        texts, missing = distinct_texts(_needed(values, "Intervals"))
        columns = [texts]
        for step in self._steps():
            found, are_numbers = step.of(texts)
            if not are_numbers.all():
                self._refuse(step, texts)
            for interval in (found.min(initial=0), found.max(initial=0)):
                check_interval(int(interval))
            columns.append([step.text(i, i + 1) for i in map(int, found)])
        return _of_columns(columns, missing=missing)

    def _refuse(self, step: Step, texts: Sequence[str]) -> None:
        count = sum(not _NUMBER.fullmatch(text) for text in texts)
        if step.whole and not count:
            raise ConfigError("some numbers are not whole; write widths with a point, such as 5.0")
        raise ConfigError(f"{count:,} of its values are no numbers")


# ---- texts --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prefix:
    """Values, and above each its first characters, fewer from level to level: 13053, 130**, `*`.

    If all values have one length, each cut character becomes an asterisk. Otherwise one asterisk
    replaces all of them, so that the label does not disclose the length: Nuits, Nu*, `*`.

    lengths: characters that each level keeps, from more to fewer. The first length may be the
        length of the whole values. The length 0 of the root may be left out.

    A wrong value raises ConfigError with a text that begins with its name.
    """

    lengths: Sequence[int]

    def __post_init__(self) -> None:
        found = [as_int(length) for length in _sequence("lengths", self.lengths)]
        known = [length for length in found if length is not None and length >= 0]
        if len(known) != len(found) or not known or known[0] == 0:
            reject("lengths", "must be numbers of characters, such as 5, 3 and 2")
        if any(more <= fewer for more, fewer in itertools.pairwise(known)):
            reject("lengths", "must be fewer characters from level to level")

    def hierarchy(self, values: Any = None) -> Hierarchy:
        """Returns the hierarchy of a column's values."""
        texts, missing = distinct_texts(_needed(values, "Prefix"))
        longest = max(map(len, texts), default=0)
        lengths = [length for length in self.lengths if 0 < length < longest]
        is_even = all(len(text) == longest for text in texts)

        def label(text: str, length: int) -> str:
            stars = "*" * (longest - length) if is_even else "*"
            return text[:length] + stars if len(text) >= length else text

        columns = [texts, *([label(text, length) for text in texts] for length in lengths)]
        return _of_columns(columns, missing=missing)


@dataclass(frozen=True)
class Networks:
    """IP addresses, and above each its networks, wider from level to level: 10.0.1.0/24.

    bits: prefix length of the network of each level, 1 to 128, from more to fewer. An IPv4 address
        stays as it is on a level of 32 or more bits.

    A wrong value raises ConfigError with a text that begins with its name.
    """

    bits: Sequence[int]

    def __post_init__(self) -> None:
        found = [as_int(number) for number in _sequence("bits", self.bits)]
        known = [number for number in found if number is not None and 1 <= number <= 128]
        if len(known) != len(found):
            reject("bits", "must be prefix lengths from 1 to 128, such as 24 and 16")
        if any(more <= fewer for more, fewer in itertools.pairwise(known)):
            reject("bits", "must be fewer bits from level to level")

    def hierarchy(self, values: Any = None) -> Hierarchy:
        """Returns the hierarchy of a column's values. Raises ConfigError if a value is no
        address."""
        texts, missing = distinct_texts(_needed(values, "Networks"))
        networks = [_network_of(text) for text in texts]
        if None in networks:
            raise ConfigError(f"{networks.count(None):,} of its values are no IP addresses")
        known = [network for network in networks if network is not None]
        columns = [texts, *([_supernet(one, bits) for one in known] for bits in self.bits)]
        return _of_columns(columns, missing=missing)


def _network_of(text: str) -> Network | None:
    """Returns an address as a network of its own."""
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        return None


def _supernet(network: Network, bits: int) -> str:
    """Returns the network of an address; the address if the network would be smaller."""
    if bits >= network.prefixlen:
        return str(network.network_address)
    return str(network.supernet(new_prefix=bits))


@dataclass(frozen=True)
class Dates:
    """Dates, and above each its day, month, quarter, year or decade.

    parts: the parts of the levels, in this order: of "day", "month", "quarter", "year", "decade".
    They are written 2024-03-05, 2024-03, 2024-Q1, 2024, 2020-2029.

    Values are dates of ISO 8601, such as 2024-03-05, with or without a time, whose day is taken as
    it is written. A wrong part raises ConfigError with a text that begins with the field's name.
    """

    parts: Sequence[str] = DAY_TO_YEAR

    def __post_init__(self) -> None:
        for part in _sequence("parts", self.parts):
            if part not in DATE_PARTS:
                reject("parts", f"{shown(part)} is not one of {', '.join(DATE_PARTS)}")
        numbers = [DATE_PARTS.index(part) for part in self.parts]
        if numbers != sorted(set(numbers)):
            reject("parts", f"must be in the order {', '.join(DATE_PARTS)}")

    def hierarchy(self, values: Any = None) -> Hierarchy:
        """Returns the hierarchy of a column's values. Raises ConfigError if a value is no date."""
        texts, missing = distinct_texts(_needed(values, "Dates"))
        dates = [_date_of(text) for text in texts]
        if None in dates:
            raise ConfigError(f"{dates.count(None):,} of its values are no dates like 2024-03-05")
        columns = [texts]
        for part in self.parts:
            labels = [_part_of(date, part) for date in dates if date is not None]
            if labels != columns[-1]:
                columns.append(labels)
        return _of_columns(columns, missing=missing)


def are_dates(texts: Sequence[str]) -> bool:
    """Returns true if all texts are dates, and there is one."""
    return bool(texts) and all(_date_of(text) is not None for text in texts)


def _date_of(text: str) -> datetime.date | None:
    match = _DATE.fullmatch(text)
    try:
        return None if match is None else datetime.date.fromisoformat(match["date"])
    except ValueError:
        return None


def _part_of(date: datetime.date, part: str) -> str:
    if part == "day":
        return date.isoformat()
    if part == "month":
        return f"{date.year:04}-{date.month:02}"
    if part == "quarter":
        return f"{date.year:04}-Q{(date.month + 2) // 3}"
    decade = date.year // 10 * 10
    return f"{date.year:04}" if part == "year" else f"{decade:04}-{decade + 9:04}"


@dataclass(frozen=True)
class Flat:
    """Values below one root, `*`: the hierarchy of a column of other values."""

    def hierarchy(self, values: Any = None) -> Hierarchy:
        """Returns the hierarchy of a column's values."""
        texts, missing = distinct_texts(_needed(values, "Flat"))
        return _of_columns([texts], missing=missing)
