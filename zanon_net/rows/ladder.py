# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Generalizations of a row that `filter --generalize` looks up in the z-table, finest first."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from zanon_net._core import LADDER_STEPS_MAX, Taxonomy
from zanon_net._record import dataclass
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.config.parse import reject
from zanon_net.rows.hierarchy_file import read_taxonomy

Step = tuple[int, ...]
"""A level of each column's hierarchy."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Ladder:
    """The steps of a row's generalization.

    columns: the attributes.
    taxonomies: their hierarchies.
    steps: finest first, by their expected loss, then by their levels; never all roots, with which a
        row would have no information.
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
        and ConfigError if the hierarchies make no steps, or too many.
        """
        if not config.generalize:
            return None
        read = [
            read_taxonomy(path, config.hierarchy_delimiter) for path in config.hierarchies.values()
        ]
        losses = [taxonomy.level_losses() for taxonomy, _warnings in read]
        steps = _all_steps(losses) if config.steps == "all" else _chain(losses)
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
        released = sum(stats["released"])
        total = rows + stats["unknown"]
        lost = stats["loss"] + total - released
        return {
            "columns": list(self.columns),
            "unknown_values": stats["unknown"],
            "loss": round(lost / total, 6) if total else None,
            "steps": [
                {"levels": list(step), "expected_loss": round(expected, 6), "released": count}
                for step, expected, count in zip(
                    self.steps, self.expected, stats["released"], strict=True
                )
            ],
        }


def _loss(losses: Sequence[Sequence[float]], step: Step) -> float:
    """Returns the mean over the columns, rounded so that equal losses stay equal."""
    total = math.fsum(levels[level] for levels, level in zip(losses, step, strict=True))
    return round(total / len(step), 12)


def _all_steps(losses: Sequence[Sequence[float]]) -> list[Step]:
    """Returns all combinations of levels except the roots."""
    count = math.prod(map(len, losses)) - 1
    if count > LADDER_STEPS_MAX:
        reject(
            "steps",
            f"the hierarchies make {count:,}, and at most {LADDER_STEPS_MAX} can be looked up; take"
            " --steps chain, or hierarchies with fewer levels",
        )
    steps = list(itertools.product(*(range(len(levels)) for levels in losses)))[:-1]
    if not steps:
        reject("hierarchy", "none has a level below its root, so that nothing could be released")
    return sorted(steps, key=lambda step: (_loss(losses, step), step))


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
