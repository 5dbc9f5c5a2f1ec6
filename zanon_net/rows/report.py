# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Report of `zanon-net filter`: a manifest for machines and a summary for people, in counts."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from zanon_net._core import LOG_REASONS, ROW_FAULTS, RowFilter
from zanon_net._record import dataclass
from zanon_net._text import share, table, time_range, time_span
from zanon_net._version import __version__
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.config.ladder_rules import OF_NAMES
from zanon_net.rows.ladder import Ladder, smallest_and_median

Z_EQUALS_1 = "z = 1: every attribute is released, even if a single user exposed it"

COARSE = "z users stand behind each coarser row, but its text may be in fewer rows of the output"

LABELS = "z users stand behind each label, but the label may be in fewer rows of the output"

STEPS_SHOWN = 5  # in the summary; the manifest has all

SUPPRESSED = {
    "below_z": "exposed by fewer than z users",
    "too_late": "older than the window",
    "late_deep": "too far out of order",
    "no_room": "the table was full",
}
"""The table's reasons, by the names of its counters."""
NO_ATTRIBUTE = "no_attribute"
HOLD_FULL = "coarse rows that left before their minute ended"


@dataclass(frozen=True, slots=True)
class RowSource:
    """A source that was read.

    name: only the last part of its path. bytes_read: of the unpacked data.
    """

    name: str
    compression: str | None
    bytes_read: int
    rows: int

    def to_dict(self) -> dict[str, Any]:
        """Returns the source as the manifest has it."""
        return {
            "name": self.name,
            "compression": self.compression,
            "bytes": self.bytes_read,
            "rows": self.rows,
        }


class Totals(Protocol):
    """Counters at the end of an input that every command on rows has."""

    @property
    def rows(self) -> Mapping[str, int]:
        """The reader's counters."""

    @property
    def time_range_ns(self) -> tuple[int, int] | None:
        """The first and last time of a row, in ns since the Unix epoch."""

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory in use."""

    @property
    def unreadable(self) -> int:
        """Rows that could not be read."""


@dataclass(frozen=True, slots=True)
class RunReport(ABC):
    """The result of a run on rows.

    manifest: for machines. totals: the counters. seconds: from the first byte read to the last byte
    written.
    """

    manifest: Mapping[str, Any]
    totals: Totals
    seconds: float

    @property
    def interrupted(self) -> bool:
        """True if a signal ended the reading."""
        return bool(self.manifest["interrupted"])

    @property
    def warnings(self) -> list[str]:
        """A line for each problem of the input that its owner should know."""
        warnings = []
        if self.totals.unreadable > 1:  # the first row had a warning of its own
            warnings.append(f"{self.totals.unreadable:,} rows could not be read and were dropped")
        if naive := self.totals.rows["without_offset"]:
            warnings.append(f"times without an offset were taken for UTC: {naive:,}")
        return warnings

    def speed(self) -> dict[str, float]:
        """Returns seconds, rows/s and bytes of memory touched."""
        rate = self.totals.rows["rows"] / max(self.seconds, 1e-9)
        return {
            "seconds": round(self.seconds, 6),
            "rows_per_s": round(rate),
            "memory_bytes": self.totals.memory_bytes,
        }

    def summary(self, width: int = 80) -> str:
        """Returns the summary table for people, `width` columns wide: a handful of lines of
        counts."""
        return table(self._lines(), width)

    @abstractmethod
    def _lines(self) -> Iterable[tuple[str, str]]:
        """Yields the lines of the summary."""

    def _last_lines(self) -> Iterable[tuple[str, str]]:
        """Yields the lines with which every summary ends."""
        if self.totals.time_range_ns is not None:
            yield "time span", time_span(self.totals.time_range_ns)
        memory = f"{self.totals.memory_bytes / 2**20:,.0f} MiB"
        rate = self.speed()["rows_per_s"]
        yield "speed", f"{rate:,.0f} rows/s, {self.seconds:.2f} s, {memory}"
        for note in self.manifest["notes"]:
            yield "note", note


@dataclass(frozen=True, slots=True)
class RowTotals:
    """A row filter's counters at the end of its input."""

    rows: Mapping[str, int]
    table: Mapping[str, int]
    reasons: Mapping[str, int]
    format: str
    time_range_ns: tuple[int, int] | None
    memory_bytes: int
    ladder: Mapping[str, Any] | None = None
    labels: Mapping[str, Any] | None = None

    @classmethod
    def of(
        cls, row_filter: RowFilter, ladder: Ladder | None = None, levels: Sequence[str] = ()
    ) -> "RowTotals":
        """Returns the totals of `row_filter`, which was opened with `ladder`, or with labels at
        `levels`."""
        stats, labels = row_filter.ladder_stats, row_filter.label_stats
        facts = None
        if ladder is not None and stats is not None:
            facts = ladder.facts(stats, row_filter.table_stats["observations"])
        return cls(
            ladder=facts,
            labels=None if labels is None else _label_facts(levels, labels),
            rows=row_filter.stats,
            table=row_filter.table_stats,
            reasons=row_filter.reasons,
            format=row_filter.format,
            time_range_ns=row_filter.time_range_ns,
            memory_bytes=row_filter.memory_bytes,
        )

    @property
    def unreadable(self) -> int:
        """Rows that could not be read."""
        return sum(self.rows[name] for name in ROW_FAULTS)


def _label_facts(levels: Sequence[str], stats: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the counts of labels for the manifest, without the text of a label.

    levels: finest first, above the value. stats: the row filter's `label_stats`.
    """
    value = "name" if levels[0] in OF_NAMES else "address"
    counts = dict(zip((value, *levels), stats["levels"], strict=True))
    return {
        "published": {name: level["published"] for name, level in counts.items()},
        "tables": [{"level": name, **level} for name, level in counts.items()],
        "users_behind": smallest_and_median(stats["users"]),
        "levels_paused": stats["paused"],
        "lacked_capacity": stats["lacked_capacity"],
        "categories_ignored": stats["ignored_categories"],
    }


def build_filter_manifest(
    config: FilterConfig, totals: RowTotals, sources: Sequence[RowSource], *, interrupted: bool
) -> dict[str, Any]:
    """Returns the manifest of a run of the filter, which does not depend on the duration of the
    run."""
    notes = [Z_EQUALS_1] if config.z == 1 else []
    notes += [] if totals.ladder is None else [COARSE]
    notes += [] if totals.labels is None else [LABELS]
    notes += [f"column {column!r} is not anonymized" for column in config.passed]
    counts = totals.table
    levels = totals.labels if totals.ladder is None else totals.ladder
    return {
        "name": "zanon-net filter",
        "version": __version__,
        "complete": not interrupted and not totals.unreadable,
        "interrupted": interrupted,
        "notes": notes,
        "configuration": {**config.to_dict(), "format": totals.format},
        "time_range": time_range(totals.time_range_ns),
        "sources": [source.to_dict() for source in sources],
        "rows": {
            "read": totals.rows["rows"],
            "dropped": {name: totals.rows[name] for name in ROW_FAULTS},
            "written": totals.rows["written"],
            NO_ATTRIBUTE: totals.reasons[NO_ATTRIBUTE],
            "times_without_offset": totals.rows["without_offset"],
            "hold_full": totals.rows["hold_full"],
        },
        "decisions": {
            "observations": counts["observations"],
            "released": counts["released"],
            "suppressed": {
                **{name: counts[name] for name in SUPPRESSED},
                **{name: count for name, count in totals.reasons.items() if name != NO_ATTRIBUTE},
            },
            "late": counts["late"],
            "clock_jumps": counts["clock_jumps"],
            "evicted": counts["evicted"],
        },
        **({} if levels is None else {"levels": dict(levels)}),
    }


@dataclass(frozen=True, slots=True)
class FilterReport(RunReport):
    """The result of `filter_rows`; its manifest is that of build_filter_manifest."""

    totals: RowTotals

    def _ladder_lines(self) -> Iterable[tuple[str, str]]:
        """Yields the loss, and the steps that released most; or the rows of each level."""
        ladder, labels = self.totals.ladder, self.totals.labels
        if labels is not None:
            for name, count in labels["published"].items():
                yield "levels", f"{count:,}  {name}"
        if ladder is None:
            return
        if unknown := ladder["unknown_values"]:
            yield "suppressed", f"{unknown:,}  a value that its hierarchy does not have"
        if ladder["loss"] is not None:
            yield "loss", f"{ladder['loss']:.3f} (from 0, unchanged, to 1, nothing left)"
        steps = sorted(ladder["steps"], key=lambda step: -step["released"])[:STEPS_SHOWN]
        for step in steps:
            if step["released"]:
                levels = ", ".join(
                    f"{column} {level}"
                    for column, level in zip(ladder["columns"], step["levels"], strict=True)
                )
                yield "levels", f"{step['released']:,}  {levels}"

    def _lines(self) -> Iterable[tuple[str, str]]:
        totals, counts = self.totals, self.totals.table
        yield "rows", f"{totals.rows['rows']:,} read, {totals.rows['written']:,} written"
        for name, text in ROW_FAULTS.items():
            if totals.rows[name]:
                yield "dropped", f"{totals.rows[name]:,}  {text}"
        yield "released", share(counts["released"], counts["observations"])
        yield from self._ladder_lines()
        for name, text in SUPPRESSED.items():
            if counts[name]:
                yield "suppressed", f"{counts[name]:,}  {text}"
        for name, text in LOG_REASONS.items():
            if totals.reasons[name]:
                kind = "rows" if name == NO_ATTRIBUTE else "suppressed"
                yield kind, f"{totals.reasons[name]:,}  {text}"
        for name, text in (("late", "out of order"), ("clock_jumps", "times the clock was reset")):
            if counts[name]:
                yield "time", f"{counts[name]:,}  {text}"
        if early := totals.rows["hold_full"]:
            yield "capacity", f"{early:,}  {HOLD_FULL}"
        yield from self._last_lines()
