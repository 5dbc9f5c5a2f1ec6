# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Searches subsets of the steps of `filter --levels chain` that lose least on a sample of rows.

Steps are chosen on the first part of the sample. The loss that is reported is measured on the rest,
which had no part in the choice. Each subset of steps is decided by the row filter itself.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path

from zanon_net._core import ROW_FAULTS, RowFilter
from zanon_net._record import dataclass
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.config.parse import reject
from zanon_net.errors import ConfigError, FormatError
from zanon_net.rows.inputs import Input
from zanon_net.rows.ladder import Ladder, Step, Tally
from zanon_net.rows.sources import Warn, is_parquet, open_inputs
from zanon_net.system.signals import Interruption

SUBSETS_MAX = 1023
"""Subsets that are tried: all of ten steps."""

Subset = tuple[int, ...]
"""Indices of steps, in ascending order."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows in two parts, as the bytes of one stream.

    name: the last part of the source's path. range_ns: first and last time.
    """

    name: str
    first: bytes
    rest: bytes
    range_ns: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Choice:
    """A subset of the steps.

    chosen: result on the part of the sample on which the subset was chosen. measured: result on the
    rest.
    """

    steps: tuple[Step, ...]
    chosen: Tally
    measured: Tally


@dataclass(frozen=True, slots=True)
class Search:
    """The result of a search.

    chain: all steps. best: for each number of steps the subset that loses least, from one step on.
    tried: number of subsets. is_complete: true if all subsets were tried; else one step was added
    at a time to the best subset so far.
    """

    chain: Choice
    best: tuple[Choice, ...]
    tried: int
    is_complete: bool

    @property
    def advised(self) -> Choice:
        """The choice that loses least on the first part, of equal choices the smallest; all steps
        if the choice loses no less than they do on the rest."""
        least = min(self.best, key=lambda choice: choice.chosen.loss)
        return least if least.measured.loss < self.chain.measured.loss else self.chain


def _open(config: FilterConfig, ladder: Ladder) -> RowFilter:
    return RowFilter(ladder=ladder.for_core(), **config.row_filter_arguments())


# ---- the sample ---------------------------------------------------------------------------------


def read_sample(source: str, config: FilterConfig, ladder: Ladder, rows: int, warn: Warn) -> Sample:
    """Reads the first `rows` rows of a source, which may be compressed; "-" is standard input.

    Raises ConfigError, FormatError and ZanonError as `filter_rows`, and ConfigError if there are
    too few rows.
    """
    if is_parquet(source):
        reject("steps", "a sample is CSV or JSON Lines, not Parquet")
    with ExitStack() as stack:
        [item] = open_inputs([source], Interruption(), stack)
        reader = _open(config, ladder)
        stack.callback(reader.close)
        data, ends = _read_rows(item, reader, rows)
        if reader.first_fault is not None:
            line, text = reader.first_fault
            warn(f"{item.name}: line {line}: {text}; rows that cannot be read are left out")
        stats = reader.stats
        if 0 < stats["rows"] == sum(stats[name] for name in ROW_FAULTS):
            raise FormatError("not one row could be read")
        if reader.time_range_ns is None:
            reject("steps", f"{item.name} has no row")
        half = ends[(len(ends) - 1) // 2]
        return Sample(item.name, data[:half], data[half:], reader.time_range_ns)


def _read_rows(item: Input, reader: RowFilter, rows: int) -> tuple[bytes, list[int]]:
    """Returns the bytes of the first rows, and the place where each row ends."""
    data, ends, interruption = bytearray(), list[int](), Interruption()

    def take(feed: Callable[[], None]) -> None:
        try:
            feed()
        except (ConfigError, FormatError) as error:
            raise type(error)(f"{item.name}: {error}") from None
        reader.take()
        ends.extend([len(data)] * (reader.stats["rows"] - len(ends)))

    while len(ends) < rows and (piece := item.read(interruption)):
        for line in piece.splitlines(keepends=True):
            data += line
            take(partial(reader.feed, line))
            if len(ends) >= rows:
                break
    take(reader.end)
    return bytes(data), ends


# ---- the search ---------------------------------------------------------------------------------


class _Trials:
    """Results of subsets of a ladder's steps on a sample."""

    def __init__(self, sample: Sample, config: FilterConfig, ladder: Ladder) -> None:
        self._sample, self._config, self._ladder = sample, config, ladder
        self.tried = 0

    def loss(self, subset: Subset) -> float:
        """Returns the loss on the first part of the sample."""
        self.tried += 1
        return self._tallies(subset, (self._sample.first,))[0].loss

    def choice(self, subset: Subset) -> Choice:
        """Returns the results on both parts. The second part continues the first, whose rows still
        count for the window."""
        chosen, both = self._tallies(subset, (self._sample.first, self._sample.rest))
        return Choice(self._steps(subset).steps, chosen, both - chosen)

    def _steps(self, subset: Subset) -> Ladder:
        ladder = self._ladder
        return replace(
            ladder,
            steps=tuple(ladder.steps[i] for i in subset),
            expected=tuple(ladder.expected[i] for i in subset),
        )

    def _tallies(self, subset: Subset, parts: tuple[bytes, ...]) -> list[Tally]:
        """Returns the results after each part."""
        row_filter = _open(self._config, self._steps(subset))
        tallies = []
        for number, part in enumerate(parts, start=1):
            row_filter.feed(part)
            if number == len(parts):
                row_filter.end()
            row_filter.take()
            stats = row_filter.ladder_stats
            assert stats is not None
            tallies.append(Tally.of(stats, row_filter.table_stats["observations"]))
        row_filter.close()
        return tallies


def search_steps(sample: Sample, config: FilterConfig, ladder: Ladder) -> Search:
    """Returns the subset of the ladder's steps that loses least, for each number of steps."""
    trials, count = _Trials(sample, config, ladder), len(ladder.steps)
    chain = trials.choice(tuple(range(count)))
    if not (chain.chosen.rows and chain.measured.rows):
        reject("steps", f"{sample.name} has too few rows; both halves need some")
    is_complete = 2**count - 1 <= SUBSETS_MAX
    subsets = _all_subsets if is_complete else _growing_subsets
    best = tuple(trials.choice(subset) for subset in subsets(count, trials.loss))
    return Search(chain, best, trials.tried, is_complete)


def _all_subsets(count: int, loss: Callable[[Subset], float]) -> Iterator[Subset]:
    """Yields the best of all subsets of each size."""
    for size in range(1, count + 1):
        yield min(combinations(range(count), size), key=loss)


def _growing_subsets(count: int, loss: Callable[[Subset], float]) -> Iterator[Subset]:
    """Yields a subset of each size, the one before with the step that helps most, until SUBSETS_MAX
    are tried."""
    subset: Subset = ()
    left = SUBSETS_MAX
    while len(subset) < count and left >= count - len(subset):
        grown = [tuple(sorted((*subset, step))) for step in range(count) if step not in subset]
        left -= len(grown)
        subset = min(grown, key=loss)
        yield subset


def write_steps(steps: tuple[Step, ...], path: Path) -> None:
    """Writes steps as `filter --levels FILE` reads them. Raises ConfigError if the file exists, and
    OutputError."""
    from zanon_net.output.new_file import write_files

    lines = [",".join(map(str, step)) + "\n" for step in steps]
    write_files({path: "".join(lines).encode("ascii")})
