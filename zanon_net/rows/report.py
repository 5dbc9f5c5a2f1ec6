# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The report of `zanon-net filter`: a manifest for machines and a summary for people, in counts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zanon_net._core import ROW_FAULTS, RowFilter
from zanon_net._text import share, table, time_range, time_span
from zanon_net._version import __version__
from zanon_net.config.filter_settings import FilterConfig

Z_EQUALS_1 = "z = 1: every attribute is released, also one that a single user exposed"

SUPPRESSED = {
    "below_z": "exposed by fewer than z users",
    "too_late": "older than the window",
    "late_deep": "too far out of order",
    "no_room": "the table was full",
}
"""The table's reasons, by the names of its counters."""


@dataclass(frozen=True, slots=True)
class RowSource:
    """A source that was read; `name` is the last part of its path, no more."""

    name: str
    bytes_read: int
    rows: int

    def to_dict(self) -> dict[str, Any]:
        """The source as the manifest has it."""
        return {"name": self.name, "bytes": self.bytes_read, "rows": self.rows}


@dataclass(frozen=True, slots=True)
class RowTotals:
    """A row filter's counters at the end of its input."""

    rows: Mapping[str, int]
    table: Mapping[str, int]
    format: str
    time_range_ns: tuple[int, int] | None
    memory_bytes: int

    @classmethod
    def of(cls, row_filter: RowFilter) -> "RowTotals":
        """The totals of `row_filter`."""
        return cls(
            rows=row_filter.stats,
            table=row_filter.table_stats,
            format=row_filter.format,
            time_range_ns=row_filter.time_range_ns,
            memory_bytes=row_filter.memory_bytes,
        )

    @property
    def dropped(self) -> int:
        """Rows that could not be read."""
        return sum(self.rows[name] for name in ROW_FAULTS)


def build_filter_manifest(
    config: FilterConfig, totals: RowTotals, sources: Sequence[RowSource], *, interrupted: bool
) -> dict[str, Any]:
    """The manifest of a run of the filter; nothing in it depends on how long that took."""
    notes = [Z_EQUALS_1] if config.z == 1 else []
    notes += [f"column {column!r} is not anonymized" for column in config.passed]
    counts = totals.table
    return {
        "name": "zanon-net filter",
        "version": __version__,
        "complete": not interrupted and not totals.dropped,
        "interrupted": interrupted,
        "notes": notes,
        "configuration": {**config.to_dict(), "format": totals.format},
        "time_range": time_range(totals.time_range_ns),
        "sources": [source.to_dict() for source in sources],
        "rows": {
            "read": totals.rows["rows"],
            "dropped": {name: totals.rows[name] for name in ROW_FAULTS},
            "written": totals.rows["written"],
            "times_without_offset": totals.rows["without_offset"],
        },
        "decisions": {
            "observations": counts["observations"],
            "released": counts["released"],
            "suppressed": {name: counts[name] for name in SUPPRESSED},
            "late": counts["late"],
            "clock_jumps": counts["clock_jumps"],
            "evicted": counts["evicted"],
        },
    }


@dataclass(frozen=True, slots=True)
class FilterReport:
    """The result of `filter_rows`.

    manifest: see build_filter_manifest.
    totals: the row filter's counters.
    seconds: from the first byte read to the last one written.
    """

    manifest: Mapping[str, Any]
    totals: RowTotals
    seconds: float

    @property
    def interrupted(self) -> bool:
        """Whether a signal ended the reading."""
        return bool(self.manifest["interrupted"])

    @property
    def warnings(self) -> list[str]:
        """A line for each problem of the input that its owner should know."""
        warnings = []
        if self.totals.dropped > 1:  # the first one had a warning of its own
            warnings.append(f"{self.totals.dropped:,} rows could not be read and were dropped")
        if naive := self.totals.rows["without_offset"]:
            warnings.append(f"times without an offset were taken for UTC: {naive:,}")
        return warnings

    def speed(self) -> dict[str, float]:
        """Seconds, rows/s and bytes of memory touched."""
        rate = self.totals.rows["rows"] / max(self.seconds, 1e-9)
        return {
            "seconds": round(self.seconds, 6),
            "rows_per_s": round(rate),
            "memory_bytes": self.totals.memory_bytes,
        }

    def summary(self, width: int = 80) -> str:
        """The summary table for people, of so many columns: a handful of lines of counts."""
        return table(self._lines(), width)

    def _lines(self) -> Iterable[tuple[str, str]]:
        totals, counts, speed = self.totals, self.totals.table, self.speed()
        yield "rows", f"{totals.rows['rows']:,} read, {totals.rows['written']:,} written"
        for name, text in ROW_FAULTS.items():
            if totals.rows[name]:
                yield "dropped", f"{totals.rows[name]:,}  {text}"
        yield "released", share(counts["released"], counts["observations"])
        for name, text in SUPPRESSED.items():
            if counts[name]:
                yield "suppressed", f"{counts[name]:,}  {text}"
        for name, text in (("late", "out of order"), ("clock_jumps", "times the clock was reset")):
            if counts[name]:
                yield "time", f"{counts[name]:,}  {text}"
        if totals.time_range_ns is not None:
            yield "time span", time_span(totals.time_range_ns)
        memory = f"{totals.memory_bytes / 2**20:,.0f} MiB"
        yield "speed", f"{speed['rows_per_s']:,.0f} rows/s, {self.seconds:.2f} s, {memory}"
        for note in self.manifest["notes"]:
            yield "note", note
