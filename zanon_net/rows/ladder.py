# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Steps by which `filter --levels` generalizes a row, finest first."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zanon_net._core import LADDER_STEPS_MAX, Taxonomy
from zanon_net._record import dataclass
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.config.ladder_rules import CHAIN
from zanon_net.config.parse import reject
from zanon_net.rows.hierarchy_file import read_taxonomy

Step = tuple[int, ...]
"""A level of each column's hierarchy."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Rows that a ladder decided, and their loss.

    lost: sum over all rows of the mean loss of their columns; a suppressed row counts 1.
    """

    rows: int
    suppressed: int
    lost: float

    @classmethod
    def of(cls, stats: Mapping[str, Any], decided: int) -> "Tally":
        """Returns the tally of a row filter.

        stats: its `ladder_stats`. decided: rows without those with an unknown value.
        """
        rows = decided + stats["unknown"]
        suppressed = rows - sum(stats["released"])
        return cls(rows, suppressed, stats["loss"] + suppressed)

    def __sub__(self, before: "Tally") -> "Tally":
        return Tally(
            self.rows - before.rows, self.suppressed - before.suppressed, self.lost - before.lost
        )

    @property
    def loss(self) -> float:
        """The mean over the rows, 0 to 1, rounded so that equal losses stay equal."""
        return round(self.lost / self.rows, 12)


@dataclass(frozen=True, eq=False, kw_only=True)
class Ladder:
    """The steps of a row's generalization.

    columns: the attributes.
    taxonomies: their hierarchies.
    steps: finest first. Each step is coarser than the step before in a column, and finer in none.
    expected: the loss of each step if all values of a hierarchy are equally frequent, 0 to 1.
    unknown: treatment of a row with a value that its hierarchy lacks.
    warnings: oddities of the hierarchies.
    """

    columns: tuple[str, ...]
    taxonomies: tuple[Taxonomy, ...]
    steps: tuple[Step, ...]
    expected: tuple[float, ...]
    unknown: str
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, config: FilterConfig) -> "Ladder | None":
        """Returns the ladder of a filter's settings; None if rows are not generalized.

        Raises FormatError, CapacityError and ZanonError for a hierarchy's file as `read_taxonomy`,
        and ConfigError if the hierarchies make no steps, or too many, or the file of steps is not
        right.
        """
        if not config.has_steps:
            return None
        read = [
            read_taxonomy(path, config.hierarchy_delimiter) for path in config.hierarchies.values()
        ]
        losses = [taxonomy.level_losses() for taxonomy, _warnings in read]
        if config.levels == CHAIN:
            steps = _chain(losses)
        else:
            steps = _steps_of_file(str(config.levels), list(map(len, losses)))
        return cls(
            columns=config.attributes,
            taxonomies=tuple(taxonomy for taxonomy, _warnings in read),
            steps=tuple(steps),
            expected=tuple(_loss(losses, step) for step in steps),
            unknown=config.unknown,
            warnings=tuple(warning for _taxonomy, warnings in read for warning in warnings),
        )

    def for_core(self) -> tuple[Sequence[Taxonomy], Sequence[bytes], str]:
        """Returns the ladder as `_core.RowFilter` takes it."""
        return self.taxonomies, [bytes(step) for step in self.steps], self.unknown

    def facts(self, stats: Mapping[str, Any], rows: int) -> dict[str, Any]:
        """Returns the ladder for the manifest.

        stats: the row filter's `ladder_stats`. rows: decided rows, without rows with an unknown
        value.
        """
        tally = Tally.of(stats, rows)
        return {
            "columns": list(self.columns),
            "unknown_values": stats["unknown"],
            "loss": round(tally.loss, 6) if tally.rows else None,
            "levels_paused": stats["paused"],
            "users_behind": smallest_and_median(stats["users"]),
            "steps": [
                {
                    "levels": list(step),
                    "expected_loss": round(expected, 6),
                    "released": count,
                    "by_peek": level["peeks"],
                    "withdrawn": level["withdrawn"],
                    "labels": level["labels"],
                }
                for step, expected, count, level in zip(
                    self.steps, self.expected, stats["released"], stats["levels"], strict=True
                )
            ],
        }


def smallest_and_median(counts: Mapping[int, int]) -> dict[str, int] | None:
    """Returns the smallest and the median key of a histogram; None if it is empty."""
    total, seen = sum(counts.values()), 0
    for users in sorted(counts):
        seen += counts[users]
        if 2 * seen >= total:
            return {"smallest": min(counts), "median": users}
    return None


def _loss(losses: Sequence[Sequence[float]], step: Step) -> float:
    """Returns the mean over the columns, rounded so that equal losses stay equal."""
    total = math.fsum(levels[level] for levels, level in zip(losses, step, strict=True))
    return round(total / len(step), 12)


def _chain(losses: Sequence[Sequence[float]]) -> list[Step]:
    """Returns the steps from the values up; each raises the column whose next level loses least."""
    step = tuple(0 for _levels in losses)
    tops = tuple(len(levels) - 1 for levels in losses)
    steps = []
    while step != tops:
        steps.append(step)
        raised = [
            (*step[:i], level + 1, *step[i + 1 :])
            for i, level in enumerate(step)
            if level < tops[i]
        ]
        step = min(raised, key=lambda step: (_loss(losses, step), [-level for level in step]))
    if not 0 < len(steps) <= LADDER_STEPS_MAX:
        reject("hierarchy", f"a chain must have 1 to {LADDER_STEPS_MAX} steps, not {len(steps):,}")
    return steps


def _steps_of_file(path: str, levels: Sequence[int]) -> list[Step]:
    """Returns the steps of a file, which has a step a line: a level for each column.

    levels: the number of levels of each column. Raises ConfigError, with the line, for a line that
    is no step or not coarser than the line before.
    """
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except OSError as error:
        reject("levels", f"{Path(path).name} cannot be read: {error.strerror}")
    except UnicodeDecodeError:
        reject("levels", f"{Path(path).name} is not UTF-8")
    steps: list[Step] = []
    for number, line in enumerate(lines, 1):
        words = line.replace(",", " ").split()
        if not words:
            continue
        problem = _problem_of_step(words, levels, steps)
        if problem:
            reject("levels", f"{Path(path).name}: line {number}: {problem}")
        steps.append(tuple(map(int, words)))
    if not steps:
        reject("levels", f"{Path(path).name} has no step")
    return steps


def _problem_of_step(words: Sequence[str], levels: Sequence[int], before: Sequence[Step]) -> str:
    """Returns what is wrong with the next step of a file; empty if nothing is."""
    if len(words) != len(levels) or not all(word.isascii() and word.isdigit() for word in words):
        return f"must be {len(levels)} whole numbers, a level for each attribute"
    step = tuple(map(int, words))
    for column, (level, count) in enumerate(zip(step, levels, strict=True), 1):
        if level >= count:
            return f"attribute {column} has levels 0 to {count - 1}, not {level}"
    if len(before) == LADDER_STEPS_MAX:
        return f"at most {LADDER_STEPS_MAX} steps are possible"
    if before and (step == before[-1] or any(map(int.__lt__, step, before[-1]))):
        return "must be coarser than the step before in a column, and finer in none"
    return ""
